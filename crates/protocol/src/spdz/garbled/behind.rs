//! What a circuit of the stock has besides, so that no product is opened and nothing is claimed behind its
//! evaluation: a proof for the client that learns its output, and products for the check of what was opened
//! for its inputs.
//!
//! **The proof.** A client accepts E with v, w = E rho, u = v rho and rho (`spdz/client.rs`). An output is E
//! = V + lambda. Its mask lambda is drawn with the circuit, and both parties know V after the evaluation. So
//! lambda rho and v rho are multiplied ahead, and w = V rho + lambda rho is local.
//!
//! * *Soundness* is that of `client.rs`. What was opened for the products was checked before the circuit was
//!   stored, and what was opened for inputs is checked before the message goes to the client. V is not what a
//!   cheater likes: for another one the evaluator needs other labels, and the garbler tells none. So a cheater
//!   can only shift the sums that the client gets, by differences that it fixes while rho and v are uniform
//!   to it.
//! * *Privacy.* A sharing of zeros was added to each of the five when they were made. V is uniform and
//!   independent of rho and v. So the client learns E, rho and v, and what follows from these.
//! * *Once.* The client knows rho. With it a node could prove a wrong value to another client. So the message
//!   leaves the value when it is sent ([`Proofs`](crate::spdz::proofs)). A second answer, and one of
//!   a part of the value, takes a proof of its own, in rounds.
//!
//! **The products** are values of triples of which a cheater knows nothing, as the check of two parties needs
//! them. They serve one check.

use polyclave_cipher::Matrix;
use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::gf128;
use zeroize::Zeroizing;

use super::GarbledAuthenticated;
use super::input::place_of;
use super::item::Item;
use crate::authenticated::{Authenticated, Product};
use crate::interface::elements::{ELEMENT_BYTES, Element, Elements};
use crate::interface::net::Net;
use crate::spdz::client::{PROOF, packed};
use crate::spdz::client_masks::PROOF_TRIPLES;
use crate::spdz::shared::image_of_bits;
use crate::{Error, Result};

/// For the test of each party.
const PRODUCTS: usize = 2;
/// Elements of a product.
const PRODUCT: usize = 3;

/// This party's part of it.
pub(super) struct Behind {
    /// Shares of lambda, v, lambda rho, v rho and rho.
    pub(super) proof: Zeroizing<[u8; PROOF]>,
    /// Until a check takes them.
    pub(super) products: Option<[Product<Gf2_64>; PRODUCTS]>,
}

impl Behind {
    /// Bytes of a stored one.
    pub(super) const BYTES: usize = PROOF + PRODUCTS * PRODUCT * size_of::<u64>();

    pub(super) fn save(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&*self.proof);
        for product in self.products.iter().flatten() {
            [product.a, product.b, product.c].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        }
    }

    /// Reads what was stored.
    pub(super) fn restore(bytes: &[u8]) -> Result<Behind> {
        let parts = bytes.split_first_chunk().map(|(proof, products)| (proof, products.as_chunks().0));
        let Some((proof, [a, b, c, d, e, f])) = parts else {
            return Err(Error::misuse("what is stored with a garbled circuit has another length"));
        };
        let product = |words: [&[u8; 8]; PRODUCT]| {
            let [a, b, c] = words.map(|word| u64::from_le_bytes(*word));
            Product::new(a, b, c)
        };
        let products = Some([product([a, b, c]), product([d, e, f])]);
        Ok(Behind { proof: Zeroizing::new(*proof), products })
    }
}

/// This party's message to the client that learns the output of which these are the masked bits. `proof` is
/// made for its mask.
pub(super) fn message(proof: &[u8; PROOF], masked: &[u8], is_first: bool) -> Zeroizing<Vec<u8>> {
    let public = element_of(masked);
    let mut message = Zeroizing::new(Vec::with_capacity(4 + PROOF));
    message.extend((masked.len() as u32 / 8).to_le_bytes());
    message.extend_from_slice(proof);
    let [value, _, product, _, rho] = message[4..].as_chunks_mut::<ELEMENT_BYTES>().0 else {
        unreachable!("a proof has five elements")
    };
    if is_first {
        value.iter_mut().zip(&public).for_each(|(share, bit)| *share ^= bit);
    }
    gf128::scale_add(product, &public, rho);
    message
}

impl GarbledAuthenticated {
    /// Makes it for some circuits of one lane and one output of at most 16 bytes.
    pub(super) fn make_behind(&mut self, items: &[Item], net: &mut dyn Net) -> Result<Vec<Behind>> {
        let arithmetic = &mut self.under.arithmetic;
        // All at once: a source makes together what is requested together.
        arithmetic.stock_ahead(items.len() * (PROOF_TRIPLES + PRODUCTS), net)?;
        let masks = elements_of(items.iter().map(|item| &item.outputs), items.len());
        let proofs = arithmetic.proofs(&masks, net)?;
        let triples = arithmetic.triples(PRODUCTS * items.len(), net)?;
        let behind = proofs.as_chunks::<PROOF>().0.iter().enumerate().map(|(item, proof)| Behind {
            proof: Zeroizing::new(*proof),
            products: Some([0, 1].map(|which| triples.product(PRODUCTS * item + which))),
        });
        Ok(behind.collect())
    }
}

/// Values of at most 128 bits, in the order in which people write them, as elements: one each, filled up with
/// zeros. Local.
fn elements_of<'a>(values: impl Iterator<Item = &'a Authenticated<Gf2_64>>, count: usize) -> Elements {
    let bytes = ELEMENT_BYTES * count;
    let mut bits = Authenticated::zero(8 * bytes);
    for (number, value) in values.enumerate() {
        for bit in 0..value.len() {
            let (byte, place) = place_of(bit, 8);
            let at = place * bytes + ELEMENT_BYTES * number + byte;
            (bits.values[at], bits.macs[at]) = (value.values[bit], value.macs[bit]);
        }
    }
    packed(&image_of_bits(&bits, &Matrix::identity(8), bytes))
}

/// The same of bits that all know.
fn element_of(bits: &[u8]) -> Element {
    let mut bytes = [0; ELEMENT_BYTES];
    for (bit, value) in bits.iter().enumerate() {
        let (byte, place) = place_of(bit, 8);
        bytes[byte] |= value << place;
    }
    let mut embedded = Authenticated::zero(ELEMENT_BYTES);
    Gf2_64::embed_row(&mut embedded.values, &bytes);
    let mut element = [0; ELEMENT_BYTES];
    element.copy_from_slice(&packed(&embedded).shares);
    element
}
