//! Where the material of authenticated sharing comes from.

use std::ops::Range;

use polyclave_field::MacField;
use zeroize::Zeroizing;

use super::inverses::Inverses;
use super::share::Authenticated;
use super::{RowShape, Rows, Units, Vectors};
use crate::interface::net::Net;
use crate::interface::stock::Kind;
use crate::pool::Pool;
use crate::{Error, Party, Result};

/// Shares of random elements a and b and of their product c, element by element.
pub struct Triples<F: MacField> {
    /// Uniform.
    pub a: Authenticated<F>,
    /// Uniform.
    pub b: Authenticated<F>,
    /// The products.
    pub c: Authenticated<F>,
}

/// One party's shares of random a, b and of c = a b without MACs, for a zero test. Used once.
pub struct Product<F: MacField> {
    pub(crate) a: F::Word,
    pub(crate) b: F::Word,
    pub(crate) c: F::Word,
}

impl<F: MacField> Product<F> {
    /// c need not be verified ([`super::check`]).
    pub(crate) fn new(a: F::Word, b: F::Word, c: F::Word) -> Self {
        Product { a, b, c }
    }
}

impl<F: MacField> Drop for Product<F> {
    fn drop(&mut self) {
        use zeroize::Zeroize;
        [&mut self.a, &mut self.b, &mut self.c].into_iter().for_each(Zeroize::zeroize);
    }
}

impl<F: MacField> Triples<F> {
    /// Some of them.
    pub fn part(&self, range: Range<usize>) -> Self {
        let [a, b, c] = [&self.a, &self.b, &self.c].map(|of| of.part(range.clone()));
        Triples { a, b, c }
    }

    /// All of several parts.
    pub fn join(parts: &[&Self]) -> Self {
        let joined = |of: fn(&Self) -> &Authenticated<F>| {
            Authenticated::join(&parts.iter().map(|part| of(part)).collect::<Vec<_>>())
        };
        Triples { a: joined(|of| &of.a), b: joined(|of| &of.b), c: joined(|of| &of.c) }
    }

    /// The values of one triple, for a zero test.
    pub fn product(&self, at: usize) -> Product<F> {
        Product::new(self.a.values[at], self.b.values[at], self.c.values[at])
    }
}

/// Shared bits, and at the one party that knows them the bits, one a byte.
pub type OwnedBits<F> = (Authenticated<F>, Option<Zeroizing<Vec<u8>>>);

/// Makes material under one MAC key. Nothing is handed out before it has been checked; what is asked for at
/// once is made at once. After an error the source is of no further use.
pub trait Source<F: MacField>: Send {
    /// Random multiplication triples.
    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>>;

    /// The same for a session that can go on without them now. `None` at all parties if they would have to
    /// wait for them.
    fn triples_if_there(&mut self, count: usize, net: &mut dyn Net) -> Result<Option<Triples<F>>> {
        self.triples(count, net).map(Some)
    }

    /// Random bits, 0 or 1 as elements, that nobody knows.
    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Authenticated<F>>;

    /// Random bits that one party knows.
    fn bits_of(&mut self, owner: Party, count: usize, net: &mut dyn Net) -> Result<OwnedBits<F>>;

    /// Random triples of bits: c = a and b.
    fn bit_triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>>;

    /// Unit vectors of random indices, from sources that make them by products by rotation.
    fn unit_vectors(
        &mut self,
        _in_bits: u8,
        _count: usize,
        _pool: &Pool,
        _net: &mut dyn Net,
    ) -> Result<Vectors<F>> {
        Err(Error::misuse("this source makes no unit vectors by rotation"))
    }

    /// Records for inversions ([`Inverses`]), from sources that make them.
    fn inverses(&mut self, _count: usize, _net: &mut dyn Net) -> Result<Inverses<F>> {
        Err(Error::misuse("this source makes no records for inversions"))
    }

    /// Adds this party's shares of zeros. With them a party can show its shares of a value to a party that
    /// learns the value, and reveals nothing else.
    fn zeros(&mut self, shares: &mut [F::Word]);

    /// Items of a kind that masks clients' blocks, from sources that have them whole: a stock.
    fn deal_masks(
        &mut self,
        _kind: &Kind,
        _count: usize,
        _net: &mut dyn Net,
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        Ok(None)
    }

    /// Unit vectors of random indices of at least so many bits, from sources that have them whole: a stock, a
    /// dealer.
    fn deal_units(
        &mut self,
        _in_bits: u8,
        _count: usize,
        _pool: &Pool,
        _net: &mut dyn Net,
    ) -> Result<Option<Units<F>>> {
        Ok(None)
    }

    /// Masked tables, likewise.
    fn deal_rows(
        &mut self,
        _shape: &RowShape,
        _count: usize,
        _pool: &Pool,
        _net: &mut dyn Net,
    ) -> Result<Option<Rows<F>>> {
        Ok(None)
    }
}
