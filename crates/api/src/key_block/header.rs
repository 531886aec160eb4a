//! What a header says about a key, in both directions.

use super::parse::{key_version, text};
use super::payments::usage_of;
use super::{BlockHeader, HEADER, Version};
use crate::{MessageOption, Mode, NewKey, Usage};
use polyclave_payments::Purpose;

impl BlockHeader {
    /// For a key, as it is: with all that it is for. The error says why no header fits it.
    pub fn of(key: &NewKey) -> Result<BlockHeader, String> {
        use Usage::{Decrypt, Encrypt, Mac, Unwrap, Wrap};
        if let Some(purpose) = key.purpose() {
            let (usage, modes_of_use) = usage_of(&purpose).ok_or_else(|| unfit(key))?;
            let mode_of_use = modes_of_use[0];
            return Ok(BlockHeader { usage, mode_of_use, key_version: *b"00", exportability: b'E' });
        }
        let usage = match (key.usage.as_slice(), key.modes.as_slice()) {
            ([Mac], _) => *b"M6",
            ([Encrypt, Decrypt] | [Encrypt] | [Decrypt], _) => *b"D0",
            ([Wrap, Unwrap] | [Wrap] | [Unwrap], [Mode::Tr31]) => *b"K1",
            ([Wrap, Unwrap] | [Wrap] | [Unwrap], []) => *b"K0",
            ([Usage::Derive] | [Usage::Kdf], []) => *b"B3",
            _ => return Err(unfit(key)),
        };
        let mode_of_use = match key.usage.as_slice() {
            [Mac] => b'C',
            [Encrypt] | [Wrap] => b'E',
            [Decrypt] | [Unwrap] => b'D',
            [Usage::Derive] | [Usage::Kdf] => b'X',
            _ => b'B',
        };
        let header = BlockHeader { usage, mode_of_use, key_version: *b"00", exportability: b'E' };
        header.may_leave_as(key).map(|()| header)
    }

    /// What it allows; none if the nodes have no use for such a key.
    fn allows(&self) -> &'static [Usage] {
        use Usage::{Decrypt, Derive, Encrypt, Kdf, Mac, Unwrap, Wrap};
        match (&self.usage, self.mode_of_use) {
            (b"D0", b'B' | b'N') => &[Encrypt, Decrypt],
            (b"D0", b'E') => &[Encrypt],
            (b"D0", b'D') => &[Decrypt],
            (b"M6", b'C' | b'N' | b'G') => &[Mac],
            (b"K0" | b"K1", b'B' | b'N') => &[Wrap, Unwrap],
            (b"K0" | b"K1", b'E') => &[Wrap],
            (b"K0" | b"K1", b'D') => &[Unwrap],
            (b"B3", b'X' | b'N') => &[Derive, Kdf],
            _ => &[],
        }
    }

    /// Whether modes of a key are of the kind that it names.
    fn takes(&self, modes: &[Mode]) -> bool {
        match &self.usage {
            b"D0" => !modes.is_empty() && modes.iter().all(|mode| mode.takes(MessageOption::Plain)),
            b"M6" => modes == [Mode::Cmac],
            b"K1" => modes == [Mode::Tr31],
            _ => modes.is_empty(),
        }
    }

    /// Refuses to make a key of a block that is not for all that the key would be for.
    pub fn may_become(&self, new: &NewKey) -> Result<(), String> {
        if self.exportability == b'N' && new.wrappable {
            return Err("the key block says that the key must not be exported: leave out wrappable".into());
        }
        if let Some(purpose) = new.purpose() {
            return match self.is_of(&purpose) {
                true => Ok(()),
                false => Err(format!("{} does not allow the usage {purpose}", self.message())),
            };
        }
        let allowed = self.allows();
        if allowed.is_empty() {
            return Err(format!(
                "the nodes have no use for a key of usage {} and mode of use {}; they take D0, M6, K0, K1 and B3",
                text(&self.usage),
                text(&[self.mode_of_use])
            ));
        }
        if let Some(other) = new.usage.iter().find(|usage| !allowed.contains(usage)) {
            return Err(format!("{} does not allow the usage {other}", self.message()));
        }
        if !self.takes(&new.modes) {
            return Err(format!("{} does not fit the modes of the new key", self.message()));
        }
        Ok(())
    }

    /// Whether it is that of a key for a purpose of payments, and of no other kind of key.
    fn is_of(&self, purpose: &Purpose) -> bool {
        usage_of(purpose).is_some_and(|(usage, modes_of_use)| {
            self.usage == usage && modes_of_use.contains(&self.mode_of_use)
        })
    }

    /// Refuses a header that allows more than the key is for.
    pub fn may_leave_as(&self, key: &NewKey) -> Result<(), String> {
        let allowed = self.allows();
        let derives = |usage: &[Usage]| usage == [Usage::Derive] || usage == [Usage::Kdf];
        let is_for = match &self.usage {
            _ if key.purpose().is_some() => key.purpose().is_some_and(|purpose| self.is_of(&purpose)),
            b"B3" => !allowed.is_empty() && derives(&key.usage),
            _ => !allowed.is_empty() && allowed.iter().all(|usage| key.usage.contains(usage)),
        };
        if !is_for || (key.purpose().is_none() && !self.takes(&key.modes)) {
            return Err(format!("{}; {} allows more or another thing", unfit(key), self.message()));
        }
        if !matches!(self.exportability, b'E' | b'N' | b'S') {
            return Err("the exportability is E, N or S".into());
        }
        key_version(&self.key_version)
    }

    /// The text of a header for a key of an algorithm. `encrypted` is the number of bytes of the encrypted
    /// key.
    pub fn text(&self, version: Version, algorithm: u8, encrypted: usize) -> Vec<u8> {
        let length = HEADER + 2 * (encrypted + version.block_bytes());
        let mut text = vec![version.letter()];
        text.extend(format!("{length:04}").into_bytes());
        text.extend(self.usage);
        text.extend([algorithm, self.mode_of_use]);
        text.extend(self.key_version);
        text.push(self.exportability);
        text.extend(b"0000");
        text
    }

    fn message(&self) -> String {
        format!("a key block of usage {} and mode of use {}", text(&self.usage), text(&[self.mode_of_use]))
    }
}

fn unfit(key: &NewKey) -> String {
    let list = |words: Vec<String>| if words.is_empty() { "none".into() } else { words.join(", ") };
    format!(
        "no key block fits the key '{}', whose usage is {} and whose modes are {}",
        key.name,
        list(key.usage.iter().map(Usage::to_string).collect()),
        list(key.modes.iter().map(Mode::to_string).collect())
    )
}
