//! Two parties on threads of one process, no network: triples and records for inversions by kappa and by how
//! many are asked for at once, and bits. The bytes for each, both directions together, are printed, too.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use parking_lot::Mutex;
use polyclave_protocol::Result;
use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::Means;
use polyclave_protocol::pool::Pool;
use polyclave_protocol::tinyot::{Kappa, Key, Source, TinyOt};

const BITS: usize = 1 << 20;

type Make = fn(&mut TinyOt, usize, &mut dyn Net) -> Result<()>;

/// Time for some repetitions at the slower party, after setup; and bytes that both send in one.
fn time(kappa: Kappa, means: Means, count: usize, iterations: u64, make: Make) -> (Duration, u64) {
    let all = Mutex::new((Duration::ZERO, 0));
    std::thread::scope(|scope| {
        for end in mesh(2) {
            let all = &all;
            scope.spawn(move || {
                let mut net = Metered::new(end);
                let key = Key::generate(&net).expect("randomness");
                let setup = TinyOt::setup(b"bench", &key, kappa, means, &mut net);
                let mut source = setup.expect("honest parties");
                let (before, began) = (net.meter().snapshot(), Instant::now());
                for _ in 0..iterations {
                    make(&mut source, count, &mut net).expect("honest parties finish");
                }
                let (sent, time) = ((net.meter().snapshot() - before).payload_sent, began.elapsed());
                let mut all = all.lock();
                *all = (all.0.max(time), all.1 + sent / iterations);
            });
        }
    });
    all.into_inner()
}

fn all(c: &mut Criterion) {
    let triples: Make = |source, count, net| source.triples(count, net).map(drop);
    let bits: Make = |source, count, net| source.bits(count, net).map(drop);
    let six: Make = |source, count, net| source.unit_vectors(6, count, &Pool::default(), net).map(drop);
    let eight: Make = |source, count, net| source.unit_vectors(8, count, &Pool::default(), net).map(drop);
    let records: Make = |source, count, net| source.inverses(count, net).map(drop);
    let by = |expansion: usize| Means::from(expansion);
    let silent = |expansion| Means { expansion, silent: true };
    let mut cases = vec![("bits", Kappa::Bits40, by(4), BITS, bits)];
    for kappa in [Kappa::Bits40, Kappa::Bits64] {
        for (expansion, count) in [(4, 1 << 20), (4, 1 << 15), (2, 1 << 20)] {
            cases.push(("triples", kappa, by(expansion), count, triples));
        }
        for (expansion, count) in [(4, 1 << 18), (4, 1 << 17), (4, 1 << 13), (6, 1 << 18), (8, 1 << 18)] {
            cases.push(("records for inversions", kappa, by(expansion), count, records));
        }
        cases.push(("records for inversions", kappa, silent(4), 1 << 18, records));
        cases.push(("records for inversions", kappa, silent(8), 1 << 18, records));
        cases.push(("unit vectors of 6 bits", kappa, by(4), 1 << 16, six));
        cases.push(("unit vectors of 8 bits", kappa, by(4), 1 << 16, eight));
    }
    for (what, kappa, means, count, make) in cases {
        let mut group = c.benchmark_group(format!("{what}, kappa {}", kappa.bits()));
        group.throughput(Throughput::Elements(count as u64)).sample_size(10);
        let silent = if means.silent { ", silent" } else { "" };
        let name = format!("{count} at once, expansion {}{silent}", means.expansion);
        let bytes = Mutex::new(0);
        group.bench_function(BenchmarkId::from_parameter(&name), |b| {
            b.iter_custom(|n| {
                let (time, sent) = time(kappa, means, count, n, make);
                *bytes.lock() = sent;
                time
            })
        });
        let bytes = *bytes.lock() as f64 / count as f64;
        // Zero where a filter has left it out.
        if bytes > 0.0 {
            println!("{what}, kappa {}, {name}: {bytes:.2} bytes each, both directions", kappa.bits());
        }
        group.finish();
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
