use polyclave_field::Gf256;
use polyclave_field::subfields::{coordinates, element};

use super::*;

fn noise(seed: usize, len: usize) -> Vec<u8> {
    let mut x = seed as u64 * 2 + 1;
    let mut next = || {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (x >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Cells of so many bits as planes that follow each other.
fn planes(cells: &[u8], bits: usize, stride: usize) -> Vec<u8> {
    let mut planes = vec![0xa5; bits * stride];
    split(cells, bits, &mut planes, stride);
    planes
}

fn all(factors: Factors, terms: Terms, cells: usize) {
    let [of_x, of_y] = factors.planes();
    let cell = |seed, bits: usize| -> Vec<u8> {
        noise(seed, cells).into_iter().map(|x| x & (0xff >> (8 - bits))).collect()
    };
    let (x, y) = ([1, 2].map(|s| cell(s, of_x)), [3, 4].map(|s| cell(s, of_y)));
    let before = cell(5, of_x);
    let product = |a: u8, b: u8| coordinates(element(a) * element(b));
    let expected: Vec<u8> = (0..cells)
        .map(|j| {
            let ([x0, x1], [y0, y1]) = ([x[0][j], x[1][j]], [y[0][j], y[1][j]]);
            before[j]
                ^ match terms {
                    Terms::Contributed => product(x0, y0 ^ y1) ^ product(x1, y0),
                    Terms::Mixed => product(x0, y1) ^ product(x1, y0),
                    Terms::Second => product(x1, y1),
                }
        })
        .collect();
    let len = cells.div_ceil(8);
    let stride = len + 3;
    let (x, y) = (x.map(|x| planes(&x, of_x, stride)), y.map(|y| planes(&y, of_y, stride)));
    let [x, y] = [&x, &y].map(|both| both.each_ref().map(|bytes| Planes { bytes, stride }));
    for isa in Isa::available() {
        let mut sum = planes(&before, of_x, len);
        add_products_with(isa, factors, terms, &mut sum, [x, y]);
        let mut cells = vec![0; cells];
        join(&sum, len, of_x, &mut cells);
        assert_eq!(cells, expected, "{factors:?}, {terms:?}, {isa:?}");
    }
}

#[test]
fn products_of_shares_are_those_of_elements_in_every_field() {
    for factors in Factors::ALL {
        for cells in [1, 7, 8, 9, 63, 64, 65, 255, 256, 511, 512, 513, 1000, 1600] {
            for terms in [Terms::Contributed, Terms::Mixed, Terms::Second] {
                all(factors, terms, cells);
            }
        }
    }
}

#[test]
fn cells_come_back_from_planes_and_bits_beyond_their_width_do_not() {
    for (bits, cells) in [(8, 40), (8, 41), (1, 9), (3, 17), (6, 0), (8, 64), (5, 131), (1, 32)] {
        let values = noise(bits, cells);
        let stride = cells.div_ceil(8) + 1;
        let split = planes(&values, bits, stride);
        for (i, plane) in split.chunks(stride).enumerate() {
            for (j, value) in values.iter().enumerate() {
                assert_eq!(plane[j / 8] >> (j % 8) & 1, value >> i & 1);
            }
        }
        let mut portable = vec![0xa5; split.len()];
        cells::split_with(Isa::Portable, &values, bits, &mut portable, stride);
        assert_eq!(portable, split);
        for isa in [Isa::Portable, Isa::best()] {
            let mut back = vec![0xff; cells];
            cells::join_with(isa, &split, stride, bits, &mut back);
            assert!(back.iter().zip(&values).all(|(back, value)| *back == value & (0xff >> (8 - bits))));
        }
    }
}

#[test]
fn the_fields_are_those_of_the_formulas() {
    let [mu, zeta, omega] = [element(2), element(4), element(16)];
    assert_eq!((mu * mu, zeta * zeta), (mu + Gf256::ONE, zeta + mu));
    assert_eq!(omega * omega, omega + Gf256(polyclave_field::subfields::NU));
}

/// Any number of inputs and outputs, bit by bit.
#[test]
fn a_map_sums_the_planes_that_its_matrix_says() {
    for (ins, outs, tiles) in [
        (1, 1, 1),
        (3, 64, 2),
        (4, 28, 7),
        (8, 7, 1),
        (9, 20, 2),
        (16, 28, 7),
        (31, 13, 3),
        (64, 64, 1),
        (65, 64, 2),
        (480, 63, 1),
    ] {
        let len = tiles * TILE_BYTES;
        let word = |seed: usize| u64::from_le_bytes(noise(seed, 8).try_into().expect("8 bytes"));
        let images: Vec<u64> = (0..ins).map(|i| word(i) & (u64::MAX >> (64 - outs))).collect();
        let planes = noise(1000, ins * len);
        let mut expected = vec![0; outs * len];
        for (plane, image) in planes.chunks(len).zip(&images) {
            for (out, sum) in expected.chunks_mut(len).enumerate() {
                if image >> out & 1 == 1 {
                    sum.iter_mut().zip(plane).for_each(|(sum, byte)| *sum ^= byte);
                }
            }
        }
        let map = PlaneMap::new(outs, &images);
        for isa in Isa::available() {
            let mut sums = vec![0xa5; outs * len];
            map.apply_with(isa, &planes, &mut sums);
            assert!(sums == expected, "{ins} to {outs}, {isa:?}");
        }
    }
}

#[test]
fn a_map_of_nothing_is_zero() {
    let mut outs = [0xa5; 2 * TILE_BYTES];
    PlaneMap::new(2, &[]).apply(&[], &mut outs[..0]);
    PlaneMap::new(2, &[0]).apply(&[0xff; TILE_BYTES], &mut outs);
    assert_eq!(outs, [0; 2 * TILE_BYTES]);
}

#[test]
fn planes_that_are_no_number_of_tiles_are_refused() {
    let map = PlaneMap::new(1, &[1, 1]);
    for (ins, outs) in [(2 * TILE_BYTES, 2 * TILE_BYTES), (TILE_BYTES, TILE_BYTES / 2), (2, 1), (0, 1)] {
        let call = || map.apply(&vec![0; ins], &mut vec![0; outs]);
        assert!(std::panic::catch_unwind(call).is_err(), "{ins}, {outs}");
    }
}
