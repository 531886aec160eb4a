//! What the nodes evaluate in one go: the lowest bid, the data key from the parts of the sets, and what
//! AES-128-GCM needs of both.

use polyclave_cipher::boolean::words::{choose, less, pairwise};
use polyclave_cipher::boolean::{Bit, BooleanBuilder, Word};
use polyclave_cipher::{Builder, Circuit, Matrix, Wire, catalog};
use polyclave_protocol::PartySet;

use crate::bids::{AMOUNT_DIGITS, BID_BYTES};
use crate::modulus::KEY_BYTES;

/// Bytes of a block of AES.
pub const BLOCK: usize = 16;
/// Blocks of a bid.
pub const DATA_BLOCKS: usize = BID_BYTES / BLOCK;
/// Blocks that AES encrypts: zeros for the hash key, J0 for the tag, and a counter for every block of data.
pub const COUNTERS: usize = 2 + DATA_BLOCKS;

/// Inputs, in order: for every set and every member `part`, which that member gives; for every party its
/// `bid`, in bits; and blocks `counter`, [`COUNTERS`] of them. Outputs: `differences`, `hash_key`, `cover`
/// and `ciphertext`, of [`DATA_BLOCKS`] blocks.
///
/// K is the XOR of what the first members of the sets give. What the other members of a set give is added to
/// what its first member gives: `differences`, all zero if members are honest.
pub fn sealing(parties: usize, sets: &[PartySet]) -> Circuit {
    let aes = catalog::find("aes-128").expect("the catalog has it");
    let mut b = Builder::new("sealing for an outsider");
    let (mut key_parts, mut differences) = (Vec::new(), Vec::new());
    for set in sets {
        let of_member = |_| b.input("part", KEY_BYTES, 8);
        let given: Vec<Vec<Wire>> = set.iter().map(of_member).collect();
        for other in &given[1..] {
            differences.extend(b.xor_each(&given[0], other));
        }
        key_parts.push(given[0].clone());
    }
    let bids: Vec<Vec<Wire>> = (0..parties).map(|_| b.input("bid", 8 * BID_BYTES, 1)).collect();
    let counters: Vec<Vec<Wire>> = (0..COUNTERS).map(|_| b.input("counter", BLOCK, 8)).collect();

    let key: Vec<Wire> =
        (0..KEY_BYTES).map(|i| b.xor(&key_parts.iter().map(|part| part[i]).collect::<Vec<_>>())).collect();
    let round_keys = b.call(&aes.key_schedule, &[&key]).remove(0);
    let mut encrypted: Vec<Vec<Wire>> =
        counters.iter().map(|counter| b.call(&aes.encrypt, &[counter, &round_keys]).remove(0)).collect();
    let keystream = encrypted.split_off(2).concat();

    let bids: Vec<&[Wire]> = bids.iter().map(Vec::as_slice).collect();
    let lowest = b.call(&lowest(parties), &bids).remove(0);
    // The first bit is the most significant one.
    let term = |(i, bit): (usize, &Wire)| (*bit, Matrix::place(8, 7 - i as u8));
    let ciphertext: Vec<Wire> = keystream
        .iter()
        .zip(lowest.chunks(8))
        .map(|(byte, bits)| {
            let bits = bits.iter().enumerate().map(term);
            b.linear(bits.chain([(*byte, Matrix::identity(8))]).collect(), 0)
        })
        .collect();

    b.output("differences", &differences);
    b.output("hash_key", &encrypted[0]);
    b.output("cover", &encrypted[1]);
    b.output("ciphertext", &ciphertext);
    b.finish()
}

/// The bid with the lowest amount, of several the first: `bid` for every party to `lowest`.
fn lowest(parties: usize) -> Circuit {
    let mut b = BooleanBuilder::new("lowest bid");
    let bids: Vec<Vec<Bit>> = (0..parties).map(|_| b.input("bid", 8 * BID_BYTES, false)).collect();
    let amount = |bid: &[Bit]| bid[..8 * AMOUNT_DIGITS].iter().rev().copied().collect::<Word>();
    let lowest = pairwise(bids, |first, second| {
        let takes_second = less(&mut b, &amount(second), &amount(first));
        choose(&mut b, takes_second, second, first)
    });
    b.output("lowest", &lowest.expect("one party at least"));
    b.finish()
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{AnyMap, Cells, cleartext, compile};

    use super::*;
    use crate::bids::bid;

    #[test]
    fn lowest_bid_is_found_in_every_place_and_the_first_of_equal_ones() {
        let cases =
            [[7, 8, 9, 10], [8, 7, 9, 10], [10, 9, 7, 8], [99_999_999, 10, 8, 7], [5, 5, 5, 5], [9, 5, 5, 7]];
        for amounts in cases {
            let bids = (0..).zip(amounts).map(|(owner, amount)| bid(owner, amount).expect("it fits"));
            let bids: Vec<_> = bids.collect();
            let cells = |bid: &Vec<u8>| Cells::from_blocks(8 * BID_BYTES, 1, bid).expect("it fits");
            let inputs: Vec<Cells> = bids.iter().map(|bid| cells(bid)).collect();
            let found =
                cleartext::run(&compile(&lowest(4), &AnyMap), 1, &inputs).expect("they fit").remove(0);
            let least = (0..4).min_by_key(|i| amounts[*i]).expect("four");
            assert_eq!(found.to_blocks(), **bids[least]);
        }
    }
}
