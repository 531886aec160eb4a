//! What a faulty network or party does to OP-LUT and SP-LUT: errors, never a hang or a panic. (Right answers
//! are not promised: the protocols are passive.) And what a party sees: nothing that depends on the inputs.

use polyclave_cipher::{Cells, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::lut::{LutConfig, Method};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, Sweep};
use polyclave_protocol_lab::testkit::record::{Direction, Record};

use super::lookups::{narrow, table_of};

fn config(method: Method) -> LutConfig {
    LutConfig { method, expansion: 8 }
}

/// Lookups from hello to output, of one byte x from party 1 and one k from party 2 in all lanes; the output
/// is for party 2.
fn session(method: Method, in_bits: u8, x: u8, lanes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
    let config = config(method);
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let setup = config.setup(net)?;
    let mut protocol = config.join(&setup, session.stream(), net.members())?;
    let circuit = if in_bits == 8 { table_of("aes-128") } else { narrow(in_bits) };
    let compiled = compile(&circuit, &protocol);
    let mut cells = Cells::zero(1, in_bits, lanes);
    cells.rows_mut().fill(x);
    let (mine, theirs) = (net.me(), Party(1 - net.me().0));
    let given = |by: u8| if mine == Party(by) { Input::Mine(&cells) } else { Input::From(theirs) };
    let batch = prepare(&mut protocol, &compiled, lanes, net)?;
    let output = evaluate(&mut protocol, &compiled, lanes, &[given(0), given(1)], batch, net)?.remove(0);
    let released = release(&mut protocol, &output, Owner::Party(Party(1)), net)?;
    Ok(released.map(|cells| cells.trust_all_parties().to_blocks()).unwrap_or_default())
}

#[test]
fn no_fault_in_any_message_hangs_or_panics() {
    for method in Method::ALL {
        for cheater in [Party(0), Party(1)] {
            let sweep = Sweep { drop_every: 8, ..Sweep::new(2, cheater, Promise::of(&config(method))) };
            let swept = sweep.run(move |net| session(method, 4, 9, 3, net));
            assert!(swept.messages >= 8 && swept.faults > 3 * swept.messages, "{method:?}: {swept:?}");
        }
    }
}

/// Lanes of a session of which everything that is received is looked at.
const LANES: usize = 60;

/// Every byte that a party receives of lookups, ahead and online, in some sessions: messages that have the
/// lengths of `of_lookups`.
fn received(method: Method, by: Party, x: u8, of_lookups: &[usize]) -> Vec<u8> {
    let sessions = (0..4).flat_map(|_| {
        let ends: Vec<_> = mesh_with_timeout(2, LATE).into_iter().map(Record::new).collect();
        let transcript = ends[by.index()].transcript();
        std::thread::scope(|scope| {
            ends.into_iter().for_each(|mut net| {
                scope.spawn(move || session(method, 8, x, LANES, &mut net).expect("honest parties finish"));
            });
        });
        let messages = transcript.messages().into_iter();
        let received = messages.filter(|message| message.direction == Direction::Received);
        received.filter(|m| of_lookups.contains(&m.bytes.len())).flat_map(|m| m.bytes).collect::<Vec<_>>()
    });
    sessions.collect()
}

/// Tables are hidden under messages that the receiver lacks, and places under what nobody else has. The two
/// give the same x in all lanes, so what is looked up is 0 in every lane, and a table that lay bare would
/// show.
#[test]
fn what_a_party_receives_is_uniform_whatever_the_input_is() {
    const TABLE: usize = 256;
    let half = LANES / 2;
    // Of OP-LUT: pieces of 16 cells and what is left, each cell with as many tables as entries; then the
    // places of all cells. An output for party 2 has the same length. Of SP-LUT: the tables.
    let (piece, rest) = (16 * TABLE * TABLE, (half - 16) * TABLE * TABLE);
    for (method, lengths, due) in [
        (Method::Op, vec![piece, rest, LANES], [piece + rest + LANES, piece + rest + 2 * LANES]),
        (Method::Sp, vec![half * TABLE], [half * TABLE; 2]),
    ] {
        for party in [Party(0), Party(1)] {
            for x in [0, 0x5a] {
                let bytes = received(method, party, x, &lengths);
                assert_eq!(bytes.len(), 4 * due[party.index()], "all messages of all sessions");
                let mut histogram = [0f64; 256];
                bytes.iter().for_each(|byte| histogram[usize::from(*byte)] += 1.0);
                let expected = bytes.len() as f64 / 256.0;
                let chi_squared: f64 =
                    histogram.iter().map(|count| (count - expected).powi(2) / expected).sum();
                // 255 degrees of freedom: mean 255, standard deviation 22.6. Eight deviations.
                assert!(chi_squared < 255.0 + 8.0 * 22.6, "{method:?}, {party} under {x}: {chi_squared}");
            }
        }
    }
}
