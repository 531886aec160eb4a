//! Public linear maps of planes: every output is a sum of inputs.
//!
//! Four inputs have sixteen sums ("the method of four Russians": Arlazarov, Dinic, Kronrod and Faradzev
//! 1970). They are computed once, and each output adds the one that the matrix says. The matrix is public,
//! and so are the places in the table that are read. Cost for sixteen inputs: 44 XORs, and four for each
//! output.

use super::formulas::Register;
use crate::isa::Isa;

/// Bytes of a tile.
pub const TILE_BYTES: usize = 32;
/// Cells of a tile.
pub const TILE_CELLS: usize = 8 * TILE_BYTES;
/// A piece of a plane.
pub type Tile = [u8; TILE_BYTES];

/// Inputs whose sums are in one table.
const GROUP: usize = 4;
const SUMS: usize = 1 << GROUP;
/// Tables that are in use together, so that an output is read and written once for all of them.
pub(super) const TABLES: usize = 4;

/// A public linear map from planes to planes.
pub struct PlaneMap {
    ins: usize,
    outs: usize,
    /// For as many groups of inputs as have tables together, for every output: which sum of each group it
    /// adds.
    sums: Vec<[u8; TABLES]>,
}

impl PlaneMap {
    /// Input `i` is added to output `o` if bit `o` of `images[i]` is set.
    ///
    /// # Panics
    /// If an image has a bit for no output.
    pub fn new(outs: usize, images: &[u128]) -> PlaneMap {
        assert!(images.iter().all(|image| outs >= 128 || image >> outs == 0), "a bit for each output");
        let mut sums = vec![[0; TABLES]; images.len().div_ceil(TABLES * GROUP) * outs];
        for (together, sums) in images.chunks(TABLES * GROUP).zip(sums.chunks_mut(outs.max(1))) {
            for (i, image) in together.iter().enumerate() {
                let mut left = *image;
                while left != 0 {
                    sums[left.trailing_zeros() as usize][i / GROUP] |= 1 << (i % GROUP);
                    left &= left - 1;
                }
            }
        }
        PlaneMap { ins: images.len(), outs, sums }
    }

    /// Overwrites the outputs.
    ///
    /// # Panics
    /// If there are more or fewer inputs or outputs than the map has.
    pub fn apply(&self, ins: &[Tile], outs: &mut [Tile]) {
        self.apply_with(Isa::best(), ins, outs);
    }

    /// Assumes that the processor has `isa`.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(super) fn apply_with(&self, isa: Isa, ins: &[Tile], outs: &mut [Tile]) {
        assert!(ins.len() == self.ins && outs.len() == self.outs, "tiles for every input and output");
        match isa {
            Isa::Portable => add_sums::<u64>(&self.sums, ins, outs),
            // SAFETY: the other variants exist only where AVX2 was detected, which AVX-512 comes with.
            #[cfg(target_arch = "x86_64")]
            _ => unsafe { super::avx2::add_sums(&self.sums, ins, outs) },
        }
    }
}

/// See [`PlaneMap::apply`]; numbers of tiles were checked there.
#[inline(always)]
pub(super) fn add_sums<R: Register>(sums: &[[u8; TABLES]], ins: &[Tile], outs: &mut [Tile]) {
    outs.fill([0; TILE_BYTES]);
    if outs.is_empty() {
        return;
    }
    for (together, sums) in ins.chunks(TABLES * GROUP).zip(sums.chunks(outs.len())) {
        for at in (0..TILE_BYTES).step_by(R::BYTES) {
            let mut tables = [[R::load(&[0; TILE_BYTES]); SUMS]; TABLES];
            for (table, group) in tables.iter_mut().zip(together.chunks(GROUP)) {
                fill::<R>(table, group, at);
            }
            for (out, sum) in outs.iter_mut().zip(sums) {
                let place = &mut out[at..at + R::BYTES];
                let first = tables[0][usize::from(sum[0]) % SUMS].xor(tables[1][usize::from(sum[1]) % SUMS]);
                let second = tables[2][usize::from(sum[2]) % SUMS].xor(tables[3][usize::from(sum[3]) % SUMS]);
                R::load(place).xor(first.xor(second)).store(place);
            }
        }
    }
}

/// All sums of up to four tiles.
#[inline(always)]
fn fill<R: Register>(table: &mut [R; SUMS], group: &[Tile], at: usize) {
    for (i, tile) in group.iter().enumerate() {
        let (tile, count) = (R::load(&tile[at..at + R::BYTES]), 1 << i);
        for sum in 0..count {
            table[count + sum] = table[sum].xor(tile);
        }
    }
}
