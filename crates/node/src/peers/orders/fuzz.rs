//! Fuzz targets: foreign bytes in place of what nodes tell each other on control streams.

use polyclave_harness::{fuzz, within_memory};
use polyclave_protocol::versions::NODES;
use polyclave_store::Start;

use super::*;

const PEER: Party = Party(1);

fn state() -> State {
    let levels = [1000, 0, 7, 0, 0, 0, 0, u16::MAX];
    let features = FeatureSet::from_bytes([1, 0, 0, 0, 0, 0, 0, 128]);
    let (wants_refresh, prepared, keys) = (false, true, 12);
    State {
        epoch: [3; 32],
        quarantined: true,
        wants_refresh,
        prepared,
        levels,
        keys,
        lacks_standby: 5,
        features,
    }
}

/// Orders, as they travel.
fn orders() -> Vec<Vec<u8>> {
    let (name, mark) = ([9; 16], Mark { number: 1 << 40, value: [5; 16] });
    let orders = [
        Order::Beat(Beat { state: state(), mark, holds: 77, now: 1 << 31 }),
        Order::Channel { serving: PartySet::all(3), name },
        Order::Setup { name },
        Order::Renew { name },
        Order::Fill { name, kind: 3, count: 1000, request: None },
        Order::Rotate { name },
    ];
    orders.map(|order| api::encode(&order).expect("it is small")[4..].to_vec()).to_vec()
}

/// A greeting, as it travels.
fn greeting() -> Vec<u8> {
    let start = Start { first: 4, boot: [6; 16] };
    let past = Past { number: 9, recent: vec![[1; 16], [2; 16]], starts: vec![start, start] };
    let (cluster, setup, prepared) = ([1; 32], [2; 32], [0; 32]);
    let (release, lists, knows) = ("0.2.0".into(), [4; 32], FeatureSet::from_bytes([7; 8]));
    let state = state();
    let greeting = Greeting { cluster, past, holds: 3, setup, prepared, state, release, knows, lists };
    api::encode(&greeting).expect("it is small")[4..].to_vec()
}

/// A change of these bytes needs another version of the wire between nodes, unless the last release does not
/// have the one that is there now; CONTRIBUTING.md says how.
#[test]
fn the_bytes_of_orders_and_greetings_are_those_of_this_version() {
    let digest = blake3::hash(&[orders().concat(), greeting()].concat()).to_hex();
    assert_eq!((NODES.spoken().newest, &digest[..16]), (5, "6d13f5afde87bd3e"));
}

#[test]
fn no_order_of_a_peer_panics_and_what_is_read_comes_back() {
    let valid = orders();
    fuzz!("orders", &[], valid, |bytes: &[u8]| {
        if let Ok(order) = api::decode::<Order>(bytes, PEER) {
            let again = api::encode(&order).expect("it is small");
            assert_eq!(api::decode(&again[4..], PEER), Ok(order));
        }
    });
}

#[test]
fn no_greeting_of_a_peer_panics_or_takes_memory_on_its_word() {
    let valid = vec![greeting()];
    fuzz!("node-greetings", &[], valid, |bytes: &[u8]| {
        within_memory((4 << 20) + 16 * bytes.len(), || {
            if let Ok(greeting) = api::decode::<Greeting>(bytes, PEER) {
                let again = api::encode(&greeting).expect("it is no longer than it was");
                assert_eq!(api::decode::<Greeting>(&again[4..], PEER), Ok(greeting));
            }
        });
    });
}
