//! Four nodes of which one cheats or was away: the stock remains useful to the others.

use std::time::Duration;

use polyclave_protocol::mesh::Mesh;
use polyclave_protocol::net::{Gathered, Net, Patience};

use super::super::census::ON_ITS_WAY;
use super::super::census::tests::tell_of;
use super::super::choice::choose;
use super::super::claims::{MAX_RANGES, PROPOSER};
use super::super::ranges::Ranges;
use super::quorum::{QUORUM, four_stocks, set, take_among, tell_claim};
use super::*;

/// A session of all in which node 0 claims anything and says so to all. Returns what the others got.
fn claimed(stocks: &[Arc<Lots>], count: usize, ranges: &[Range]) -> Vec<Result<Positions>> {
    claimed_of_each(stocks, count, &|_| ranges.to_vec())
}

/// The same with a claim for each node, which node 0 echoes and confirms to each.
fn claimed_of_each(
    stocks: &[Arc<Lots>],
    count: usize,
    of: &(dyn Fn(Party) -> Vec<Range> + Sync),
) -> Vec<Result<Positions>> {
    let outcomes = run_parties(4, |net| match net.me() {
        PROPOSER => {
            for peer in Party::all(4).skip(1) {
                tell_claim(&stocks[0], count, &of(peer), peer, net)?;
            }
            Ok(Positions::new())
        }
        me => stocks[me.index()].take(&KIND, count, net).map(|items| positions(&items)),
    });
    outcomes.into_iter().skip(1).collect()
}

fn refill(stocks: &[Arc<Lots>], count: usize) -> Vec<Result<()>> {
    run_parties(4, |net| fill_by(&stocks[net.me().index()], &KIND, count, net))
}

fn lefts(stocks: &[Arc<Lots>]) -> Vec<usize> {
    stocks.iter().map(|lots| left(lots, &KIND)).collect()
}

fn lots_of(lots: &Lots) -> Vec<[u8; 16]> {
    lots.lock().iter().map(|lot| lot.id).collect()
}

/// A leader of fills that falls silent at any point of a run, again and again.
#[test]
fn a_run_that_is_not_finished_costs_no_stock() {
    let stocks = four_stocks();
    refill(&stocks, 1024).into_iter().for_each(|outcome| outcome.expect("room for twice the level"));
    for count in [1, 1024, usize::MAX / KIND.item_bytes] {
        for leaves in ["at once", "after the hello", "after the comparison"] {
            let outcomes = run_parties(4, |net| {
                if net.me() != PROPOSER {
                    return fill_by(&stocks[net.me().index()], &KIND, count, net);
                }
                let gone = Err(Error::System("gone".into()));
                match leaves {
                    "after the hello" => {
                        let parameters = HandshakeParameters::new(4)
                            .with("renewal", &EPOCH)
                            .with("kind of material", KIND.name.as_bytes())
                            .with("bytes of an item", &KIND.item_bytes.to_le_bytes())
                            .with("items to make", &count.to_le_bytes())
                            .with("streams to make them on", &1_usize.to_le_bytes());
                        polyclave_protocol::session::hello(&parameters, net).and(gone)
                    }
                    "after the comparison" => {
                        let parameters = HandshakeParameters::new(4);
                        let lots = &stocks[0];
                        let run = Run { kind: &KIND, count, level: LEVEL, streams: 1 };
                        let gone = |_: Stream, _: usize, _: &mut dyn Net| Err(Error::System("gone".into()));
                        fill::fill(lots, parameters, &run, net, &|_| (), gone)
                    }
                    _ => gone,
                }
            });
            assert!(outcomes.iter().all(Result::is_err), "{leaves}: {outcomes:?}");
        }
        assert_eq!(lefts(&stocks), [2048; 4], "{count}");
    }
}

#[test]
fn a_leader_that_tells_every_node_another_claim_takes_nothing_from_any() {
    let stocks = four_stocks();
    for lot in lots_of(&stocks[1]) {
        for turn in 0..8 {
            let claim = |node: Party| {
                let from = 32 * u64::from(node.0) + 4 * turn;
                vec![Range { lot, from, to: from + 4 }]
            };
            let outcomes = claimed_of_each(&stocks, 4, &claim);
            let named =
                |outcome: &Result<Positions>| matches!(outcome, Err(Error::OutOfStep { peer: PROPOSER, .. }));
            assert!(outcomes.iter().all(named), "{outcomes:?}");
        }
    }
    assert_eq!(lefts(&stocks), [1024; 4]);
    let taken = take_among(&stocks, set(0b1110), 1024);
    assert!(
        taken.iter().all(|(_, items)| items.as_ref().is_ok_and(|items| items.len() == 1024)),
        "all is there"
    );
}

/// In requests that succeed nevertheless.
#[test]
fn a_leader_that_tells_one_node_alone_another_claim_takes_nothing_from_it() {
    const ONCE: u64 = 16;
    for victim in [Party(1), Party(3)] {
        let stocks = four_stocks();
        for lot in lots_of(&stocks[1]) {
            for turn in 0..8 {
                let claim = |node: Party| {
                    let from = ONCE * turn + if node == victim { 128 } else { 0 };
                    vec![Range { lot, from, to: from + ONCE }]
                };
                let outcomes = claimed_of_each(&stocks, ONCE as usize, &claim);
                let served = |node: Party| outcomes[node.index() - 1].is_ok();
                assert!(Party::all(4).skip(1).all(|node| served(node) == (node != victim)), "{outcomes:?}");
            }
        }
        assert_eq!(left(&stocks[victim.index()], &KIND), 1024, "what the others have left is there");
        // The leader falls silent: what the three have in common is used, once the victim knows what the
        // others have spent.
        let mut tries = (0..6).map(|_| take_among(&stocks, set(0b1110), 512));
        let served = tries.any(|taken| taken.iter().all(|(_, items)| items.is_ok()));
        assert!(served, "{:?}", lefts(&stocks));
    }
}

#[test]
fn what_a_leader_proposes_and_too_few_follow_is_free_again() {
    let stocks = four_stocks();
    let outcomes = run_parties(4, |net| match net.me() {
        PROPOSER => stocks[0].take(&KIND, 1024, net).map(|items| positions(&items)),
        _ => Err(Error::System("gone".into())),
    });
    assert!(outcomes[0].is_err());
    assert_eq!(left(&stocks[0], &KIND), 1024);
    assert!(take_among(&stocks, set(0b0111), 1024).iter().all(|(_, items)| items.is_ok()));
}

#[test]
fn what_a_claim_leaves_out_serves_the_next() {
    let stocks = four_stocks();
    for lot in lots_of(&stocks[1]) {
        let last = Range { lot, from: 255, to: 256 };
        assert!(claimed(&stocks, 1, &[last]).iter().all(Result::is_ok));
    }
    assert_eq!(lefts(&stocks)[1..], [4 * 255; 3]);
    let taken = take_among(&stocks, set(0b1110), 4 * 255);
    assert!(taken.iter().all(|(_, items)| items.as_ref().is_ok_and(|items| items.len() == 4 * 255)));
    assert_eq!(lefts(&stocks)[1..], [0; 3]);
}

#[test]
fn lots_of_which_little_is_left_take_little_memory_and_new_material_is_made() {
    let stocks = four_stocks();
    for _ in 0..40 {
        for lot in lots_of(&stocks[1]) {
            let end = stocks[1].lock().iter().find(|l| l.id == lot).map_or(0, |l| l.spent().end());
            if end == 0 {
                // All but one in the middle and the last one.
                let ranges = [(0, 100), (101, 255)].map(|(from, to)| Range { lot, from, to });
                assert!(claimed(&stocks, 254, &ranges).iter().all(Result::is_ok));
            }
        }
        let bytes: usize = stocks[1].lock().iter().map(Lot::bytes).sum();
        assert!(bytes <= 2 * left(&stocks[1], &KIND) * KIND.item_bytes, "{bytes}");
        refill(&stocks, 256).into_iter().for_each(|outcome| outcome.expect("there is room"));
    }
}

#[test]
fn a_claim_that_cuts_the_stock_into_pieces_is_refused() {
    let stocks = four_stocks();
    let lot = lots_of(&stocks[1])[0];
    let ranges: Vec<Range> = (0..40).map(|i| Range { lot, from: 2 * i, to: 2 * i + 1 }).collect();
    assert!(claimed(&stocks, 40, &ranges).iter().all(Result::is_err));
    assert_eq!(lefts(&stocks)[1..], [1024; 3]);
    let twice = vec![Range { lot, from: 0, to: 9 }, Range { lot, from: 8, to: 10 }];
    assert!(claimed(&stocks, 11, &twice).iter().all(Result::is_err));
}

/// The longest ranges are chosen where the oldest would be too many.
#[test]
fn what_was_cut_into_pieces_is_used_as_far_as_a_claim_can_say_it() {
    let items = Zeroizing::new(vec![1; KIND.item_bytes * 4 * MAX_RANGES]);
    let mut first = Lot::new([1; 16], KIND, items.clone(), 0, PartySet::all(4));
    let mut second = Lot::new([2; 16], KIND, items, 0, PartySet::all(4));
    let mut useless = Ranges::default();
    (0..2 * MAX_RANGES as u64).for_each(|i| useless.add(2 * i, 2 * i + 1));
    first.lose(&useless);
    first.status = LotStatus::Held;
    second.status = LotStatus::Held;
    let count = 4 * MAX_RANGES as u64;
    let ranges = choose(&[first, second], &KIND, count, PartySet::all(4), QUORUM).expect("enough");
    assert_eq!(ranges, [Range { lot: [2; 16], from: 0, to: count }]);
}

/// A node that was away while the others were served: what it holds, the others have spent.
#[test]
fn a_node_that_was_away_comes_to_where_the_others_are() {
    let stocks = four_stocks();
    for _ in 0..6 {
        assert!(take_among(&stocks, set(0b1110), 100).iter().all(|(_, items)| items.is_ok()));
    }
    assert_eq!(lefts(&stocks), [1024, 424, 424, 424]);
    // As a proposer it catches up by failed claims, one for each lot in which it is behind.
    let served = |bits| take_among(&stocks, set(bits), 10).iter().all(|(_, items)| items.is_ok());
    let tries = (0..10).position(|_| served(0b0111)).expect("it catches up");
    assert!(tries <= 3, "{tries}");
    for _ in 0..4 {
        assert!(take_among(&stocks, set(0b1110), 50).iter().all(|(_, items)| items.is_ok()));
    }
    std::thread::sleep(4 * ON_ITS_WAY);
    // It also catches up when material is made, but not at once: it could have been behind with these claims.
    refill(&stocks, 256).into_iter().for_each(|outcome| outcome.expect("filled"));
    assert!(left(&stocks[0], &KIND) > left(&stocks[1], &KIND) + 100);
    std::thread::sleep(4 * ON_ITS_WAY);
    refill(&stocks, 256).into_iter().for_each(|outcome| outcome.expect("filled"));
    let lefts = lefts(&stocks);
    assert!(lefts[0] <= lefts[1] && lefts[0] + 60 > lefts[1], "{lefts:?}");
    assert!(served(0b1111) && served(0b0111));
}

/// Node 0 says in the comparison that it holds nothing, or everything.
#[test]
fn lies_about_what_one_holds_cost_the_others_nothing() {
    let stocks = four_stocks();
    assert!(take_among(&stocks, set(0b1110), 100).iter().all(|(_, items)| items.is_ok()));
    let all: Vec<[u8; 16]> = lots_of(&stocks[1]);
    for lots in [&[][..], &all[..]] {
        let outcomes = run_parties(4, |net: &mut dyn Net| match net.me() {
            PROPOSER => tell_of(lots, net).map(|()| Err(Error::System("gone".into())))?,
            me => stocks[me.index()].compare(&KIND, LEVEL, QUORUM, net),
        });
        assert!(outcomes.iter().skip(1).all(Result::is_ok), "{outcomes:?}");
        assert_eq!(lefts(&stocks)[1..], [924; 3]);
    }
}

/// Otherwise there would be no room for new material until it is wiped.
#[test]
fn what_others_have_spent_does_not_count_though_it_is_not_wiped_yet() {
    let items = Zeroizing::new(vec![1; KIND.item_bytes * 100]);
    let mut lot = Lot::new([1; 16], KIND, items, 0, PartySet::all(4));
    for spent in [10, 50] {
        lot.doom(&Ranges::below(spent), Duration::from_secs(3600));
        assert_eq!((lot.of_use(), lot.left()), (100 - spent, 100));
    }
    lot.doom(&Ranges::below(70), Duration::ZERO);
    // What both comparisons said.
    assert_eq!((lot.of_use(), lot.left()), (30, 90));
}

/// Node 3 starts again and again. What the others made with it before is used without it, and does not
/// accumulate.
#[test]
fn material_that_a_node_has_lost_makes_room_and_serves_until_then() {
    let mut stocks = four_stocks();
    for boot in 10..16 {
        let (kinds, store) = (vec![KIND, OTHER], Arc::new(in_memory().0));
        stocks[3] = Lots::permanent(Party(3), 4, (EPOCH, [boot; 16]), kinds, store, QUORUM).expect("begun");
        stocks.iter().take(3).for_each(|lots| lots.forget(Party(3)));
        assert!(take_among(&stocks, set(0b0111), 1).iter().all(|(_, items)| items.is_ok()));
        for _ in 0..4 {
            refill(&stocks, 256).into_iter().for_each(|outcome| outcome.expect("there is room"));
        }
        let held: u64 = stocks[0].lock().iter().map(Lot::left).sum();
        // The rest may be twice the level before the last run.
        assert!(held <= 2 * LEVEL as u64 + 256, "{held}");
        assert_eq!(lefts(&stocks), [1024; 4]);
    }
}

/// A claim that arrives very slowly must not hold a request for weeks: a minimum of bytes a second is
/// required, as for other messages, and the wait does not begin again with every byte.
#[test]
fn a_claim_is_awaited_no_longer_than_other_messages() {
    struct Impatient(Mesh);
    impl Net for Impatient {
        polyclave_protocol::forward_net!(self => self.0; me, parties, send, exchange, fork);

        fn recv(&mut self, _: Party, _: &mut [u8]) -> Result<()> {
            Err(Error::misuse("waits as long as bytes move"))
        }
        fn gather(
            &mut self,
            out: &[&[u8]],
            into: &mut [&mut [u8]],
            patience: Patience,
            enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
        ) -> Result<Gathered> {
            self.0.gather(out, into, patience, enough)
        }
    }
    let ranges = vec![Range { lot: [1; 16], from: 0, to: 9 }];
    let mut nets = mesh(2).into_iter();
    let mut proposer = nets.next().expect("two");
    claims::tell(&EPOCH, &ranges, &mut proposer).expect("told");
    let mut other = Impatient(nets.next().expect("two"));
    assert_eq!(claims::hear(PROPOSER, &EPOCH, Patience::of(1), &mut other).expect("heard"), ranges);
}
