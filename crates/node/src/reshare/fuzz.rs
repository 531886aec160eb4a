//! Fuzz targets: foreign bytes in place of what nodes tell each other in a reshare.

use polyclave_harness::{fuzz, within_memory};

use super::next_step::ReshareState;
use super::offers::decode;
use super::offers::tests::offer;

#[test]
fn no_list_of_keys_panics_or_takes_memory_on_its_word() {
    let valid = vec![postcard::to_stdvec(&[offer(1), offer(2)]).expect("it is small"), vec![0]];
    fuzz!("reshare-offers", &[], valid, |bytes: &[u8]| {
        within_memory((4 << 20) + 256 * bytes.len(), || {
            if let Ok(offers) = decode(bytes) {
                let again = postcard::to_stdvec(&offers).expect("it is no longer than it was");
                assert_eq!(decode(&again), Ok(offers));
            }
        });
    });
}

#[test]
fn no_standing_of_a_peer_panics_and_what_is_read_comes_back() {
    let reshare_state =
        ReshareState { in_use: [1; 32], refresh: Some([2; 32]), prepared: None, is_done: true };
    fuzz!("reshare-standings", &[], vec![reshare_state.encode().to_vec()], |bytes: &[u8]| {
        if let Ok(bytes) = bytes.try_into() {
            let reshare_state = ReshareState::decode(bytes);
            assert_eq!(ReshareState::decode(&reshare_state.encode()), reshare_state);
        }
    });
}
