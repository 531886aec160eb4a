//! Transfers that are extended and checked in one call, wide and narrow ones together: what comes out, what
//! it costs, and a party that cheats once.

use std::time::Duration;

use polyclave_protocol::mesh::{mesh, mesh_with_timeout, run_members, run_parties};
use polyclave_protocol::metered::{Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Batch, Checked, Columns, Pairs, Shape, extend_checked};
use polyclave_protocol::{EARLIER_CHECK, Error, Party, PartySet, Result};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper, Tampering};

const LABEL: &[u8] = b"a label of a session";
const CHEATER: Party = Party(1);
const TIMEOUT: Duration = Duration::from_millis(500);

/// A different Delta for each party, with ones and zeros in every tree.
fn delta(me: Party) -> u128 {
    0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834_u128.rotate_left(u32::from(me.0) * 7)
}

/// Bits without a pattern, other ones for each pair of parties and batch.
fn choices(me: Party, peer: Party, batch: u8, count: usize) -> Vec<u8> {
    let mut bits = vec![0; count.div_ceil(8)];
    blake3::Hasher::new().update(&[me.0, peer.0, batch]).finalize_xof().fill(&mut bits);
    bits
}

/// The choices of a party from all members.
fn all_choices(net: &dyn Net, batch: u8, count: usize) -> Vec<Vec<u8>> {
    let is_peer = |p: Party| p != net.me() && net.members().contains(p);
    Party::all(net.parties())
        .map(|p| if is_peer(p) { choices(net.me(), p, batch, count) } else { Vec::new() })
        .collect()
}

/// 128 columns and, of another fork, the upper 64.
struct Both {
    wide: Pairs,
    narrow: Pairs,
}

impl Both {
    fn setup(expansion: usize, net: &mut dyn Net) -> Result<Both> {
        let wide = Pairs::setup(LABEL, delta(net.me()), Shape::new(128, expansion)?, net)?;
        let narrow = wide.fork_upper(b"narrow")?;
        Ok(Both { wide, narrow })
    }

    fn extend(&mut self, counts: [usize; 2], net: &mut dyn Net) -> Result<[Checked; 2]> {
        let [wide, narrow] = [0, 1].map(|batch| all_choices(net, batch, counts[usize::from(batch)]));
        let [wide, narrow] = [&wide, &narrow].map(|rows| rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let batches = [
            Batch { pairs: &mut self.wide, choices: &wide, count: counts[0] },
            Batch { pairs: &mut self.narrow, choices: &narrow, count: counts[1] },
        ];
        extend_checked(batches, net)
    }
}

/// All blocks, written in pieces of this many.
fn blocks(columns: &Columns, narrow: bool, piece: usize) -> Vec<u128> {
    let mut all = Vec::new();
    for at in (0..columns.len()).step_by(piece) {
        let len = piece.min(columns.len() - at);
        if narrow {
            let mut words = vec![0_u64; len];
            columns.write_blocks(at, &mut words).expect("they are there");
            all.extend(words.into_iter().map(u128::from));
        } else {
            let mut blocks = vec![0_u128; len];
            columns.write_blocks(at, &mut blocks).expect("they are there");
            all.extend(blocks);
        }
    }
    all
}

/// Panics unless `q = t ^ u delta` in all transfers from one party to another.
fn assert_correlated(
    batch: u8,
    [sender, receiver]: [Party; 2],
    sent: &Columns,
    received: &Columns,
    piece: usize,
) {
    let [q, t] = [sent, received].map(|columns| blocks(columns, batch == 1, piece));
    assert_eq!(q.len(), t.len());
    let bits = choices(receiver, sender, batch, q.len());
    let delta = delta(sender) >> (64 * batch);
    for (j, (q, t)) in q.iter().zip(&t).enumerate() {
        let u = u128::from(bits[j / 8] >> (j % 8) & 1);
        assert_eq!(*q, t ^ (u * delta), "batch {batch}, {sender} to {receiver}, transfer {j}");
    }
}

#[test]
fn blocks_that_are_not_there_and_words_of_another_width_are_refused() {
    let outcomes = run_parties(2, |net| {
        let [wide, narrow] = Both::setup(2, net)?.extend([104, 104], net)?;
        let (me, peer) = (net.me().index(), 1 - net.me().index());
        assert!(wide.sent[me].is_empty() && !wide.sent[peer].is_empty());
        let (wide, narrow) = (&wide.sent[peer], &narrow.sent[peer]);
        for (at, len, is_there) in
            [(0, 104, true), (96, 8, true), (104, 0, true), (96, 9, false), (112, 0, false), (4, 8, false)]
        {
            assert_eq!(wide.write_blocks(at, &mut vec![0_u128; len]).is_ok(), is_there, "{len} at {at}");
        }
        // Fewer columns than a word has bits, and more.
        narrow.write_blocks(0, &mut [0_u128; 8])?;
        wide.write_blocks(0, &mut [0_u64; 8]).expect_err("128 columns in 64 bits");
        narrow.add_words(8, 0, &mut [0; 13])?;
        narrow.add_words(8, 0, &mut [0; 14]).expect_err("they are not there");
        narrow.add_words(16, 16, &mut [0])?;
        narrow.add_words(16, 8, &mut [0]).expect_err("it is no multiple of the width");
        for width in [1, 3, 128] {
            narrow.add_words(width, 0, &mut []).expect_err("no such width");
        }
        wide.add_words(8, 0, &mut [0]).expect_err("words have 64 columns");
        Ok(())
    });
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

#[test]
fn wide_and_narrow_transfers_of_all_pairs_are_correlated() {
    for (members, expansion, counts, piece) in [
        (PartySet::all(2), 4, [20_000, 9000], 1000),
        (PartySet::all(2), 8, [8192, 0], 8192),
        (PartySet::all(2), 1, [0, 16_384], 2048),
        (PartySet::from_bits(0b1011), 2, [300, 8193], 40),
    ] {
        let run = run_members(4, members, |net| {
            let mut both = Both::setup(expansion, net)?;
            // What is not checked yet is checked along, and its memory comes back.
            let rows = all_choices(net, 7, 10_000);
            let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
            both.wide.extend(&rows, 10_000, net)?;
            drop(both.extend(counts, net)?);
            Ok((net.me(), both.extend(counts, net)?))
        });
        let run: Vec<_> = run.into_iter().map(|party| party.expect("honest parties finish")).collect();
        for (sender, of_sender) in &run {
            for batch in [0, 1] {
                let of_sender = &of_sender[usize::from(batch)];
                assert!(of_sender.sent[sender.index()].is_empty());
                for (receiver, of_receiver) in run.iter().filter(|(p, _)| p != sender) {
                    let sent = &of_sender.sent[receiver.index()];
                    let received = &of_receiver[usize::from(batch)].received[sender.index()];
                    assert_eq!(sent.len(), counts[usize::from(batch)]);
                    assert_correlated(batch, [*sender, *receiver], sent, received, piece);
                }
            }
        }
    }
}

#[test]
fn both_batches_cost_three_rounds_together() {
    let counts = [1 << 14, 1 << 13];
    let threads = mesh(2).into_iter().map(Metered::new).map(|mut net| {
        std::thread::spawn(move || -> Result<Traffic> {
            let mut both = Both::setup(4, &mut net)?;
            let meter = net.meter();
            let before = meter.snapshot();
            both.extend(counts, &mut net)?;
            Ok(meter.snapshot() - before)
        })
    });
    let threads: Vec<_> = threads.collect();
    for thread in threads {
        let masks = 16 * (32 + 16);
        let corrections = counts[0] / 8 * 32 + counts[1] / 8 * 16;
        let payload = (masks + corrections + 32 + 96 + 16 * (129 + 65)) as u64;
        let expected =
            Traffic { payload_sent: payload, payload_received: payload, messages_sent: 3, exchanges: 3 };
        assert_eq!(thread.join().expect("no panic").expect("honest"), expected);
    }
}

#[test]
fn the_upper_fork_has_the_upper_half_of_delta() {
    let run = run_parties(2, |net| {
        for expansion in [1, 2, 4, 5, 6, 8] {
            let both = Both::setup(expansion, net)?;
            assert_eq!(both.narrow.delta(), delta(net.me()) >> 64);
            assert_eq!(both.narrow.shape(), Shape::new(64, expansion)?);
            // The lower columns of these are gone, and a fork of a fork is none of its own upper half.
            assert!(matches!(both.narrow.fork_upper(b"again"), Err(Error::Misuse(_))));
            assert_eq!(both.narrow.fork(b"again").delta(), delta(net.me()) >> 64);
        }
        // A tree in both halves, or fewer columns.
        for (columns, expansion) in [(128, 3), (128, 7), (126, 3), (126, 6), (64, 4), (120, 4), (40, 8)] {
            let pairs = Pairs::setup(LABEL, delta(net.me()), Shape::new(columns, expansion)?, net)?;
            assert!(matches!(pairs.fork_upper(b"upper"), Err(Error::Misuse(_))), "{columns} {expansion}");
        }
        Ok(())
    });
    assert_eq!(run, [Ok(()), Ok(())]);
}

#[test]
fn what_cannot_be_is_misuse() {
    let run = run_parties(2, |net| {
        let peer = 1 - net.me().index();
        let mut both = Both::setup(4, net)?;
        let rows = all_choices(net, 0, 9);
        let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        assert!(matches!(both.wide.extend_checked(&rows, 17, net), Err(Error::Misuse(_))));
        let made = both.wide.extend_checked(&rows, 9, net)?;
        let columns = &made.sent[peer];
        assert_eq!(columns.write_blocks(8, &mut [0_u128; 1]), Ok(()));
        for (at, len) in [(1, 1), (0, 10), (8, 2), (16, 0)] {
            let refused = columns.write_blocks(at, &mut vec![0_u128; len]);
            assert!(matches!(refused, Err(Error::Misuse(_))), "{at} {len}");
        }
        assert!(matches!(columns.write_blocks(0, &mut [0_u64; 1]), Err(Error::Misuse(_))));
        Ok(())
    });
    assert_eq!(run, [Ok(()), Ok(())]);
}

/// What an honest party has in the end: the transfers, or an error, after which it was asked once more.
type Output = Result<[Checked; 2]>;

const COUNTS: [usize; 2] = [300, 200];

fn party(net: &mut dyn Net) -> Output {
    let mut both = Both::setup(4, net)?;
    let sibling = both.wide.fork(b"sibling");
    let made = both.extend(COUNTS, net);
    if let Err(e) = &made {
        let again = both.extend(COUNTS, net).map(drop).expect_err("it has failed before");
        let refused = matches!(again, Error::Misuse(_) | Error::CheckFailed { what: EARLIER_CHECK });
        assert!(refused, "{again:?} after {e:?}");
        // A wrong guess ends every fork of the setup.
        let mut sibling = sibling;
        let rows = all_choices(net, 0, 8);
        let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        if e.may_be_a_wrong_guess() {
            let refused = sibling.extend(&rows, 8, net).err();
            assert_eq!(refused, Some(Error::CheckFailed { what: EARLIER_CHECK }), "after {e:?}");
        }
    }
    made
}

fn run(at: u64, fault: Fault) -> (Vec<Output>, Tampering) {
    let mut tampering = Tampering::default();
    let mut threads = Vec::new();
    for net in mesh_with_timeout(2, TIMEOUT) {
        let cheats = net.me() == CHEATER;
        let mut net = Tamper::new(net, if cheats { at } else { u64::MAX }, fault);
        if cheats {
            tampering = net.tampering();
        }
        threads.push(std::thread::spawn(move || party(&mut net)));
    }
    (threads.into_iter().map(|t| t.join().expect("no panic")).collect(), tampering)
}

/// Setup sends messages 0 and 1, then come corrections with the commitment, the opening, and the answers.
#[test]
fn no_fault_in_any_message_gives_wrong_transfers_or_hangs() {
    let bytes = [0, 600, 2200, usize::MAX / 2];
    let flips = bytes.map(|byte| Fault::FlipBit { byte, bit: byte as u32 });
    let others = [Fault::Drop, Fault::Truncate, Fault::Replay, Fault::Garbage { seed: 7 }];
    let (mut found, mut fired) = (0, 0);
    for at in 2..5 {
        for fault in flips.iter().chain(&others) {
            let (outputs, tampering) = run(at, *fault);
            fired += u64::from(tampering.fired());
            let Ok(honest) = &outputs[0] else {
                found += 1;
                continue;
            };
            // The peer's blocks are known only if it finished as well.
            let Ok(cheater) = &outputs[1] else { continue };
            for (batch, (honest, cheater)) in (0..).zip(honest.iter().zip(cheater)) {
                assert_correlated(batch, [Party(0), CHEATER], &honest.sent[1], &cheater.received[0], 1000);
            }
        }
    }
    // Corrections where this Delta does not look are without effect.
    assert!(found > fired / 2, "{found} of {fired} faults were found");
}

/// The narrow columns end the message of corrections, in front of the commitment; the answers of the wide
/// ones come first.
#[test]
fn a_failed_check_in_either_batch_retires_all_forks() {
    let wide_answers = 16 * 129;
    for byte in [0, wide_answers - 1, wide_answers, wide_answers + 16 * 65 - 1] {
        let (outputs, tampering) = run(4, Fault::FlipBit { byte, bit: 1 });
        assert!(tampering.fired());
        // `party` has asked a fork.
        let named = matches!(outputs[0], Err(Error::Peer { peer: CHEATER, .. }));
        assert!(named, "byte {byte}: {:?}", outputs[0].as_ref().err());
    }
}

/// Before the openings a silent peer has seen no coins; afterwards it may have chosen among them.
#[test]
fn silence_is_a_failed_check_only_once_coins_may_be_known() {
    for (at, retires) in [(2, false), (3, true), (4, true)] {
        let (outputs, _) = run(at, Fault::Stall(3 * TIMEOUT));
        let error = outputs[0].as_ref().err().expect("the peer is silent");
        assert_eq!(error.may_be_a_wrong_guess(), retires, "message {at}: {error:?}");
        assert_eq!(matches!(error, Error::Unanswered { peer: CHEATER, .. }), retires, "{at}: {error:?}");
    }
}

/// The check of a narrow fork alone.
#[test]
fn a_failed_check_of_the_upper_fork_retires_the_wide_pairs() {
    let mut threads = Vec::new();
    for net in mesh_with_timeout(2, TIMEOUT) {
        // Messages 0 and 1 are those of setup, 5 is the answer to the check.
        let at = if net.me() == CHEATER { 5 } else { u64::MAX };
        let mut net = Tamper::new(net, at, Fault::FlipBit { byte: 3, bit: 1 });
        threads.push(std::thread::spawn(move || -> Result<Error> {
            let Both { mut wide, mut narrow } = Both::setup(4, &mut net)?;
            let rows = all_choices(&net, 0, 800);
            let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
            narrow.extend(&rows, 800, &mut net)?;
            let checked = narrow.check(&mut net);
            assert_eq!(checked.is_err(), net.me() != CHEATER);
            if checked.is_ok() {
                return Ok(Error::misuse("the cheater"));
            }
            Ok(wide.extend_checked(&rows, 800, &mut net).map(drop).expect_err("it is retired"))
        }));
    }
    let errors: Vec<_> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
    assert_eq!(errors[0], Ok(Error::CheckFailed { what: EARLIER_CHECK }));
}
