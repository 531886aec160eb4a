//! Tests that need the inner state of both parties: numbers that are never used twice, and invalid labels.

use parking_lot::Mutex;

use polyclave_cipher::{Builder, Cells, Circuit, Matrix, Table, compile};

use super::*;
use polyclave_protocol::Error;
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};

const CONFIG: GarbledConfig = of(Gates::Half);
const LANES: usize = 3;

const fn of(gates: Gates) -> GarbledConfig {
    GarbledConfig { gates, expansion: 4 }
}

/// x and y, and x and x: the second gate is one of a wire with itself.
fn circuit() -> Circuit {
    let mut b = Builder::new("gates");
    let and = b.table(&std::sync::Arc::new(Table::new("AND", 2, 1, vec![0, 0, 0, 1])));
    let (x, y) = (b.input("x", 1, 1)[0], b.input("y", 1, 1)[0]);
    let pair = b.linear(vec![(x, Matrix::place(2, 0)), (y, Matrix::place(2, 1))], 0);
    let twice = b.linear(vec![(x, Matrix::of(1, 2, |x| 3 * x))], 0);
    let outputs = [b.lookup(and, pair), b.lookup(and, twice)];
    b.output("z", &outputs);
    b.finish()
}

fn sessions(config: &GarbledConfig, net: &mut dyn Net) -> Result<(Setup, AgreedSession)> {
    let session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    Ok((config.setup(net)?, session))
}

/// What the evaluator was sent, message by message.
struct Heard<'a>(&'a mut dyn Net, &'a Mutex<Vec<Vec<u8>>>);

impl Net for Heard<'_> {
    polyclave_protocol::forward_net!(self => self.0; me, parties, send, exchange, fork);

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.0.recv(from, into)?;
        self.1.lock().push(into.to_vec());
        Ok(())
    }
}

/// The same labels through the same gates, again in the same stream and again in another one: no ciphertext
/// comes twice, and numbers go on where they were.
#[test]
fn no_tweak_serves_twice_over_calls_circuits_and_streams() {
    Gates::ALL.into_iter().for_each(no_tweak_serves_twice);
}

fn no_tweak_serves_twice(gates: Gates) {
    let config = of(gates);
    let heard = Mutex::new(Vec::new());
    let outcomes = run_parties(2, |net| {
        let (setup, mut session) = sessions(&config, net)?;
        let mut streams = [session.stream(), session.stream()].map(|s| config.join(&setup, s, net.members()));
        let compiled = compile(&circuit(), streams[0].as_ref().expect("both serve"));
        let cells = Cells::from_blocks(1, 1, &[0x80, 0, 0x80]).expect("three bits");
        // An output of the first is both inputs of all others, so these start from the same labels.
        let mut first = None;
        for stream in &mut streams {
            let protocol = stream.as_mut().map_err(|error| error.clone())?;
            for _ in 0..2 {
                let batch = prepare(protocol, &compiled, LANES, net)?;
                let net = &mut Heard(net, &heard);
                let taken = protocol.hash.taken();
                let given = match &first {
                    Some(shared) => [Input::Shared(shared), Input::Shared(shared)],
                    None => [Input::Public(&cells), Input::Public(&cells)],
                };
                let z = evaluate(protocol, &compiled, LANES, &given, batch, net)?.remove(0);
                assert_eq!(protocol.hash.taken(), taken + 2 * LANES as u64);
                let x = |shared: &Shared| Shared {
                    setup: shared.setup,
                    count: 1,
                    lanes: LANES,
                    labels: {
                        let mut labels = protocol.pool.take(LANES * 16);
                        labels.copy_from_slice(&shared.labels[..LANES * 16]);
                        labels
                    },
                };
                first = first.or(Some(x(&z)));
            }
        }
        Ok(())
    });
    assert_eq!(outcomes, [Ok(()), Ok(())]);
    let heard = heard.into_inner();
    assert_eq!(heard.len(), 4);
    // For each gate: the lanes' ciphertexts, and then control bits if it has any.
    let (size, count) = (config.gates.ciphertext_bytes(), config.gates.ciphertexts() as usize);
    let of_gates = heard.iter().flat_map(|message| message.chunks_exact(LANES * config.gates.bytes()));
    let ciphertexts = of_gates.flat_map(|gate| gate[..LANES * count * size].chunks_exact(size));
    let mut all: Vec<&[u8]> = ciphertexts.collect();
    assert_eq!(all.len(), 4 * 2 * LANES * count);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4 * 2 * LANES * count);
}

#[test]
fn a_label_that_is_none_of_its_wire_is_refused_by_whoever_decodes_it() {
    for to in [Owner::Party(GARBLER), Owner::Party(EVALUATOR), Owner::All] {
        for byte in [0, 5, 47] {
            let outcomes = run_parties(2, |net| {
                let (setup, mut session) = sessions(&CONFIG, net)?;
                let mut protocol = CONFIG.join(&setup, session.stream(), net.members())?;
                let mut labels = protocol.pool.take(3 * 16);
                // Active labels of zeros, and of a wire that stands for nothing.
                labels.fill(7);
                if net.me() == EVALUATOR {
                    labels[byte] ^= 4;
                }
                let shared = Shared { setup: protocol.setup, count: 3, lanes: 1, labels };
                protocol.reveal(&shared, to, net).map(|cells| cells.is_some())
            });
            for (outcome, party) in outcomes.into_iter().zip([GARBLER, EVALUATOR]) {
                match to == Owner::All || to == Owner::Party(party) {
                    true => assert!(matches!(outcome, Err(Error::Peer { .. })), "{outcome:?}"),
                    false => assert_eq!(outcome, Ok(false)),
                }
            }
        }
    }
}

#[test]
fn values_of_another_set_up_are_refused() {
    let outcomes = run_parties(2, |net| {
        let (setup, mut session) = sessions(&CONFIG, net)?;
        let mut protocol = CONFIG.join(&setup, session.stream(), net.members())?;
        let labels = protocol.pool.take(16);
        let mut shared = Shared { setup: protocol.setup, count: 1, lanes: 1, labels };
        shared.setup[0] ^= 1;
        assert!(matches!(protocol.reveal(&shared, Owner::All, net), Err(Error::Misuse(_))));
        Ok(())
    });
    assert_eq!(outcomes, [Ok(()), Ok(())]);
}
