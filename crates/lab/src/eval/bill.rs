//! The cost of an evaluation, as `eval` and `party` print it. Under `eval` the parties share this process's
//! memory, so all bytes are payload.

use serde::Serialize;

use super::parties::{Bill, Spent};
use crate::say;

/// One phase, as in the JSON document.
#[derive(Serialize)]
struct Phase {
    rounds: u64,
    openings: u64,
    multiplications: u64,
    operations: u64,
    #[serde(skip_serializing_if = "is_zero")]
    hash_calls: u64,
    #[serde(skip_serializing_if = "is_zero")]
    ciphertexts: u64,
    bytes: u64,
    payload_bytes: u64,
    #[serde(flatten)]
    measured: Option<Measured>,
}

/// What is known only to a party on its own machine.
#[derive(Serialize)]
struct Measured {
    bytes_received: u64,
    payload_bytes_received: u64,
    seconds: f64,
}

impl Measured {
    fn of(spent: Spent) -> Measured {
        Measured {
            bytes_received: spent.socket_bytes_received,
            payload_bytes_received: spent.payload_bytes_received,
            seconds: spent.time.as_secs_f64(),
        }
    }
}

/// Bytes and time, as in the JSON document.
#[derive(Serialize)]
pub struct Transfer {
    bytes: u64,
    payload_bytes: u64,
    #[serde(flatten)]
    measured: Measured,
}

impl Transfer {
    /// The costs of one party.
    pub fn of(spent: Spent) -> Transfer {
        let Spent { socket_bytes: bytes, payload_bytes, .. } = spent;
        Transfer { bytes, payload_bytes, measured: Measured::of(spent) }
    }
}

/// Counts that only garbled circuits have.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Phase {
    fn of(spent: Spent) -> Phase {
        Phase {
            rounds: spent.counts.rounds,
            openings: spent.counts.openings,
            multiplications: spent.counts.multiplications,
            operations: spent.counts.operations(),
            hash_calls: spent.counts.hash_calls,
            ciphertexts: spent.counts.ciphertexts,
            bytes: spent.payload_bytes,
            payload_bytes: spent.payload_bytes,
            measured: None,
        }
    }

    fn at_one_party(spent: Spent) -> Phase {
        Phase { bytes: spent.socket_bytes, measured: Some(Measured::of(spent)), ..Phase::of(spent) }
    }
}

/// All phases, as in the JSON document. Those of the evaluation itself come first, without a name.
#[derive(Serialize)]
pub struct Phases {
    #[serde(flatten)]
    online: Phase,
    preprocessing: Phase,
    sharing_the_input: Phase,
    revealing_the_output: Phase,
}

impl Phases {
    /// The document of a bill.
    pub fn of(bill: Bill) -> Phases {
        Phases::each(bill, Phase::of)
    }

    /// The document of one party's own bill, with its measurements: bytes at the sockets, and times.
    pub fn at_one_party(bill: Bill) -> Phases {
        Phases::each(bill, Phase::at_one_party)
    }

    fn each(bill: Bill, phase: impl Fn(Spent) -> Phase) -> Phases {
        Phases {
            online: phase(bill.online),
            preprocessing: phase(bill.preprocessing),
            sharing_the_input: phase(bill.input),
            revealing_the_output: phase(bill.output),
        }
    }
}

/// As text: what the parties counted, and the bytes of the busiest.
pub fn print(bill: Bill) {
    say!(
        "{:<22}{:>8}{:>17}{:>10}{:>12}{:>27}",
        "",
        "rounds",
        "multiplications",
        "openings",
        "operations",
        "bytes of the busiest party"
    );
    for (part, Spent { counts, payload_bytes, .. }) in parts(bill) {
        let operations = counts.operations();
        let (rounds, products, openings) = (counts.rounds, counts.multiplications, counts.openings);
        say!("{part:<22}{rounds:>8}{products:>17}{openings:>10}{operations:>12}{payload_bytes:>27}");
    }
    print_material(bill);
}

/// As text: what one party counted and measured.
pub fn print_at_one_party(bill: Bill) {
    say!(
        "{:<22}{:>8}{:>17}{:>10}{:>12}{:>14}{:>15}{:>12}",
        "",
        "rounds",
        "multiplications",
        "openings",
        "operations",
        "bytes sent",
        "received",
        "seconds"
    );
    for (part, spent) in parts(bill) {
        let counts = spent.counts;
        let (rounds, products, openings) = (counts.rounds, counts.multiplications, counts.openings);
        let (operations, seconds) = (counts.operations(), spent.time.as_secs_f64());
        let (sent, received) = (spent.socket_bytes, spent.socket_bytes_received);
        say!(
            "{part:<22}{rounds:>8}{products:>17}{openings:>10}{operations:>12}{sent:>14}{received:>15}{seconds:>12.4}"
        );
    }
    print_material(bill);
}

fn parts(bill: Bill) -> [(&'static str, Spent); 4] {
    [
        ("evaluation", bill.online),
        ("preprocessing", bill.preprocessing),
        ("sharing the input", bill.input),
        ("revealing the output", bill.output),
    ]
}

fn print_material(Bill { preprocessing, online, .. }: Bill) {
    if online.counts.ciphertexts > 0 {
        let (calls, ciphertexts) = (online.counts.hash_calls, online.counts.ciphertexts);
        say!("{ciphertexts} ciphertexts of gates, {calls} hashes of labels by the party that garbles");
    }
    let (triples, bits) = (preprocessing.counts.triples, preprocessing.counts.bits);
    if triples + bits > 0 {
        say!(
            "{triples} triples and {bits} random bits made; rounds and openings inside their making are not counted"
        );
    }
}
