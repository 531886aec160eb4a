//! Records for inversions, and unit vectors between two parties, from TinyOT ([`crate::tinyot`]).
//!
//! TinyOT makes them under its own transfers. `bit_triples.rs` binds all parties' shares of the MAC key there
//! to those here, once, when the two are joined. So a record is material of this source like any other.

use std::any::Any;

use polyclave_field::MacField;

use super::Mascot;
use super::bit_triples::missing;
use crate::Result;
use crate::authenticated::{Inverses, Vectors};
use crate::interface::net::Net;
use crate::pool::Pool;
use crate::tinyot::TinyOt;

impl<F: MacField> Mascot<F> {
    /// Random records for inversions.
    pub(super) fn records(&mut self, count: usize, net: &mut dyn Net) -> Result<Inverses<F>> {
        self.made_by_tinyot(|tinyot| tinyot.inverses(count, net))
    }

    /// Unit vectors of random indices.
    pub(super) fn vectors(
        &mut self,
        in_bits: u8,
        count: usize,
        pool: &Pool,
        net: &mut dyn Net,
    ) -> Result<Vectors<F>> {
        self.refuse_more_than_two()?;
        self.made_by_tinyot(|tinyot| tinyot.unit_vectors(in_bits, count, pool, net))
    }

    /// Has TinyOT make something, with MACs in GF(2^64), and takes it as made with MACs in F. TinyOT is
    /// joined only if these are one field.
    fn made_by_tinyot<M: Any, T: Any>(&mut self, make: impl FnOnce(&mut TinyOt) -> Result<M>) -> Result<T> {
        // Outside of `guarded`, because asking in vain spoils nothing.
        if self.tinyot.is_none() {
            return Err(missing());
        }
        self.guarded(|mascot| {
            let made: Box<dyn Any> = Box::new(make(mascot.tinyot.as_mut().ok_or_else(missing)?)?);
            Ok(*made.downcast().map_err(|_| missing())?)
        })
    }
}
