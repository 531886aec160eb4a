//! Vectors of elements of GF(2^128) in the representation of GCM: of shares, or of other values that are linear in the shared elements.

use std::ops::Range;

use polyclave_kernels::gf128;
use zeroize::Zeroizing;

use crate::service::{ELEMENT_BYTES, Element};
use crate::{Error, Result};

/// Element after element; wiped on drop. Ranges beyond the end, and lengths that do not fit, panic.
#[derive(Clone)]
pub struct ElementVector {
    bytes: Zeroizing<Vec<u8>>,
}

impl ElementVector {
    /// A vector of `count` zeros.
    pub(crate) fn zero(count: usize) -> Self {
        ElementVector { bytes: Zeroizing::new(vec![0; ELEMENT_BYTES * count]) }
    }

    /// A vector from its bytes, element after element.
    pub(crate) fn of(bytes: Zeroizing<Vec<u8>>) -> Self {
        ElementVector { bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Number of elements.
    pub(crate) fn count(&self) -> usize {
        self.bytes.len() / ELEMENT_BYTES
    }

    /// Refuses factors that are not as many as these.
    pub(crate) fn same_count(&self, other: &Self) -> Result<()> {
        if self.count() == other.count() {
            return Ok(());
        }
        let fault = format!("{} shared elements cannot be multiplied by {}", self.count(), other.count());
        Err(Error::Misuse(fault))
    }

    /// Some of the elements.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let bytes = ELEMENT_BYTES * range.start..ELEMENT_BYTES * range.end;
        ElementVector { bytes: Zeroizing::new(self.bytes[bytes].to_vec()) }
    }

    /// One vector after another.
    pub(crate) fn join(parts: &[&Self]) -> Self {
        // Sized at once: growing would leave copies behind.
        let mut joined = Self::zero(parts.iter().map(|part| part.count()).sum());
        let mut rest = &mut joined.bytes[..];
        for part in parts {
            let (head, tail) = rest.split_at_mut(part.bytes.len());
            head.copy_from_slice(&part.bytes);
            rest = tail;
        }
        joined
    }

    /// For every `count` public weights the sum of weight_i element_i. There must be elements, and as many weights as make whole
    /// sums.
    pub(crate) fn weighted_sums(&self, weights: &[Element]) -> Self {
        let mut sums = Self::zero(weights.len() / self.count());
        gf128::weighted_sums(&mut sums.bytes, weights.as_flattened(), &self.bytes);
        sums
    }

    /// Products, element by element.
    #[cfg_attr(not(feature = "testkit"), expect(dead_code, reason = "what is shipped has no use for it"))]
    pub(crate) fn multiply(&self, factors: &[u8]) -> Self {
        let mut products = Self::zero(self.count());
        gf128::multiply(&mut products.bytes, &self.bytes, factors);
        products
    }

    /// Adds other elements, one by one, given as bytes.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        assert_eq!(self.bytes.len(), bytes.len(), "terms of other lengths");
        self.bytes.iter_mut().zip(bytes).for_each(|(sum, term)| *sum ^= term);
    }

    /// Adds others, element by element.
    pub(crate) fn add_assign(&mut self, other: &Self) {
        self.add_bytes(&other.bytes);
    }

    /// Sums, element by element.
    pub(crate) fn add(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add_assign(other);
        sum
    }

    /// Sums with public elements.
    pub(crate) fn add_public(&self, public: &[Element]) -> Self {
        let mut sum = self.clone();
        sum.add_bytes(public.as_flattened());
        sum
    }

    /// The sum of all of them.
    pub(crate) fn sum(&self) -> Self {
        let mut sum = Self::zero(1);
        self.bytes.chunks(ELEMENT_BYTES).for_each(|element| sum.add_bytes(element));
        sum
    }

    /// What a party stores: the count as eight bytes, little-endian, and the elements.
    pub(crate) fn save(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(8 + self.bytes.len()));
        bytes.extend_from_slice(&(self.count() as u64).to_le_bytes());
        bytes.extend_from_slice(&self.bytes);
        bytes
    }

    /// Reads what [`save`](ElementVector::save) wrote.
    pub(crate) fn restore(bytes: &[u8]) -> Result<Self> {
        let fits = |(count, elements): &(&[u8; 8], &[u8])| {
            elements.len().is_multiple_of(ELEMENT_BYTES)
                && u64::from_le_bytes(**count) == (elements.len() / ELEMENT_BYTES) as u64
        };
        let (_, elements) = bytes.split_first_chunk().filter(fits).ok_or_else(|| {
            Error::misuse("the stored elements are cut off or something else; restore them from a backup")
        })?;
        Ok(ElementVector { bytes: Zeroizing::new(elements.to_vec()) })
    }
}
