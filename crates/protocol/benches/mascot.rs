//! Two parties on threads of one process, no network: triples and bits by field and by expansion of oblivious
//! transfer. The bytes that one party sends for each are printed, too.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use parking_lot::Mutex;
use polyclave_field::{Gf2_40, Gf2_64, Gf2_128, MacField};
use polyclave_protocol::authenticated::{MacKey, Source};
use polyclave_protocol::mascot::Mascot;
use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, Result};

const TRIPLES: usize = 8192;
const BITS: usize = 1 << 19;
const OWNED: usize = 1 << 17;

type Make<F> = fn(&mut Mascot<F>, &mut dyn Net) -> Result<()>;

/// Time for some repetitions at the slower party, after setup and one that is not counted; and bytes one
/// party sends in one.
fn time<F: MacField>(expansion: usize, iterations: u64, make: Make<F>) -> (Duration, u64) {
    let slowest = Mutex::new((Duration::ZERO, 0));
    std::thread::scope(|scope| {
        for end in mesh(2) {
            let slowest = &slowest;
            scope.spawn(move || {
                let mut net = Metered::new(end);
                let key = MacKey::<F>::generate(&net).expect("randomness");
                let mut mascot = Mascot::setup(b"bench", &key, expansion, &mut net).expect("honest parties");
                make(&mut mascot, &mut net).expect("honest parties finish");
                let (before, began) = (net.meter().snapshot(), Instant::now());
                for _ in 0..iterations {
                    make(&mut mascot, &mut net).expect("honest parties finish");
                }
                let (sent, time) =
                    ((net.meter().snapshot() - before).payload_sent / iterations, began.elapsed());
                let mut slowest = slowest.lock();
                *slowest = (slowest.0.max(time), sent);
            });
        }
    });
    slowest.into_inner()
}

fn field<F: MacField>(c: &mut Criterion) {
    let steps: [(_, usize, Make<F>); 3] = [
        ("triples", TRIPLES, |mascot, net| mascot.triples(TRIPLES, net).map(drop)),
        ("bits", BITS, |mascot, net| mascot.bits(BITS, net).map(drop)),
        ("bits of one party", 2 * OWNED, |mascot, net| {
            // One extension is for both.
            Party::all(2).try_for_each(|owner| mascot.bits_of(owner, OWNED, net).map(drop))
        }),
    ];
    for (what, count, make) in steps {
        let mut group = c.benchmark_group(format!("{what}, {}, two parties", F::NAME));
        group.throughput(Throughput::Elements(count as u64)).sample_size(10);
        for expansion in [1, 2, 4] {
            let sent = Mutex::new(0);
            group.bench_function(BenchmarkId::from_parameter(format!("expansion {expansion}")), |b| {
                b.iter_custom(|n| {
                    let (time, bytes) = time::<F>(expansion, n, make);
                    *sent.lock() = bytes;
                    time
                })
            });
            let sent = *sent.lock() as f64 / count as f64;
            // Zero where a filter has left it out.
            if sent > 0.0 {
                println!("{what}, {}, expansion {expansion}: {sent:.2} bytes each to the peer", F::NAME);
            }
        }
        group.finish();
    }
}

fn all(c: &mut Criterion) {
    field::<Gf2_40>(c);
    field::<Gf2_64>(c);
    field::<Gf2_128>(c);
}

criterion_group!(benches, all);
criterion_main!(benches);
