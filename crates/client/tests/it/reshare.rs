//! All keys move to other nodes, and a node cheats while they do: nothing moves that is wrong, the cheater is
//! named where it can be, and without it the keys move.

use std::time::Duration;

use polyclave_api::Mode;
use polyclave_config::{Change, ClientDir, Cluster, Consent, NodeDir};
use polyclave_node::Cheat;
use polyclave_node::reshare::{Done, reshare, reshare_and_cheat};
use polyclave_protocol::authenticated::Guesses;
use polyclave_store::{Secret, Store};

use crate::common::active::fill;
use crate::common::messages::{open, seal};
use crate::common::{TestCluster, data, key};

/// How long nodes wait for one that has ended.
const WAIT: Duration = Duration::from_secs(30);

/// A cluster at rest with a key, what that has sealed, and the cluster that its keys are to move to.
struct Trial {
    cluster: TestCluster,
    sealed: Vec<u8>,
    new: Cluster,
}

impl Trial {
    fn begin((protocol, nodes): (&str, usize), to: &str, removed: &[&str]) -> Trial {
        let mut cluster = TestCluster::define_with(protocol, nodes, 1);
        cluster.set_stock(24, 0);
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let fill_stock = || match protocol {
            "replicated-active" => {}
            _ => fill(&cluster),
        };
        fill_stock();
        cluster.client().generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
        fill_stock();
        let sealed = seal(&cluster.client(), "k", &data(32)).expect("sealed");
        (0..nodes).for_each(|node| cluster.stop(node));
        let change = Change {
            removed: removed.iter().map(|name| (*name).to_owned()).collect(),
            protocol: Some(to.to_owned()),
            ..Change::default()
        };
        let new = cluster.file().reshaped(&change).expect("it fits");
        Trial { cluster, sealed, new }
    }

    /// Runs the move at all nodes, of which one may cheat. What each of them ends with.
    fn moved(&self, cheater: Option<(usize, Cheat)>) -> Vec<Result<Done, String>> {
        let run = |node: usize| {
            let dir = NodeDir::open(&self.cluster.local.nodes[node]).expect("its directory");
            let mut tell = |_: &str| {};
            let done = match cheater {
                Some((cheats, how)) if cheats == node => {
                    reshare_and_cheat(&dir, &self.new, None, (WAIT, how), &mut tell)
                }
                _ => reshare(&dir, &self.new, None, None, WAIT, &mut tell),
            };
            done.map_err(|e| e.to_string())
        };
        std::thread::scope(|scope| {
            let nodes = 0..self.cluster.nodes.len();
            let threads: Vec<_> = nodes.map(|node| scope.spawn(move || run(node))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }

    /// Nobody has anything of the new cluster; without a cheater the keys move, and are what they were.
    fn goes_on(mut self) {
        for node in 0..self.cluster.nodes.len() {
            assert_eq!(self.store(node).reshared().expect("read"), None, "nothing is prepared");
        }
        self.is_done();
        let client = ClientDir::open(&self.cluster.local.client).expect("its directory");
        client.set_cluster(&self.new, Consent::Cluster).expect("saved");
        for node in 0..self.cluster.nodes.len() {
            let name = format!("node-{}", node + 1);
            if self.new.card_named(&name).is_some() {
                self.cluster.restart(node);
            }
        }
        self.cluster.wait_until_ready();
        fill(&self.cluster);
        assert_eq!(open(&self.cluster.client(), "k", &self.sealed).expect("opened"), data(32));
    }

    fn is_done(&self) {
        for done in self.moved(None) {
            assert!(done.expect("all are honest").all);
        }
    }

    fn store(&self, node: usize) -> Store {
        let dir = NodeDir::open(&self.cluster.local.nodes[node]).expect("its directory");
        let secret = Secret::from_bytes(*dir.secret().expect("it has one"));
        Store::open(&dir.store_path(), &secret).expect("it opens")
    }
}

/// All honest nodes name the cheater.
fn is_named(outcomes: Vec<Result<Done, String>>, cheater: usize, why: &str) {
    let honest = outcomes.into_iter().enumerate().filter(|(node, _)| *node != cheater);
    for (_, outcome) in honest {
        let message = outcome.expect_err("nothing moves");
        assert!(message.contains(&format!("node-{}", cheater + 1)) && message.contains(why), "{message}");
    }
}

#[test]
fn a_dealer_of_shamir_active_that_deals_another_value_is_named_at_all_nodes() {
    let trial = Trial::begin(("shamir-active", 4), "shamir-active", &[]);
    for cheater in [0, 3] {
        let outcomes = trial.moved(Some((cheater, Cheat::InReshare)));
        is_named(outcomes, cheater, "something else than a sharing of its shares");
    }
    trial.goes_on();
}

#[test]
fn a_dealer_with_other_masks_for_new_nodes_of_another_protocol_is_named_at_all_nodes() {
    let trial = Trial::begin(("shamir-active", 4), "spdz-tower", &["node-3", "node-4"]);
    let outcomes = trial.moved(Some((1, Cheat::InReshare)));
    is_named(outcomes, 1, "other masks to the new nodes than to the old ones");
    trial.goes_on();
}

#[test]
fn a_node_of_shamir_active_that_uses_other_shares_is_outvoted_and_keys_move() {
    let trial = Trial::begin(("shamir-active", 4), "spdz-tower", &["node-1", "node-4"]);
    for (node, done) in trial.moved(Some((3, Cheat::WithOtherShares))).into_iter().enumerate() {
        assert_eq!(done.expect("it is corrected").left, [0, 3].contains(&node));
    }
}

#[test]
fn a_node_of_spdz_that_uses_other_shares_ends_the_move_and_counts_as_a_guess_at_the_key() {
    let trial = Trial::begin(("spdz-tower", 2), "tinytable-linear64", &[]);
    let outcomes = trial.moved(Some((1, Cheat::WithOtherShares)));
    let message = outcomes.into_iter().next().expect("two").expect_err("nothing moves");
    assert!(message.contains("check"), "{message}");
    let store = trial.store(0);
    assert_eq!(store.guesses().expect("read").failed, 1);
    assert!(store.quarantined().expect("read").expect("it is").reason.contains("moved to other nodes"));
    drop(store);
    trial.goes_on();
}

/// There is no MAC key, so nothing is counted. However often it happens, the keys can still move.
#[test]
fn a_node_of_replicated_active_that_uses_other_shares_ends_the_move_and_no_guess_is_counted() {
    let trial = Trial::begin(("replicated-active", 3), "spdz-tower", &["node-3"]);
    let outcomes = trial.moved(Some((1, Cheat::WithOtherShares)));
    assert!([0, 2].iter().all(|honest| outcomes[*honest].is_err()), "{outcomes:?}");
    let mut stopped = 0;
    for node in [0, 2] {
        let store = trial.store(node);
        assert_eq!(store.guesses().expect("read"), Guesses::default());
        let Some(quarantine) = store.quarantined().expect("read") else { continue };
        assert!(quarantine.reason.contains("moved to other nodes"), "{}", quarantine.reason);
        let dir = NodeDir::open(&trial.cluster.local.nodes[node]).expect("its directory");
        let log = std::fs::read_to_string(dir.audit_path()).expect("it is there");
        assert!(log.contains("quarantine"), "{log}");
        stopped += 1;
    }
    assert!(stopped > 0, "an honest node finds it: {outcomes:?}");
    // As many failures as no MAC key bears.
    for node in 0..3 {
        trial.store(node).count_guesses(Guesses { failed: 7, unanswered: 0 }).expect("counted");
    }
    trial.goes_on();
}
