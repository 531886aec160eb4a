//! All lookups of a layer that go by the tower.

use std::ops::Range;

use polyclave_cipher::{Compiled, Inversion, Lookup, Matrix};
use polyclave_field::MacField;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf256;

use super::frobenius;
use super::workspace::{CHUNK, Secret, Words, Workspace};
use crate::Result;
use crate::net::Net;
use crate::spdz::Spdz;
use crate::spdz::arithmetic::Arithmetic;
use crate::spdz::inverses::{BITS, Element, Records};
use crate::spdz::material::Batch;
use crate::spdz::packed::{self, Packed};
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

/// What the next opening is masked by.
#[derive(Clone, Copy)]
enum Mask {
    Element(Element),
    Bits,
}

impl<F: MacField> Layer<'_, F> {
    /// Everything that is opened; the last is the inverse under the mask of bits.
    fn open_inverses(&mut self, work: &mut Workspace<F>, registers: &Registers<F>) -> Result<()> {
        use Element::{Lm, Ln, Ln4, Ln5, Lv, LvLx16, Lx, Lx16, Lx17, X, XLn4};

        let Workspace { public, secret, words } = work;
        self.open_inputs(secret, &mut public.h, registers)?;
        image(&mut public.h16, &public.h, &POWER_16);
        let x = Factor { opened: &public.h, mask: Lx };
        let x16 = Factor { opened: &public.h16, mask: Lx16 };
        let mask = Mask::Element(Ln);
        self.open_product([x16, x], Lx17, mask, &packed::NIBBLES, secret, words, &mut public.g)?;
        image(&mut public.g4, &public.g, &POWER_4);
        let n = Factor { opened: &public.g, mask: Ln };
        let n4 = Factor { opened: &public.g4, mask: Ln4 };
        let mask = Mask::Element(Lm);
        self.open_product([n4, n], Ln5, mask, &packed::PAIRS, secret, words, &mut public.m)?;
        image(&mut public.m2, &public.m, &SQUARE);
        let m2 = Factor { opened: &public.m2, mask: X };
        let mask = Mask::Element(Lv);
        self.open_product([n4, m2], XLn4, mask, &packed::NIBBLES, secret, words, &mut public.v)?;
        let v = Factor { opened: &public.v, mask: Lv };
        self.open_product([x16, v], LvLx16, Mask::Bits, &packed::BYTES, secret, words, &mut public.w)
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
        self.arithmetic.open_packed(&packed::BYTES, &secret.masked, h, self.len, macs, self.net)?;
        for (lookup, range) in of_lookups() {
            let constant = inversion(self.compiled, lookup).before.constant;
            h[range.clone()].iter_mut().for_each(|h| *h ^= constant);
        }
        Ok(())
    }

    /// a b + a Lb + b La + La Lb + mask.
    #[expect(clippy::too_many_arguments, reason = "rows of one workspace, which are borrowed one by one")]
    fn open_product(
        &mut self,
        [a, b]: [Factor<'_>; 2],
        product_of_masks: Element,
        mask: Mask,
        packed: &Packed,
        secret: &mut Secret,
        words: &mut Words<F>,
        opened: &mut [u8],
    ) -> Result<()> {
        let (records, len) = (&self.records, self.len);
        let Secret { masked, left, right } = secret;
        // a (Lb + b), where the first party adds what is public, and b La.
        let public: &[u8] = if self.arithmetic.key.is_first() { &b.opened[..len] } else { &[] };
        let of_b = sum_terms(&[records.values(b.mask), public]);
        let [left, right] = [&mut left[..len], &mut right[..len]];
        combine(right, &of_b[..1 + usize::from(!public.is_empty())], 0);
        gf256::multiply(left, &a.opened[..len], right);
        gf256::multiply(right, &b.opened[..len], records.values(a.mask));
        let mask_values = match mask {
            Mask::Element(mask) => records.values(mask),
            Mask::Bits => records.bits(),
        };
        let terms = [&*left, &*right, records.values(product_of_masks), mask_values];
        combine(&mut masked[..len], &terms.map(|src| Term { src, map: &SAME }), 0);

        let macs = |macs: &mut [F::Word]| {
            for (i, macs) in macs.chunks_mut(CHUNK).enumerate() {
                let at = i * CHUNK..i * CHUNK + macs.len();
                mac_of_product(macs, [a, b], product_of_masks, mask, at, records, words);
            }
        };
        self.arithmetic.open_packed(packed, masked, opened, len, macs, self.net)
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
    [a, b]: [Factor<'_>; 2],
    product_of_masks: Element,
    mask: Mask,
    at: Range<usize>,
    records: &Records<'_, F>,
    words: &mut Words<F>,
) {
    let of = |element: Element| &records.macs(element)[at.clone()];
    let len = macs.len();
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
    terms[2] = (of(product_of_masks), one);
    let used = match mask {
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

fn sum_terms<'a, const N: usize>(rows: &[&'a [u8]; N]) -> [Term<'a>; N] {
    rows.map(|src| Term { src, map: &SAME })
}

fn inversion<'a>(compiled: &'a Compiled, lookup: &Lookup) -> &'a Inversion {
    compiled.tables()[lookup.table].inversion().expect("only tables built on inversion go this way")
}
