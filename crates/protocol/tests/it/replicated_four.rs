//! Replicated sharing among four: right answers, with four parties and with three.

use polyclave_cipher::{Circuit, Direction, boolean, catalog};
use polyclave_protocol::replicated::ReplicatedFourConfig;
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};

/// Besides, four parties do it at once: a verdict takes two rounds of broadcast, and nothing is repeated
/// among three. (In a third exchange parties pass on what others may lack. Nobody waits for that.)
fn check(circuit: &Circuit, lanes: usize) -> Run {
    let run = check_circuit(&ReplicatedFourConfig, circuit, lanes, lanes as u8);
    let verdict = if run.cost.rounds > 0.0 { 2.0 } else { 0.0 };
    assert_eq!(run.tallies[0].online.rounds as f64, run.cost.rounds + verdict);
    run
}

fn with_key_schedule(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    cipher.circuit_with_key_schedule(direction).expect("it runs both ways")
}

#[test]
fn ciphers_are_right_in_both_directions_for_every_number_of_lanes() {
    for lanes in [1, 8, 9, 100] {
        for name in ["aes-128", "des", "present-80", "skinny-128-128"] {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                check(&with_key_schedule(name, direction), lanes);
            }
        }
    }
}

#[test]
fn circuits_of_bits_are_right() {
    check(&super::lookups::gates(), 9);
    check(&boolean::find("sha-256").expect("it is shipped"), 2);
}

/// One bit alone, and nothing to multiply.
#[test]
fn the_smallest_evaluations_are_right() {
    check(&boolean::find("comparator-64").expect("it is shipped"), 1);
    let mut b = polyclave_cipher::Builder::new("nothing");
    let x = b.input("x", 1, 8);
    b.output("y", &x);
    check(&b.finish(), 3);
}

/// What a further block adds, and the rounds: those of the levels, and three for the verdict.
#[test]
fn a_block_of_aes_sends_540_bytes_a_party_in_40_rounds() {
    let sent = |lanes| super::replicated::sent(&ReplicatedFourConfig, "aes-128", lanes);
    for (few, many) in sent(64).into_iter().zip(sent(128)) {
        assert_eq!(many.payload_sent - few.payload_sent, 540 * 64);
        assert_eq!((few.exchanges, many.exchanges), (40 + 3, 40 + 3));
    }
}
