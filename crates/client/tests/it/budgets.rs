//! A key's budget of blocks holds whatever clients do and however often nodes start again.

use polyclave_api::{Mode, NewKey, Operation, Reason, Reply, Request, Step, Use, operations};

use crate::common::messages::{ctr, gcm};
use crate::common::raw::{Raw, request};
use crate::common::{TestCluster, data, key};
use polyclave_client::{Client, Error};
use polyclave_protocol::PartySet;

fn small(name: &str, mode: Mode, budget_blocks: u64) -> NewKey {
    NewKey { budget_blocks, ..key(name, "aes-128", &[mode]) }
}

/// Whether so many blocks are still in the budget; nothing else may be wrong.
fn spend(client: &Client, name: &str, blocks: usize) -> bool {
    match ctr(client, name, &data(16 * blocks)) {
        Ok(_) => true,
        Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::Spent => false,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_budget_is_spent_to_the_last_block_and_stays_spent() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(small("ten", Mode::Ctr, 10)).expect("a key");
    assert!(!spend(&client, "ten", 11), "more than there are");
    assert!(spend(&client, "ten", 7), "what was refused is not spent");
    assert!(!spend(&client, "ten", 4));
    assert!(spend(&client, "ten", 2));
    for node in 0..3 {
        cluster.stop(node);
        cluster.restart(node);
    }
    cluster.wait_until_ready();
    let client = cluster.client();
    assert!(!spend(&client, "ten", 2), "an orderly end keeps what is spent");
    assert!(spend(&client, "ten", 1), "and what is left");
    assert!(!spend(&client, "ten", 1));
    client.delete("ten").expect("deleted");
    client.generate(small("ten", Mode::Ctr, 10)).expect("another key of this name");
    assert!(spend(&client, "ten", 10));
}

#[test]
fn a_part_of_a_block_and_the_block_under_a_tag_cost_a_block() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(small("parts", Mode::Ctr, 3)).expect("a key");
    ctr(&client, "parts", b"x").expect("one block");
    ctr(&client, "parts", &data(17)).expect("two blocks");
    assert!(!spend(&client, "parts", 1));
    client.generate(small("tags", Mode::Gcm, 5)).expect("a key");
    gcm(&client, "tags", b"", &data(33)).expect("three blocks and one");
    gcm(&client, "tags", b"free", b"").expect("one block");
    assert!(gcm(&client, "tags", b"", b"").is_err());
    client.generate(small("begun", Mode::Gcm, 1)).expect("a key");
    assert!(gcm(&client, "begun", b"", b"x").is_err(), "two blocks");
    gcm(&client, "begun", b"", b"").expect("the whole first step was refused");
    client.delete("begun").expect("deleted");
    client.generate(small("begun", Mode::Gcm, 1)).expect("a key");
    let pending = client.key("begun").and_then(|key| key.gcm().begin()).expect("the block under the tag");
    assert!(pending.encrypt(b"x").is_err(), "two blocks");
    assert!(gcm(&client, "begun", b"", b"").is_err(), "the first of them was computed");
}

/// Every node pays for what it serves, of its own part: least servers / nodes of the budget.
#[test]
fn five_nodes_together_let_no_more_than_the_budget_pass_whichever_of_them_are_asked() {
    let cluster = TestCluster::start(5, 1);
    let client = cluster.client();
    client.generate(small("k", Mode::Ctr, 10)).expect("a key");
    let triples: Vec<PartySet> = (0..32).map(PartySet::from_bits).filter(|set| set.len() == 3).collect();
    let (mut passed, mut served) = (0, [0; 5]);
    for round in 0..4 {
        for set in triples.iter().cycle().skip(3 * round).take(triples.len()) {
            let how = Use::CtrEncrypt;
            let operation = Operation::Use(operations::UseKey { key: "k".into(), id: None, how });
            let first = Some(Step::Keystream { bytes: 16 });
            let asked = Request { serving: *set, ..request(operation, first) };
            let mut raw = Raw::call(&cluster);
            set.iter().for_each(|p| raw.tell(p.index(), &asked));
            let replies: Vec<Reply> = set.iter().filter_map(|p| raw.reply(p.index())).collect();
            let accepted = replies.iter().filter(|r| matches!(r, Reply::Accepted { .. })).count();
            assert!(accepted == 0 || accepted == 3, "{replies:?}");
            if accepted == 3 {
                passed += 1;
                set.iter().for_each(|p| served[p.index()] += 1);
            }
        }
    }
    assert!(passed <= 10, "{passed} blocks passed");
    assert!(passed >= 6, "{passed} blocks passed");
    assert!(served.iter().all(|blocks| *blocks <= 6), "{served:?}");
    assert!(!spend(&client, "k", 1));
}
