//! Nodes that prepare together: epochs, stock, quarantine, refresh.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey, Reason};
use polyclave_client::{Client, Error as ClientError};
use polyclave_config::{ClientDir, NodeDir, NodeSettings};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::authenticated::{Guesses, MAX_UNANSWERED};
use polyclave_protocol::{EARLIER_CHECK, Error, GuessGuard, Party};
use polyclave_store::{Secret, Store, StoreError};

use super::renewing::{Fault, Place, Renewing};
use super::{Wanted, join_fill};
use crate::FaultInjection;
use crate::Running;
use crate::cheat::{Cheat, HELLOS_LEFT};
use crate::local::{Local, create};
use crate::material::epoch::Epoch;
use crate::material::quarantine::judge;
use crate::material::{epoch, refresh};
use crate::operator::admin::{Answer, Instruction, Status, order};

const NODES: usize = 3;
/// Long enough for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(90);
/// With so many processors, material is made on two streams on every machine.
pub(crate) const PROCESSORS: usize = 4;
const FAILED: Error = Error::CheckFailed { what: "something secret" };

/// Sets how many processors a node counts on.
pub(crate) fn count_on(path: &Path, processors: usize) {
    let mut dir = NodeDir::open(path).expect("its directory");
    let settings = NodeSettings { processors: Some(processors), ..dir.settings().clone() };
    dir.set_settings(settings).expect("saved");
}

struct Nodes {
    nodes: Vec<Option<Running>>,
    faults: Vec<Fault>,
    local: Local,
    _dir: tempfile::TempDir,
}

impl Nodes {
    fn start() -> Nodes {
        let dir = tempfile::tempdir().expect("a directory");
        let local = create(&dir.path().join("cluster"), "shamir", NODES, 1).expect("a cluster");
        let faults = (0..NODES).map(|_| Fault::default()).collect();
        local.nodes.iter().for_each(|path| count_on(path, PROCESSORS));
        let mut nodes = Nodes { nodes: (0..NODES).map(|_| None).collect(), faults, local, _dir: dir };
        (0..NODES).for_each(|node| nodes.restart(node));
        nodes.until("all are ready", |nodes| nodes.ready());
        nodes
    }

    fn dir(&self, node: usize) -> NodeDir {
        NodeDir::open(&self.local.nodes[node]).expect("its directory")
    }

    fn restart(&mut self, node: usize) {
        self.restart_with(node, FaultInjection::HONEST);
    }

    fn restart_with(&mut self, node: usize, faults: FaultInjection) {
        self.nodes[node] = None;
        let config = Renewing::new(NODES, self.faults[node].clone());
        self.nodes[node] = Some(
            Running::start_with(self.dir(node), AnyServiceConfig::new(config), faults).expect("started"),
        );
    }

    fn ready(&self) -> bool {
        self.nodes.iter().flatten().all(|node| node.is_ready() && node.status().connected.len() == NODES)
    }

    fn is_full(&self) -> bool {
        let full = |node: &Running| node.status().stock.iter().all(|level| level.blocks == level.level);
        self.ready() && self.nodes.iter().flatten().all(full)
    }

    fn until(&self, what: &str, holds: impl Fn(&Nodes) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.local.client).expect("its directory")).expect("a client")
    }

    fn state(&self, node: usize) -> Status {
        match order(&self.dir(node), &Instruction::Status) {
            Ok(Some(Answer::Status(status))) => *status,
            other => panic!("{other:?}"),
        }
    }

    fn order_refresh(&self) {
        for node in 0..NODES {
            order(&self.dir(node), &Instruction::Rotate { approval: None, despite_failures: false })
                .expect("ordered");
        }
    }
}

impl Nodes {
    /// The store of a node that does not run.
    fn store(&self, node: usize) -> Store {
        let dir = self.dir(node);
        let secret = Secret::from_bytes(*dir.secret().expect("its secret"));
        Store::open(&dir.store_path(), &secret).expect("its store")
    }

    /// The checks that a node has counted.
    fn guesses(&self, node: usize) -> Guesses {
        let state = self.state(node);
        Guesses { failed: state.checks_failed, unanswered: state.checks_unanswered }
    }
}

fn make_key(client: &Client) {
    let properties = NewKey::for_modes("k", "aes-128", &[Mode::Gcm, Mode::Cmac], 1000);
    client.generate(properties).expect("made");
}

fn mac(client: &Client) -> Result<Vec<u8>, ClientError> {
    Ok(client.key("k")?.cmac(&[7; 40])?.to_vec())
}

fn reason(outcome: Result<Vec<u8>, ClientError>) -> Reason {
    match outcome {
        Err(ClientError::Refused { refusal, .. }) => {
            assert!(!refusal.message.contains("something secret"), "{refusal}");
            refusal.reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn nodes_make_an_epoch_and_fill_their_stock_after_every_start() {
    let mut nodes = Nodes::start();
    nodes.until("the stock is full", Nodes::is_full);
    let client = nodes.client();
    make_key(&client);
    let before = mac(&client).expect("computed");
    nodes.restart(1);
    nodes.until("there is a new epoch with a full stock", Nodes::is_full);
    assert_eq!(mac(&nodes.client()).expect("computed"), before);
}

#[test]
fn a_failure_of_no_check_is_tried_again() {
    let mut nodes = Nodes::start();
    for (node, place) in [(0, Place::Filling), (1, Place::Renewal), (2, Place::Filling)] {
        nodes.faults[node].set(place, Error::System("something broke".into()));
        nodes.restart(2);
        nodes.until("it works in the end", Nodes::is_full);
        assert!((0..NODES).all(|node| nodes.state(node).quarantine.is_none()));
    }
}

/// A node that leaves every hello once it can know what the session id would be, until it likes one, gets one
/// draw from each request that it makes fail, and not as many as there is time for.
#[test]
fn a_request_is_not_tried_again_after_its_nonce_is_known() {
    let mut nodes = Nodes::start();
    make_key(&nodes.client());
    nodes.restart_with(2, Cheat::LeavesHellos.into());
    nodes.until("all are ready again", Nodes::is_full);
    let asked = Instant::now();
    assert_eq!(reason(mac(&nodes.client())), Reason::Unavailable);
    let draws = HELLOS_LEFT.load(SeqCst);
    assert!(
        (1..=6).contains(&draws),
        "{draws} draws in {:?}; a client asks six times at most",
        asked.elapsed()
    );
}

#[test]
fn who_finds_the_stock_dry_is_told_so_and_served_later() {
    let nodes = Nodes::start();
    let client = nodes.client();
    make_key(&client);
    let dry = Error::OutOfMaterial { detail: "there is not enough".into() };
    nodes.faults.iter().for_each(|fault| fault.set(Place::Request, dry.clone()));
    assert_eq!(reason(mac(&client)), Reason::OutOfMaterial);
    mac(&client).expect("computed");
    assert!(nodes.ready());
}

#[test]
fn a_failed_check_ends_all_service_until_every_operator_has_ordered_a_refresh() {
    let mut nodes = Nodes::start();
    let client = nodes.client();
    make_key(&client);
    let before = mac(&client).expect("computed");
    nodes.faults[1].set(Place::Request, FAILED);
    assert_eq!(reason(mac(&client)), Reason::Quarantined);
    assert_eq!(reason(mac(&nodes.client())), Reason::Quarantined);
    nodes.until("the others know", |nodes| (0..NODES).all(|node| !nodes.state(node).ready));
    nodes.restart(1);
    nodes.until("they meet again", |nodes| nodes.state(1).connected.len() == NODES);
    let quarantine = nodes.state(1).quarantine.expect("it survives a restart");
    assert_eq!(quarantine.reason, "a check failed while serving a request");
    assert_eq!(nodes.state(0).quarantine, None);
    assert_eq!(reason(mac(&nodes.client())), Reason::Quarantined);

    order(&nodes.dir(0), &Instruction::Rotate { approval: None, despite_failures: false }).expect("ordered");
    nodes.until("the wish is known", |nodes| nodes.state(2).rotating == ["node-1"]);
    assert!(nodes.nodes[1].as_ref().is_some_and(|node| node.status().quarantined));
    nodes.order_refresh();
    // A peer's wish is known from its last beat.
    let over = |status: Status| status.quarantine.is_none() && status.rotating.is_empty();
    nodes.until("all is well", |nodes| nodes.is_full() && (0..NODES).all(|node| over(nodes.state(node))));
    assert_eq!(mac(&nodes.client()).expect("the key was refreshed"), before);
}

#[test]
fn a_failed_check_while_material_is_made_is_a_quarantine_too() {
    let mut nodes = Nodes::start();
    nodes.faults[2].set(Place::Filling, FAILED);
    nodes.restart(1);
    nodes.until("it is noticed", |nodes| nodes.state(2).quarantine.is_some());
    nodes.until("and told", |nodes| !nodes.state(0).ready && !nodes.state(0).prepared);
}

/// A machine that is killed in the middle of a check: it is counted, there is no quarantine, and the nodes
/// begin again.
#[test]
fn a_check_that_a_peer_leaves_without_an_answer_is_counted_over_restarts_and_is_no_quarantine() {
    let mut nodes = Nodes::start();
    nodes.until("the stock is full", Nodes::is_full);
    let unanswered = Error::Unanswered { peer: Party(0), detail: "it is gone".into() };
    for (counted, place) in [Place::Renewal, Place::Filling].into_iter().enumerate() {
        nodes.faults[1].set(place, unanswered.clone());
        nodes.restart(2);
        let gone = nodes.faults[1].clone();
        nodes.until("it was left without an answer", |_| gone.is_over());
        nodes.until("they begin anew", Nodes::is_full);
        assert!((0..NODES).all(|node| nodes.state(node).quarantine.is_none()));
        assert_eq!(nodes.guesses(1), Guesses { failed: 0, unanswered: 1 + counted as u32 });
    }
    assert_eq!(nodes.guesses(0), Guesses::default(), "each counts what it has seen");

    // A node that is killed after it counts a failure and before it gives up gives up when it starts.
    nodes.nodes[0] = None;
    nodes.store(0).count_guesses(Guesses { failed: 1, unanswered: 0 }).expect("counted");
    nodes.restart(0);
    assert!(nodes.state(0).quarantine.is_some());
}

/// After six failed checks under a MAC key no key is refreshed from it, except by the operator's order.
#[test]
fn a_node_rotates_no_more_after_six_failed_checks_unless_its_operator_takes_the_risk() {
    let mut nodes = Nodes::start();
    let client = nodes.client();
    make_key(&client);
    let before = mac(&client).expect("computed");
    nodes.faults[1].set(Place::Request, FAILED);
    assert_eq!(reason(mac(&client)), Reason::Quarantined);
    assert_eq!(nodes.guesses(1), Guesses { failed: 1, unanswered: 0 });
    // Four more while it did not run.
    nodes.nodes[1] = None;
    let store = nodes.store(1);
    store.count_guesses(Guesses { failed: 4, unanswered: 0 }).expect("counted");
    drop(store);
    nodes.restart(1);
    nodes.until("they meet again", |nodes| nodes.state(1).connected.len() == NODES);

    // The fifth is no reason to stop; the round fails, and is the sixth.
    nodes.faults[1].set(Place::Refreshing, FAILED);
    nodes.order_refresh();
    nodes.until("it fails", |nodes| !nodes.state(1).rotating.contains(&"node-2".into()));
    let refused = order(&nodes.dir(1), &Instruction::Rotate { approval: None, despite_failures: false })
        .expect_err("after six it is refused")
        .to_string();
    assert!(refused.starts_with("6 checks have failed") && refused.contains("2^-38"), "{refused}");
    order(&nodes.dir(1), &Instruction::Rotate { approval: None, despite_failures: true })
        .expect("the operator takes the risk");
    for node in [0, 2] {
        order(&nodes.dir(node), &Instruction::Rotate { approval: None, despite_failures: false })
            .expect("ordered");
    }
    nodes.until("all is well", |nodes| nodes.ready() && nodes.state(1).quarantine.is_none());
    assert_eq!(mac(&nodes.client()).expect("the key was refreshed"), before);
    assert_eq!(nodes.guesses(1), Guesses::default(), "fresh secrets, of which nothing was guessed");
}

/// A refresh carries keys over from a MAC key that is used for nothing else any more. A cheater could hide a
/// wrong guess behind each silence, so rounds do not follow each other by themselves then.
#[test]
fn a_silence_after_too_many_ends_a_refresh_until_it_is_ordered_again() {
    let mut nodes = Nodes::start();
    make_key(&nodes.client());
    nodes.nodes[1] = None;
    let too_many = Guesses { failed: 0, unanswered: MAX_UNANSWERED };
    nodes.store(1).count_guesses(too_many).expect("counted");
    nodes.restart(1);
    nodes.until("they meet again", |nodes| nodes.state(1).connected.len() == NODES);
    let unanswered = Error::Unanswered { peer: Party(0), detail: "it is gone".into() };
    nodes.faults[1].set(Place::Refreshing, unanswered);
    nodes.order_refresh();
    nodes.until("it ends", |nodes| !nodes.state(1).rotating.contains(&"node-2".into()));
    assert!(nodes.faults[1].is_over());
    assert_eq!(nodes.guesses(1).unanswered, MAX_UNANSWERED + 1);
    nodes.order_refresh();
    nodes.until("it is ordered again", |nodes| nodes.ready() && nodes.state(1).quarantine.is_none());
    assert_eq!(nodes.guesses(1), Guesses::default());
}

/// One thread has material made and leads rounds of a refresh. While a round waits for the request, no
/// material is made for it.
#[test]
fn no_request_waits_for_material_while_a_refresh_waits_for_the_request() {
    let nodes = Nodes::start();
    nodes.until("the stock is full", Nodes::is_full);
    let material: Vec<_> = nodes.nodes.iter().flatten().map(|node| node.material.clone()).collect();
    let lots = material[0].epoch().expect("there is one").lots.clone();
    // This stands for a request that runs.
    let request = material[0].hold_off_refresh(true).expect("in order").expect("no refresh yet");
    assert!(!lots.is_held_back());
    nodes.order_refresh();
    nodes.until("the refresh waits for the request", |_| material[0].is_refreshing());
    nodes.until("the request does not wait for material", |_| lots.is_held_back());
    drop(request);
    let is_refreshed =
        |nodes: &Nodes| (0..NODES).all(|node| nodes.state(node).rotating.is_empty()) && nodes.ready();
    nodes.until("the refresh is done", is_refreshed);
    assert!(!material[0].epoch().is_some_and(|epoch| epoch.lots.is_held_back()), "a new stock is filled");
}

/// A peer starts again while streams of the epoch before still run. Then streams of both epochs come to a
/// check.
#[test]
fn checks_of_two_epochs_are_compared_one_after_the_other_and_one_can_fail() {
    let nodes = Nodes::start();
    let material = &nodes.nodes[1].as_ref().expect("it runs").material;
    let guards = [material.guard(false), material.guard(false)];
    let (inside, together) = (AtomicUsize::new(0), Barrier::new(guards.len()));
    let wrong = || Error::Peer { peer: Party(0), detail: "something secret".into() };
    let looked: Vec<_> = std::thread::scope(|scope| {
        let look = |guard: &Arc<dyn GuessGuard>| {
            together.wait();
            guard.look(&mut || {
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "one at a time");
                std::thread::sleep(Duration::from_millis(50));
                inside.fetch_sub(1, SeqCst);
                Some(wrong())
            })
        };
        let threads: Vec<_> = guards.iter().map(|guard| scope.spawn(move || look(guard))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
    assert!(looked.contains(&Ok(Some(wrong()))) && looked.contains(&earlier), "{looked:?}");
    assert_eq!(nodes.guesses(1), Guesses { failed: 1, unanswered: 0 });
    let quarantine = nodes.state(1).quarantine.expect("at once");
    assert_eq!(
        quarantine.reason,
        "node-1 sent something that does not fit while transfers under the MAC key were checked"
    );
}

/// The store may be unable to write for a while: its disk is full, or its server gone. A restart would forget
/// what is not written.
#[test]
fn a_node_uses_its_mac_key_for_nothing_until_what_counts_is_written_down() {
    const WANTED: Wanted = Wanted { kind: 0, count: 10, request: None };
    let nodes = Nodes::start();
    nodes.until("the stock is full", Nodes::is_full);
    let material = nodes.nodes[1].as_ref().expect("it runs").material.clone();
    let unwritten = || {
        let full = StoreError::Failed("the disk is full".into());
        material.note_uncounted(Guesses { failed: 0, unanswered: 1 }, &full);
    };
    let refuses = |what: &str, act: &dyn Fn() -> Result<(), Error>| {
        // The node tries to write each second, and may succeed just before.
        let refused = (0..10).any(|_| {
            unwritten();
            act().is_err_and(|error| error.to_string().contains("could not be written down"))
        });
        assert!(refused, "{what}");
    };
    refuses("an epoch", &|| epoch::join(&material, [1; 16]));
    refuses("a refresh", &|| refresh::join(&material, [2; 16]));
    refuses("material", &|| join_fill(&material, [3; 16], WANTED));
    refuses("a request", &|| material.context().map(drop).map_err(|refusal| Error::System(refusal.message)));
    nodes.until("it is written in the end", |nodes| nodes.guesses(1).unanswered >= 4);
    nodes.until("and the node goes on", |nodes| material.may_use_mac_key() && nodes.is_full());
}

#[test]
fn a_refresh_that_is_cut_short_is_completed_and_one_that_fails_is_not_repeated() {
    let mut nodes = Nodes::start();
    let client = nodes.client();
    make_key(&client);
    let before = mac(&client).expect("computed");
    nodes.faults[1].set(Place::Refreshing, Error::System("something broke".into()));
    nodes.order_refresh();
    let is_refreshed =
        |nodes: &Nodes| (0..NODES).all(|node| nodes.state(node).rotating.is_empty()) && nodes.ready();
    nodes.until("it is tried again", is_refreshed);
    assert_eq!(mac(&nodes.client()).expect("the key was refreshed"), before);

    nodes.faults[2].set(Place::Refreshing, FAILED);
    nodes.order_refresh();
    nodes.until("it fails", |nodes| nodes.state(2).quarantine.is_some());
    nodes.until("it is ordered no more", |nodes| !nodes.state(2).rotating.contains(&"node-3".into()));
    nodes.restart(0);
    nodes.order_refresh();
    nodes.until("it is ordered again", is_refreshed);
    assert_eq!(mac(&nodes.client()).expect("the key was refreshed"), before);
}

/// What every failure means for a node that runs: whether it stops, what it counts, and that nothing goes on
/// with what it had.
#[test]
fn any_failure_ends_the_epoch_at_once_and_what_counts_is_counted() {
    let mut nodes = Nodes::start();
    // Taken before any node is under quarantine: then the others give up theirs, a moment later.
    let epoch_of = |node: usize| {
        let epochs = || nodes.nodes.iter().flatten().map(|node| node.material.epoch());
        let id = |epoch: Option<Arc<Epoch>>| epoch.map(|epoch| epoch.id);
        nodes.until("all nodes have the same epoch", |_| {
            let first = id(epochs().next().flatten());
            first.is_some() && epochs().all(|epoch| id(epoch) == first)
        });
        epochs().nth(node).flatten().expect("just now")
    };
    let judged = |node: usize, epoch: Arc<Epoch>, error: &Error| {
        let material = &nodes.nodes[node].as_ref().expect("it runs").material;
        let is_quarantine = judge(material, "keys moved", Some(&epoch), error);
        assert!(epoch.is_over(), "{error}");
        assert_eq!(material.is_quarantined(), is_quarantine, "{error}");
        assert_eq!(!material.may_use_mac_key(), is_quarantine, "{error}");
        // It is written down before anything else happens.
        assert_eq!(material.store.quarantined().expect("read").is_some(), is_quarantine, "{error}");
        (is_quarantine, nodes.guesses(node))
    };
    let [none, one, two, most] =
        [0, 1, 2, MAX_UNANSWERED].map(|unanswered| Guesses { failed: 0, unanswered });
    let given_up = epoch_of(1);
    let earlier = Error::CheckFailed { what: EARLIER_CHECK };
    assert_eq!(judged(1, given_up.clone(), &earlier), (false, none));
    let unanswered = Error::Unanswered { peer: Party(0), detail: "it is gone".into() };
    assert_eq!(judged(1, epoch_of(1), &unanswered), (false, one));
    // Errors of sessions that still run in an epoch that was given up say nothing about the present one.
    let present = epoch_of(1);
    assert_eq!(judged(1, given_up.clone(), &earlier), (false, one));
    assert_eq!(judged(1, given_up, &unanswered), (false, two));
    assert!(!present.is_over());
    let material = &nodes.nodes[1].as_ref().expect("it runs").material;
    let left = Guesses { failed: 0, unanswered: MAX_UNANSWERED - 3 };
    material.store.count_guesses(left).expect("counted");
    let [of_second, of_third] = [epoch_of(1), epoch_of(2)];
    assert_eq!(judged(1, of_second, &unanswered), (true, most), "the last one is too many");
    // The guard has counted it.
    let wrong = Error::Peer { peer: Party(0), detail: "something secret".into() };
    assert_eq!(judged(2, of_third, &Error::Counted(Box::new(wrong))), (true, none));
    let quarantine = nodes.state(2).quarantine.expect("it is under quarantine");
    assert_eq!(quarantine.reason, "node-1 sent something that does not fit while keys moved");
    let audit = std::fs::read_to_string(nodes.dir(2).audit_path()).expect("its audit log");
    assert!(audit.contains("check-failed"), "{audit}");

    // A node that is killed before it writes down the quarantine that follows from the count.
    nodes.nodes[0] = None;
    nodes.store(0).count_guesses(most).expect("counted");
    nodes.restart(0);
    assert!(nodes.state(0).quarantine.is_some());
}

#[test]
fn what_is_counted_is_of_no_account_without_a_mac_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let local = create(&dir.path().join("cluster"), "replicated-active", NODES, 1).expect("a cluster");
    let open = || NodeDir::open(&local.nodes[0]).expect("its directory");
    drop(Running::start(open()).expect("started"));
    let secret = Secret::from_bytes(*open().secret().expect("its secret"));
    let store = Store::open(&open().store_path(), &secret).expect("its store");
    store.count_guesses(Guesses { failed: 1, unanswered: 0 }).expect("counted");
    drop(store);
    let node = Running::start(open()).expect("started");
    assert!(!node.material.is_quarantined());
}
