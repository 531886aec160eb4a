//! Lanes of shared values as values of their own, under every protocol.

use polyclave_cipher::{Builder, Cells, Circuit, Matrix, compile, compile_with_views};
use polyclave_field::Gf2_64;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::{Checked, Released, Unverified};
use polyclave_protocol::replicated::{Passive, ReplicatedActiveConfig, ReplicatedConfig};
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Inversion, ShamirConfig, Structure, Tables};
use polyclave_protocol::spdz::{self, LookupMethod, Packing, SpdzConfig};
use polyclave_protocol::tinytable::{Macs, Preprocessing, ServedConfig, TinyTableConfig};
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::garbled::projection::{Labels, ProjectionConfig};
use polyclave_protocol_lab::lut::{LutConfig, Method};

const LANES: usize = 5;
const SELECTED: [usize; 4] = [4, 0, 4, 3];

/// `x`, one value a lane, and `y`, one for all, to their sum.
fn sum() -> Circuit {
    sum_of(3, 4)
}

/// The same of so many cells with so many bits.
fn sum_of(count: usize, bits: u8) -> Circuit {
    let mut b = Builder::new("sum");
    let (x, y) = (b.input("x", count, bits), b.uniform_input("y", count, bits));
    let sum = b.xor_each(&x, &y);
    b.output("sum", &sum);
    b.finish()
}

fn party<S: ProtocolConfig>(config: &S, x: &Cells, y: &Cells, net: &mut dyn Net) -> Result<Vec<Cells>> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(&sum(), &protocol);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let given = match net.me() {
        Party(0) => [Input::Mine(x), Input::Mine(y)],
        _ => [Input::From(Party(0)), Input::From(Party(0))],
    };
    let first = evaluate(&mut protocol, &compiled, LANES, &given, batch, net)?.remove(0);
    // Into the lanes of another evaluation, and a single one into a port that has one value for all lanes.
    let (selected, single) = (protocol.select_lanes(&first, &SELECTED), protocol.select_lanes(&first, &[1]));
    let batch = prepare(&mut protocol, &compiled, SELECTED.len(), net)?;
    let inputs = [Input::Shared(&selected), Input::Shared(&single)];
    let second = evaluate(&mut protocol, &compiled, SELECTED.len(), &inputs, batch, net)?.remove(0);
    [&selected, &second]
        .into_iter()
        .map(|shared| {
            let released = release(&mut protocol, shared, Owner::All, net)?;
            Ok(released.ok_or_else(|| Error::misuse("an output for all did not come"))?.accept())
        })
        .collect()
}

fn check(config: &impl ProtocolConfig) {
    let mut x = Cells::zero(3, 4, LANES);
    x.rows_mut().iter_mut().enumerate().for_each(|(i, cell)| *cell = (7 * i % 16) as u8);
    let mut y = Cells::zero(3, 4, 1);
    y.rows_mut().copy_from_slice(&[9, 4, 15]);
    let first = |cell: usize, lane: usize| x.row(cell)[lane] ^ y.row(cell)[0];
    for outcome in run_parties(config.parties(), |net| party(config, &x, &y, net)) {
        let outputs = outcome.expect("honest parties finish");
        for cell in 0..3 {
            let selected = SELECTED.map(|lane| first(cell, lane));
            assert_eq!(outputs[0].row(cell), selected, "{}", config.name());
            assert_eq!(outputs[1].row(cell), selected.map(|x| x ^ first(cell, 1)), "{}", config.name());
        }
    }
}

#[test]
fn selected_lanes_are_values_and_inputs_in_the_order_named() {
    for labels in [Labels::Long, Labels::Short] {
        check(&ProjectionConfig { labels, expansion: 4 });
    }
    for method in Method::ALL {
        check(&LutConfig { method, expansion: 4 });
    }
    let structure = Structure::new(3, 1).expect("valid");
    check(&ShamirConfig { structure, inversion: Inversion::CarriedSquares, tables: Tables::Masked });
    check(&ReplicatedConfig::<Passive>::default());
    check(&ReplicatedActiveConfig::default());
    let packing = Packing::of::<Gf2_64>(64).expect("valid");
    let dealer = spdz::Preprocessing::Dealt(&InsecureDealing);
    check(&SpdzConfig::<Gf2_64>::new(3, LookupMethod::MaskedTables, dealer, packing).expect("valid"));
    check(&ServedConfig::new(dealer).expect("valid"));
    let dealer = Preprocessing::Dealt(&InsecureDealing);
    check(&TinyTableConfig::<Unverified<Cells>>::new(Macs::None, dealer).expect("passive"));
    for macs in [Macs::Lookup64, Macs::Linear64] {
        check(&TinyTableConfig::<Checked<Cells>>::new(macs, dealer).expect("active"));
    }
}

/// What one evaluation of all lanes gives, two of some of them give together; and the whole is an input as
/// any other.
fn party_in_pieces<S: ServiceConfig>(
    config: &S,
    x: &Cells,
    y: &Cells,
    net: &mut dyn Net,
) -> Result<Vec<Cells>> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(&sum(), &protocol);
    let mut parts = Vec::new();
    for lanes in [0..2, 2..LANES] {
        let x = x.part(lanes);
        let batch = prepare(&mut protocol, &compiled, x.lanes(), net)?;
        let inputs = [Input::Public(&x), Input::Public(y)];
        parts.push(evaluate(&mut protocol, &compiled, x.lanes(), &inputs, batch, net)?.remove(0));
    }
    assert!(protocol.can_join(&parts[0], &parts[1]), "{}", config.name());
    for (count, bits) in [(2, 4), (3, 8), (6, 2)] {
        let other = compile(&sum_of(count, bits), &protocol);
        let (x, y) = (Cells::zero(count, bits, LANES), Cells::zero(count, bits, 1));
        let batch = prepare(&mut protocol, &other, LANES, net)?;
        let inputs = [Input::Public(&x), Input::Public(&y)];
        let other = evaluate(&mut protocol, &other, LANES, &inputs, batch, net)?.remove(0);
        assert!(!protocol.can_join(&parts[1], &other), "{}: {count} cells of {bits} bits", config.name());
    }
    let joined = protocol.join_lanes(&parts.iter().collect::<Vec<_>>());
    // Values of one length with other images of their cells, where values have any.
    let images: [fn(u8) -> u8; 2] = [|x| x << 1 & 15, |x| x << 1 & 15 | x >> 3];
    let mut with_images = Vec::new();
    for image in images {
        let views = [Matrix::identity(4), Matrix::of(4, 4, image)];
        let compiled = compile_with_views(&sum(), &protocol, |_| views.to_vec());
        let batch = prepare(&mut protocol, &compiled, LANES, net)?;
        let inputs = [Input::Public(x), Input::Public(y)];
        with_images.push(evaluate(&mut protocol, &compiled, LANES, &inputs, batch, net)?.remove(0));
    }
    let [plain, a, b] = [&joined, &with_images[0], &with_images[1]].map(|value| protocol.save(value).len());
    assert!(a == b && a >= plain, "{}", config.name());
    assert_eq!(protocol.can_join(&with_images[0], &with_images[1]), a == plain, "{}", config.name());
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let inputs = [Input::Shared(&joined), Input::Public(y)];
    let twice = evaluate(&mut protocol, &compiled, LANES, &inputs, batch, net)?.remove(0);
    [&joined, &twice]
        .into_iter()
        .map(|shared| {
            let released = release(&mut protocol, shared, Owner::All, net)?;
            Ok(released.ok_or_else(|| Error::misuse("an output for all did not come"))?.accept())
        })
        .collect()
}

fn check_in_pieces(config: &impl ServiceConfig) {
    let mut x = Cells::zero(3, 4, LANES);
    x.rows_mut().iter_mut().enumerate().for_each(|(i, cell)| *cell = (7 * i % 16) as u8);
    let mut y = Cells::zero(3, 4, 1);
    y.rows_mut().copy_from_slice(&[9, 4, 15]);
    for outcome in run_parties(config.parties(), |net| party_in_pieces(config, &x, &y, net)) {
        let outputs = outcome.expect("honest parties finish");
        assert!(outputs[1] == x, "{}: y was added twice", config.name());
        for cell in 0..3 {
            let expected: Vec<u8> = x.row(cell).iter().map(|x| x ^ y.row(cell)[0]).collect();
            assert_eq!(outputs[0].row(cell), expected, "{}", config.name());
        }
    }
}

#[test]
fn lanes_of_pieces_are_one_value_under_every_protocol_that_serves() {
    let structure = Structure::new(3, 1).expect("valid");
    let (inversion, tables) = (Inversion::CarriedSquares, Tables::ByLanes);
    check_in_pieces(&ShamirConfig { structure, inversion, tables });
    let packing = Packing::of::<Gf2_64>(64).expect("valid");
    let dealer = spdz::Preprocessing::Dealt(&InsecureDealing);
    check_in_pieces(
        &SpdzConfig::<Gf2_64>::new(3, LookupMethod::MaskedTables, dealer, packing).expect("valid"),
    );
    check_in_pieces(&ServedConfig::new(dealer).expect("valid"));
}
