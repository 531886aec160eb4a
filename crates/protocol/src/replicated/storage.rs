//! What a node stores on its disk of replicated sharing: its keys, and its two shares of values and of
//! elements. All name the model and the party, so that another node's file, or one of the other protocol, is
//! refused and not used.
//!
//! A failed check is not stored here: the owner of a setup remembers it (`node/src/material/quarantine.rs`).
//!
//! A file is no more authentic than its disk. The reader checks as much as bytes allow. No matter what they
//! claim, it allocates nothing beyond what is there, and never panics. A changed share is found by the active
//! model where the value is used, since another node has it, too.
//!
//! | | in order; numbers little-endian |
//! |---|---|
//! | all | a byte each: kind, version, 3, 1, party |
//! | setup | the common key (32); what Shamir sharing stores of the keys of pairs |
//! | value | as [`shape_bytes`] says, with the value as its only view; then both shares |
//! | elements | count (8); then both shares |

use zeroize::Zeroizing;

use super::PARTIES;
use super::config::{KEY_BYTES, Named, Setup, structure};
use super::shared::Shared;
use crate::interface::elements::Elements;
use crate::retirement::Retirement;
use crate::shamir::{self, Structure};
use crate::stored::{Header, Reader, Shape, shape_bytes};
use crate::unchecked::Unchecked;
use crate::{Error, Party, Result};
use polyclave_cipher::Matrix;

const PROTOCOL: &str = "replicated sharing";
const VERSION: u8 = 1;

fn header(kind: u8, me: Party) -> Header {
    [kind, VERSION, PARTIES as u8, 1, me.0]
}

impl Setup {
    pub(super) fn save<A: Named>(&self) -> Zeroizing<Vec<u8>> {
        self.save_with(A::SETUP, header(A::SETUP, self.keys.me()))
    }

    pub(super) fn restore<A: Named>(me: Party, bytes: &[u8]) -> Result<Setup> {
        Setup::restore_with(bytes, (me, structure()), A::SETUP, header(A::SETUP, me))
    }

    /// The bytes behind this header. `kind` is that of the keys.
    pub(super) fn save_with(&self, kind: u8, header: Header) -> Zeroizing<Vec<u8>> {
        let keys = self.keys.save(kind);
        // Allocated at its full size: growing would leave copies of keys behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(header.len() + KEY_BYTES + keys.len()));
        bytes.extend(header);
        bytes.extend_from_slice(&**self.common);
        bytes.extend_from_slice(&keys);
        bytes
    }

    /// Reads a stored setup behind this header.
    pub(super) fn restore_with(
        bytes: &[u8],
        (me, structure): (Party, Structure),
        kind: u8,
        header: Header,
    ) -> Result<Setup> {
        let parties = structure.parties();
        if me.index() >= parties {
            return Err(Error::misuse(format!("{me} is none of {parties} parties")));
        }
        let mut reader = Reader::new(bytes, PROTOCOL, header)?;
        let mut common = Box::new(Zeroizing::new([0; KEY_BYTES]));
        common.copy_from_slice(reader.take(KEY_BYTES)?);
        let keys = shamir::Setup::restore(kind, structure, me, reader.rest())?;
        Ok(Setup { keys, common, retirement: Retirement::default() })
    }
}

impl Shared {
    pub(super) fn save<A: Named>(&self, me: Party) -> Zeroizing<Vec<u8>> {
        self.save_with(header(A::VALUE, me))
    }

    pub(super) fn restore<A: Named>(bytes: &[u8], me: Party) -> Result<Shared> {
        Shared::restore_with(bytes, header(A::VALUE, me))
    }
}

impl<const C: usize> Shared<C> {
    /// The bytes of a value behind this header.
    pub(super) fn save_with(&self, header: Header) -> Zeroizing<Vec<u8>> {
        let shape = shape_bytes(self.bits, self.count, self.lanes, &[Matrix::identity(self.bits)]);
        let mut bytes = Zeroizing::new(Vec::with_capacity(header.len() + shape.len() + self.rows.len()));
        bytes.extend(header);
        bytes.extend(shape);
        bytes.extend_from_slice(&self.rows);
        bytes
    }

    /// Reads a stored value behind this header.
    pub(super) fn restore_with(bytes: &[u8], header: Header) -> Result<Shared<C>> {
        let mut reader = Reader::new(bytes, PROTOCOL, header)?;
        let Shape { bits, count, lanes, views, shares } = reader.shape()?;
        if views.len() != 1 {
            return Err(reader.damaged("they have views, which are not stored"));
        }
        let len = shares.checked_mul(C).ok_or_else(|| reader.damaged("the number of shares overflows"))?;
        let rows = reader.take(len)?;
        if rows.iter().any(|share| u16::from(*share) >> bits != 0) {
            return Err(reader.damaged("a share is wider than its cell"));
        }
        let rows = Zeroizing::new(rows.to_vec());
        reader.finish()?;
        Ok(Shared { bits, count, lanes, rows, unchecked: Unchecked::default() })
    }
}

/// The bytes of elements.
pub(super) fn save_elements<A: Named>(elements: &Elements, me: Party) -> Zeroizing<Vec<u8>> {
    elements.save(&header(A::ELEMENTS, me))
}

/// Reads stored elements.
pub(super) fn restore_elements<A: Named>(bytes: &[u8], me: Party) -> Result<Elements> {
    restore_elements_with::<2>(bytes, header(A::ELEMENTS, me))
}

/// Reads stored elements behind this header, of which a party has `C` shares each.
pub(super) fn restore_elements_with<const C: usize>(bytes: &[u8], header: Header) -> Result<Elements> {
    Elements::restore(Reader::new(bytes, PROTOCOL, header)?, C)
}

#[cfg(test)]
mod tests {
    use super::super::client::of_shares;
    use super::super::{Active, Passive};
    use super::*;

    fn value() -> Shared {
        let rows = Zeroizing::new((0..2 * 3 * 4).map(|i| i % 16).collect());
        Shared { bits: 4, count: 3, lanes: 4, rows, unchecked: Unchecked::default() }
    }

    fn elements() -> Elements {
        let row = |byte| Zeroizing::new(vec![byte; 48]);
        of_shares([row(3), row(5)], Unchecked::default())
    }

    #[test]
    fn values_and_elements_come_back_whole_and_to_their_party_alone() {
        let bytes = value().save::<Passive>(Party(2));
        let back = Shared::restore::<Passive>(&bytes, Party(2)).expect("it was saved here");
        assert_eq!((back.bits, back.count, back.lanes, &back.rows), (4, 3, 4, &value().rows));
        assert!(Shared::restore::<Passive>(&bytes, Party(1)).is_err());
        assert!(Shared::restore::<Active>(&bytes, Party(2)).is_err());
        let of_elements = save_elements::<Passive>(&elements(), Party(0));
        let back = restore_elements::<Passive>(&of_elements, Party(0)).expect("they were saved here");
        assert_eq!((&back.shares, &back.macs), (&elements().shares, &elements().macs));
        assert!(restore_elements::<Passive>(&of_elements, Party(2)).is_err());
        assert!((0..bytes.len()).all(|len| Shared::restore::<Passive>(&bytes[..len], Party(2)).is_err()));
        assert!(Shared::restore::<Passive>(&[&bytes[..], &[0]].concat(), Party(2)).is_err());
        let mut wide = bytes.to_vec();
        *wide.last_mut().expect("there are shares") = 16;
        assert!(Shared::restore::<Passive>(&wide, Party(2)).is_err());
    }

    mod fuzz {
        use polyclave_harness::{fuzz, within_memory};

        use super::*;

        #[test]
        fn no_stored_bytes_panic_or_claim_more_than_came_and_what_is_read_comes_back() {
            let me = Party(1);
            let valid =
                vec![value().save::<Active>(me).to_vec(), save_elements::<Active>(&elements(), me).to_vec()];
            fuzz!("stored-replicated", &[], valid, |bytes: &[u8]| {
                within_memory(4096 + 16 * bytes.len(), || {
                    if let Ok(value) = Shared::restore::<Active>(bytes, me) {
                        assert_eq!(value.rows.len(), 2 * value.count * value.lanes);
                        assert_eq!(&**value.save::<Active>(me), bytes);
                    }
                    if let Ok(elements) = restore_elements::<Active>(bytes, me) {
                        assert_eq!(&**save_elements::<Active>(&elements, me), bytes);
                    }
                });
            });
        }
    }
}
