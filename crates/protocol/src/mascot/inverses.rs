//! Records for inversions between two parties, from TinyOT ([`crate::tinyot`]).
//!
//! TinyOT makes them under its own transfers. `bit_triples.rs` binds both parties' shares of the MAC key there to those here, once, when
//! the two are joined. So a record is material of this source like any other.

use std::any::Any;

use polyclave_field::MacField;

use super::Mascot;
use super::bit_triples::missing;
use crate::net::Net;
use crate::spdz::Inverses;
use crate::{Error, Result};

impl<F: MacField> Mascot<F> {
    /// Random records for inversions.
    pub(super) fn records(&mut self, count: usize, net: &mut dyn Net) -> Result<Inverses<F>> {
        // Outside of `guarded`, because asking in vain spoils nothing.
        if self.tinyot.is_none() {
            return Err(missing());
        }
        self.guarded(|mascot| {
            let tinyot = mascot.tinyot.as_mut().ok_or_else(missing)?;
            let made: Box<dyn Any> = Box::new(tinyot.inverses(count, net)?);
            // TinyOT is joined only if F is its field.
            let made = made.downcast().map_err(|_| Error::misuse("records have MACs in GF(2^64)"))?;
            Ok(*made)
        })
    }
}
