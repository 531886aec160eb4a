//! Cheaters whose cheating fails a check in one session of a setup, and who then try another session.

use std::sync::Barrier;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use polyclave_field::Gf2_64;

use super::*;
use crate::authenticated::{MacKey, Source};
use crate::interface::net::Net;
use crate::mascot::Mascot;
use crate::mesh::run_parties;
use crate::ot::{Pairs, Shape};
use crate::testkit::exchanging::ending_after;
use crate::testkit::sessions::{CHEATER, none_is_checked_after_the_first_failure, sessions};
use crate::testkit::tamper::{Fault, Tamper};
use crate::tinyot::{Kappa, TinyOt};

#[test]
fn a_gate_is_the_same_as_its_clones_and_no_other() {
    let gate = Retirement::default();
    assert!(gate.is(&gate.clone()) && !gate.is(&Retirement::default()));
}

fn pairs(net: &mut dyn Net) -> Result<Pairs> {
    Pairs::setup(b"retirement", 0x1234_5678, Shape::new(128, 4)?, net)
}

/// Transfers that this party chooses from the other one.
fn extend(pairs: &mut Pairs, net: &mut dyn Net) -> Result<()> {
    let choices = [0x5a; 100];
    let mut by_peer = [&choices[..]; 2];
    by_peer[net.me().index()] = &[];
    pairs.extend(&by_peer, 800, net).map(drop)
}

#[test]
fn one_failed_check_of_transfers_ends_all_forks_and_the_parent() {
    let ends = sessions(pairs, |pairs, label, net| {
        let mut fork = pairs.fork(label);
        extend(&mut fork, net)?;
        fork.check(net)
    });
    none_is_checked_after_the_first_failure("transfers", &ends);
    let outcomes = run_parties(2, |net| {
        let mut parent = pairs(net)?;
        // One that is there already, of the second generation.
        let mut other = parent.fork(b"a").fork(b"b");
        let mut spoilt = parent.fork(b"c");
        let at = if net.me() == CHEATER { 0 } else { u64::MAX };
        let mut tampered = Tamper::new(net.fork()?, at, Fault::FlipBit { byte: 700, bit: 1 });
        extend(&mut spoilt, &mut tampered)?;
        let failed = spoilt.check(&mut tampered).is_err();
        let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
        for ended in [&mut parent, &mut other] {
            assert_eq!(extend(ended, net), if failed { earlier.clone() } else { Ok(()) });
        }
        Ok(failed)
    });
    assert_eq!(outcomes[0], Ok(true));
}

/// Counts as a node does, and says whether two comparisons took place at once.
#[derive(Default)]
struct Counting {
    inside: AtomicUsize,
    overlapped: AtomicBool,
    looks: AtomicUsize,
    found: Mutex<Vec<Error>>,
    /// How long a comparison takes, so that others come meanwhile.
    takes: Duration,
}

impl GuessGuard for Counting {
    fn look(&self, fault: &mut dyn FnMut() -> Option<Error>) -> Result<Option<Error>> {
        self.overlapped.fetch_or(self.inside.fetch_add(1, SeqCst) > 0, SeqCst);
        self.looks.fetch_add(1, SeqCst);
        let found = fault();
        std::thread::sleep(self.takes);
        self.found.lock().extend(found.clone());
        self.inside.fetch_sub(1, SeqCst);
        Ok(found)
    }
}

const STREAMS: usize = 8;

/// The second party spoils its part of all streams at once, and answers on each only when all have come so
/// far.
#[test]
fn of_streams_that_are_spoilt_at_once_one_is_compared() {
    let guard = Arc::new(Counting { takes: Duration::from_millis(50), ..Counting::default() });
    let outcomes = run_parties(2, |net| {
        let root = pairs(net)?;
        let cheats = net.me() == CHEATER;
        if !cheats {
            root.retirement().guard(guard.clone());
        }
        let ready = Barrier::new(STREAMS);
        let forks: Vec<_> = (0..STREAMS).map(|_| net.fork()).collect::<Result<_>>()?;
        let stream = |label: usize, net: Box<dyn Net>| {
            let mut fork = root.fork(&[label as u8]);
            let at = if cheats { 0 } else { u64::MAX };
            let mut net = Tamper::new(net, at, Fault::FlipBit { byte: 700, bit: 1 });
            let extended = extend(&mut fork, &mut net);
            ready.wait();
            extended.and_then(|()| fork.check(&mut net))
        };
        Ok(std::thread::scope(|scope| {
            let stream = &stream;
            let forks = forks.into_iter().enumerate();
            let threads: Vec<_> = forks.map(|(label, net)| scope.spawn(move || stream(label, net))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        }))
    });
    let ends = outcomes[0].as_ref().expect("setup is honest");
    let found = guard.found.lock();
    assert!(matches!(found[..], [Error::Peer { peer: CHEATER, .. }]), "one failure is found: {found:?}");
    let counted = Err(Error::Counted(Box::new(found[0].clone())));
    assert_eq!(ends.iter().filter(|end| **end == counted).count(), 1, "{ends:?}");
    // The same bits of Delta were guessed on all streams, so that none of them passed.
    let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
    assert_eq!(ends.iter().filter(|end| **end == earlier).count(), STREAMS - 1, "{ends:?}");
    assert!(!guard.overlapped.load(SeqCst) && guard.looks.load(SeqCst) == 1);
}

/// Many guesses at a whole key at once are as good as one: after a wrong one a right one does not count.
#[test]
fn after_a_wrong_guess_at_a_whole_key_a_right_one_is_refused() {
    let retired = Retirement::default();
    let failed = Error::CheckFailed { what: "tags" };
    assert_eq!(retired.judge(|| None), Ok(()));
    assert_eq!(retired.judge(|| Some(failed.clone())), Err(failed));
    let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
    assert_eq!(retired.judge(|| panic!("nothing is compared")), earlier);
    assert_eq!(retired.clone().judge_guess(|| panic!("nothing is compared")), earlier);
}

/// The gate closes before it lets the next one in, and not only when its caller handles the error.
#[test]
fn after_a_wrong_guess_at_a_bit_no_other_is_compared() {
    let retired = Retirement::default();
    let failed = Error::Peer { peer: CHEATER, detail: "a column".into() };
    assert_eq!(retired.judge_guess(|| None), Ok(()));
    assert_eq!(retired.judge_guess(|| Some(failed.clone())), Err(failed));
    let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
    assert_eq!(retired.clone().judge_guess(|| panic!("nothing is compared")), earlier);
}

/// A guard that refuses: another process has found a fault, or cannot be asked.
struct Refusing(Error);

impl GuessGuard for Refusing {
    fn look(&self, _: &mut dyn FnMut() -> Option<Error>) -> Result<Option<Error>> {
        Err(self.0.clone())
    }
}

#[test]
fn where_the_guard_refuses_nothing_is_compared() {
    for (refusal, retires) in [
        (Error::CheckFailed { what: EARLIER_CHECK }, true),
        (Error::System("the store does not answer".into()), false),
    ] {
        let retired = Retirement::default();
        retired.guard(Arc::new(Refusing(refusal.clone())));
        assert_eq!(retired.judge_guess(|| panic!("nothing is compared")), Err(refusal));
        assert_eq!(retired.refuse_retired().is_err(), retires);
    }
}

/// How often all messages are changed until each comparison has failed once.
const MAX_SWEEPS: usize = 5;

/// Whatever message is wrong while an epoch and material are made: what an honest party finds where single
/// bits are compared, it finds behind the guard, of trees, transfers and products with shares of the key.
#[test]
fn no_comparison_of_single_bits_goes_around_the_guard() {
    let of_bits = ["a tree of seeds", "choices of oblivious transfer", "of no one element"];
    let run = |at: u64, byte: usize| {
        let guard = Arc::new(Counting::default());
        let outcomes = run_parties(2, |net| {
            let key = MacKey::<Gf2_64>::generate(net)?;
            let at = if net.me() == CHEATER { at } else { u64::MAX };
            if net.me() != CHEATER {
                key.guard(guard.clone());
            }
            let mut net = Tamper::new(net, at, Fault::FlipBit { byte, bit: 1 });
            let make = |net: &mut dyn Net| {
                let mut mascot = Mascot::setup(b"guarded", &key, 2, net)?;
                mascot.join_tinyot(b"bits", Kappa::Bits64, 2, net)?;
                let mut fork = mascot.fork(b"stream");
                fork.bits(8, net)?;
                fork.triples(1, net).map(drop)
            };
            let made = make(&mut net);
            Ok((made, net.tampering().messages()))
        });
        let messages = outcomes[1].as_ref().map_or(0, |(_, messages)| *messages);
        let (made, _) = outcomes.into_iter().next().expect("two").expect("it ends");
        (made, messages)
    };
    let (honest, messages) = run(u64::MAX, 0);
    assert_eq!(honest, Ok(()));
    let mut seen = [0; 3];
    // Whether a flipped bit matters depends on choices of the honest party, and few messages are about trees.
    for _ in 0..MAX_SWEEPS {
        for (at, byte) in (0..messages).flat_map(|at| [3, 40].map(|byte| (at, byte))) {
            match run(at, byte).0 {
                Err(Error::Counted(error)) => {
                    let message = error.to_string();
                    let place = of_bits.iter().position(|of| message.contains(of));
                    seen[place.unwrap_or_else(|| panic!("{message}"))] += 1;
                }
                Err(Error::Peer { detail, .. }) => {
                    assert!(!of_bits.iter().any(|of| detail.contains(of)), "message {at}: {detail}");
                }
                _ => {}
            }
        }
        if seen.iter().all(|count| *count > 0) {
            return;
        }
    }
    panic!("in {MAX_SWEEPS} sweeps: {seen:?}");
}

/// The second is silent where it may know the coins, or before that.
#[test]
fn silence_counts_once_the_coins_may_be_known_and_not_before() {
    for (messages, counts) in [(0, false), (1, false), (2, true), (3, true)] {
        let outcomes = run_parties(2, |net| {
            let pairs = pairs(net)?;
            let mut fork = pairs.fork(b"fork");
            // Corrections, the coins' commitment, their opening, the answer.
            let left = if net.me() == CHEATER { messages } else { usize::MAX };
            let mut net = ending_after(net, left);
            let checked = extend(&mut fork, &mut net).and_then(|()| fork.check(&mut net));
            Ok((checked, pairs.refuse_retired().is_err()))
        });
        let Ok((checked, retired)) = &outcomes[0] else { panic!("setup is honest") };
        assert_eq!(*retired, counts, "{messages}: {checked:?}");
        assert_eq!(matches!(checked, Err(Error::Unanswered { peer: CHEATER, .. })), counts, "{checked:?}");
    }
}

#[test]
fn one_failed_check_ends_all_sessions_of_a_maker_of_material() {
    let ends = sessions(
        |net| Mascot::setup(b"mascot", &MacKey::<Gf2_64>::generate(net)?, 2, net),
        |mascot, label, net| mascot.fork(label).bits(800, net).map(drop),
    );
    none_is_checked_after_the_first_failure("mascot", &ends);
    let ends = sessions(
        |net| TinyOt::setup(b"tinyot", &MacKey::generate(net)?, Kappa::Bits40, 2, net),
        |tinyot, label, net| {
            use crate::tinyot::Source;
            tinyot.fork(label).bits(800, net).map(drop)
        },
    );
    none_is_checked_after_the_first_failure("tinyot", &ends);
}
