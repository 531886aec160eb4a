//! The bit columns of one piece of an extension, which are kept until the check has passed.

use polyclave_kernels::memory::Wiped;

/// Bytes of a column in a whole tile: 8 transfers each. A tile of 128 columns lies in the second-level cache, and the streams
/// that fold to one tree's columns in the first (up to f = 4).
pub(super) const TILE_BYTES: usize = 1024;

/// Transfers come in such multiples, an AES block of each stream and an element of the check.
pub(super) const GRAIN_BYTES: usize = 16;

/// Columns of equal length, one after another.
pub(super) struct Tile {
    room: Wiped<u8>,
    columns: usize,
    column_bytes: usize,
}

impl Tile {
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
}

/// Tiles in use, and tiles to be used again: they are wiped when all is dropped, and need not be before.
pub(super) struct Tiles {
    columns: usize,
    used: Vec<Tile>,
    spare: Vec<Tile>,
}

impl Tiles {
    /// None yet.
    pub(super) fn new(columns: usize) -> Tiles {
        Tiles { columns, used: Vec::new(), spare: Vec::new() }
    }

    /// Those in use, in order.
    pub(super) fn used(&self) -> &[Tile] {
        &self.used
    }

    /// One more; what it holds is undefined.
    pub(super) fn next(&mut self, column_bytes: usize) -> &mut Tile {
        let columns = self.columns;
        let mut tile = self.spare.pop().unwrap_or_else(|| {
            let room = Wiped::zeros(columns * TILE_BYTES);
            Tile { room, columns, column_bytes }
        });
        tile.column_bytes = column_bytes;
        self.used.push(tile);
        self.used.last_mut().expect("it was just pushed")
    }

    /// Takes all back.
    pub(super) fn recycle(&mut self) {
        self.spare.append(&mut self.used);
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
