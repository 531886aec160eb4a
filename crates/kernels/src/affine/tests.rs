//! Every implementation against the definition, and the instruction operands against their manual.

use super::*;

/// The definition, bit by bit.
fn image(columns: [u8; 8], x: u8) -> u8 {
    (0..8).filter(|bit| x >> bit & 1 == 1).fold(0, |sum, bit| sum ^ columns[bit])
}

/// Bytes without structure: the top bytes of Knuth's linear congruential sequence.
fn bytes(seed: u64) -> impl Iterator<Item = u8> {
    core::iter::successors(Some(seed), |x| {
        Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    })
    .skip(2)
    .map(|x| (x >> 56) as u8)
}

/// The zero map, the identity, single-bit maps and maps without structure.
fn maps() -> Vec<Map> {
    let mut columns = vec![[0; 8], IDENTITY];
    for place in 0..64 {
        let mut single = [0; 8];
        single[place / 8] = 1 << (place % 8);
        columns.push(single);
    }
    let mut source = bytes(1);
    for _ in 0..64 {
        columns.push(core::array::from_fn(|_| source.next().unwrap()));
    }
    columns.into_iter().map(Map::new).collect()
}

#[test]
fn a_map_sends_every_byte_to_the_sum_of_its_columns() {
    for map in maps() {
        for x in 0..=255 {
            assert_eq!(map.apply(x), image(map.columns(), x));
        }
    }
}

#[test]
fn the_identity_and_nothing_else_is_recognised() {
    assert!(Map::identity().is_identity());
    assert_eq!(maps().iter().filter(|map| map.is_identity()).count(), 1);
    for x in 0..=255 {
        assert_eq!(Map::identity().apply(x), x);
    }
}

#[test]
fn every_implementation_maps_all_bytes_by_many_maps() {
    let all: Vec<u8> = (0..=255).collect();
    for isa in Isa::available() {
        for map in maps() {
            let mut dst = [0; 256];
            combine_with(isa, &mut dst, &[Term { src: &all, map: &map }], 0);
            for x in 0..=255 {
                assert_eq!(dst[x as usize], image(map.columns(), x), "{isa:?} {x}");
            }
        }
    }
}

#[test]
fn every_implementation_combines_any_length_at_any_offset() {
    let maps = maps();
    let source: Vec<u8> = bytes(2).take(4096).collect();
    // The second term of every sum is the identity, maps[1].
    let places: [(usize, usize); 10] =
        [(70, 0), (1, 501), (71, 1002), (0, 1503), (72, 3), (73, 4), (74, 5), (75, 6), (76, 7), (77, 8)];
    for isa in Isa::available() {
        for count in [0, 1, 2, 3, 10] {
            for len in (0..200).chain([255, 256, 257, 511, 640, 777]) {
                for offset in [0, 1, 7] {
                    let terms: Vec<Term<'_>> = places[..count]
                        .iter()
                        .map(|&(map, at)| Term { src: &source[at..at + len], map: &maps[map] })
                        .collect();
                    let mut dst = vec![0xa5; offset + len + 3];
                    combine_with(isa, &mut dst[offset..offset + len], &terms, 0x63);
                    for i in 0..len {
                        let sum = terms.iter().fold(0x63, |sum, t| sum ^ image(t.map.columns(), t.src[i]));
                        assert_eq!(dst[offset + i], sum, "{isa:?}, {count} terms, {len} bytes, byte {i}");
                    }
                    assert!(dst[..offset].iter().chain(&dst[offset + len..]).all(|&byte| byte == 0xa5));
                }
            }
        }
    }
}

#[test]
fn within_an_arena_the_sum_is_that_of_separate_buffers() {
    let maps = maps();
    let arena: Vec<u8> = bytes(3).take(1000).collect();
    let (dst, len) = (400, 100);
    // Sources that touch the destination on both sides, equal each other and reach both ends.
    let starts = [300, 500, 0, 900, 300, 37, 601, 777, 250, 850, 123];
    for count in [0, 1, 3, 8, 9, 11] {
        let operands: Vec<(usize, &Map)> = starts[..count].iter().copied().zip(&maps[66..]).collect();
        let terms: Vec<Term<'_>> =
            operands.iter().map(|&(start, map)| Term { src: &arena[start..start + len], map }).collect();
        let mut expected = arena.clone();
        combine(&mut expected[dst..dst + len], &terms, 9);
        let mut found = arena.clone();
        combine_within(&mut found, dst, len, &operands, 9);
        assert_eq!(found, expected);
    }
}

#[test]
fn overlapping_or_outlying_operands_panic() {
    let map = Map::identity();
    for (dst, len, start) in
        [(40, 10, 31), (40, 10, 40), (40, 10, 49), (40, 10, 91), (40, 10, 101), (91, 10, 0), (101, 0, 0)]
    {
        let call = || combine_within(&mut [0; 100], dst, len, &[(start, &map)], 0);
        assert!(std::panic::catch_unwind(call).is_err(), "{dst} {len} {start}");
    }
    for (dst, len, start) in [(40, 10, 30), (40, 10, 50), (40, 10, 90), (40, 0, 40), (100, 0, 100)] {
        combine_within(&mut [0; 100], dst, len, &[(start, &map)], 0);
    }
}

#[test]
#[should_panic(expected = "another length")]
fn a_source_of_another_length_panics() {
    combine(&mut [0; 4], &[Term { src: &[0; 5], map: &Map::identity() }], 0);
}

/// `affine_byte` of GF2P8AFFINEQB in the Intel SDM, volume 2: bit `i` of the result is the parity of
/// (byte `7 - i` of the quadword) AND the operand, XOR bit `i` of the immediate, here zero.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_quadword_makes_gf2p8affineqb_the_map() {
    fn affine_byte(quadword: u64, operand: u8) -> u8 {
        (0..8).fold(0, |result, i| {
            let row = quadword.to_le_bytes()[7 - i];
            result | (((row & operand).count_ones() as u8 & 1) << i)
        })
    }
    // The identity is the constant known from the literature on the instruction.
    assert_eq!(Map::identity().matrix, 0x0102_0408_1020_4080);
    for map in maps() {
        for x in 0..=255 {
            assert_eq!(affine_byte(map.matrix, x), map.apply(x));
        }
    }
}
