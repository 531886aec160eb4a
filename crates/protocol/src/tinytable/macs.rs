//! How openings of table entries are verified, and what an entry's record holds for it.
//!
//! | | beside the entry's share of n bits | source |
//! |---|---|---|
//! | `None` | nothing | figure 7 |
//! | `Lookup` | a string that proves it, and for each of the 2^n shares the peer could open the string that proves that | figure 3 |
//! | `Minimac` | nothing: the parties are committed to all shares together (`commitments.rs`) | section 6 |
//! | `Linear64` | the tag of it, and the key of the peer's tag: y = alpha x + beta, unreduced, of 63 + n bits | section 3 |
//!
//! A record is packed: its parts follow each other byte by byte. For Boolean gates the shares are stored
//! apart, as bits.

use polyclave_cipher::Table;

use super::registers::Packing;

/// How openings are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Macs {
    /// Not at all: both parties follow the protocol.
    None,
    /// By strings of 4 bytes.
    Lookup32,
    /// By strings of 8 bytes.
    Lookup64,
    /// By tags under a key of 64 bits.
    Linear64,
    /// By [`Commitments`](super::Commitments) to the tables as a whole, and tags on the masks of inputs and
    /// outputs. From a dealer only.
    Minimac,
}

impl Macs {
    /// All of them.
    pub const ALL: &[Macs] = &[Macs::None, Macs::Lookup32, Macs::Lookup64, Macs::Linear64, Macs::Minimac];

    /// The protocol's name on the command line.
    pub fn protocol(self) -> &'static str {
        match self {
            Macs::None => "tinytable",
            Macs::Lookup32 => "tinytable-lookup32",
            Macs::Lookup64 => "tinytable-lookup64",
            Macs::Linear64 => "tinytable-linear64",
            Macs::Minimac => "tinytable-minimac",
        }
    }

    /// A wrong opening passes with probability 2 to minus this. (Of an entry under commitments with far less:
    /// this is of masks.)
    pub fn security_bits(self) -> u32 {
        match self {
            Macs::None => 0,
            Macs::Lookup32 => 32,
            _ => 64,
        }
    }

    /// Bytes of a proving string; 0 without.
    pub fn string_bytes(self) -> usize {
        match self {
            Macs::Lookup32 => 4,
            Macs::Lookup64 => 8,
            _ => 0,
        }
    }

    /// Bytes of an entry's verification.
    pub fn mac_bytes(self, out_bits: u8) -> usize {
        match self {
            Macs::Lookup32 | Macs::Lookup64 => self.string_bytes() * (1 + (1 << out_bits)),
            Macs::Linear64 => 2 * tag_bytes(out_bits),
            _ => 0,
        }
    }
}

/// Bytes of a tag of this many bits under a key of 64.
pub fn tag_bytes(bits: u8) -> usize {
    (63 + usize::from(bits)).div_ceil(8)
}

/// Writes the low bytes of a tag.
pub fn write_tag(tag: u128, to: &mut [u8]) {
    match <&mut [u8; 8]>::try_from(&mut *to) {
        // The tag of a bit: without a call to copy.
        Ok(to) => *to = (tag as u64).to_le_bytes(),
        Err(_) => to.copy_from_slice(&tag.to_le_bytes()[..to.len()]),
    }
}

/// The unreduced product of a key of 64 bits and a cell, in constant time.
pub fn product(alpha: u64, cell: u8) -> u128 {
    (0..8).fold(0, |sum, i| sum ^ (u128::from(alpha & crate::tinyot::mask(cell >> i & 1)) << i))
}

/// The bytes of one lookup's tables, in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Entries.
    pub entries: usize,
    /// Bits of an entry.
    pub out_bits: u8,
    /// Bytes of a record: share, unless that is a bit of a plane, and verification.
    pub bytes: usize,
    /// Bytes of the share in it.
    pub share_bytes: usize,
}

impl Record {
    pub(super) fn of(table: &Table, macs: Macs, packing: Packing) -> Record {
        let share_bytes = usize::from(packing == Packing::Cells);
        let bytes = share_bytes + macs.mac_bytes(table.out_bits());
        Record { entries: table.entries().len(), out_bits: table.out_bits(), bytes, share_bytes }
    }

    /// Whether it is of a Boolean gate, whose shares are bits of a plane.
    pub(super) fn is_gate(&self) -> bool {
        self.share_bytes == 0
    }

    /// Bytes of the records of a table.
    pub fn table_bytes(&self) -> usize {
        self.entries * self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_the_sizes_of_the_paper() {
        let aes = [Macs::None, Macs::Lookup32, Macs::Lookup64, Macs::Linear64].map(|m| 1 + m.mac_bytes(8));
        assert_eq!(aes, [1, 1 + 4 * 257, 1 + 8 * 257, 1 + 2 * 9]);
        let gate = [Macs::None, Macs::Lookup32, Macs::Lookup64, Macs::Linear64].map(|m| m.mac_bytes(1));
        assert_eq!(gate, [0, 12, 24, 16]);
    }

    #[test]
    fn products_are_carry_less() {
        assert_eq!(product(u64::MAX, 0), 0);
        assert_eq!(product(0b101, 0b11), 0b1111);
        assert_eq!(product(1 << 63, 0x80), 1 << 70);
    }
}
