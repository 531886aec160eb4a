//! The interface to material that nodes make ahead and keep in stock.
//!
//! A party durably marks items as spent, then reads them, then sends; so nothing serves twice. All parties take the same
//! items: one of them proposes which, and the others see to it that none of those was spent before.

use zeroize::Zeroizing;

use crate::Result;
use crate::net::Net;

/// A kind of material: items of one size, which serve one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The field's noun for it, in the plural; the same at all parties.
    pub name: &'static str,
    /// Bytes of one party's part of an item.
    pub item_bytes: usize,
    /// Items that one block of the cipher takes that the kind is made for: stocks are counted in blocks.
    pub per_block: usize,
}

/// A party's material.
pub trait Stock: Send + Sync {
    /// This party's parts of so many items of a kind, one after another, for their only use. All parties call it at the same
    /// place of the same session, whose network this is. [`Error::OutOfMaterial`](crate::Error::OutOfMaterial) at all of them alike if there is
    /// not enough.
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>>;
}
