//! The bit columns of extensions, which are kept until the check has passed, in memory that is used again.

use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_field::Gf2_64;
use polyclave_kernels::bit_transpose::{Block, columns_to_blocks};
use polyclave_kernels::column_words::add_words;
use polyclave_kernels::memory::Wiped;

/// Bytes of a column in a whole tile: 8 transfers each. A tile of 128 columns lies in the second-level cache.
pub(super) const TILE_BYTES: usize = 1024;

/// Transfers come in such multiples, an AES block of each stream and an element of the check.
pub(super) const GRAIN_BYTES: usize = 16;

/// Transfers of a whole tile.
pub(super) const TILE_TRANSFERS: usize = 8 * TILE_BYTES;

/// Columns of equal length, one after another.
pub(super) struct Tile {
    room: Wiped<u8>,
    columns: usize,
    column_bytes: usize,
}

/// Memory for tiles of one shape, shared by forks. It is wiped when its last user is dropped, and need not be
/// wiped before. There is never more of it than was in use at one time.
#[derive(Default)]
pub(super) struct TilePool {
    spare: Mutex<Vec<Tile>>,
}

/// The columns of one direction since the last check.
pub(super) struct Tiles {
    columns: usize,
    /// One element of each column, which hides the answer to the check.
    mask: Tile,
    has_mask: bool,
    used: Vec<Tile>,
    pool: Arc<TilePool>,
}

impl Tile {
    /// Zeros.
    fn new(columns: usize, column_bytes: usize) -> Tile {
        Tile { room: Wiped::zeros(columns * column_bytes), columns, column_bytes }
    }

    /// All columns.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.room[..self.columns * self.column_bytes]
    }

    /// All columns.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[..self.columns * self.column_bytes]
    }

    /// Bytes of each.
    pub(super) fn column_bytes(&self) -> usize {
        self.column_bytes
    }

    /// Writes the blocks of the transfers from number `at` on, a multiple of 8: bit i is that of column i,
    /// for the first `columns`.
    pub(super) fn write_blocks<B: Block>(&self, columns: usize, at: usize, blocks: &mut [B]) {
        columns_to_blocks(&self.bytes()[at / 8..], self.column_bytes, columns, blocks);
    }

    /// Adds, to each of these sums, the sum of the next `width` blocks of 64 columns times powers of X, from
    /// number `at` on, a multiple of 8.
    pub(super) fn add_words(&self, width: usize, at: usize, sums: &mut [u64]) {
        add_words::<Gf2_64>(&self.bytes()[at / 8..], self.column_bytes, width, sums);
    }
}

impl TilePool {
    /// A tile that was given back, if there is one. What it holds is undefined.
    fn take(&self) -> Option<Tile> {
        self.spare.lock().pop()
    }

    /// Takes tiles back.
    pub(super) fn give_back(&self, tiles: &mut Vec<Tile>) {
        self.spare.lock().append(tiles);
    }
}

impl Tiles {
    /// No tiles yet; they will have `columns` columns. The numbers of columns of all tiles of a pool differ
    /// by at most one.
    pub(super) fn new(columns: usize, pool: &Arc<TilePool>) -> Tiles {
        let mask = Tile::new(columns, GRAIN_BYTES);
        Tiles { columns, mask, has_mask: false, used: Vec::new(), pool: pool.clone() }
    }

    /// Those in use, in order.
    pub(super) fn used(&self) -> &[Tile] {
        &self.used
    }

    /// The mask for the next check.
    pub(super) fn mask(&self) -> &Tile {
        &self.mask
    }

    /// Whether the mask is made. If not, an extension makes it.
    pub(super) fn has_mask(&self) -> bool {
        self.has_mask
    }

    /// To make the mask.
    pub(super) fn next_mask(&mut self) -> &mut Tile {
        self.has_mask = true;
        &mut self.mask
    }

    /// One more; what it holds is undefined.
    pub(super) fn next(&mut self, column_bytes: usize) -> &mut Tile {
        // The columns that fit both ends: one end also keeps choices.
        let most = self.columns + 1;
        let mut tile = self.pool.take().unwrap_or_else(|| Tile::new(most, TILE_BYTES));
        (tile.columns, tile.column_bytes) = (self.columns, column_bytes);
        self.used.push(tile);
        self.used.last_mut().expect("it was just pushed")
    }

    /// The tiles from this one on, after a check. The others go back to the pool, and the mask is used up.
    pub(super) fn checked_from(&mut self, first: usize) -> Vec<Tile> {
        let kept = self.used.split_off(first.min(self.used.len()));
        self.pool.give_back(&mut self.used);
        self.has_mask = false;
        kept
    }
}

/// The lengths of tiles for this many transfers: whole ones and a rest, rounded up to the grain.
pub(super) fn column_lengths(count: usize) -> impl Iterator<Item = usize> {
    let bytes = padded_bytes(count);
    (0..bytes).step_by(TILE_BYTES).map(move |start| TILE_BYTES.min(bytes - start))
}

/// Bytes of a column of this many transfers.
pub(super) fn padded_bytes(count: usize) -> usize {
    count.div_ceil(8).next_multiple_of(GRAIN_BYTES)
}
