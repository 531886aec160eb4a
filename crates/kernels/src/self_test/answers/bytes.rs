//! The kernels on bytes and bits.

use super::super::Forms;
use super::{bytes_of64, bytes_of128, sample, words64};
use crate::affine::{Map, Term, combine_with};
use crate::bit_transpose::columns_to_blocks_with;
use crate::gf256::multiply_with;
use crate::isa::Isa;
use crate::planes::cells::{join_with, split_with};
use crate::planes::{Factors, PlaneMap, Planes, TILE_BYTES, Terms, add_products_with};
use crate::unit_sums::Sums;

/// Bytes: some whole registers of every form, and a rest.
const LEN: usize = 3 * 64 + 45;

pub(super) fn fips_197(forms: Forms) -> Vec<u8> {
    let mut products = vec![0; 2];
    multiply_with(forms.bytes, &mut products, &[0x57, 0x57], &[0x83, 0x13]);
    products
}

/// All pairs of bytes.
pub(super) fn products(forms: Forms) -> Vec<u8> {
    let (a, b): (Vec<u8>, Vec<u8>) = (0..=255).flat_map(|a| (0..=255).map(move |b| (a, b))).unzip();
    let mut products = vec![0; a.len()];
    multiply_with(forms.bytes, &mut products, &a, &b);
    products
}

pub(super) fn affine(forms: Forms) -> Vec<u8> {
    let map = |seed| Map::new(*sample(seed, 8).first_chunk().expect("eight columns"));
    let (maps, sources) = ([map(1), map(2)], [sample(3, LEN), sample(4, LEN)]);
    let terms = [0, 1].map(|i| Term { src: &sources[i], map: &maps[i] });
    let mut sum = vec![0; LEN];
    combine_with(forms.bytes, &mut sum, &terms, 0x63);
    sum
}

pub(super) fn bit_transpose(forms: Forms) -> Vec<u8> {
    const BLOCKS: usize = 8 * 37;
    let columns = sample(5, 128 * 40);
    let (mut small, mut large) = (vec![0_u64; BLOCKS], vec![0_u128; BLOCKS]);
    columns_to_blocks_with(forms.bytes, &columns, 40, 64, &mut small);
    columns_to_blocks_with(forms.bytes, &columns, 40, 128, &mut large);
    [bytes_of64(&small), bytes_of128(&large)].concat()
}

pub(super) fn fold(forms: Forms) -> Vec<u8> {
    let (mut rows, mut columns, mut sum) = (sample(6, 8 * LEN), vec![0; 3 * LEN], vec![0; LEN]);
    match forms.bytes {
        Isa::Portable => crate::fold::fold_rows(&mut rows, &mut columns, &mut sum),
        _ => crate::fold::fold(&mut rows, &mut columns, &mut sum),
    }
    [columns, sum].concat()
}

pub(super) fn planes(forms: Forms) -> Vec<u8> {
    let bytes = [7, 8, 9, 10].map(|seed| sample(seed, 8 * LEN));
    let [x0, x1, y0, y1] = [0, 1, 2, 3].map(|i| Planes { bytes: &bytes[i], stride: LEN });
    let mut all = Vec::new();
    for factors in Factors::ALL {
        for terms in [Terms::Contributed, Terms::Mixed, Terms::Second] {
            let mut sum = sample(11, factors.planes()[0] * LEN);
            add_products_with(forms.bytes, factors, terms, &mut sum, [[x0, x1], [y0, y1]]);
            all.extend(sum);
        }
    }
    all
}

pub(super) fn cells_of_planes(forms: Forms) -> Vec<u8> {
    let (stride, cells) = (LEN.div_ceil(8), sample(12, LEN));
    let (mut planes, mut joined) = (vec![0; 8 * stride], vec![0; LEN]);
    split_with(forms.bytes, &cells, 7, &mut planes, stride);
    join_with(forms.bytes, &planes, stride, 6, &mut joined);
    [planes, joined].concat()
}

pub(super) fn plane_maps(forms: Forms) -> Vec<u8> {
    const OUTS: usize = 13;
    let images: Vec<u64> = words64(13, 37).iter().map(|image| image >> (64 - OUTS)).collect();
    let mut outs = vec![0; OUTS * TILE_BYTES];
    let ins = sample(14, images.len() * TILE_BYTES);
    PlaneMap::new(OUTS, &images).apply_with(forms.bytes, &ins, &mut outs);
    outs
}

pub(super) fn unit_sums(forms: Forms) -> Vec<u8> {
    const ENTRIES: usize = 16;
    let sums = Sums::<u64>::new(&sample(15, ENTRIES), 8);
    let h: Vec<u8> = (0..2 * ENTRIES).map(|i| (5 * i % ENTRIES) as u8).collect();
    let mut all = Vec::new();
    for width in [1, 5, 8] {
        let vectors = sample(16, h.len() * ENTRIES * width);
        let mut rows = [(); 8].map(|()| vec![0; h.len()]);
        let mut places = rows.each_mut().map(Vec::as_mut_slice);
        match forms.bytes {
            Isa::Portable => sums.run(&vectors, width, &h, &mut places),
            _ => sums.add_up(&vectors, width, &h, &mut places),
        }
        all.extend(bytes_of64(&rows.concat()));
    }
    all
}
