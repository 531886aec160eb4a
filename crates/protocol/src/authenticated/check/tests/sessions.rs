//! Sessions that run side by side under one key.

use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::testkit::exchanging::Exchanging;

/// Many sessions that check at the same time, in whatever order each party comes to them.
#[test]
fn checks_of_many_sessions_do_not_disturb_each_other() {
    let keys = [0, 1].map(|p| mac_key::<F>(&SEED, Party(p), 2));
    let session = |_| {
        let keys = keys.clone();
        std::thread::spawn(move || {
            run_over(mesh_with_timeout(2, LATE), move |net| {
                let mut seat = Seat::new(net);
                seat.key = keys[net.me().index()].clone();
                (0..20).try_for_each(|_| {
                    seat.open(Element::ZERO, net)?;
                    seat.check(net)
                })
            })
        })
    };
    let sessions: Vec<_> = (0..6).map(session).collect();
    for session in sessions {
        assert!(session.join().expect("no panic").iter().all(Result::is_ok));
    }
}

/// One of several sessions under one key fails. What the other sessions have opened is then refused.
#[test]
fn after_a_failure_in_one_session_all_others_are_refused() {
    let keys = [0, 1].map(|p| mac_key::<F>(&SEED, Party(p), 2));
    let session = |shift: Element, before_the_check: Option<Receiver<()>>| {
        let keys = keys.clone();
        let waits = Mutex::new(before_the_check);
        std::thread::spawn(move || {
            run_over(mesh_with_timeout(2, LATE), move |net| {
                let mut seat = Seat::new(net);
                seat.key = keys[net.me().index()].clone();
                seat.open(shift, net)?;
                if let Some(failed) = waits.lock().take() {
                    failed.recv().expect("somebody says so");
                    // The other party waits in its check until this one comes, or leaves.
                }
                let outcome = seat.check(net);
                assert!(!seat.openings.is_empty() || outcome.is_ok(), "it stays to be checked");
                outcome
            })
        })
    };
    let (fails, failed) = channel();
    let waiting = session(Element::ZERO, Some(failed));
    assert_eq!(session(F::embed(0x20), None).join().expect("no panic")[0], Err(FAILED));
    fails.send(()).expect("it waits");
    let outcomes = waiting.join().expect("no panic");
    assert!(outcomes.contains(&FAILED_EARLIER) && outcomes.iter().all(Result::is_err), "{outcomes:?}");
}

#[test]
fn a_check_does_not_pass_if_the_key_was_given_up_meanwhile() {
    let outcomes = parties(2, LATE, |seat, net| {
        seat.open(Element::ZERO, net)?;
        let product = seat.product(net)?;
        let key = seat.key.clone();
        let outcome = check(&key, &mut seat.openings, product, &mut retiring(net, &key));
        assert!(!seat.openings.is_empty());
        outcome
    });
    assert!(outcomes.iter().all(|outcome| *outcome == FAILED_EARLIER), "{outcomes:?}");
}

/// A network with exchanges during which another session gives the key up.
fn retiring<'n>(net: &'n mut dyn Net, key: &'n MacKey<F>) -> impl Net + 'n {
    Exchanging::new(net, move |net: &mut dyn Net, out: &[&[u8]], into: &mut [&mut [u8]]| {
        key.retire();
        net.exchange(out, into)
    })
}
