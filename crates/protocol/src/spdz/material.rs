//! The material of an evaluation. Each item is handed out once.

use std::collections::BTreeMap;
use std::ops::Range;

use polyclave_field::MacField;

use super::masked::Sums;
use crate::authenticated::{Authenticated, Inverses, Records, Rows, Triples, Units};
use crate::{Error, Result};

/// Material for one evaluation.
pub struct Batch<F: MacField> {
    /// The stream it was made on.
    pub(super) stream: [u8; 40],
    pub(super) circuit: [u8; 32],
    pub(super) lanes: usize,
    pub(super) triples: Triples<F>,
    pub(super) triples_spent: usize,
    pub(super) bits: Authenticated<F>,
    pub(super) bits_spent: usize,
    pub(super) inverses: Inverses<F>,
    pub(super) inverses_spent: usize,
    /// By the bits of the tables that take them.
    pub(super) units: BTreeMap<u8, Units<F>>,
    /// By table of the circuit, if unit vectors are combined for it: public.
    pub(super) sums: Vec<Option<Sums<F>>>,
    /// By table of the circuit.
    pub(super) rows: Vec<Option<Rows<F>>>,
}

impl<F: MacField> Batch<F> {
    /// The next triples: they are never handed out again.
    pub(super) fn take_triples(&mut self, count: usize) -> Result<Triples<F>> {
        let range = spend(&mut self.triples_spent, count, self.triples.a.len())?;
        let part = |shares: &Authenticated<F>| shares.part(range.clone());
        Ok(Triples { a: part(&self.triples.a), b: part(&self.triples.b), c: part(&self.triples.c) })
    }

    /// The next bits: they are never handed out again.
    pub(super) fn take_bits(&mut self, count: usize) -> Result<Authenticated<F>> {
        Ok(self.bits.part(spend(&mut self.bits_spent, count, self.bits.len())?))
    }

    /// The next records for inversions: they are never handed out again.
    pub(super) fn take_inverses(&mut self, count: usize) -> Result<Records<'_, F>> {
        let range = spend(&mut self.inverses_spent, count, self.inverses.len())?;
        Ok(self.inverses.records(range))
    }
}

/// The next `count` of `len` items; an error if fewer are left.
pub(super) fn spend(spent: &mut usize, count: usize, len: usize) -> Result<Range<usize>> {
    match spent.checked_add(count).filter(|end| *end <= len) {
        Some(end) => Ok(std::mem::replace(spent, end)..end),
        None => Err(Error::misuse("the batch was prepared for fewer lookups")),
    }
}
