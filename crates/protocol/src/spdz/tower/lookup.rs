//! All lookups of a layer that go by the tower.

use std::ops::Range;

use polyclave_cipher::{Compiled, Inversion, Lookup, Matrix};
use polyclave_field::MacField;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256;

use super::frobenius;
use super::workspace::{CHUNK, Public, Secret, Words, Workspace};
use crate::Result;
use crate::authenticated::{BITS, BYTES, Element, NIBBLES, PAIRS, Packed, Records};
use crate::interface::net::Net;
use crate::spdz::Spdz;
use crate::spdz::arithmetic::Arithmetic;
use crate::spdz::material::Batch;
use crate::spdz::registers::Registers;

static SAME: Map = Map::identity();
static SQUARE: Map = frobenius(1);
static POWER_4: Map = frobenius(2);
static POWER_16: Map = frobenius(4);

impl<F: MacField> Spdz<F> {
    /// All lookups of a layer that are inversions: five openings each, five rounds.
    pub(in crate::spdz) fn look_up_by_tower(
        &mut self,
        compiled: &Compiled,
        lookups: &[&Lookup],
        registers: &mut Registers<F>,
        batch: &mut Batch<F>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let mut len = 0;
        let range = |lookup: &&Lookup| {
            let from = len;
            len += registers.row(lookup.xs[0]).cells.len();
            from..len
        };
        let ranges: Vec<Range<usize>> = lookups.iter().map(range).collect();
        // Spent before anything is sent.
        let records = batch.take_inverses(len)?;
        self.tower.fit(len);
        let arithmetic = &mut self.arithmetic;
        let mut layer = Layer { compiled, lookups, ranges, len, records, arithmetic, net };
        layer.open_inverses(&mut self.tower, registers)?;
        layer.put(&mut self.tower, registers);
        Ok(())
    }
}

struct Layer<'a, F: MacField> {
    compiled: &'a Compiled,
    lookups: &'a [&'a Lookup],
    /// Where the cells of each lookup are.
    ranges: Vec<Range<usize>>,
    len: usize,
    records: Records<'a, F>,
    arithmetic: &'a mut Arithmetic<F>,
    net: &'a mut dyn Net,
}

/// A factor of a product: opened under a mask.
#[derive(Clone, Copy)]
struct Factor<'a> {
    opened: &'a [u8],
    mask: Element,
}

/// What an opening is masked by.
#[derive(Clone, Copy)]
enum Mask {
    Element(Element),
    Bits,
}

/// A product that is opened under a mask.
struct Product<'a> {
    factors: [Factor<'a>; 2],
    /// The product of the factors' masks.
    of_masks: Element,
    mask: Mask,
    /// The form on the wire.
    packed: &'a Packed,
}

impl<F: MacField> Layer<'_, F> {
    /// Everything that is opened; the last is the inverse under the mask of bits.
    fn open_inverses(&mut self, work: &mut Workspace<F>, registers: &Registers<F>) -> Result<()> {
        use Element::{Lm, Ln, Ln4, Ln5, Lv, LvLx16, Lx, Lx16, Lx17, X, XLn4};

        let Workspace { public, secret, words } = work;
        let Public { h, h16, g, g4, m, m2, v, w, .. } = public;
        self.open_inputs(secret, h, registers)?;
        let mut open = |layer: &mut Self, factors, of_masks, mask, packed, opened: &mut Vec<u8>| {
            layer.open_product(&Product { factors, of_masks, mask, packed }, secret, words, opened)
        };
        image(h16, h, &POWER_16);
        let x16 = Factor { opened: h16, mask: Lx16 };
        open(self, [x16, Factor { opened: h, mask: Lx }], Lx17, Mask::Element(Ln), &NIBBLES, g)?;
        image(g4, g, &POWER_4);
        let n4 = Factor { opened: g4, mask: Ln4 };
        open(self, [n4, Factor { opened: g, mask: Ln }], Ln5, Mask::Element(Lm), &PAIRS, m)?;
        image(m2, m, &SQUARE);
        open(self, [n4, Factor { opened: m2, mask: X }], XLn4, Mask::Element(Lv), &NIBBLES, v)?;
        open(self, [x16, Factor { opened: v, mask: Lv }], LvLx16, Mask::Bits, &BYTES, w)
    }

    /// h = x + Lx, where x is what is inverted.
    fn open_inputs(&mut self, secret: &mut Secret, h: &mut [u8], registers: &Registers<F>) -> Result<()> {
        let (records, lookups, ranges) = (&self.records, self.lookups, &self.ranges);
        let of_lookups = || lookups.iter().zip(ranges);
        for (lookup, range) in of_lookups() {
            let terms = [&*registers.row(lookup.xs[0]).cells, &records.values(Element::Lx)[range.clone()]];
            combine(&mut secret.masked[range.clone()], &terms.map(|src| Term { src, map: &SAME }), 0);
        }
        let macs = |macs: &mut [F::Word]| {
            for (lookup, range) in of_lookups() {
                let x = registers.row(lookup.xs[0]).macs.iter();
                let terms = x.zip(&records.macs(Element::Lx)[range.clone()]);
                macs[range.clone()].iter_mut().zip(terms).for_each(|(sum, (x, mask))| *sum = *x ^ *mask);
            }
        };
        self.arithmetic.open_packed(&BYTES, &secret.masked, h, self.len, macs, self.net)?;
        for (lookup, range) in of_lookups() {
            let constant = inversion(self.compiled, lookup).before.constant;
            h[range.clone()].iter_mut().for_each(|h| *h ^= constant);
        }
        Ok(())
    }

    /// a b + a Lb + b La + La Lb + mask.
    fn open_product(
        &mut self,
        product: &Product<'_>,
        secret: &mut Secret,
        words: &mut Words<F>,
        opened: &mut [u8],
    ) -> Result<()> {
        let (records, len) = (&self.records, self.len);
        let Secret { masked, left, right } = secret;
        let [left, right] = [&mut left[..len], &mut right[..len]];
        let [a, b] = product.factors;
        // a (Lb + b), where the first party adds what is public, and b La.
        let terms = [records.values(b.mask), &b.opened[..len]].map(|src| Term { src, map: &SAME });
        combine(right, &terms[..1 + usize::from(self.arithmetic.key.is_first())], 0);
        gf256::multiply(left, &a.opened[..len], right);
        gf256::multiply(right, &b.opened[..len], records.values(a.mask));
        let mask = match product.mask {
            Mask::Element(mask) => records.values(mask),
            Mask::Bits => records.bits(),
        };
        let terms = [&*left, &*right, records.values(product.of_masks), mask];
        combine(&mut masked[..len], &terms.map(|src| Term { src, map: &SAME }), 0);

        let macs = |macs: &mut [F::Word]| {
            for (i, macs) in macs.chunks_mut(CHUNK).enumerate() {
                let at = i * CHUNK..i * CHUNK + macs.len();
                mac_of_product(macs, product, at, records, words);
            }
        };
        self.arithmetic.open_packed(product.packed, masked, opened, len, macs, self.net)
    }

    /// Puts the wanted images of the outputs into their slots. Local.
    fn put(&self, work: &mut Workspace<F>, registers: &mut Registers<F>) {
        for (lookup, range) in self.lookups.iter().zip(&self.ranges) {
            let after = inversion(self.compiled, lookup).after;
            for (m, slot) in &lookup.views {
                let view = (m.after(&after.matrix), m.apply(after.constant));
                let row = registers.row_mut(*slot);
                self.image_of_output(view, range.clone(), work, &mut row.cells, &mut row.macs);
            }
        }
    }

    /// Shares of matrix x^254 + constant = matrix w + constant + sum of images of the bits mu.
    fn image_of_output(
        &self,
        (matrix, constant): (Matrix, u8),
        range: Range<usize>,
        work: &mut Workspace<F>,
        cells: &mut [u8],
        macs: &mut [F::Word],
    ) {
        let map = Map::new(matrix.columns());
        let public = &mut work.public.image[range.clone()];
        combine(public, &[Term { src: &work.public.w[range.clone()], map: &map }], constant);
        let bits = Term { src: &self.records.bits()[range.clone()], map: &map };
        let terms = [bits, Term { src: public, map: &SAME }];
        combine(cells, &terms[..1 + usize::from(self.arithmetic.key.is_first())], 0);

        let Words { alpha, left, right, .. } = &mut work.words;
        let chunks = macs.chunks_mut(CHUNK).zip(public.chunks(CHUNK));
        for (i, (macs, public)) in chunks.enumerate() {
            let from = range.start + i * CHUNK;
            let [left, right] = [&mut left[..macs.len()], &mut right[..macs.len()]];
            F::embed_row(left, public);
            F::multiply_rows(right, left, &alpha[..macs.len()]);
            let mut terms = [(&*right, F::embed(1)); 1 + BITS];
            for (i, (term, column)) in terms[1..].iter_mut().zip(matrix.columns()).enumerate() {
                *term = (&self.records.bit_macs(i)[from..from + macs.len()], F::embed(column));
            }
            F::combine(macs, &terms, F::Word::default());
        }
    }
}

/// The MACs of a b + a Lb + b La + La Lb + mask, for a chunk.
fn mac_of_product<F: MacField>(
    macs: &mut [F::Word],
    product: &Product<'_>,
    at: Range<usize>,
    records: &Records<'_, F>,
    words: &mut Words<F>,
) {
    let of = |element: Element| &records.macs(element)[at.clone()];
    let ([a, b], len) = (product.factors, macs.len());
    let Words { alpha, left, right, sum } = words;
    let [left, right, sum] = [&mut left[..len], &mut right[..len], &mut sum[..len]];
    // a (alpha b + Lb) + b La.
    F::embed_row(right, &b.opened[at.clone()]);
    F::multiply_rows(left, right, &alpha[..len]);
    left.iter_mut().zip(of(b.mask)).for_each(|(sum, mac)| *sum ^= *mac);
    F::multiply_rows(sum, right, of(a.mask));
    F::embed_row(right, &a.opened[at.clone()]);
    F::multiply_rows(macs, right, left);
    left.copy_from_slice(macs);

    let one = F::embed(1);
    let mut terms = [(&*left, one); 3 + BITS];
    terms[1] = (sum, one);
    terms[2] = (of(product.of_masks), one);
    let used = match product.mask {
        Mask::Element(mask) => {
            terms[3] = (of(mask), one);
            4
        }
        Mask::Bits => {
            for (i, term) in terms[3..].iter_mut().enumerate() {
                *term = (&records.bit_macs(i)[at.clone()], F::embed(1 << i));
            }
            3 + BITS
        }
    };
    F::combine(macs, &terms[..used], F::Word::default());
}

/// A linear image of public cells.
fn image(to: &mut [u8], cells: &[u8], map: &Map) {
    combine(to, &[Term { src: cells, map }], 0);
}

fn inversion<'a>(compiled: &'a Compiled, lookup: &Lookup) -> &'a Inversion {
    compiled.tables()[lookup.table].inversion().expect("only tables built on inversion go this way")
}
