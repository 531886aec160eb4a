//! Cells of many lanes, and how they are written as bytes.
//!
//! A port of cells of 1, 2, 4 or 8 bits is written in bytes with the first cell in the most significant bits.
//! Cells of any other width take a byte each (WAGE's words of 7 bits).

use zeroize::Zeroize;

/// What is wrong with bytes that should fill a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellsError {
    /// Not a whole number of blocks.
    #[error("{given} bytes do not make whole blocks of {block} bytes")]
    Length {
        /// What came.
        given: usize,
        /// What a block has.
        block: usize,
    },
    /// A byte that holds one narrow cell has bits above it.
    #[error("byte {at} is {value:#04x}, which does not fit a cell of {bits} bits")]
    TooWide {
        /// Position of the byte.
        at: usize,
        /// Its value.
        value: u8,
        /// Width of the cells.
        bits: u8,
    },
}

/// `count` cells of `bits` bits in each of `lanes` lanes, cell by cell: cell i of all lanes is one row. Wiped
/// on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct Cells {
    count: usize,
    bits: u8,
    lanes: usize,
    rows: Vec<u8>,
}

impl Cells {
    /// All cells 0.
    pub fn zero(count: usize, bits: u8, lanes: usize) -> Cells {
        Cells { count, bits, lanes, rows: vec![0; count * lanes] }
    }

    /// Bytes in which a block of `count` cells of `bits` bits is written.
    pub fn block_bytes(count: usize, bits: u8) -> usize {
        if 8 % bits == 0 { (count * usize::from(bits)).div_ceil(8) } else { count }
    }

    /// The byte of a block that holds a cell, and how far the cell is shifted up in it.
    pub fn place(cell: usize, bits: u8) -> (usize, usize) {
        if 8 % bits != 0 {
            return (cell, 0);
        }
        let per_byte = usize::from(8 / bits);
        (cell / per_byte, (per_byte - 1 - cell % per_byte) * usize::from(bits))
    }

    /// Reads one block per lane.
    pub fn from_blocks(count: usize, bits: u8, blocks: &[u8]) -> Result<Cells, CellsError> {
        let block = Cells::block_bytes(count, bits);
        if blocks.is_empty() || !blocks.len().is_multiple_of(block) {
            return Err(CellsError::Length { given: blocks.len(), block });
        }
        let lanes = blocks.len() / block;
        let mut cells = Cells::zero(count, bits, lanes);
        if bits == 8 {
            polyclave_kernels::transpose::blocks_to_rows(blocks, block, &mut cells.rows, lanes);
            return Ok(cells);
        }
        let too_wide = |at: usize| CellsError::TooWide { at, value: blocks[at], bits };
        if 8 % bits != 0
            && let Some(at) = blocks.iter().position(|b| *b >> bits != 0)
        {
            return Err(too_wide(at));
        }
        for cell in 0..count {
            let (byte, shift) = Cells::place(cell, bits);
            let mask = ((1u16 << bits) - 1) as u8;
            for lane in 0..lanes {
                cells.rows[cell * lanes + lane] = blocks[lane * block + byte] >> shift & mask;
            }
        }
        Ok(cells)
    }

    /// Writes one block per lane.
    pub fn to_blocks(&self) -> Vec<u8> {
        let block = Cells::block_bytes(self.count, self.bits);
        let mut blocks = vec![0; block * self.lanes];
        if self.bits == 8 {
            polyclave_kernels::transpose::rows_to_blocks(&self.rows, self.lanes, block, &mut blocks);
            return blocks;
        }
        for cell in 0..self.count {
            let (byte, shift) = Cells::place(cell, self.bits);
            for lane in 0..self.lanes {
                blocks[lane * block + byte] |= self.rows[cell * self.lanes + lane] << shift;
            }
        }
        blocks
    }

    /// Some of the lanes.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn part(&self, lanes: std::ops::Range<usize>) -> Cells {
        let mut part = Cells::zero(self.count, self.bits, lanes.len());
        for cell in 0..self.count {
            part.row_mut(cell).copy_from_slice(&self.row(cell)[lanes.clone()]);
        }
        part
    }

    /// Number of cells.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Width of each cell.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// One cell of all lanes.
    pub fn row(&self, cell: usize) -> &[u8] {
        &self.rows[cell * self.lanes..][..self.lanes]
    }

    /// One cell of all lanes.
    pub fn row_mut(&mut self, cell: usize) -> &mut [u8] {
        &mut self.rows[cell * self.lanes..][..self.lanes]
    }

    /// All cells, row after row.
    pub fn rows(&self) -> &[u8] {
        &self.rows
    }

    /// All cells, row after row.
    pub fn rows_mut(&mut self) -> &mut [u8] {
        &mut self.rows
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.rows.zeroize();
    }
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cells({} x {} bits, {} lanes)", self.count, self.bits, self.lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_for_every_width() {
        for bits in 1..=8u8 {
            let block = Cells::block_bytes(8, bits);
            let mask = if 8 % bits == 0 { 0xff } else { (1u8 << bits) - 1 };
            let blocks: Vec<u8> = (0..3 * block).map(|i| (i as u8).wrapping_mul(151) & mask).collect();
            let cells = Cells::from_blocks(8, bits, &blocks).expect("they fit");
            assert_eq!(cells.lanes(), 3);
            assert_eq!(cells.to_blocks(), blocks, "{bits} bits");
        }
    }

    #[test]
    fn a_part_has_the_blocks_of_its_lanes() {
        let blocks: Vec<u8> = (0..40).collect();
        let cells = Cells::from_blocks(16, 4, &blocks).expect("they fit");
        assert_eq!(cells.part(1..4).to_blocks(), blocks[8..32]);
    }

    #[test]
    fn first_cell_is_most_significant() {
        let cells = Cells::from_blocks(8, 1, &[0x80]).expect("it fits");
        assert_eq!(cells.row(0), [1]);
        assert_eq!(cells.row(7), [0]);
    }

    #[test]
    fn partial_blocks_and_wide_cells_are_refused() {
        assert_eq!(Cells::from_blocks(16, 8, &[0; 17]), Err(CellsError::Length { given: 17, block: 16 }));
        assert_eq!(
            Cells::from_blocks(2, 7, &[1, 0x80]),
            Err(CellsError::TooWide { at: 1, value: 0x80, bits: 7 })
        );
    }
}
