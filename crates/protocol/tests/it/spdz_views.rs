//! What one party of authenticated sharing sees of the others: with the same key and block in many sessions,
//! every message of the inputs and every opening of the evaluation is uniform, exchange by exchange.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::lookups::{config, narrow, table_of};
use polyclave_cipher::{Cells, Circuit, compile};
use polyclave_field::Gf2_64;
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::LookupMethod;
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, run_over};
use polyclave_protocol_lab::testkit::record::{Direction, Message, Record, Transcript};

const SESSIONS: usize = 8;
const LANES: usize = 512;
/// Whose view it is.
const VIEWER: Party = Party(1);

/// One way of looking one table up, always of the same input, which is party 1's. By session the messages of
/// the viewer from input to the last lookup.
fn views(parties: usize, way: LookupMethod, circuit: &Circuit) -> Vec<Vec<Message>> {
    let session = |_| {
        let ends: Vec<_> = mesh_with_timeout(parties, LATE).into_iter().map(Record::new).collect();
        let transcript = ends[VIEWER.index()].transcript();
        let begins = Arc::new(Mutex::new(0));
        let (circuit, seen, mark) = (circuit.clone(), transcript.clone(), begins.clone());
        let outcomes = run_over(ends, move |net| one_session(way, &circuit, &seen, &mark, net));
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        let begins = *begins.lock();
        transcript.messages().split_off(begins)
    };
    (0..SESSIONS).map(session).collect()
}

fn one_session(
    way: LookupMethod,
    circuit: &Circuit,
    transcript: &Transcript,
    begins: &Mutex<usize>,
    net: &mut dyn Net,
) -> Result<()> {
    let config = config::<Gf2_64>(net.parties(), way);
    let mut session = hello(&config.handshake(HandshakeParameters::new(net.parties())), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(circuit, &protocol);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    if net.me() == VIEWER {
        *begins.lock() = transcript.messages().len();
    }
    let cells = circuit.inputs().iter().map(|port| {
        let mut cells = Cells::zero(port.cells.len(), port.bits, LANES);
        cells.rows_mut().fill(0x15);
        cells
    });
    let cells: Vec<_> = cells.collect();
    let own = |cells| if net.me() == Party(0) { Input::Mine(cells) } else { Input::From(Party(0)) };
    let inputs: Vec<_> = cells.iter().map(own).collect();
    evaluate(&mut protocol, &compiled, LANES, &inputs, batch, net)?;
    Ok(())
}

/// What happened in one exchange of a session, seen from the viewer.
struct Seen {
    /// What each other party said.
    heard: Vec<Vec<u8>>,
    /// The sum of all, if the viewer spoke too.
    opened: Option<Vec<u8>>,
}

/// The inputs came alone; in every exchange after them everybody spoke to everybody.
fn exchanges(parties: usize, messages: &[Message], inputs: usize) -> Vec<Seen> {
    let (inputs, openings) = messages.split_at(inputs);
    assert!(inputs.iter().all(|m| (m.direction, m.peer) == (Direction::Received, Party(0))));
    let input = |m: &Message| Seen { heard: vec![m.bytes.clone()], opened: None };
    let opening = |messages: &[Message]| {
        let (sent, heard) = messages.split_at(parties - 1);
        assert!(sent.iter().all(|m| m.direction == Direction::Sent && m.bytes == sent[0].bytes));
        assert!(heard.iter().all(|m| m.direction == Direction::Received));
        let heard: Vec<_> = heard.iter().map(|m| m.bytes.clone()).collect();
        let mut opened = sent[0].bytes.clone();
        heard.iter().for_each(|share| opened.iter_mut().zip(share).for_each(|(sum, x)| *sum ^= x));
        Seen { heard, opened: Some(opened) }
    };
    let openings = openings.chunks(2 * (parties - 1));
    inputs.iter().map(input).chain(openings.map(opening)).collect()
}

/// Chi-squared at `values` - 1 degrees of freedom, in standard deviations above its mean.
fn excess(bytes: &[u8], values: usize) -> f64 {
    let mut histogram = vec![0u32; values];
    assert!(bytes.len() > 3000, "{} bytes", bytes.len());
    bytes.iter().for_each(|b| histogram[usize::from(*b)] += 1);
    let expected = bytes.len() as f64 / values as f64;
    let chi_squared: f64 = histogram.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    let freedom = values as f64 - 1.0;
    (chi_squared - freedom) / (2.0 * freedom).sqrt()
}

const BOUND: f64 = 9.0;

/// How many values inputs have, and what is opened.
fn check_views(
    parties: usize,
    way: LookupMethod,
    circuit: &Circuit,
    rounds: usize,
    [of_input, of_opened]: [usize; 2],
) {
    let sessions = views(parties, way, circuit);
    let sessions: Vec<_> =
        sessions.iter().map(|messages| exchanges(parties, messages, circuit.inputs().len())).collect();
    for i in 0..circuit.inputs().len() + rounds {
        let all = |part: &dyn Fn(&Seen) -> Vec<u8>| -> Vec<u8> {
            sessions.iter().flat_map(|session| part(&session[i])).collect()
        };
        let is_input = sessions[0][i].opened.is_none();
        // A share of a cell is a whole byte; what is told of an input is a cell.
        for peer in 0..sessions[0][i].heard.len() {
            let heard = excess(&all(&|seen| seen.heard[peer].clone()), if is_input { of_input } else { 256 });
            assert!(heard < BOUND, "{way:?} of {parties}, exchange {i}, share {peer}: {heard}");
        }
        if !is_input {
            let opened = excess(&all(&|seen| seen.opened.clone().expect("opened")), of_opened);
            assert!(opened < BOUND, "{way:?} of {parties}, exchange {i}, opened: {opened}");
        }
    }
    assert!(sessions.iter().all(|session| session.len() == circuit.inputs().len() + rounds));
}

#[test]
fn masked_inputs_and_indices_are_uniform() {
    for parties in [2, 3] {
        check_views(parties, LookupMethod::MaskedTables, &narrow(6), 1, [64, 64]);
        check_views(parties, LookupMethod::MaskedTables, &table_of("aes-128"), 1, [256, 256]);
    }
}

#[test]
fn masked_factors_and_decomposed_cells_are_uniform() {
    for parties in [2, 3] {
        check_views(parties, LookupMethod::BitDecomposition, &table_of("aes-128"), 5, [256, 256]);
        check_views(parties, LookupMethod::RivainProuff, &table_of("aes-128"), 7, [256, 256]);
    }
}

/// The inputs are of 6 bits, what is opened of 8.
#[test]
fn masked_factors_of_polynomials_are_uniform() {
    for parties in [2, 3] {
        check_views(parties, LookupMethod::PulkusVivek, &table_of("des"), 5, [64, 256]);
    }
}
