//! Tests in which the first node gives orders and does nothing else, or is of another release.

use std::thread;
use std::time::{Duration, Instant};

use polyclave_api::{self as api, Mode, NewKey};
use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir, StockSettings};
use polyclave_transport::{Identity, Limits, Mesh, Node};

use polyclave_protocol::Party;
use polyclave_protocol::versions::{FeatureSet, NODES};
use polyclave_store::{Secret, Store};
use polyclave_transport::TlsNet;

use super::orders::{Beat, Greeting, Order, State, control_stream};
use super::registry::BEAT_EVERY;
use crate::Running;
use crate::local::create;
use crate::operator::admin::{Answer, Instruction, order};

const PATIENCE: Duration = Duration::from_secs(90);

/// Takes the first node's place, with its keys.
fn take_place(dir: &NodeDir) -> (Mesh, Greeting) {
    let cluster = dir.cluster().expect("readable").expect("in one");
    let secret = Secret::from_bytes(*dir.secret().expect("readable"));
    let store = Store::open(&dir.store_path(), &secret).expect("opened");
    let greeting = Greeting {
        cluster: cluster.lasting_digest(),
        past: store.begin_incarnation().and_then(|_| store.past()).expect("counted"),
        holds: 0,
        setup: store.setup().expect("readable").expect("agreed on").id,
        prepared: [0; 32],
        state: State::default(),
        release: "9.9.9".into(),
        knows: FeatureSet::default(),
        lists: [0; 32],
    };
    let identity = Identity::from_der(&dir.identity().certificate, &dir.identity().key).expect("its own");
    let address = |card: &polyclave_config::Card| Node {
        address: card.address.clone(),
        certificates: card.certificates.clone(),
    };
    let nodes: Vec<Node> = cluster.cards().iter().map(address).collect();
    let listen = dir.settings().listen.clone();
    let mesh = Mesh::start(listen.as_str(), identity, Limits::default(), Party(0), &nodes, cluster.id());
    (mesh.expect("started"), greeting)
}

/// Gives orders in the first node's place. The streams stay open as long as this is held.
fn order_all(dir: &NodeDir, orders: &[Order]) -> Vec<TlsNet> {
    let (mesh, greeting) = take_place(dir);
    let order = |peer: Party| {
        let both = [Party(0), peer].into_iter().collect();
        let mut net =
            mesh.open(&control_stream(Party(0), peer), both, Duration::from_secs(20)).expect("open");
        greeting.exchange(peer, &mut net).expect("greeted");
        orders.iter().for_each(|order| api::send(&mut net, peer, order).expect("sent"));
        net
    };
    let nodes = dir.cluster().expect("readable").expect("in one").nodes();
    Party::all(nodes).skip(1).map(order).collect()
}

#[test]
fn a_node_whose_clock_differs_from_that_of_most_peers_is_not_ready_and_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let local = create(&dir.path().join("cluster"), "spdz-lt", 2, 1).expect("a cluster");
    let open = |node: usize| NodeDir::open(&local.nodes[node]).expect("its directory");
    let mut nodes: Vec<Running> = (0..2).map(|n| Running::start(open(n)).expect("started")).collect();
    let until = Instant::now() + PATIENCE;
    while !nodes.iter().all(|node| node.status().set_up) {
        assert!(Instant::now() < until, "no common secrets");
        thread::sleep(BEAT_EVERY / 5);
    }
    drop(nodes.remove(0));
    let later = crate::clock::now() + 3 * 3600;
    let beat = Order::Beat(Beat { now: later, ..Beat::default() });
    let _streams = order_all(&open(0), &[beat]);
    loop {
        let message = nodes[0].why_not_ready().unwrap_or_default();
        if message.contains("minutes behind that of node-1") {
            break;
        }
        assert!(Instant::now() < until, "{message:?}");
        thread::sleep(BEAT_EVERY / 5);
    }
}

#[test]
fn orders_of_one_node_cost_the_others_no_stock() {
    let dir = tempfile::tempdir().expect("a directory");
    let local = create(&dir.path().join("cluster"), "shamir-active", 4, 1).expect("a cluster");
    for path in &local.nodes {
        let mut node = NodeDir::open(path).expect("its directory");
        let mut settings = node.settings().clone();
        settings.stock = StockSettings::of(24, 6);
        node.set_settings(settings).expect("saved");
    }
    let open = |node: usize| NodeDir::open(&local.nodes[node]).expect("its directory");
    let mut nodes: Vec<Running> = (0..4).map(|n| Running::start(open(n)).expect("started")).collect();
    let is_full = |node: &Running| {
        let stock = node.status().stock;
        !stock.is_empty() && stock.iter().all(|kind| kind.blocks >= kind.level)
    };
    let until_full = |nodes: &[Running]| {
        let until = Instant::now() + PATIENCE;
        while !nodes.iter().all(is_full) {
            assert!(Instant::now() < until, "not full");
            thread::sleep(BEAT_EVERY / 5);
        }
    };
    until_full(&nodes);
    let client = || Client::open(&ClientDir::open(&local.client).expect("readable")).expect("a client");
    client().generate(NewKey::for_modes("k", "aes-128", &[Mode::Cmac], 1000)).expect("made");
    until_full(&nodes);
    let mac = || client().key("k").and_then(|key| key.cmac(&[7; 40]));
    let before = mac().expect("computed");

    drop(nodes.remove(0));
    let count = u32::MAX;
    let fills: Vec<Order> =
        (0..8).map(|kind| Order::Fill { name: [kind; 16], kind, count, request: None }).collect();
    // Nobody has asked this node for others' material, and there is no such kind.
    let for_others = |kind| Order::Fill { name: [kind; 16], kind, count, request: Some([kind; 16]) };
    let fills: Vec<Order> = fills.into_iter().chain([8, u8::MAX].map(for_others)).collect();
    let _streams = order_all(&open(0), &fills);
    thread::sleep(2 * BEAT_EVERY);
    assert_eq!(mac().expect("computed by the others"), before);
}

/// It says that it is of a release that does not exist, and speaks the same wire.
#[test]
fn a_peer_of_another_release_is_connected_and_the_status_says_what_it_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let local = create(&dir.path().join("cluster"), "shamir", 3, 1).expect("a cluster");
    let open = |node: usize| NodeDir::open(&local.nodes[node]).expect("its directory");
    let mut nodes: Vec<Running> = (0..3).map(|n| Running::start(open(n)).expect("started")).collect();
    let until = Instant::now() + PATIENCE;
    while !nodes.iter().all(Running::is_ready) {
        assert!(Instant::now() < until, "not ready");
        thread::sleep(BEAT_EVERY / 5);
    }
    drop(nodes.remove(0));
    let (mesh, greeting) = take_place(&open(0));
    let both = [Party(0), Party(1)].into_iter().collect();
    // Both streams: only then is it connected.
    let streams = [(Party(0), Party(1)), (Party(1), Party(0))].map(|(from, to)| {
        let mut net =
            mesh.open(&control_stream(from, to), both, Duration::from_secs(20)).expect("it is there");
        greeting.exchange(Party(1), &mut net).expect("greeted");
        net
    });
    let program = loop {
        assert!(Instant::now() < until, "it is not connected");
        let status = order(&open(1), &Instruction::Status);
        let Ok(Some(Answer::Status(status))) = status else { panic!("{status:?}") };
        if let Some(program) = status.programs.get("node-1") {
            break program.clone();
        }
        thread::sleep(BEAT_EVERY / 5);
    };
    assert_eq!((program.version.as_str(), program.wire), ("9.9.9", NODES.spoken().newest));
    drop(streams);
}
