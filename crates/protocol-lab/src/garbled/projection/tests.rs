//! Numbers of the hash: no number is used twice, whatever takes it.

use std::sync::Arc;

use polyclave_cipher::{Builder, Circuit, Compiled, Matrix, Table, compile};

use super::*;
use polyclave_protocol::Party;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};

const CONFIG: ProjectionConfig = ProjectionConfig { labels: Labels::Long, expansion: 4 };
const LANES: usize = 3;

/// A table with two images, of a cell that the evaluator gives, and an image of the cell.
fn circuit() -> Circuit {
    let mut b = Builder::new("views");
    let x = b.input("x", 2, 4);
    let table = b.table(&Arc::new(Table::new("s", 4, 4, (0..16).map(|x| x * 7 % 16).collect())));
    let s = b.lookup(table, x[0]);
    let turned = Matrix::of(4, 4, |x| (x << 1 | x >> 3) & 15);
    let y = [(s, x[1]), (x[1], s)].map(|(a, c)| b.linear(vec![(a, Matrix::identity(4)), (c, turned)], 5));
    b.output("y", &y);
    b.finish()
}

/// Numbers that one evaluation and its output take: of gates, and of cells that are opened.
fn taken(protocol: &mut Projected, compiled: &Compiled, net: &mut dyn Net) -> Result<[u64; 2]> {
    let mut x = Cells::zero(2, 4, LANES);
    x.rows_mut().copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    let input = if net.me() == Party(1) { Input::Mine(&x) } else { Input::From(Party(1)) };
    let (before, gates) = (protocol.hash.taken(), protocol.tally());
    let batch = prepare(protocol, compiled, LANES, net)?;
    let y = evaluate(protocol, compiled, LANES, &[input], batch, net)?.remove(0);
    let (after, spent) = (protocol.hash.taken(), protocol.tally() - gates);
    assert_eq!(after - before, spent.input.multiplications + spent.online.multiplications);
    release(protocol, &y, Owner::All, net)?;
    Ok([after - before, protocol.hash.taken() - after])
}

#[test]
fn gates_views_conversions_and_outputs_take_numbers_of_their_own_and_streams_roots() {
    let outcomes = run_parties(2, |net| {
        let mut session = hello(&CONFIG.handshake(HandshakeParameters::new(2)), net)?;
        let setup = CONFIG.setup(net)?;
        let mut seen = Vec::new();
        for _ in 0..2 {
            let mut protocol = CONFIG.join(&setup, session.stream(), net.members())?;
            let compiled = compile(&circuit(), &protocol);
            for _ in 0..2 {
                // Conversions of both cells' bits, an image of one, two of the table.
                assert_eq!(taken(&mut protocol, &compiled, net)?, [(8 + 1 + 2) * 3, 2 * 3]);
            }
            let mut label = [[7; 16]];
            let (hash, _) = protocol.hash.take(1);
            hash.hash(0, &mut label);
            seen.push(label[0]);
        }
        assert_ne!(seen[0], seen[1], "another stream has another root");
        Ok(seen)
    });
    assert!(outcomes[0].is_ok() && outcomes[0] == outcomes[1], "{outcomes:?}");
}

#[test]
fn a_setup_with_labels_of_another_length_is_refused() {
    let outcomes = run_parties(2, |net| {
        let mut session = hello(&CONFIG.handshake(HandshakeParameters::new(2)), net)?;
        let setup = CONFIG.setup(net)?;
        let short = ProjectionConfig { labels: Labels::Short, ..CONFIG };
        short.join(&setup, session.stream(), net.members()).map(|_| ())
    });
    assert!(outcomes.iter().all(|o| matches!(o, Err(polyclave_protocol::Error::Misuse(_)))), "{outcomes:?}");
}
