//! The text of a key block, read strictly.

use super::{BlockHeader, HEADER, KeyBlock, MAX_BLOCK, Version, algorithm};

/// The optional block that fills the header up to whole blocks.
const PADDING: [u8; 2] = *b"PB";

impl KeyBlock {
    /// Parses a block. The error says what is wrong with it.
    pub fn parse(block: &[u8]) -> Result<KeyBlock, String> {
        if block.len() > MAX_BLOCK {
            return Err(format!("a key block has at most {MAX_BLOCK} characters, not {}", block.len()));
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
                let message = "the key block has a version (A or C) that is withdrawn; take B or D";
                return Err(message.into());
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

/// The number of characters of `count` optional blocks. Each has an id, and a length in two hexadecimal
/// digits that counts all of it. `00` and `02` are followed by a length in four digits.
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

pub(super) fn key_version(version: &[u8; 2]) -> Result<(), String> {
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

pub(super) fn text(characters: &[u8]) -> String {
    String::from_utf8_lossy(characters).escape_default().to_string()
}
