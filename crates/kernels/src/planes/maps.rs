//! Public linear maps of planes: every output is a sum of inputs.
//!
//! Four inputs have sixteen sums ("the method of four Russians": Arlazarov, Dinic, Kronrod and Faradzev
//! 1970). They are computed once, and each output adds the one that the matrix says. The matrix is public,
//! and so are the places in the table that are read. Cost for 32 inputs: 88 XORs, and eight for each output.

#![allow(clippy::needless_range_loop)] // Closures of iterators would not be compiled into their callers.

use super::formulas::Register;
use crate::bit_transpose::columns_to_blocks;
use crate::isa::Isa;

/// Planes are mapped in pieces of so many bytes.
pub const TILE_BYTES: usize = 64;
/// Cells of a tile.
pub const TILE_CELLS: usize = 8 * TILE_BYTES;

/// Inputs whose sums are in one table.
const GROUP: usize = 4;
const SUMS: usize = 1 << GROUP;
/// Tables that are in use together, so that an output is read and written once for all of them.
const TABLES: usize = 8;
/// Inputs of these.
const TOGETHER: usize = TABLES * GROUP;
/// A place in a table is kept as its bytes in registers of 64, so that it has to be masked and not shifted.
const SCALE: u32 = 6;

/// For each table, which sum an output adds.
pub(super) type Places = [u16; TABLES];

/// A public linear map from planes to at most 64 planes.
pub struct PlaneMap {
    ins: usize,
    outs: usize,
    /// For as many inputs as have tables together, those of every output.
    places: Vec<Places>,
}

impl PlaneMap {
    /// Input `i` is added to output `o` if bit `o` of `images[i]` is set.
    ///
    /// # Panics
    /// If an image has a bit for no output.
    pub fn new(outs: usize, images: &[u64]) -> PlaneMap {
        let is_within = |image: &u64| outs >= 64 || image >> outs == 0;
        assert!(outs <= 64 && images.iter().all(is_within), "a bit for each output");
        let mut places = Vec::with_capacity(images.len().div_ceil(TOGETHER) * outs);
        for together in images.chunks(TOGETHER) {
            let columns: Vec<u8> = together.iter().flat_map(|image| image.to_le_bytes()).collect();
            let mut rows = [0_u64; 64];
            columns_to_blocks(&columns, size_of::<u64>(), together.len(), &mut rows);
            places.extend(rows[..outs].iter().map(|row| {
                let place = |table: usize| ((row >> (GROUP * table)) as usize % SUMS) << SCALE;
                core::array::from_fn::<_, TABLES, _>(|table| place(table) as u16)
            }));
        }
        PlaneMap { ins: images.len(), outs, places }
    }

    /// Overwrites the outputs. All planes are equally long, a number of tiles, and follow each other.
    ///
    /// # Panics
    /// If lengths do not fit.
    pub fn apply(&self, ins: &[u8], outs: &mut [u8]) {
        self.apply_with(Isa::best(), ins, outs);
    }

    /// Assumes that the processor has `isa`.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn apply_with(&self, isa: Isa, ins: &[u8], outs: &mut [u8]) {
        let len = ins.len() / self.ins.max(1);
        let fit = ins.len() == self.ins * len && outs.len() == self.outs * len;
        assert!(fit && len.is_multiple_of(TILE_BYTES), "tiles of every input and output");
        if ins.is_empty() || outs.is_empty() {
            return outs.fill(0);
        }
        match isa {
            Isa::Portable => sums::<u64>(&self.places, ins, outs, len),
            // SAFETY: these variants exist only where their instructions were detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { super::avx2::sums(&self.places, ins, outs, len) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Gfni => unsafe { super::avx512::sums(&self.places, ins, outs, len) },
        }
    }
}

/// See [`PlaneMap::apply`]; planes of `len` bytes, which was checked there.
#[inline(always)]
pub(super) fn sums<R: Register>(places: &[Places], ins: &[u8], outs: &mut [u8], len: usize) {
    match (ins.len() / len).div_ceil(GROUP) {
        0..=2 => sums_of::<R, 2>(places, ins, outs, len),
        3..=4 => sums_of::<R, 4>(places, ins, outs, len),
        _ => sums_of::<R, TABLES>(places, ins, outs, len),
    }
}

/// With as many tables as are in use.
#[inline(always)]
fn sums_of<R: Register, const USED: usize>(places: &[Places], ins: &[u8], outs: &mut [u8], len: usize) {
    let count = outs.len() / len;
    for (i, (ins, places)) in ins.chunks(TOGETHER * len).zip(places.chunks(count)).enumerate() {
        for at in (0..len).step_by(R::BYTES) {
            let mut tables = [[R::load(&[0; TILE_BYTES]); SUMS]; USED];
            for t in 0..USED {
                tables[t] = table::<R>(ins, len, at, t);
            }
            for (out, places) in outs.chunks_exact_mut(len).zip(places) {
                let out = &mut out[at..at + R::BYTES];
                let mut sum = if i == 0 { R::load(&[0; TILE_BYTES]) } else { R::load(out) };
                for t in 0..USED {
                    sum = sum.xor(tables[t][usize::from(places[t]) >> SCALE & (SUMS - 1)]);
                }
                sum.store(out);
            }
        }
    }
}

/// All sums of the four inputs of a table; there may be fewer of them.
#[inline(always)]
fn table<R: Register>(ins: &[u8], len: usize, at: usize, table: usize) -> [R; SUMS] {
    let (a, b) = (input::<R>(ins, len, at, GROUP * table), input::<R>(ins, len, at, GROUP * table + 1));
    let (c, d) = (input::<R>(ins, len, at, GROUP * table + 2), input::<R>(ins, len, at, GROUP * table + 3));
    let (ab, cd) = (a.xor(b), c.xor(d));
    let (ac, bc, abc) = (a.xor(c), b.xor(c), ab.xor(c));
    let (ad, bd, abd) = (a.xor(d), b.xor(d), ab.xor(d));
    let zero = R::load(&[0; TILE_BYTES]);
    [zero, a, b, ab, c, ac, bc, abc, d, ad, bd, abd, cd, a.xor(cd), b.xor(cd), ab.xor(cd)]
}

#[inline(always)]
fn input<R: Register>(ins: &[u8], len: usize, at: usize, input: usize) -> R {
    match ins.get(input * len + at..) {
        Some(bytes) if bytes.len() >= R::BYTES => R::load(bytes),
        _ => R::load(&[0; TILE_BYTES]),
    }
}
