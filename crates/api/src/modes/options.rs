//! The options of a message in each mode, and their lengths.

use std::ops::RangeInclusive;

use super::Mode;

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
    /// A nonce.
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

    /// How many bytes a nonce may have; `None` in modes without nonces.
    pub fn nonce_bytes(self) -> Option<RangeInclusive<usize>> {
        self.facts().nonces.clone()
    }

    /// How many bytes a tag may have.
    pub fn tag_bytes(self) -> &'static [usize] {
        self.facts().tags
    }

    /// The most bytes of a message, in modes whose messages the nodes take whole.
    pub fn most_whole(self) -> Option<usize> {
        self.facts().whole.map(|most| most.message)
    }

    /// Whether the tag stands before the ciphertext in its plain format.
    pub fn begins_with_tag(self) -> bool {
        self.facts().begins_with_tag
    }

    /// Refuses tags of `bytes` bytes where the mode has others. The error says which.
    pub fn check_tag(self, bytes: usize) -> Result<(), String> {
        match self.tag_bytes() {
            allowed if allowed.contains(&bytes) => Ok(()),
            allowed => Err(format!("{self} has tags of {} bytes, not {bytes}", alternatives(allowed))),
        }
    }

    /// Refuses nonces of `bytes` bytes where the mode has others, or none. The error says which.
    pub fn check_nonce(self, bytes: usize) -> Result<(), String> {
        match self.nonce_bytes() {
            Some(allowed) if allowed.contains(&bytes) => Ok(()),
            Some(allowed) if allowed.start() == allowed.end() => {
                Err(format!("{self} takes nonces of {} bytes, not {bytes}", allowed.start()))
            }
            Some(allowed) => {
                let (least, most) = allowed.into_inner();
                Err(format!("{self} takes nonces of {least} to {most} bytes, not {bytes}"))
            }
            None => Err(format!("{self} takes no nonce")),
        }
    }
}

/// Values between commas, the last behind "or".
pub(super) fn alternatives(all: &[impl std::fmt::Display]) -> String {
    let words: Vec<String> = all.iter().map(|one| one.to_string()).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::from("no"),
    }
}
