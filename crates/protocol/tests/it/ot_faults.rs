//! Oblivious transfer with a party that cheats once, in any message: an error, or correct transfers.

use std::time::Duration;

use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Correlated, Pairs, Shape};
use polyclave_protocol::{EARLIER_CHECK, Error, Party, Result};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper, Tampering};

const COUNT: usize = 300;
const CHEATER: Party = Party(1);
/// Set-up twice, two extensions, three in the check.
const MESSAGES: u64 = 7;
const TIMEOUT: Duration = Duration::from_millis(500);

fn delta(me: Party) -> u128 {
    0x9e37_79b9_7f4a_7c15_u128.rotate_left(u32::from(me.0))
}

fn choices(me: Party) -> Vec<u8> {
    (0..COUNT.div_ceil(8) as u8).map(|i| i.wrapping_mul(0x9d) ^ me.0).collect()
}

/// What a party has after the check, and whether the check passed.
type Output = (u128, [Correlated; 2], Result<()>);

fn party(shape: Shape, net: &mut dyn Net) -> Result<Output> {
    let me = net.me();
    let mut pairs = Pairs::setup(b"label", delta(me), shape, net)?;
    let bits = choices(me);
    let row = |p: Party| if p == me { &[][..] } else { &bits[..] };
    let rows: Vec<&[u8]> = Party::all(2).map(row).collect();
    let both = [pairs.extend(&rows, COUNT, net)?, pairs.extend(&rows, COUNT, net)?];
    let checked = pairs.check(net);
    if checked.is_err() {
        let refused = matches!(
            pairs.extend(&rows, COUNT, net),
            Err(Error::Misuse(_) | Error::CheckFailed { what: EARLIER_CHECK })
        );
        assert!(refused, "after {checked:?}");
    }
    Ok((pairs.delta(), both, checked))
}

fn run(shape: Shape, at: u64, fault: Fault) -> (Vec<Result<Output>>, Tampering) {
    let mut tampering = Tampering::default();
    let mut threads = Vec::new();
    for net in mesh_with_timeout(2, TIMEOUT) {
        let cheats = net.me() == CHEATER;
        let mut net = Tamper::new(net, if cheats { at } else { u64::MAX }, fault);
        if cheats {
            tampering = net.tampering();
        }
        threads.push(std::thread::spawn(move || party(shape, &mut net)));
    }
    (threads.into_iter().map(|t| t.join().expect("no panic")).collect(), tampering)
}

/// Panics if the honest party accepted transfers that are not correlated. Returns whether it accepted.
fn honest_is_right(outputs: &[Result<Output>], what: &str) -> bool {
    let Ok((delta, honest, Ok(()))) = &outputs[0] else { return false };
    // A cheater that has not come as far as its own transfers cannot have made the other accept.
    let (_, cheater, _) = outputs[1].as_ref().expect("the cheater's end got through its extensions");
    let bits = choices(CHEATER);
    for (honest, cheater) in honest.iter().zip(cheater) {
        for j in 0..COUNT {
            let u = u128::from(bits[j / 8] >> (j % 8) & 1);
            assert_eq!(honest.sent[1][j], cheater.received[0][j] ^ (u * delta), "{what}, transfer {j}");
        }
    }
    true
}

#[test]
fn no_fault_in_any_message_gives_wrong_transfers_or_hangs() {
    let flips =
        [0, 3, 31, 32, 100, 1000, 2561, usize::MAX / 2].map(|byte| Fault::FlipBit { byte, bit: byte as u32 });
    let others = [Fault::Drop, Fault::Truncate, Fault::Replay, Fault::Garbage { seed: 7 }];
    for expansion in [1, 4] {
        let shape = Shape::new(40, expansion).expect("it is valid");
        let (mut found, mut fired) = (0, 0);
        for at in 0..MESSAGES {
            for fault in flips.iter().chain(&others) {
                let (outputs, tampering) = run(shape, at, *fault);
                let accepted = honest_is_right(&outputs, &format!("f {expansion}, message {at}, {fault:?}"));
                fired += u64::from(tampering.fired());
                found += u64::from(!accepted);
            }
        }
        // Wrong sums and corrections where this Delta does not look are without effect.
        assert!(found > fired / 2, "{found} of {fired} faults were found");
    }
}

#[test]
fn what_any_delta_sees_is_found() {
    let shape = Shape::new(40, 4).expect("it is valid");
    // A point, the last digest of the trees, an opening, hashes of columns and choices: nothing of it may be
    // wrong.
    for (at, byte) in [(0, 70), (1, 10), (1, usize::MAX), (5, 40), (6, 0), (6, 40 * 16 - 1)] {
        let byte = if byte == usize::MAX { 40 * 64 + 32 * 11 - 1 } else { byte };
        let (outputs, tampering) = run(shape, at, Fault::FlipBit { byte, bit: 1 });
        assert!(tampering.fired() && tampering.messages() >= at);
        assert!(!honest_is_right(&outputs, ""), "message {at}, byte {byte}");
    }
}

#[test]
fn a_silent_party_ends_in_a_time_out_that_names_it() {
    let shape = Shape::new(40, 4).expect("it is valid");
    for at in [0, 1, 2, 4, 6] {
        let (outputs, _) = run(shape, at, Fault::Drop);
        let error = match &outputs[0] {
            Ok((.., checked)) => checked.clone().err(),
            Err(e) => Some(e.clone()),
        };
        let named = matches!(
            error,
            Some(
                Error::Timeout { peer: CHEATER, .. }
                    | Error::Closed { peer: CHEATER, .. }
                    | Error::Unanswered { peer: CHEATER, .. }
                    | Error::Peer { peer: CHEATER, .. }
            )
        );
        assert!(named, "message {at}: {error:?}");
    }
}
