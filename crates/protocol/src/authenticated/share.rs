//! Authenticated sharing: \[x\] = (x_i, m_i), with sum x_i = x and sum m_i = alpha x under a MAC key alpha =
//! sum alpha_i that nobody knows (Damgard, Pastro, Smart, Zakarias 2012; Keller et al. 2017, section 2).
//!
//! Everything here is local and takes constant time.

use std::ops::Range;

use polyclave_field::{MacField, Word};
use zeroize::Zeroizing;

use super::key::MacKey;

/// One party's shares of a vector of elements, and of their MACs; wiped on drop.
#[derive(Clone)]
pub struct Authenticated<F: MacField> {
    /// Shares of the elements.
    pub values: Zeroizing<Vec<F::Word>>,
    /// Shares of alpha times the elements.
    pub macs: Zeroizing<Vec<F::Word>>,
}

impl<F: MacField> Authenticated<F> {
    /// Shares of this many zeros.
    pub fn zero(len: usize) -> Self {
        let zeros = || Zeroizing::new(vec![F::Word::ZERO; len]);
        Authenticated { values: zeros(), macs: zeros() }
    }

    /// Shares of values that everybody knows.
    pub fn public(values: &[F::Word], key: &MacKey<F>) -> Self {
        let mut shares = Self::zero(values.len());
        shares.add_public(values, key);
        shares
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Some of the elements.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn part(&self, range: Range<usize>) -> Self {
        let part = |words: &[F::Word]| Zeroizing::new(words[range.clone()].to_vec());
        Authenticated { values: part(&self.values), macs: part(&self.macs) }
    }

    /// Adds others, element by element.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.len(), other.len(), "terms of other lengths");
        self.values.iter_mut().zip(other.values.iter()).for_each(|(a, b)| *a ^= *b);
        self.macs.iter_mut().zip(other.macs.iter()).for_each(|(a, b)| *a ^= *b);
    }

    /// Sets the elements from `at` on to sums of two vectors.
    pub(crate) fn set_sum(&mut self, at: usize, a: &Self, b: &Self) {
        let sum = |to: &mut [F::Word], a: &[F::Word], b: &[F::Word]| {
            to.iter_mut().zip(a).zip(b).for_each(|((sum, a), b)| *sum = *a ^ *b);
        };
        let range = at..at + a.len();
        sum(&mut self.values[range.clone()], &a.values, &b.values);
        sum(&mut self.macs[range], &a.macs, &b.macs);
    }

    /// Adds values that everybody knows: the first party to its shares, every party alpha_i times them to its
    /// MACs.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn add_public(&mut self, public: &[F::Word], key: &MacKey<F>) {
        assert_eq!(self.len(), public.len(), "terms of other lengths");
        if key.is_first() {
            self.values.iter_mut().zip(public).for_each(|(a, b)| *a ^= *b);
        }
        let alpha = key.reveal_own_share();
        self.macs.iter_mut().zip(public).for_each(|(mac, b)| *mac ^= F::multiply(alpha, *b));
    }

    /// All elements times one that everybody knows.
    pub fn scaled(&self, factor: F::Word) -> Self {
        let mut scaled = Self::zero(self.len());
        F::combine(&mut scaled.values, &[(&self.values, factor)], F::Word::ZERO);
        F::combine(&mut scaled.macs, &[(&self.macs, factor)], F::Word::ZERO);
        scaled
    }

    /// Element by element the product with values that everybody knows.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn times_public(&self, public: &[F::Word]) -> Self {
        let mut product = Self::zero(self.len());
        F::multiply_rows(&mut product.values, &self.values, public);
        F::multiply_rows(&mut product.macs, &self.macs, public);
        product
    }

    /// Vectors, one after another.
    pub fn join(parts: &[&Self]) -> Self {
        // Sized at once: growing would leave copies behind.
        let mut joined = Self::zero(parts.iter().map(|part| part.len()).sum());
        let mut at = 0;
        for part in parts {
            joined.values[at..at + part.len()].copy_from_slice(&part.values);
            joined.macs[at..at + part.len()].copy_from_slice(&part.macs);
            at += part.len();
        }
        joined
    }
}
