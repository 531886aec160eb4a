use polyclave_config::{Card, Change};
use polyclave_protocol::{Party, PartySet, catalog};
use polyclave_transport::CertificateDer;

use super::plan::{Role, VERSION_OF_RESHARE, Way};
use super::*;

pub(super) fn card(name: &str, seed: u8) -> Card {
    Card {
        name: name.into(),
        address: format!("{name}.example:{}", 7000 + u16::from(seed)),
        client_address: format!("{name}.example:{}", 8000 + u16::from(seed)),
        certificates: vec![CertificateDer::from(vec![0x30, 0x82, 0, 2, seed, seed])],
        workers: Vec::new(),
    }
}

pub(super) fn old(protocol: &str, nodes: u8, threshold: usize) -> Cluster {
    let cards = (1..=nodes).map(|i| card(&format!("n{i}"), i)).collect();
    Cluster::define(protocol, threshold, cards).expect("it fits")
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(super) fn plan(old: &Cluster, change: &Change) -> Result<Plan> {
    Plan::new(old.clone(), old.reshaped(change).expect("it fits"))
}

#[test]
fn old_nodes_that_take_part_come_first_and_new_ones_follow_in_the_order_of_either_cluster() {
    let old = old("shamir", 3, 1);
    let change = Change {
        lost: names(&["n2"]),
        removed: names(&["n1"]),
        added: vec![card("n2", 7), card("n9", 9)],
        ..Change::default()
    };
    let plan = plan(&old, &change).expect("it can be done");
    let numbers = |old: Option<u8>, new: Option<u8>| Role { old: old.map(Party), new: new.map(Party) };
    let roles: Vec<Role> = plan.roles().map(|(_, role)| role).collect();
    assert_eq!(
        roles,
        [numbers(Some(0), None), numbers(Some(2), Some(0)), numbers(None, Some(1)), numbers(None, Some(2))]
    );
    assert_eq!(plan.new_places(), [Party(1), Party(2), Party(3)]);
    assert_eq!(plan.dealers, PartySet::from_bits(0b101));
    let message = plan.in_names(&Error::Disagreement { peer: Party(2), field: "cluster" });
    assert!(message.starts_with("n2 was given another reshare file"), "{message}");
    let message = plan.in_names(&Error::Disagreement { peer: Party(2), field: VERSION_OF_RESHARE });
    assert_eq!(message, "n2 runs another version of the program: upgrade all nodes first");
    let timeout = Error::Timeout { peer: Party(3), waited: Duration::from_secs(1) };
    assert!(plan.in_names(&timeout).starts_with("n9 did not answer"));
}

#[test]
fn shares_move_among_nodes_that_store_them_alike_and_keys_under_masks_among_others() {
    let protocols =
        [("shamir", 3), ("shamir-active", 4), ("spdz-lt", 2), ("spdz-tower", 2), ("tinytable-linear64", 2)];
    for (from, nodes) in protocols {
        for (to, others) in protocols {
            let threshold = catalog::find(from).expect("listed").threshold.most(usize::from(nodes));
            let change = Change {
                removed: (1..=nodes).map(|i| format!("n{i}")).collect(),
                added: (0..others).map(|i| card(&format!("m{i}"), 50 + i)).collect(),
                protocol: Some(to.into()),
                ..Change::default()
            };
            let plan = plan(&old(from, nodes, threshold), &change).expect("it can be done");
            let is_alike = from == to && from.starts_with("shamir");
            assert_eq!(matches!(plan.way, Way::Shares(..)), is_alike, "{from} to {to}");
        }
    }
    // A lost node has no place.
    let change = Change {
        lost: names(&["n2"]),
        added: vec![card("m", 50)],
        protocol: Some("spdz-lt".into()),
        ..Change::default()
    };
    let plan = plan(&old("shamir-active", 4, 1), &change).expect("it can be done");
    assert_eq!(plan.old_places(), [Some(Party(0)), None, Some(Party(1)), Some(Party(2))]);
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let refused = |old: &Cluster, change: Change| plan(old, &change).err().expect("refused").to_string();
    let lost = |lost: &[&str]| Change {
        lost: names(lost),
        added: vec![card("a", 90), card("b", 91), card("c", 92)],
        ..Default::default()
    };
    assert!(refused(&old("shamir", 3, 1), lost(&["n1", "n2"])).contains("2 are needed"));
    assert!(refused(&old("shamir-active", 4, 1), lost(&["n1", "n2"])).contains("3 are needed"));
    assert!(refused(&old("shamir", 9, 1), lost(&["n1", "n2", "n3"])).contains("3 can serve alone"));
    assert!(refused(&old("spdz-lt", 3, 2), lost(&["n1"])).contains("3 are needed under spdz-lt"));
    let across = Change { protocol: Some("spdz-lt".into()), ..lost(&["n1"]) };
    assert!(refused(&old("shamir", 3, 1), across).contains("first, which takes fewer"));
    let many =
        Change { added: (0..9).map(|i| card(&format!("m{i}"), 50 + i)).collect(), ..Default::default() };
    let removed = names(&["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"]);
    assert!(refused(&old("shamir", 9, 4), Change { removed, ..many }).contains("Move in two steps"));
    // A node that stays under its name with another certificate, or under another name.
    let replaced = Change { removed: names(&["n2"]), added: vec![card("n2", 60)], ..Default::default() };
    assert!(refused(&old("shamir", 4, 1), replaced).contains("other certificates"));
    let (cluster, other) = (old("shamir", 3, 1), old("shamir", 3, 1));
    let of_other = other.reshaped(&Change::default()).expect("it fits");
    assert!(
        Plan::new(cluster.clone(), of_other).err().expect("refused").to_string().contains("another cluster")
    );
    let mut changed = cluster.clone();
    changed.replace(card("n2", 44)).expect("it fits");
    let before = cluster.reshaped(&Change::default()).expect("it fits");
    assert!(Plan::new(changed, before).err().expect("refused").to_string().contains("changed a card since"));
}

const S: [u8; 32] = [1; 32];
const R: [u8; 32] = [2; 32];
const X: [u8; 32] = [7; 32];
const Y: [u8; 32] = [8; 32];

#[test]
fn nodes_complete_what_all_have_prepared_and_nothing_else() {
    let change = Change { lost: names(&["n2"]), added: vec![card("n4", 4)], ..Default::default() };
    let plan = plan(&old("shamir", 3, 1), &change).expect("it can be done");
    let old = |prepared: Option<[u8; 32]>| ReshareState { in_use: S, prepared, ..ReshareState::default() };
    let new = |prepared: Option<[u8; 32]>| ReshareState { prepared, ..ReshareState::default() };
    let done = ReshareState { prepared: Some(X), is_done: true, ..ReshareState::default() };
    let at = |all: [ReshareState; 3]| next_step(&all, &plan);
    assert_eq!(at([old(None), old(None), new(None)]), Ok(NextStep::Begin(None)));
    assert_eq!(at([old(Some(X)), old(Some(X)), new(Some(X))]), Ok(NextStep::Complete(X)));
    assert_eq!(at([done, old(Some(X)), done]), Ok(NextStep::Complete(X)));
    assert_eq!(at([done; 3]), Ok(NextStep::Complete(X)), "they only tell each other so");
    // Some were interrupted before they had prepared it: nobody is done.
    assert_eq!(at([old(Some(X)), old(None), new(Some(X))]), Ok(NextStep::Begin(None)));
    assert_eq!(at([old(Some(X)), old(Some(Y)), new(Some(X))]), Ok(NextStep::Begin(None)));
    for lacking in [new(None), new(Some(Y))] {
        let message = at([done, old(Some(X)), lacking]).expect_err("a disk was lost").to_string();
        assert!(message.contains("n4 says that it has prepared nothing"), "{message}");
    }
}

#[test]
fn shares_of_different_epochs_are_never_put_together() {
    let plan = plan(&old("shamir", 3, 1), &Change::default()).expect("it can be done");
    let at = |in_use: [u8; 32], refresh: Option<[u8; 32]>| ReshareState {
        in_use,
        refresh,
        ..ReshareState::default()
    };
    let message =
        next_step(&[at(R, None), at(R, None), at(S, None)], &plan).expect_err("an old disk").to_string();
    assert!(message.starts_with("n3 has other common secrets"), "{message}");
    // A refresh that all have stored is finished first, and one that some lack is given up.
    let refreshed = next_step(&[at(R, None), at(S, Some(R)), at(S, Some(R))], &plan);
    assert_eq!(refreshed, Ok(NextStep::Begin(Some(R))));
    assert_eq!(next_step(&[at(S, None), at(S, Some(R)), at(S, Some(R))], &plan), Ok(NextStep::Begin(None)));
    assert!(next_step(&[at(R, None), at(S, None), at(S, Some(R))], &plan).is_err());
}
