//! What failures are called, and what a node alone makes of each.

use std::path::{Path, PathBuf};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use polyclave_config::NodeDir;
use polyclave_protocol::authenticated::MAX_UNANSWERED;
use polyclave_store::testing::{Disk, in_memory, reopen};

use super::*;
use crate::Running;
use crate::local::create;

const FAILED: Error = Error::CheckFailed { what: "something secret" };

fn open(home: &Path) -> NodeDir {
    NodeDir::open(home).expect("its directory")
}

/// A node whose peers do not run.
struct Alone {
    node: Running,
    disk: Disk,
    home: PathBuf,
    _dir: tempfile::TempDir,
}

impl Alone {
    fn start(protocol: &str, nodes: usize) -> Alone {
        let dir = tempfile::tempdir().expect("a directory");
        let local = create(&dir.path().join("cluster"), protocol, nodes, 1).expect("a cluster");
        let (disk, home) = (Disk::default(), local.nodes[0].clone());
        let node = Running::start_over(open(&home), reopen(&disk)).expect("it starts");
        Alone { node, disk, home, _dir: dir }
    }

    fn restart(self) -> Alone {
        let Alone { node, disk, home, _dir } = self;
        drop(node);
        let node = Running::start_over(open(&home), reopen(&disk)).expect("it starts");
        Alone { node, disk, home, _dir }
    }

    /// What the node makes of an error. If it is a quarantine, that is written down when this returns, unless
    /// the disk is full.
    fn judge(&self, error: &Error) -> (bool, PrometheusHandle) {
        let recorder = PrometheusBuilder::new().build_recorder();
        let is_quarantine =
            metrics::with_local_recorder(&recorder, || judge(&self.node.material, "keys moved", None, error));
        (is_quarantine, recorder.handle())
    }

    fn is_written_down(&self) -> bool {
        self.node.store.quarantined().expect("read").is_some()
    }

    fn counted(&self) -> [u32; 2] {
        let Guesses { failed, unanswered } = self.node.material.guesses();
        [failed, unanswered]
    }

    fn may_use_mac_key(&self) -> bool {
        self.node.material.may_use_mac_key()
    }
}

fn unanswered() -> Error {
    Error::Unanswered { peer: Party(1), detail: "it is gone".into() }
}

#[test]
fn a_node_with_a_mac_key_counts_silences_until_they_are_too_many() {
    let alone = Alone::start("spdz-lt", 2);
    let (is_quarantine, _) = alone.judge(&unanswered());
    assert_eq!((is_quarantine, alone.counted(), alone.may_use_mac_key()), (false, [0, 1], true));
    let left = Guesses { failed: 0, unanswered: MAX_UNANSWERED - 3 };
    alone.node.store.count_guesses(left).expect("counted");
    assert!(!alone.judge(&unanswered()).0, "one is left");
    let (is_quarantine, metrics) = alone.judge(&unanswered());
    assert!(is_quarantine && alone.is_written_down(), "the last one is too many");
    let line = format!("polyclave_checks_unanswered {MAX_UNANSWERED}");
    assert!(metrics.render().contains(&line), "{}", metrics.render());
    assert!(!alone.may_use_mac_key());
    assert_eq!(alone.node.material.quarantined().expect("it is under quarantine").reason, TOO_MANY);
}

#[test]
fn a_node_with_a_mac_key_stops_after_a_check_that_failed_and_says_so() {
    let alone = Alone::start("spdz-lt", 2);
    let (is_quarantine, metrics) = alone.judge(&FAILED);
    assert_eq!((is_quarantine, alone.counted(), alone.may_use_mac_key()), (true, [1, 0], false));
    for line in ["polyclave_quarantined 1", "polyclave_checks_failed 1"] {
        assert!(metrics.render().contains(line), "{}", metrics.render());
    }
    let audit = std::fs::read_to_string(open(&alone.home).audit_path()).expect("its audit log");
    assert!(audit.contains("check-failed"), "{audit}");
}

#[test]
fn what_a_guard_has_counted_is_not_counted_again() {
    let alone = Alone::start("spdz-lt", 2);
    let (is_quarantine, _) = alone.judge(&Error::Counted(Box::new(FAILED)));
    assert_eq!((is_quarantine, alone.counted(), alone.may_use_mac_key()), (true, [0, 0], false));
    assert!(alone.is_written_down());
}

#[test]
fn a_node_without_a_mac_key_stops_and_counts_nothing() {
    let alone = Alone::start("replicated-active", 3);
    let (is_quarantine, _) = alone.judge(&unanswered());
    assert_eq!((is_quarantine, alone.counted()), (false, [0, 0]));
    let (is_quarantine, _) = alone.judge(&FAILED);
    assert_eq!((is_quarantine, alone.counted(), alone.may_use_mac_key()), (true, [0, 0], false));
    assert!(alone.is_written_down());
}

/// A node may be killed between the count and the quarantine that follows from it.
#[test]
fn a_node_whose_count_is_too_high_is_under_quarantine_after_its_start() {
    let [most, too_many] = [MAX_UNANSWERED - 1, MAX_UNANSWERED];
    for (protocol, nodes, failed, unanswered, is_quarantine) in [
        ("spdz-lt", 2, 0, most, false),
        ("spdz-lt", 2, 0, too_many, true),
        ("spdz-lt", 2, 1, 0, true),
        ("replicated-active", 3, 1, too_many, false),
    ] {
        let alone = Alone::start(protocol, nodes);
        alone.node.store.count_guesses(Guesses { failed, unanswered }).expect("counted");
        let alone = alone.restart();
        assert_eq!(alone.node.material.is_quarantined(), is_quarantine, "{protocol}: {failed}, {unanswered}");
    }
}

/// The count is kept until the disk has room, and the MAC key is not used.
#[test]
fn a_count_that_the_disk_refuses_is_not_forgotten() {
    for (error, is_quarantine, counted) in [(unanswered(), false, [0, 1]), (FAILED, true, [1, 0])] {
        let alone = Alone::start("spdz-lt", 2);
        alone.disk.fill_up();
        assert_eq!(alone.judge(&error).0, is_quarantine);
        assert_eq!((alone.counted(), alone.may_use_mac_key()), (counted, false), "{error}");
        assert!(alone.node.material.refuse_uncounted().is_err());
        alone.disk.make_room();
        alone.node.material.settle_quarantine();
        assert_eq!((alone.counted(), alone.may_use_mac_key()), (counted, !is_quarantine), "{error}");
        let stored = alone.node.store.guesses().expect("read");
        assert_eq!([stored.failed, stored.unanswered], counted);
        assert_eq!(alone.is_written_down(), is_quarantine);
    }
}

fn of(error: &Error) -> Option<Failure> {
    Failure::of(error, "keys moved", |node| format!("node-{}", node.index() + 1))
}

#[test]
fn a_check_that_names_two_nodes_names_them_in_the_reason_and_as_suspects_and_claims_no_more() {
    let error = Error::OneOfTwo { first: Party(2), second: Party(0), what: "shares of an output" };
    let failure = of(&error).expect("a check failed");
    assert_eq!(failure.suspects, ["node-1", "node-3"]);
    for part in ["while keys moved", "shares of an output", "node-1 or node-3", "this node's own disk"] {
        assert!(failure.reason.contains(part), "{}", failure.reason);
    }
    let error = Error::Peer { peer: Party(1), detail: "a wrong length".into() };
    let failure = of(&error).expect("it does not fit");
    assert!(failure.reason.starts_with("node-2 sent") && failure.suspects.is_empty());
    let failure = of(&Error::Counted(Box::new(error))).expect("it does not fit");
    assert!(failure.reason.starts_with("node-2 sent"), "{}", failure.reason);
    let failure = of(&Error::Equivocation { what: "openings" }).expect("a check failed");
    assert_eq!(failure.reason, "a node told others different things while keys moved");
}

#[test]
fn what_is_no_failed_check_of_the_session_is_none() {
    for error in [
        Error::CheckFailed { what: EARLIER_CHECK },
        Error::Unanswered { peer: Party(1), detail: "it is gone".into() },
        Error::Closed { peer: Party(1), detail: "it is gone".into() },
        Error::SharesDiffer { first: Party(0), second: Party(1), values: vec![0] },
        Error::System("no room".into()),
    ] {
        assert!(of(&error).is_none(), "{error}");
    }
}

#[test]
fn failed_checks_keep_keys_from_being_refreshed_only_from_a_mac_key() {
    let (store, _disk) = in_memory();
    store.count_guesses(Guesses { failed: 6, unanswered: 0 }).expect("counted");
    assert!(refuse_guessed(&store, true).is_err());
    assert_eq!(refuse_guessed(&store, false), Ok(()));
}
