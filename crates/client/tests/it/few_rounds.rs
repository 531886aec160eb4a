//! Three nodes under `replicated-active`, and two under `spdz-tower`, that think they are far from each
//! other: a few blocks at a time go through garbled circuits, in every mode, and nobody gets a wrong one.

use std::cell::{Cell, RefCell};

use polyclave_api::{KeyInfo, Mode, NewKey, Reason, Right, Usage, Wrapping};
use polyclave_client::{Client, Error, Padding, Result};
use polyclave_config::{LatencySettings, NodeDir};
use polyclave_node::Cheat;
use polyclave_node::admin::{Answer, Instruction, Status, order};
use polyclave_payments::{Command, Purpose};
use polyclave_transport::Identity;

use crate::common::active::start_cheating;
use crate::common::from_keys::{kek, wrappable};
use crate::common::messages::{
    cbc, cmac, ctr, decrypt_siv, ecb, encrypt_siv, gcm, open, seal, uncbc, unctr, unecb, ungcm,
};
use crate::common::oracle::Oracle;
use crate::common::{TestCluster, data, insist, key, name_for};
use crate::hmac::of_another_program;

/// More requests than it takes to know how far the nodes are.
const FIRST: usize = 8;

/// A protocol with circuits, its nodes, and how many of them may cheat.
type Under = (&'static str, usize, usize);

const OF_THREE: Under = ("replicated-active", 3, 1);
const OF_TWO: Under = ("spdz-tower", 2, 1);

/// Nodes that take every distance for far.
fn start(under: Under) -> TestCluster {
    start_with(under, LatencySettings { from_ms: 0, circuits: Some(32) }, 64)
}

/// Nodes with material for so many blocks, where requests take other material, too.
fn start_with((protocol, nodes, threshold): Under, latency: LatencySettings, stock: usize) -> TestCluster {
    let mut cluster = TestCluster::define_with(protocol, nodes, threshold);
    cluster.set_stock(stock, 16);
    for path in &cluster.local.nodes {
        let mut node = NodeDir::open(path).expect("its directory");
        let mut settings = node.settings().clone();
        settings.latency = latency.clone();
        node.set_settings(settings).expect("saved");
    }
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    cluster
}

fn status(cluster: &TestCluster, node: usize) -> Status {
    let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
    match order(&dir, &Instruction::Status) {
        Ok(Some(Answer::Status(status))) => *status,
        other => panic!("{other:?}"),
    }
}

/// How many circuits of each kind a node has of those that somebody asked for.
fn circuits(cluster: &TestCluster, node: usize) -> Vec<(String, u64)> {
    let kinds = status(cluster, node).stock.into_iter().filter(|kind| kind.kind.starts_with("garbled"));
    kinds.map(|kind| (kind.kind, kind.blocks)).collect()
}

fn blocks(cluster: &TestCluster) -> u64 {
    status(cluster, 0).latency.expect("the protocol has circuits").blocks
}

/// Asks until circuits are there for what is asked.
fn warm(cluster: &TestCluster, request: &dyn Fn()) {
    (0..FIRST).for_each(|_| request());
    cluster.wait_until(|| {
        let before = blocks(cluster);
        request();
        blocks(cluster) > before
    });
}

/// A request of which some blocks go through circuits, once there are enough for it.
fn few<T>(cluster: &TestCluster, what: &str, request: impl FnOnce() -> Result<T>) -> T {
    let enough = || circuits(cluster, 0).iter().all(|(_, blocks)| *blocks >= 16);
    cluster.wait_until(enough);
    let mut outcome = None;
    let blocks = through(cluster, || outcome = Some(request()));
    assert!(blocks > 0, "{what} went in rounds");
    outcome.expect("it was asked").unwrap_or_else(|e| panic!("{what}: {e}"))
}

/// How many blocks went through circuits in a request.
fn through(cluster: &TestCluster, request: impl FnOnce()) -> u64 {
    let before = blocks(cluster);
    request();
    blocks(cluster) - before
}

#[test]
fn few_blocks_go_through_circuits_of_three_in_every_mode_and_are_the_same() {
    every_mode(OF_THREE);
}

#[test]
fn few_blocks_go_through_circuits_of_two_in_every_mode_and_are_the_same() {
    every_mode(OF_TWO);
}

fn every_mode(under: Under) {
    let cluster = start(under);
    let client = cluster.client();
    // Its nodes compute in rounds, under another protocol. Several tests share them, so names have to differ.
    let (others, nodes) = (TestCluster::shared(), under.1);
    let by_rounds = others.client();
    for (cipher, secret) in [("aes-128", data(16)), ("aes-256", data(32)), ("3des-ede3", data(24))] {
        let name = |mode: Mode| name_for(&format!("{nodes}-few-rounds-{cipher}"), mode);
        let modes: &[&[Mode]] = match cipher {
            "3des-ede3" => &[&[Mode::Cmac], &[Mode::Cbc], &[Mode::Ecb]],
            _ => &[&[Mode::Gcm, Mode::Cmac], &[Mode::Ctr, Mode::Cbc], &[Mode::Ecb]],
        };
        for modes in modes {
            for client in [&client, &by_rounds] {
                client.import(key(&name(modes[0]), cipher, modes), &secret).expect("imported");
            }
        }
        let one = data(if cipher == "3des-ede3" { 8 } else { 16 });
        let by_ecb = |client: &Client| ecb(client, &name(Mode::Ecb), Padding::None, &one).expect("encrypted");
        warm(&cluster, &|| drop(by_ecb(&client)));
        let encrypted = by_ecb(&client);
        assert_eq!(encrypted, Oracle::new(cipher, &secret).ecb(&one), "{cipher}");
        let decrypted = || unecb(&client, &name(Mode::Ecb), Padding::None, &encrypted).expect("decrypted");
        warm(&cluster, &|| assert_eq!(decrypted(), one, "{cipher}"));

        let mac = cmac(&by_rounds, &name(Mode::Cmac), &data(40)).expect("computed");
        assert_eq!(few(&cluster, "cmac", || cmac(&client, &name(Mode::Cmac), &data(40))), mac, "{cipher}");
        let encrypt = || cbc(&client, &name(Mode::Cbc), Padding::Pkcs7, &data(33));
        let (initial, text) = few(&cluster, "cbc", encrypt);
        for client in [&client, &by_rounds] {
            let plain = uncbc(client, &name(Mode::Cbc), Padding::Pkcs7, &initial, &text).expect("decrypted");
            assert_eq!(plain, data(33), "{cipher}");
        }
        if cipher == "3des-ede3" {
            continue;
        }
        let (counter, text) = few(&cluster, "ctr", || ctr(&client, &name(Mode::Ctr), &data(33)));
        assert_eq!(unctr(&by_rounds, &name(Mode::Ctr), &counter, &text).expect("decrypted"), data(33));
        let message = few(&cluster, "gcm", || gcm(&client, &name(Mode::Gcm), b"to", &data(33)));
        for client in [&client, &by_rounds] {
            assert_eq!(ungcm(client, &name(Mode::Gcm), b"to", &message).expect("authentic"), data(33));
        }
        let mut wrong = message.clone();
        *wrong.last_mut().expect("a tag") ^= 1;
        assert!(matches!(ungcm(&client, &name(Mode::Gcm), b"to", &wrong), Err(Error::Unauthentic(_))));
        let sealed = few(&cluster, "a sealed file", || seal(&client, &name(Mode::Gcm), &data(20)));
        assert_eq!(open(&client, &name(Mode::Gcm), &sealed).expect("opened"), data(20));
    }

    let by_mode = |mode: Mode| format!("{nodes}-few-rounds-{mode}");
    for (mode, len) in [(Mode::Siv, 32), (Mode::Ccm, 16), (Mode::GcmSiv, 16)] {
        for client in [&client, &by_rounds] {
            client.import(key(&by_mode(mode), "aes-128", &[mode]), &data(len)).expect("a key");
        }
    }
    let [siv, ccm, gcm_siv] = [Mode::Siv, Mode::Ccm, Mode::GcmSiv].map(by_mode);
    let (siv, ccm, gcm_siv) = (&siv[..], &ccm[..], &gcm_siv[..]);
    let additional = [b"with".to_vec()];
    let message = few(&cluster, "siv", || encrypt_siv(&client, siv, &additional, &data(21)));
    assert_eq!(message, encrypt_siv(&by_rounds, siv, &additional, &data(21)).expect("encrypted"));
    assert_eq!(decrypt_siv(&client, siv, &additional, &message).expect("authentic")[..], data(21)[..]);
    let message = few(&cluster, "ccm", || client.key(ccm)?.ccm().aad(b"with").encrypt(&data(21)));
    let opened = by_rounds.key(ccm).and_then(|key| key.ccm().aad(b"with").decrypt(&message));
    assert_eq!(opened.expect("authentic")[..], data(21)[..]);
    let message = few(&cluster, "gcm-siv", || client.key(gcm_siv)?.gcm_siv().aad(b"with").encrypt(&data(21)));
    let opened = by_rounds.key(gcm_siv).and_then(|key| key.gcm_siv().aad(b"with").decrypt(&message));
    assert_eq!(opened.expect("authentic")[..], data(21)[..]);
    let xaes = &by_mode(Mode::Xaes)[..];
    for client in [&client, &by_rounds] {
        client.import(key(xaes, "aes-256", &[Mode::Xaes]), &data(32)).expect("a key");
    }
    let message = few(&cluster, "xaes", || client.key(xaes)?.xaes().aad(b"with").encrypt(&data(21)));
    let opened = by_rounds.key(xaes).and_then(|key| key.xaes().aad(b"with").decrypt(&message));
    assert_eq!(opened.expect("authentic")[..], data(21)[..]);
    let opened = few(&cluster, "xaes", || client.key(xaes)?.xaes().aad(b"with").decrypt(&message));
    assert_eq!(opened[..], data(21)[..]);
}

/// A block of Triple DES with two keys under one key, and another one under another.
#[test]
fn payment_commands_go_through_circuits() {
    for under in [OF_THREE, OF_TWO] {
        let cluster = start(under);
        let client = cluster.client();
        let secrets = [1, 2].map(|more| data(16).iter().map(|byte| byte ^ more).collect::<Vec<u8>>());
        for (name, secret) in ["from", "to"].iter().zip(&secrets) {
            let usage = vec![Usage::Payment(Purpose::PinEncryption)];
            let new = NewKey { usage, ..NewKey::for_modes(name, "3des-ede2", &[], 1 << 20) };
            client.import(new, secret).expect("a key");
        }
        // The PIN 1234 and the number of the card 4000001234562.
        let pin = b"\x04\x12\x74\xff\xff\xed\xcb\xa9";
        let [from, to] = secrets.each_ref().map(|secret| Oracle::new("3des-ede2", secret).ecb(pin));
        let command: Command = serde_json::from_value(serde_json::json!({ "translate-pin": {
            "incoming": { "format": "iso0", "block": hex::encode(from), "key": "direct" },
            "pan": "4000001234562",
            "outgoing": { "format": "iso0", "key": "direct" },
        }}))
        .expect("a command");
        let translated = || client.pay(&["from", "to"], &command);
        warm(&cluster, &|| assert_eq!(*translated().expect("paid").expect("it holds"), to[..]));
        assert_eq!(through(&cluster, || drop(translated())), 2, "{under:?}");
    }
}

/// Round keys and check values of AES; those of Triple DES are selections of the key.
#[test]
fn keys_are_made_brought_along_and_unwrapped_through_circuits() {
    for under in [OF_THREE, OF_TWO] {
        let cluster = start(under);
        let client = cluster.client();
        client.generate(kek("kek", 32)).expect("a key");
        client.import(wrappable("leaves", "aes-128", &[Mode::Ecb]), &data(16)).expect("imported");
        let number = Cell::new(0);
        let name = || {
            number.set(number.get() + 1);
            format!("key-{}", number.get())
        };
        let new = |cipher: &str| key(&name(), cipher, &[Mode::Ecb]);
        let check = |made: KeyInfo, cipher: &str, secret: &[u8]| {
            let found = ecb(&client, &made.properties.name, Padding::None, &data(16)).expect("encrypted");
            assert_eq!(found, Oracle::new(cipher, secret).ecb(&data(16)), "{under:?} {cipher}");
        };
        for cipher in ["aes-128", "aes-256"] {
            let secret = data(if cipher == "aes-128" { 16 } else { 32 });
            warm(&cluster, &|| drop(client.generate(new(cipher)).expect("made")));
            check(few(&cluster, "import", || client.import(new(cipher), &secret)), cipher, &secret);
            few(&cluster, "generate", || client.generate(new(cipher)));
        }
        // Its hash key and its subkeys are made through circuits, too.
        let of_messages = key(&name(), "aes-128", &[Mode::Gcm, Mode::Cmac]);
        let made = few(&cluster, "import", || client.import(of_messages, &data(16))).properties.name;
        let message = gcm(&client, &made, b"to", &data(33)).expect("encrypted");
        let (others, same) = (TestCluster::shared(), format!("{}-{made}", under.0));
        others.client().import(key(&same, "aes-128", &[Mode::Gcm, Mode::Cmac]), &data(16)).expect("imported");
        assert_eq!(ungcm(&others.client(), &same, b"to", &message).expect("authentic"), data(33));
        let code = cmac(&others.client(), &same, &data(40)).expect("computed");
        assert_eq!(cmac(&client, &made, &data(40)).expect("computed"), code);
        let wrapped = client.wrap("kek", "leaves", Wrapping::Kw).expect("wrapped");
        let unwrap = || client.unwrap("kek", &wrapped, Wrapping::Kw, new("aes-128"));
        warm(&cluster, &|| drop(unwrap().expect("unwrapped")));
        check(few(&cluster, "unwrap", unwrap), "aes-128", &data(16));
    }
}

/// One takes hundreds of rounds.
#[test]
fn compressions_of_hashes_go_through_circuits_also_where_nodes_are_near() {
    for under in [OF_THREE, OF_TWO] {
        // Far means more than any distance.
        let cluster = start_with(under, LatencySettings { from_ms: 60_000, circuits: Some(32) }, 1024);
        let client = cluster.client();
        insist(&|| client.import(key("hash", "hmac-sha-256", &[Mode::Hmac]), &data(40)));
        client.import(key("block", "aes-128", &[Mode::Ecb]), &data(16)).expect("imported");
        let of = |messages: &[Vec<u8>]| {
            let all: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            let codes = insist(&|| client.key("hash").and_then(|key| key.hmac(&all, 32)));
            for (message, code) in messages.iter().zip(&codes) {
                assert_eq!(code[..], of_another_program(&data(40), message), "{under:?} {}", message.len());
            }
        };
        cluster.wait_until(|| through(&cluster, || of(&[data(3)])) > 0);
        for (lengths, compressions) in
            [(vec![55], 2), (vec![64], 3), (vec![119], 3), (vec![7, 7, 7, 7, 7], 10)]
        {
            cluster.wait_until(|| circuits(&cluster, 0).iter().all(|(_, left)| *left >= 16));
            let messages: Vec<Vec<u8>> = lengths.iter().map(|len| data(*len)).collect();
            assert_eq!(through(&cluster, || of(&messages)), compressions, "{under:?} {lengths:?}");
        }
        if under == OF_THREE {
            // Between two nodes it would take more triples than a test should make.
            assert_eq!(through(&cluster, || of(&[data(1408)])), 0, "it would use up all circuits");
        }
        let block = || drop(ecb(&client, "block", Padding::None, &data(16)).expect("encrypted"));
        assert_eq!(through(&cluster, block), 0, "few rounds");
    }
}

#[test]
fn many_blocks_go_through_rounds_and_so_do_few_once_no_circuit_is_left() {
    [OF_THREE, OF_TWO].into_iter().for_each(many_and_few);
}

fn many_and_few(under: Under) {
    let cluster = start(under);
    let client = cluster.client();
    client.import(key("k", "aes-128", &[Mode::Ecb]), &data(16)).expect("imported");
    let asked = |count: usize| {
        let blocks = ecb(&client, "k", Padding::None, &data(16 * count)).expect("encrypted");
        assert_eq!(blocks, Oracle::new("aes-128", &data(16)).ecb(&data(16 * count)));
    };
    warm(&cluster, &|| asked(1));
    assert_eq!(through(&cluster, || asked(9)), 0, "more than is worth it");
    cluster.wait_until(|| circuits(&cluster, 0).iter().any(|(_, blocks)| *blocks >= 8));
    assert_eq!(through(&cluster, || asked(8)), 8);
    // Faster than they are made: where none is left it goes on in rounds, and no request fails.
    (0..60).for_each(|_| asked(3));
    let status = status(&cluster, 0);
    let latency = status.latency.expect("the protocol has circuits");
    assert!(latency.round_trip_ms.is_some() && latency.from_ms == 0 && latency.blocks > 8, "{latency:?}");
    let of_circuits = circuits(&cluster, 0);
    let kinds: Vec<&str> = of_circuits.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["garbled circuits of AES-128"], "of what nobody asked for there is none");
}

#[test]
fn requests_to_three_begin_in_one_round_also_after_a_refusal_and_with_a_node_that_has_started_again() {
    begin_in_one_round(OF_THREE);
}

#[test]
fn requests_to_two_begin_in_one_round_also_after_a_refusal_and_with_a_node_that_has_started_again() {
    begin_in_one_round(OF_TWO);
}

/// The first of a channel takes two rounds.
fn begin_in_one_round(under: Under) {
    let (mut cluster, nodes) = (start(under), under.1);
    let client = cluster.client();
    client.import(key("k", "aes-128", &[Mode::Ecb]), &data(16)).expect("imported");
    let right = Oracle::new("aes-128", &data(16)).ecb(&data(16));
    let of = |client: &Client| ecb(client, "k", Padding::None, &data(16));
    warm(&cluster, &|| drop(insist(&|| of(&client))));
    let at_once = |cluster: &TestCluster| {
        (0..nodes).map(|node| status(cluster, node).latency.expect("it has circuits").at_once).min()
    };
    let goes_on = |cluster: &TestCluster| {
        let before = at_once(cluster);
        cluster.wait_until(|| {
            assert_eq!(insist(&|| of(&client)), right);
            at_once(cluster) > before
        });
    };
    goes_on(&cluster);

    // The last node allows it less than the others do.
    let identity = Identity::generate_named("partly", 1).expect("an identity");
    let partly = cluster.client_of("partly", &identity);
    let (others, last) = cluster.local.nodes.split_at(nodes - 1);
    cluster.allow_at(others, "partly", &[Right::Encrypt], &["k"]);
    cluster.allow_at(last, "partly", &[Right::Decrypt], &["k"]);
    cluster.wait_until(|| partly.status().iter().all(|(_, status)| status.is_ok()));
    for _ in 0..12 {
        assert_eq!(of(&client).expect("all nodes serve it"), right);
        let refused = of(&partly).expect_err("one node refuses it");
        assert!(
            matches!(&refused, Error::Refused { refusal, .. } if refusal.reason == Reason::Denied),
            "{refused}"
        );
    }
    // What was claimed for them is spent at all nodes.
    cluster.wait_until(|| (1..nodes).all(|node| circuits(&cluster, node) == circuits(&cluster, 0)));
    goes_on(&cluster);

    for node in 0..nodes {
        cluster.stop(node);
        cluster.restart(node);
        cluster.wait_until_ready();
        goes_on(&cluster);
        // Circuits ended with the epoch, and new ones are used.
        warm(&cluster, &|| assert_eq!(insist(&|| of(&client)), right));
    }
}

#[test]
fn nodes_that_are_near_make_no_circuits() {
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    (0..3).for_each(|node| {
        let mut dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
        let mut settings = dir.settings().clone();
        settings.latency = LatencySettings { from_ms: 60_000, circuits: None };
        dir.set_settings(settings).expect("saved");
        cluster.restart(node);
    });
    cluster.wait_until_ready();
    let client = cluster.client();
    client.generate(key("k", "aes-128", &[Mode::Gcm])).expect("made");
    for _ in 0..2 * FIRST {
        gcm(&client, "k", b"to", b"a message").expect("encrypted");
    }
    let status = status(&cluster, 0);
    let latency = status.latency.expect("the protocol has circuits");
    assert!(latency.round_trip_ms.is_some() && latency.blocks == 0, "{latency:?}");
    assert_eq!(latency.at_once, 0, "rounds of a hello are short here, and a channel need not be closed");
    assert!(status.stock.is_empty(), "{:?}", status.stock);
}

/// A key of which a check fails is not stored.
#[test]
fn a_node_that_cheats_in_circuits_makes_no_key_wrong() {
    for (under, cheater, finder) in [(OF_THREE, 1, 2), (OF_TWO, 0, 1)] {
        let mut cluster = start(under);
        let client = cluster.client();
        let (number, kept) = (Cell::new(0), RefCell::new(Vec::new()));
        while_it_cheats(&mut cluster, (cheater, finder), || {
            number.set(number.get() + 1);
            let name = format!("key-{}", number.get());
            client.import(key(&name, "aes-128", &[Mode::Ecb]), &data(16))?;
            // In rounds, while there are no circuits yet.
            kept.borrow_mut().push(name);
            Ok(())
        });
        let right = Oracle::new("aes-128", &data(16)).ecb(&data(16));
        assert!(!kept.borrow().is_empty(), "{under:?}");
        for name in kept.borrow().iter().chain([&format!("key-{}", number.get())]) {
            let found = insist(&|| match ecb(&client, name, Padding::None, &data(16)) {
                Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::NoSuchKey => Ok(None),
                found => found.map(Some),
            });
            assert!(found.is_none_or(|found| found == right), "{under:?}, {name}");
        }
    }
}

/// Asks a cluster in which a node cheats until the finder is under quarantine. Then the node is honest again,
/// and the cluster has fresh shares.
fn while_it_cheats(
    cluster: &mut TestCluster,
    (cheater, finder): (usize, usize),
    ask: impl Fn() -> Result<()>,
) {
    cluster.stop(cheater);
    start_cheating(cluster, cheater, Cheat::InCircuits);
    cluster.wait_until_ready();
    cluster.wait_until(|| match ask() {
        Err(Error::Refused { refusal, .. }) => refusal.reason == Reason::Quarantined,
        _ => false,
    });
    cluster.wait_until(|| status(cluster, finder).quarantine.is_some());
    cluster.stop(cheater);
    cluster.restart(cheater);
    cluster.refresh();
}

/// Whichever node it is: a garbler changes labels, the evaluator what it tells of the output.
#[test]
fn a_node_that_cheats_in_circuits_is_found_and_stops_the_others() {
    // The first garbler finds the evaluator, and the evaluator a garbler.
    for (under, cheater, finder) in
        [(OF_THREE, 0, 2), (OF_THREE, 1, 2), (OF_THREE, 2, 0), (OF_TWO, 0, 1), (OF_TWO, 1, 0)]
    {
        let mut cluster = start(under);
        let client = cluster.client();
        client.import(key("k", "aes-128", &[Mode::Ecb]), &data(16)).expect("imported");
        let right = Oracle::new("aes-128", &data(16)).ecb(&data(16));
        let ask = || ecb(&client, "k", Padding::None, &data(16));
        while_it_cheats(&mut cluster, (cheater, finder), || {
            assert_eq!(ask()?, right, "in rounds, while there are no circuits yet");
            Ok(())
        });
        assert_eq!(insist(&ask), right, "after a refresh");
        warm(&cluster, &|| assert_eq!(insist(&ask), right, "in circuits of the new epoch"));
    }
}
