//! Kernels, on rows of secrets.

use std::hint::black_box;

use polyclave_kernels::aes_hash::AesHash;
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::aes_sum::AesSum;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::bit_transpose::columns_to_blocks;
use polyclave_kernels::fold::fold;
use polyclave_kernels::label_hash::{Halves, Label, LabelHash, Negated, Tweak};
use polyclave_kernels::label_sums::sum_within;
use polyclave_kernels::leaf_streams::LeafStreams;
use polyclave_kernels::planes::{self, Factors, PlaneMap, Planes, TILE_BYTES, Terms, add_products};
use polyclave_kernels::secret::mask;
use polyclave_kernels::transpose::{blocks_to_rows, rows_to_blocks};
use polyclave_kernels::unit_sums::Sums;
use polyclave_kernels::{gf128, gf256, label_hash};

use crate::{Subject, secrets};

/// More than any register holds, and no whole number of them.
const LEN: usize = 333;
/// Gates: more than are worked on at once.
const GATES: usize = 21;

pub const SUBJECTS: &[Subject] = &[
    ("kernel: linear maps of bytes", affine),
    ("kernel: products in GF(2^8)", products_of_bytes),
    ("kernel: products in GF(2^128)", products_of_blocks),
    ("kernel: planes", bits_in_planes),
    ("kernel: streams and hashes by AES", aes),
    ("kernel: transposes", transposes),
    ("kernel: sums of rows", sums),
    ("kernel: half gates", half_gates),
    ("kernel: three halves", three_halves),
];

fn affine() {
    let (mut to, from) = (secrets::bytes(LEN), secrets::bytes(LEN));
    let maps = [Map::new([0x1f, 0x3e, 0x7c, 0xf8, 0xf1, 0xe3, 0xc7, 0x8f]), Map::identity()];
    combine(&mut to, &maps.each_ref().map(|map| Term { src: &from, map }), 0x63);
    to.iter().for_each(|byte| _ = black_box(maps[0].apply(*byte)));
    black_box(mask(to[0]));
}

fn products_of_bytes() {
    let mut to = vec![0; LEN];
    gf256::multiply(&mut to, &secrets::bytes(LEN), &secrets::bytes(LEN));
    black_box(to);
}

fn bits_in_planes() {
    let bytes = || secrets::bytes(8 * LEN);
    let (x, y, mut cells) = ([bytes(), bytes()], [bytes(), bytes()], bytes());
    let [x, y] = [&x, &y].map(|both| both.each_ref().map(|bytes| Planes { bytes, stride: LEN }));
    for factors in Factors::ALL {
        for terms in [Terms::Contributed, Terms::Mixed, Terms::Second] {
            let mut sum = vec![0; factors.planes()[0] * LEN];
            add_products(factors, terms, &mut sum, x, y);
            black_box(sum);
        }
    }
    planes::join(x[0].bytes, LEN, 8, &mut cells);
    let mut split = vec![0; cells.len()];
    planes::split(&cells, 8, &mut split, LEN);
    let mut sums = vec![0; 5 * TILE_BYTES];
    PlaneMap::new(5, &[0b10110; 20]).apply(&split[..20 * TILE_BYTES], &mut sums);
    black_box(sums);
}

fn products_of_blocks() {
    let [a, b] = [0, 1].map(|_| secrets::bytes(16 * 21));
    let mut to = vec![0; a.len()];
    gf128::multiply(&mut to, &a, &b);
    gf128::scale_add(&mut to, &a, &secrets::block());
    gf128::weighted_sums(&mut to[..16], &a, &b);
    black_box(to);
}

fn aes() {
    let key = secrets::block();
    let mut bytes = vec![0; LEN];
    AesPrg::new(&key, 3).fill(&mut bytes);
    let mut blocks: Vec<u128> = bytes.as_chunks().0.iter().map(|block| u128::from_le_bytes(*block)).collect();
    AesHash::new(&key).hash(5, &mut blocks);
    let sum = AesSum::new(&key);
    sum.hash_each(&mut blocks);
    black_box(sum.of(&blocks));
}

fn transposes() {
    let columns = secrets::bytes(128 * 16);
    let mut blocks = vec![0_u128; 123];
    columns_to_blocks(&columns, 16, 128, &mut blocks);
    let mut words = vec![0_u64; 123];
    columns_to_blocks(&columns, 16, 64, &mut words);
    black_box(words);
    for width in [8, 16, 5] {
        let lanes = 37;
        let blocks = secrets::bytes(width * lanes);
        let (mut rows, mut back) = (vec![0; width * lanes], vec![0; width * lanes]);
        blocks_to_rows(&blocks, width, &mut rows, lanes);
        rows_to_blocks(&rows, lanes, width, &mut back);
        black_box(back);
    }
    black_box(blocks);
}

fn sums() {
    let (mut rows, mut columns, mut sum) = (secrets::bytes(16 * 48), vec![0; 4 * 48], vec![0; 48]);
    fold(&mut rows, &mut columns, &mut sum);
    let keys: Vec<[u8; 16]> = (0..16).map(|_| secrets::block()).collect();
    LeafStreams::new(&[4], &keys, false).receive(0, &secrets::bytes(48), &mut columns, &mut sum);
    let delta: Vec<u8> = secrets::bytes(4).into_iter().map(mask).collect();
    LeafStreams::new(&[4], &keys, true).send(0, &sum, &delta, &mut columns);
    let mut arena = secrets::bytes(16 * 12);
    sum_within(&mut arena, 0, 16 * 3, &[16 * 3, 16 * 6], &secrets::block());
    let table: Vec<u8> = (0..16_u8).map(|x| x.wrapping_mul(7) & 15).collect();
    let mut of_bits = vec![vec![0_u64; 3]; 4];
    let mut of_bits: Vec<&mut [u64]> = of_bits.iter_mut().map(Vec::as_mut_slice).collect();
    Sums::<u64>::new(&table, 4).add_up(&secrets::bytes(3 * 16 * 8), 8, &[1, 7, 12], &mut of_bits);
    black_box((columns, sum, arena, of_bits.len()));
}

const NEGATED: [Negated; 2] =
    [Negated { a: false, b: false, c: false }, Negated { a: true, b: false, c: true }];

fn labels(count: usize) -> Vec<Label> {
    secrets::bytes(16 * count).as_chunks().0.to_vec()
}

fn delta() -> Label {
    let mut delta = secrets::block();
    delta[0] |= 1;
    delta
}

fn half_gates() {
    let mut hash = LabelHash::new(&secrets::block());
    let mut single = labels(GATES);
    hash.hash(9, &mut single);
    hash.hash_gates(9, Tweak::Second, 4, &mut single[..20]);
    for negated in NEGATED {
        let [a, b] = [labels(GATES), labels(GATES)];
        let [mut c, mut garbler, mut evaluator] = [0; 3].map(|_| vec![[0; 16]; GATES]);
        let halves = Halves { garbler: &mut garbler[..], evaluator: &mut evaluator[..] };
        hash.garble(7, &delta(), negated, [&a, &b], &mut c, halves);
        let halves = Halves { garbler: &garbler[..], evaluator: &evaluator[..] };
        hash.evaluate(7, [&a, &b], &mut c, halves);
        black_box(c);
    }
}

fn three_halves() {
    let mut hash = LabelHash::new(&secrets::block());
    for negated in NEGATED {
        let [a, b] = [labels(GATES), labels(GATES)];
        let mut c = vec![[0; 16]; GATES];
        let mut sent = vec![0; GATES * label_hash::three_halves::BYTES];
        hash.garble_three_halves(7, &delta(), negated, [&a, &b], &mut c, &secrets::bytes(GATES), &mut sent);
        hash.evaluate_three_halves(7, [&a, &b], &mut c, &sent);
        black_box(c);
    }
}
