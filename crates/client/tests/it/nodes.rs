//! Nodes that stop, come back, were rolled back, or are not who they should be.

use std::time::{Duration, Instant};

use polyclave_api::{CHUNK, Mode};
use polyclave_store::{Secret, Store};

use crate::common::messages::{gcm, open, seal, ungcm};
use crate::common::{TestCluster, data, key};
use polyclave_client::Error;
use polyclave_config::{Cluster, Consent, NodeDir};
use polyclave_node::Running;
use polyclave_protocol::Party;
use polyclave_transport::Identity;

fn connected(cluster: &TestCluster, node: usize, with: usize) -> bool {
    cluster.nodes[node].as_ref().is_some_and(|n| n.status().connected.contains(Party(with as u8)))
}

#[test]
fn three_of_five_nodes_go_on_and_those_that_come_back_serve_again() {
    let mut cluster = TestCluster::start(5, 1);
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    let message = gcm(&client, "k", b"", &data(100)).expect("encrypted");
    for (first, second) in [(0, 3), (1, 2)] {
        cluster.stop(first);
        cluster.stop(second);
        for client in [&client, &cluster.client()] {
            let again = gcm(client, "k", b"", &data(50)).expect("three are enough");
            assert_eq!(ungcm(client, "k", b"", &again).expect("decrypted"), data(50));
            assert_eq!(ungcm(client, "k", b"", &message).expect("decrypted"), data(100));
        }
        for (outcome, what) in [
            (client.generate(key("new", "aes-128", &[Mode::Gcm])).err(), "generated"),
            (client.import(key("new", "aes-128", &[Mode::Gcm]), &[1; 16]).err(), "imported"),
            (client.delete("k").err(), "deleted"),
        ] {
            let text = outcome.unwrap_or_else(|| panic!("{what} without a node")).to_string();
            let named = |node: usize| text.contains(&format!("node-{}", node + 1));
            assert!(named(first) && named(second), "{text}");
        }
        cluster.restart(first);
        cluster.restart(second);
        cluster.wait_until_ready();
    }
    client.generate(key("new", "aes-128", &[Mode::Gcm])).expect("all are there again");
    for stopped in 0..3 {
        cluster.stop(stopped);
    }
    let text = gcm(&client, "k", b"", b"x").expect_err("two are too few").to_string();
    assert!(text.starts_with("2 of 5 nodes can be asked, 3 are needed"), "{text}");
}

#[test]
fn a_node_that_dies_in_the_middle_of_a_file_is_named_and_a_second_attempt_succeeds() {
    let mut cluster = TestCluster::start(5, 1);
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    let long = data(40 * CHUNK);
    let victim = cluster.nodes[1].take();
    let mut victim = victim.map(|victim| (victim, None::<std::thread::JoinHandle<()>>));
    let began = Instant::now();
    let mut out = Vec::new();
    let outcome = client.seal("k", &mut &long[..], &mut out, &mut |done| {
        if done > 2 * CHUNK as u64
            && let Some((node, _)) = victim.take()
        {
            victim = None;
            std::thread::spawn(move || drop(node));
        }
    });
    if let Err(e) = outcome {
        assert!(e.may_pass(), "{e}");
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    let short = &long[..5 * CHUNK];
    let sealed = seal(&client, "k", short).expect("others are asked");
    assert!(open(&client, "k", &sealed).expect("opened") == short);
}

#[test]
fn a_node_with_other_terms_in_its_cluster_file_is_refused() {
    let mut cluster = TestCluster::start(5, 1);
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    cluster.stop(4);
    let file = cluster.local.nodes[4].join("cluster.toml");
    let text = std::fs::read_to_string(&file).expect("read");
    let other = text.replace("name = \"node-4\"", "name = \"node-x\"");
    assert_ne!(text, other);
    let other = Cluster::parse(&other).expect("it is a cluster");
    other.save(&file).expect("written");
    cluster.restart(4);
    std::thread::sleep(Duration::from_secs(3));
    assert!((0..4).all(|node| !connected(&cluster, node, 4) && !connected(&cluster, 4, node)));
    gcm(&client, "k", b"", b"x").expect("the others go on");
    assert!(client.generate(key("new", "aes-128", &[Mode::Gcm])).is_err());
}

#[test]
fn a_node_that_was_rolled_back_is_refused_until_it_is_readmitted() {
    let mut cluster = TestCluster::start(5, 1);
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    let victim = NodeDir::open(&cluster.local.nodes[4]).expect("its directory");
    cluster.stop(4);
    let files = [victim.store_path(), victim.audit_path()];
    let old = files.each_ref().map(|file| std::fs::read(file).expect("read"));
    cluster.restart(4);
    cluster.wait_until_ready();
    cluster.stop(4);
    // Its own log would show that the store is older, so the log is put back as well.
    files.iter().zip(old).for_each(|(file, old)| std::fs::write(file, old).expect("put back"));
    cluster.restart(4);
    std::thread::sleep(Duration::from_secs(3));
    assert!((0..4).all(|node| !connected(&cluster, node, 4)), "it was let in");
    gcm(&client, "k", b"", b"x").expect("the others go on");
    cluster.stop(4);
    for node in 0..4 {
        cluster.stop(node);
        let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
        let secret = Secret::from_bytes(*dir.secret().expect("its secret"));
        let store = Store::open(&dir.store_path(), &secret).expect("opened");
        store.readmit(Party(4)).expect("readmitted");
        drop(store);
        cluster.restart(node);
    }
    cluster.restart(4);
    cluster.wait_until_ready();
    client.generate(key("new", "aes-128", &[Mode::Gcm])).expect("all serve again");
}

#[test]
fn an_impostor_on_the_port_of_a_stopped_node_is_not_accepted() {
    let mut cluster = TestCluster::start(5, 1);
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    cluster.stop(0);
    // It has everything of the node but its key.
    let own = NodeDir::open(&cluster.local.nodes[0]).expect("its directory");
    let other = Identity::generate_named("node-1", 30).expect("an identity");
    let path = cluster.local.nodes[0].with_file_name("impostor");
    let card = NodeDir::init(&path, own.settings(), &other.certificate(), &other.reveal_private_key())
        .expect("made");
    let mut file = cluster.file();
    file.replace(card).expect("it fits");
    let impostor = NodeDir::open(&path).expect("its directory");
    impostor.set_cluster(&file, Consent::None).expect("joined");
    impostor.save_policy(&own.policy().expect("a policy")).expect("saved");
    let running = Running::start(impostor).expect("it starts");
    std::thread::sleep(Duration::from_secs(3));
    assert!((1..5).all(|node| !connected(&cluster, node, 0)));
    let (_, status) = client.status().remove(0);
    let message = status.expect_err("the client sees it, too").to_string();
    assert!(message.contains("not the one"), "{message}");
    gcm(&client, "k", b"", b"x").expect("the others go on");
    drop(running);
}

#[test]
fn an_expired_certificate_is_refused_with_the_reason() {
    let cluster = TestCluster::shared();
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key pair");
    let mut parameters = rcgen::CertificateParams::default();
    (parameters.not_before, parameters.not_after) =
        (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(2002, 1, 1));
    let certificate = parameters.self_signed(&pair).expect("a certificate");
    let identity = Identity::from_der(certificate.der(), &pair.serialize_der()).expect("an identity");
    let client = cluster.client_of("expired", &identity);
    cluster.allow("expired", &polyclave_api::Right::ALL, &["*"]);
    let message = client.keys().expect_err("its time is over").to_string();
    assert!(message.contains("expired"), "{message}");

    let own = NodeDir::open(&cluster.local.nodes[0]).expect("its directory");
    let path = cluster.local.nodes[0].with_file_name("expired-node");
    let mut settings = own.settings().clone();
    (settings.listen, settings.client_listen, settings.http_listen) =
        ("127.0.0.1:0".into(), "127.0.0.1:0".into(), None);
    let card = NodeDir::init(&path, &settings, &identity.certificate(), &identity.reveal_private_key());
    let mut file = cluster.file();
    file.replace(card.expect("made")).expect("it fits");
    let node = NodeDir::open(&path).expect("its directory");
    node.set_cluster(&file, Consent::None).expect("joined");
    let message = Running::start(node).err().expect("it does not start").to_string();
    assert!(message.contains("expired"), "{message}");
}

#[test]
fn stopping_and_starting_again_at_once_finds_the_store_and_the_ports_free() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("a key");
    for round in 0..4 {
        gcm(&client, "k", b"", b"x").expect("served");
        let began = Instant::now();
        cluster.stop(round % 3);
        assert!(began.elapsed() < Duration::from_secs(10), "stopping took {:?}", began.elapsed());
        cluster.restart(round % 3);
        cluster.wait_until_ready();
        assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
        let mut outcome = gcm(&client, "k", b"", b"x");
        if let Err(Error::Connection { .. }) = outcome {
            outcome = gcm(&client, "k", b"", b"x");
        }
        outcome.expect("served again, by new connections");
    }
}
