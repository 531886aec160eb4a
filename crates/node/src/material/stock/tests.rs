//! Stocks of parties on the in-memory mesh. The bytes of an item are its lot and its number, so the tests see
//! what was handed out.

mod ahead;
mod claimed;
mod killed;
mod quorum;
mod robust;

use std::collections::BTreeMap;

use parking_lot::Mutex;
use polyclave_protocol::EARLIER_CHECK;
use polyclave_protocol::mesh::{mesh, run_parties};
use polyclave_protocol::session::{HandshakeParameters, Stream};
use polyclave_protocol::stock::Purpose;
use polyclave_store::testing::{Disk, in_memory, reopen};

use super::fill::Run;
use super::*;

const EPOCH: [u8; 32] = [1; 32];
const KIND: Kind = Kind { name: "triples", purpose: Purpose::All, item_bytes: 16, per_block: 16 };
const OTHER: Kind = Kind { name: "bits", purpose: Purpose::All, item_bytes: 16, per_block: 16 };

/// The level of the stock.
const LEVEL: usize = 1024;

/// Lot and number of items.
type Positions = Vec<(u64, u64)>;

fn stock(me: Party, nodes: usize, epoch: [u8; 32], store: Arc<Store>) -> Result<Arc<Lots>> {
    Lots::new(me, nodes, epoch, vec![KIND, OTHER], store)
}

fn in_memory_stocks(nodes: usize) -> Vec<(Arc<Lots>, Disk)> {
    let of = |me| {
        let (store, disk) = in_memory();
        (stock(me, nodes, EPOCH, Arc::new(store)).expect("begun"), disk)
    };
    Party::all(nodes).map(of).collect()
}

fn make(stream: &Stream, count: usize) -> Zeroizing<Vec<u8>> {
    let lot = &stream.label()[..8];
    Zeroizing::new((0..count as u64).flat_map(|i| [lot, &i.to_le_bytes()].concat()).collect())
}

fn positions(items: &[u8]) -> Positions {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    items.chunks_exact(16).map(|item| (number(&item[..8]), number(&item[8..]))).collect()
}

fn fill_by(lots: &Lots, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<()> {
    fill_on(1, lots, kind, count, net)
}

fn fill_on(streams: usize, lots: &Lots, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<()> {
    let run = Run { kind, count, level: LEVEL, streams };
    fill::fill(lots, HandshakeParameters::new(lots.nodes), &run, net, &|_| (), |stream, count, _| {
        Ok(make(&stream, count))
    })
}

fn fill_all(stocks: &[(Arc<Lots>, Disk)], kind: &Kind, count: usize) {
    let outcomes = run_parties(stocks.len(), |net| fill_by(&stocks[net.me().index()].0, kind, count, net));
    outcomes.into_iter().for_each(|outcome| outcome.expect("honest nodes fill"));
}

/// All parties take at once. Returns what each got.
fn take_all(stocks: &[(Arc<Lots>, Disk)], kind: &Kind, count: usize) -> Vec<Result<Positions>> {
    run_parties(stocks.len(), |net| {
        stocks[net.me().index()].0.take(kind, count, net).map(|items| positions(&items))
    })
}

fn left(lots: &Lots, kind: &Kind) -> usize {
    lots.levels().into_iter().find(|level| level.kind == *kind).expect("a kind").left
}

#[test]
fn concurrent_sessions_get_different_items_and_all_parties_the_same() {
    const SESSIONS: usize = 6;
    const TAKES: usize = 30;
    let stocks = in_memory_stocks(3);
    (0..4).for_each(|_| fill_all(&stocks, &KIND, 256));
    fill_all(&stocks, &OTHER, 256);
    let taken: Mutex<BTreeMap<(usize, usize), Vec<Positions>>> = Mutex::default();
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            for (mut net, (lots, _)) in mesh(3).into_iter().zip(&stocks) {
                let taken = &taken;
                scope.spawn(move || {
                    for take in 0..TAKES {
                        let (kind, count) =
                            if take % 5 == 0 { (OTHER, 3) } else { (KIND, 1 + (session + take) % 7) };
                        let items = lots.take(&kind, count, &mut net).expect("there is enough");
                        assert_eq!(items.len(), count * kind.item_bytes);
                        let mut taken = taken.lock();
                        taken.entry((session, take)).or_default().push(positions(&items));
                    }
                });
            }
        }
    });
    let taken = taken.into_inner();
    assert_eq!(taken.len(), SESSIONS * TAKES);
    assert!(taken.values().all(|parties| parties.len() == 3 && parties.iter().all(|p| *p == parties[0])));
    let mut all: Positions = taken.values().flat_map(|parties| parties[0].clone()).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "no item was handed out twice");
    let there = 4 * 256 + 256;
    for (lots, _) in &stocks {
        assert_eq!(left(lots, &KIND) + left(lots, &OTHER), there - count);
    }
}

/// Takes at all parties what they could go on without.
fn take_what_is_there(stocks: &[(Arc<Lots>, Disk)], count: usize) -> Vec<Result<Option<Positions>>> {
    run_parties(stocks.len(), |net| {
        let taken = stocks[net.me().index()].0.take_if_there(&[(KIND, count)], net);
        taken.map(|taken| taken.map(|items| positions(&items[0])))
    })
}

/// Both kinds or none, and each of them is made from now on.
#[test]
fn several_kinds_are_taken_together_or_nothing_is_spent() {
    let stocks = in_memory_stocks(3);
    fill_all(&stocks, &KIND, 256);
    let take = |counts: [usize; 2]| {
        run_parties(3, |net| {
            let wanted = [(KIND, counts[0]), (OTHER, counts[1])];
            let taken = stocks[net.me().index()].0.take_if_there(&wanted, net)?;
            Ok::<_, Error>(taken.map(|taken| taken.iter().map(|items| positions(items)).collect::<Vec<_>>()))
        })
    };
    assert!(take([4, 8]).into_iter().all(|taken| taken == Ok(None)));
    assert!(stocks.iter().all(|(lots, _)| lots.left(&KIND) == 256), "nothing is spent");
    assert!(stocks[0].0.is_wanted(&KIND) && stocks[0].0.is_wanted(&OTHER));
    fill_all(&stocks, &OTHER, 256);
    let taken: Vec<_> =
        take([4, 8]).into_iter().map(|taken| taken.expect("honest").expect("there")).collect();
    assert_eq!(taken[0].iter().map(Vec::len).collect::<Vec<_>>(), [4, 8]);
    assert!(taken.iter().all(|other| *other == taken[0]));
    assert!(stocks.iter().all(|(lots, _)| (lots.left(&KIND), lots.left(&OTHER)) == (252, 248)));
    for outcome in take([0, 1]) {
        assert!(matches!(outcome, Err(Error::Misuse(_))));
    }
}

/// The others do not go on as if nobody had taken anything.
#[test]
fn a_proposer_that_tells_one_claim_of_two_gets_an_error_from_all() {
    let stocks = in_memory_stocks(3);
    fill_all(&stocks, &KIND, 256);
    fill_all(&stocks, &OTHER, 256);
    let outcomes = run_parties(3, |net| {
        let lots = &stocks[net.me().index()].0;
        if net.me() != Party(0) {
            return lots.take_if_there(&[(KIND, 4), (OTHER, 8)], net).map(|taken| taken.map(|_| ()));
        }
        let told = lots.propose(&[(KIND, 4)])?.expect("there is enough");
        claims::tell(&lots.epoch, &told[0].0, net)?;
        claims::tell(&lots.epoch, &[], net).map(|()| None)
    });
    let is_refused = |outcome: &Result<Option<()>>| matches!(outcome, Err(Error::System(_)));
    assert!(outcomes[1..].iter().all(is_refused), "{outcomes:?}");
}

/// A session that needs the items comes first.
#[test]
fn nothing_is_taken_before_a_session_that_waits_for_its_turn() {
    let stocks = in_memory_stocks(3);
    fill_all(&stocks, &KIND, 256);
    fill_all(&stocks, &OTHER, 256);
    stocks[0].0.turns.lock().waiting.push((KIND, 1));
    assert!(take_what_is_there(&stocks, 4).into_iter().all(|taken| taken == Ok(None)));
    assert!(stocks[0].0.propose(&[(OTHER, 4)]).expect("marked").is_some(), "nobody waits for these");
    stocks[0].0.turns.lock().waiting.clear();
    assert!(take_what_is_there(&stocks, 4).into_iter().all(|taken| taken.is_ok_and(|taken| taken.is_some())));
}

#[test]
fn what_a_session_can_go_on_without_is_taken_once_and_by_all_or_by_none() {
    let stocks = in_memory_stocks(3);
    assert!(!stocks[0].0.is_wanted(&KIND));
    assert!(take_what_is_there(&stocks, 4).into_iter().all(|taken| taken == Ok(None)));
    assert!(stocks[0].0.is_wanted(&KIND) && !stocks[0].0.is_wanted(&OTHER), "from now on it is made");
    fill_all(&stocks, &KIND, 256);
    let mut all = Positions::new();
    for _ in 0..2 {
        let taken: Vec<_> =
            take_what_is_there(&stocks, 100).into_iter().collect::<Result<_>>().expect("there");
        let first = taken[0].clone().expect("there is enough");
        assert!(first.len() == 100 && taken.iter().all(|other| other.as_ref() == Some(&first)));
        all.extend(first);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 200, "no item was handed out twice");
    assert!(take_what_is_there(&stocks, 100).into_iter().all(|taken| taken == Ok(None)), "56 are left");
    // A follower that has spent the items does not follow.
    stocks[1].0.propose(&[(KIND, 56)]).expect("marked").expect("they are left");
    let outcomes = take_what_is_there(&stocks, 10);
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert!(matches!(outcomes[1], Err(Error::System(_))), "{outcomes:?}");
}

#[test]
fn a_follower_that_has_not_heard_of_all_claims_tells_what_the_proposer_has() {
    let stocks = in_memory_stocks(3);
    fill_all(&stocks, &KIND, 256);
    // Items that other sessions have taken, of which the others have not heard yet.
    stocks[0].0.propose(&[(KIND, 250)]).expect("marked").expect("there is enough");
    for outcome in take_all(&stocks, &KIND, 20) {
        let Err(Error::OutOfMaterial { detail }) = outcome else { panic!("not dry: {outcome:?}") };
        assert!(detail.contains("holds 6 triples, and 20 are needed"), "{detail}");
    }
}

#[test]
fn one_synced_write_serves_many_takes_and_one_take_needs_one_at_most() {
    let stocks = in_memory_stocks(2);
    (0..2).for_each(|_| fill_all(&stocks, &KIND, 256));
    let syncs = || stocks.iter().map(|(_, disk)| disk.syncs()).collect::<Vec<_>>();
    let syncs_of = |count: usize| {
        let before = syncs();
        take_all(&stocks, &KIND, count).into_iter().for_each(|taken| drop(taken.expect("enough")));
        syncs().into_iter().zip(before).map(|(after, before)| after - before).collect::<Vec<_>>()
    };
    let of_a_write = syncs_of(1);
    assert!(of_a_write.iter().all(|syncs| *syncs > 0));
    (1..32).for_each(|_| assert_eq!(syncs_of(1), [0, 0], "reserved ahead"));
    assert_eq!(syncs_of(1), of_a_write);
    assert_eq!(syncs_of(300), of_a_write, "over two lots");
}

#[test]
fn dry_is_said_by_all_in_words_for_people_and_costs_nothing() {
    let stocks = in_memory_stocks(3);
    fill_all(&stocks, &KIND, 20);
    for outcome in take_all(&stocks, &KIND, 21) {
        let Err(Error::OutOfMaterial { detail }) = outcome else { panic!("not dry: {outcome:?}") };
        for part in ["20 triples", "21 are needed", "[stock] in node.toml", "wait"] {
            assert!(detail.contains(part), "{part}: {detail}");
        }
    }
    stocks[1].0.note_missing([Party(2)].into_iter().collect());
    let Err(Error::OutOfMaterial { detail }) = take_all(&stocks, &KIND, 21).remove(1) else {
        panic!("not dry")
    };
    let names = detail.contains(&Party(2).to_string());
    assert!(names && detail.contains("is not refilled") && !detail.contains("being refilled"), "{detail}");
    for outcome in take_all(&stocks, &KIND, 20) {
        assert_eq!(outcome.expect("all of it").len(), 20);
    }
    assert!(
        take_all(&stocks, &OTHER, 1)
            .into_iter()
            .all(|outcome| matches!(outcome, Err(Error::OutOfMaterial { .. })))
    );
}

#[test]
fn claims_wait_for_what_is_made_meanwhile_and_take_turns() {
    let stocks = in_memory_stocks(2);
    fill_all(&stocks, &KIND, 8);
    let served = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (session, count) in [(0, 20), (1, 4)] {
            let waiting = || stocks[0].0.turns.lock().waiting.len();
            for (mut net, (lots, _)) in mesh(2).into_iter().zip(&stocks) {
                let served = &served;
                scope.spawn(move || {
                    let items = lots.take(&KIND, count, &mut net).expect("it is made meanwhile");
                    served.lock().push((session, positions(&items)));
                });
            }
            while waiting() <= session {
                std::thread::yield_now();
            }
        }
        // The second claim asks for less than there is, and does not overtake.
        fill_all(&stocks, &KIND, 16);
    });
    let mut served = served.into_inner();
    served.sort_by_key(|(session, _)| *session);
    let taken: Vec<usize> = served.iter().map(|(_, items)| items.len()).collect();
    assert_eq!(taken, [20, 20, 4, 4]);
    assert!(served.chunks(2).all(|nodes| nodes[0] == nodes[1]), "{served:?}");
    assert_eq!(served[2].1[0].1, 12, "behind what the first took");
    assert!(stocks[0].0.turns.lock().waiting.is_empty());
}

#[test]
fn streams_side_by_side_make_one_lot_of_all_items() {
    let stocks = in_memory_stocks(2);
    let outcomes = run_parties(2, |net| fill_on(3, &stocks[net.me().index()].0, &KIND, 50, net));
    outcomes.into_iter().for_each(|outcome| outcome.expect("honest nodes fill"));
    let taken = take_all(&stocks, &KIND, 50);
    let items = taken[0].as_ref().expect("there are as many");
    assert_eq!(taken[0], taken[1], "every stream is the same one at both nodes");
    let numbers: Vec<u64> = items.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, (0..16).chain(0..17).chain(0..17).collect::<Vec<_>>());
    assert_eq!(stocks[0].0.lock().len(), 0, "it was one lot");
}

#[test]
fn a_failure_on_one_stream_leaves_nothing_to_claim() {
    let stocks = in_memory_stocks(2);
    let outcomes = run_parties(2, |net| {
        let run = Run { kind: &KIND, count: 48, level: LEVEL, streams: 3 };
        let parameters = HandshakeParameters::new(2);
        fill::fill(&stocks[net.me().index()].0, parameters, &run, net, &|_| (), |stream, count, _| {
            match stream.label()[32] {
                2 => Err(Error::CheckFailed { what: "something" }),
                _ => Ok(make(&stream, count)),
            }
        })
    });
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::CheckFailed { .. }))), "{outcomes:?}");
    assert!(stocks.iter().all(|(lots, _)| left(lots, &KIND) == 0));
}

/// After a failed check on one stream, the other streams report only an earlier check. Silence on several
/// streams is several silences.
#[test]
fn every_error_of_every_stream_is_judged_and_the_one_that_says_most_is_told() {
    let earlier = || Error::CheckFailed { what: EARLIER_CHECK };
    let failed = || Error::CheckFailed { what: "something" };
    let silent = || Error::Unanswered { peer: Party(1), detail: "it is gone".into() };
    let closed = || Error::Closed { peer: Party(1), detail: "it is gone".into() };
    for streams in [1, 2, 8] {
        for (last, others) in
            [(failed(), earlier()), (failed(), silent()), (silent(), closed()), (closed(), earlier())]
        {
            let stocks = in_memory_stocks(2);
            let outcomes = run_parties(2, |net| {
                let judged = Mutex::new(Vec::new());
                let run = Run { kind: &KIND, count: 16 * streams, level: LEVEL, streams };
                let judge = |error: &Error| judged.lock().push(error.clone());
                let lots = &stocks[net.me().index()].0;
                let made =
                    fill::fill(lots, HandshakeParameters::new(2), &run, net, &judge, |stream, _, _| {
                        let is_last = usize::from(stream.label()[32]) == streams;
                        Err(if is_last { last.clone() } else { others.clone() })
                    });
                Ok((made, judged.into_inner()))
            });
            for outcome in outcomes {
                let (made, judged) = outcome.expect("it ends");
                assert_eq!(made, Err(last.clone()), "{streams} streams");
                let count = |of: &Error| judged.iter().filter(|error| *error == of).count();
                assert_eq!((count(&last), count(&others), judged.len()), (1, streams - 1, streams));
            }
        }
    }
}

/// A peer can keep another stream going for as long as it likes.
#[test]
fn an_error_is_judged_before_the_other_streams_end() {
    let stocks = in_memory_stocks(2);
    let outcomes = run_parties(2, |net| {
        let (tell, message) = std::sync::mpsc::channel();
        let message = Mutex::new(message);
        let run = Run { kind: &KIND, count: 32, level: LEVEL, streams: 2 };
        let judge = move |_: &Error| _ = tell.send(());
        let lots = &stocks[net.me().index()].0;
        fill::fill(lots, HandshakeParameters::new(2), &run, net, &judge, |stream, count, _| {
            match stream.label()[32] {
                1 => {
                    message
                        .lock()
                        .recv_timeout(Duration::from_secs(60))
                        .expect("judged while this stream goes on");
                    Ok(make(&stream, count))
                }
                _ => Err(Error::CheckFailed { what: "something" }),
            }
        })
    });
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::CheckFailed { .. }))), "{outcomes:?}");
}

#[test]
fn a_run_that_fails_leaves_nothing_to_claim() {
    let stocks = in_memory_stocks(3);
    let outcomes = run_parties(3, |net| {
        let lots = &stocks[net.me().index()].0;
        let failing = net.me() == Party(2);
        let run = Run { kind: &KIND, count: 20, level: LEVEL, streams: 1 };
        fill::fill(lots, HandshakeParameters::new(3), &run, net, &|_| (), |stream, count, _| match failing {
            true => Err(Error::CheckFailed { what: "something" }),
            false => Ok(make(&stream, count)),
        })
    });
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    assert!(stocks.iter().all(|(lots, _)| left(lots, &KIND) == 0));
    assert!(
        take_all(&stocks, &KIND, 1)
            .into_iter()
            .all(|outcome| matches!(outcome, Err(Error::OutOfMaterial { .. })))
    );
}

#[test]
fn nodes_that_want_to_make_different_things_make_nothing() {
    let stocks = in_memory_stocks(2);
    let outcomes =
        run_parties(2, |net| fill_by(&stocks[net.me().index()].0, &KIND, 20 + net.me().index(), net));
    for outcome in outcomes {
        assert!(matches!(outcome, Err(Error::Disagreement { field: "items to make", .. })), "{outcome:?}");
    }
    let lots = &stocks[0].0;
    let one = &mut mesh(2)[0];
    let many = MAX_BYTES_AT_ONCE / KIND.item_bytes + 1;
    assert!(matches!(fill_by(lots, &KIND, many, one), Err(Error::Misuse(_))), "more than a step");
    assert!(matches!(fill_by(lots, &Kind { name: "others", ..KIND }, 1, one), Err(Error::Misuse(_))));
}

/// A node that said that it holds a lot, and never heard that all do.
#[test]
fn a_lot_in_doubt_serves_if_the_proposer_heard_all_and_not_otherwise() {
    let stocks = in_memory_stocks(3);
    let hold = |lot: u8, heard: [bool; 3]| {
        for ((lots, _), heard) in stocks.iter().zip(heard) {
            let items = (0..8_u64).flat_map(|i| [u64::from(lot).to_le_bytes(), i.to_le_bytes()].concat());
            lots.hold([lot; 16], &KIND, Zeroizing::new(items.collect())).expect("room");
            lots.settle([lot; 16], heard);
        }
    };
    hold(1, [false, false, false]);
    assert!(
        take_all(&stocks, &KIND, 1)
            .into_iter()
            .all(|outcome| matches!(outcome, Err(Error::OutOfMaterial { .. })))
    );
    hold(2, [true, true, false]);
    assert_eq!(left(&stocks[2].0, &KIND), 0, "not counted");
    for outcome in take_all(&stocks, &KIND, 8) {
        assert!(outcome.expect("it serves").iter().all(|(lot, _)| *lot == 2));
    }
    (10..30).for_each(|lot| hold(lot, [false, false, false]));
    assert_eq!(stocks[2].0.lock().len(), MAX_IN_DOUBT);
}

/// The same lots taken into use again, over the same store.
#[test]
fn lots_that_are_put_back_begin_behind_what_was_marked() {
    let stocks = in_memory_stocks(2);
    fill_all(&stocks, &KIND, 64);
    let lot = stocks[0].0.lock()[0].id;
    let items =
        Zeroizing::new((0..64_u64).flat_map(|i| [[7; 8], i.to_le_bytes()].concat()).collect::<Vec<u8>>());
    let before = take_all(&stocks, &KIND, 10).remove(0).expect("enough");
    assert_eq!(before.len(), 10);
    let put_back = |me: Party| {
        let store = Arc::new(reopen(&stocks[me.index()].1.copy()));
        let lots = stock(me, 2, EPOCH, store).expect("begun");
        lots.hold(lot, &KIND, items.clone()).expect("room");
        lots.settle(lot, true);
        lots
    };
    let again: Vec<_> = Party::all(2).map(|me| (put_back(me), Disk::default())).collect();
    for outcome in take_all(&again, &KIND, 10) {
        let numbers: Vec<u64> = outcome.expect("enough").into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, (10..20).collect::<Vec<_>>());
    }
    // The stock of an ended epoch is of no use, whatever is in memory.
    let (over, _) = &again[0];
    over.store.begin_lots([2; 32]).expect("begun");
    assert!(take_all(&again, &KIND, 30).into_iter().all(|outcome| outcome.is_err()));
    assert_eq!(left(over, &KIND), 44);
}

#[test]
fn what_is_not_marked_on_the_disk_is_not_handed_out() {
    let stocks = in_memory_stocks(2);
    fill_all(&stocks, &KIND, 64);
    for full in [1, 0] {
        stocks[full].1.fill_up();
        let outcomes = take_all(&stocks, &KIND, 12);
        assert!(matches!(outcomes[full], Err(Error::System(_))), "{outcomes:?}");
        stocks[full].1.make_room();
    }
    let served = take_all(&stocks, &KIND, 12);
    assert!(served[0].is_ok() && served[0] == served[1], "{served:?}");
}
