//! An evaluator of garbled circuits that cheats in one session of a setup, and then tries another session.

use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::{Builder, Cells, Matrix, Table, compile};
use polyclave_protocol::PartySet;
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::protocol::{Input, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol_lab::garbled::projection::{Labels, ProjectionConfig};
use polyclave_protocol_lab::garbled::{GarbledConfig, Gates};
use polyclave_protocol_lab::testkit::sessions::{CHEATER, none_is_checked_after_the_first_failure, sessions};

/// The attack: an evaluator that spoils one column of its transfers in each session learns a bit of Delta
/// from each. Now the garbler goes into no second one.
fn evaluator_spoils<S: ProtocolConfig + Sync>(config: &S)
where
    S::Setup: Sync,
{
    let ends = sessions(
        |net| {
            let session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            Ok((config.setup(net)?, Mutex::new(session)))
        },
        |(setup, session), _, net| {
            let stream = session.lock().stream();
            let mut protocol = config.join(setup, stream, PartySet::all(2))?;
            let mut b = Builder::new("gate");
            let and = b.table(&Arc::new(Table::new("AND", 2, 1, vec![0, 0, 0, 1])));
            let x = b.input("x", 2, 1);
            let pair = b.linear(vec![(x[0], Matrix::place(2, 0)), (x[1], Matrix::place(2, 1))], 0);
            let z = b.lookup(and, pair);
            b.output("z", &[z]);
            let compiled = compile(&b.finish(), &protocol);
            let lanes = 400;
            let x = Cells::zero(2, 1, lanes);
            let input = if net.me() == CHEATER { Input::Mine(&x) } else { Input::From(CHEATER) };
            let batch = prepare(&mut protocol, &compiled, lanes, net)?;
            evaluate(&mut protocol, &compiled, lanes, &[input], batch, net).map(drop)
        },
    );
    none_is_checked_after_the_first_failure(config.name(), &ends);
}

#[test]
fn an_evaluator_that_spoils_one_column_a_session_gets_no_second_session() {
    for gates in Gates::ALL {
        evaluator_spoils(&GarbledConfig { gates, expansion: 4 });
    }
    evaluator_spoils(&ProjectionConfig { labels: Labels::Long, expansion: 4 });
}
