//! Masks of clients' blocks that are made ahead, with the proofs that bring them to their clients
//! (`client.rs`). So a mask takes one claim of material when a client asks for it, and no round. Nodes that
//! are far from each other save four.
//!
//! An item is a mask of one block of 16 bytes: its bits, and this party's message to the client about it, E,
//! v, E rho, v rho and rho, with shares of zeros added. Each has a rho and a v of its own, and is one message
//! to the client among several. What was opened for the products was checked before the item was stored. So
//! the argument of `client.rs` holds for each: rho and v are uniform to the others until this party sends its
//! message.
//!
//! A mask that is shorter than its blocks tells the client bytes of the mask that nobody uses.

use polyclave_cipher::Matrix;
use polyclave_field::Gf2_64;
use zeroize::Zeroizing;

use super::Mask;
use super::arithmetic::Arithmetic;
use super::client::{PROOF, packed};
use super::elements::{PRODUCT_TRIPLES, of_coordinates};
use super::shared::image_of_bits;
use crate::Result;
use crate::authenticated::Authenticated;
use crate::interface::elements::{ELEMENT_BYTES, Elements};
use crate::interface::net::Net;
use crate::interface::stock::{Kind, Purpose};

/// Bytes of a mask, which are one element.
const BLOCK: usize = ELEMENT_BYTES;
const BITS: usize = 8 * BLOCK;
/// A bit and its MAC.
const BIT: usize = 2 * size_of::<u64>();
/// Triples that a proof takes: for v and rho, and for two products.
pub(super) const PROOF_TRIPLES: usize = 2 + 2 * PRODUCT_TRIPLES;

/// More blocks than these take bits of the stock, and a proof that is made for them: they are no matter of
/// rounds.
const MOST: usize = 8;

pub(super) const KIND: Kind = Kind {
    name: "masks for clients",
    purpose: Purpose::Surroundings,
    item_bytes: BITS * BIT + PROOF,
    per_block: MOST,
};

impl Arithmetic<Gf2_64> {
    /// Makes so many items, for a stock.
    pub(super) fn make_masks(&mut self, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let bits = self.bits(BITS * count, net)?;
        let bytes = image_of_bits(&bits, &Matrix::identity(8), BLOCK * count);
        let proofs = self.proofs(&packed(&bytes), net)?;
        // Allocated at its full size: growing would leave copies behind.
        let mut items = Zeroizing::new(Vec::with_capacity(count * KIND.item_bytes));
        for (item, proof) in proofs.chunks_exact(PROOF).enumerate() {
            for bit in 0..BITS {
                let at = place(bit / BLOCK, item * BLOCK + bit % BLOCK, count * BLOCK);
                items.extend(bits.values[at].to_le_bytes());
                items.extend(bits.macs[at].to_le_bytes());
            }
            items.extend_from_slice(proof);
        }
        Ok(items)
    }

    /// This party's shares of E, v, w, u and rho of each element, with shares of zeros added.
    pub(super) fn proofs(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let count = elements.count();
        let triples = self.triples(count * PROOF_TRIPLES, net)?;
        let random = triples.part(0..2 * count);
        let random = of_coordinates(&random.a, &random.b);
        let (rho, v) = (random.part(0..count), random.part(count..2 * count));
        let values = Elements::join(&[elements, &v]);
        let factors = Elements::join(&[&rho, &rho]);
        let products = self.multiply_by(&values, &factors, triples.part(2 * count..triples.a.len()), net)?;
        self.check(net)?;
        let mut zeros = Zeroizing::new(vec![0; PROOF / size_of::<u64>() * count]);
        self.source.zeros(&mut zeros);
        let mut proofs = Zeroizing::new(Vec::with_capacity(PROOF * count));
        let element = |of: &Elements, at: usize| of.shares[at * ELEMENT_BYTES..][..ELEMENT_BYTES].to_vec();
        for at in 0..count {
            let own = [(&values, at), (&values, count + at), (&products, at), (&products, count + at)];
            for (of, at) in own.into_iter().chain([(&rho, at)]) {
                proofs.extend_from_slice(&Zeroizing::new(element(of, at)));
            }
        }
        for (share, zero) in proofs.as_chunks_mut::<8>().0.iter_mut().zip(zeros.iter()) {
            *share = (u64::from_le_bytes(*share) ^ zero).to_le_bytes();
        }
        Ok(proofs)
    }

    /// A mask from the stock, and the message to its client; `None` if the stock keeps none, or none so long.
    pub(super) fn mask_from_stock(
        &mut self,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Option<(Mask, Vec<u8>)>> {
        self.refuse_over()?;
        self.key.refuse_retired()?;
        let blocks = len.div_ceil(BLOCK);
        if !(1..=MOST).contains(&blocks) {
            return Ok(None);
        }
        let Some(items) = self.source.deal_masks(&KIND, blocks, net)? else { return Ok(None) };
        self.tally.of(self.phase).bits += 8 * len as u64;
        let mut bits = Authenticated::zero(8 * len);
        let mut message = Vec::with_capacity(blocks * (4 + PROOF));
        for (number, item) in items.chunks_exact(KIND.item_bytes).enumerate() {
            let (of_bits, proof) = item.split_at(BITS * BIT);
            let bytes = BLOCK.min(len - number * BLOCK);
            let words = of_bits.as_chunks::<8>().0;
            for bit in (0..BITS).filter(|bit| bit % BLOCK < bytes) {
                let at = place(bit / BLOCK, number * BLOCK + bit % BLOCK, len);
                bits.values[at] = u64::from_le_bytes(words[2 * bit]);
                bits.macs[at] = u64::from_le_bytes(words[2 * bit + 1]);
            }
            message.extend((bytes as u32).to_le_bytes());
            message.extend_from_slice(proof);
        }
        Ok(Some((Mask::of_bits(bits, len), message)))
    }
}

/// Where the bit of a byte is: the lowest bits of all bytes come first, then the next.
fn place(bit: usize, byte: usize, bytes: usize) -> usize {
    bit * bytes + byte
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dealers::insecure_dealer::{InsecureDealer, mac_key};
    use crate::interface::stock::Stock;
    use crate::mesh::run_parties;
    use crate::spdz::{FromStock, LookupMethod, client};
    use crate::{Error, Party, PartySet};

    /// Items that are handed out once.
    struct Shelf(parking_lot::Mutex<Vec<u8>>);

    impl Stock for Shelf {
        fn take(&self, kind: &Kind, count: usize, _: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
            assert_eq!(*kind, KIND);
            Ok(Zeroizing::new(self.0.lock().drain(..count * kind.item_bytes).collect()))
        }
    }

    fn source(net: &dyn Net) -> Box<InsecureDealer<Gf2_64>> {
        Box::new(InsecureDealer::new(&[7; 32], &[net.parties() as u8; 40], net.me(), net.parties()))
    }

    /// A node that proves other bits than it has is found before any node stores its items.
    #[test]
    fn other_bits_than_a_node_has_are_found_before_anything_is_stored() {
        for n in [2, 3] {
            let outcomes = run_parties(n, |net| {
                let mut arithmetic = Arithmetic::new(mac_key(&[7; 32], net.me(), n), [0; 40], source(net));
                let bits = arithmetic.bits(2 * BITS, net)?;
                let mut elements = packed(&image_of_bits(&bits, &Matrix::identity(8), 2 * BLOCK));
                if net.me() == Party(1) {
                    elements.shares[3] ^= 1;
                }
                arithmetic.proofs(&elements, net).map(|_| ())
            });
            let failed = Err(Error::CheckFailed { what: "the MACs of opened values" });
            assert!(outcomes.iter().all(|outcome| *outcome == failed), "{outcomes:?}");
        }
    }

    /// Masks of every length: what the nodes compute with is what the client learns, and a message that a
    /// node changes is refused.
    #[test]
    fn masks_that_were_made_ahead_are_what_their_client_learns() {
        for n in [2, 3] {
            let outcomes = run_parties(n, |net| {
                let me = net.me();
                let key = || mac_key(&[7; 32], me, n);
                let mut arithmetic = Arithmetic::new(key(), [0; 40], source(net));
                let lens = [1, 15, 16, 17, 40, 128];
                let made =
                    arithmetic.make_masks(lens.iter().map(|len: &usize| len.div_ceil(BLOCK)).sum(), net)?;
                let stock =
                    FromStock::new(LookupMethod::Tower, Arc::new(Shelf(made.to_vec().into())), source(net));
                let mut arithmetic = Arithmetic::new(key(), [1; 40], Box::new(stock.with_masks()));
                let mut seen = Vec::new();
                for len in lens {
                    let rounds = arithmetic.tally.of(arithmetic.phase).rounds;
                    let (mask, message) = arithmetic.mask_from_stock(len, net)?.expect("it is short");
                    assert_eq!(arithmetic.tally.of(arithmetic.phase).rounds, rounds);
                    let opened = arithmetic.open_masked(&mask.elements(), net)?;
                    seen.push((len, message, opened.concat()));
                }
                assert!(arithmetic.mask_from_stock(129, net)?.is_none(), "too long");
                assert!(arithmetic.mask_from_stock(0, net)?.is_none());
                Ok(seen)
            });
            let seen: Vec<_> = outcomes.into_iter().map(|outcome| outcome.expect("all are honest")).collect();
            for at in 0..seen[0].len() {
                let messages: Vec<&[u8]> = seen.iter().map(|of| &of[at].1[..]).collect();
                let learnt = client::combine_bytes(n, PartySet::all(n), &messages).expect("it is proven");
                let (len, _, opened) = &seen[0][at];
                assert_eq!((learnt.len(), &learnt[..]), (*len, &opened[..*len]));
                for byte in 4..messages[0].len() {
                    let mut changed = messages[0].to_vec();
                    changed[byte] ^= 1;
                    let mut messages = messages.clone();
                    messages[0] = &changed;
                    let refused = client::combine_bytes(n, PartySet::all(n), &messages);
                    assert!(matches!(refused, Err(Error::CheckFailed { .. })), "{byte}");
                }
            }
        }
    }
}
