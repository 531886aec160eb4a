//! Cells of a small field on the wire: only their coordinates over GF(2), several cells a byte.
//!
//! The map from a byte to coordinates is linear over GF(2) on all bytes, and right on the bytes of the small
//! field. So the coordinates of the shares of a cell add up to the coordinates of the cell, even if the
//! shares lie outside of the small field, and a party sends the coordinates of its share only. For any
//! coordinates that a cheater sends, the sum is a cell of the small field, and the MAC check covers that
//! cell.
//!
//! Byte i has the coordinates of cell i in its lowest bits, then those of cell i + len, of cell i + 2 len ..,
//! where len is the number of bytes. Bits without a cell are zero.

use polyclave_kernels::affine::{Map, Term, combine};

use polyclave_field::subfields::{GF4, GF16};

/// How cells of a field of at most 2^8 elements inside F are packed.
pub(crate) struct Packed {
    /// Cells in a byte.
    cells: usize,
    /// From a cell to its place in a byte, by number of the cell in the byte.
    pack: [Map; 4],
    /// Back, from a whole byte.
    unpack: [Map; 4],
}

/// All of F: a byte is a byte.
pub(crate) static BYTES: Packed = Packed::new(&[1, 2, 4, 8, 16, 32, 64, 128]);
/// Two cells a byte.
pub(crate) static NIBBLES: Packed = Packed::new(&GF16);
/// Four cells a byte.
pub(crate) static PAIRS: Packed = Packed::new(&GF4);

/// Rows of cells are as long as a multiple of this, so that they fill whole bytes.
pub(crate) const MAX_CELLS: usize = 4;

impl Packed {
    /// The packing for the field with this basis.
    const fn new(basis: &[u8]) -> Packed {
        const NOTHING: Map = Map::new([0; 8]);
        let (bits, coordinates) = (basis.len(), coordinates(basis));
        let mut packed = Packed { cells: 8 / bits, pack: [NOTHING; 4], unpack: [NOTHING; 4] };
        let mut cell = 0;
        while cell < packed.cells {
            let (mut to, mut from, mut i) = (coordinates, [0; 8], 0);
            while i < 8 {
                to[i] <<= cell * bits;
                i += 1;
            }
            i = 0;
            while i < bits {
                from[cell * bits + i] = basis[i];
                i += 1;
            }
            packed.pack[cell] = Map::new(to);
            packed.unpack[cell] = Map::new(from);
            cell += 1;
        }
        packed
    }

    /// Bytes of `cells` cells.
    pub(crate) fn bytes(&self, cells: usize) -> usize {
        cells.div_ceil(self.cells)
    }

    /// Packs a row of cells. Those behind the last one that counts are zero.
    ///
    /// # Panics
    /// If the row is too short to fill the bytes.
    pub(crate) fn pack(&self, bytes: &mut [u8], row: &[u8]) {
        let part = |k: usize| &row[k * bytes.len()..(k + 1) * bytes.len()];
        let terms: [Term<'_>; 4] =
            std::array::from_fn(|k| Term { src: part(k.min(self.cells - 1)), map: &self.pack[k] });
        combine(bytes, &terms[..self.cells], 0);
    }

    /// The other way.
    ///
    /// # Panics
    /// If the row is too short for all cells that the bytes have room for.
    pub(crate) fn unpack(&self, row: &mut [u8], bytes: &[u8]) {
        for (part, map) in row.chunks_mut(bytes.len().max(1)).zip(&self.unpack[..self.cells]) {
            combine(part, &[Term { src: bytes, map }], 0);
        }
    }
}

/// A map that takes the elements of a basis to single bits: the images of the bits of a byte.
const fn coordinates(basis: &[u8]) -> [u8; 8] {
    let (mut columns, mut i) = ([0; 8], 0);
    while i < basis.len() {
        // The least mask with an odd number of bits in common with this element, and an even number with all
        // others.
        let mut mask = 1;
        while !is_dual(mask, basis, i) {
            mask += 1;
        }
        let mut bit = 0;
        while bit < 8 {
            columns[bit] |= (mask >> bit & 1) << i;
            bit += 1;
        }
        i += 1;
    }
    columns
}

const fn is_dual(mask: u8, basis: &[u8], i: usize) -> bool {
    let mut j = 0;
    while j < basis.len() {
        if (mask & basis[j]).count_ones() % 2 != (i == j) as u32 {
            return false;
        }
        j += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All cells of the field with this basis.
    fn field(basis: &[u8]) -> Vec<u8> {
        let sum = |bits: usize| (0..basis.len()).fold(0, |sum, i| sum ^ (basis[i] * (bits >> i & 1) as u8));
        (0..1 << basis.len()).map(sum).collect()
    }

    fn padded(cells: &[u8]) -> Vec<u8> {
        let mut row = cells.to_vec();
        row.resize(cells.len().next_multiple_of(MAX_CELLS), 0);
        row
    }

    #[test]
    fn cells_come_back_from_as_few_bits_as_they_have() {
        for (packed, basis) in
            [(&BYTES, &[1, 2, 4, 8, 16, 32, 64, 128][..]), (&NIBBLES, &GF16), (&PAIRS, &GF4)]
        {
            for len in 0..70 {
                let cells: Vec<u8> = field(basis).into_iter().cycle().skip(len).take(len).collect();
                let mut bytes = vec![0xa5; packed.bytes(len)];
                assert_eq!(bytes.len(), (len * basis.len()).div_ceil(8));
                packed.pack(&mut bytes, &padded(&cells));
                let bits: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
                let mut row = vec![0xa5; padded(&cells).len()];
                packed.unpack(&mut row, &bytes);
                assert_eq!(row[..len], cells);
                assert!(row[len..packed.bytes(len) * packed.cells].iter().all(|spare| *spare == 0));
                assert!(bits as usize <= len * basis.len());
            }
        }
    }

    #[test]
    fn coordinates_of_shares_add_up_wherever_the_shares_lie() {
        for (packed, basis) in [(&NIBBLES, &GF16[..]), (&PAIRS, &GF4)] {
            for cell in field(basis) {
                for share in 0..=255 {
                    let parts = [share, share ^ cell].map(|part| {
                        let mut byte = [0];
                        packed.pack(&mut byte, &[part, 0, 0, 0]);
                        byte[0]
                    });
                    let mut row = [0; 4];
                    packed.unpack(&mut row, &[parts[0] ^ parts[1]]);
                    assert_eq!(row[0], cell);
                }
            }
        }
    }

    #[test]
    fn every_byte_unpacks_to_cells_of_the_field_and_back_to_itself() {
        for (packed, basis) in [(&NIBBLES, &GF16[..]), (&PAIRS, &GF4)] {
            for byte in 0..=255 {
                let (mut row, mut back) = ([0; 4], [0]);
                packed.unpack(&mut row, &[byte]);
                assert!(row.iter().all(|cell| field(basis).contains(cell)));
                packed.pack(&mut back, &row);
                assert_eq!(back, [byte]);
            }
        }
    }
}
