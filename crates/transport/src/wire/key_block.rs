//! Key blocks of TR-31 (ASC X9 TR 31-2018, ANSI X9.143-2021), versions B and D: their form, and what they say about a key.
//!
//! A block is printable ASCII: a header of 16 characters, optional blocks, the encrypted key in hexadecimal, and a MAC in hexadecimal over
//! all of the header and the key in the clear. The parser is strict. It takes one way of writing, and nothing that the MAC does not cover
//! is given a meaning. It knows no key: what it returns is authentic only after the nodes have checked the MAC.
//!
//! | block | a key of the nodes |
//! |---|---|
//! | `D0`, mode of use `B` or `N`; `E`; `D` | encrypt and decrypt; encrypt; decrypt: in modes that encrypt |
//! | `M6`, mode of use `C`, `N` or `G` | mac, mode cmac |
//! | `K0`, mode of use `B` or `N`; `E`; `D` | wrap and unwrap; wrap; unwrap: without a mode |
//! | `K1`, the same | the same, mode tr31 |
//! | `B3`, mode of use `X` or `N` | derive or kdf |
//!
//! A key that is imported may be for less than its block allows, and not for more. A block that is exported may allow less than the key is
//! for, and not more. Exportability `N` keeps an imported key from leaving the nodes again.

#[cfg(test)]
mod fuzz;

use serde::{Deserialize, Serialize};

use super::{Mode, NewKey, Usage};

/// The most characters of a block. Everything before the key is computed on block by block.
pub const MOST_BLOCK: usize = 1024;

/// Characters of the header without optional blocks.
const HEADER: usize = 16;
/// The optional block that fills the header up to whole blocks.
const PADDING: [u8; 2] = *b"PB";

/// How the key is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// Under a key of Triple DES, with keys derived from it by CMAC.
    B,
    /// Under a key of AES.
    D,
}

impl Version {
    /// Of blocks under a key of this cipher; `None` if there are none.
    pub fn under(cipher: &str) -> Option<Version> {
        match cipher {
            "3des-ede2" | "3des-ede3" => Some(Version::B),
            "aes-128" | "aes-192" | "aes-256" => Some(Version::D),
            _ => None,
        }
    }

    /// Bytes of a block of the cipher, and of the MAC.
    pub fn block_bytes(self) -> usize {
        match self {
            Version::B => 8,
            Version::D => 16,
        }
    }

    fn letter(self) -> u8 {
        match self {
            Version::B => b'B',
            Version::D => b'D',
        }
    }

    /// Refuses a key of an algorithm that a key of this version does not protect well enough.
    pub fn protects(self, algorithm: u8) -> Result<(), String> {
        if self == Version::B && algorithm == b'A' {
            return Err("a key of AES is not protected by one of Triple DES: take version D".into());
        }
        Ok(())
    }
}

/// What a header says about a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockHeader {
    /// What the key is for: `D0`, `M6`, `K0`, `K1` or `B3`.
    pub usage: [u8; 2],
    /// In which directions: `B`, `C`, `D`, `E`, `G`, `N` or `X`.
    pub mode_of_use: u8,
    /// `00` if it is not used.
    pub key_version: [u8; 2],
    /// `E`, `N` or `S`.
    pub exportability: u8,
}

/// A block, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBlock {
    /// How the key is protected.
    pub version: Version,
    /// `A` for AES, `T` for Triple DES, `D` for DES.
    pub algorithm: u8,
    /// What it says about the key.
    pub header: BlockHeader,
    /// All characters before the encrypted key: what the MAC covers in front of the key. Whole blocks.
    pub head: Vec<u8>,
    /// Whole blocks, at least one.
    pub encrypted: Vec<u8>,
    /// As long as a block.
    pub mac: Vec<u8>,
}

/// The letter for the algorithm of a cipher; `None` if a block cannot name it.
pub fn algorithm(cipher: &str) -> Option<u8> {
    match cipher {
        "aes-128" | "aes-192" | "aes-256" => Some(b'A'),
        "3des-ede2" | "3des-ede3" => Some(b'T'),
        "des" => Some(b'D'),
        _ => None,
    }
}

impl BlockHeader {
    /// For a key, as it is: with all that it is for. The error says why no header fits it.
    pub fn of(key: &NewKey) -> Result<BlockHeader, String> {
        use Usage::{Decrypt, Encrypt, Mac, Unwrap, Wrap};
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
            b"D0" => {
                !modes.is_empty()
                    && !modes.iter().any(|m| matches!(m, Mode::Cmac | Mode::Envelope | Mode::Tr31))
            }
            b"M6" => modes == [Mode::Cmac],
            b"K1" => modes == [Mode::Tr31],
            _ => modes.is_empty(),
        }
    }

    /// Refuses to make a key of a block that is not for all that the key would be for.
    pub fn may_become(&self, new: &NewKey) -> Result<(), String> {
        let allowed = self.allows();
        if allowed.is_empty() {
            return Err(format!(
                "the nodes have no use for a key of usage {} and mode of use {}; they take D0, M6, K0, K1 and B3",
                text(&self.usage),
                text(&[self.mode_of_use])
            ));
        }
        if let Some(other) = new.usage.iter().find(|usage| !allowed.contains(usage)) {
            return Err(format!("{} does not allow the usage {other}", self.told()));
        }
        if !self.takes(&new.modes) {
            return Err(format!("{} does not fit the modes of the new key", self.told()));
        }
        if self.exportability == b'N' && new.wrappable {
            return Err("the key block says that the key must not be exported: leave out wrappable".into());
        }
        Ok(())
    }

    /// Refuses a header that allows more than the key is for.
    pub fn may_leave_as(&self, key: &NewKey) -> Result<(), String> {
        let allowed = self.allows();
        let derives = |usage: &[Usage]| usage == [Usage::Derive] || usage == [Usage::Kdf];
        let is_for = match &self.usage {
            b"B3" => !allowed.is_empty() && derives(&key.usage),
            _ => !allowed.is_empty() && allowed.iter().all(|usage| key.usage.contains(usage)),
        };
        if !is_for || !self.takes(&key.modes) {
            return Err(format!("{}; {} allows more or another thing", unfit(key), self.told()));
        }
        if !matches!(self.exportability, b'E' | b'N' | b'S') {
            return Err("the exportability is E, N or S".into());
        }
        key_version(&self.key_version)
    }

    /// The text of a header for a key of an algorithm, whose encrypted form has so many bytes.
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

    fn told(&self) -> String {
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

impl KeyBlock {
    /// Parses a block. The error says what is wrong with it.
    pub fn parse(block: &[u8]) -> Result<KeyBlock, String> {
        if block.len() > MOST_BLOCK {
            return Err(format!("a key block has at most {MOST_BLOCK} characters, not {}", block.len()));
        }
        if let Some(at) = block.iter().position(|c| !(0x20..=0x7e).contains(c)) {
            return Err(format!("character {} of the key block is not printable ASCII", at + 1));
        }
        let Some((head, rest)) = block.split_at_checked(HEADER) else {
            return Err(format!("a key block begins with {HEADER} characters of header; this one is cut"));
        };
        let version = match head[0] {
            b'B' => Version::B,
            b'D' => Version::D,
            b'A' | b'C' => {
                let told = "the key block has a version (A or C) that is withdrawn; take B or D";
                return Err(told.into());
            }
            other => return Err(format!("the key block has the unknown version {}", text(&[other]))),
        };
        let length = number(&head[1..5]).ok_or("the length of the key block is not four digits")?;
        if length != block.len() {
            let is = block.len();
            return Err(format!("the key block says that it has {length} characters, and it has {is}"));
        }
        let header = BlockHeader {
            usage: [head[5], head[6]],
            mode_of_use: head[8],
            key_version: [head[9], head[10]],
            exportability: head[11],
        };
        if !header.usage.iter().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()) {
            return Err("the usage in the key block is not two capital letters or digits".into());
        }
        if !head[7].is_ascii_uppercase() || !header.mode_of_use.is_ascii_uppercase() {
            return Err("the algorithm and the mode of use in the key block are capital letters".into());
        }
        key_version(&header.key_version)?;
        if !matches!(header.exportability, b'E' | b'N' | b'S') {
            return Err("the exportability in the key block is not E, N or S".into());
        }
        let count = number(&head[12..14]).ok_or("the number of optional blocks is not two digits")?;
        if head[14..16] != *b"00" {
            return Err(
                "the last two characters of the header are not 00; this program knows no others".into()
            );
        }
        let optional = optional_blocks(rest, count)?;
        let unit = version.block_bytes();
        if !optional.is_multiple_of(unit) {
            return Err("the optional blocks do not fill whole blocks of the cipher".into());
        }
        let digits = &rest[optional..];
        let bytes = hexadecimal(digits)
            .ok_or("the encrypted key and the MAC are not written in pairs of capital hexadecimal digits")?;
        let encrypted = bytes.len().checked_sub(unit).filter(|e| *e > 0 && e.is_multiple_of(unit));
        let encrypted =
            encrypted.ok_or("the encrypted key is not one or more whole blocks, or the MAC is cut")?;
        Ok(KeyBlock {
            version,
            algorithm: head[7],
            header,
            head: block[..HEADER + optional].to_vec(),
            encrypted: bytes[..encrypted].to_vec(),
            mac: bytes[encrypted..].to_vec(),
        })
    }

    /// Refuses a block that does not hold a key of this cipher.
    pub fn holds(&self, cipher: &str, key_bytes: usize) -> Result<(), String> {
        if algorithm(cipher) != Some(self.algorithm) {
            let letter = text(&[self.algorithm]);
            return Err(format!(
                "the key block holds a key of the algorithm {letter}, and {cipher} is another"
            ));
        }
        self.version.protects(self.algorithm)?;
        if 2 + key_bytes > self.encrypted.len() {
            return Err(format!("the key block is too short for a key of {cipher}"));
        }
        Ok(())
    }
}

/// The characters of so many optional blocks. Each has an id, and a length in two hexadecimal digits that counts all of it; `00` and `02` are
/// followed by a length in four.
fn optional_blocks(rest: &[u8], count: usize) -> Result<usize, String> {
    let (mut at, mut ids) = (0, Vec::new());
    for number in 1..=count {
        let cut = || format!("optional block {number} is cut, or has a wrong length");
        let head = rest.get(at..at + 4).ok_or_else(cut)?;
        let id = [head[0], head[1]];
        if !id.iter().all(u8::is_ascii_alphanumeric) {
            return Err(format!("optional block {number} has no id of two letters or digits"));
        }
        if ids.contains(&id) {
            return Err(format!("two optional blocks have the id {}", text(&id)));
        }
        if ids.contains(&PADDING) {
            return Err("an optional block follows the padding".into());
        }
        ids.push(id);
        let value = |digits: &[u8]| {
            let bytes = hexadecimal(digits)?;
            Some(bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
        };
        let (least, length) = match value(&head[2..4]).ok_or_else(cut)? {
            0 => {
                let long = rest.get(at + 4..at + 10).ok_or_else(cut)?;
                if long[..2] != *b"02" {
                    return Err(format!(
                        "the length of optional block {number} is not written in four digits"
                    ));
                }
                (10, value(&long[2..]).ok_or_else(cut)?)
            }
            short => (4, short),
        };
        if length < least || length > rest.len() - at {
            return Err(cut());
        }
        at += length;
    }
    Ok(at)
}

fn key_version(version: &[u8; 2]) -> Result<(), String> {
    match version {
        [b'c', _] => Err("the key block holds a component of a key, not a key".into()),
        _ if version.iter().all(u8::is_ascii_alphanumeric) => Ok(()),
        _ => Err("the version number of the key is not two letters or digits".into()),
    }
}

/// Decimal digits as a number; there are four at most.
fn number(digits: &[u8]) -> Option<usize> {
    let value = |sum: usize, c: &u8| c.is_ascii_digit().then(|| 10 * sum + usize::from(c - b'0'));
    digits.iter().try_fold(0, value)
}

/// Bytes written in capital hexadecimal digits.
fn hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'A'..=b'F' => Some(c - b'A' + 10),
        _ => None,
    };
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

fn text(characters: &[u8]) -> String {
    String::from_utf8_lossy(characters).escape_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of version D, without optional blocks; the digits are no real key.
    fn block() -> Vec<u8> {
        ["D0144D0AB00E0000", &"0123456789ABCDEF".repeat(8)].concat().into_bytes()
    }

    #[test]
    fn blocks_are_parsed_into_their_parts() {
        let parsed = KeyBlock::parse(&block()).expect("a block");
        assert_eq!((parsed.version, parsed.algorithm), (Version::D, b'A'));
        let header =
            BlockHeader { usage: *b"D0", mode_of_use: b'B', key_version: *b"00", exportability: b'E' };
        assert_eq!(parsed.header, header);
        assert_eq!((parsed.encrypted.len(), parsed.mac.len()), (48, 16));
        assert_eq!(parsed.head, b"D0144D0AB00E0000");
        assert_eq!(header.text(Version::D, b'A', 48), parsed.head);
        let with = |optional: &str, count: &str| {
            let body = "0123456789ABCDEF".repeat(5);
            let length = 16 + optional.len() + body.len();
            format!("B{length:04}M6TG12N{count}00{optional}{body}").into_bytes()
        };
        let parsed = KeyBlock::parse(&with("KS0800FFTS00020010ABCDEFPB08BBBB", "03")).expect("a block");
        assert_eq!((parsed.version, parsed.head.len(), parsed.encrypted.len()), (Version::B, 48, 32));
        for (optional, count, why) in [
            ("KS0800F", "01", "pairs of capital"),
            ("KS0300FF", "01", "wrong length"),
            ("KSFF00FF", "01", "wrong length"),
            ("KS00030010ABCDEF", "01", "four digits"),
            ("KS0800FFKS0800FF", "02", "two optional blocks have the id KS"),
            ("PB0800FFKS0800FF", "02", "follows the padding"),
            ("K!0800FF", "01", "no id"),
            ("KS0600", "01", "whole blocks"),
            ("", "0x", "not two digits"),
            ("", "99", "wrong length"),
        ] {
            let told = KeyBlock::parse(&with(optional, count)).expect_err(optional);
            assert!(told.contains(why), "{optional}: {told}");
        }
    }

    #[test]
    fn headers_that_are_wrong_are_refused_with_what_is_wrong() {
        let good = block();
        for (at, with, why) in [
            (0, "A", "withdrawn"),
            (0, "C", "withdrawn"),
            (0, "E", "unknown version E"),
            (1, "0140", "says that it has 140 characters"),
            (1, "01x4", "not four digits"),
            (5, "d0", "two capital letters"),
            (7, "1", "capital letters"),
            (8, "b", "capital letters"),
            (9, "c1", "a component of a key"),
            (9, "0-", "two letters or digits"),
            (11, "X", "not E, N or S"),
            (14, "01", "not 00"),
            (20, "a", "capital hexadecimal"),
            (30, "\u{7f}", "not printable ASCII"),
            (30, "\n", "not printable ASCII"),
        ] {
            let mut bad = good.clone();
            bad[at..at + with.len()].copy_from_slice(with.as_bytes());
            let told = KeyBlock::parse(&bad).expect_err(with);
            assert!(told.contains(why), "{with}: {told}");
        }
        assert!((0..good.len()).all(|len| KeyBlock::parse(&good[..len]).is_err()));
        let mut umlaut = good.clone();
        umlaut[3] = 0xe4;
        assert!(KeyBlock::parse(&umlaut).expect_err("refused").contains("character 4"));
        let long = vec![b'D'; MOST_BLOCK + 1];
        assert!(KeyBlock::parse(&long).expect_err("refused").contains("at most 1024"));
        // A MAC, and no encrypted key; and half a block of it.
        for (digits, length) in [(2, "0048"), (3, "0064")] {
            let short = ["D", length, "D0AB00E0000", &"0123456789ABCDEF".repeat(digits)].concat();
            let told = KeyBlock::parse(short.as_bytes()).expect_err("refused");
            assert!(told.contains("one or more whole blocks"), "{told}");
        }
    }

    #[test]
    fn a_key_gets_no_use_that_its_block_does_not_allow_in_either_direction() {
        use Usage::{Decrypt, Derive, Encrypt, Kdf, Mac, Unwrap, Wrap};
        let key = |modes: &[Mode], usage: &[Usage]| NewKey {
            usage: usage.to_vec(),
            ..NewKey::for_modes("k", "aes-128", modes, 1)
        };
        let header = |usage: &[u8; 2], mode_of_use: u8| BlockHeader {
            usage: *usage,
            mode_of_use,
            key_version: *b"00",
            exportability: b'E',
        };
        for (modes, usage, (of, mode_of_use)) in [
            (&[Mode::Gcm][..], &[Encrypt, Decrypt][..], (b"D0", b'B')),
            (&[Mode::Ctr, Mode::Cbc], &[Decrypt], (b"D0", b'D')),
            (&[Mode::Cmac], &[Mac], (b"M6", b'C')),
            (&[], &[Wrap, Unwrap], (b"K0", b'B')),
            (&[Mode::Tr31], &[Wrap], (b"K1", b'E')),
            (&[], &[Derive], (b"B3", b'X')),
            (&[], &[Kdf], (b"B3", b'X')),
        ] {
            let (key, of) = (key(modes, usage), header(of, mode_of_use));
            assert_eq!(BlockHeader::of(&key).as_ref(), Ok(&of));
            assert_eq!(of.may_become(&key), Ok(()));
        }
        assert!(BlockHeader::of(&key(&[Mode::Gcm, Mode::Cmac], &[Encrypt, Decrypt, Mac])).is_err());
        assert!(BlockHeader::of(&key(&[], &[Wrap, Derive])).is_err());
        let decrypts = key(&[Mode::Gcm], &[Decrypt]);
        assert!(header(b"D0", b'B').may_leave_as(&decrypts).is_err(), "it would encrypt elsewhere");
        assert!(header(b"D0", b'E').may_leave_as(&key(&[Mode::Gcm], &[Encrypt, Decrypt])).is_ok());
        assert!(header(b"K0", b'B').may_leave_as(&key(&[Mode::Tr31], &[Wrap, Unwrap])).is_err());
        assert!(header(b"P0", b'B').may_leave_as(&decrypts).is_err());
        let both = key(&[Mode::Gcm], &[Encrypt, Decrypt]);
        assert!(header(b"D0", b'D').may_become(&both).expect_err("refused").contains("usage encrypt"));
        assert!(header(b"P0", b'B').may_become(&both).expect_err("refused").contains("no use"));
        assert!(header(b"D0", b'V').may_become(&both).is_err());
        let mac = key(&[Mode::Cmac], &[Mac]);
        assert!(header(b"M6", b'V').may_become(&mac).is_err(), "verifying alone is no usage here");
        assert!(header(b"D0", b'B').may_become(&mac).is_err());
        let never = BlockHeader { exportability: b'N', ..header(b"D0", b'B') };
        let leaves = NewKey { wrappable: true, ..both.clone() };
        assert!(never.may_become(&leaves).expect_err("refused").contains("must not be exported"));
        assert_eq!(never.may_become(&both), Ok(()));
    }

    #[test]
    fn a_block_holds_a_key_of_its_algorithm_only() {
        let block = KeyBlock::parse(&block()).expect("a block");
        assert_eq!(block.holds("aes-256", 32), Ok(()));
        assert!(block.holds("3des-ede3", 24).is_err() && block.holds("present-80", 10).is_err());
        let weak = KeyBlock { version: Version::B, ..block.clone() };
        assert!(weak.holds("aes-128", 16).expect_err("refused").contains("Triple DES"));
        let short = KeyBlock { encrypted: vec![0; 32], ..block };
        assert!(short.holds("aes-256", 32).expect_err("refused").contains("too short"));
    }
}
