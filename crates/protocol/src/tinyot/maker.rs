//! What both kinds of material are made with: transfers, offers, and what the checks use up.

use polyclave_field::{Gf2_64, MacField};
use zeroize::Zeroizing;

use super::abit::{AT_ONCE, Rows, Transfers};
use super::coset_check::{self, Products};
use super::groups::Layout;
use super::lists::{BitRows, Column, FieldBits, List};
use super::products::{Elements, Kind, Made, Offers};
use super::shared::{SharedList, SharedOffers, Tile};
use super::subfield::Subfield;
use super::word_products::WordOffers;
use super::{Key, between_two};
use crate::authenticated::{Authenticated, Product};
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::{Error, Result};

/// One party's end of one stream.
pub(super) struct Maker {
    pub(super) key: Key,
    pub(super) transfers: Transfers,
    pub(super) offers: Offers,
    shared_offers: SharedOffers,
    word_offers: Option<WordOffers>,
    pub(super) rows: BitRows,
    /// For zero tests.
    products: Vec<Product<Gf2_64>>,
}

/// Random products for zero tests that are made at once.
const PRODUCTS: usize = 8;
/// Bits of an element of the field of MACs.
const WORD: usize = Gf2_64::BITS as usize;

impl Maker {
    /// With a label that is used once.
    pub(super) fn new(label: &[u8], key: &Key, transfers: Transfers) -> Self {
        let me = key.me();
        let only_peer = me.peers(key.parties()).next().filter(|_| key.parties() == 2);
        Maker {
            key: key.clone(),
            offers: Offers::new(label, key, transfers.delta()),
            shared_offers: SharedOffers::new(label, key, transfers.delta()),
            word_offers: only_peer.map(|peer| WordOffers::new(label, [me, peer], transfers.delta())),
            transfers,
            rows: BitRows::new(),
            products: Vec::new(),
        }
    }

    /// Fills a list with products of a kind: of random x, and of y, which is random if it is not given.
    /// Provisional until it is checked. If `squares` is set, the list has MACs of the squares of x and, if y
    /// is random, of y.
    pub(super) fn fill(
        &mut self,
        list: &mut List,
        kind: &Kind,
        given: Option<Elements<'_>>,
        squares: bool,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<()> {
        let at_once = AT_ONCE / kind.x.bits();
        for start in (0..count).step_by(at_once) {
            let len = at_once.min(count - start);
            let random = if given.is_none() { Rows { rows: kind.y.bits(), len } } else { Rows::NONE };
            let [x, y] = self.transfers.make(Rows { rows: kind.x.bits(), len }, random, net)?;
            list.x.set_values(start, len, kind.x, (0, &x));
            let factor = match given {
                Some(given) => given.part(start, len),
                None => {
                    let of_y = FieldBits { field: kind.y, bits: &y, key: &self.key };
                    list.y.set(start, len, of_y, squares, &mut self.rows)?;
                    list.y.part(start, len)
                }
            };
            let kept = list.x.kept(start, len, kind.x, squares);
            let made = Made { z: list.z.part_mut(start, len), kept };
            self.offers.multiply(kind, &x, factor, made, net)?;
        }
        Ok(())
    }

    /// Fills shared list b with products of random x and random y. Provisional until it is checked. With
    /// `squares` it has MACs of the squares of x.
    pub(super) fn fill_shared(
        &mut self,
        list: &mut SharedList,
        layout: &Layout,
        b: usize,
        squares: bool,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.random_column(&mut list.y, layout.products, layout.kind.y, net)?;
        let (x, columns, coordinates) = (layout.kind.x, layout.columns(), layout.coordinates());
        let at_once = AT_ONCE / (x.bits() * coordinates);
        for start in (0..columns).step_by(at_once) {
            let len = at_once.min(columns - start);
            let rows = Rows { rows: x.bits() * coordinates, len };
            let [bits, _] = self.transfers.make(rows, Rows::NONE, net)?;
            for (a, column) in list.x.iter_mut().enumerate() {
                column.set_values(start, len, x, (a * x.bits(), &bits));
            }
            let tile = Tile { layout, b, start, len, squares };
            self.shared_offers.multiply(tile, &bits, list, net)?;
        }
        list.sum_words(layout, b);
        Ok(())
    }

    /// Sets a column to random elements of a field.
    pub(super) fn random_column(
        &mut self,
        column: &mut Column,
        count: usize,
        field: &Subfield,
        net: &mut dyn Net,
    ) -> Result<()> {
        let at_once = 2 * AT_ONCE / field.bits();
        for start in (0..count).step_by(at_once) {
            let len = at_once.min(count - start);
            let [_, bits] = self.transfers.make(Rows::NONE, Rows { rows: field.bits(), len }, net)?;
            let bits = FieldBits { field, bits: &bits, key: &self.key };
            column.set(start, len, bits, false, &mut self.rows)?;
        }
        Ok(())
    }

    /// Offers of words, between two parties.
    pub(super) fn word_offers(&mut self) -> Result<&mut WordOffers> {
        self.word_offers.as_mut().ok_or_else(between_two)
    }

    /// Checks all products of a phase.
    pub(super) fn check(&mut self, products: &Products<'_>, net: &mut dyn Net) -> Result<()> {
        let random = self.random_element(net)?;
        let product = self.zero_test_product(net)?;
        coset_check::check(products, &random, product, &self.key, net)
    }

    /// Runs what comes after a check. The peer knows the coins of that check, and has passed it, so its
    /// silence counts.
    pub(super) fn after_check<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        run(self).map_err(Error::in_a_check)
    }

    /// A random element of the field of MACs, for one use.
    pub(super) fn random_element(&mut self, net: &mut dyn Net) -> Result<Authenticated<Gf2_64>> {
        let [_, bits] = self.transfers.make(Rows::NONE, Rows { rows: 1, len: WORD }, net)?;
        let mut macs = Zeroizing::new([0; WORD]);
        bits.write_macs(0, &self.key, &mut *macs, &mut self.rows.blocks)?;
        let mut element = Authenticated::zero(1);
        for (k, (bit, mac)) in bits.values.iter().zip(macs.iter()).enumerate() {
            element.values[0] ^= u64::from(*bit) << k;
            element.macs[0] ^= Gf2_64::multiply(*mac, 1 << k);
        }
        Ok(element)
    }

    /// A random product without MACs for a zero test, which need not be verified ([`crate::spdz`],
    /// `check.rs`).
    pub(super) fn zero_test_product(&mut self, net: &mut dyn Net) -> Result<Product<Gf2_64>> {
        if self.products.is_empty() {
            self.make_products(net)?;
        }
        Ok(self.products.pop().expect("some were just made"))
    }

    /// a = sum X^k a\[k\] of wide bits, and random b: c is their product with transfers of b (Gilboa 1999;
    /// `products.rs` without values).
    fn make_products(&mut self, net: &mut dyn Net) -> Result<()> {
        let mut bytes = Zeroizing::new([0; PRODUCTS * size_of::<u64>()]);
        random_bytes(&mut *bytes)?;
        let mut b = Zeroizing::new([0; PRODUCTS]);
        Gf2_64::read_row(&*bytes, &mut *b);
        let [bits, _] = self.transfers.make(Rows { rows: WORD, len: PRODUCTS }, Rows::NONE, net)?;
        let mut c = Zeroizing::new([0; PRODUCTS]);
        self.offers.multiply_words(&bits, &*b, &mut *c, net)?;
        for (i, (b, c)) in b.iter().zip(c.iter()).enumerate() {
            let bit = |k: usize| u64::from(bits.values[bits.place(k, i)]) << k;
            let a = (0..WORD).fold(0, |a, k| a ^ bit(k));
            self.products.push(Product::new(a, *b, *c));
        }
        Ok(())
    }
}
