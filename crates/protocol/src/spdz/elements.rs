//! Shared elements of GF(2^128) under MACs in GF(2^64): conversion from bytes, products, the zero test.
//!
//! GF(2^64) lies in GF(2^128) by iota, and elements have two coordinates over it
//! ([`polyclave_field::tower`]). A shared element is x = sum x_i in GF(2^128) with shares m_i of its MAC, sum
//! m_i = iota(alpha) x. So:
//!
//! * Sums, and products by public elements of GF(2^128), act on shares of values and of MACs alike, and are
//!   local.
//! * The coordinates of x_i and of m_i are shares of x_0, x_1 and of alpha x_0, alpha x_1: two elements in
//!   the form of `share.rs`. Opening an element opens both, and the check covers it (`check.rs`).
//! * A product takes three products of coordinates, in one round.
//! * x^(2^k) is linear over GF(2) in the bits of x. With 128 random bits r, all unknown to every party, the
//!   parties open x + r, and x^(2^k) is (x + r)^(2^k) plus a public linear map of the bits. x + r is uniform,
//!   and the check covers its opening. r serves one element, and all powers of it.
//!
//! Adversary: as in `arithmetic.rs`, whose openings are the only communication here.

use polyclave_field::tower::{self, DELTA};
use polyclave_field::{Gf2_64, Gf128, MacField};
use polyclave_kernels::gf128;
use zeroize::Zeroizing;

use super::Shared;
use super::arithmetic::{Arithmetic, Decomposing, Step};
use crate::authenticated::{Authenticated, MacKey, Triples};
use crate::interface::elements::{ELEMENT_BYTES, Element, ElementArithmetic, Elements};
use crate::interface::net::Net;
use crate::{Error, Result};

/// The number of triples that a product of two elements takes.
pub(super) const PRODUCT_TRIPLES: usize = 3;

impl ElementArithmetic for Arithmetic<Gf2_64> {
    /// The coordinates of each are the factors of one triple, so they are uniform and independent. The
    /// triple's product is not used.
    fn random_elements(&mut self, count: usize, net: &mut dyn Net) -> Result<Elements> {
        let triples = self.triples(count, net)?;
        Ok(of_coordinates(&triples.a, &triples.b))
    }

    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements {
        add_public(a, public, &self.key)
    }

    /// Each product takes three triples.
    fn multiply_elements(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        a.same_count(b)?;
        let triples = self.triples(PRODUCT_TRIPLES * a.count(), net)?;
        self.multiply_by(a, b, triples, net)
    }

    fn frobenius(
        &mut self,
        elements: &Elements,
        wanted: &[(usize, u32)],
        net: &mut dyn Net,
    ) -> Result<Option<Elements>> {
        self.refuse_unchecked(&elements.unchecked)?;
        let bytes = ELEMENT_BYTES * elements.count();
        let bits = self.bits(8 * bytes, net)?;
        let mut masked = elements_of_bits(&bits, bytes);
        masked.add_assign(elements);
        let mut public = self.open_masked(&masked, net)?;
        let mut weights = Weights::new();
        let mut powers = Vec::new();
        for k in 0..=wanted.iter().map(|(_, k)| *k).max().unwrap_or_default() {
            let of: Vec<(usize, usize)> = wanted
                .iter()
                .enumerate()
                .filter(|(_, (_, times))| *times == k)
                .map(|(to, (at, _))| (to, *at))
                .collect();
            let places: Vec<usize> = of.iter().map(|(_, at)| *at).collect();
            let opened: Vec<Element> = places.iter().map(|at| public[*at]).collect();
            powers.push((of, add_public(&weights.images(&bits, bytes, &places), &opened, &self.key)));
            square(&mut public);
            weights.square();
        }
        // Where each power that is wanted stands among those of all k.
        let mut places = vec![0; wanted.len()];
        let all = powers.iter().flat_map(|(of, _)| of);
        all.enumerate().for_each(|(from, (to, _))| places[*to] = from);
        let mut powers = Elements::join(&powers.iter().map(|(_, of)| of).collect::<Vec<_>>()).select(&places);
        powers.unchecked = self.unchecked();
        Ok(Some(powers))
    }

    fn open_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        self.refuse_unchecked(&elements.unchecked)?;
        self.check(net)?;
        let opened = self.open_masked(elements, net)?;
        self.check(net)?;
        Ok(opened)
    }

    /// With a proof to the client that it is right (`client.rs`).
    fn elements_for_client(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.refuse_unchecked(&elements.unchecked)?;
        self.send(elements, ELEMENT_BYTES * elements.count(), net)
    }
}

impl Arithmetic<Gf2_64> {
    /// Opens elements that the next check covers. One round.
    pub(super) fn open_masked(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        let [x0, x1] = coordinates(elements);
        let (opened, _) = self.open(&Authenticated::join(&[&x0, &x1]), &[], &[], net)?;
        let (x0, x1) = opened.split_at(elements.count());
        Ok(x0.iter().zip(x1).map(|(x0, x1)| tower::join([*x0, *x1]).to_bytes()).collect())
    }

    /// One element a lane from blocks of 16 bytes. 128 random bits and 16 openings an element, one round.
    /// None of it where the bits of the blocks are there, as of what came out of garbled circuits.
    pub(super) fn elements_of_blocks(
        &mut self,
        blocks: &Shared<Gf2_64>,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        if (blocks.bits, blocks.count) != (8, ELEMENT_BYTES) {
            let (bits, count) = (blocks.bits, blocks.count);
            let fault = format!("{count} cells of {bits} bits are no element of GF(2^128)");
            return Err(Error::Misuse(fault));
        }
        self.refuse_unchecked(&blocks.unchecked)?;
        if let Some(bits) = &blocks.known_bits {
            let mut elements =
                elements_of_bits(&block_by_block(bits, blocks.lanes), ELEMENT_BYTES * blocks.lanes);
            elements.unchecked = blocks.unchecked.clone();
            return Ok(elements);
        }
        let bytes = blocks.bytes();
        let bits = self.bits(8 * bytes.len(), net)?;
        let none = || Authenticated::zero(0);
        let triples = Triples { a: none(), b: none(), c: none() };
        let decompose = Some(Decomposing { of: &bytes, bits });
        let stepped = self.step(Step { products: &[], triples, decompose }, net)?;
        let decomposed = stepped.decomposed.ok_or_else(|| Error::misuse("no cell was decomposed"))?;
        let masks = elements_of_bits(&decomposed.bits, bytes.len());
        let mut elements = add_public(&masks, decomposed.public.as_chunks().0, &self.key);
        elements.unchecked = self.unchecked();
        Ok(elements)
    }

    /// Products, element by element, with the given triples. By coordinates, with t^2 = t + delta
    /// (Karatsuba).
    pub(super) fn multiply_by(
        &mut self,
        a: &Elements,
        b: &Elements,
        triples: Triples<Gf2_64>,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        for of in [a, b] {
            self.refuse_unchecked(&of.unchecked)?;
        }
        let ([a0, a1], [b0, b1]) = (coordinates(a), coordinates(b));
        let sum = |x: &Authenticated<Gf2_64>, y| {
            let mut sum = x.clone();
            sum.add(y);
            sum
        };
        let (a_both, b_both) = (sum(&a0, &a1), sum(&b0, &b1));
        let products = [(&a0, &b0), (&a1, &b1), (&a_both, &b_both)];
        let stepped = self.step(Step { products: &products, triples, decompose: None }, net)?;
        let [low, high, both] = &stepped.products[..] else {
            return Err(Error::misuse("other products came than were asked for"));
        };
        let mut product = of_coordinates(&sum(low, &high.scaled(DELTA)), &sum(both, low));
        product.unchecked = self.unchecked();
        Ok(product)
    }
}

/// The bits of bytes of blocks of 16, all lanes of a byte together, with all bytes of a lane together.
fn block_by_block(bits: &Authenticated<Gf2_64>, lanes: usize) -> Authenticated<Gf2_64> {
    let mut sorted = Authenticated::zero(bits.len());
    let bytes = ELEMENT_BYTES * lanes;
    for (from, place) in (0..bits.len()).map(|from| (from, from / bytes)) {
        let (byte, lane) = (from % bytes / lanes, from % lanes);
        let to = place * bytes + lane * ELEMENT_BYTES + byte;
        (sorted.values[to], sorted.macs[to]) = (bits.values[from], bits.macs[from]);
    }
    sorted
}

/// The elements with these coordinates. Local, like everything that follows.
pub(super) fn of_coordinates(x0: &Authenticated<Gf2_64>, x1: &Authenticated<Gf2_64>) -> Elements {
    let join = |x0: &[u64], x1: &[u64]| {
        let mut row = Zeroizing::new(vec![0; ELEMENT_BYTES * x0.len()]);
        for ((to, x0), x1) in row.as_chunks_mut().0.iter_mut().zip(x0).zip(x1) {
            *to = tower::join([*x0, *x1]).to_bytes();
        }
        row
    };
    Elements::with_macs(join(&x0.values, &x1.values), join(&x0.macs, &x1.macs))
}

/// Both coordinates of all elements.
pub(super) fn coordinates(elements: &Elements) -> [Authenticated<Gf2_64>; 2] {
    let mut coordinates = [0, 1].map(|_| Authenticated::zero(elements.count()));
    let both = elements.shares.as_chunks().0.iter().zip(elements.macs.as_chunks().0).enumerate();
    for (i, (share, mac)) in both {
        let (share, mac) = (split(*share), split(*mac));
        for (k, coordinate) in coordinates.iter_mut().enumerate() {
            (coordinate.values[i], coordinate.macs[i]) = (share[k], mac[k]);
        }
    }
    coordinates
}

/// The elements that GCM reads from bytes. `bits` are the bits of the bytes: the lowest of all bytes, then
/// the next, and so on. The last element is filled up with zeros.
pub(super) fn elements_of_bits(bits: &Authenticated<Gf2_64>, bytes: usize) -> Elements {
    Weights::new().images(bits, bytes, &(0..bytes.div_ceil(ELEMENT_BYTES)).collect::<Vec<_>>())
}

/// A map of elements that is linear over GF(2): the image of each bit of an element, by coordinate, bit and
/// byte. At first the map is the identity.
struct Weights([[[u64; ELEMENT_BYTES]; 8]; 2]);

impl Weights {
    fn new() -> Self {
        let mut weights = [[[0; ELEMENT_BYTES]; 8]; 2];
        for (bit, byte) in (0..8).flat_map(|bit| (0..ELEMENT_BYTES).map(move |byte| (bit, byte))) {
            let mut element = [0; ELEMENT_BYTES];
            element[byte] = 1 << bit;
            [weights[0][bit][byte], weights[1][bit][byte]] = split(element);
        }
        Weights(weights)
    }

    /// The squares of the images from now on.
    fn square(&mut self) {
        let [first, second] = &mut self.0;
        for (x0, x1) in first.as_flattened_mut().iter_mut().zip(second.as_flattened_mut()) {
            let mut element = [tower::join([*x0, *x1]).to_bytes()];
            square(&mut element);
            [*x0, *x1] = split(element[0]);
        }
    }

    /// The images of the elements at these places, of those that have these bits.
    fn images(&self, bits: &Authenticated<Gf2_64>, bytes: usize, places: &[usize]) -> Elements {
        let sum = |words: &[u64], i: usize, weights: &[[u64; ELEMENT_BYTES]; 8]| {
            let of = i * ELEMENT_BYTES..bytes.min((i + 1) * ELEMENT_BYTES);
            let rows = words.chunks(bytes).map(|row| &row[of.clone()]).zip(weights);
            rows.fold(0, |sum, (row, weights)| sum ^ Gf2_64::inner_product(row, &weights[..row.len()]))
        };
        let mut coordinates = [0, 1].map(|_| Authenticated::zero(places.len()));
        for (coordinate, weights) in coordinates.iter_mut().zip(&self.0) {
            for (to, place) in places.iter().enumerate() {
                coordinate.values[to] = sum(&bits.values, *place, weights);
                coordinate.macs[to] = sum(&bits.macs, *place, weights);
            }
        }
        let [x0, x1] = &coordinates;
        of_coordinates(x0, x1)
    }
}

fn square(elements: &mut [Element]) {
    let factors = elements.to_vec();
    gf128::multiply(elements.as_flattened_mut(), factors.as_flattened(), factors.as_flattened());
}

/// Adds public elements: the first party adds them to its shares, and every party adds alpha_i times them to
/// its MACs.
pub(super) fn add_public(elements: &Elements, public: &[Element], key: &MacKey<Gf2_64>) -> Elements {
    let mut sum = if key.is_first() { elements.add_to_shares(public) } else { elements.clone() };
    assert_eq!(sum.count(), public.len(), "terms of other lengths");
    let alpha = Zeroizing::new(tower::embed(key.reveal_own_share()).to_bytes());
    gf128::scale_add(&mut sum.macs, public.as_flattened(), &alpha);
    sum
}

fn split(element: Element) -> [u64; 2] {
    tower::split(Gf128::from_bytes(element))
}
