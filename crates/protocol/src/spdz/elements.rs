//! Shared elements of GF(2^128) under MACs in GF(2^64): conversion from bytes, products, the zero test.
//!
//! GF(2^64) lies in GF(2^128) by iota, and elements have two coordinates over it ([`polyclave_field::tower`]). A shared element
//! is x = sum x_i in GF(2^128) with shares m_i of its MAC, sum m_i = iota(alpha) x. So:
//!
//! * Sums, and products by public elements of GF(2^128), act on shares of values and of MACs alike, and are local.
//! * The coordinates of x_i and of m_i are shares of x_0, x_1 and of alpha x_0, alpha x_1: two elements as `share.rs` has
//!   them. Opening an element opens both, and the check covers it (`check.rs`).
//! * A product takes three products of coordinates, in one round.
//!
//! Adversary: as in `arithmetic.rs`, whose openings are all that is exchanged here.

use std::ops::Range;

use polyclave_field::tower::{self, DELTA};
use polyclave_field::{Gf2_64, Gf128, MacField};
use polyclave_kernels::gf128;
use zeroize::Zeroizing;

use super::Shared;
use super::arithmetic::{Arithmetic, Decomposing, Step, Unchecked};
use super::key::MacKey;
use super::share::Authenticated;
use super::source::Triples;
use crate::net::Net;
use crate::service::{ELEMENT_BYTES, Element};
use crate::{Error, Result};

/// Triples that a product of two elements takes.
pub(super) const PRODUCT_TRIPLES: usize = 3;

/// One party's shares of a vector of elements of GF(2^128), and of their MACs; wiped on drop.
#[derive(Clone)]
pub struct Elements {
    /// Element after element, as GCM writes them.
    pub(super) values: Zeroizing<Vec<u8>>,
    /// iota(alpha) times the elements.
    pub(super) macs: Zeroizing<Vec<u8>>,
    pub(super) unchecked: Option<Unchecked>,
}

impl Arithmetic<Gf2_64> {
    /// Random elements, of which the coordinates are the factors of a triple each: uniform and independent. Their product is
    /// not used.
    pub(super) fn random_elements(&mut self, count: usize, net: &mut dyn Net) -> Result<Elements> {
        let triples = self.triples(count, net)?;
        Ok(Elements::of_coordinates(&triples.a, &triples.b))
    }

    /// One element a lane from blocks of 16 bytes. 128 random bits and 16 openings an element, one round.
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
        self.refuse_unchecked(blocks.unchecked.as_ref())?;
        let bytes = blocks.bytes();
        let bits = self.bits(8 * bytes.len(), net)?;
        let none = || Authenticated::zero(0);
        let triples = Triples { a: none(), b: none(), c: none() };
        let decompose = Some(Decomposing { of: &bytes, bits });
        let stepped = self.step(Step { products: &[], triples, decompose }, net)?;
        let decomposed = stepped.decomposed.ok_or_else(|| Error::misuse("no cell was decomposed"))?;
        let mut elements = Elements::of_bits(&decomposed.bits, bytes.len());
        elements.add_public(decomposed.public.as_chunks().0, &self.key);
        elements.unchecked = self.unchecked();
        Ok(elements)
    }

    /// Products, element by element: three triples each, one round.
    pub(super) fn multiply_elements(
        &mut self,
        a: &Elements,
        b: &Elements,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        let triples = self.triples(PRODUCT_TRIPLES * a.count(), net)?;
        self.multiply_by(a, b, triples, net)
    }

    /// The same with triples that are there. By coordinates, with t^2 = t + delta (Karatsuba).
    pub(super) fn multiply_by(
        &mut self,
        a: &Elements,
        b: &Elements,
        triples: Triples<Gf2_64>,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        if a.count() != b.count() {
            let (a, b) = (a.count(), b.count());
            return Err(Error::Misuse(format!("{a} shared elements cannot be multiplied by {b}")));
        }
        for of in [a, b] {
            self.refuse_unchecked(of.unchecked.as_ref())?;
        }
        let ([a0, a1], [b0, b1]) = (a.coordinates(), b.coordinates());
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
        let mut product = Elements::of_coordinates(&sum(low, &high.scaled(DELTA)), &sum(both, low));
        product.unchecked = self.unchecked();
        Ok(product)
    }

    /// The sum of all products, one element. Three triples a product, one round.
    pub(super) fn inner_product(
        &mut self,
        a: &Elements,
        b: &Elements,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        let products = self.multiply_elements(a, b, net)?;
        let one = Gf128::ONE.to_bytes();
        let mut sum = products.weighted_sums(&vec![one; products.count()], 1);
        sum.unchecked = products.unchecked;
        Ok(sum)
    }

    /// Whether an element is zero; wrong with probability 2^-128 but for the checks. Opened is rho times it, for a random rho
    /// that is used for nothing else: uniform if the element is not zero.
    ///
    /// Checked before the opening, too: otherwise a cheater that makes some earlier opening wrong by a guess could see
    /// whether the product is zero, hence whether the guess was right, before the check fails.
    pub(super) fn element_is_zero(&mut self, element: &Elements, net: &mut dyn Net) -> Result<bool> {
        let rho = self.random_elements(1, net)?;
        let multiple = self.multiply_elements(element, &rho, net)?;
        self.check(net)?;
        let opened = self.open_elements(&multiple, net)?;
        Ok(opened == [[0; ELEMENT_BYTES]])
    }

    /// Opens elements that are meant to be known, and checks the openings before it says what they are.
    pub(super) fn open_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        self.refuse_unchecked(elements.unchecked.as_ref())?;
        let [x0, x1] = elements.coordinates();
        let (opened, _) = self.open(&Authenticated::join(&[&x0, &x1]), &[], &[], net)?;
        self.check(net)?;
        let (x0, x1) = opened.split_at(elements.count());
        Ok(x0.iter().zip(x1).map(|(x0, x1)| tower::join([*x0, *x1]).to_bytes()).collect())
    }
}

/// All of these are local. Ranges beyond the end, and lengths that do not fit, panic.
impl Elements {
    pub(super) fn zero(count: usize) -> Elements {
        let zeros = || Zeroizing::new(vec![0; ELEMENT_BYTES * count]);
        Elements { values: zeros(), macs: zeros(), unchecked: None }
    }

    /// Number of elements.
    pub(super) fn count(&self) -> usize {
        self.values.len() / ELEMENT_BYTES
    }

    /// The elements of these coordinates.
    pub(super) fn of_coordinates(x0: &Authenticated<Gf2_64>, x1: &Authenticated<Gf2_64>) -> Elements {
        let mut elements = Elements::zero(x0.len());
        let join = |to: &mut [u8], x0: &[u64], x1: &[u64]| {
            for ((to, x0), x1) in to.as_chunks_mut().0.iter_mut().zip(x0).zip(x1) {
                *to = tower::join([*x0, *x1]).to_bytes();
            }
        };
        join(&mut elements.values, &x0.values, &x1.values);
        join(&mut elements.macs, &x0.macs, &x1.macs);
        elements
    }

    /// Both coordinates of all elements.
    pub(super) fn coordinates(&self) -> [Authenticated<Gf2_64>; 2] {
        let mut coordinates = [0, 1].map(|_| Authenticated::zero(self.count()));
        let both = self.values.as_chunks().0.iter().zip(self.macs.as_chunks().0).enumerate();
        for (i, (value, mac)) in both {
            let (value, mac) = (split(*value), split(*mac));
            for (k, coordinate) in coordinates.iter_mut().enumerate() {
                (coordinate.values[i], coordinate.macs[i]) = (value[k], mac[k]);
            }
        }
        coordinates
    }

    /// The elements that GCM reads in bytes of which these are the bits: the lowest of all bytes, then the next .. The last
    /// element is filled up with zeros.
    pub(super) fn of_bits(bits: &Authenticated<Gf2_64>, bytes: usize) -> Elements {
        // By coordinate and bit, for all bytes of an element.
        let mut weights = [[[0; ELEMENT_BYTES]; 8]; 2];
        for (bit, byte) in (0..8).flat_map(|bit| (0..ELEMENT_BYTES).map(move |byte| (bit, byte))) {
            let mut element = [0; ELEMENT_BYTES];
            element[byte] = 1 << bit;
            [weights[0][bit][byte], weights[1][bit][byte]] = split(element);
        }
        let count = bytes.div_ceil(ELEMENT_BYTES);
        let sum = |words: &[u64], i: usize, weights: &[[u64; ELEMENT_BYTES]; 8]| {
            let of = i * ELEMENT_BYTES..bytes.min((i + 1) * ELEMENT_BYTES);
            let rows = words.chunks(bytes).map(|row| &row[of.clone()]).zip(weights);
            rows.fold(0, |sum, (row, weights)| sum ^ Gf2_64::inner_product(row, &weights[..row.len()]))
        };
        let mut coordinates = [0, 1].map(|_| Authenticated::zero(count));
        for (coordinate, weights) in coordinates.iter_mut().zip(&weights) {
            for i in 0..count {
                coordinate.values[i] = sum(&bits.values, i, weights);
                coordinate.macs[i] = sum(&bits.macs, i, weights);
            }
        }
        let [x0, x1] = &coordinates;
        Elements::of_coordinates(x0, x1)
    }

    /// Some of the elements.
    pub(super) fn part(&self, range: Range<usize>) -> Elements {
        let bytes = ELEMENT_BYTES * range.start..ELEMENT_BYTES * range.end;
        let part = |from: &[u8]| Zeroizing::new(from[bytes.clone()].to_vec());
        Elements { values: part(&self.values), macs: part(&self.macs), unchecked: self.unchecked.clone() }
    }

    /// One vector after another. What it rests on is the caller's to say; so below.
    pub(super) fn join(parts: &[&Elements]) -> Elements {
        // Sized at once: growing would leave copies behind.
        let mut joined = Elements::zero(parts.iter().map(|part| part.count()).sum());
        let mut at = 0;
        for part in parts {
            let range = at..at + part.values.len();
            joined.values[range.clone()].copy_from_slice(&part.values);
            joined.macs[range.clone()].copy_from_slice(&part.macs);
            at = range.end;
        }
        joined
    }

    /// So many sums of weight_i element_i, of public weights.
    pub(super) fn weighted_sums(&self, weights: &[Element], count: usize) -> Elements {
        let mut sums = Elements::zero(count);
        gf128::weighted_sums(&mut sums.values, weights.as_flattened(), &self.values);
        gf128::weighted_sums(&mut sums.macs, weights.as_flattened(), &self.macs);
        sums
    }

    /// Adds others, element by element.
    pub(super) fn add(&mut self, other: &Elements) {
        assert_eq!(self.count(), other.count(), "terms of other lengths");
        self.values.iter_mut().zip(other.values.iter()).for_each(|(sum, term)| *sum ^= term);
        self.macs.iter_mut().zip(other.macs.iter()).for_each(|(sum, term)| *sum ^= term);
    }

    /// Adds public elements: the first party to its shares, every party alpha_i times them to its MACs.
    pub(super) fn add_public(&mut self, public: &[Element], key: &MacKey<Gf2_64>) {
        assert_eq!(self.count(), public.len(), "terms of other lengths");
        let public = public.as_flattened();
        if key.is_first() {
            self.values.iter_mut().zip(public).for_each(|(sum, term)| *sum ^= term);
        }
        let alpha = Zeroizing::new(tower::embed(key.reveal_own_share()).to_bytes());
        gf128::scale_add(&mut self.macs, public, &alpha);
    }
}

fn split(element: Element) -> [u64; 2] {
    tower::split(Gf128::from_bytes(element))
}
