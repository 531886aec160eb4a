//! Memory for a layer of lookups: kept from layer to layer, and wiped when the session ends.

use polyclave_field::{MacField, Word};
use zeroize::Zeroizing;

use crate::authenticated::{MAX_CELLS, MacKey, make_room};

/// Words that are worked on at once: they and what they are made of stay in the processor's nearest cache.
pub(super) const CHUNK: usize = 256;

/// Rows of cells are padded with zeros to whole bytes on the wire.
pub(in crate::spdz) struct Workspace<F: MacField> {
    /// Opened values and powers of them, which are public.
    pub(super) public: Public,
    pub(super) secret: Secret,
    pub(super) words: Words<F>,
}

/// By the names of the formulas.
#[derive(Default)]
pub(super) struct Public {
    pub(super) h: Vec<u8>,
    pub(super) h16: Vec<u8>,
    pub(super) g: Vec<u8>,
    pub(super) g4: Vec<u8>,
    pub(super) m: Vec<u8>,
    pub(super) m2: Vec<u8>,
    pub(super) v: Vec<u8>,
    pub(super) w: Vec<u8>,
    /// An image of w.
    pub(super) image: Vec<u8>,
}

/// Shares of cells.
#[derive(Default)]
pub(super) struct Secret {
    /// What is opened next.
    pub(super) masked: Zeroizing<Vec<u8>>,
    pub(super) left: Zeroizing<Vec<u8>>,
    pub(super) right: Zeroizing<Vec<u8>>,
}

/// Elements of the field of MACs, one chunk.
pub(super) struct Words<F: MacField> {
    /// The share of the MAC key, in every place.
    pub(super) alpha: Zeroizing<Vec<F::Word>>,
    pub(super) left: Zeroizing<Vec<F::Word>>,
    pub(super) right: Zeroizing<Vec<F::Word>>,
    pub(super) sum: Zeroizing<Vec<F::Word>>,
}

impl<F: MacField> Workspace<F> {
    pub(in crate::spdz) fn new(key: &MacKey<F>) -> Self {
        let zeros = || Zeroizing::new(vec![F::Word::ZERO; CHUNK]);
        let mut words = Words { alpha: zeros(), left: zeros(), right: zeros(), sum: zeros() };
        // A vector made of a word at once would branch on whether it is zero.
        words.alpha.fill(key.reveal_own_share());
        Workspace { public: Public::default(), secret: Secret::default(), words }
    }

    /// Gives every row of cells the length of a layer, with zeros behind it.
    pub(super) fn fit(&mut self, len: usize) {
        let padded = len.next_multiple_of(MAX_CELLS);
        let Public { h, h16, g, g4, m, m2, v, w, image } = &mut self.public;
        for row in [h, h16, g, g4, m, m2, v, w, image] {
            row.resize(padded, 0);
            row[len..].fill(0);
        }
        let Secret { masked, left, right } = &mut self.secret;
        for row in [masked, left, right] {
            make_room(row, padded);
            row[len..].fill(0);
        }
    }
}
