//! Public linear maps of planes: every output is a sum of inputs.
//!
//! Four inputs have sixteen sums ("the method of four Russians": Arlazarov, Dinic, Kronrod and Faradzev 1970). They are computed once, and
//! each output adds the one that the matrix says. The matrix is public, and so are the places in the table that are read. Cost for each
//! eight inputs: 22 XORs, and two for each output.

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

/// A public linear map from planes to planes.
pub struct PlaneMap {
    ins: usize,
    outs: usize,
    /// For every two groups of inputs, for every output: which sum of each group it adds.
    sums: Vec<[u8; 2]>,
}

impl PlaneMap {
    /// Input `i` is added to output `o` if bit `o` of `images[i]` is set.
    ///
    /// # Panics
    /// If an image has a bit for no output.
    pub fn new(outs: usize, images: &[u128]) -> PlaneMap {
        assert!(images.iter().all(|image| outs >= 128 || image >> outs == 0), "a bit for each output");
        let sum_of = |group: &[u128], out: usize| -> u8 {
            group.iter().enumerate().map(|(i, image)| ((image >> out & 1) as u8) << i).sum()
        };
        let mut sums = Vec::with_capacity(images.len().div_ceil(2 * GROUP) * outs);
        for both in images.chunks(2 * GROUP) {
            let (first, second) = both.split_at(GROUP.min(both.len()));
            sums.extend((0..outs).map(|out| [sum_of(first, out), sum_of(second, out)]));
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
pub(super) fn add_sums<R: Register>(sums: &[[u8; 2]], ins: &[Tile], outs: &mut [Tile]) {
    outs.fill([0; TILE_BYTES]);
    if outs.is_empty() {
        return;
    }
    for (both, sums) in ins.chunks(2 * GROUP).zip(sums.chunks(outs.len())) {
        let (first, second) = both.split_at(GROUP.min(both.len()));
        for at in (0..TILE_BYTES).step_by(R::BYTES) {
            let (first, second) = (table::<R>(first, at), table::<R>(second, at));
            for (out, sum) in outs.iter_mut().zip(sums) {
                let place = &mut out[at..at + R::BYTES];
                let sum = first[usize::from(sum[0]) % SUMS].xor(second[usize::from(sum[1]) % SUMS]);
                R::load(place).xor(sum).store(place);
            }
        }
    }
}

/// All sums of up to four tiles.
#[inline(always)]
fn table<R: Register>(group: &[Tile], at: usize) -> [R; SUMS] {
    let mut table = [R::load(&[0; TILE_BYTES]); SUMS];
    for (i, tile) in group.iter().enumerate() {
        let (tile, count) = (R::load(&tile[at..at + R::BYTES]), 1 << i);
        for sum in 0..count {
            table[count + sum] = table[sum].xor(tile);
        }
    }
    table
}
