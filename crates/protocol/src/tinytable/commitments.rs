//! Where openings are verified by something besides MACs: commitments to the tables as a whole. The
//! laboratory has them.

use std::ops::Range;

use polyclave_cipher::Lookup;

use super::batch::{Batch, Plan};
use super::registers::Registers;
use crate::Result;
use crate::interface::net::Net;

/// Notes which entries are opened on one stream of a session, and verifies them together.
pub trait Commitments: Send {
    /// Bytes of material that it takes for a plan.
    fn bytes(&self, plan: &Plan<'_>) -> usize;

    /// Before tables of a batch are used. From here on a check uses its commitments up.
    fn begin(&mut self, batch: &Batch) -> Result<()>;

    /// Notes what was opened of the tables at these places. The bank still holds the masked inputs. `theirs`
    /// is what the peer sent.
    fn note(
        &mut self,
        lookups: &[Lookup],
        places: Range<usize>,
        registers: &Registers,
        batch: &Batch,
        theirs: &[u8],
    ) -> Result<()>;

    /// Verifies what was opened since the last check. Returns the rounds that it took.
    fn check(&mut self, net: &mut dyn Net) -> Result<u64>;
}
