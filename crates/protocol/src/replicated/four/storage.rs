//! What a node stores: the layouts of [`replicated`](super::super::storage), with three shares.

use zeroize::Zeroizing;

use super::{COMPONENTS, PARTIES, Shared, structure};
use crate::interface::elements::Elements;
use crate::replicated::Setup;
use crate::replicated::storage::restore_elements_with;
use crate::stored::Header;
use crate::{Party, Result};

const VERSION: u8 = 1;
const SETUP: u8 = b'F';
const VALUE: u8 = b'f';
const ELEMENTS: u8 = b'g';

fn header(kind: u8, me: Party) -> Header {
    [kind, VERSION, PARTIES as u8, 1, me.0]
}

pub(super) fn save_setup(setup: &Setup) -> Zeroizing<Vec<u8>> {
    setup.save_with(SETUP, header(SETUP, setup.keys.me()))
}

pub(super) fn restore_setup(me: Party, bytes: &[u8]) -> Result<Setup> {
    Setup::restore_with(bytes, (me, structure()), SETUP, header(SETUP, me))
}

pub(super) fn save(value: &Shared<COMPONENTS>, me: Party) -> Zeroizing<Vec<u8>> {
    value.save_with(header(VALUE, me))
}

pub(super) fn restore(bytes: &[u8], me: Party) -> Result<Shared<COMPONENTS>> {
    Shared::restore_with(bytes, header(VALUE, me))
}

pub(super) fn save_elements(elements: &Elements, me: Party) -> Zeroizing<Vec<u8>> {
    elements.save(&header(ELEMENTS, me))
}

pub(super) fn restore_elements(bytes: &[u8], me: Party) -> Result<Elements> {
    restore_elements_with::<COMPONENTS>(bytes, header(ELEMENTS, me))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unchecked::Unchecked;

    #[test]
    fn values_and_elements_come_back_whole_and_to_their_party_alone() {
        let rows = Zeroizing::new((0..3 * 3 * 4).map(|i| i % 16).collect());
        let value = Shared { bits: 4, count: 3, lanes: 4, rows, unchecked: Unchecked::default() };
        let bytes = save(&value, Party(3));
        let back = restore(&bytes, Party(3)).expect("it was saved here");
        assert_eq!((back.bits, back.count, back.lanes, &back.rows), (4, 3, 4, &value.rows));
        assert!(restore(&bytes, Party(1)).is_err());
        assert!((0..bytes.len()).all(|len| restore(&bytes[..len], Party(3)).is_err()));
        let row = |byte| Zeroizing::new(vec![byte; 48]);
        let elements =
            Elements { shares: row(3), macs: row(5), thirds: row(7), unchecked: Unchecked::default() };
        let bytes = save_elements(&elements, Party(0));
        let back = restore_elements(&bytes, Party(0)).expect("they were saved here");
        assert_eq!((&back.shares, &back.macs, &back.thirds), (&row(3), &row(5), &row(7)));
        assert!(restore_elements(&bytes, Party(2)).is_err());
        assert!((0..bytes.len()).all(|len| restore_elements(&bytes[..len], Party(0)).is_err()));
    }
}
