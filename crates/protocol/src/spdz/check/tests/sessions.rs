//! Sessions under one key, side by side.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use super::*;
use crate::spdz::key::Exposure;

/// Two sessions under one key at one party: the zero test of one has passed, while in the other a plain check is open.
fn zero_test_beside(end: impl FnOnce(Exposure<F>)) -> Result<()> {
    let nets = mesh_with_timeout(2, LATE);
    let key = mac_key::<F>(&SEED, Party(0), 2);
    let exposure = key.expose().expect("it is usable");
    let (done, ended) = channel();
    let done = Arc::new(Mutex::new(done));
    let session = std::thread::spawn(move || {
        run_over(nets, move |net| {
            let mut seat = Seat::new(net);
            if net.me() == Party(0) {
                seat.key = key.clone();
            }
            seat.open(Element::ZERO, net)?;
            let checked = seat.check(net);
            done.lock().expect("no panic").send((net.me(), checked.clone())).expect("somebody listens");
            checked
        })
    });
    // The other party knows nothing of the plain check.
    assert_eq!(ended.recv_timeout(LATE), Ok((Party(1), Ok(()))));
    assert!(ended.recv_timeout(SOON).is_err(), "it passes before the plain check has ended");
    end(exposure);
    session.join().expect("no panic").remove(0)
}

#[test]
fn a_zero_test_does_not_pass_before_a_plain_check_of_another_session_has() {
    let passes = |exposure: Exposure<F>| exposure.passed().expect("it is alone");
    assert_eq!(zero_test_beside(passes), Ok(()));
}

#[test]
fn a_zero_test_does_not_pass_beside_a_plain_check_that_fails() {
    assert_eq!(zero_test_beside(drop), FAILED_EARLIER);
}

/// Sessions that check at the same time, in whatever order each party comes to them.
#[test]
fn plain_checks_of_many_sessions_do_not_wait_for_each_other_in_a_circle() {
    let keys = [0, 1].map(|p| mac_key::<F>(&SEED, Party(p), 2));
    let session = |_| {
        let keys = keys.clone();
        std::thread::spawn(move || {
            run_over(mesh_with_timeout(2, LATE), move |net| {
                let mut seat = Seat::new(net);
                seat.key = keys[net.me().index()].clone();
                (0..20).try_for_each(|_| {
                    seat.open(Element::ZERO, net)?;
                    check_plainly(&seat.key, &mut seat.openings, net)
                })
            })
        })
    };
    let sessions: Vec<_> = (0..6).map(session).collect();
    for session in sessions {
        assert!(session.join().expect("no panic").iter().all(Result::is_ok));
    }
}

/// A plain check that passed beside one that fails does not count: its cheater may have learnt the key from the other.
#[test]
fn a_plain_check_does_not_pass_beside_one_that_fails() {
    let key = mac_key::<F>(&SEED, Party(0), 2);
    let (failing, passing) = (key.expose().expect("usable"), key.expose().expect("usable"));
    let passing = std::thread::spawn(move || passing.passed());
    std::thread::sleep(SOON);
    assert!(!passing.is_finished(), "it counts before the other has ended");
    drop(failing);
    assert_eq!(passing.join().expect("no panic"), FAILED_EARLIER);
}

#[test]
fn what_a_check_could_not_vouch_for_in_time_stays_to_be_checked() {
    let outcomes = parties(2, LATE, |seat, net| {
        seat.open(Element::ZERO, net)?;
        // A session that does not end.
        let exposure = seat.key.expose()?;
        let outcome = seat.check(net);
        assert!(!seat.openings.is_empty());
        drop(exposure);
        outcome
    });
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::System(_)))), "{outcomes:?}");
}

#[test]
fn a_plain_check_does_not_pass_if_the_key_was_given_up_meanwhile() {
    let outcomes = parties(2, LATE, |seat, net| {
        seat.open(Element::ZERO, net)?;
        let key = seat.key.clone();
        check_plainly(&key, &mut seat.openings, &mut Meanwhile { net, key: &key })
    });
    assert!(outcomes.iter().all(|outcome| *outcome == FAILED_EARLIER), "{outcomes:?}");
}

/// A network during whose exchanges another session gives the key up.
struct Meanwhile<'a> {
    net: &'a mut dyn Net,
    key: &'a MacKey<F>,
}

impl Net for Meanwhile<'_> {
    fn me(&self) -> Party {
        self.net.me()
    }
    fn parties(&self) -> usize {
        self.net.parties()
    }
    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.net.send(to, message)
    }
    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.net.recv(from, into)
    }
    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.key.retire();
        self.net.exchange(out, into)
    }
    fn fork(&mut self) -> Result<Box<dyn Net>> {
        self.net.fork()
    }
}
