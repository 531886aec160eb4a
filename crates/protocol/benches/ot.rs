//! Oblivious transfer between two parties on threads of one process: correlated and random transfers by
//! expansion.
//!
//! Times are processor time of the busier party's thread, so waiting for the other party does not count. Each
//! party is sender and receiver at once. A transfer counts once for each role, so elements per second are
//! transfers per second in one role and thread.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use polyclave_kernels::bit_transpose::Block;
use polyclave_protocol::Party;
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Checked, Correlated, Pairs, Shape};
use rustix::time::{ClockId, clock_gettime};

/// Transfers in each direction of an extension, and of a check: few enough for the third-level cache.
const COUNT: usize = 1 << 16;

const DELTA: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time for some repetitions of a step, at the busier party, after setup and one step that is not counted.
fn time<T>(
    shape: Shape,
    iterations: u64,
    fork: impl Fn(Pairs) -> Pairs + Sync,
    prepare: impl Fn(&mut Pairs, &mut dyn Net) -> T + Sync,
    step: impl Fn(&mut Pairs, T, &mut dyn Net) + Sync,
) -> Duration {
    let times = run_parties(2, |net| {
        let mut pairs = fork(Pairs::setup(b"bench", DELTA, shape, net)?);
        let mut total = Duration::ZERO;
        for i in 0..=iterations {
            let given = prepare(&mut pairs, net);
            let began = thread_time();
            step(&mut pairs, given, net);
            total += if i == 0 { Duration::ZERO } else { thread_time() - began };
        }
        Ok(total)
    });
    times.into_iter().map(|t| t.expect("honest parties finish")).max().unwrap_or_default()
}

/// Choices from the peer.
fn rows<'a>(choices: &'a [u8], net: &dyn Net) -> [&'a [u8]; 2] {
    [0, 1].map(|p| if Party(p) == net.me() { &[][..] } else { choices })
}

fn extend(pairs: &mut Pairs, net: &mut dyn Net) -> Correlated {
    let choices = vec![0x5a; COUNT / 8];
    let correlated = pairs.extend(&rows(&choices, net), COUNT, net).expect("honest parties finish");
    pairs.check(net).expect("honest parties finish");
    correlated
}

/// Extended and checked, with all blocks written before the check.
fn correlated(c: &mut Criterion) {
    let mut group = c.benchmark_group("correlated transfers a second and role");
    group.throughput(Throughput::Elements(2 * COUNT as u64)).sample_size(10);
    for (columns, expansion) in
        [(128, 1), (128, 2), (128, 4), (128, 8), (64, 1), (64, 2), (64, 4), (64, 8), (40, 2), (40, 4)]
    {
        let shape = Shape::new(columns, expansion).expect("it is valid");
        let name = BenchmarkId::new(format!("{columns} columns"), format!("f {expansion}"));
        group.bench_function(name, |b| {
            b.iter_custom(|n| time(shape, n, |p| p, |_, _| (), |pairs, (), net| drop(extend(pairs, net))))
        });
    }
    group.finish();
}

/// Blocks that are made at a time, when they are used.
const AT_ONCE: usize = 2048;

/// Makes all blocks, as words of one width.
fn use_up<B: Block>(made: &Checked) {
    let mut blocks = vec![B::default(); AT_ONCE];
    for columns in made.sent.iter().chain(&made.received).filter(|columns| !columns.is_empty()) {
        for at in (0..COUNT).step_by(AT_ONCE) {
            columns.write_blocks(at, black_box(&mut blocks)).expect("they are there");
        }
    }
}

/// Extended and checked in three rounds, and then all blocks made, some at a time.
fn checked(c: &mut Criterion) {
    let mut group = c.benchmark_group("correlated transfers a second and role, blocks after the check");
    group.throughput(Throughput::Elements(2 * COUNT as u64)).sample_size(10);
    let choices = vec![0x5a; COUNT / 8];
    let step = |pairs: &mut Pairs, (), net: &mut dyn Net| {
        let made = pairs.extend_checked(&rows(&choices, net), COUNT, net).expect("honest parties finish");
        match pairs.shape().columns() {
            64 => use_up::<u64>(&made),
            _ => use_up::<u128>(&made),
        }
    };
    for expansion in [1, 2, 4, 5, 6, 8] {
        let shape = Shape::new(128, expansion).expect("it is valid");
        group.bench_function(BenchmarkId::new("128 columns", format!("f {expansion}")), |b| {
            b.iter_custom(|n| time(shape, n, |pairs| pairs, |_, _| (), step))
        });
        group.bench_function(BenchmarkId::new("upper 64 columns", format!("f {expansion}")), |b| {
            let upper = |pairs: Pairs| pairs.fork_upper(b"upper").expect("it is valid");
            b.iter_custom(|n| time(shape, n, upper, |_, _| (), step))
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
        b.iter_custom(|n| {
            time(shape, n, |p| p, extend, |pairs, c, net| drop(pairs.random_sent(&c, peer(net))))
        })
    });
    group.bench_function("receiver", |b| {
        b.iter_custom(|n| {
            time(shape, n, |p| p, extend, |pairs, c, net| drop(pairs.random_received(&c, peer(net))))
        })
    });
    group.finish();
}

fn setup(c: &mut Criterion) {
    let mut group = c.benchmark_group("setup, both roles");
    group.sample_size(10);
    for expansion in [1, 2, 4, 8] {
        let shape = Shape::new(128, expansion).expect("it is valid");
        group.bench_function(BenchmarkId::from_parameter(format!("f {expansion}")), |b| {
            b.iter(|| run_parties(2, |net| Pairs::setup(b"bench", DELTA, shape, net).map(drop)))
        });
    }
    group.finish();
}

criterion_group!(benches, correlated, checked, random, setup);
criterion_main!(benches);
