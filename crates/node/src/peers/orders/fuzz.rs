//! Fuzz targets: foreign bytes in place of what nodes tell each other on control streams.

use polyclave_harness::{fuzz, within_memory};
use polyclave_store::Start;

use super::*;

const PEER: Party = Party(1);

fn state() -> State {
    let levels = [1000, 0, 7, 0, 0, 0, 0, u16::MAX];
    let features = FeatureSet::from_bytes([1, 0, 0, 0, 0, 0, 0, 128]);
    let (wants_refresh, prepared, keys) = (false, true, 12);
    State { epoch: [3; 32], quarantined: true, wants_refresh, prepared, levels, keys, features }
}

#[test]
fn no_order_of_a_peer_panics_and_what_is_read_comes_back() {
    let (name, mark) = ([9; 16], Mark { number: 1 << 40, value: [5; 16] });
    let orders = [
        Order::Beat(Beat { state: state(), mark, holds: 77, now: 1 << 31 }),
        Order::Channel { serving: PartySet::all(3), name },
        Order::Setup { name },
        Order::Renew { name },
        Order::Fill { name, kind: 3, count: 1000, request: None },
        Order::Rotate { name },
    ];
    let valid = orders.map(|order| api::encode(&order).expect("it is small")[4..].to_vec()).to_vec();
    fuzz!("orders", &[], valid, |bytes: &[u8]| {
        if let Ok(order) = api::decode::<Order>(bytes, PEER) {
            let again = api::encode(&order).expect("it is small");
            assert_eq!(api::decode(&again[4..], PEER), Ok(order));
        }
    });
}

#[test]
fn no_greeting_of_a_peer_panics_or_takes_memory_on_its_word() {
    let start = Start { first: 4, boot: [6; 16] };
    let past = Past { number: 9, recent: vec![[1; 16], [2; 16]], starts: vec![start, start] };
    let (cluster, setup, prepared) = ([1; 32], [2; 32], [0; 32]);
    let (release, lists, knows) = ("0.2.0".into(), [4; 32], FeatureSet::from_bytes([7; 8]));
    let state = state();
    let greeting = Greeting { cluster, past, holds: 3, setup, prepared, state, release, knows, lists };
    let valid = vec![api::encode(&greeting).expect("it is small")[4..].to_vec()];
    fuzz!("node-greetings", &[], valid, |bytes: &[u8]| {
        within_memory((4 << 20) + 16 * bytes.len(), || {
            if let Ok(greeting) = api::decode::<Greeting>(bytes, PEER) {
                let again = api::encode(&greeting).expect("it is no longer than it was");
                assert_eq!(api::decode::<Greeting>(&again[4..], PEER), Ok(greeting));
            }
        });
    });
}
