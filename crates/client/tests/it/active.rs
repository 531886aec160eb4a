//! Four nodes under shamir-active, of which one may cheat, be silent or be gone: answers stay right.

use std::time::{Duration, Instant};

use polyclave_api::{Mode, Operation, Reason, Reply, Request, Step, Use, operations};

use crate::common::active::{AES_KEY, ecb_is_right, fill, listening, start, within};
use crate::common::messages::{cbc, cmac, ctr, ecb, gcm, open, seal, uncbc, unctr, unecb, ungcm};
use crate::common::oracle::{Oracle, filled};
use crate::common::raw::{Raw, request};
use crate::common::{TOGETHER, TestCluster, data, key, name_for};
use polyclave_client::{Error, Padding};
use polyclave_node::{Cheat, Running};
use polyclave_protocol::{Party, PartySet};

const DES_KEY: &[u8; 24] = b"0123456789abcdefghijklmn";

#[test]
fn every_mode_comes_back_and_is_what_another_program_makes() {
    let cluster = start(48, &[]);
    let (client, reason) = listening(&cluster);
    for (cipher, secret) in [("aes-128", &AES_KEY[..]), ("3des-ede3", &DES_KEY[..])] {
        let generated = format!("generated-{cipher}");
        let has_gcm = cipher == "aes-128";
        for modes in TOGETHER {
            let modes: Vec<Mode> =
                modes.iter().copied().filter(|mode| has_gcm || *mode != Mode::Gcm).collect();
            fill(&cluster);
            client.import(key(&name_for(cipher, modes[0]), cipher, &modes), secret).expect("imported");
            client.generate(key(&name_for(&generated, modes[0]), cipher, &modes)).expect("generated");
        }
        let oracle = Oracle::new(cipher, secret);
        let text = data(2 * oracle.block + 3);
        fill(&cluster);
        let (first, ciphertext) = ctr(&client, &name_for(cipher, Mode::Ctr), &text).expect("encrypted");
        assert_eq!(ciphertext, oracle.ctr(&first, &text));
        fill(&cluster);
        let stream = name_for(cipher, Mode::Cbc);
        let (initial, ciphertext) = cbc(&client, &stream, Padding::Pkcs7, &text).expect("encrypted");
        assert_eq!(ciphertext, oracle.cbc(&initial, &filled(&text, oracle.block)));
        for name in [cipher, &generated] {
            fill(&cluster);
            let (stream, single) = (name_for(name, Mode::Ctr), name_for(name, Mode::Ecb));
            let (first, ciphertext) = ctr(&client, &stream, &text).expect("encrypted");
            assert_eq!(unctr(&client, &stream, &first, &ciphertext).expect("decrypted"), text);
            fill(&cluster);
            let (initial, ciphertext) = cbc(&client, &stream, Padding::Pkcs7, &text).expect("encrypted");
            let back = uncbc(&client, &stream, Padding::Pkcs7, &initial, &ciphertext).expect("decrypted");
            assert_eq!(back, text);
            fill(&cluster);
            let ciphertext = ecb(&client, &single, Padding::Pkcs7, &text).expect("encrypted");
            assert_eq!(unecb(&client, &single, Padding::Pkcs7, &ciphertext).expect("decrypted"), text);
            fill(&cluster);
            assert_eq!(cmac(&client, name, &text).expect("a code").len(), oracle.block);
            if has_gcm {
                fill(&cluster);
                let sealed = seal(&client, name, &text).expect("sealed");
                assert_eq!(open(&client, name, &sealed).expect("opened"), text);
                let message = gcm(&client, name, b"more", &text).expect("encrypted");
                assert_eq!(ungcm(&client, name, b"more", &message).expect("decrypted"), text);
                let mut changed = sealed.clone();
                *changed.last_mut().expect("a tag") ^= 1;
                assert!(matches!(open(&client, name, &changed), Err(Error::Unauthentic(_))));
            }
        }
    }
    assert_eq!(*reason.lock(), Vec::<String>::new());
    let faults = cluster.nodes.iter().flatten().map(Running::status);
    assert!(faults.into_iter().all(|s| s.outvoted.is_empty() && s.silent.is_empty()), "nobody is accused");
}

#[test]
fn answers_are_right_without_any_one_node_and_the_client_says_that_correction_is_off() {
    let mut cluster = start(24, &[]);
    cluster.client().import(key("k", "aes-128", &[Mode::Ecb]), &AES_KEY).expect("imported");
    for node in 0..4 {
        fill(&cluster);
        let (client, message) = listening(&cluster);
        ecb_is_right(&client, "k");
        cluster.stop(node);
        // Over connections that it had with that node, and others.
        within(Duration::from_secs(20), "with old connections", || ecb_is_right(&client, "k"));
        within(Duration::from_secs(20), "without it", || ecb_is_right(&client, "k"));
        let message = message.lock().join("\n");
        assert!(
            message.contains(&format!("node-{}", node + 1)) && message.contains("Correction is off"),
            "{message}"
        );
        cluster.restart(node);
        cluster.wait_until_ready();
        // Before there is new material for all: with what the others still have. A node that has nothing and
        // leads is the cause of a refusal, and is left out by whoever asks again, as the command does once
        // for every node.
        let client = cluster.client();
        let ask = || ecb(&client, "k", Padding::None, &data(32));
        let mut answers = std::iter::repeat_with(ask).take(1 + 4);
        let answer = answers.find(|answer| !matches!(answer, Err(Error::Contested(_))));
        let block = answer.expect("not contested for ever").expect("encrypted");
        assert_eq!(block, Oracle::new("aes-128", &AES_KEY).ecb(&data(32)));
    }
}

#[test]
fn wrong_shares_in_openings_are_outvoted_and_named() {
    for cheater in [0, 2] {
        let cluster = start(24, &[(cheater, Cheat::InOpenings)]);
        let (client, message) = listening(&cluster);
        client.import(key("k", "aes-128", &[Mode::Ecb]), &AES_KEY).expect("imported");
        fill(&cluster);
        ecb_is_right(&client, "k");
        client.generate(key("generated", "aes-128", &[Mode::Gcm])).expect("generated");
        fill(&cluster);
        let sealed = seal(&client, "generated", &data(20)).expect("sealed");
        assert_eq!(open(&client, "generated", &sealed).expect("opened"), data(20));
        assert_eq!(*message.lock(), Vec::<String>::new(), "nobody was left out");
        let outvoted = [Party(cheater as u8)].into_iter().collect();
        for (number, node) in cluster.nodes.iter().flatten().enumerate().filter(|(n, _)| *n != cheater) {
            assert_eq!(node.status().outvoted, outvoted, "node {number}");
        }
    }
}

#[test]
fn wrong_bytes_to_the_client_are_corrected() {
    let cluster = start(24, &[(1, Cheat::InAnswers)]);
    let (client, message) = listening(&cluster);
    for modes in TOGETHER {
        client.import(key(&name_for("k", modes[0]), "aes-128", modes), &AES_KEY).expect("imported");
        fill(&cluster);
    }
    ecb_is_right(&client, "k-ecb");
    let oracle = Oracle::new("aes-128", &AES_KEY);
    let (first, ciphertext) = ctr(&client, "k-stream", &data(50)).expect("encrypted");
    assert_eq!(ciphertext, oracle.ctr(&first, &data(50)));
    fill(&cluster);
    let sealed = seal(&client, "k", &data(20)).expect("sealed");
    assert_eq!(open(&client, "k", &sealed).expect("opened"), data(20));
    assert_eq!(*message.lock(), Vec::<String>::new());
}

#[test]
fn a_stock_that_is_dry_is_told_and_nothing_else_is_tried() {
    let mut cluster = start(8, &[]);
    let (client, text) = listening(&cluster);
    client.generate(key("k", "aes-128", &[Mode::Ctr])).expect("generated");
    fill(&cluster);
    let refused = |len| match ctr(&client, "k", &data(len)) {
        Err(Error::Refused { refusal, .. }) => (refusal.reason, refusal.message),
        other => panic!("{:?}", other.map(|_| ())),
    };
    let (reason, message) = refused(16 * 9);
    assert!(reason == Reason::OutOfMaterial && message.contains("aes_blocks"), "{message}");
    assert_eq!(*text.lock(), Vec::<String>::new());
    // Nothing is made while a node is missing, so the second request must find the stock dry however fast the
    // nodes are.
    cluster.stop(3);
    ctr(&client, "k", &data(16 * 8)).expect("what the stock holds");
    let (reason, message) = refused(16 * 8);
    assert!(reason == Reason::OutOfMaterial && message.contains("the stock of the nodes holds"), "{message}");
    assert!(message.contains("not refilled while a node is missing"), "{message}");
    assert!(text.lock().iter().all(|text| text.starts_with("node-4 takes no part")), "{:?}", text.lock());
    cluster.restart(3);
    cluster.wait_until_ready();
    fill(&cluster);
    ctr(&client, "k", &data(16 * 8)).expect("when it is full again");
}

/// A client that does not reach the first node: its requests are served by the others, and only the first one
/// leads the making of material, from which nothing was taken.
#[test]
fn material_that_is_taken_without_the_first_node_is_made_again() {
    const BLOCKS: usize = 24;
    let cluster = start(BLOCKS, &[]);
    cluster.client().generate(key("k", "aes-128", &[Mode::Ctr])).expect("generated");
    fill(&cluster);
    let serving: PartySet = (1..4).map(Party).collect();
    let (mut served, until) = (0, Instant::now() + Duration::from_secs(60));
    while served < 4 * BLOCKS {
        assert!(Instant::now() < until, "{served} blocks, and then none");
        let how = Operation::Use(operations::UseKey { key: "k".into(), id: None, how: Use::CtrEncrypt });
        let asked = Request { serving, ..request(how, Some(Step::Keystream { bytes: 16 * 8 })) };
        let mut raw = Raw::call(&cluster);
        (1..4).for_each(|node| raw.tell(node, &asked));
        let data = |reply| matches!(reply, Some(Reply::Data { data, .. }) if !data.is_empty());
        // First that it is accepted.
        let given = (1..4).filter(|node| data(raw.reply(*node)) || data(raw.reply(*node))).count();
        served += if given == 3 { 8 } else { 0 };
    }
    fill(&cluster);
}

#[test]
fn requests_at_the_same_time_get_right_answers_while_a_node_goes() {
    let mut cluster = start(160, &[]);
    cluster.client().import(key("k", "aes-128", &[Mode::Ecb]), &AES_KEY).expect("imported");
    fill(&cluster);
    let at_once = |cluster: &TestCluster| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let client = cluster.client();
                    (0..4).for_each(|_| ecb_is_right(&client, "k"));
                });
            }
        });
    };
    at_once(&cluster);
    fill(&cluster);
    cluster.stop(0);
    within(Duration::from_secs(60), "without a node", || at_once(&cluster));
}

/// Told by the client that says different things to different nodes.
#[test]
fn a_client_that_equivocates_gets_nothing_computed() {
    let cluster = start(24, &[]);
    cluster.client().generate(key("k", "aes-128", &[Mode::Ctr])).expect("generated");
    fill(&cluster);
    let asked = |bytes| {
        let how = Operation::Use(operations::UseKey { key: "k".into(), id: None, how: Use::CtrEncrypt });
        request(how, Some(Step::Keystream { bytes }))
    };
    for victim in 0..4 {
        let (honest, mut other) = (asked(16), asked(32));
        (other.id, other.serving) = (honest.id, PartySet::all(4));
        let honest = Request { serving: PartySet::all(4), ..honest };
        let mut raw = Raw::call(&cluster);
        (0..4).for_each(|node| raw.tell(node, if node == victim { &other } else { &honest }));
        let endings = raw.endings();
        assert!(endings.iter().all(|e| !e.gave_data() && e.replies.is_empty()), "{victim}: {endings:?}");
    }
    // Later steps: told otherwise by twos nobody goes on, and one that is told otherwise stays behind.
    for (tells, going_on) in [([16, 16, 32, 32], 0), ([16, 32, 16, 16], 3)] {
        let mut raw = Raw::call(&cluster);
        raw.tell_all(&Request { first: None, serving: PartySet::all(4), ..asked(16) });
        assert!(raw.replies().iter().all(|reply| matches!(reply, Reply::Accepted { .. })));
        (0..4).for_each(|node| raw.tell(node, &Step::Keystream { bytes: tells[node] }));
        let gave = (0..4).filter(|node| matches!(raw.reply(*node), Some(Reply::Data { .. }))).count();
        assert_eq!(gave, going_on);
    }
    ctr(&cluster.client(), "k", &data(20)).expect("they go on serving");
}
