//! What a node stores on its disk of authenticated sharing: shares of values with their views and MACs, and
//! of elements of GF(2^128). Both name the field, the number of parties and the party, so that another node's
//! file is refused and not used. Values under another MAC key fail the next check.
//!
//! A file is no more authentic than its disk. A changed share of a value makes the check fail, too. The
//! reader checks as much as bytes allow. No matter what they claim, it allocates nothing beyond what is
//! there, and never panics.
//!
//! A value is stored after a check has covered everything that it depends on. A value that is read depends on
//! nothing.
//!
//! | | in order; numbers little-endian |
//! |---|---|
//! | both | a byte each: kind, version, k of GF(2^k), n, party |
//! | value | as [`shape_bytes`] says; then shares, view by view, and MACs |
//! | elements | count (8); then shares, and MACs |

use polyclave_field::{MacField, Word};
use zeroize::Zeroizing;

use super::proofs::Proofs;
use super::shared::Shared;
use crate::Result;
use crate::authenticated::MacKey;
use crate::interface::elements::Elements;
use crate::stored::{Header, Reader, Shape, shape_bytes};
use crate::unchecked::Unchecked;

const PROTOCOL: &str = "authenticated sharing";
const VERSION: u8 = 1;
const VALUE: u8 = b'A';
const ELEMENTS: u8 = b'E';

fn header<F: MacField>(kind: u8, key: &MacKey<F>) -> Header {
    [kind, VERSION, F::BITS as u8, key.parties() as u8, key.me().0]
}

impl<F: MacField> Shared<F> {
    pub(super) fn save(&self, key: &MacKey<F>) -> Zeroizing<Vec<u8>> {
        let header = header(VALUE, key);
        let shape = shape_bytes(self.bits, self.count, self.lanes, &self.views);
        // Allocated at its full size: growing would leave copies of shares behind.
        let len = header.len() + shape.len() + self.cells.len() + self.macs.len() * F::BYTES;
        let mut bytes = Zeroizing::new(Vec::with_capacity(len));
        bytes.extend(header);
        bytes.extend(shape);
        bytes.extend_from_slice(&self.cells);
        let macs = bytes.len();
        bytes.resize(len, 0);
        F::write_row(&self.macs, &mut bytes[macs..]);
        bytes
    }

    pub(super) fn restore(bytes: &[u8], key: &MacKey<F>) -> Result<Self> {
        let mut reader = Reader::new(bytes, PROTOCOL, header(VALUE, key))?;
        let Shape { bits, count, lanes, views, shares } = reader.shape()?;
        if bits > F::CELL_BITS {
            return Err(reader.damaged("their cells are wider than those of the field"));
        }
        let cells = Zeroizing::new(reader.take(shares)?.to_vec());
        if F::CELL_BITS < 8 && cells.iter().any(|cell| cell >> F::CELL_BITS != 0) {
            return Err(reader.damaged("a share is wider than a cell of the field"));
        }
        let len = shares.checked_mul(F::BYTES).ok_or_else(|| reader.damaged("they end too early"))?;
        let stored = reader.take(len)?;
        reader.finish()?;
        let mut macs = Zeroizing::new(vec![F::Word::ZERO; shares]);
        F::read_row(stored, &mut macs);
        let (unchecked, proofs) = (Unchecked::default(), Proofs::default());
        Ok(Shared { bits, count, lanes, views, cells, macs, unchecked, proofs, known_bits: None })
    }
}

/// The bytes of elements with their MACs.
pub(super) fn save_elements<F: MacField>(elements: &Elements, key: &MacKey<F>) -> Zeroizing<Vec<u8>> {
    elements.save(&header(ELEMENTS, key))
}

/// Reads stored elements.
pub(super) fn restore_elements<F: MacField>(bytes: &[u8], key: &MacKey<F>) -> Result<Elements> {
    Elements::restore(Reader::new(bytes, PROTOCOL, header(ELEMENTS, key))?, 2)
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{Cells, Matrix};
    use polyclave_field::Gf2_64;

    use super::super::elements::{add_public, of_coordinates};
    use super::*;
    use crate::Party;
    use crate::authenticated::Authenticated;

    fn key(me: u8) -> MacKey<Gf2_64> {
        MacKey::of_share(Party(me), 3, 0x1234_5678_9abc_def1)
    }

    fn value() -> Shared<Gf2_64> {
        let mut cells = Cells::zero(3, 8, 4);
        cells.rows_mut().iter_mut().enumerate().for_each(|(i, cell)| *cell = 17 * i as u8);
        Shared::public(&cells, &[Matrix::identity(8), Matrix::frobenius(1)], &key(0))
    }

    fn elements() -> Elements {
        let zero = Authenticated::zero(3);
        add_public(&of_coordinates(&zero, &zero), &[[7; 16], [0; 16], [0xee; 16]], &key(0))
    }

    #[test]
    fn values_come_back_with_their_views_and_macs_and_only_whole() {
        let bytes = value().save(&key(0));
        let back = Shared::restore(&bytes, &key(0)).expect("it was saved here");
        assert_eq!((back.bits, back.count, back.lanes), (8, 3, 4));
        assert_eq!((&back.views, &back.cells), (&value().views, &value().cells));
        assert_eq!(back.macs, value().macs);
        assert!(Shared::restore(&bytes, &key(1)).is_err());
        assert!((0..bytes.len()).all(|len| Shared::restore(&bytes[..len], &key(0)).is_err()));
        assert!(Shared::restore(&[&bytes[..], &[0]].concat(), &key(0)).is_err());
    }

    #[test]
    fn elements_come_back_with_their_macs_and_only_whole() {
        let bytes = save_elements(&elements(), &key(0));
        let back = restore_elements(&bytes, &key(0)).expect("they were saved here");
        assert_eq!((&back.shares, &back.macs), (&elements().shares, &elements().macs));
        assert!(restore_elements(&bytes, &key(2)).is_err());
        assert!(restore_elements(&value().save(&key(0)), &key(0)).is_err());
        assert!((0..bytes.len()).all(|len| restore_elements(&bytes[..len], &key(0)).is_err()));
        assert!(restore_elements(&[&bytes[..], &[0]].concat(), &key(0)).is_err());
    }

    mod fuzz {
        use polyclave_harness::{fuzz, within_memory};

        use super::*;

        #[test]
        fn no_stored_bytes_panic_or_claim_more_than_came_and_what_is_read_comes_back() {
            let key = key(1);
            let valid = vec![value().save(&key).to_vec(), save_elements(&elements(), &key).to_vec()];
            fuzz!("stored-spdz", &[], valid, |bytes: &[u8]| {
                within_memory(4096 + 16 * bytes.len(), || {
                    if let Ok(value) = Shared::restore(bytes, &key) {
                        assert_eq!(value.cells.len(), value.views.len() * value.count * value.lanes);
                        assert_eq!(&**value.save(&key), bytes);
                    }
                    if let Ok(elements) = restore_elements(bytes, &key) {
                        assert_eq!(&**save_elements(&elements, &key), bytes);
                    }
                });
            });
        }
    }
}
