//! Throughput of every kernel, in bytes of its result, for words in elements.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, Gf2_128, MacField, Word};
use polyclave_kernels::aes_hash::AesHash;
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::affine::{Map, combine_within};
use polyclave_kernels::bit_transpose::columns_to_blocks;
use polyclave_kernels::column_words::add_words;
use polyclave_kernels::gf128::weighted_sums;
use polyclave_kernels::gf256::multiply;
use polyclave_kernels::label_hash::{Halves, LabelHash, Negated, three_halves};
use polyclave_kernels::label_sums::sum_within;
use polyclave_kernels::leaf_streams::LeafStreams;
use polyclave_kernels::transpose::{blocks_to_rows, rows_to_blocks};
use polyclave_kernels::unit_sums::Sums;

/// From first-level cache to third-level cache.
const LENGTHS: [usize; 3] = [1 << 10, 1 << 14, 200_000];

fn bench_combine(criterion: &mut Criterion) {
    // Multiplication by x: any map but the identity costs the same.
    let doubling = Map::new([2, 4, 8, 16, 32, 64, 128, 0x1b]);
    let identity = Map::identity();
    for (name, map) in [("combine/doubling", &doubling), ("combine/identity", &identity)] {
        let mut group = criterion.benchmark_group(name);
        for len in LENGTHS {
            group.throughput(Throughput::Bytes(len as u64));
            for count in [2, 4, 8] {
                let mut arena = vec![0x5a; len * (count + 1)];
                let terms: Vec<(usize, &Map)> = (1..=count).map(|k| (k * len, map)).collect();
                group.bench_function(format!("{count} terms/{len}"), |bencher| {
                    bencher.iter(|| combine_within(black_box(&mut arena), 0, len, black_box(&terms), 0x63))
                });
            }
        }
    }
}

fn bench_multiply(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("multiply");
    for len in LENGTHS {
        let (a, b, mut product) = (vec![0x57; len], vec![0x83; len], vec![0; len]);
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(len.to_string(), |bencher| {
            bencher.iter(|| multiply(black_box(&mut product), black_box(&a), black_box(&b)))
        });
    }
}

fn bench_weighted_sums(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("weighted sums in GF(2^128)");
    for sums in [1, 8, 128] {
        let (weights, elements) = (vec![0x57; sums * 2048], vec![0x83; 2048]);
        let mut dst = vec![0; sums * 16];
        group.throughput(Throughput::Bytes(weights.len() as u64));
        group.bench_function(sums.to_string(), |bencher| {
            bencher.iter(|| weighted_sums(black_box(&mut dst), black_box(&weights), black_box(&elements)))
        });
    }
}

/// One S-box of DES, 256 lookups at once and out of the first cache.
fn bench_unit_sums(criterion: &mut Criterion) {
    let table: Vec<u8> = (0..64u32).map(|x| ((x * 37) >> 2 & 15) as u8).collect();
    let h: Vec<u8> = (0..256).map(|i| (i * 29 % 64) as u8).collect();
    let (vectors, mut sums) = (vec![0x57; 64 * 8 * h.len()], vec![vec![0u64; h.len()]; 4]);
    let kernel = Sums::new(&table, 4);
    let mut group = criterion.benchmark_group("sums of unit vectors");
    group.throughput(Throughput::Elements(h.len() as u64));
    for width in [5, 8] {
        let vectors = &vectors[..64 * width * h.len()];
        group.bench_function(format!("6 to 4 bits, entries of {width} bytes"), |bencher| {
            bencher.iter(|| {
                let mut sums: Vec<&mut [u64]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
                kernel.add_up(black_box(vectors), width, black_box(&h), black_box(&mut sums));
            })
        });
    }
}

/// Through the fields of the field crate, which add nothing but the choice of maps and moduli.
fn bench_words<F: MacField>(criterion: &mut Criterion) {
    for len in [64, 1024, 4096] {
        let mut group = criterion.benchmark_group(format!("{}/{len}", F::NAME));
        group.throughput(Throughput::Elements(len as u64));
        let cells: Vec<u8> = (0..len).map(|i| (i * 37) as u8 & (u8::MAX >> (8 - F::CELL_BITS))).collect();
        let factor = F::embed(7).shift_left(1);
        let row: Vec<F::Word> = cells.iter().map(|cell| F::multiply(factor, F::embed(*cell))).collect();
        let rows = vec![row.clone(); 8];
        let (mut dst, mut projected, mut bytes) = (row.clone(), cells.clone(), vec![0; len * F::BYTES]);
        for (kind, factor) in [("factors", factor), ("ones", F::Word::ONE)] {
            for count in [2, 4, 8] {
                let terms: Vec<(&[F::Word], F::Word)> =
                    rows[..count].iter().map(|row| (&row[..], factor)).collect();
                group.bench_function(format!("combine/{count} {kind}"), |bencher| {
                    bencher.iter(|| F::combine(black_box(&mut dst), black_box(&terms), black_box(factor)))
                });
            }
        }
        group.bench_function("multiply", |bencher| {
            bencher.iter(|| F::multiply_rows(black_box(&mut dst), black_box(&row), black_box(&rows[0])))
        });
        group.bench_function("inner product", |bencher| {
            bencher.iter(|| F::inner_product(black_box(&row), black_box(&rows[0])))
        });
        group.bench_function("embedded inner product", |bencher| {
            bencher.iter(|| F::embedded_inner_product(black_box(&row), black_box(&cells)))
        });
        group.bench_function("embed", |bencher| {
            bencher.iter(|| F::embed_row(black_box(&mut dst), black_box(&cells)))
        });
        group.bench_function("project", |bencher| {
            bencher.iter(|| F::project_row(black_box(&mut projected), black_box(&row)))
        });
        group.bench_function("write", |bencher| {
            bencher.iter(|| F::write_row(black_box(&row), black_box(&mut bytes)))
        });
        group.bench_function("read", |bencher| {
            bencher.iter(|| F::read_row(black_box(&bytes), black_box(&mut dst)))
        });
    }
}

fn bench_prg(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("prg");
    for len in LENGTHS {
        let (mut prg, mut out) = (AesPrg::new(&[7; 16], 1), vec![0; len]);
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(len.to_string(), |bencher| bencher.iter(|| prg.fill(black_box(&mut out))));
    }
}

fn bench_transpose(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transpose");
    for width in [8, 12, 16] {
        // Strides that are a power of two put all rows into the same cache sets.
        for lanes in [1 << 10, 4096, 10_000] {
            let (mut blocks, mut rows) = (vec![1; lanes * width], vec![2; lanes * width]);
            group.throughput(Throughput::Bytes(blocks.len() as u64));
            group.bench_function(format!("blocks to rows/width {width}/{lanes}"), |bencher| {
                bencher.iter(|| blocks_to_rows(black_box(&blocks), width, black_box(&mut rows), lanes))
            });
            group.bench_function(format!("rows to blocks/width {width}/{lanes}"), |bencher| {
                bencher.iter(|| rows_to_blocks(black_box(&rows), lanes, width, black_box(&mut blocks)))
            });
        }
    }
}

fn bench_blocks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("blocks of transfers");
    let (mut columns, mut blocks) = (vec![0x5a; 128 * 1024], vec![0_u128; 8192]);
    let (mut words, mut correction, mut sums) = (vec![0_u64; 8192], vec![0; 1024], vec![0; 128 * 16]);
    group.throughput(Throughput::Elements(8192));
    for depth in [1, 2, 4, 8] {
        let trees = 128 / depth;
        let mut streams = LeafStreams::new(&vec![depth; trees], &vec![[7; 16]; trees << depth], false);
        group.bench_function(format!("128 columns of trees of depth {depth}"), |bencher| {
            bencher.iter(|| {
                for (tree, columns) in columns.chunks_exact_mut(depth * 1024).enumerate() {
                    streams.receive(tree, black_box(&[0x5a; 1024]), columns, &mut correction);
                }
            })
        });
    }
    group.bench_function("hashes of 128 columns", |bencher| {
        bencher.iter(|| weighted_sums(black_box(&mut sums), black_box(&columns), &[0x83; 1024]))
    });
    group.bench_function("64 columns to words", |bencher| {
        bencher.iter(|| columns_to_blocks(black_box(&columns), 1024, 64, black_box(&mut words)))
    });
    group.bench_function("64 columns of words of 32 bits to elements", |bencher| {
        bencher.iter(|| add_words::<Gf2_64>(black_box(&columns), 1024, 32, black_box(&mut words[..256])))
    });
    for count in [40, 64, 128] {
        group.bench_function(format!("{count} columns to blocks"), |bencher| {
            bencher.iter(|| columns_to_blocks(black_box(&columns), 1024, count, black_box(&mut blocks)))
        });
    }
    let hash = AesHash::new(&[7; 16]);
    group.bench_function("hash", |bencher| bencher.iter(|| hash.hash(1, black_box(&mut blocks))));
}

fn bench_three_halves(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("three halves");
    for lanes in [1, 8, 64, 256] {
        let gates = 8192 / lanes;
        group.throughput(Throughput::Elements((gates * lanes) as u64));
        let labels = |byte| vec![[byte; 16]; lanes];
        let (a, b, mut c, delta) = (labels(1), labels(2), labels(0), [3; 16]);
        let (coins, mut sent) = (vec![0; lanes], vec![4; lanes * three_halves::BYTES]);
        group.bench_function(format!("garbling/{lanes}"), |bencher| {
            bencher.iter(|| {
                let mut hash = LabelHash::new(&[7; 16]);
                for gate in 0..gates {
                    let (first, operands) = ((gate * lanes) as u64, [black_box(&a[..]), &b[..]]);
                    let (c, not) = (black_box(&mut c), Negated::default());
                    hash.garble_three_halves(first, &delta, not, operands, c, &coins, &mut sent);
                }
            })
        });
        group.bench_function(format!("evaluation/{lanes}"), |bencher| {
            bencher.iter(|| {
                let mut hash = LabelHash::new(&[7; 16]);
                for gate in 0..gates {
                    let operands = [black_box(&a[..]), &b[..]];
                    hash.evaluate_three_halves((gate * lanes) as u64, operands, black_box(&mut c), &sent);
                }
            })
        });
    }
}

fn bench_gates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("half gates");
    for lanes in [1, 8, 64, 256] {
        let gates = 8192 / lanes;
        group.throughput(Throughput::Elements((gates * lanes) as u64));
        let labels = |byte| vec![[byte; 16]; lanes];
        let (a, b, mut c, delta) = (labels(1), labels(2), labels(0), [3; 16]);
        let (mut garbler, mut evaluator) = (labels(4), labels(5));
        group.bench_function(format!("garbling/{lanes}"), |bencher| {
            bencher.iter(|| {
                let mut hash = LabelHash::new(&[7; 16]);
                for gate in 0..gates {
                    let halves = Halves { garbler: &mut garbler[..], evaluator: &mut evaluator[..] };
                    let operands = [black_box(&a[..]), &b[..]];
                    let first = (gate * lanes) as u64;
                    hash.garble(first, &delta, Negated::default(), operands, black_box(&mut c), halves);
                }
            })
        });
        group.bench_function(format!("evaluation/{lanes}"), |bencher| {
            bencher.iter(|| {
                let mut hash = LabelHash::new(&[7; 16]);
                for gate in 0..gates {
                    let halves = Halves { garbler: &garbler[..], evaluator: &evaluator[..] };
                    let operands = [black_box(&a[..]), &b[..]];
                    hash.evaluate((gate * lanes) as u64, operands, black_box(&mut c), halves);
                }
            })
        });
    }
    drop(group);
    let mut group = criterion.benchmark_group("sums of labels");
    for len in [1 << 10, 1 << 14] {
        group.throughput(Throughput::Bytes(len as u64));
        for count in [2, 4] {
            let mut arena = vec![0x5a; len * (count + 1)];
            let rows: Vec<usize> = (1..=count).map(|k| k * len).collect();
            group.bench_function(format!("{count} rows/{len}"), |bencher| {
                bencher.iter(|| sum_within(black_box(&mut arena), 0, len, black_box(&rows), &[1; 16]))
            });
        }
    }
}

criterion_group!(
    benches,
    bench_combine,
    bench_multiply,
    bench_weighted_sums,
    bench_unit_sums,
    bench_words::<Gf2_40>,
    bench_words::<Gf2_42>,
    bench_words::<Gf2_64>,
    bench_words::<Gf2_128>,
    bench_prg,
    bench_transpose,
    bench_blocks,
    bench_gates,
    bench_three_halves
);
criterion_main!(benches);
