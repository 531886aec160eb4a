//! Requests that take long: in how much memory they are computed, what their clients are told meanwhile, and
//! that nobody computes for a client that is gone.

mod common;

use std::time::{Duration, Instant};

use common::messages::{ctr, ecb, unctr, unecb};
use common::oracle::Oracle;
use common::raw::{Raw, request};
use common::{TestCluster, data, insist, key};
use polyclave_api::{CHUNK, End, Mode, Operation, Reason, Reply, Request, Step, Use, operations};
use polyclave_cipher::hmac::{Sha2, name};
use polyclave_client::{Error, Padding};
use polyclave_config::{NodeDir, NodeLimits};
use polyclave_node::Running;
use polyclave_node::admin::{Answer, Instruction, order};
use polyclave_protocol::PartySet;

/// The cipher of most ANDs.
const SLOW: &str = "skinny-128-384";
/// Blocks of a chunk of it.
const BLOCKS: u64 = CHUNK as u64 / 16;

/// Three nodes with other limits.
fn start(limits: impl Fn(usize, &mut NodeLimits)) -> TestCluster {
    let mut cluster = TestCluster::define(3, 1);
    for (number, path) in cluster.local.nodes.iter().enumerate() {
        let mut node = NodeDir::open(path).expect("its directory");
        let mut settings = node.settings().clone();
        limits(number, &mut settings.limits);
        node.set_settings(settings).expect("saved");
    }
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    cluster
}

/// Small parts of memory, so that what is computed has many pieces.
fn with_small_pieces() -> TestCluster {
    start(|_, limits| limits.memory_per_request_mib = 1)
}

/// Memory that this process has held at most since it was last asked.
fn most_memory_mib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a size");
    let kib: usize = most.trim().trim_end_matches("kB").trim().parse().expect("a number");
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
    kib >> 10
}

/// A chunk of 32,768 blocks. By masked tables it would take 3.4 GB at every node, and longer than a client
/// waits.
#[test]
fn a_chunk_of_triple_des_is_computed_in_little_memory() {
    let cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    let secret: Vec<u8> = (1..=24).collect();
    client.import(key("k", "3des-ede3", &[Mode::Ctr]), &secret).expect("a key");
    most_memory_mib();
    let (first, ciphertext) = ctr(&client, "k", &data(CHUNK)).expect("encrypted");
    // Three nodes, and what tests that run at the same time take.
    let most = most_memory_mib();
    assert!(most < 1000, "{most} MiB");
    assert!(ciphertext == Oracle::new("3des-ede3", &secret).ctr(&first, &data(CHUNK)));
    assert!(unctr(&client, "k", &first, &ciphertext).expect("decrypted") == data(CHUNK));
}

#[test]
fn what_is_computed_in_pieces_is_what_another_program_computes() {
    let cluster = with_small_pieces();
    let client = cluster.client();
    let secret: Vec<u8> = (1..=24).collect();
    client.import(key("k", "3des-ede3", &[Mode::Ctr, Mode::Ecb]), &secret).expect("a key");
    let oracle = Oracle::new("3des-ede3", &secret);
    let (first, ciphertext) = ctr(&client, "k", &data(60_001)).expect("encrypted");
    assert!(ciphertext == oracle.ctr(&first, &data(60_001)), "public blocks");
    let ciphertext = ecb(&client, "k", Padding::None, &data(40_000)).expect("encrypted");
    assert!(ciphertext == oracle.ecb(&data(40_000)), "blocks under a mask");
    assert!(unecb(&client, "k", Padding::None, &ciphertext).expect("decrypted") == data(40_000));
    client.generate(key("a", "aes-128", &[Mode::Gcm])).expect("a key");
    let sealed = common::messages::seal(&client, "a", &data(CHUNK + 5)).expect("sealed");
    assert!(common::messages::open(&client, "a", &sealed).expect("opened") == data(CHUNK + 5));
}

/// Has all nodes compute a chunk of the slow cipher.
fn ask_for_a_slow_chunk(cluster: &TestCluster) -> Raw {
    let mut raw = Raw::call(cluster);
    let operation = Operation::Use(operations::UseKey { key: "k".into(), id: None, how: Use::CtrEncrypt });
    raw.tell_all(&request(operation, None));
    assert!(raw.replies().iter().all(|reply| matches!(reply, Reply::Accepted { .. })));
    raw.tell_all(&Step::Keystream { bytes: CHUNK as u32 });
    raw
}

#[test]
fn a_client_is_told_that_its_nodes_work_and_how_far_they_are() {
    let cluster = with_small_pieces();
    cluster.client().generate(key("k", SLOW, &[Mode::Ctr])).expect("a key");
    // Requests beside it make it take seconds on any machine.
    let _beside: Vec<Raw> = (0..5).map(|_| ask_for_a_slow_chunk(&cluster)).collect();
    let mut raw = ask_for_a_slow_chunk(&cluster);
    for node in 0..3 {
        let mut message = Vec::new();
        let bytes = loop {
            match raw.reply(node) {
                Some(Reply::Working { done, of }) => message.push((done, of)),
                Some(Reply::Data { data, .. }) => break data.len(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(bytes, CHUNK);
        assert!(!message.is_empty() && message.is_sorted(), "{message:?}");
        assert!(message.iter().all(|(done, of)| done < of && *of == BLOCKS), "{message:?}");
    }
}

/// Waits until no node computes any more; how many blocks each has computed.
fn computed_when_idle(cluster: &TestCluster) -> Vec<u64> {
    let computed = || cluster.nodes.iter().flatten().map(|node| node.computed_blocks()).collect::<Vec<_>>();
    let until = Instant::now() + Duration::from_secs(60);
    let (mut last, mut since) = (computed(), Instant::now());
    while since.elapsed() < Duration::from_secs(2) {
        assert!(Instant::now() < until, "they compute for ever: {last:?}");
        std::thread::sleep(Duration::from_millis(50));
        let now = computed();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    last
}

#[test]
fn nodes_stop_computing_for_a_client_that_is_gone() {
    let cluster = with_small_pieces();
    cluster.client().generate(key("k", SLOW, &[Mode::Ctr])).expect("a key");
    let before = computed_when_idle(&cluster);
    drop(ask_for_a_slow_chunk(&cluster));
    for (after, before) in computed_when_idle(&cluster).into_iter().zip(before) {
        // All of them would be computed if nobody noticed. How soon depends on the machine.
        assert!(after - before < BLOCKS, "{after} blocks after {before}");
    }
    // One node misses its client, and the others hear of it.
    let before = computed_when_idle(&cluster);
    let mut raw = ask_for_a_slow_chunk(&cluster);
    raw.hang_up(1);
    for node in [0, 2] {
        let ending = raw.ending(node);
        assert!(!ending.gave_data() && ending.message().starts_with("Unavailable"), "{ending:?}");
    }
    for (after, before) in computed_when_idle(&cluster).into_iter().zip(before) {
        // All of them would be computed if nobody noticed. How soon depends on the machine.
        assert!(after - before < BLOCKS, "{after} blocks after {before}");
    }
    let client = cluster.client();
    let (first, ciphertext) = ctr(&client, "k", b"still there").expect("encrypted");
    assert_eq!(unctr(&client, "k", &first, &ciphertext).expect("decrypted"), b"still there");
}

/// Messages of which codes are computed together.
const CODES: u32 = 4;

/// Has both nodes of `spdz-tower` compute codes of HMAC. They make the material for that on the way, so they
/// are in the middle of a check nearly all the time.
fn ask_for_codes(cluster: &TestCluster) -> Raw {
    let mut raw = Raw::call(cluster);
    let how = Use::Hmac(operations::Hmac { bytes: 0, messages: CODES, code_bytes: 32 });
    let operation = Operation::Use(operations::UseKey { key: "k".into(), id: None, how });
    raw.tell_all(&Request { serving: PartySet::all(2), ..request(operation, None) });
    raw.replies();
    let bytes = CODES as usize * Sha2::Sha256.block_bytes();
    raw.tell_all(&Step::Masked { data: vec![0; bytes], next: 0, end: End::No });
    raw
}

/// What a node says in place of a sign that it works.
fn answer(raw: &mut Raw, node: usize) -> Option<Reply> {
    loop {
        match raw.reply(node) {
            Some(Reply::Working { .. }) => {}
            answer => return answer,
        }
    }
}

/// A node that falls silent in a check is counted as if it had cheated, and the epoch ends. A client that
/// hangs up on one node must not cause that, at whatever moment it does so.
#[test]
fn no_check_is_left_without_an_answer_because_a_client_is_gone() {
    let mut cluster = TestCluster::define_with("spdz-tower", 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    insist(&|| cluster.client().generate(key("k", name(Sha2::Sha256), &[Mode::Hmac])));
    let are_ready = || cluster.nodes.iter().flatten().all(Running::is_ready);
    let mut ended_early = 0;
    for moment in 0..12 {
        let mut raw = ask_for_codes(&cluster);
        std::thread::sleep(Duration::from_millis(70 * moment));
        raw.hang_up(1);
        ended_early += usize::from(!matches!(answer(&mut raw, 0), Some(Reply::Data { .. })));
        // An epoch takes longer than that to make.
        for _ in 0..20 {
            assert!(are_ready(), "the epoch has ended: {moment}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert!(ended_early > 0, "the nodes end requests early");
    for path in &cluster.local.nodes {
        let dir = NodeDir::open(path).expect("its directory");
        let Ok(Some(Answer::Status(status))) = order(&dir, &Instruction::Status) else { panic!("no status") };
        assert_eq!((status.checks_failed, status.checks_unanswered), (0, 0));
    }
}

#[test]
fn nodes_stop_computing_for_a_request_that_another_thread_ends() {
    let cluster = with_small_pieces();
    let client = cluster.client();
    client.generate(key("k", SLOW, &[Mode::Ctr])).expect("a key");
    let before = computed_when_idle(&cluster);
    let one = client.for_some_requests();
    let ended = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ctr(&one, "k", &data(CHUNK)));
        let computes =
            || cluster.nodes.iter().flatten().zip(&before).any(|(node, n)| node.computed_blocks() > *n);
        cluster.wait_until(computes);
        one.halt();
        asked.join().expect("no panic")
    });
    assert!(matches!(ended, Err(Error::Ended)), "{:?}", ended.map(|(_, data)| data.len()));
    for (after, before) in computed_when_idle(&cluster).into_iter().zip(before) {
        // All of them would be computed if nobody noticed. How soon depends on the machine.
        assert!(after - before < BLOCKS, "{after} blocks after {before}");
    }
    assert!(matches!(ctr(&one, "k", b"more"), Err(Error::Ended)), "it asks nothing any more");
    let (first, ciphertext) = ctr(&client, "k", b"others go on").expect("encrypted");
    assert_eq!(unctr(&client, "k", &first, &ciphertext).expect("decrypted"), b"others go on");
}

#[test]
fn more_clients_than_the_memory_has_parts_are_served_in_turn() {
    let cluster = start(|_, limits| limits.memory_mib = 2 * limits.memory_per_request_mib);
    let client = cluster.client();
    client.generate(key("k", "3des-ede3", &[Mode::Ctr])).expect("a key");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (first, ciphertext) = ctr(&client, "k", &data(20_000)).expect("encrypted");
                assert!(unctr(&client, "k", &first, &ciphertext).expect("decrypted") == data(20_000));
            });
        }
    });
}

/// They would cut differently, and get out of step.
#[test]
fn nodes_with_different_parts_of_memory_serve_nothing_together_and_say_why() {
    let cluster = start(|number, limits| limits.memory_per_request_mib = [16, 8, 16][number]);
    let refused = cluster.client().generate(key("k", "aes-128", &[Mode::Ctr])).expect_err("they differ");
    let Error::Refused { refusal, .. } = &refused else { panic!("{refused}") };
    assert_eq!(refusal.reason, Reason::Disagreement);
    assert!(refused.to_string().contains("memory_per_request_mib"), "{refused}");
}
