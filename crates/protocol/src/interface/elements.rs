//! Vectors of shared elements of GF(2^128), in the representation of GCM (SP 800-38D, section 6.3): one type
//! for all protocols.
//!
//! Every protocol here shares elements linearly over GF(2^128). So sums, and products by public elements, are
//! local and the same under all of them: they act on a party's shares and, if the protocol has MACs or
//! more shares, on these. What differs between protocols, which is everything that communicates, is
//! [`ElementArithmetic`].

mod arithmetic;

use std::ops::Range;

use polyclave_kernels::gf128;
use zeroize::Zeroizing;

pub use arithmetic::ElementArithmetic;

use crate::stored::Reader;
use crate::unchecked::Unchecked;
use crate::{Error, Result};

/// Bytes of an element of GF(2^128).
pub const ELEMENT_BYTES: usize = 16;

/// An element of GF(2^128) as GCM writes it.
pub type Element = [u8; ELEMENT_BYTES];

/// One party's part of a vector of shared elements; wiped on drop. Panics on ranges beyond the end, and on
/// lengths that do not fit.
#[derive(Clone)]
pub struct Elements {
    /// Element after element.
    pub shares: Zeroizing<Vec<u8>>,
    /// What else a party has of each element: shares of its MAC, or its second share if sharing is
    /// replicated; empty if nothing.
    pub(crate) macs: Zeroizing<Vec<u8>>,
    /// The third share that a party has of each element if sharing is replicated among four; else empty.
    pub(crate) thirds: Zeroizing<Vec<u8>>,
    pub(crate) unchecked: Unchecked,
}

impl Elements {
    /// Zeros, without MACs.
    pub fn zero(count: usize) -> Self {
        Self::of(Zeroizing::new(vec![0; ELEMENT_BYTES * count]))
    }

    /// Elements with these shares, element after element, without MACs.
    pub fn of(shares: Zeroizing<Vec<u8>>) -> Self {
        Self::with_macs(shares, Zeroizing::default())
    }

    /// Elements with these shares and shares of MACs.
    pub(crate) fn with_macs(shares: Zeroizing<Vec<u8>>, macs: Zeroizing<Vec<u8>>) -> Self {
        Elements { shares, macs, thirds: Zeroizing::default(), unchecked: Unchecked::default() }
    }

    /// Applies the same map to the shares and to what else there is.
    fn map(&self, f: impl Fn(&[u8]) -> Zeroizing<Vec<u8>>) -> Self {
        let [macs, thirds] =
            [&self.macs, &self.thirds].map(|row| if row.is_empty() { Zeroizing::default() } else { f(row) });
        Elements { shares: f(&self.shares), macs, thirds, unchecked: self.unchecked.clone() }
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.shares.len() / ELEMENT_BYTES
    }

    /// Refuses factors whose number differs from that of the elements.
    pub fn same_count(&self, other: &Self) -> Result<()> {
        if self.count() == other.count() {
            return Ok(());
        }
        let fault = format!("{} shared elements cannot be multiplied by {}", self.count(), other.count());
        Err(Error::Misuse(fault))
    }

    /// A range of the elements.
    pub fn part(&self, range: Range<usize>) -> Self {
        let bytes = ELEMENT_BYTES * range.start..ELEMENT_BYTES * range.end;
        self.map(|row| Zeroizing::new(row[bytes.clone()].to_vec()))
    }

    /// The elements at these places, in this order.
    pub fn select(&self, places: &[usize]) -> Self {
        self.map(|row| {
            let mut selected = Zeroizing::new(Vec::with_capacity(ELEMENT_BYTES * places.len()));
            let elements = row.as_chunks::<ELEMENT_BYTES>().0;
            places.iter().for_each(|place| selected.extend_from_slice(&elements[*place]));
            selected
        })
    }

    /// Concatenates vectors.
    pub fn join(parts: &[&Self]) -> Self {
        let joined = |row: fn(&Self) -> &[u8]| {
            // Allocated at its full size: growing would leave copies behind.
            let mut joined =
                Zeroizing::new(Vec::with_capacity(parts.iter().map(|part| row(part).len()).sum()));
            parts.iter().for_each(|part| joined.extend_from_slice(row(part)));
            joined
        };
        let unchecked = Unchecked::join(parts.iter().map(|part| &part.unchecked));
        let [shares, macs] = [joined(|part| &part.shares), joined(|part| &part.macs)];
        Elements { shares, macs, thirds: joined(|part| &part.thirds), unchecked }
    }

    /// For every `count` public weights the sum of weight_i element_i. There must be elements, and enough
    /// weights for whole sums.
    pub fn weighted_sums(&self, weights: &[Element]) -> Self {
        let count = weights.len() / self.count();
        self.map(|row| {
            let mut sums = Zeroizing::new(vec![0; ELEMENT_BYTES * count]);
            gf128::weighted_sums(&mut sums, weights.as_flattened(), row);
            sums
        })
    }

    /// Products of the shares, element by element, with factors given as bytes.
    pub fn multiply(&self, factors: &[u8]) -> Self {
        self.map(|row| {
            let mut products = Zeroizing::new(vec![0; row.len()]);
            gf128::multiply(&mut products, row, factors);
            products
        })
    }

    /// Adds another vector, element by element.
    pub fn add_assign(&mut self, other: &Self) {
        add(&mut self.shares, &other.shares);
        add(&mut self.macs, &other.macs);
        add(&mut self.thirds, &other.thirds);
        self.unchecked = Unchecked::join([&self.unchecked, &other.unchecked]);
    }

    /// Sums, element by element.
    pub fn add(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add_assign(other);
        sum
    }

    /// Sums of this party's shares with public elements. Which parties must do this so that the shared values
    /// become these sums depends on the protocol: [`ElementArithmetic::add_public`].
    pub fn add_to_shares(&self, public: &[Element]) -> Self {
        let mut sum = self.clone();
        add(&mut sum.shares, public.as_flattened());
        sum
    }

    /// The sum of all elements, as one element.
    pub fn sum(&self) -> Self {
        self.map(|row| {
            let mut sum = Zeroizing::new(vec![0; ELEMENT_BYTES]);
            row.chunks(ELEMENT_BYTES).for_each(|element| add(&mut sum, element));
            sum
        })
    }

    /// What a party stores: this header, the count in eight bytes, little-endian, the shares, and the MACs or
    /// further shares.
    pub fn save(&self, header: &[u8]) -> Zeroizing<Vec<u8>> {
        let rows = [&self.shares, &self.macs, &self.thirds];
        let len = header.len() + size_of::<u64>() + rows.iter().map(|row| row.len()).sum::<usize>();
        let mut bytes = Zeroizing::new(Vec::with_capacity(len));
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(&(self.count() as u64).to_le_bytes());
        rows.iter().for_each(|row| bytes.extend_from_slice(row));
        bytes
    }

    /// Reads what [`save`](Elements::save) wrote after the header: one row of shares, and of MACs or
    /// further shares so many that there are 1 to 3 rows.
    pub fn restore(mut reader: Reader<'_>, rows: usize) -> Result<Self> {
        let count = usize::try_from(u64::from_le_bytes(reader.array()?)).ok();
        let len = count.and_then(|count| count.checked_mul(ELEMENT_BYTES));
        let len = len.ok_or_else(|| reader.damaged("the number of elements overflows"))?;
        let [shares, macs, thirds] = [0, 1, 2].map(|row| reader.take(if row < rows { len } else { 0 }));
        let [shares, macs, thirds] = [shares?, macs?, thirds?].map(|row| Zeroizing::new(row.to_vec()));
        reader.finish()?;
        Ok(Elements { shares, macs, thirds, unchecked: Unchecked::default() })
    }
}

fn add(sums: &mut [u8], terms: &[u8]) {
    assert_eq!(sums.len(), terms.len(), "terms of other lengths");
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum ^= term);
}
