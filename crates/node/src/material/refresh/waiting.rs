//! Requests that make and delete keys wait for a refresh, and a refresh for them: neither for ever, and none
//! is refused before it has waited.

use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::RwLockWriteGuard;
use polyclave_api::{KeyInfo, Mode, NewKey, Reason};
use polyclave_client::{Client, Error, Result};

use super::tests::{Trial, code, until};
use super::{REFRESHING, Refresh, Relaxed};
use crate::Running;

/// Holds a node's gate, as a round does from the moment at which it waits for the other nodes.
fn close(node: &Running) -> RwLockWriteGuard<'_, ()> {
    node.material.refresh.gate.write()
}

fn held_back(node: &Running) -> bool {
    node.service.pending.held_back() == 1
}

fn make(client: &Client, name: &str) -> Result<KeyInfo> {
    client.generate(NewKey::for_modes(name, "aes-128", &[Mode::Cmac], 1000))
}

/// A request comes to all nodes while a round is under way, and is served after it.
fn a_request_waits(ask: impl FnOnce(Client) -> Result<()> + Send + 'static) {
    let trial = Trial::start("shamir");
    let rounds: Vec<_> = trial.nodes.iter().map(close).collect();
    let client = trial.client();
    let asking = thread::spawn(move || ask(client));
    until("it waits at all nodes", || trial.nodes.iter().all(held_back));
    drop(rounds);
    asking.join().expect("no panic").expect("served");
    assert!(!trial.nodes.iter().any(held_back));
}

#[test]
fn a_key_that_is_made_during_a_refresh_waits_for_its_end() {
    a_request_waits(|client| make(&client, "new").map(drop));
}

#[test]
fn a_key_that_is_rotated_during_a_refresh_waits_for_its_end() {
    a_request_waits(|client| client.rotate("sound").map(drop));
}

#[test]
fn a_key_that_is_deleted_during_a_refresh_waits_for_its_end() {
    a_request_waits(|client| client.delete("sound").map(drop));
}

#[test]
fn a_request_that_waits_in_vain_is_refused_and_told_what_to_do() {
    let trial = Trial::start("shamir");
    let _rounds: Vec<_> = trial.nodes.iter().map(close).collect();
    let message = make(&trial.client(), "new").expect_err("the refresh does not end").to_string();
    assert!(message.contains("has waited for it for 10 s") && message.contains("node status"), "{message}");
}

/// A round has begun at one node and waits for the others, where the request keeps it off while it waits for
/// that node: they let the round go on, and the request is served after it.
fn a_request_gives_way(closed: usize) {
    let trial = Trial::start("shamir");
    let round = close(&trial.nodes[closed]);
    let client = trial.client();
    let making = thread::spawn(move || make(&client, "new"));
    until("it waits at that node", || held_back(&trial.nodes[closed]));
    for (_, other) in trial.nodes.iter().enumerate().filter(|(node, _)| *node != closed) {
        // As the round of that node begins.
        other.material.refresh.running.store(true, Relaxed);
        until("the request lets the round of another node go on", || {
            other.material.refresh.gate.try_write().is_some() && held_back(other)
        });
    }
    assert!(!making.is_finished(), "it waits, and is not refused");
    for node in &trial.nodes {
        node.material.refresh.running.store(false, Relaxed);
    }
    drop(round);
    making.join().expect("no panic").expect("made");
}

#[test]
fn a_request_gives_way_to_a_refresh_that_has_begun_at_a_node_which_follows() {
    a_request_gives_way(2);
}

#[test]
fn a_request_gives_way_to_a_refresh_that_has_begun_at_the_node_which_leads() {
    a_request_gives_way(0);
}

/// A round begins after a request has held it off, and before the request has begun.
#[test]
fn a_request_that_a_round_overtakes_waits_for_its_end() {
    let trial = Trial::start("spdz-tower");
    let client = trial.client();
    let key = client.key("sound").expect("it is there");
    let all = |is: &dyn Fn(&Refresh) -> bool| trial.nodes.iter().all(|node| is(&node.material.refresh));
    thread::scope(|scope| {
        let moments: Vec<_> = trial.nodes.iter().map(|node| node.material.refresh.moment.write()).collect();
        let asking = scope.spawn(|| key.cmac(&[7; 40]));
        until("it holds rounds off", || all(&|refresh| refresh.gate.try_write().is_none()));
        all(&|refresh| !refresh.running.swap(true, Relaxed));
        drop(moments);
        until("it waits at all nodes", || trial.nodes.iter().all(held_back));
        all(&|refresh| refresh.running.swap(false, Relaxed));
        asking.join().expect("no panic").expect("served");
    });
}

/// A message has begun when a refresh is ordered, and the client goes on after a while.
fn a_message_goes_on(after: Duration) -> Result<Vec<u8>> {
    let trial = Trial::start("spdz-tower");
    let (client, secrets) = (trial.client(), trial.secrets());
    let new = || NewKey::for_modes("messages", "aes-128", &[Mode::Gcm], 1000);
    until("a key is made", || client.generate(new()).is_ok());
    let key = client.key("messages").expect("it is there");
    let begun = RefCell::new(None);
    until("there is material", || {
        *begun.borrow_mut() = key.gcm().begin().ok();
        begun.borrow().is_some()
    });
    trial.order();
    until("the refresh waits", || trial.nodes.iter().all(|node| node.material.is_refreshing()));
    thread::sleep(after);
    let done = begun.into_inner().expect("as above").encrypt(b"message");
    trial.is_refreshed(&secrets);
    done
}

#[test]
fn a_request_that_has_begun_goes_on_while_a_refresh_waits_for_it() {
    a_message_goes_on(Duration::ZERO).expect("served");
}

#[test]
fn a_request_that_takes_long_ends_for_a_refresh() {
    let error = a_message_goes_on(Duration::from_secs(4)).expect_err("the refresh waits no longer");
    assert!(error.to_string().contains(REFRESHING), "{error}");
}

/// Under load a request may meet a refresh that takes longer than requests wait, and under protocols with
/// material one that finds the stock dry.
fn is_excused(e: &Error, began: Instant) -> bool {
    let is_dry = matches!(e, Error::Refused { refusal, .. } if refusal.reason == Reason::OutOfMaterial);
    is_dry || began.elapsed() >= Duration::from_secs(10) && e.may_pass()
}

/// Refreshes go on, and so do requests.
fn keys_are_made_and_deleted(protocol: &str, refreshes: usize) {
    let trial = Trial::start(protocol);
    let before = code(&trial.client(), "sound");
    let over = std::sync::atomic::AtomicBool::new(false);
    let answers = thread::scope(|scope| {
        let making = scope.spawn(|| {
            let (client, mut answers) = (trial.client(), 0);
            while !over.load(Relaxed) {
                let ask = |ask: &dyn Fn() -> Result<()>| {
                    let began = Instant::now();
                    while let Err(e) = ask() {
                        assert!(is_excused(&e, began), "after {:?}: {e}", began.elapsed());
                    }
                };
                let name = format!("k{answers}");
                ask(&|| match make(&client, &name) {
                    // One that was refused may have been made.
                    Err(e) if e.to_string().contains("already") => Ok(()),
                    made => made.map(drop),
                });
                ask(&|| client.delete(&name).map(drop));
                answers += 1;
            }
            answers
        });
        for _ in 0..refreshes {
            let secrets = trial.secrets();
            trial.order();
            trial.is_refreshed(&secrets);
        }
        over.store(true, Relaxed);
        making.join().expect("none was refused")
    });
    assert!(answers > 0);
    assert_eq!(code(&trial.client(), "sound"), before);
}

#[test]
fn keys_are_made_and_deleted_during_refreshes_of_shamir() {
    keys_are_made_and_deleted("shamir", 5);
}

#[test]
fn keys_are_made_and_deleted_during_refreshes_of_spdz_tower() {
    keys_are_made_and_deleted("spdz-tower", 2);
}
