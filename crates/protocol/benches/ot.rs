//! Oblivious transfer between two parties on threads of one process: correlated and random transfers by expansion.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use polyclave_protocol::Party;
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Pairs, Shape};

/// Transfers in each direction of an extension, and of a check.
const COUNT: usize = 1 << 20;

const DELTA: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// Time for some repetitions of a step, at the slower party, after set-up and one step that is not counted.
fn time<T>(
    shape: Shape,
    iterations: u64,
    prepare: impl Fn(&mut Pairs, &mut dyn Net) -> T + Sync,
    step: impl Fn(&mut Pairs, T, &mut dyn Net) + Sync,
) -> Duration {
    let times = run_parties(2, |net| {
        let mut pairs = Pairs::set_up(b"bench", DELTA, shape, net)?;
        let mut total = Duration::ZERO;
        for i in 0..=iterations {
            let given = prepare(&mut pairs, net);
            let began = Instant::now();
            step(&mut pairs, given, net);
            total += if i == 0 { Duration::ZERO } else { began.elapsed() };
        }
        Ok(total)
    });
    times.into_iter().map(|t| t.expect("honest parties finish")).max().unwrap_or_default()
}

fn extend(pairs: &mut Pairs, net: &mut dyn Net) -> polyclave_protocol::ot::Correlated {
    let choices = vec![0x5a; COUNT / 8];
    let row = |p: Party| if p == net.me() { &[][..] } else { &choices[..] };
    let rows: Vec<&[u8]> = Party::all(2).map(row).collect();
    let correlated = pairs.extend(&rows, COUNT, net).expect("honest parties finish");
    pairs.check(net).expect("honest parties finish");
    correlated
}

/// Each party is sender and receiver at once: a transfer of either role counts for one at the party's thread.
fn correlated(c: &mut Criterion) {
    let mut group = c.benchmark_group("correlated transfers, both roles");
    group.throughput(Throughput::Elements(2 * COUNT as u64)).sample_size(10);
    for (columns, expansion) in
        [(128, 1), (128, 2), (128, 4), (128, 8), (64, 1), (64, 2), (64, 4), (64, 8), (40, 2), (40, 4)]
    {
        let shape = Shape::new(columns, expansion).expect("it is valid");
        let name = BenchmarkId::new(format!("{columns} columns"), format!("f {expansion}"));
        group.bench_function(name, |b| {
            b.iter_custom(|n| time(shape, n, |_, _| (), |pairs, (), net| drop(extend(pairs, net))))
        });
    }
    group.finish();
}

fn random(c: &mut Criterion) {
    let shape = Shape::new(128, 2).expect("it is valid");
    let mut group = c.benchmark_group("hashing to random transfers");
    group.throughput(Throughput::Elements(COUNT as u64)).sample_size(10);
    let peer = |net: &dyn Net| Party(1 - net.me().0);
    group.bench_function("sender", |b| {
        b.iter_custom(|n| time(shape, n, extend, |pairs, c, net| drop(pairs.random_sent(&c, peer(net)))))
    });
    group.bench_function("receiver", |b| {
        b.iter_custom(|n| time(shape, n, extend, |pairs, c, net| drop(pairs.random_received(&c, peer(net)))))
    });
    group.finish();
}

fn set_up(c: &mut Criterion) {
    let mut group = c.benchmark_group("set-up, both roles");
    group.sample_size(10);
    for expansion in [1, 2, 4, 8] {
        let shape = Shape::new(128, expansion).expect("it is valid");
        group.bench_function(BenchmarkId::from_parameter(format!("f {expansion}")), |b| {
            b.iter(|| run_parties(2, |net| Pairs::set_up(b"bench", DELTA, shape, net).map(drop)))
        });
    }
    group.finish();
}

criterion_group!(benches, correlated, random, set_up);
criterion_main!(benches);
