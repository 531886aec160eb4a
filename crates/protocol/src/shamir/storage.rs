//! What a node keeps on its disk of Shamir sharing: its keys for pseudorandom sharing, and shares of values with their
//! views. Both name the structure and the party they belong to, so that another node's file is refused and not computed with.
//!
//! A file is no more authentic than the disk it was on. What is read is checked as far as bytes can be: versions, lengths and
//! sets exactly. Whatever the bytes claim, nothing is allocated beyond what came, and nothing panics.
//!
//! | | in order; numbers little-endian |
//! |---|---|
//! | both | a byte each: kind, version, n, t, party |
//! | setup | for every set that the party is in, in increasing order: bit mask (2), key (32) |
//! | value | bits (1), cells (4), lanes (4), views (2); for every view: ins, outs, a column each; then shares, view by view |

use zeroize::Zeroizing;

use super::Shared;
use super::setup::{HeldKey, KEY_BYTES, Setup, Structure, contains, weight};
use crate::stored::{Header, Reader, Shape, shape_bytes};
use crate::{Error, Party, Result};

const PROTOCOL: &str = "shamir";
const VERSION: u8 = 1;

fn header(kind: u8, structure: Structure, me: Party) -> Header {
    [kind, VERSION, structure.parties() as u8, structure.threshold() as u8, me.0]
}

impl Setup {
    pub(super) fn save(&self, kind: u8) -> Zeroizing<Vec<u8>> {
        let header = header(kind, self.structure, self.me);
        // Sized at once: growing would leave copies of keys behind.
        let len = header.len() + self.keys.len() * (size_of::<u16>() + KEY_BYTES);
        let mut bytes = Zeroizing::new(Vec::with_capacity(len));
        bytes.extend(header);
        for held in &self.keys {
            bytes.extend(held.set.to_le_bytes());
            bytes.extend_from_slice(&**held.key);
        }
        bytes
    }

    pub(super) fn restore(kind: u8, structure: Structure, me: Party, bytes: &[u8]) -> Result<Setup> {
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

impl Shared {
    pub(super) fn save(&self, kind: u8, structure: Structure, me: Party) -> Zeroizing<Vec<u8>> {
        let header = header(kind, structure, me);
        let shape = shape_bytes(self.bits, self.count, self.lanes, &self.views);
        let mut bytes = Zeroizing::new(Vec::with_capacity(header.len() + shape.len() + self.rows.len()));
        bytes.extend(header);
        bytes.extend(shape);
        bytes.extend_from_slice(&self.rows);
        bytes
    }

    pub(super) fn restore(kind: u8, structure: Structure, me: Party, bytes: &[u8]) -> Result<Shared> {
        let mut reader = Reader::new(bytes, PROTOCOL, header(kind, structure, me))?;
        let Shape { bits, count, lanes, views, shares } = reader.shape()?;
        let rows = Zeroizing::new(reader.take(shares)?.to_vec());
        reader.finish()?;
        Ok(Shared { bits, count, lanes, views, rows })
    }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::Matrix;

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
        let bytes = value().save(b'S', structure(), Party(3));
        let back = Shared::restore(b'S', structure(), Party(3), &bytes).expect("it was saved here");
        assert_eq!((back.bits, back.count, back.lanes), (8, 3, 4));
        assert_eq!((&back.views, &back.rows), (&value().views, &value().rows));
        assert!(Shared::restore(b'S', structure(), Party(2), &bytes).is_err());
        for len in 0..bytes.len() {
            assert!(Shared::restore(b'S', structure(), Party(3), &bytes[..len]).is_err());
        }
    }

    #[test]
    fn round_keys_take_a_byte_a_cell() {
        let rows = Zeroizing::new(vec![0; 176]);
        let keys = Shared { bits: 8, count: 176, lanes: 1, views: vec![Matrix::identity(8)], rows };
        assert_eq!(keys.save(b'S', structure(), Party(0)).len(), 176 + 26);
    }

    mod fuzz {
        use polyclave_harness::{fuzz, within_memory};

        use super::*;

        #[test]
        fn no_stored_bytes_panic_or_claim_more_than_came_and_what_is_read_comes_back() {
            let me = Party(1);
            let setups = run_parties(5, |net| Ok(Setup::agree(structure(), net)?.save(b'P').to_vec()));
            let valid = [setups[1].clone().expect("agreed"), value().save(b'S', structure(), me).to_vec()];
            fuzz!("stored-shamir", &[], valid.to_vec(), |bytes: &[u8]| {
                within_memory(4096 + 16 * bytes.len(), || {
                    if let Ok(setup) = Setup::restore(b'P', structure(), me, bytes) {
                        assert_eq!(&**setup.save(b'P'), bytes);
                    }
                    if let Ok(value) = Shared::restore(b'S', structure(), me, bytes) {
                        assert_eq!(value.rows.len(), value.views.len() * value.count * value.lanes);
                        assert_eq!(&**value.save(b'S', structure(), me), bytes);
                    }
                });
            });
        }
    }
}
