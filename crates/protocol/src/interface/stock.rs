//! The interface to material that nodes make ahead and keep in stock.
//!
//! A party durably marks items as spent, then reads them, and then sends. So no item is used twice. All
//! parties take the same items: one party proposes them, and the others make sure that no item was spent
//! before.

use zeroize::Zeroizing;

use crate::Result;
use crate::interface::net::Net;

/// What the transfers behind material are good at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transfers {
    /// Little computation.
    #[default]
    Quick,
    /// Few bytes.
    Small,
    /// The fewest bytes, under one assumption more: [`Silent`](crate::ot::Silent).
    Silent,
}

/// A kind of material: items of one size, which are used one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Its name, a noun in the plural; the same at all parties.
    pub name: &'static str,
    /// What it serves.
    pub purpose: Purpose,
    /// Bytes of this party's part of an item.
    pub item_bytes: usize,
    /// How many items one block takes, of the cipher for which the kind is made. Stocks are counted in
    /// blocks.
    pub per_block: usize,
}

/// What material of a kind serves: widths of tables and operations, never names of ciphers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Lookups in tables with inputs of up to this many bits.
    Tables(u8),
    /// Inversions in GF(2^8).
    Inversions,
    /// Products of elements of GF(2^128): tags.
    Tags,
    /// What surrounds blocks: clients' inputs and outputs, checks, keys. A computation of many blocks takes
    /// little of it for each.
    Surroundings,
    /// All computations.
    All,
    /// Blocks of one cipher, so that they take few rounds. Sessions go on without it if there is none.
    Circuits,
}

/// How much is in stock, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Blocks of AES.
    pub aes_blocks: usize,
    /// Blocks of Triple DES.
    pub des_blocks: usize,
    /// Blocks of each cipher that go through garbled circuits.
    pub circuits: usize,
}

impl Levels {
    /// Where the material of a block is large, or none is kept.
    pub const FEW: Levels = Levels { aes_blocks: 32, des_blocks: 4, circuits: 0 };
}

/// A party's material.
pub trait Stock: Send + Sync {
    /// Takes this party's parts of `count` items of a kind, one after another, for their only use. All
    /// parties call it at the same place of the same session, whose network this is. If there is not enough,
    /// all of them get [`Error::OutOfMaterial`](crate::Error::OutOfMaterial).
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>>;

    /// The same where a session can go on without, of several kinds at once: `None` at all parties if the
    /// stock does not give so many of each kind now. Then nothing is spent, except for what was claimed
    /// before in the expectation that the session asks for something else.
    fn take_if_there(&self, _: &[(Kind, usize)], _: &mut dyn Net) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>> {
        Ok(None)
    }
}
