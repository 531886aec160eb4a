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
//! Round keys go to no client, so a key schedule has no proof: there are zeros in its place.
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
    /// Makes it for some circuits of one lane and one output, of at most 16 bytes if it has a proof.
    pub(super) fn make_behind(
        &mut self,
        items: &[Item],
        has_proof: bool,
        net: &mut dyn Net,
    ) -> Result<Vec<Behind>> {
        let arithmetic = &mut self.under.arithmetic;
        // All at once: a source makes together what is requested together.
        let of_proof = if has_proof { PROOF_TRIPLES } else { 0 };
        arithmetic.stock_ahead(items.len() * (of_proof + PRODUCTS), net)?;
        let proofs = match has_proof {
            true => {
                let masks = elements_of(items.iter().map(|item| &item.outputs), items.len());
                arithmetic.proofs(&masks, net)?
            }
            false => Zeroizing::new(vec![0; PROOF * items.len()]),
        };
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use polyclave_cipher::{AnyMap, compile};

    use super::super::plan::Plan;
    use super::super::tests::circuit;
    use super::*;
    use crate::interface::protocol::ProtocolConfig;
    use crate::interface::session::{HandshakeParameters, hello};
    use crate::mesh::run_parties;
    use crate::spdz::client::combine_bytes;
    use crate::spdz::garbled::GarbledAuthenticatedConfig;
    use crate::{Party, PartySet};

    const ITEMS: usize = 3;

    /// A product that serves two tests tells a share of it, and after a wrong opening the MAC key
    /// (`authenticated/check/of_two.rs`). Who knows the rho of one proof can make another one under it.
    #[test]
    fn each_circuit_has_products_and_a_proof_of_its_own() {
        let made = run_parties(2, |net| {
            let config = GarbledAuthenticatedConfig::with_evaluator(Party(1))?;
            let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
            let compiled = compile(&circuit(), &AnyMap);
            let plan = Plan::of(&compiled).expect("it is of bits");
            let items = protocol.garble(&compiled.digest(), &plan, (1, ITEMS), net)?;
            let is_first = protocol.under.arithmetic.key.is_first();
            let behind = protocol.make_behind(&items, true, net)?;
            let products: Vec<_> = behind.iter().flat_map(|of| of.products.iter().flatten()).collect();
            let products: Vec<[u64; PRODUCT]> = products.iter().map(|of| [of.a, of.b, of.c]).collect();
            let messages: Vec<_> =
                behind.iter().map(|of| message(&of.proof, &[0; 128], is_first).to_vec()).collect();
            Ok((products, messages))
        });
        let made: Vec<_> = made.into_iter().map(|outcome| outcome.expect("both are honest")).collect();
        let [(products, messages), (other_products, other_messages)] = &made[..] else { panic!("two") };
        assert_eq!(products.len(), PRODUCTS * ITEMS);
        for products in [products, other_products] {
            let shares: HashSet<u64> = products.iter().flatten().copied().collect();
            assert_eq!(shares.len(), PRODUCT * products.len(), "no share comes twice");
        }
        for (own, other) in products.iter().zip(other_products) {
            let [a, b, c] = [0, 1, 2].map(|at| own[at] ^ other[at]);
            assert_eq!(Gf2_64::multiply(a, b), c);
        }
        let mut drawn = HashSet::new();
        for (own, other) in messages.iter().zip(other_messages) {
            let proven = combine_bytes(2, PartySet::all(2), &[own, other]);
            assert_eq!(proven.map(|bytes| bytes.len()), Ok(16), "it proves the mask");
            let sum: Vec<u8> = own.iter().zip(other).map(|(own, other)| own ^ other).collect();
            let [_, v, _, _, rho] = sum[4..].as_chunks::<ELEMENT_BYTES>().0 else { panic!("five elements") };
            drawn.extend([*v, *rho]);
        }
        assert_eq!(drawn.len(), 2 * ITEMS, "no rho and no v comes twice");
    }
}
