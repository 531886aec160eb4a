//! What a node stores on its disk of a shared value: its shares, their tags, and the keys of the peer's tags.
//! The file names the party, so that the other party's file is refused. A value under another key fails the
//! next check, as does a changed share, tag or key. The reader checks as much as bytes allow: it allocates
//! nothing beyond what is there, and never panics.
//!
//! A value is stored after a check has covered everything that it depends on. A value that is read depends on
//! nothing.
//!
//! In order: kind, version, 64, 2, party, one byte each; the shape ([`shape_bytes`]); shares, one byte each;
//! tags, and keys, of the width that [`tag_bytes`] gives.

use polyclave_cipher::Matrix;
use zeroize::Zeroizing;

use super::macs::{tag_bytes, write_tag};
use super::{Masks, Shared};
use crate::Result;
use crate::stored::{Header, Reader, Shape, shape_bytes};
use crate::tinyot::Key;
use crate::unchecked::Unchecked;

const PROTOCOL: &str = "scrambled tables";
const VALUE: u8 = b'T';
const VERSION: u8 = 1;

fn header(key: &Key) -> Header {
    [VALUE, VERSION, 64, 2, key.me().0]
}

impl Shared {
    pub(super) fn save(&self, key: &Key) -> Zeroizing<Vec<u8>> {
        let (header, shape) =
            (header(key), shape_bytes(self.bits, self.count, self.lanes, &[Matrix::identity(self.bits)]));
        let Masks { values, tags, keys } = &self.shares;
        let size = tag_bytes(self.bits);
        // Allocated at its full size: growing would leave copies of shares behind.
        let len = header.len() + shape.len() + values.len() + (tags.len() + keys.len()) * size;
        let mut bytes = Zeroizing::new(Vec::with_capacity(len));
        bytes.extend(header);
        bytes.extend(shape);
        bytes.extend_from_slice(values);
        let at = bytes.len();
        bytes.resize(len, 0);
        let stored = bytes[at..].chunks_exact_mut(size).zip(tags.iter().chain(keys));
        stored.for_each(|(to, tag)| write_tag(*tag, to));
        bytes
    }

    pub(super) fn restore(bytes: &[u8], key: &Key) -> Result<Self> {
        let mut reader = Reader::new(bytes, PROTOCOL, header(key))?;
        let Shape { bits, count, lanes, views, shares } = reader.shape()?;
        if views.len() != 1 {
            return Err(reader.damaged("they hold images of the value"));
        }
        let values = reader.take(shares)?;
        if values.iter().any(|cell| u16::from(*cell) >> bits != 0) {
            return Err(reader.damaged("a share is wider than a cell"));
        }
        let size = tag_bytes(bits);
        let len = shares.checked_mul(size).ok_or_else(|| reader.damaged("they end too early"))?;
        let [tags, keys] = [reader.take(len)?, reader.take(len)?];
        reader.finish()?;
        let read = |stored: &[u8]| stored.chunks_exact(size).map(read_tag).collect();
        let shares = Masks { values: values.to_vec(), tags: read(tags), keys: read(keys) };
        Ok(Shared { bits, count, lanes, shares, unchecked: Unchecked::default() })
    }
}

fn read_tag(bytes: &[u8]) -> u128 {
    let mut tag = Zeroizing::new([0; size_of::<u128>()]);
    tag[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(*tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Party;

    fn key(party: u8) -> Key {
        Key::of_share(Party(party), 2, 0x1234_5678_9abc_def1)
    }

    fn value(bits: u8) -> Shared {
        let tag = |i: u64| u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << (bits - 1);
        let shares = Masks {
            values: (0..6).map(|i| (i * 37) & (0xff >> (8 - bits))).collect(),
            tags: (1..7).map(tag).collect(),
            keys: (7..13).map(tag).collect(),
        };
        Shared { bits, count: 3, lanes: 2, shares, unchecked: Unchecked::default() }
    }

    #[test]
    fn values_come_back_with_their_tags_and_only_whole() {
        for bits in [1, 4, 8] {
            let bytes = value(bits).save(&key(0));
            let back = Shared::restore(&bytes, &key(0)).expect("it was saved here");
            assert_eq!((back.bits, back.count, back.lanes), (bits, 3, 2));
            assert_eq!(back.shares.values, value(bits).shares.values);
            assert_eq!(back.shares.tags, value(bits).shares.tags);
            assert_eq!(back.shares.keys, value(bits).shares.keys);
            assert!(Shared::restore(&bytes, &key(1)).is_err());
            assert!((0..bytes.len()).all(|len| Shared::restore(&bytes[..len], &key(0)).is_err()));
            assert!(Shared::restore(&[&bytes[..], &[0]].concat(), &key(0)).is_err());
        }
    }

    mod fuzz {
        use polyclave_harness::{fuzz, within_memory};

        use super::*;

        #[test]
        fn no_stored_bytes_panic_or_claim_more_than_came_and_what_is_read_comes_back() {
            let key = key(1);
            let valid = [1, 4, 8].map(|bits| value(bits).save(&key).to_vec()).to_vec();
            fuzz!("stored-tinytable", &[], valid, |bytes: &[u8]| {
                within_memory(4096 + 64 * bytes.len(), || {
                    if let Ok(value) = Shared::restore(bytes, &key) {
                        assert_eq!(value.shares.values.len(), value.count * value.lanes);
                        assert_eq!(value.shares.tags.len(), value.shares.values.len());
                        assert_eq!(value.shares.keys.len(), value.shares.values.len());
                        assert_eq!(&**value.save(&key), bytes);
                    }
                });
            });
        }
    }
}
