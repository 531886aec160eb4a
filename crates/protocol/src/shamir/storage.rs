//! What a node stores on its disk of Shamir sharing: its keys for pseudorandom sharing, and shares of values
//! with their views. Both name the structure and the party, so that another node's file is refused and not
//! used.
//!
//! A file is no more authentic than its disk. The reader checks as much as bytes allow: versions, lengths and
//! sets exactly. No matter what they claim, it allocates nothing beyond what is there, and never panics.
//!
//! | | in order; numbers little-endian |
//! |---|---|
//! | both | a byte each: kind, version, n, t, party |
//! | setup | for every set that the party is in, in increasing order: bit mask (2), key (32) |
//! | value | bits (1), cells (4), lanes (4), views (2); for every view: ins, outs, a column each; then shares, view by view |

use zeroize::Zeroizing;

use super::setup::{HeldKey, KEY_BYTES, Setup, Structure, contains, weight};
use crate::stored::{Header, Reader};
use crate::{Error, Party, Result};

pub(super) const PROTOCOL: &str = "shamir";
const VERSION: u8 = 1;

/// The header of everything that a party stores.
pub(super) fn header(kind: u8, structure: Structure, me: Party) -> Header {
    [kind, VERSION, structure.parties() as u8, structure.threshold() as u8, me.0]
}

impl Setup {
    pub(crate) fn save(&self, kind: u8) -> Zeroizing<Vec<u8>> {
        let header = header(kind, self.structure, self.me);
        // Allocated at its full size: growing would leave copies of keys behind.
        let len = header.len() + self.keys.len() * (size_of::<u16>() + KEY_BYTES);
        let mut bytes = Zeroizing::new(Vec::with_capacity(len));
        bytes.extend(header);
        for held in &self.keys {
            bytes.extend(held.set.to_le_bytes());
            bytes.extend_from_slice(&**held.key);
        }
        bytes
    }

    pub(crate) fn restore(kind: u8, structure: Structure, me: Party, bytes: &[u8]) -> Result<Setup> {
        if me.index() >= structure.parties() {
            return Err(Error::misuse(format!("{me} is none of {} parties", structure.parties())));
        }
        let mut reader = Reader::new(bytes, PROTOCOL, header(kind, structure, me))?;
        let mut keys = Vec::new();
        for set in structure.sets().filter(|set| contains(*set, me)) {
            if u16::from_le_bytes(reader.array()?) != set {
                return Err(reader.damaged("the sets of parties are not those of the structure"));
            }
            let mut key = Box::new(Zeroizing::new([0; KEY_BYTES]));
            key.copy_from_slice(reader.take(KEY_BYTES)?);
            keys.push(HeldKey { set, key, weight: weight(structure, set, me) });
        }
        reader.finish()?;
        Ok(Setup { structure, me, keys })
    }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::Matrix;
    use proptest::prelude::*;

    use super::super::Shared;
    use super::*;
    use crate::mesh::run_parties;

    fn structure() -> Structure {
        Structure::new(5, 2).expect("it is valid")
    }

    fn value() -> Shared {
        let rows = Zeroizing::new((0..2 * 3 * 4).collect());
        Shared { bits: 8, count: 3, lanes: 4, views: vec![Matrix::identity(8), Matrix::frobenius(1)], rows }
    }

    #[test]
    fn setups_come_back_and_only_to_their_party() {
        let outcomes = run_parties(5, |net| {
            let setup = Setup::agree(structure(), net)?;
            let bytes = setup.save(b'P');
            let back = Setup::restore(b'P', structure(), net.me(), &bytes)?;
            assert_eq!(back.save(b'P'), bytes);
            assert!(setup.keys.iter().zip(&back.keys).all(|(a, b)| a.weight == b.weight));
            let other = Party((net.me().0 + 1) % 5);
            assert!(Setup::restore(b'P', structure(), other, &bytes).is_err());
            assert!(Setup::restore(b'P', Structure::new(5, 1)?, net.me(), &bytes).is_err());
            for len in 0..bytes.len() {
                assert!(Setup::restore(b'P', structure(), net.me(), &bytes[..len]).is_err());
            }
            let mut longer = bytes.to_vec();
            longer.push(0);
            assert!(Setup::restore(b'P', structure(), net.me(), &longer).is_err());
            let mut other_set = bytes.to_vec();
            other_set[5] ^= 1;
            assert!(Setup::restore(b'P', structure(), net.me(), &other_set).is_err());
            Ok(())
        });
        assert!(outcomes.into_iter().all(|o| o.is_ok()));
    }

    #[test]
    fn values_come_back_with_their_views_and_only_whole() {
        let bytes = value().save(header(b'S', structure(), Party(3)));
        let back = Shared::restore(&bytes, PROTOCOL, header(b'S', structure(), Party(3)))
            .expect("it was saved here");
        assert_eq!((back.bits, back.count, back.lanes), (8, 3, 4));
        assert_eq!((&back.views, &back.rows), (&value().views, &value().rows));
        assert!(Shared::restore(&bytes, PROTOCOL, header(b'S', structure(), Party(2))).is_err());
        for len in 0..bytes.len() {
            assert!(Shared::restore(&bytes[..len], PROTOCOL, header(b'S', structure(), Party(3))).is_err());
        }
    }

    #[test]
    fn round_keys_take_a_byte_a_cell() {
        let rows = Zeroizing::new(vec![0; 176]);
        let keys = Shared { bits: 8, count: 176, lanes: 1, views: vec![Matrix::identity(8)], rows };
        assert_eq!(keys.save(header(b'S', structure(), Party(0))).len(), 176 + 26);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Setup::restore(b'P', structure(), Party(1), &bytes);
            let _ = Shared::restore(&bytes, PROTOCOL, header(b'S', structure(), Party(1)));
        }

        /// After a valid header every field is reached.
        #[test]
        fn no_changed_value_panics_or_claims_more_than_came(at in 5usize..60, byte: u8, cut in 0usize..4) {
            let mut bytes = value().save(header(b'S', structure(), Party(1))).to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(bytes.len() - cut);
            if let Ok(value) = Shared::restore(&bytes, PROTOCOL, header(b'S', structure(), Party(1))) {
                prop_assert_eq!(value.rows.len(), value.views.len() * value.count * value.lanes);
                prop_assert!(value.rows.len() < bytes.len());
            }
        }
    }
}
