//! What a faulty network or party does to replicated sharing: errors, never a hang or a panic. (Right answers
//! are not promised: the protocol is passive.) And what a party sees: nothing that depends on the key.

use polyclave_cipher::{Cells, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::replicated::{Passive, ReplicatedConfig};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::testkit::faults::{LATE, Promise, Sweep};
use polyclave_protocol_lab::testkit::record::{Direction, Record};

/// Blocks in a session of which everything that is received is looked at.
const LANES: usize = 64;
/// Of a block of AES.
const ROUNDS: usize = 40;

fn config() -> ReplicatedConfig<Passive> {
    ReplicatedConfig::default()
}

/// Some blocks from hello to output, under a key of equal cells that party 1 gives; the output is for
/// party 2.
fn session(cipher: &str, key: u8, lanes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
    let mut session = hello(&config().handshake(HandshakeParameters::new(3)), net)?;
    let setup = config().setup(net)?;
    let mut protocol = config().join(&setup, session.stream(), net.members())?;
    let circuit = catalog::find(cipher).expect("the catalog has it").encrypt;
    let compiled = compile(&circuit, &protocol);
    let [block, keys] = [0, 1].map(|i| &circuit.inputs()[i]);
    let block = Cells::zero(block.cells.len(), block.bits, lanes);
    let mut round_keys = Cells::zero(keys.cells.len(), keys.bits, 1);
    round_keys.rows_mut().fill(key);
    let own = if net.me() == Party(0) { Input::Mine(&round_keys) } else { Input::From(Party(0)) };
    let batch = prepare(&mut protocol, &compiled, lanes, net)?;
    let inputs = [Input::Public(&block), own];
    let output = evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?.remove(0);
    let released = release(&mut protocol, &output, Owner::Party(Party(1)), net)?;
    Ok(released.map(|cells| cells.trust_all_parties().to_blocks()).unwrap_or_default())
}

#[test]
fn no_fault_in_any_message_hangs_or_panics() {
    for cipher in ["aes-128", "des"] {
        let sweep = Sweep { drop_every: 16, ..Sweep::new(3, Party(0), Promise::of(&config())) };
        let swept = sweep.run(move |net| session(cipher, 1, 3, net));
        assert!(swept.messages >= 40 && swept.faults > 3 * swept.messages, "{cipher}: {swept:?}");
    }
}

/// Every byte that a party receives between hello and output in some sessions, in order.
fn received(by: Party, key: u8) -> Vec<u8> {
    let sessions = (0..4).flat_map(|_| {
        let ends: Vec<_> = mesh_with_timeout(3, LATE).into_iter().map(Record::new).collect();
        let transcript = ends[by.index()].transcript();
        std::thread::scope(|scope| {
            ends.into_iter().for_each(|mut net| {
                scope.spawn(move || session("aes-128", key, LANES, &mut net).expect("honest parties finish"));
            });
        });
        let messages = transcript.messages().into_iter();
        let received = messages.filter(|message| message.direction == Direction::Received);
        // The products of rounds: those of 4, 2, 4 and 8 bits a lookup. What comes before has other lengths.
        let of_products = [2, 4, 8].map(|bits| 16 * bits * LANES / 8);
        let products = received.filter(|m| of_products.contains(&m.bytes.len())).take(ROUNDS);
        products.flat_map(|m| m.bytes).collect::<Vec<_>>()
    });
    sessions.collect()
}

/// Products are masked under a key that the receiver lacks, so under any key of the cipher each byte is
/// uniform.
#[test]
fn what_a_party_receives_is_uniform_whatever_the_key_is() {
    for party in Party::all(3) {
        for key in [0, 0x5a] {
            let bytes = received(party, key);
            assert_eq!(bytes.len(), 4 * 360 * LANES, "all rounds of all sessions");
            let mut histogram = [0f64; 256];
            bytes.iter().for_each(|byte| histogram[usize::from(*byte)] += 1.0);
            let expected = bytes.len() as f64 / 256.0;
            let chi_squared: f64 = histogram.iter().map(|count| (count - expected).powi(2) / expected).sum();
            // 255 degrees of freedom: mean 255, standard deviation 22.6. Eight deviations.
            assert!(chi_squared < 255.0 + 8.0 * 22.6, "{party} under {key}: {chi_squared}");
        }
    }
}
