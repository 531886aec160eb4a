//! Claims that are made before a session asks.

use polyclave_config::LatencySettings;
use polyclave_protocol::catalog;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::stock::{Levels, Stock};

use super::*;
use crate::material::stock::bounded::{Ahead, BoundedStock};
use crate::material::target::{Target, targets};

const NODES: usize = 3;
const CIRCUITS: Kind = Kind { name: "circuits", purpose: Purpose::Circuits, item_bytes: 16, per_block: 1 };

/// Stocks that hold some circuits.
fn with_circuits(count: usize) -> Vec<(Arc<Lots>, Disk)> {
    let of = |me| {
        let (store, disk) = in_memory();
        let lots = Lots::new(me, NODES, EPOCH, vec![KIND, CIRCUITS], Arc::new(store));
        (lots.expect("begun"), disk)
    };
    let stocks: Vec<_> = Party::all(NODES).map(of).collect();
    if count > 0 {
        fill_all(&stocks, &CIRCUITS, count);
    }
    stocks
}

/// The stock as one session uses it.
fn of_session(lots: &Arc<Lots>) -> BoundedStock {
    let targets =
        targets(&[vec![KIND, CIRCUITS]], Party(0), Levels { aes_blocks: 8, des_blocks: 8, circuits: 32 });
    BoundedStock {
        lots: lots.clone(),
        targets: targets.into(),
        memory: 0,
        takes_circuits: true,
        through_circuits: Arc::default(),
        over: Arc::default(),
        first: Default::default(),
        ahead: Default::default(),
    }
}

/// Claims ahead at all nodes.
fn claim_all(stocks: &[(Arc<Lots>, Disk)], ahead: Ahead) -> Vec<Result<BoundedStock>> {
    run_parties(NODES, |net| {
        let stock = of_session(&stocks[net.me().index()].0);
        stock.claim_ahead(ahead, net).map(|()| stock)
    })
}

/// A network on which nobody can be reached.
fn alone(me: usize) -> impl Net {
    mesh(NODES).swap_remove(me)
}

#[test]
fn what_was_claimed_ahead_is_taken_without_a_message() {
    let stocks = with_circuits(16);
    let claimed = claim_all(&stocks, Ahead { kind: 1, count: 3 });
    let taken = claimed.into_iter().enumerate().map(|(me, stock)| {
        let stock = stock.expect("claimed");
        let items =
            stock.take_if_there(&[(CIRCUITS, 3)], &mut alone(me)).expect("no message").expect("there");
        assert_eq!(stock.first_taken(), Some(Ahead { kind: 1, count: 3 }));
        assert_eq!(stocks[me].0.left(&CIRCUITS), 13);
        assert!(stock.take_if_there(&[(CIRCUITS, 3)], &mut alone(me)).is_err(), "once only");
        positions(&items[0])
    });
    let taken: Vec<Positions> = taken.collect();
    assert!(taken[0].len() == 3 && taken.iter().all(|other| *other == taken[0]), "{taken:?}");
}

#[test]
fn an_empty_stock_says_so_ahead() {
    let stocks = with_circuits(0);
    for (me, stock) in claim_all(&stocks, Ahead { kind: 1, count: 3 }).into_iter().enumerate() {
        let taken = stock.expect("claimed").take_if_there(&[(CIRCUITS, 3)], &mut alone(me));
        assert_eq!(taken.map(|items| items.is_none()), Ok(true));
    }
    assert!(stocks[0].0.is_wanted(&CIRCUITS), "they are made");
}

#[test]
fn a_session_that_takes_something_else_never_gets_what_was_claimed_ahead() {
    let stocks = with_circuits(16);
    let of_others = run_parties(NODES, |net| {
        let stock = of_session(&stocks[net.me().index()].0);
        stock.claim_ahead(Ahead { kind: 1, count: 3 }, net)?;
        let two = stock.take_if_there(&[(CIRCUITS, 2)], net)?.expect("there are enough");
        assert_eq!(stock.first_taken(), Some(Ahead { kind: 1, count: 2 }));
        let three = stock.take_if_there(&[(CIRCUITS, 3)], net)?.expect("there are enough");
        Ok::<_, Error>([positions(&two[0]), positions(&three[0])].concat())
    });
    let of_others: Vec<Positions> = of_others.into_iter().collect::<Result<_>>().expect("honest");
    assert!(of_others.iter().all(|other| *other == of_others[0]));
    let numbers: Vec<u64> = of_others[0].iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, [3, 4, 5, 6, 7], "the first three were claimed ahead");
    assert!(stocks.iter().all(|(lots, _)| lots.left(&CIRCUITS) == 8));
}

#[test]
fn only_what_a_session_can_go_on_without_is_claimed_ahead() {
    let stocks = with_circuits(16);
    let most = Target { kind: CIRCUITS, ciphers: "", blocks: 32, largest: 16 }.accepted();
    assert!(most < usize::from(u8::MAX));
    for ahead in [
        Ahead { kind: 0, count: 1 },
        Ahead { kind: 2, count: 1 },
        Ahead { kind: u8::MAX, count: 1 },
        Ahead { kind: 1, count: most as u8 + 1 },
    ] {
        for outcome in claim_all(&stocks, ahead) {
            assert!(matches!(outcome.err(), Some(Error::Misuse(_))), "{ahead:?}");
        }
    }
    assert!(stocks.iter().all(|(lots, _)| lots.left(&CIRCUITS) == 16));
}

/// A computation in parts may ask for many together.
#[test]
fn a_session_that_asks_for_more_than_nodes_keep_goes_on_without_and_nothing_is_claimed_ahead_for_it() {
    let stocks = with_circuits(16);
    let most = Target { kind: CIRCUITS, ciphers: "", blocks: 32, largest: 16 }.accepted();
    let stock = of_session(&stocks[0].0);
    let taken = stock.take_if_there(&[(CIRCUITS, most + 1)], &mut alone(0));
    assert_eq!(taken.map(|items| items.is_none()), Ok(true), "nobody is asked");
    assert_eq!(stock.first_taken(), Some(Ahead::default()));
}

#[test]
fn a_session_without_circuits_tells_nothing_of_what_it_took() {
    let stocks = with_circuits(16);
    let stock = of_session(&stocks[0].0);
    assert_eq!(stock.first_taken(), Some(Ahead::default()), "it took nothing");
    let stock = BoundedStock { takes_circuits: false, ..of_session(&stocks[0].0) };
    assert_eq!(stock.take_if_there(&[(CIRCUITS, 1)], &mut alone(0)).map(|items| items.is_none()), Ok(true));
    assert_eq!(stock.first_taken(), None);
}

/// The first node's part of a circuit can be forty times smaller than that of the other one.
#[test]
fn a_run_of_the_most_circuits_is_one_that_every_node_has_room_for() {
    let lots = &with_circuits(0)[0].0;
    for (protocol, nodes) in [("replicated-active", 3), ("spdz-tower", 2)] {
        let config = catalog::service(protocol, nodes, 1).expect("nodes serve with it");
        let of_all: Vec<_> = Party::all(nodes).map(|party| config.kinds(party)).collect();
        let most = Levels { aes_blocks: 8, des_blocks: 8, circuits: LatencySettings::MOST_CIRCUITS };
        for target in targets(&of_all, Party(0), most) {
            let run = ByProposer.blocks_at_once(lots, &target) * target.kind.per_block;
            assert!(run > 0 && run * target.largest <= MAX_BYTES_AT_ONCE, "{target:?}: {run}");
            let is_circuit = target.kind.purpose == Purpose::Circuits;
            assert!(!is_circuit || run * target.largest <= 16 << 20, "{target:?}: {run}");
        }
    }
}
