//! The arithmetic black box: openings, products, bit decomposition and the MAC check, all counted.
//!
//! Adversary: active, all parties but one, static; secure with abort. Every opened value is masked by a value
//! that is uniform to parties that lack one party's share: d = x - a and e = y - b by the two elements of a
//! triple, and a cell by random bits. A wrong opening causes a difference that all parties compute with, and
//! the check finds it before anything is revealed.

mod alongside;

use polyclave_cipher::Matrix;
use polyclave_field::{MacField, Word};
use zeroize::Zeroizing;

use crate::authenticated::{
    Authenticated, CHECK_ROUNDS, CHECK_ROUNDS_OF_TWO, Inverses, MacKey, Openings, Packed, Product, Source,
    Triples, check, check_of_two,
};
use crate::interface::net::Net;
use crate::interface::tally::{Phase, Tally};
use crate::unchecked::{Checks, Unchecked};
use crate::{Error, Result};
use alongside::Alongside;

/// Random products for zero tests that are asked for at once.
const PRODUCTS: usize = 8;

/// One party's state in a session.
pub(super) struct Arithmetic<F: MacField> {
    pub(super) key: MacKey<F>,
    /// Bound to this stream of this session.
    pub(super) stream: [u8; 40],
    pub(super) phase: Phase,
    pub(super) tally: Tally,
    pub(super) openings: Openings<F>,
    pub(super) source: Box<dyn Source<F>>,
    products: Vec<Product<F>>,
    /// Triples that were taken from the source before they are wanted.
    ahead: Option<Triples<F>>,
    /// A check that travels alongside other messages.
    alongside: Alongside<F>,
    /// Checks that have passed.
    checks: Checks,
    /// Whether an error has ended the session: then nothing is opened and nothing passes a check any more.
    pub(super) is_over: bool,
}

impl<F: MacField> Arithmetic<F> {
    pub(super) fn new(key: MacKey<F>, stream: [u8; 40], source: Box<dyn Source<F>>) -> Self {
        Arithmetic {
            key,
            stream,
            phase: Phase::Online,
            tally: Tally::default(),
            openings: Openings::default(),
            source,
            products: Vec::new(),
            ahead: None,
            alongside: Alongside::Nothing,
            checks: Checks::default(),
            is_over: false,
        }
    }

    /// The check that a value needs which is made now.
    pub(super) fn unchecked(&self) -> Unchecked {
        if self.openings.is_empty() { Unchecked::default() } else { self.checks.next() }
    }

    /// Refuses a value of another session that has not been checked there.
    pub(super) fn refuse_unchecked(&self, of: &Unchecked) -> Result<()> {
        self.checks.refuse_foreign(of)
    }

    /// Random triples, fresh from the source.
    pub(super) fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.tally.of(self.phase).triples += count as u64;
        match self.ahead.take() {
            Some(ahead) if ahead.a.len() >= count => {
                let rest = ahead.part(count..ahead.a.len());
                self.ahead = Some(rest).filter(|rest| !rest.a.is_empty());
                Ok(ahead.part(0..count))
            }
            ahead => {
                self.ahead = ahead;
                self.source.triples(count, net)
            }
        }
    }

    /// Random triples of bits, fresh from the source.
    pub(super) fn bit_triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.tally.of(self.phase).triples += count as u64;
        self.source.bit_triples(count, net)
    }

    /// Random bits, fresh from the source.
    pub(super) fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Authenticated<F>> {
        self.tally.of(self.phase).bits += count as u64;
        self.source.bits(count, net)
    }

    /// Refuses to go on after an error of a peer in circuits, and in the middle of a check.
    pub(super) fn refuse_over(&self) -> Result<()> {
        if self.is_over {
            return Err(Error::misuse("an earlier error has ended the session; begin another one"));
        }
        self.alongside.refuse()
    }

    /// Opens elements and cells together. One round.
    pub(super) fn open(
        &mut self,
        elements: &Authenticated<F>,
        cells: &[u8],
        cell_macs: &[F::Word],
        net: &mut dyn Net,
    ) -> Result<(Vec<F::Word>, Vec<u8>)> {
        self.refuse_over()?;
        let counts = self.tally.of(self.phase);
        counts.rounds += 1;
        counts.openings += (elements.len() + cells.len()) as u64;
        self.openings.open(elements, cells, cell_macs, net)
    }

    /// Opens cells of a small field, packed. One round.
    pub(super) fn open_packed(
        &mut self,
        packed: &Packed,
        cells: &[u8],
        opened: &mut [u8],
        count: usize,
        macs: impl FnOnce(&mut [F::Word]),
        net: &mut dyn Net,
    ) -> Result<()> {
        self.refuse_over()?;
        let counts = self.tally.of(self.phase);
        counts.rounds += 1;
        counts.openings += count as u64;
        let outcome = self.openings.open_packed(packed, cells, opened, count, macs, net);
        outcome.inspect_err(|e| self.key.retire_after(e))
    }

    /// Records for inversions, fresh from the source.
    pub(super) fn inverses(&mut self, count: usize, net: &mut dyn Net) -> Result<Inverses<F>> {
        self.source.inverses(count, net)
    }

    /// Products, and bits of cells, in one round: two openings a product (Beaver 1991), one a cell.
    pub(super) fn step(&mut self, step: Step<'_, F>, net: &mut dyn Net) -> Result<Stepped<F>> {
        let Step { products, triples, decompose } = step;
        let len = products.iter().map(|(x, _)| x.len()).sum();
        assert_eq!(triples.a.len(), len, "a triple for every product");
        // d = x - a, e = y - b.
        let mut masked = Authenticated::zero(2 * len);
        let mut at = 0;
        for (x, y) in products {
            let range = at..at + x.len();
            masked.set_sum(at, x, &triples.a.part(range.clone()));
            masked.set_sum(len + at, y, &triples.b.part(range.clone()));
            at = range.end;
        }
        let (cells, macs) = decompose.as_ref().map(Decomposing::masked).unwrap_or_default();
        let (opened, public) = self.open(&masked, &cells, &macs, net)?;
        let (d, e) = opened.split_at(len);

        // x y = c + d b + e a + d e.
        let mut all = triples.c;
        all.add(&triples.b.times_public(d));
        all.add(&triples.a.times_public(e));
        let mut de = vec![F::Word::ZERO; len];
        F::multiply_rows(&mut de, d, e);
        all.add_public(&de, &self.key);
        let mut at = 0;
        let part = |(x, _): &(&Authenticated<F>, _)| {
            at += x.len();
            all.part(at - x.len()..at)
        };
        Ok(Stepped {
            products: products.iter().map(part).collect(),
            decomposed: decompose.map(|of| Decomposed { public, bits: of.bits }),
        })
    }

    /// Makes sure that there are products for some checks. They are not counted with the material of lookups.
    pub(super) fn stock_products(&mut self, net: &mut dyn Net) -> Result<()> {
        if self.products.len() < PRODUCTS / 2 {
            let triples = self.source.triples(PRODUCTS, net)?;
            self.products.extend((0..PRODUCTS).map(|i| triples.product(i)));
        }
        Ok(())
    }

    /// Takes triples from the source that may be wanted later, if it has them: so many, and for some checks.
    pub(super) fn stock_ahead(&mut self, count: usize, net: &mut dyn Net) -> Result<()> {
        let checks = PRODUCTS - self.products.len().min(PRODUCTS);
        let there = self.ahead.as_ref().map_or(0, |ahead| ahead.a.len());
        let wanted = count - there.min(count);
        if checks + wanted == 0 {
            return Ok(());
        }
        let Some(triples) = self.source.triples_if_there(checks + wanted, net)? else { return Ok(()) };
        self.products.extend((0..checks).map(|i| triples.product(i)));
        let more = triples.part(checks..checks + wanted);
        self.ahead = Some(match self.ahead.take() {
            Some(ahead) => Triples::join(&[&ahead, &more]),
            None => more,
        });
        Ok(())
    }

    /// Checks everything that was opened since the last check; nothing is checked if nothing was opened.
    pub(super) fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.refuse_over()?;
        if self.openings.is_empty() {
            return self.key.refuse_retired();
        }
        let of_two = net.parties() == 2;
        if self.products.len() < if of_two { 2 } else { 1 } {
            self.stock_products(net)?;
        }
        let mut product = || self.products.pop().ok_or_else(|| Error::misuse("a source made nothing"));
        let rounds = match of_two {
            true => {
                check_of_two(&self.key, &mut self.openings, [product()?, product()?], net)?;
                CHECK_ROUNDS_OF_TWO
            }
            false => {
                check(&self.key, &mut self.openings, product()?, net)?;
                CHECK_ROUNDS
            }
        };
        self.tally.of(self.phase).rounds += rounds;
        self.checks.pass();
        Ok(())
    }
}

/// What is done in one round.
pub(super) struct Step<'a, F: MacField> {
    /// Factors.
    pub(super) products: &'a [(&'a Authenticated<F>, &'a Authenticated<F>)],
    /// One for each element of the products.
    pub(super) triples: Triples<F>,
    /// Cells to be taken apart into bits.
    pub(super) decompose: Option<Decomposing<'a, F>>,
}

/// Cells to be taken apart into bits.
pub(super) struct Decomposing<'a, F: MacField> {
    /// Images of cells.
    pub(super) of: &'a Authenticated<F>,
    /// `F::CELL_BITS` random bits for each: the lowest of all cells, then the next ..
    pub(super) bits: Authenticated<F>,
}

/// The result.
pub(super) struct Stepped<F: MacField> {
    pub(super) products: Vec<Authenticated<F>>,
    pub(super) decomposed: Option<Decomposed<F>>,
}

/// Cells that give every GF(2)-linear image without communication: x = c + sum of 2^i r_i with public c and
/// shared bits r_i.
pub(super) struct Decomposed<F: MacField> {
    pub(super) public: Vec<u8>,
    pub(super) bits: Authenticated<F>,
}

impl<F: MacField> Decomposing<'_, F> {
    /// Shares of x + sum of 2^i r_i, and their MACs.
    fn masked(&self) -> (Zeroizing<Vec<u8>>, Zeroizing<Vec<F::Word>>) {
        let len = self.of.len();
        assert_eq!(self.bits.len(), len * usize::from(F::CELL_BITS), "a random bit for every bit");
        let places: Vec<F::Word> = (0..F::CELL_BITS).map(|i| F::embed(1 << i)).collect();
        let plus_mask = |x: &[F::Word], bits: &[F::Word]| {
            let mut terms: Vec<(&[F::Word], F::Word)> = vec![(x, F::Word::ONE)];
            terms.extend(bits.chunks(len.max(1)).zip(&places).map(|(row, place)| (row, *place)));
            let mut sum = Zeroizing::new(vec![F::Word::ZERO; len]);
            F::combine(&mut sum, &terms, F::Word::ZERO);
            sum
        };
        let mut cells = Zeroizing::new(vec![0; len]);
        F::project_row(&mut cells, &plus_mask(&self.of.values, &self.bits.values));
        (cells, plus_mask(&self.of.macs, &self.bits.macs))
    }
}

impl<F: MacField> Decomposed<F> {
    /// Shares of matrix x + constant, for some of the cells. Local.
    pub(super) fn image(
        &self,
        cells: std::ops::Range<usize>,
        matrix: &Matrix,
        constant: u8,
        key: &MacKey<F>,
    ) -> Authenticated<F> {
        let len = self.public.len();
        let columns = matrix.columns();
        let combine = |bits: &[F::Word]| {
            let rows = bits.chunks(len.max(1)).map(|row| &row[cells.clone()]);
            let terms: Vec<_> =
                rows.zip(columns).filter(|(_, c)| *c != 0).map(|(row, c)| (row, F::embed(c))).collect();
            let mut sum = Zeroizing::new(vec![F::Word::ZERO; cells.len()]);
            F::combine(&mut sum, &terms, F::Word::ZERO);
            sum
        };
        let mut image = Authenticated { values: combine(&self.bits.values), macs: combine(&self.bits.macs) };
        let images: [F::Word; 256] = std::array::from_fn(|x| match x >> matrix.ins() {
            0 => F::embed(matrix.apply(x as u8) ^ constant),
            _ => F::Word::ZERO,
        });
        let public: Vec<F::Word> = self.public[cells].iter().map(|c| images[usize::from(*c)]).collect();
        image.add_public(&public, key);
        image
    }
}
