//! The options of a message in each mode, and their lengths.

use std::ops::RangeInclusive;

use super::Mode;
use crate::MAX_NONCE;

/// What a message may have besides the data and the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOption {
    /// A plain format that other programs read.
    Plain,
    /// A file format of this program.
    Sealed,
    /// Additional data that are authenticated.
    Additional,
    /// Several strings of additional data.
    SeveralAdditional,
    /// A nonce, and a tag that may be cut.
    Nonce,
    /// An initial block, with which the plain format begins.
    Initial,
    /// A tweak of the first block.
    Tweak,
    /// Padding, without which the data are whole blocks.
    Padding,
    /// A text about the file.
    Header,
}

impl Mode {
    /// Whether a message in this mode may have something.
    pub fn takes(self, option: MessageOption) -> bool {
        self.facts().options.contains(&option)
    }

    /// How many bytes a nonce may have.
    pub fn nonce_bytes(self) -> RangeInclusive<usize> {
        match self {
            Mode::Ccm => 7..=13,
            _ => 1..=MAX_NONCE,
        }
    }

    /// Whether a tag may have `bytes` bytes. Below 64 bits a guess is too likely to be right (SP 800-38C,
    /// appendix B.2; for GCM SP 800-38D, section 5.2.1.2).
    pub fn takes_tag(self, bytes: usize) -> bool {
        match self {
            Mode::Gcm => (12..=16).contains(&bytes),
            Mode::Ccm => (8..=16).contains(&bytes) && bytes.is_multiple_of(2),
            _ => bytes == 16,
        }
    }
}
