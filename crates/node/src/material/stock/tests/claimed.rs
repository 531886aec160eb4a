//! Claims by a proposer that deviates: party 1 refuses them, and has lost nothing.

use super::super::claims::{self, PROPOSER, tell};
use super::super::proposer::PATIENCE;
use super::*;

/// The stocks of two parties, with one lot of 64 items of each kind. Also returns the name of the first lot.
fn two_lots() -> (Vec<(Arc<Lots>, Disk)>, [u8; 16]) {
    let stocks = in_memory_stocks(2);
    fill_all(&stocks, &KIND, 64);
    fill_all(&stocks, &OTHER, 64);
    let first = stocks[1].0.lock()[0].id;
    (stocks, first)
}

/// The name of the case, the epoch, the claimed ranges, and the kind and number that are asked for.
type Bad = (&'static str, [u8; 32], Vec<Range>, Kind, usize);

fn range(lot: [u8; 16], from: u64, to: u64) -> Range {
    Range { lot, from, to }
}

/// Party 0 sends a claim of this epoch, and party 1 takes `count` items.
fn hears(lots: &Lots, epoch: [u8; 32], ranges: &[Range], kind: &Kind, count: usize) -> Result<Positions> {
    let mut outcomes = run_parties(2, |net| match net.me() {
        PROPOSER => tell(&epoch, ranges, net).map(|()| Vec::new()),
        _ => lots.take(kind, count, net).map(|items| positions(&items)),
    });
    outcomes.remove(1)
}

#[test]
fn claims_that_do_not_fit_are_refused_and_cost_nothing() {
    let (stocks, lot) = two_lots();
    let (lots, disk) = &stocks[1];
    let numbers = |ranges: Result<Positions>| {
        ranges.expect("followed").into_iter().map(|(_, number)| number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(hears(lots, EPOCH, &[range(lot, 0, 10)], &KIND, 10)), (0..10).collect::<Vec<_>>());
    let max = u64::MAX;
    let bad: [Bad; 15] = [
        ("the largest number", EPOCH, vec![range(lot, 10, max)], KIND, 10),
        ("all that is left", EPOCH, vec![range(lot, 10, 64)], KIND, 10),
        ("from the largest number", EPOCH, vec![range(lot, max - 1, max)], KIND, 1),
        ("lengths that overflow", EPOCH, vec![range(lot, 0, max), range([8; 16], 0, max)], KIND, 10),
        ("backwards", EPOCH, vec![range(lot, 20, 10)], KIND, 10),
        ("nothing", EPOCH, vec![range(lot, 10, 10)], KIND, 10),
        ("outside", EPOCH, vec![range(lot, 60, 70)], KIND, 10),
        ("an unknown lot", EPOCH, vec![range([9; 16], 0, 10)], KIND, 10),
        ("another kind", EPOCH, vec![range(lot, 10, 20)], OTHER, 10),
        ("an old epoch", [0; 32], vec![range(lot, 10, 20)], KIND, 10),
        ("a replay", EPOCH, vec![range(lot, 0, 10)], KIND, 10),
        ("an overlap", EPOCH, vec![range(lot, 9, 19)], KIND, 10),
        ("a lot twice", EPOCH, vec![range(lot, 10, 15), range(lot, 12, 17)], KIND, 10),
        ("beyond the gap", EPOCH, vec![range(lot, 27, 37)], KIND, 10),
        ("too few", EPOCH, vec![range(lot, 10, 19)], KIND, 10),
    ];
    let (levels, syncs) = (lots.levels(), disk.syncs());
    for (what, epoch, ranges, kind, count) in bad {
        let outcome = hears(lots, epoch, &ranges, &kind, count);
        assert!(matches!(outcome, Err(Error::System(_))), "{what}: {outcome:?}");
        assert_eq!((lots.levels(), disk.syncs()), (levels.clone(), syncs), "{what}");
    }
    // Items that were refused before can still be claimed, up to the last, and so can items that were left
    // out.
    for (from, to) in [(26, 40), (10, 26), (40, 64)] {
        let expected: Vec<u64> = (from..to).collect();
        assert_eq!(numbers(hears(lots, EPOCH, &[range(lot, from, to)], &KIND, expected.len())), expected);
    }
    let spent = hears(lots, EPOCH, &[range(lot, 63, 64)], &KIND, 1);
    assert!(matches!(spent, Err(Error::System(_))), "the lot is gone: {spent:?}");
}

#[test]
fn claims_are_read_with_limits() {
    let (stocks, _) = two_lots();
    let hears = |message: &[u8]| {
        let mut outcomes = run_parties(2, |net| match net.me() {
            PROPOSER => net.send(Party(1), message),
            _ => stocks[1].0.take(&KIND, 1, net).map(drop),
        });
        outcomes.remove(1)
    };
    let many = [&EPOCH[..], &(u32::MAX - 1).to_le_bytes()].concat();
    for message in [&many[..], &many[..35], &[]] {
        assert!(matches!(hears(message), Err(Error::Peer { .. })));
    }
    assert!(matches!(hears(&[&EPOCH[..], &[1, 0, 0, 0]].concat()), Err(Error::Closed { .. })));
    assert_eq!(left(&stocks[1].0, &KIND), 64);
}

/// The refresh waits for the request, and the material for the request is made after the refresh.
#[test]
fn no_claim_waits_for_material_while_a_refresh_waits_for_the_request() {
    let (stocks, _) = two_lots();
    stocks[0].0.hold_back(true);
    let mut outcomes = run_parties(2, |net| match net.me() {
        PROPOSER => stocks[0].0.take(&KIND, 65, net).map(|items| positions(&items)),
        _ => {
            let none = claims::hear_when_it_is_there(&EPOCH, net, || panic!("it waits"))?;
            assert!(none.is_empty(), "it is dry");
            claims::hear_left(net).map(|_| Vec::new())
        }
    });
    assert!(outcomes.remove(1).is_ok());
    let Err(Error::OutOfMaterial { detail }) = outcomes.remove(0) else { panic!("not dry") };
    assert!(detail.contains("fresh common secrets"), "{detail}");
    // What is there is taken.
    let taken = take_all(&stocks, &KIND, 64);
    assert!(taken.iter().all(Result::is_ok), "{taken:?}");
}

/// The proposer says again and again that the claim waits.
#[test]
fn a_claim_that_waits_in_vain_is_given_up_although_the_proposer_goes_on() {
    let (stocks, _) = two_lots();
    let waits = [&EPOCH[..], &u32::MAX.to_le_bytes()].concat();
    let outcomes = run_parties(2, |net| match net.me() {
        PROPOSER => loop {
            net.send(Party(1), &waits)?;
            std::thread::sleep(Duration::from_millis(5));
        },
        _ => stocks[1].0.take(&KIND, 1, net).map(drop),
    });
    assert!(matches!(&outcomes[1], Err(Error::OutOfStep { peer: PROPOSER, .. })), "{outcomes:?}");
    assert_eq!(left(&stocks[1].0, &KIND), 64);
}

/// Two sessions: the claim of the second arrives first, and leaves out more than it may until the other one
/// has come.
#[test]
fn a_claim_waits_for_those_that_are_on_their_way() {
    let (stocks, _) = two_lots();
    let [mut first, mut second] = [mesh(2), mesh(2)].map(Vec::into_iter);
    let mut proposer = [&mut first, &mut second].map(|nets| nets.next().expect("party 0"));
    for (net, count) in proposer.iter_mut().zip([40, 4]) {
        stocks[0].0.take(&KIND, count, net).expect("there is enough");
    }
    let [mut first, mut second] = [first, second].map(|mut nets| nets.next().expect("party 1"));
    let lots = &stocks[1].0;
    std::thread::scope(|scope| {
        let later = scope.spawn(|| positions(&lots.take(&KIND, 4, &mut second).expect("it waits")));
        std::thread::sleep(PATIENCE / 8);
        assert_eq!(positions(&lots.take(&KIND, 40, &mut first).expect("followed")).len(), 40);
        let later: Vec<u64> = later.join().expect("no panic").into_iter().map(|(_, at)| at).collect();
        assert_eq!(later, [40, 41, 42, 43]);
    });
}

/// A proposer whose memory was put back does not notice it; the other node does.
#[test]
fn a_proposer_whose_memory_was_put_back_is_refused_what_it_proposed_before() {
    let (stocks, lot) = two_lots();
    let (lots, _) = &stocks[1];
    hears(lots, EPOCH, &[range(lot, 0, 10)], &KIND, 10).expect("followed");
    // Its image is from the moment before; it proposes from the beginning.
    let outcomes = take_all(&stocks, &KIND, 10);
    assert!(matches!(outcomes[1], Err(Error::System(_))), "{outcomes:?}");
}
