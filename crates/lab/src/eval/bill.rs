//! What an evaluation took, as `eval` prints it. The parties share this process's memory, so all bytes are payload.

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
}

/// Of counts that only garbled circuits have.
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
        }
    }
}

/// All phases, as in the JSON document: those of the evaluation itself stand first, without a name.
#[derive(Serialize)]
pub struct Phases {
    #[serde(flatten)]
    online: Phase,
    preprocessing: Phase,
    sharing_the_input: Phase,
    revealing_the_output: Phase,
}

impl Phases {
    /// Of a bill.
    pub fn of(bill: Bill) -> Phases {
        Phases {
            online: Phase::of(bill.online),
            preprocessing: Phase::of(bill.preprocessing),
            sharing_the_input: Phase::of(bill.input),
            revealing_the_output: Phase::of(bill.output),
        }
    }
}

/// For people.
pub fn print(bill: Bill) {
    let Bill { preprocessing, input, online, output } = bill;
    say!(
        "{:<22}{:>8}{:>17}{:>10}{:>12}{:>27}",
        "",
        "rounds",
        "multiplications",
        "openings",
        "operations",
        "bytes of the busiest party"
    );
    let parts = [
        ("evaluation", online),
        ("preprocessing", preprocessing),
        ("sharing the input", input),
        ("revealing the output", output),
    ];
    for (part, Spent { counts, payload_bytes }) in parts {
        let operations = counts.operations();
        let (rounds, products, openings) = (counts.rounds, counts.multiplications, counts.openings);
        say!("{part:<22}{rounds:>8}{products:>17}{openings:>10}{operations:>12}{payload_bytes:>27}");
    }
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
