//! Whole evaluations, from hello to the output, by all parties of a protocol.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::{
    AnyMap, Builder, Cells, Cipher, Circuit, Direction, Matrix, Port, Table, catalog, cleartext, compile,
    modes,
};
use polyclave_field::{Gf2_40, Gf2_64, Gf2_128, MacField};
use polyclave_kernels::secret::{is_secret, mark_public, mark_secret};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Pairs, Shape, Silent, Wanted};
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session, SharedValue};
use polyclave_protocol::release::{Checked, Released, Unverified};
use polyclave_protocol::replicated::{
    FewRoundsConfig, GarbledThreeConfig, Passive, ReplicatedActiveConfig, ReplicatedConfig,
    ReplicatedFourConfig,
};
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::session::{HandshakeParameters, greet, hello};
use polyclave_protocol::shamir::{self, Inversion, ShamirActiveConfig, ShamirConfig, Structure, Tables};
use polyclave_protocol::spdz::{self, GarbledAuthenticatedConfig, LookupMethod, Packing, SpdzConfig};
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::tinyot::Kappa;
use polyclave_protocol::tinytable::{self, Macs, Preprocessing, TinyTableConfig};
use polyclave_protocol::{Party, PartySet, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::garbled::projection::{Labels, ProjectionConfig};
use polyclave_protocol_lab::garbled::{GarbledConfig, Gates};
use polyclave_protocol_lab::lut::{LutConfig, Method};
use zeroize::Zeroizing;

use crate::Subject;
use crate::net::{Watched, run_parties};

pub const SUBJECTS: &[Subject] = &[
    ("shamir: all inversions", shamir),
    ("shamir: tables without inversion", shamir_tables),
    ("shamir-active: both ways to make triples", shamir_active),
    ("replicated: the tower, gates and ANDs", replicated),
    ("replicated-active: a proof of many products", proof_of_many_products),
    ("replicated-four: the tower, gates and ANDs", replicated_four),
    ("garbled-three: whoever evaluates, and a stored circuit", garbled_three),
    (
        "few rounds: a hello in one round, and a block and a check value through circuits from the stock",
        few_rounds,
    ),
    ("garbled-authenticated: whoever evaluates, and a stored circuit", garbled_authenticated),
    ("few rounds of two: a block through a circuit from the stock, and its answer", few_rounds_of_two),
    ("replicated: to Shamir sharing", || to_shamir(|_| ())),
    ("spdz: material dealt", spdz_dealt),
    ("tinytable: material dealt", tinytable_dealt),
    ("mascot: products in GF(2^128)", mascot),
    ("tinyot: unit vectors and circuits", tinyot),
    ("rotation: records and unit vectors", rotation),
    ("rotation: records of three parties", rotation_among_three),
    ("silent transfers: a batch, and blocks of both widths", silent),
    ("lut: tables made ahead and tables sent online", lut),
    ("garbled: half gates and three halves", garbled),
    ("projection: long labels", || projection(Labels::Long)),
    ("projection: short labels", || projection(Labels::Short)),
];

/// Lanes of most evaluations.
const LANES: usize = 3;
/// So many that a proof of the products has two levels, one of them with zeros added, and more than one tile.
const MANY_LANES: usize = 4200;

/// Of setups: in some, parties send each other keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setup {
    Public,
    Private,
}

/// All circuits under all schemes, which take one setup: transfers of curve points take most of the time.
/// Inputs are secret, and input i is party i's. Everybody learns the outputs, which are right.
fn evaluated<S: ProtocolConfig>(configs: &[S], setup: Setup, circuits: &[Circuit]) {
    evaluated_in(LANES, configs, setup, circuits);
}

fn evaluated_in<S: ProtocolConfig>(lanes: usize, configs: &[S], setup: Setup, circuits: &[Circuit]) {
    let parties = configs[0].parties();
    run_parties(parties, |net| {
        net.in_private = setup == Setup::Private;
        let setup = configs[0].setup(net)?;
        net.in_private = false;
        for config in configs {
            for circuit in circuits {
                let mut session = hello(&config.handshake(HandshakeParameters::new(parties)), net)?;
                let mut protocol = config.join(&setup, session.stream(), PartySet::all(parties))?;
                let outputs = session_of(&mut protocol, circuit, inputs(circuit, lanes), net)?;
                assert!(outputs == in_the_clear(circuit, lanes), "{}, {}", config.name(), circuit.name());
            }
        }
        Ok(())
    });
}

fn session_of(
    protocol: &mut impl Session,
    circuit: &Circuit,
    mut inputs: Vec<Cells>,
    net: &mut Watched,
) -> Result<Vec<Cells>> {
    let (compiled, lanes) = (compile(circuit, protocol), inputs[0].lanes());
    let batch = prepare(protocol, &compiled, lanes, net)?;
    inputs.iter_mut().for_each(|cells| mark_secret(cells.rows_mut()));
    let source = |(i, cells)| match Party(i as u8) {
        owner if owner == net.me() => Input::Mine(cells),
        owner => Input::From(owner),
    };
    let sources: Vec<_> = inputs.iter().enumerate().map(source).collect();
    let shared = evaluate(protocol, &compiled, lanes, &sources, batch, net)?;
    let mut outputs = Vec::new();
    for value in &shared {
        let mut cells = release(protocol, value, Owner::All, net)?.expect("all learn it").accept();
        // The output: everybody learns it.
        mark_public(cells.rows_mut());
        outputs.push(cells);
    }
    Ok(outputs)
}

fn in_the_clear(circuit: &Circuit, lanes: usize) -> Vec<Cells> {
    cleartext::run(&compile(circuit, &AnyMap), lanes, &inputs(circuit, lanes)).expect("the inputs fit")
}

fn inputs(circuit: &Circuit, lanes: usize) -> Vec<Cells> {
    let cells_of = |port: &Port| cells(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes });
    circuit.inputs().iter().map(cells_of).collect()
}

fn cells(count: usize, bits: u8, lanes: usize) -> Cells {
    let mut cells = Cells::zero(count, bits, lanes);
    let value = |at: usize| (at as u8).wrapping_mul(29).wrapping_add(3) & (0xff >> (8 - bits));
    cells.rows_mut().iter_mut().enumerate().for_each(|(at, cell)| *cell = value(at));
    cells
}

/// T(x + k) + x, with views, and k the same for all lanes.
fn lookup(table: Table) -> Circuit {
    let mut b = Builder::new("a lookup");
    let (ins, outs) = (table.in_bits(), table.out_bits());
    let table = b.table(&Arc::new(table));
    let x = b.input("x", 1, ins)[0];
    let k = b.uniform_input("k", 1, ins)[0];
    let sum = b.xor(&[x, k]);
    let y = b.lookup(table, sum);
    let turned = Matrix::of(outs, outs, |x| x >> 1);
    let z = b.linear(
        vec![(y, Matrix::identity(outs)), (y, turned), (x, Matrix::of(ins, outs, |x| x >> (ins - outs)))],
        1,
    );
    b.output("y", &[y, z]);
    b.finish()
}

/// The first table of a cipher.
fn table_of(cipher: &str) -> Table {
    (*catalog::find(cipher).expect("the catalog has it").encrypt.tables()[0]).clone()
}

/// Of 4 bits.
fn small() -> Table {
    Table::new("a table", 4, 4, (0..16_u8).map(|x| x.wrapping_mul(x).wrapping_add(5 * x) & 15).collect())
}

/// ANDs in two layers, of which one is the same for all lanes.
fn gates() -> Circuit {
    let place = |i| Matrix::place(2, i);
    let mut b = Builder::new("gates");
    let and = b.table(&Arc::new(Table::new("AND", 2, 1, vec![0, 0, 0, 1])));
    let x = b.input("x", 2, 1);
    let k = b.uniform_input("k", 2, 1);
    let pair = b.linear(vec![(x[0], place(0)), (x[1], place(1))], 0b10);
    let first = b.lookup(and, pair);
    let keys = b.linear(vec![(k[0], place(0)), (k[1], place(1))], 0);
    let uniform = b.lookup(and, keys);
    let pair = b.linear(vec![(first, place(0)), (uniform, place(1))], 0b01);
    let second = b.lookup(and, pair);
    let y = b.xor(&[second, x[0]]);
    b.output("y", &[y, first]);
    b.finish()
}

fn shamir() {
    let config = |inversion| ShamirConfig { structure: structure(3), inversion, tables: Tables::Masked };
    evaluated(&Inversion::ALL.map(config), Setup::Private, &[lookup(table_of("aes-128"))]);
}

fn shamir_tables() {
    let inversion = Inversion::CarriedSquares;
    let config = |tables| ShamirConfig { structure: structure(3), inversion, tables };
    evaluated(&Tables::ALL.map(config), Setup::Private, &[lookup(table_of("des"))]);
}

fn shamir_active() {
    for preprocessing in shamir::Preprocessing::ALL {
        let config = ShamirActiveConfig::new(structure(4), Inversion::MaskedPowers, Tables::Masked);
        let config = config.expect("enough parties").with_preprocessing(preprocessing);
        evaluated(&[config], Setup::Private, &[lookup(table_of("aes-128")), lookup(small())]);
    }
}

fn replicated() {
    let circuits = [lookup(table_of("aes-128")), lookup(table_of("des")), lookup(small()), gates()];
    evaluated(&[ReplicatedConfig::<Passive>::default()], Setup::Private, &circuits);
    evaluated(&[ReplicatedActiveConfig::default()], Setup::Private, &circuits);
}

fn replicated_four() {
    let circuits = [lookup(table_of("aes-128")), lookup(table_of("des")), lookup(small()), gates()];
    evaluated(&[ReplicatedFourConfig], Setup::Private, &circuits);
}

/// Inputs of all parties, whoever evaluates. Then a circuit that is garbled ahead, with the labels of a key
/// that nobody knows; one lane of it is cut off, stored, and used on a shared block.
fn garbled_three() {
    let configs = [0, 1, 2].map(|party| GarbledThreeConfig::with_evaluator(Party(party)).expect("there are"));
    evaluated(&configs, Setup::Private, &[gates()]);
    let config = GarbledThreeConfig::default();
    run_parties(config.parties(), |net| {
        net.in_private = true;
        let setup = config.setup(net)?;
        net.in_private = false;
        let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let compiled = compile(&gates(), &protocol);
        let mut inputs = inputs(&gates(), 1);
        inputs.iter_mut().for_each(|cells| mark_secret(cells.rows_mut()));
        let source = |(i, cells)| match Party(i as u8) {
            owner if owner == net.me() => Input::Mine(cells),
            owner => Input::From(owner),
        };
        let sources: Vec<_> = inputs.iter().enumerate().map(source).collect();
        let batch = prepare(&mut protocol, &compiled, 1, net)?;
        let shared = evaluate(&mut protocol, &compiled, 1, &sources, batch, net)?.remove(0);
        let wide = protocol.in_cells(&protocol.select_lanes(&shared, &[0]), 2)?;
        let lot = prepare(&mut protocol, &compiled, 2, net)?;
        let key = compiled.inputs().iter().find(|port| port.uniform).expect("the key").name.clone();
        let mut lot = protocol.give(&compiled, lot, &key, &wide, net)?;
        let one = protocol.take(&compiled, &mut lot, 1)?;
        let stored = protocol.save(one)?;
        let one = protocol.restore(&stored)?;
        let sources = compiled.inputs().iter().map(|_| Input::Shared(&shared)).collect::<Vec<_>>();
        let answer = evaluate(&mut protocol, &compiled, 1, &sources, one, net)?.remove(0);
        assert!(is_secret(answer.reveal_own_shares()));
        Ok(())
    });
}

/// A block and round keys: circuits of the stock take those of a key alone.
fn of_a_key(cipher: &Cipher) -> Vec<Cells> {
    let mut inputs = inputs(&cipher.encrypt, 1);
    inputs[1] = in_the_clear(&cipher.key_schedule, 1).remove(0);
    inputs
}

/// As nodes serve that are far from each other: a session that was prepared, and circuits that were made
/// ahead, on a block and a key that parties share. A check value takes two of them, with sums between. A key
/// is expanded, too.
fn few_rounds() {
    let config = FewRoundsConfig::default();
    let aes = catalog::find("aes-128").expect("listed");
    let block = aes.circuit(Direction::Encrypt).expect("it encrypts").as_ref().clone();
    let schedule = aes.key_schedule.as_ref().clone();
    let circuits = [block, modes::check_value(&aes), schedule];
    let stocked = [("garbled circuits of AES-128", 3), ("garbled key schedules of AES-128", 1)];
    run_parties(config.parties(), |net| {
        net.in_private = true;
        let setup = config.setup(net)?;
        net.in_private = false;
        let terms = config.handshake(HandshakeParameters::new(config.parties()));
        let (mut making, prepared) = greet(&terms, net)?.open_and_prepare(net, None)?;
        let (mut using, _) = prepared.begin(&terms, net, None)?;
        let kinds = config.kinds(net.me());
        let mut shelf = BTreeMap::new();
        for (name, count) in stocked {
            let kind = kinds.iter().find(|kind| kind.name == name).expect("listed");
            let made = config.make_material(&setup, making.stream(), kind, count, net)?;
            shelf.insert(*kind, made.iter().copied().collect());
        }
        let stock = Arc::new(Shelf(Mutex::new(shelf)));
        let mut protocol = config.join_stocked(&setup, using.stream(), net.members(), stock.clone())?;
        for circuit in &circuits {
            let inputs = if circuit.inputs().len() > 1 { of_a_key(&aes) } else { inputs(circuit, 1) };
            let expected = cleartext::run(&compile(circuit, &AnyMap), 1, &inputs).expect("the inputs fit");
            let outputs = session_of(&mut protocol, circuit, inputs, net)?;
            assert!(outputs == expected, "{}", circuit.name());
        }
        assert!(stock.0.lock().values().all(VecDeque::is_empty), "all went through circuits");
        Ok(())
    });
}

/// Inputs of both parties, whoever evaluates. Then a circuit that is made ahead, with a key that nobody
/// knows; it is stored, and used on a shared block.
fn garbled_authenticated() {
    let config = |party| {
        GarbledAuthenticatedConfig::new(Party(party), Kappa::Bits40, 2).expect("the parties are 1 and 2")
    };
    evaluated(&[config(0), config(1)], Setup::Public, &[gates()]);
    let config = config(1);
    run_parties(config.parties(), |net| {
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let compiled = compile(&gates(), &protocol);
        let mut inputs = inputs(&gates(), 1);
        inputs.iter_mut().for_each(|cells| mark_secret(cells.rows_mut()));
        let source = |(i, cells)| match Party(i as u8) {
            owner if owner == net.me() => Input::Mine(cells),
            owner => Input::From(owner),
        };
        let sources: Vec<_> = inputs.iter().enumerate().map(source).collect();
        let batch = prepare(&mut protocol, &compiled, 1, net)?;
        let shared = evaluate(&mut protocol, &compiled, 1, &sources, batch, net)?.remove(0);
        let key = compiled.inputs().iter().find(|port| port.uniform).expect("the key").name.clone();
        let circuit = prepare(&mut protocol, &compiled, 1, net)?;
        let circuit = protocol.give(&compiled, circuit, &key, &shared, net)?;
        let stored = protocol.save(circuit)?;
        let circuit = protocol.restore(&stored)?;
        let sources = compiled.inputs().iter().map(|_| Input::Shared(&shared)).collect::<Vec<_>>();
        let answer = evaluate(&mut protocol, &compiled, 1, &sources, circuit, net)?.remove(0);
        assert!(is_secret(answer.reveal_own_shares()));
        Ok(())
    });
}

/// Items of each kind in the order in which they were made.
struct Shelf(Mutex<BTreeMap<Kind, VecDeque<u8>>>);

impl Shelf {
    fn give_all(&self, wanted: &[(Kind, usize)]) -> Option<Vec<Zeroizing<Vec<u8>>>> {
        let has = |(kind, count): &(Kind, usize)| {
            self.0.lock().get(kind).is_some_and(|items| items.len() >= count * kind.item_bytes)
        };
        wanted
            .iter()
            .all(has)
            .then(|| wanted.iter().filter_map(|(kind, count)| self.give(kind, *count)).collect())
    }

    fn give(&self, kind: &Kind, count: usize) -> Option<Zeroizing<Vec<u8>>> {
        let mut shelf = self.0.lock();
        let items = shelf.get_mut(kind)?;
        let bytes = count * kind.item_bytes;
        (items.len() >= bytes).then(|| Zeroizing::new(items.drain(..bytes).collect()))
    }
}

impl Stock for Shelf {
    fn take(&self, kind: &Kind, count: usize, _: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        Ok(self.give(kind, count).unwrap_or_else(|| panic!("{count} {} are too many", kind.name)))
    }

    fn take_if_there(
        &self,
        wanted: &[(Kind, usize)],
        _: &mut dyn Net,
    ) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>> {
        Ok(self.give_all(wanted))
    }
}

/// As two nodes serve that are far from each other: a circuit that was made ahead, on a block and a key that
/// both share, and the message to a client with the proof that was made with it.
fn few_rounds_of_two() {
    let config = polyclave_protocol::catalog::service("spdz-tower", 2, 1).expect("two nodes serve with it");
    let aes = catalog::find("aes-128").expect("listed");
    let circuit = aes.circuit(Direction::Encrypt).expect("it encrypts");
    run_parties(config.parties(), |net| {
        let setup = config.setup(net)?;
        let terms = config.handshake(HandshakeParameters::new(config.parties()));
        let mut shelf = BTreeMap::new();
        for kind in config.kinds(net.me()) {
            let count = match kind.name {
                "garbled circuits of AES-128" => 1,
                "triples" => 64,
                _ => continue,
            };
            let stream = hello(&terms, net)?.stream();
            let made = config.make_material(&setup, stream, &kind, count, net)?;
            shelf.insert(kind, made.iter().copied().collect());
        }
        let stream = hello(&terms, net)?.stream();
        let stock = Arc::new(Shelf(Mutex::new(shelf)));
        let mut protocol = config.join_stocked(&setup, stream, net.members(), stock)?;
        let compiled = compile(&circuit, &protocol);
        let mut inputs = of_a_key(&aes);
        inputs.iter_mut().for_each(|cells| mark_secret(cells.rows_mut()));
        let source = |(i, cells)| match Party(i as u8) {
            owner if owner == net.me() => Input::Mine(cells),
            owner => Input::From(owner),
        };
        let sources: Vec<_> = inputs.iter().enumerate().map(source).collect();
        let batch = prepare(&mut protocol, &compiled, 1, net)?;
        let output = evaluate(&mut protocol, &compiled, 1, &sources, batch, net)?.remove(0);
        let before = protocol.tally().output.rounds;
        let message = protocol.reveal_to_client(&output, net)?;
        assert_eq!(protocol.tally().output.rounds, before, "it went through a circuit");
        assert!(is_secret(&message), "shares for a client are no message yet");
        Ok(())
    });
}

fn proof_of_many_products() {
    let config = ReplicatedActiveConfig::default();
    evaluated_in(MANY_LANES, &[config], Setup::Private, &[lookup(table_of("aes-128"))]);
}

/// A value that nobody knows becomes Shamir shares, of itself and of an image of it. Each party goes on with
/// its own.
pub fn to_shamir(then: fn(&[u8])) {
    let config = ReplicatedConfig::<Passive>::default();
    run_parties(config.parties(), |net| {
        net.in_private = true;
        let setup = config.setup(net)?;
        net.in_private = false;
        let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let mut b = Builder::new("a block");
        let block = b.input("block", 16, 8);
        b.output("block", &block);
        let compiled = compile(&b.finish(), &protocol);
        let (mask, _) = protocol.mask_input(16, net)?;
        let value = protocol.unmask(&mask, 0, &[0; 16], &compiled.inputs()[0])?;
        let shares = protocol.to_shamir(&value, &[Matrix::identity(8), Matrix::of(8, 8, |x| x >> 1)])?;
        assert!(is_secret(shares.reveal_own_shares()), "the shares are secret to memcheck");
        then(shares.reveal_own_shares());
        Ok(())
    });
}

fn structure(parties: usize) -> Structure {
    Structure::new(parties, 1).expect("it is valid")
}

const fn dealt<F: MacField>() -> spdz::Preprocessing<F> {
    spdz::Preprocessing::Dealt(&InsecureDealing)
}

const fn mascot_material<F: MacField>() -> spdz::Preprocessing<F> {
    spdz::Preprocessing::Mascot { expansion: 2 }
}

fn spdz_dealt() {
    let both = [lookup(table_of("aes-128")), lookup(table_of("des"))];
    for method in [
        LookupMethod::MaskedTables,
        LookupMethod::BitDecomposition,
        LookupMethod::RivainProuff,
        LookupMethod::PulkusVivek,
    ] {
        evaluated(&[spdz::<Gf2_64>(2, method, dealt())], Setup::Private, &both);
    }
    let inverse = catalog::find("aes-128").and_then(|cipher| cipher.decrypt).expect("the catalog has it");
    let both = [lookup(table_of("aes-128")), lookup((*inverse.tables()[0]).clone())];
    evaluated(&[spdz::<Gf2_64>(2, LookupMethod::Tower, dealt())], Setup::Private, &both);
    let three = spdz::<Gf2_40>(3, LookupMethod::MaskedTables, dealt());
    evaluated(&[three], Setup::Private, &[lookup(small())]);
}

fn mascot() {
    let config = spdz::<Gf2_128>(2, LookupMethod::PulkusVivek, mascot_material());
    evaluated(&[config], Setup::Public, &[lookup(small())]);
}

fn rotation() {
    let config = SpdzConfig::<Gf2_64>::new(2, LookupMethod::Tower, mascot_material(), Packing::Rotation)
        .expect("it is valid");
    evaluated(&[config], Setup::Public, &[lookup(table_of("aes-128")), lookup(small())]);
}

fn rotation_among_three() {
    evaluated(
        &[spdz::<Gf2_64>(3, LookupMethod::Tower, mascot_material())],
        Setup::Public,
        &[lookup(table_of("aes-128"))],
    );
}

fn spdz<F: MacField>(
    parties: usize,
    method: LookupMethod,
    preprocessing: spdz::Preprocessing<F>,
) -> SpdzConfig<F> {
    let packing = Packing::of::<F>(F::BITS as usize).expect("the field has this packing");
    SpdzConfig::new(parties, method, preprocessing, packing).expect("it is valid")
}

fn tinytable_dealt() {
    let (dealt, both) = (Preprocessing::Dealt(&InsecureDealing), [lookup(small()), gates()]);
    let passive = TinyTableConfig::<Unverified<Cells>>::new(Macs::None, dealt).expect("it is valid");
    evaluated(&[passive], Setup::Private, &both);
    for macs in [Macs::Lookup32, Macs::Lookup64, Macs::Linear64, Macs::Minimac] {
        let config = TinyTableConfig::<Checked<Cells>>::new(macs, dealt).expect("it is valid");
        evaluated(&[config], Setup::Private, &both);
    }
}

fn tinyot() {
    let config = |method| {
        let from = Preprocessing::TinyOt { method, kappa: Kappa::Bits40, expansion: 2 };
        TinyTableConfig::<Checked<Cells>>::new(Macs::Linear64, from).expect("it is valid")
    };
    let ways = [tinytable::PreprocessingMethod::Demux, tinytable::PreprocessingMethod::Circuit].map(config);
    evaluated(&ways, Setup::Public, &[lookup(small())]);
}

fn silent() {
    run_parties(2, |net| {
        let mut delta = [0; 16];
        random_bytes(&mut delta)?;
        let delta = u128::from_le_bytes(delta) | 1;
        let mut pairs = Pairs::setup(b"silent", delta, Shape::new(128, 2)?, net)?;
        let mut choices = [0; 8];
        random_bytes(&mut choices)?;
        let rows: Vec<&[u8]> =
            Party::all(2).map(|p| if p == net.me() { &[][..] } else { &choices }).collect();
        let wanted = [128, 64].map(|columns| Wanted { choices: &rows, count: 64, columns });
        let made = Silent::new(b"silent", &pairs)?.extend(&mut pairs, wanted, net)?;
        let peer = net.me().peers(2).next().expect("there are two");
        let mut sums = [0; 8];
        made[1].received[peer.index()].add_words(8, 0, &mut sums)
    });
}

fn lut() {
    let configs = Method::ALL.map(|method| LutConfig { method, expansion: 2 });
    evaluated(&configs, Setup::Public, &[lookup(table_of("des")), lookup(small()), gates()]);
}

fn garbled() {
    let configs = [Gates::Half, Gates::ThreeHalves].map(|gates| GarbledConfig { gates, expansion: 2 });
    evaluated(&configs, Setup::Public, &[gates()]);
}

fn projection(labels: Labels) {
    let config = ProjectionConfig { labels, expansion: 2 };
    let circuits = [lookup(table_of("aes-128")), lookup(small()), gates()];
    evaluated(&[config], Setup::Public, &circuits);
}
