//! Nodes that give stored keys fresh shares: by the calendar, and with one that cheats.

use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey};
use polyclave_client::Client;
use polyclave_config::{ClientDir, Cluster, NodeDir, NodeSettings, StockSettings};
use polyclave_protocol::catalog;
use polyclave_store::{HeldKey, Secret, Store};

use crate::Running;
use crate::error::system;
use crate::local::{Local, create};
use crate::operator::admin::{Answer, Instruction, Status, order};

const PATIENCE: Duration = Duration::from_secs(60);

/// Nodes with the keys `sound` and `spoilt`.
pub(super) struct Trial {
    local: Local,
    pub(super) nodes: Vec<Running>,
    _dir: tempfile::TempDir,
}

impl Trial {
    pub(super) fn start(protocol: &str) -> Trial {
        let dir = tempfile::tempdir().expect("a directory");
        let threshold = catalog::find(protocol).expect("listed").threshold.most(3);
        let local = create(&dir.path().join("cluster"), protocol, 3, threshold).expect("made");
        // A standby pair that is given a key would find a changed share before the refresh.
        let without_pairs = |cluster: &mut Cluster| cluster.set_standby(false).map_err(system);
        local.change_cluster(without_pairs).expect("changed");
        let mut trial = Trial { local, nodes: Vec::new(), _dir: dir };
        for path in &trial.local.nodes {
            let mut node = NodeDir::open(path).expect("its directory");
            let stock = StockSettings::of(32, 0);
            node.set_settings(NodeSettings { stock, ..node.settings().clone() }).expect("saved");
            let secret = Secret::from_bytes(*node.secret().expect("its secret"));
            let store = Store::create(&node.store_path(), &secret).expect("made");
            // A refresh is due as soon as one is scheduled.
            store.note_secrets_since(1).expect("noted");
        }
        trial.restart();
        for key in ["sound", "spoilt"] {
            let new = || NewKey::for_modes(key, "aes-128", &[Mode::Cmac], 1000);
            // Nodes that need material may have too little yet.
            until("a key is made", || trial.client().generate(new()).is_ok());
        }
        trial
    }

    /// The shares of one of the keys at a node, changed while no node runs.
    fn spoil(&mut self, node: usize, how: impl Fn(&Store, [u8; 16])) {
        self.nodes.clear();
        let store = self.store(node);
        let spoilt = store.readable_keys().expect("read");
        let spoilt = spoilt.iter().find(|key| key.properties.name == "spoilt").expect("it is there");
        how(&store, spoilt.id);
    }

    /// Leaves the deletion of that key as a kill can leave it: some nodes have noted that it begins, and some
    /// of them have deleted the key.
    fn interrupt_deletion(&mut self, begun: &[usize], done: &[usize]) {
        for node in 0..3 {
            self.spoil(node, |store, id| {
                if begun.contains(&node) {
                    store.begin_deletion(&[id]).expect("noted");
                }
                if done.contains(&node) {
                    store.delete("spoilt", id).expect("deleted");
                }
            });
        }
        self.restart();
    }

    /// How many nodes hold that key, and at how many its deletion has begun.
    fn holders(&self) -> (usize, usize) {
        let held = |node: &Running| node.store.held_keys().expect("read");
        let is_it = |key: &HeldKey| key.info.as_ref().is_some_and(|info| info.properties.name == "spoilt");
        let all: Vec<HeldKey> = self.nodes.iter().flat_map(held).filter(is_it).collect();
        (all.len(), all.iter().filter(|key| key.deletion_begun).count())
    }

    /// Waits until a refresh that was ordered is done.
    pub(super) fn is_refreshed(&self, before: &[Option<String>]) {
        until("fresh secrets are in use", || self.secrets().iter().zip(before).all(|(new, old)| new != old));
        until("all are ready", || self.is_ready());
    }

    fn restart(&mut self) {
        self.nodes.clear();
        let node = |path| Running::start(NodeDir::open(path).expect("its directory")).expect("it starts");
        self.nodes = self.local.nodes.iter().map(|path| node(path)).collect();
        until("all are ready", || self.is_ready());
    }

    fn is_ready(&self) -> bool {
        self.nodes.iter().all(|node| node.is_ready() && node.status().connected.len() == 3)
    }

    fn store(&self, node: usize) -> Store {
        let dir = self.dir(node);
        let secret = Secret::from_bytes(*dir.secret().expect("its secret"));
        Store::open(&dir.store_path(), &secret).expect("its store")
    }

    fn dir(&self, node: usize) -> NodeDir {
        NodeDir::open(&self.local.nodes[node]).expect("its directory")
    }

    fn state(&self, node: usize) -> Status {
        match order(&self.dir(node), &Instruction::Status) {
            Ok(Some(Answer::Status(status))) => *status,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn order(&self) {
        for node in 0..3 {
            order(&self.dir(node), &Instruction::Rotate { approval: None, despite_failures: false })
                .expect("ordered");
        }
    }

    pub(super) fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.local.client).expect("its directory")).expect("a client")
    }

    fn code(&self) -> Vec<u8> {
        code(&self.client(), "sound")
    }

    pub(super) fn secrets(&self) -> Vec<Option<String>> {
        (0..3).map(|node| self.state(node).secrets).collect()
    }
}

pub(super) fn code(client: &Client, key: &str) -> Vec<u8> {
    let until = Instant::now() + PATIENCE;
    loop {
        match client.key(key).and_then(|key| key.cmac(&[7; 40])) {
            Ok(code) => return code.to_vec(),
            // Nodes that need material may have too little at the moment.
            Err(e) => assert!(e.may_pass() && Instant::now() < until, "{e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The order ends at all nodes with an error that names the key and two nodes. Then the nodes serve with the
/// other key, and refresh once the key is gone.
fn a_changed_share_ends_the_refresh(mut trial: Trial, order: impl Fn(&mut Trial)) {
    let (code, secrets) = (trial.code(), trial.secrets());
    // The second share of node-2 is the first one of node-3.
    trial.spoil(1, Store::change_share);
    order(&mut trial);
    let message = |node: usize| trial.state(node).refresh_trouble.unwrap_or_default();
    until("all nodes name the key", || (0..3).all(|node| message(node).contains("the key 'spoilt'")));
    for node in 0..3 {
        let message = message(node);
        assert!(
            message.starts_with("node-2 and node-3 hold different shares") && message.contains("backup"),
            "{message}"
        );
    }
    until("nobody wants it any more", || (0..3).all(|node| trial.state(node).rotating.is_empty()));
    until("all are ready", || trial.is_ready());
    assert_eq!(trial.code(), code);
    // It is not ordered again by itself, and nothing was taken into use.
    std::thread::sleep(Duration::from_secs(3));
    assert!(
        (0..3).all(|node| trial.state(node).rotating.is_empty() && trial.state(node).quarantine.is_none())
    );
    assert_eq!(trial.secrets(), secrets);

    trial.client().delete("spoilt").expect("deleted");
    trial.order();
    trial.is_refreshed(&secrets);
    assert_eq!(trial.code(), code);
}

#[test]
fn a_refresh_of_a_changed_share_ends_with_the_name_of_its_key_under_replicated_active() {
    a_changed_share_ends_the_refresh(Trial::start("replicated-active"), |trial| {
        trial.restart();
        trial.order();
    });
}

#[test]
fn a_scheduled_refresh_of_a_changed_share_ends_with_the_name_of_its_key_and_is_not_repeated() {
    a_changed_share_ends_the_refresh(Trial::start("replicated"), |trial| {
        for node in 0..3 {
            let mut dir = trial.dir(node);
            let mut settings = dir.settings().clone();
            settings.refresh.every_days = Some(1);
            dir.set_settings(settings).expect("saved");
        }
        trial.restart();
    });
}

#[test]
fn a_refresh_ends_at_a_node_that_cannot_read_its_share_and_the_nodes_serve() {
    let mut trial = Trial::start("shamir");
    let code = trial.code();
    trial.spoil(1, Store::damage_shares);
    trial.restart();
    trial.order();
    let message = || trial.state(1).refresh_trouble.unwrap_or_default();
    until("it names the key", || message().contains("the key 'spoilt' cannot be read"));
    let wants = |node: usize| trial.state(node).rotating.contains(&"node-2".into());
    until("that node wants it no more", || (0..3).all(|node| !wants(node)));
    until("all are ready", || trial.is_ready());
    assert_eq!(trial.code(), code);
    std::thread::sleep(Duration::from_secs(3));
    assert!((0..3).all(|node| !wants(node)));
}

/// Nobody repeats the deletion, and the name is free at all nodes afterwards.
fn a_refresh_completes_a_deletion(protocol: &str) {
    let mut trial = Trial::start(protocol);
    let (code, secrets) = (trial.code(), trial.secrets());
    trial.interrupt_deletion(&[0, 1, 2], &[1]);
    assert_eq!(trial.holders(), (2, 2));
    trial.order();
    trial.is_refreshed(&secrets);
    assert_eq!(trial.holders(), (0, 0));
    assert_eq!(trial.code(), code);
    trial
        .client()
        .generate(NewKey::for_modes("spoilt", "aes-128", &[Mode::Cmac], 1000))
        .expect("the name is free");
}

#[test]
fn a_refresh_completes_a_deletion_that_a_kill_interrupted_under_shamir() {
    a_refresh_completes_a_deletion("shamir");
}

#[test]
fn a_refresh_completes_a_deletion_that_a_kill_interrupted_under_replicated_active() {
    a_refresh_completes_a_deletion("replicated-active");
}

#[test]
fn a_refresh_gives_a_deletion_up_that_no_node_has_completed() {
    let mut trial = Trial::start("shamir");
    let (before, secrets) = (code(&trial.client(), "spoilt"), trial.secrets());
    trial.interrupt_deletion(&[0, 2], &[]);
    trial.order();
    trial.is_refreshed(&secrets);
    assert_eq!(trial.holders(), (3, 0));
    assert_eq!(code(&trial.client(), "spoilt"), before);
}

/// A node that says that it has deleted a key deletes it nowhere else.
#[test]
fn a_refresh_stops_at_a_key_that_one_node_has_deleted_and_another_never_agreed_to_delete() {
    let mut trial = Trial::start("shamir");
    let secrets = trial.secrets();
    trial.interrupt_deletion(&[0, 1], &[1]);
    trial.order();
    let message = |node: usize| trial.state(node).refresh_trouble.unwrap_or_default();
    until("all nodes say so", || (0..3).all(|node| message(node).contains("not all nodes hold the key")));
    assert_eq!(trial.holders(), (2, 1));
    assert_eq!(trial.secrets(), secrets);
}

pub(super) fn until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Nodes whose store says that their common secrets are from 1970: they refresh as soon as they run, once,
/// and count from then on.
#[test]
fn a_refresh_that_is_due_by_the_settings_is_ordered_when_all_nodes_have_it_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let local = create(&dir.path().join("cluster"), "shamir", 3, 1).expect("made");
    let scheduled = |days: Option<u32>, path| {
        let mut node = NodeDir::open(path).expect("its directory");
        let mut settings = node.settings().clone();
        settings.refresh.every_days = days;
        node.set_settings(settings).expect("saved");
    };
    let start = || -> Vec<Running> {
        let node = |path| Running::start(NodeDir::open(path).expect("its directory")).expect("it starts");
        local.nodes.iter().map(|path| node(path)).collect()
    };
    for path in &local.nodes {
        let node = NodeDir::open(path).expect("its directory");
        let secret = Secret::from_bytes(*node.secret().expect("its secret"));
        let store = Store::create(&node.store_path(), &secret).expect("made");
        store.note_secrets_since(1).expect("noted");
    }
    scheduled(Some(1), &local.nodes[0]);
    let nodes = start();
    let is_ready =
        |nodes: &[Running]| nodes.iter().all(|node| node.is_ready() && node.status().connected.len() == 3);
    until("all are ready", || is_ready(&nodes));
    until("one wants it", || nodes[1].status().rotating.len() == 1);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(nodes[0].store.secrets_since().expect("read"), Some(1), "the others do not");

    let client = Client::open(&ClientDir::open(&local.client).expect("its directory")).expect("a client");
    client.generate(NewKey::for_modes("k", "aes-128", &[Mode::Cmac], 1000)).expect("made");
    let code = |client: &Client| client.key("k").and_then(|key| key.cmac(&[7; 40])).expect("computed");
    let before = code(&client);
    drop(nodes);
    local.nodes.iter().for_each(|path| scheduled(Some(1), path));
    let nodes = start();
    until("it is done", || nodes.iter().all(|node| node.store.secrets_since().expect("read") > Some(1)));
    until("all are ready", || is_ready(&nodes));
    let id = |node: &Running| node.store.setup().expect("read").expect("there").id;
    let first = id(&nodes[0]);
    assert_eq!(
        code(&Client::open(&ClientDir::open(&local.client).expect("there")).expect("a client")),
        before
    );
    std::thread::sleep(Duration::from_secs(2));
    assert!(nodes.iter().all(|node| id(node) == first && node.status().rotating.is_empty()), "once a day");
}
