//! Nodes that give stored keys fresh shares: by the calendar, and with one that cheats.

use std::time::{Duration, Instant};

use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_transport::wire::{Mode, NewKey};

use crate::Running;
use crate::local::create;
use crate::store::{Secret, Store};

const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Nodes whose store says that their common secrets are from 1970: they refresh as soon as they run, once, and count from then on.
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
    let code = |client: &Client| client.cmac("k", &mut &[7; 40][..], &mut |_| ()).expect("computed");
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
