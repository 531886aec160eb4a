//! TTLV, the encoding of KMIP: items of a tag (3 bytes), a type (1 byte), a length (4 bytes) and a value,
//! which is padded to a multiple of 8 bytes (KMIP 2.1, section 10.1).
//!
//! What is read borrows from the message. Its length bounds how much memory that takes: an item has at least
//! 8 bytes.

use zeroize::Zeroizing;

/// How deep structures may be in each other. Requests that are served have a depth of 7.
const MOST_DEEP: usize = 12;
/// The most items of a message.
const MOST_ITEMS: usize = 2048;
/// The type of structures.
pub(super) const STRUCTURE: u8 = 1;
/// Bytes of tag, type and length.
pub(super) const HEAD: usize = 8;

/// An item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item<'m> {
    pub(super) tag: u32,
    pub(super) value: Value<'m>,
}

/// A value. Types that no request of this gateway has are read as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value<'m> {
    Structure(Vec<Item<'m>>),
    Integer(i32),
    Enumeration(u32),
    Boolean(bool),
    Text(&'m str),
    Bytes(&'m [u8]),
    DateTime(i64),
    /// A long integer, a big integer, an interval, or a time in microseconds.
    Other(u8, &'m [u8]),
}

/// The tag, the type and the length of an item's value.
pub(super) fn head(bytes: [u8; HEAD]) -> (u32, u8, usize) {
    let [a, b, c, kind, length @ ..] = bytes;
    (u32::from_be_bytes([0, a, b, c]), kind, u32::from_be_bytes(length) as usize)
}

/// Reads one item that is the whole of a message. An error says what is wrong, and nothing of a value.
pub(super) fn read(message: &[u8]) -> Result<Item<'_>, &'static str> {
    let mut items = 0;
    let (item, rest) = read_item(message, MOST_DEEP, &mut items)?;
    if rest.is_empty() { Ok(item) } else { Err("bytes follow the end of the message") }
}

fn read_item<'m>(
    bytes: &'m [u8],
    deeper: usize,
    items: &mut usize,
) -> Result<(Item<'m>, &'m [u8]), &'static str> {
    *items += 1;
    if *items > MOST_ITEMS {
        return Err("the message has too many items");
    }
    let (first, rest) = bytes.split_first_chunk::<HEAD>().ok_or("an item is cut off")?;
    let (tag, kind, length) = head(*first);
    let (value, rest) = rest.split_at_checked(length).ok_or("an item is longer than what it is in")?;
    let padding = length.next_multiple_of(8) - length;
    let (padding, rest) = rest.split_at_checked(padding).ok_or("the padding of an item is cut off")?;
    if padding.iter().any(|byte| *byte != 0) {
        return Err("the padding of an item is not zero");
    }
    let value = match kind {
        STRUCTURE => {
            let deeper = deeper.checked_sub(1).ok_or("structures are too deep in each other")?;
            Value::Structure(read_items(value, deeper, items)?)
        }
        2 => Value::Integer(i32::from_be_bytes(fixed(value)?)),
        5 => Value::Enumeration(u32::from_be_bytes(fixed(value)?)),
        6 => match u64::from_be_bytes(fixed(value)?) {
            0 => Value::Boolean(false),
            1 => Value::Boolean(true),
            _ => return Err("a boolean is neither 0 nor 1"),
        },
        7 => Value::Text(std::str::from_utf8(value).map_err(|_| "a text is no UTF-8")?),
        8 => Value::Bytes(value),
        9 => Value::DateTime(i64::from_be_bytes(fixed(value)?)),
        3 | 11 => Value::Other(kind, fixed::<8>(value).map(|_| value)?),
        10 => Value::Other(kind, fixed::<4>(value).map(|_| value)?),
        4 if length % 8 == 0 => Value::Other(kind, value),
        _ => return Err("an item has a type that does not exist, or a wrong length"),
    };
    Ok((Item { tag, value }, rest))
}

fn read_items<'m>(
    mut bytes: &'m [u8],
    deeper: usize,
    items: &mut usize,
) -> Result<Vec<Item<'m>>, &'static str> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (item, rest) = read_item(bytes, deeper, items)?;
        all.push(item);
        bytes = rest;
    }
    Ok(all)
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], &'static str> {
    value.try_into().map_err(|_| "a value does not have the length of its type")
}

/// Writes items. What was written is wiped in the end: it may be a plaintext.
pub(super) struct Writer(Zeroizing<Vec<u8>>);

impl Writer {
    /// One for so many bytes. With more, its memory is moved, and what was there is not wiped.
    pub(super) fn with_capacity(bytes: usize) -> Writer {
        Writer(Zeroizing::new(Vec::with_capacity(bytes)))
    }

    pub(super) fn into_bytes(self) -> Zeroizing<Vec<u8>> {
        self.0
    }

    /// Writes a structure whose items were written already.
    pub(super) fn written(&mut self, tag: u32, items: &Writer) {
        self.value(tag, STRUCTURE, &items.0);
    }

    /// How many bytes were written.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes an item, and what is in it.
    pub(super) fn item(&mut self, item: &Item<'_>) {
        match &item.value {
            Value::Structure(items) => {
                self.structure(item.tag, |inner| items.iter().for_each(|one| inner.item(one)));
            }
            Value::Integer(value) => self.value(item.tag, 2, &value.to_be_bytes()),
            Value::Enumeration(value) => self.value(item.tag, 5, &value.to_be_bytes()),
            Value::Boolean(value) => self.value(item.tag, 6, &u64::from(*value).to_be_bytes()),
            Value::Text(text) => self.value(item.tag, 7, text.as_bytes()),
            Value::Bytes(bytes) => self.value(item.tag, 8, bytes),
            Value::DateTime(value) => self.value(item.tag, 9, &value.to_be_bytes()),
            Value::Other(kind, bytes) => self.value(item.tag, *kind, bytes),
        }
    }

    /// Writes a structure. Its length is known when its items are written.
    pub(super) fn structure(&mut self, tag: u32, items: impl FnOnce(&mut Writer)) {
        self.head(tag, STRUCTURE, 0);
        let begin = self.0.len();
        items(self);
        let length = (self.0.len() - begin) as u32;
        self.0[begin - 4..begin].copy_from_slice(&length.to_be_bytes());
    }

    fn value(&mut self, tag: u32, kind: u8, value: &[u8]) {
        self.head(tag, kind, value.len() as u32);
        self.0.extend_from_slice(value);
        let padded = self.0.len().next_multiple_of(8);
        self.0.resize(padded, 0);
    }

    fn head(&mut self, tag: u32, kind: u8, length: u32) {
        self.0.extend_from_slice(&tag.to_be_bytes()[1..]);
        self.0.push(kind);
        self.0.extend_from_slice(&length.to_be_bytes());
    }
}

/// Writes an item.
pub(super) fn put(writer: &mut Writer, tag: u32, value: Value<'_>) {
    writer.item(&Item { tag, value });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the specification (KMIP 2.1, section 10.1.2).
    #[test]
    fn the_examples_of_the_specification_are_read_and_written() {
        let within = vec![
            Item { tag: 0x42_0004, value: Value::Enumeration(254) },
            Item { tag: 0x42_0005, value: Value::Integer(255) },
        ];
        let cases = [
            ("42002002000000040000000800000000", Value::Integer(8)),
            (
                "4200200300000008 01B69B4BA5749200",
                Value::Other(3, &[1, 0xb6, 0x9b, 0x4b, 0xa5, 0x74, 0x92, 0]),
            ),
            ("4200200500000004000000FF00000000", Value::Enumeration(255)),
            ("42002006000000080000000000000001", Value::Boolean(true)),
            ("420020070000000B48656C6C6F20576F726C640000000000", Value::Text("Hello World")),
            ("42002008000000030102030000000000", Value::Bytes(&[1, 2, 3])),
            ("42002009000000080000000047DA67F8", Value::DateTime(0x47DA_67F8)),
            ("4200200A00000004000D2F0000000000", Value::Other(10, &[0, 0x0d, 0x2f, 0])),
            (
                "42002001000000204200040500000004000000FE000000004200050200000004000000FF00000000",
                Value::Structure(within),
            ),
        ];
        for (text, value) in cases {
            let bytes = hex::decode(text.replace(' ', "")).expect("hex");
            let item = Item { tag: 0x42_0020, value };
            assert_eq!(read(&bytes).as_ref(), Ok(&item));
            let mut writer = Writer::with_capacity(bytes.len());
            writer.item(&item);
            assert_eq!(*writer.into_bytes(), bytes);
        }
    }

    fn nested(depth: usize) -> Vec<u8> {
        let mut writer = Writer::with_capacity(8 * depth);
        fn within(writer: &mut Writer, depth: usize) {
            if depth > 0 {
                writer.structure(0x42_0020, |inner| within(inner, depth - 1));
            }
        }
        within(&mut writer, depth);
        writer.into_bytes().to_vec()
    }

    #[test]
    fn what_is_malformed_or_beyond_a_limit_is_refused() {
        assert!(read(&nested(MOST_DEEP)).is_ok());
        assert_eq!(read(&nested(MOST_DEEP + 1)), Err("structures are too deep in each other"));
        let many = |count: usize| {
            let mut writer = Writer::with_capacity(0);
            let item = Item { tag: 0x42_0020, value: Value::Bytes(b"") };
            writer.structure(0x42_0020, |inner| (1..count).for_each(|_| inner.item(&item)));
            writer.into_bytes()
        };
        assert!(read(&many(MOST_ITEMS)).is_ok());
        assert_eq!(read(&many(MOST_ITEMS + 1)), Err("the message has too many items"));
        let cases = [
            ("", "cut off"),
            ("420020010000", "cut off"),
            ("42002001FFFFFFFF", "longer"),
            ("4200200100000008 42002001FFFFFFF8", "longer"),
            ("4200200200000004 00000008", "padding"),
            ("4200200200000004 0000000800000001", "not zero"),
            ("4200200200000003 0000000000000000", "length of its type"),
            ("4200200600000008 0000000000000002", "boolean"),
            ("4200200700000001 FF00000000000000", "UTF-8"),
            ("4200200000000000", "type"),
            ("4200200C00000000", "type"),
            ("4200200100000000 00", "follow"),
        ];
        for (text, why) in cases {
            let bytes = hex::decode(text.replace(' ', "")).expect("hex");
            let refused = read(&bytes).expect_err(text);
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
