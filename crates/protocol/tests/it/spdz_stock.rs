//! Authenticated sharing with material that another session made: right answers, and none from items that do
//! not belong together.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::{AnyMap, Cells, Circuit, Direction, catalog, cleartext, compile};
use polyclave_field::{Gf2_64, Gf2_128, MacField};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig, kinds};
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::{Error, Party, Result};
use zeroize::Zeroizing;

use crate::lookups::{config, narrow, table_of};

/// A party's items, handed out in order; and what may go wrong with them.
#[derive(Default)]
struct BoundedStock {
    items: Mutex<BTreeMap<&'static str, Vec<u8>>>,
    /// Of this kind the first item is put behind the others.
    out_of_order: Option<&'static str>,
    /// Bytes left out of every answer.
    cut: usize,
}

impl BoundedStock {
    fn put(&self, kind: &Kind, items: &[u8]) {
        let mut items = items.to_vec();
        if self.out_of_order == Some(kind.name) {
            items.rotate_left(kind.item_bytes);
        }
        self.items.lock().insert(kind.name, items);
    }
}

impl Stock for BoundedStock {
    fn take(&self, kind: &Kind, count: usize, _: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let mut shelf = self.items.lock();
        let items = shelf.entry(kind.name).or_default();
        let len = count * kind.item_bytes;
        if items.len() < len {
            return Err(Error::OutOfMaterial { detail: format!("{count} {}", kind.name) });
        }
        let rest = items.split_off(len);
        let mut taken = std::mem::replace(items, rest);
        taken.truncate(len - self.cut.min(len));
        Ok(Zeroizing::new(taken))
    }
}

/// With material from oblivious transfer.
fn real(way: LookupMethod) -> SpdzConfig<Gf2_64> {
    let packing = Packing::of::<Gf2_64>(64).expect("the field has this packing");
    SpdzConfig::new(2, way, Preprocessing::Mascot { expansion: 2 }, packing).expect("it is valid")
}

/// One session fills the shelves, another one takes from them: what each party learns. Input port i is party
/// i's.
fn from_shelves<F: MacField>(
    config: &SpdzConfig<F>,
    stocked: &[(&str, usize)],
    circuit: &Circuit,
    inputs: &[Cells],
    shelf: impl Fn(Party) -> BoundedStock + Sync,
) -> Vec<Result<Vec<u8>>> {
    run_parties(config.parties(), |net| {
        let setup = config.setup(net)?;
        let terms = config.handshake(HandshakeParameters::new(config.parties()));
        let shelf = shelf(net.me());
        for (name, count) in stocked {
            let kind = kinds::<F>(config.method())
                .into_iter()
                .find(|kind| kind.name == *name)
                .expect("it is a kind");
            let stream = hello(&terms, net)?.stream();
            let items = config.join(&setup, stream, net.members())?.make_items(&kind, *count, net)?;
            assert_eq!(items.len(), count * kind.item_bytes);
            shelf.put(&kind, &items);
        }
        let stream = hello(&terms, net)?.stream();
        let mut protocol = config.join(&setup, stream, net.members())?.with_stock(Arc::new(shelf));
        let compiled = compile(circuit, &protocol);
        let lanes = inputs[0].lanes();
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        let owner = |i: usize| Party((i % net.parties()) as u8);
        let input = |(i, cells)| match owner(i) {
            owner if owner == net.me() => Input::Mine(cells),
            owner => Input::From(owner),
        };
        let inputs: Vec<_> = inputs.iter().enumerate().map(input).collect();
        let output = evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?.remove(0);
        let released = release(&mut protocol, &output, Owner::All, net)?;
        Ok(released.expect("it is for all").accept().to_blocks())
    })
}

fn cells(circuit: &Circuit, values: &[&str]) -> Vec<Cells> {
    let byte = |text: &str, at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    let ports = circuit.inputs().iter().zip(values).map(|(port, text)| {
        let bytes: Vec<u8> = (0..text.len()).step_by(2).map(|at| byte(text, at)).collect();
        Cells::from_blocks(port.cells.len(), port.bits, &bytes).expect("whole blocks")
    });
    ports.collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn with_key_schedule(name: &str) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts")
}

/// The blocks and keys of FIPS 197 (appendix C.1) and SP 800-67 (appendix B.1).
const AES: [&str; 2] = ["00112233445566778899aabbccddeeff", "000102030405060708090a0b0c0d0e0f"];
const AES_ANSWER: &str = "69c4e0d86a7b0430d8cdb78070b4c55a";
const DES: [&str; 2] = ["5468652071756663", "0123456789abcdef23456789abcdef01456789abcdef0123"];
const DES_ANSWER: &str = "a826fd8ce53b855f";

fn one_aes(stocked: &[(&str, usize)], shelf: impl Fn(Party) -> BoundedStock + Sync) -> Vec<Result<Vec<u8>>> {
    let (circuit, config) = (with_key_schedule("aes-128"), config::<Gf2_64>(3, LookupMethod::MaskedTables));
    from_shelves(&config, stocked, &circuit, &cells(&circuit, &AES), shelf)
}

/// The lookups of a block and of the key schedule.
const ENOUGH: [(&str, usize); 2] = [("unit vectors of 8 bits", 200), ("triples", 64)];

#[test]
fn aes_from_stock_gives_the_known_answer() {
    for outcome in one_aes(&ENOUGH, |_| BoundedStock::default()) {
        assert_eq!(hexadecimal(&outcome.expect("honest parties finish")), AES_ANSWER);
    }
}

#[test]
fn triple_des_from_stock_gives_the_known_answer() {
    fn check<F: MacField>() {
        let circuit = with_key_schedule("3des-ede3");
        let stocked = [("unit vectors of 6 bits", 384), ("triples", 64)];
        let config = config::<F>(2, LookupMethod::MaskedTables);
        for outcome in
            from_shelves(&config, &stocked, &circuit, &cells(&circuit, &DES), |_| BoundedStock::default())
        {
            assert_eq!(hexadecimal(&outcome.expect("honest parties finish")), DES_ANSWER);
        }
    }
    check::<Gf2_64>();
    check::<Gf2_128>();
}

#[test]
fn aes_by_the_tower_from_stock_gives_the_known_answer() {
    let (circuit, config) = (with_key_schedule("aes-128"), config::<Gf2_64>(2, LookupMethod::Tower));
    let stocked = [("records for inversions", 200), ("triples", 64)];
    for outcome in
        from_shelves(&config, &stocked, &circuit, &cells(&circuit, &AES), |_| BoundedStock::default())
    {
        assert_eq!(hexadecimal(&outcome.expect("honest parties finish")), AES_ANSWER);
    }
    let short = [("records for inversions", 199), ("triples", 64)];
    for outcome in
        from_shelves(&config, &short, &circuit, &cells(&circuit, &AES), |_| BoundedStock::default())
    {
        assert!(matches!(outcome, Err(Error::OutOfMaterial { .. })), "{outcome:?}");
    }
    // A record that the other party does not use, or has used already.
    let shelf = |p: Party| BoundedStock {
        out_of_order: (p == Party(1)).then_some("records for inversions"),
        ..BoundedStock::default()
    };
    for outcome in from_shelves(&config, &stocked, &circuit, &cells(&circuit, &AES), shelf) {
        assert!(matches!(outcome, Err(Error::CheckFailed { .. })), "{outcome:?}");
    }
}

#[test]
fn three_des_under_the_tower_from_stock_gives_the_known_answer() {
    let (circuit, config) = (with_key_schedule("3des-ede3"), config::<Gf2_64>(2, LookupMethod::Tower));
    let stocked = [("unit vectors of 6 bits", 384), ("triples", 64)];
    for outcome in
        from_shelves(&config, &stocked, &circuit, &cells(&circuit, &DES), |_| BoundedStock::default())
    {
        assert_eq!(hexadecimal(&outcome.expect("honest parties finish")), DES_ANSWER);
    }
}

/// Every kind, made by oblivious transfer: tables of 8 bits, of 6 bits, and products with decompositions.
#[test]
fn real_material_from_stock_gives_right_answers() {
    let (aes, des) = (table_of("aes-128"), narrow(6));
    let runs = [
        (LookupMethod::MaskedTables, &aes, vec![("unit vectors of 8 bits", 5), ("triples", 40)]),
        (LookupMethod::MaskedTables, &des, vec![("unit vectors of 6 bits", 5), ("triples", 40)]),
        (LookupMethod::BitDecomposition, &aes, vec![("bits", 100), ("triples", 80)]),
    ];
    for (way, circuit, stocked) in runs {
        let lanes = 5;
        let inputs: Vec<Cells> = circuit
            .inputs()
            .iter()
            .map(|port| {
                let mut cells =
                    Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes });
                let mask = 0xff >> (8 - port.bits);
                cells
                    .rows_mut()
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, cell)| *cell = (37 * i as u8 + 5) & mask);
                cells
            })
            .collect();
        let expected = cleartext::run(&compile(circuit, &AnyMap), lanes, &inputs).expect("the inputs fit");
        for outcome in from_shelves(&real(way), &stocked, circuit, &inputs, |_| BoundedStock::default()) {
            assert_eq!(outcome.expect("honest parties finish"), expected[0].to_blocks());
        }
    }
}

#[test]
fn all_parties_say_that_the_stock_is_dry() {
    for short in [
        [("unit vectors of 8 bits", 199), ("triples", 64)],
        [("unit vectors of 8 bits", 200), ("triples", 7)],
    ] {
        for outcome in one_aes(&short, |_| BoundedStock::default()) {
            assert!(matches!(outcome, Err(Error::OutOfMaterial { .. })), "{outcome:?}");
        }
    }
}

#[test]
fn items_of_another_length_are_an_error() {
    for cut in [1, 2089, usize::MAX] {
        let outcomes = one_aes(&ENOUGH, |_| BoundedStock { cut, ..BoundedStock::default() });
        for outcome in outcomes {
            assert!(matches!(outcome, Err(Error::System(_))), "{outcome:?}");
        }
    }
}

#[test]
fn a_party_with_other_items_than_the_rest_spoils_the_check_and_nothing_is_learnt() {
    for (kind, _) in ENOUGH {
        let shelf = |p: Party| BoundedStock {
            out_of_order: (p == Party(1)).then_some(kind),
            ..BoundedStock::default()
        };
        for outcome in one_aes(&ENOUGH, shelf) {
            assert!(matches!(outcome, Err(Error::CheckFailed { .. })), "{kind}: {outcome:?}");
        }
    }
}
