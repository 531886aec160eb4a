//! Four nodes under shamir-active, of which one refuses, lingers or tells lies: the others are not suspected
//! for it, and answers come.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use polyclave_api::{KeyInfo, Mode, Operation, Reason, Refusal, Reply, Request, Right, Use, operations};

use crate::common::active::{AES_KEY, ecb_is_right, fill, listening, start, start_cheating, within};
use crate::common::fake::{FakeNode, Say};
use crate::common::messages::{cbc, ecb, uncbc};
use crate::common::raw::{Raw, request};
use crate::common::{TestCluster, data, key};
use polyclave_client::{Client, Error, Padding};
use polyclave_node::Cheat;
use polyclave_protocol::PartySet;
use polyclave_transport::Identity;

/// Four nodes that have a key, with material.
fn with_key(blocks: usize, cheats: &[(usize, Cheat)]) -> TestCluster {
    let cluster = start(blocks, cheats);
    cluster.client().import(key("k", "aes-128", &[Mode::Cbc, Mode::Ecb]), &AES_KEY).expect("imported");
    fill(&cluster);
    cluster
}

/// Which nodes took no part, by what a client was told.
fn left_out(message: &[String]) -> Vec<String> {
    let missing = |remark: &String| remark.split_once(" takes no part").map(|(names, _)| names.to_owned());
    let mut names: Vec<String> = message.iter().filter_map(missing).collect();
    names.dedup();
    names
}

/// A client whose remarks are heard; what it does; whom it did without.
fn left_out_by(cluster: &TestCluster, work: impl FnOnce(&Client)) -> Vec<String> {
    let (client, message) = listening(cluster);
    work(&client);
    let message = message.lock();
    left_out(&message)
}

#[test]
fn a_leading_node_whose_policy_refuses_is_left_out_and_nobody_else() {
    let cluster = with_key(24, &[]);
    let identity = Identity::generate_named("bob", 1).expect("an identity");
    let message = Arc::new(Mutex::new(Vec::new()));
    let heard = message.clone();
    let bob = cluster.client_of("bob", &identity).on_remark(move |remark| {
        heard.lock().push(remark.to_owned());
    });
    cluster.allow_at(&cluster.local.nodes[1..], "bob", &[Right::Encrypt], &["k"]);
    cluster.allow_at(&cluster.local.nodes[..1], "bob", &[Right::Encrypt], &["other"]);
    cluster.wait_until(|| bob.status().iter().all(|(_, s)| s.is_ok()));
    for _ in 0..3 {
        within(Duration::from_secs(5), "without the node that refuses", || ecb_is_right(&bob, "k"));
    }
    assert_eq!(left_out(&message.lock()), ["node-1"]);
}

/// Over the connections that are there, node 1 refuses at once what the others wait for it to begin.
#[test]
fn a_node_that_refuses_all_is_left_out_and_what_it_says_of_keys_is_not_believed() {
    let mut cluster = with_key(24, &[]);
    let honest = cluster.client().info("k").expect("a key");
    cluster.stop(0);
    let other = {
        let mut other = honest.clone();
        other.properties.cipher = "3des-ede3".into();
        other
    };
    let refused = |reason| Say::All(Box::new(Reply::Refused(Refusal::new(reason, "no"))));
    let denies = move |_: &Request| refused(Reason::Denied);
    let knows_none = move |_: &Request| refused(Reason::Key);
    let tells_another = move |request: &Request| match request.operation {
        Operation::Show(_) => Say::All(Box::new(Reply::Keys { keys: vec![other.clone()], more: false })),
        _ => refused(Reason::Busy),
    };
    cbc_comes_back_beside(&cluster, &honest, denies);
    cbc_comes_back_beside(&cluster, &honest, knows_none);
    cbc_comes_back_beside(&cluster, &honest, tells_another);
    cbc_comes_back_beside(&cluster, &honest, |_| Say::Beginning);
    cbc_comes_back_beside(&cluster, &honest, move |request| match request.operation {
        Operation::Use(_) => refused(Reason::Spent),
        _ => Say::Nothing,
    });
}

fn cbc_comes_back_beside(
    cluster: &TestCluster,
    honest: &KeyInfo,
    says: impl Fn(&Request) -> Say + Send + Sync + 'static,
) {
    let _fake = FakeNode::start(cluster, 0, says);
    let missing = left_out_by(cluster, |client| {
        within(Duration::from_secs(15), "asking what key it is", || {
            assert_eq!(client.info("k").expect("the others know it"), *honest);
        });
        within(Duration::from_secs(25), "CBC", || {
            let (initial, ciphertext) = cbc(client, "k", Padding::Pkcs7, &data(9)).expect("encrypted");
            assert_eq!(ciphertext.len(), 16);
            let back = uncbc(client, "k", Padding::Pkcs7, &initial, &ciphertext).expect("decrypted");
            assert_eq!(back, data(9));
        });
        within(Duration::from_secs(15), "the states of all", || {
            assert_eq!(client.status().iter().filter(|(_, status)| status.is_ok()).count(), 3);
        });
    });
    assert_eq!(missing, ["node-1"]);
}

#[test]
fn a_refusal_in_the_middle_does_not_end_what_the_others_go_on_with() {
    let slow = Cheat::AnswersLate;
    let cluster = with_key(24, &[(0, slow), (1, slow), (2, slow), (3, Cheat::RefusesSteps)]);
    let missing = left_out_by(&cluster, |client| {
        ecb_is_right(client, "k");
        ecb_is_right(client, "k");
    });
    assert!(missing.is_empty(), "{missing:?}");
}

/// It is heard in its turn, and the others' answers are enough.
#[test]
fn a_node_that_only_claims_to_work_holds_up_no_answer() {
    let cluster = with_key(24, &[(0, Cheat::ClaimsToWork)]);
    let missing = left_out_by(&cluster, |client| {
        within(Duration::from_secs(20), "beside claims", || ecb_is_right(client, "k"));
        within(Duration::from_secs(20), "beside late claims", || ecb_is_right(client, "k"));
    });
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_hello_that_is_dragged_out_ends_in_its_time_and_the_next_is_without_that_node() {
    let mut cluster = with_key(24, &[]);
    cluster.stop(3);
    start_cheating(&mut cluster, 3, Cheat::GreetsLate);
    cluster.wait_until_ready();
    fill(&cluster);
    let missing = left_out_by(&cluster, |client| {
        within(Duration::from_millis(7500), "without the late node", || ecb_is_right(client, "k"));
    });
    assert_eq!(missing, ["node-4"]);
}

/// One more node is lacking than the others can do without.
fn three_of_which_one_hangs() -> TestCluster {
    let mut cluster = with_key(24, &[]);
    cluster.stop(2);
    start_cheating(&mut cluster, 2, Cheat::Hangs);
    cluster.wait_until_ready();
    fill(&cluster);
    cluster.stop(3);
    cluster
}

#[test]
fn nodes_that_wait_in_vain_for_each_other_say_so_while_the_client_listens() {
    let cluster = three_of_which_one_hangs();
    let client = cluster.client();
    let ask = || ecb(&client, "k", Padding::None, &data(16)).expect_err("two of four are wrong");
    let error = within(Duration::from_secs(55), "three nodes of which one hangs", ask);
    assert!(matches!(error, Error::Contested(_)) && error.to_string().contains("refused"), "{error}");
}

/// It would otherwise wait for the peer for much longer than a stop may take, with the store open.
#[test]
fn a_node_that_stops_while_a_peer_hangs_leaves_its_store_to_the_next_start() {
    let mut cluster = three_of_which_one_hangs();
    let client = cluster.client();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ecb(&client, "k", Padding::None, &data(16)));
        std::thread::sleep(Duration::from_secs(2));
        assert!(!asked.is_finished(), "the nodes wait for the one that hangs");
        cluster.stop(0);
        // It panics if a thread has the store still open.
        drop(cluster.store_of(0));
        cluster.stop(1);
        asked.join().expect("no panic").expect_err("two of four are wrong, and two are gone");
    });
}

#[test]
fn a_client_that_pauses_for_too_long_is_told_the_limit() {
    let cluster = with_key(24, &[]);
    let how = Operation::Use(operations::UseKey { key: "k".into(), id: None, how: Use::CbcDecrypt });
    let mut raw = Raw::call(&cluster);
    raw.tell_all(&Request { serving: PartySet::all(4), ..request(how, None) });
    for ending in raw.endings() {
        assert!(ending.message().contains("sent nothing for 20 s"), "{ending:?}");
    }
}
