//! Four nodes of which any three take: no item is used in two sessions, whichever node proposes and whatever
//! it says.

use std::sync::Arc;

use polyclave_protocol::mesh::{Mesh, mesh_among, run_members};

use super::super::claims::{PROPOSER, RANGE, encode};
use super::super::quorum::REFILL;
use super::*;

pub(super) const QUORUM: usize = 3;

pub(super) fn four_stocks() -> Vec<Arc<Lots>> {
    let of = |me: Party| {
        let kinds = vec![KIND, OTHER];
        let store = Arc::new(in_memory().0);
        Lots::permanent(me, 4, (EPOCH, [me.0; 16]), kinds, store, QUORUM).expect("begun")
    };
    let stocks: Vec<_> = Party::all(4).map(of).collect();
    for _ in 0..4 {
        let filled = run_parties(4, |net| fill_by(&stocks[net.me().index()], &KIND, 256, net));
        filled.into_iter().for_each(|outcome| outcome.expect("honest nodes fill"));
    }
    stocks
}

pub(super) fn set(bits: u16) -> PartySet {
    PartySet::from_bits(bits)
}

/// What each node of a session got, by node.
pub(super) fn take_among(
    stocks: &[Arc<Lots>],
    members: PartySet,
    count: usize,
) -> Vec<(Party, Result<Positions>)> {
    let nets: Vec<Mesh> = mesh_among(4, members);
    std::thread::scope(|scope| {
        let take = |mut net: Mesh| {
            scope.spawn(move || {
                let me = net.me();
                (me, stocks[me.index()].take(&KIND, count, &mut net).map(|items| positions(&items)))
            })
        };
        let threads: Vec<_> = nets.into_iter().map(take).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// What a proposer says to one node: a claim, that it was told the same, and that it took the same.
pub(super) fn tell_claim(
    lots: &Lots,
    count: usize,
    ranges: &[Range],
    to: Party,
    net: &mut dyn Net,
) -> Result<()> {
    for message in encode(&EPOCH, ranges) {
        net.send(to, &message)?;
    }
    let same = [&lots.digest(&KIND, count, ranges)[..], &[0; 32]].concat();
    net.send(to, &same)?;
    net.send(to, &same)
}

/// No node has used an item in two sessions.
fn assert_used_once(sessions: &[Vec<(Party, Result<Positions>)>]) {
    let mut used: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for (session, taken) in sessions.iter().enumerate() {
        for item in taken.iter().filter_map(|(_, items)| items.as_ref().ok()).flatten() {
            assert_eq!(*used.entry(*item).or_insert(session), session, "{item:?} in two sessions");
        }
    }
}

#[test]
fn sessions_of_any_three_nodes_use_different_items_whoever_proposes() {
    let stocks = four_stocks();
    let sets = [0b1111, 0b0111, 0b1110, 0b1101, 0b1011];
    let sessions: Mutex<Vec<_>> = Mutex::default();
    std::thread::scope(|scope| {
        for turn in 0..5 {
            let (stocks, sessions) = (&stocks, &sessions);
            scope.spawn(move || {
                for take in 0..20 {
                    let taken = take_among(stocks, set(sets[(turn + take) % 5]), 1 + take % 3);
                    sessions.lock().push(taken);
                }
            });
        }
    });
    let sessions = sessions.into_inner();
    assert_used_once(&sessions);
    let served = sessions.iter().filter(|taken| taken.iter().all(|(_, items)| items.is_ok())).count();
    assert!(served > 10, "{served} of 100 were served");
}

#[test]
fn nodes_in_turn_are_served_and_take_the_same() {
    let stocks = four_stocks();
    let sets = [0b1111, 0b0111, 0b1111, 0b0111, 0b1011];
    let sessions: Vec<_> = sets.iter().map(|bits| take_among(&stocks, set(*bits), 5)).collect();
    for taken in &sessions {
        let first = taken[0].1.as_ref().expect("served");
        assert!(taken.iter().all(|(_, items)| items.as_ref() == Ok(first)), "{taken:?}");
    }
    assert_used_once(&sessions);
}

/// Between any two of its claims the others spend as much as a refused claim teaches it.
#[test]
fn a_proposer_that_was_left_out_is_followed_again_although_the_others_go_on_without_it() {
    let stocks = four_stocks();
    let mut sessions = vec![take_among(&stocks, set(0b1110), 300)];
    let refused = take_among(&stocks, set(0b1111), 5);
    assert!(refused.iter().all(|(_, items)| items.is_err()), "{refused:?}");
    for _ in 0..2 {
        sessions.push(take_among(&stocks, set(0b1110), 200));
        sessions.push(take_among(&stocks, set(0b1111), 5));
    }
    for taken in &sessions {
        assert!(taken.iter().all(|(_, items)| items.is_ok()), "{taken:?}");
    }
    assert_used_once(&sessions);
}

/// A proposer that names one item to some nodes and another to others, and the other way round in a second
/// session.
#[test]
fn a_proposer_that_tells_nodes_different_claims_gets_nothing_used() {
    let stocks = four_stocks();
    let lot = stocks[1].lock()[0].id;
    let ranges = |from: u64| vec![Range { lot, from, to: from + 1 }];
    let session = |to_two: u64, to_others: u64| {
        let nets: Vec<Mesh> = mesh_among(4, PartySet::all(4));
        std::thread::scope(|scope| {
            let threads: Vec<_> = nets
                .into_iter()
                .map(|mut net| {
                    let (stocks, ranges) = (&stocks, &ranges);
                    scope.spawn(move || {
                        let me = net.me();
                        if me != PROPOSER {
                            return (me, stocks[me.index()].take(&KIND, 1, &mut net).map(|i| positions(&i)));
                        }
                        for peer in Party::all(4).skip(1) {
                            let from = if peer == Party(1) { to_two } else { to_others };
                            tell_claim(&stocks[0], 1, &ranges(from), peer, &mut net).expect("sent");
                        }
                        (me, Ok(Positions::new()))
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        })
    };
    let sessions = [session(0, 1), session(1, 0)];
    assert_used_once(&sessions);
    // With the proposer the two that were told the same are three. The node that was told otherwise uses
    // nothing.
    assert!(sessions.iter().all(|taken| taken[1].1.is_err()), "{sessions:?}");
    assert!(sessions[0][2..].iter().all(|(_, items)| items.is_ok()), "{sessions:?}");
}

#[test]
fn a_node_that_started_again_holds_nothing_and_the_others_are_served() {
    let mut stocks = four_stocks();
    let (kinds, store) = (vec![KIND, OTHER], Arc::new(in_memory().0));
    stocks[0] = Lots::permanent(Party(0), 4, (EPOCH, [9; 16]), kinds, store, QUORUM).expect("begun");
    stocks.iter().skip(1).for_each(|lots| lots.forget(Party(0)));
    assert!(stocks.iter().all(|lots| left(lots, &KIND) == 0), "nothing is held by all");
    let with_it = take_among(&stocks, set(0b1111), 3);
    let named = |items: &Result<Positions>| matches!(items, Err(Error::OutOfStep { peer: Party(0), .. }));
    assert!(with_it.iter().skip(1).all(|(_, items)| named(items)), "{with_it:?}");
    assert!(take_among(&stocks, set(0b1110), 3).iter().all(|(_, items)| items.is_ok()));
}

/// A third node says of every claim that it heard another: the honest proposer is named as one to do without,
/// and not accused.
#[test]
fn an_honest_proposer_is_not_accused_of_what_a_third_node_says() {
    let stocks = four_stocks();
    let members = set(0b0111);
    let cheater = Party(2);
    let outcomes = run_members(4, members, |net| {
        if net.me() != cheater {
            return stocks[net.me().index()].take(&KIND, 3, net).map(drop);
        }
        for _ in 0..2 {
            let said = [0xaa; 32 + RANGE];
            cheater.peers(3).try_for_each(|peer| net.send(peer, &said))?;
        }
        Ok(())
    });
    for outcome in &outcomes[..2] {
        assert!(matches!(outcome, Err(Error::OutOfStep { peer: Party(0), .. })), "{outcome:?}");
    }
    assert!(take_among(&stocks, set(0b1011), 3).iter().all(|(_, items)| items.is_ok()));
}

/// Two of four have started again: all material of the others is useless.
fn two_started_again() -> Vec<Arc<Lots>> {
    let mut stocks = four_stocks();
    for node in [Party(2), Party(3)] {
        let (kinds, store) = (vec![KIND, OTHER], Arc::new(in_memory().0));
        stocks[node.index()] =
            Lots::permanent(node, 4, (EPOCH, [9; 16]), kinds, store, QUORUM).expect("begun");
        stocks.iter().filter(|lots| lots.me != node).for_each(|lots| lots.forget(node));
    }
    stocks
}

#[test]
fn material_that_too_few_hold_is_not_said_to_be_there() {
    let stocks = two_started_again();
    let taken = take_among(&stocks, PartySet::all(4), 5);
    for (node, outcome) in taken {
        let Err(Error::OutOfMaterial { detail }) = outcome else { panic!("not dry: {outcome:?}") };
        assert!(detail.contains("holds 0 triples"), "{detail}");
        assert_eq!(detail.contains("1024 more are of no use"), node.0 < 2, "{detail}");
    }
}

#[test]
fn a_request_waits_a_moment_for_material_that_is_made_after_nodes_have_started_again() {
    let stocks = two_started_again();
    let taken = std::thread::scope(|scope| {
        let taking = scope.spawn(|| take_among(&stocks, PartySet::all(4), 5));
        std::thread::sleep(REFILL / 10);
        let filled = run_parties(4, |net| fill_by(&stocks[net.me().index()], &KIND, 256, net));
        filled.into_iter().for_each(|outcome| outcome.expect("honest nodes fill"));
        taking.join().expect("no panic")
    });
    assert!(taken.iter().all(|(_, items)| items.as_ref().is_ok_and(|items| items.len() == 5)), "{taken:?}");
}

#[test]
fn all_hear_alike_that_the_stock_is_dry() {
    let stocks = four_stocks();
    let taken = take_among(&stocks, set(0b1101), 4 * 256 + 1);
    assert!(taken.iter().all(|(_, items)| matches!(items, Err(Error::OutOfMaterial { .. }))), "{taken:?}");
}
