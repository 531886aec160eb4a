//! Silent transfers among honest parties, and with a sender or receiver that cheats in any message. All with
//! parameters that hide nothing, so that batches are small.

use std::time::Duration;

use super::*;
use crate::error::EARLIER_CHECK;
use crate::mesh::{mesh_with_timeout, run_parties};
use crate::ot::Shape;
use crate::testkit::tamper::{Fault, Tamper, Tampering};

const CHEATER: Party = Party(1);
/// Wide ones and narrow ones of each call: a batch has 4,096, so calls take from two.
const COUNTS: [usize; 2] = [1000, 2000];
const CALLS: usize = 3;
const TIMEOUT: Duration = Duration::from_millis(500);

fn delta(me: Party) -> u128 {
    0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128.rotate_left(8 * u32::from(me.0)) | 1
}

fn choices(me: Party, count: usize) -> Vec<u8> {
    (0..count.div_ceil(8)).map(|i| (i as u8).wrapping_mul(0x9d) ^ me.0).collect()
}

fn pairs(net: &mut dyn Net) -> Result<Pairs> {
    Pairs::setup(b"silent", delta(net.me()), Shape::new(128, 4)?, net)
}

/// Some calls on a fork, and their blocks: by call, wide and narrow.
fn transfers(pairs: &Pairs, label: &[u8], net: &mut dyn Net) -> Result<Vec<[Checked; 2]>> {
    let mut pairs = pairs.fork(label);
    let mut silent = Silent::with(Parameters::OF_TESTS, label, &pairs)?;
    let mut made = Vec::new();
    for _ in 0..CALLS {
        made.push(call(&mut silent, &mut pairs, net)?);
    }
    Ok(made)
}

fn call(silent: &mut Silent, pairs: &mut Pairs, net: &mut dyn Net) -> Result<[Checked; 2]> {
    let (me, n) = (net.me(), net.parties());
    let choices = COUNTS.map(|count| choices(me, count));
    let rows = choices.each_ref().map(|choices| {
        Party::all(n).map(|p| if p == me { &[][..] } else { &choices[..] }).collect::<Vec<_>>()
    });
    let wanted = |i: usize, columns| Wanted { choices: &rows[i], count: COUNTS[i], columns };
    silent.extend(pairs, [wanted(0, 128), wanted(1, 64)], net)
}

fn blocks(columns: &Columns) -> Vec<u128> {
    let mut blocks = vec![0; columns.len()];
    columns.write_blocks(0, &mut blocks).expect("from the beginning");
    blocks
}

/// Panics unless what a sender has fits what the receiver has.
fn assert_right(
    sender: Party,
    sent: &[[Checked; 2]],
    receiver: Party,
    received: &[[Checked; 2]],
    what: &str,
) {
    assert_eq!((sent.len(), received.len()), (CALLS, CALLS), "{what}");
    for (sent, received) in sent.iter().zip(received) {
        for (i, columns) in [128, 64].into_iter().enumerate() {
            let q = blocks(&sent[i].sent[receiver.index()]);
            let t = blocks(&received[i].received[sender.index()]);
            let choices = choices(receiver, COUNTS[i]);
            assert_eq!((q.len(), t.len()), (COUNTS[i], COUNTS[i]));
            for (j, (q, t)) in q.iter().zip(&t).enumerate() {
                let chosen = u128::from(choices[j / 8] >> (j % 8) & 1);
                let offset = chosen * (delta(sender) >> (128 - columns));
                assert_eq!(q ^ t, offset, "{what}: {columns} columns, transfer {j}");
            }
        }
    }
}

#[test]
fn transfers_have_their_choices_towards_every_peer_and_over_several_batches() {
    for n in [2, 3] {
        let made = run_parties(n, |net| transfers(&pairs(net)?, b"honest", net));
        let made: Vec<_> = made.into_iter().map(|made| made.expect("all are honest")).collect();
        for sender in Party::all(n) {
            for receiver in sender.peers(n) {
                let (sent, received) = (&made[sender.index()], &made[receiver.index()]);
                assert_right(sender, sent, receiver, received, &format!("of {n}"));
            }
        }
    }
}

/// Sums of narrow blocks, for words of bits, are those that their columns would give.
#[test]
fn words_are_the_sums_of_their_blocks() {
    let made = run_parties(2, |net| transfers(&pairs(net)?, b"words", net));
    let [_, narrow] = &made[0].as_ref().expect("both are honest")[0];
    let (columns, blocks) = (&narrow.sent[1], blocks(&narrow.sent[1]));
    for (at, width) in [(0, 2), (8, 8), (64, 64)] {
        let mut sums = [7, 9];
        columns.add_words(width, at, &mut sums).expect("they are there");
        for (i, (sum, first)) in sums.iter().zip([7, 9]).enumerate() {
            let blocks = &blocks[at + i * width..][..width];
            // Horner's rule, a bit at a time, with X^64 = X^4 + X^3 + X + 1.
            let times_x = |x: u64| (x << 1) ^ ((x >> 63) * 0b11011);
            let word = blocks.iter().rev().fold(0, |sum, block| times_x(sum) ^ *block as u64);
            assert_eq!(*sum, word ^ first, "width {width}");
        }
    }
}

/// Choices are hidden by those that a batch has, which are others in each call, each batch and each fork.
#[test]
fn differences_of_the_same_choices_are_others_each_time() {
    let sent = run_parties(2, |net| {
        let pairs = pairs(net)?;
        let mut sent = Vec::new();
        for label in [b"one", b"two"] {
            for [wide, _] in transfers(&pairs, label, net)? {
                sent.push(blocks(&wide.received[net.me().peers(2).next().expect("a peer").index()]));
            }
        }
        Ok(sent)
    });
    let sent = sent[0].as_ref().expect("both are honest");
    let chosen = choices(Party(0), COUNTS[0]);
    let differences: Vec<Vec<u8>> = sent.iter().map(|blocks| differences(blocks, &chosen)).collect();
    for (i, of_call) in differences.iter().enumerate() {
        let ones: u32 = of_call.iter().map(|byte| byte.count_ones()).sum();
        assert!((400..600).contains(&ones), "{ones} of 1,000");
        assert!(!differences[..i].contains(of_call));
    }
}

#[test]
fn a_session_makes_a_batch_once_it_has_asked_for_what_is_worth_one() {
    let serves = run_parties(2, |net| {
        let mut silent = Silent::with(Parameters::OF_TESTS, b"asked", &pairs(net)?)?;
        let most = Parameters::OF_TESTS.worth_a_batch();
        Ok([silent.serves(most - 1), silent.serves(1), silent.serves(1), silent.serves(1)])
    });
    assert_eq!(serves[0], Ok([false, false, true, true]));
}

#[test]
fn a_delta_with_the_lowest_bit_zero_and_parts_of_bytes_are_refused() {
    let outcomes = run_parties(2, |net| {
        let even = Pairs::setup(b"even", delta(net.me()) & !1, Shape::new(128, 4)?, net)?;
        let refused = matches!(Silent::new(b"even", &even), Err(Error::Misuse(_)));
        let (mut pairs, bits) = (pairs(net)?, [0; 2]);
        let mut silent = Silent::with(Parameters::OF_TESTS, b"parts", &pairs)?;
        let rows: Vec<&[u8]> = Party::all(2).map(|p| if p == net.me() { &[][..] } else { &bits }).collect();
        let wanted = |count, columns| [Wanted { choices: &rows, count, columns }];
        let parts = silent.extend(&mut pairs, wanted(9, 128), net).map(drop);
        let width = silent.extend(&mut pairs, wanted(16, 65), net).map(drop);
        Ok((refused, [parts, width].map(|outcome| matches!(outcome, Err(Error::Misuse(_))))))
    });
    assert_eq!(outcomes, [Ok((true, [true; 2])), Ok((true, [true; 2]))]);
}

/// A party's blocks, and whether its pairs still go on.
type Output = (Result<Vec<[Checked; 2]>>, bool);

/// Both parties with a fault in a message after the setup.
fn run(at: u64, fault: Fault) -> (Vec<Output>, Tampering) {
    let mut tampering = Tampering::default();
    let mut threads = Vec::new();
    for mut net in mesh_with_timeout(2, TIMEOUT) {
        let cheats = net.me() == CHEATER;
        let ready = std::thread::spawn(move || {
            let pairs = pairs(&mut net).expect("setup is honest");
            (net, pairs)
        });
        threads.push((cheats, ready));
    }
    let ready: Vec<_> =
        threads.into_iter().map(|(cheats, t)| (cheats, t.join().expect("no panic"))).collect();
    let mut threads = Vec::new();
    for (cheats, (net, pairs)) in ready {
        let mut net = Tamper::new(net, if cheats { at } else { u64::MAX }, fault);
        if cheats {
            tampering = net.tampering();
        }
        threads.push(std::thread::spawn(move || {
            let made = transfers(&pairs, b"faults", &mut net);
            (made, pairs.refuse_retired().is_ok())
        }));
    }
    (threads.into_iter().map(|t| t.join().expect("no panic")).collect(), tampering)
}

/// Whether the honest party accepted. Panics if it did and has wrong transfers, as sender or as receiver.
fn honest_accepts(outputs: &[Output], what: &str) -> bool {
    let Ok(honest) = &outputs[0].0 else { return false };
    let cheater = outputs[1].0.as_ref().expect("the cheater's own end went through");
    assert_right(Party(0), honest, CHEATER, cheater, what);
    assert_right(CHEATER, cheater, Party(0), honest, what);
    true
}

/// Extension and its check of a batch; trees; the coin; answer; hash; differences.
const OF_CALLS: u64 = 4 + 1 + 1 + 1 + 1 + 1;
/// The message with the trees, and those after it.
const TREES: u64 = 4;
const COIN: u64 = TREES + 1;
const ANSWER: u64 = COIN + 1;
const HASH_SENT: u64 = ANSWER + 1;
const DIFFERENCES: u64 = HASH_SENT + 1;

#[test]
fn no_fault_in_any_message_gives_wrong_transfers_or_hangs() {
    let flips = [0, 17, 100, 1000, usize::MAX / 2].map(|byte| Fault::FlipBit { byte, bit: byte as u32 });
    let others = [Fault::Drop, Fault::Truncate, Fault::Replay, Fault::Garbage { seed: 7 }];
    for at in 0..OF_CALLS + 2 {
        for fault in flips.iter().chain(&others) {
            let (outputs, tampering) = run(at, *fault);
            // A wrong difference is another choice of the cheater's, which it may make.
            if at == DIFFERENCES && matches!(fault, Fault::FlipBit { .. } | Fault::Garbage { .. }) {
                assert!(outputs[0].0.is_ok());
                continue;
            }
            let accepted = honest_accepts(&outputs, &format!("message {at}, {fault:?}"));
            let is_fault = !matches!(fault, Fault::FlipBit { .. });
            assert!(!(is_fault && tampering.fired() && accepted), "message {at}, {fault:?}");
        }
    }
}

/// Every correction of a tree, and everything that is sent in the check, is found to be wrong. The key is
/// given up.
#[test]
fn what_the_check_covers_is_found_and_retires_the_pairs() {
    let tree = 8 * 32 + 16;
    let mut places: Vec<(u64, usize)> = (0..16).map(|i| (TREES, i * tree + tree - 16 + i)).collect();
    places.extend([(COIN, 0), (COIN, 40), (HASH_SENT, 0), (HASH_SENT, 31)]);
    for (at, byte) in places {
        let (outputs, tampering) = run(at, Fault::FlipBit { byte, bit: 3 });
        assert!(tampering.fired());
        let (made, goes_on) = &outputs[0];
        assert!(made.is_err() && !goes_on, "message {at}, byte {byte}");
    }
}

/// Of the two sums of a level the receiver reads one: a fault in the other changes nothing, and which one it
/// is depends on its point. So about half of these faults are found, and the sender learns a bit each time.
#[test]
fn a_wrong_sum_is_found_if_it_is_on_the_side_that_the_receiver_reads() {
    let tree = 8 * 32 + 16;
    let found = (0..24).filter(|i| {
        let byte = (i % 16) * tree + (i % 8) * 32;
        let (outputs, _) = run(TREES, Fault::FlipBit { byte, bit: 0 });
        !honest_accepts(&outputs, &format!("tree {}, level {}", i % 16, i % 8))
    });
    let found = found.count();
    assert!((3..=21).contains(&found), "{found} of 24");
}

/// The receiver's wrong answer spoils the sender's hash, which the receiver alone compares.
#[test]
fn a_wrong_answer_of_a_receiver_harms_itself_alone() {
    let (outputs, _) = run(ANSWER, Fault::FlipBit { byte: 5, bit: 1 });
    assert!(outputs[1].0.is_err() && !outputs[1].1);
    assert!(outputs[0].1, "nothing was wrong for the honest party");
}

/// A setup that was given up makes nothing, in any fork.
#[test]
fn after_a_failed_check_no_fork_makes_anything() {
    let outcomes = run_parties(2, |net| {
        let pairs = pairs(net)?;
        pairs.retirement().retire();
        Ok(transfers(&pairs, b"fork", net).map(drop))
    });
    assert_eq!(outcomes[0], Ok(Err(Error::CheckFailed { what: EARLIER_CHECK })));
}
