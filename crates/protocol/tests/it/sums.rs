//! Circuits without lookups under `spdz`: every party computes them alone, without material. So nodes of a
//! standby pair compute round keys from what they store even if their stock is dry. (Under other protocols
//! that verify, parties compare or mask what goes into each circuit.)

use polyclave_cipher::{Builder, Cells, Circuit, Matrix, compile};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::catalog;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::Released;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};

/// Two bytes to their sum, and to one of them.
fn sum() -> Circuit {
    let mut b = Builder::new("a sum");
    let x = b.input("x", 2, 8);
    let sum = b.linear(vec![(x[0], Matrix::identity(8)), (x[1], Matrix::identity(8))], 0);
    b.output("y", &[sum, x[1]]);
    b.finish()
}

/// What a party sends for sums of public and of shared values, and the sums.
fn messages_for_sums(config: &AnyServiceConfig, net: impl Net + 'static) -> (u64, Vec<u8>) {
    let mut net = Metered::new(net);
    let meter = net.meter();
    let setup = config.setup(&mut net).expect("a setup");
    let setup = config.renew(&setup, &mut net).unwrap_or(setup);
    let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), &mut net)
        .expect("they want the same");
    let mut protocol = config.join(&setup, session.stream(), net.members()).expect("a session");
    let compiled = compile(&sum(), &protocol);
    let mut cells = Cells::zero(2, 8, 1);
    cells.rows_mut().copy_from_slice(&[0x53, 0xca]);
    let mut run = |input: Input<'_, _>| {
        let batch = prepare(&mut protocol, &compiled, 1, &mut net).expect("prepared");
        evaluate(&mut protocol, &compiled, 1, &[input], batch, &mut net).expect("computed").remove(0)
    };
    let before = meter.snapshot();
    let public = run(Input::Public(&cells));
    let shared = run(Input::Shared(&public));
    let sent = (meter.snapshot() - before).messages_sent;
    let released = release(&mut protocol, &shared, Owner::All, &mut net).expect("released");
    (sent, released.expect("to all").accept().to_blocks())
}

#[test]
fn no_party_sends_anything_for_sums_under_spdz() {
    for descriptor in catalog::serving().filter(|descriptor| descriptor.name.starts_with("spdz")) {
        let nodes = descriptor.usual_parties;
        let config = descriptor.service(nodes, descriptor.threshold.most(nodes)).expect("it serves");
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let party = |net| scope.spawn(|| messages_for_sums(&config, net));
            let parties: Vec<_> = mesh(nodes).into_iter().map(party).collect();
            parties.into_iter().map(|party| party.join().expect("no panic")).collect()
        });
        for outcome in outcomes {
            // Twice: what was added is gone again.
            assert_eq!(outcome, (0, vec![0x53, 0xca]), "{}", descriptor.name);
        }
    }
}
