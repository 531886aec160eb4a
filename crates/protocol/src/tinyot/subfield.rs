//! The subfields GF(2), GF(4), GF(16) of F = GF(2^8), the field of AES: bases, and coordinates on the wire.
//!
//! An element of a subfield is kept as a cell, a byte of F. On the wire it has as many bits as its field: its
//! coordinates in a basis. Both directions are GF(2)-linear maps, so shares are sent in the same way as
//! values.

use std::sync::LazyLock;

use polyclave_cipher::Matrix;
use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::affine::{self, Map, Term};

use polyclave_field::subfields;

/// A subfield of F and a basis of it over GF(2), whose first element is 1.
pub(crate) struct Subfield {
    bits: usize,
    basis: Vec<u8>,
    /// The basis in the field of MACs.
    words: Vec<u64>,
    square_words: Vec<u64>,
    from_coordinates: Map,
    to_coordinates: Map,
    /// From a bit, 0 or 1, to the bit times each element of the basis.
    places: Vec<Map>,
}

/// GF(2).
pub(crate) static BIT: LazyLock<Subfield> = LazyLock::new(|| Subfield::of(&[1]));
/// GF(4).
pub(crate) static GF4: LazyLock<Subfield> = LazyLock::new(|| Subfield::of(&subfields::GF4));
/// GF(16).
pub(crate) static GF16: LazyLock<Subfield> = LazyLock::new(|| Subfield::of(&subfields::GF16));
/// F itself.
pub(crate) static BYTE: LazyLock<Subfield> = LazyLock::new(|| Subfield::of(&[1, 2, 4, 8, 16, 32, 64, 128]));

impl Subfield {
    /// The one that this basis spans.
    fn of(basis: &[u8]) -> Subfield {
        let (degree, basis) = (basis.len(), basis.to_vec());
        // Coordinates of all of F, in a basis that begins with this one; those beyond are dropped.
        let whole = Matrix::from_columns(&completed(basis.clone()), 8);
        let inverse = whole.inverse().expect("the columns are a basis");
        let spare = (1_u16 << degree).wrapping_sub(1) as u8;
        let mut columns = [0; 8];
        columns[..degree].copy_from_slice(&basis);
        Subfield {
            bits: degree,
            square_words: basis.iter().map(|x| Gf2_64::embed(Matrix::frobenius(1).apply(*x))).collect(),
            words: basis.iter().map(|x| Gf2_64::embed(*x)).collect(),
            places: basis.iter().map(|x| Map::new([*x, 0, 0, 0, 0, 0, 0, 0])).collect(),
            basis,
            from_coordinates: Map::new(columns),
            to_coordinates: Map::new(inverse.columns().map(|column| column & spare)),
        }
    }

    /// The degree over GF(2).
    pub(crate) fn bits(&self) -> usize {
        self.bits
    }

    /// The basis.
    pub(crate) fn basis(&self) -> &[u8] {
        &self.basis
    }

    /// The basis in the field of MACs.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The squares of the basis in the field of MACs.
    pub(crate) fn square_words(&self) -> &[u64] {
        &self.square_words
    }

    /// From a bit, 0 or 1, to the bit times each element of the basis.
    pub(crate) fn places(&self) -> &[Map] {
        &self.places
    }

    /// The element of these coordinates times a constant.
    pub(crate) fn times(&self, constant: u8) -> Map {
        let product = Matrix::scalar(constant);
        Map::new(self.from_coordinates.columns().map(|x| product.apply(x)))
    }

    /// Sets a row to the coordinates of elements.
    pub(crate) fn coordinates(&self, row: &mut [u8], elements: &[u8]) {
        affine::combine(row, &[Term { src: elements, map: &self.to_coordinates }], 0);
    }

    /// Sets a row to the elements of coordinates.
    pub(crate) fn elements(&self, row: &mut [u8], coordinates: &[u8]) {
        affine::combine(row, &[Term { src: coordinates, map: &self.from_coordinates }], 0);
    }

    /// Bytes of this many elements on the wire.
    pub(crate) fn packed_bytes(&self, count: usize) -> usize {
        (count * self.bits).div_ceil(8)
    }

    /// Writes coordinates, the first in the lowest bits of a byte.
    pub(crate) fn pack(&self, coordinates: &[u8], packed: &mut [u8]) {
        match self.bits {
            1 => pack::<8>(coordinates, packed),
            2 => pack::<4>(coordinates, packed),
            4 => pack::<2>(coordinates, packed),
            _ => packed.copy_from_slice(coordinates),
        }
    }

    /// Reads coordinates; bits beyond the last are ignored.
    pub(crate) fn unpack(&self, packed: &[u8], coordinates: &mut [u8]) {
        match self.bits {
            1 => unpack::<8>(packed, coordinates),
            2 => unpack::<4>(packed, coordinates),
            4 => unpack::<2>(packed, coordinates),
            _ => coordinates.copy_from_slice(packed),
        }
    }
}

/// Some vectors, and the least others that make a basis of all bytes with them.
fn completed(mut vectors: Vec<u8>) -> Vec<u8> {
    let spans = |vectors: &[u8], x: u8| {
        let sum = |some: usize| {
            let chosen = vectors.iter().enumerate().filter(|(i, _)| some >> i & 1 == 1);
            chosen.fold(0, |sum, (_, vector)| sum ^ vector)
        };
        (0..1_usize << vectors.len()).any(|some| sum(some) == x)
    };
    for x in 1..=u8::MAX {
        if !spans(&vectors, x) {
            vectors.push(x);
        }
    }
    vectors
}

/// `EACH` coordinates to a byte.
fn pack<const EACH: usize>(coordinates: &[u8], packed: &mut [u8]) {
    let join = |few: &[u8]| few.iter().rev().fold(0, |byte, x| byte << (8 / EACH) | x);
    let (whole, rest) = coordinates.as_chunks::<EACH>();
    packed.iter_mut().zip(whole).for_each(|(byte, few)| *byte = join(few));
    if !rest.is_empty() {
        packed[whole.len()] = join(rest);
    }
}

fn unpack<const EACH: usize>(packed: &[u8], coordinates: &mut [u8]) {
    let mask = u8::MAX >> (8 - 8 / EACH);
    for (few, byte) in coordinates.chunks_mut(EACH).zip(packed) {
        few.iter_mut().enumerate().for_each(|(i, x)| *x = byte >> (i * (8 / EACH)) & mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_those_of_elements_of_the_subfield() {
        for (field, elements) in [(&BIT, 2), (&GF4, 4), (&GF16, 16), (&BYTE, 256)] {
            let frobenius = Matrix::frobenius(field.bits() as u32);
            let all: Vec<u8> = (0..=(elements - 1) as u8).collect();
            let mut of = vec![0; all.len()];
            field.elements(&mut of, &all);
            assert!(field.bits() == 8 || of.iter().all(|x| frobenius.apply(*x) == *x));
            let mut back = vec![0; all.len()];
            field.coordinates(&mut back, &of);
            assert_eq!(back, all);
            assert_eq!(field.basis()[0], 1);
            of.sort_unstable();
            of.dedup();
            assert_eq!(of.len(), elements);
        }
    }

    #[test]
    fn packed_coordinates_come_back() {
        for field in [&BIT, &GF4, &GF16, &BYTE] {
            for count in [0, 1, 7, 8, 33] {
                let all: Vec<u8> =
                    (0..count).map(|i| (i * 37 + 11) as u8 & (u8::MAX >> (8 - field.bits()))).collect();
                let mut packed = vec![0xff; field.packed_bytes(count)];
                field.pack(&all, &mut packed);
                let mut back = vec![0xff; count];
                field.unpack(&packed, &mut back);
                assert_eq!(back, all, "{} bits, {count}", field.bits());
                // Bits beyond the last one change nothing: an opening that has them says the same.
                let spare = 8 * packed.len() - count * field.bits();
                if spare > 0 {
                    *packed.last_mut().expect("there are spare bits in it") |= u8::MAX << (8 - spare);
                    field.unpack(&packed, &mut back);
                    assert_eq!(back, all, "{} bits, {count}, spare ones set", field.bits());
                }
            }
        }
    }
}
