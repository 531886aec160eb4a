//! Sources of authenticated bits.

use polyclave_field::Gf2_64;

use super::Bits;
use crate::Result;
use crate::authenticated::MacKey;
use crate::interface::net::Net;

/// A party's key alpha, 64 bits: with it the party verifies its peer's bits. One holder of it alone; that
/// both parties' keys add up to a key of authenticated sharing ([`crate::spdz`]) lets the two kinds of shares
/// be turned into each other.
pub type Key = MacKey<Gf2_64>;

/// Random bits x and y and their product z, bit by bit.
pub struct Triples {
    /// Uniform.
    pub x: Bits,
    /// Uniform.
    pub y: Bits,
    /// The products.
    pub z: Bits,
}

/// Makes authenticated bits under the keys of both parties. Nothing is handed out before it has been checked;
/// what is asked for at once is made at once. After an error the source is of no further use.
pub trait Source: Send {
    /// Random bits that neither party knows.
    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Bits>;

    /// Random multiplication triples.
    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples>;
}
