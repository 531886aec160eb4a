//! Clients that tell nodes different things, or what makes no sense: nothing is computed, and the nodes go on
//! serving.

use std::time::{Duration, Instant};

use polyclave_api::{CHUNK, End, Mode, NewKey, Operation, Reply, Request, Step, Use, VERSION, operations};

use crate::common::messages::gcm;
use crate::common::raw::{Ending, Raw, request, use_of};
use crate::common::{TestCluster, data, key};
use polyclave_client::Listed;
use polyclave_protocol::PartySet;

fn using(how: Use) -> Operation {
    use_of("k", how)
}

/// Attacks, looks how the nodes ended it, and that they go on serving, all within a time.
fn attack(cluster: &TestCluster, what: &str, attack: impl FnOnce(&mut Raw)) -> Vec<Ending> {
    let began = Instant::now();
    let mut raw = Raw::call(cluster);
    attack(&mut raw);
    let endings = raw.endings();
    drop(raw);
    gcm(&cluster.client(), "k", b"", b"and afterwards").expect("they go on serving");
    assert!(began.elapsed() < Duration::from_secs(20), "{what} took {:?}", began.elapsed());
    endings
}

/// Every node refused because of a difference, or because of what it was told itself; nobody computed
/// anything for the client.
fn assert_different(what: &str, endings: &[Ending]) {
    for (node, ending) in endings.iter().enumerate() {
        let message = ending.message();
        assert!(!ending.gave_data(), "{what}: node {node} computed: {ending:?}");
        assert!(!message.is_empty(), "{what}: node {node} gave no reason");
    }
    let different = |e: &&Ending| e.message().contains("Disagreement");
    assert!(endings.iter().filter(different).count() >= 2, "{what}: {endings:?}");
}

#[test]
fn a_node_that_is_told_another_request_stops_all_before_anything_is_computed() {
    let cluster = TestCluster::shared_with_keys(&["k", "l"]);
    let gcm = |additional: &[u8]| using(Use::GcmEncrypt { additional: additional.to_vec(), nonce: None });
    let keystream = |bytes| Some(Step::Keystream { bytes });
    let opened = |file, tag, last| {
        let step = Step::Open { ciphertext: data(16), tag: [tag; 16], last };
        request(using(Use::Open { file: [file; 32], additional: None }), Some(step))
    };
    let counter = |last| using(Use::CtrDecrypt { counter: [&[0; 15][..], &[last]].concat() });
    let named = |name: &str| use_of(name, Use::CtrEncrypt);
    let new = |name: &str, budget_blocks| {
        Operation::Generate(operations::Generate {
            new: NewKey { budget_blocks, ..key(name, "aes-128", &[Mode::Ctr]) },
        })
    };
    let nonce = |last| {
        let mut nonce = [0; 12];
        nonce[11] = last;
        request(
            using(Use::GcmDecrypt { nonce: nonce.to_vec(), additional: vec![] }),
            Some(Step::Absorb { ciphertext: data(16) }),
        )
    };
    let blocks = |fill| {
        request(
            using(Use::EcbDecrypt { tweak: Vec::new() }),
            Some(Step::Blocks { ciphertext: vec![fill; 32] }),
        )
    };
    let pairs: Vec<(&str, Request, Request)> = vec![
        ("another key", request(named("k"), keystream(16)), request(named("l"), keystream(16))),
        ("an unknown key", request(named("k"), keystream(16)), request(named("m"), keystream(16))),
        (
            "another use",
            request(using(Use::Seal { additional: None }), keystream(16)),
            request(gcm(b""), keystream(16)),
        ),
        (
            "another count",
            request(using(Use::CtrEncrypt), keystream(16)),
            request(using(Use::CtrEncrypt), keystream(32)),
        ),
        (
            "no first step",
            request(using(Use::CtrEncrypt), keystream(16)),
            request(using(Use::CtrEncrypt), None),
        ),
        ("other additional data", request(gcm(b"a"), keystream(16)), request(gcm(b"b"), keystream(16))),
        ("another counter", request(counter(1), keystream(16)), request(counter(2), keystream(16))),
        ("another nonce", nonce(1), nonce(2)),
        ("other ciphertext", blocks(1), blocks(2)),
        ("another file", opened(1, 1, true), opened(2, 1, true)),
        ("another tag", opened(1, 1, true), opened(1, 2, true)),
        (
            "another end",
            request(using(Use::CbcEncrypt { mask: 16, initial: None }), None),
            request(using(Use::CbcEncrypt { mask: 32, initial: None }), None),
        ),
        ("another new key", request(new("n1", 10), None), request(new("n2", 10), None)),
        ("another budget", request(new("n", 10), None), request(new("n", 11), None)),
        (
            "another operation",
            request(new("n", 10), None),
            request(Operation::Delete(operations::Delete { key: "n".into(), version: None }), None),
        ),
    ];
    for (turn, (what, honest, mut other)) in pairs.into_iter().enumerate() {
        other.id = honest.id;
        let victim = turn % 3;
        let endings = attack(&cluster, what, |raw| {
            (0..3).for_each(|node| raw.tell(node, if node == victim { &other } else { &honest }));
        });
        assert_different(what, &endings);
        assert!(endings.iter().all(|e| e.replies.is_empty()), "{what}: someone accepted");
    }
    let listed = cluster.client().keys().expect("a list").keys;
    // Other tests make keys of other names at the same time.
    let made = |key: &Listed| ["n", "n1", "n2"].contains(&key.info.properties.name.as_str());
    assert!(!listed.iter().any(made), "{listed:?}");
}

#[test]
fn nodes_that_are_told_different_serving_sets_or_ids_do_not_begin() {
    let cluster = TestCluster::shared_with_keys(&["k", "l"]);
    let honest = request(using(Use::CtrEncrypt), Some(Step::Keystream { bytes: 16 }));
    // Nodes wait for the one that leads as long as the client does: so all at once.
    std::thread::scope(|scope| {
        for (turn, bits) in [0b011, 0b101, 0b110, 0b100, 0, 0b1111, u16::MAX].into_iter().enumerate() {
            let cluster = &cluster;
            scope.spawn(move || {
                let honest = request(using(Use::CtrEncrypt), Some(Step::Keystream { bytes: 16 }));
                let other = Request { serving: PartySet::from_bits(bits), ..honest.clone() };
                let endings = attack(cluster, "another serving set", |raw| {
                    (0..3).for_each(|node| raw.tell(node, if node == turn % 3 { &other } else { &honest }));
                });
                assert!(endings.iter().all(|e| e.replies.is_empty() && e.refusal.is_some()), "{endings:?}");
            });
        }
    });
    let other = Request { version: VERSION + 1, ..honest.clone() };
    let endings = attack(&cluster, "another version", |raw| {
        (0..3).for_each(|node| raw.tell(node, if node == 1 { &other } else { &honest }));
    });
    assert!(endings[1].message().contains(&format!("version {}", VERSION + 1)), "{endings:?}");
    assert!(endings.iter().all(|e| e.replies.is_empty()), "{endings:?}");
}

#[test]
fn a_node_that_is_told_another_step_stops_all_before_it_is_computed() {
    let cluster = TestCluster::shared_with_keys(&["k", "l"]);
    let masked = |fill, next, end| Step::Masked { data: vec![fill; 16], next, end };
    let pairs: [(&str, Operation, Step, Step); 7] = [
        ("count", using(Use::CtrEncrypt), Step::Keystream { bytes: 16 }, Step::Keystream { bytes: 32 }),
        ("finish", using(Use::CtrEncrypt), Step::Keystream { bytes: 16 }, Step::Finish),
        (
            "masked data",
            using(Use::CbcEncrypt { mask: 16, initial: None }),
            masked(1, 0, End::No),
            masked(2, 0, End::No),
        ),
        (
            "next mask",
            using(Use::EcbEncrypt { mask: 16, tweak: Vec::new() }),
            masked(1, 0, End::No),
            masked(1, 16, End::No),
        ),
        ("end", using(Use::Cmac { mask: 16 }), masked(1, 0, End::Whole), masked(1, 0, End::Filled)),
        (
            "chi",
            Operation::Import(operations::Import { new: key("n", "aes-128", &[Mode::Ctr]) }),
            Step::Chi { chi: [1; 16] },
            Step::Chi { chi: [2; 16] },
        ),
        (
            "tag",
            using(Use::GcmDecrypt { nonce: vec![1; 12], additional: vec![] }),
            Step::Check { tag: vec![1; 16] },
            Step::Check { tag: vec![2; 16] },
        ),
    ];
    for (turn, (what, operation, honest, other)) in pairs.into_iter().enumerate() {
        let endings = attack(&cluster, what, |raw| {
            raw.tell_all(&request(operation, None));
            assert!(raw.replies().iter().all(|r| matches!(r, Reply::Accepted { .. })));
            (0..3).for_each(|node| raw.tell(node, if node == turn % 3 { &other } else { &honest }));
        });
        assert_different(what, &endings);
    }
}

#[test]
fn an_import_with_different_masked_keys_makes_no_key() {
    let cluster = TestCluster::shared_with_keys(&["k", "l"]);
    let endings = attack(&cluster, "masked keys", |raw| {
        raw.tell_all(&request(
            Operation::Import(operations::Import { new: key("different", "aes-128", &[Mode::Gcm]) }),
            None,
        ));
        raw.replies();
        raw.tell_all(&Step::Chi { chi: [3; 16] });
        let opened = raw.replies();
        assert!(opened.windows(2).all(|two| two[0] == two[1]), "they open the same");
        for node in 0..3 {
            raw.tell(node, &Step::Masked { data: vec![node as u8 / 2; 16], next: 0, end: End::No });
        }
    });
    assert_different("masked keys", &endings);
    let client = cluster.client();
    client.generate(key("different", "aes-128", &[Mode::Ctr])).expect("the name is free");
    client.delete("different").expect("deleted");
}

#[test]
fn a_request_that_is_sent_again_is_served_with_fresh_randomness_or_not_at_all() {
    let cluster = TestCluster::shared_with_keys(&["k", "l"]);
    let again = request(using(Use::CtrEncrypt), Some(Step::Keystream { bytes: 32 }));
    let mut starts = Vec::new();
    for _ in 0..3 {
        let mut raw = Raw::call(&cluster);
        raw.tell_all(&again);
        let Some(Reply::Accepted { start, .. }) = raw.replies().into_iter().next() else {
            panic!("accepted")
        };
        assert!(!starts.contains(&start), "the same counter twice");
        starts.push(start);
        raw.replies();
        raw.tell_all(&Step::Finish);
        // The same on one connection, and on two at once.
        raw.tell_all(&again);
        let Some(Reply::Accepted { start, .. }) = raw.replies().into_iter().next() else {
            panic!("accepted")
        };
        assert!(!starts.contains(&start), "the same counter twice");
        starts.push(start);
    }
    let mut both = [Raw::call(&cluster), Raw::call(&cluster)];
    both.iter_mut().for_each(|raw| raw.tell_all(&again));
    for raw in &mut both {
        for node in 0..3 {
            if let Some(Reply::Accepted { start, .. }) = raw.reply(node) {
                assert!(!starts[..6].contains(&start));
            }
        }
    }
    drop(both);
    gcm(&cluster.client(), "k", b"", &data(CHUNK)).expect("they go on serving");
}
