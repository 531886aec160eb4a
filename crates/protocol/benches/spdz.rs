//! Two parties on threads of one process, no network: the online phase of `spdz-lt` and `spdz-tower` with a
//! dealer's material, the check of MACs included. Each measurement is followed by what its stages took, at
//! the first party, in nanoseconds a lookup.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use parking_lot::Mutex;
use polyclave_cipher::{Cells, Compiled, Linear, Lookup, catalog, compile};
use polyclave_field::{Gf2_40, Gf2_64, MacField};
use polyclave_protocol::Result;
use polyclave_protocol::evaluate::prepare;
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, Spdz, SpdzConfig};
use polyclave_protocol::tally::Phase;
use polyclave_protocol_lab::dealers::InsecureDealing;

const STAGES: [&str; 4] = ["bank and inputs", "linear", "lookups", "check"];

/// A party's time by stage, and within lookups what it waited for its peer.
#[derive(Clone, Copy, Default)]
struct Stages {
    stages: [Duration; 4],
    exchanges: Duration,
    lookups: u64,
}

impl Stages {
    fn stage<T>(&mut self, stage: usize, run: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = run();
        self.stages[stage] += began.elapsed();
        result
    }
}

/// A network whose exchanges are timed.
struct TimedNet<'a> {
    net: &'a mut dyn Net,
    exchanges: Duration,
}

impl Net for TimedNet<'_> {
    polyclave_protocol::forward_net!(self => self.net; me, parties, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let began = Instant::now();
        let result = self.net.exchange(out, into);
        self.exchanges += began.elapsed();
        result
    }
}

/// As `evaluate` does it, and the check.
fn evaluate<F: MacField>(
    spdz: &mut Spdz<F>,
    circuit: &Compiled,
    inputs: &[Cells; 2],
    net: &mut dyn Net,
) -> Result<Stages> {
    let lanes = inputs[0].lanes();
    let mut batch = prepare(spdz, circuit, lanes, net)?;
    let (mut stages, mut net) = (Stages::default(), TimedNet { net, exchanges: Duration::ZERO });
    spdz.enter(Phase::Online);
    let mut registers = stages.stage(0, || spdz.registers(circuit, lanes, &mut batch))?;
    for (port, cells) in circuit.inputs().iter().zip(inputs) {
        stages.stage(0, || spdz.input(port, &Input::Public(cells), &mut registers, &mut net))?;
    }
    for layer in circuit.layers() {
        let (linear, lookups): (&[Linear], &[Lookup]) = (&layer.linear, &layer.lookups);
        stages.stage(1, || spdz.linear(linear, &mut registers));
        if !lookups.is_empty() {
            stages.stage(2, || spdz.lookup(circuit, lookups, &mut registers, &mut batch, &mut net))?;
        }
    }
    stages.exchanges = net.exchanges;
    stages.stage(3, || spdz.check(&mut net))?;
    stages.lookups = (circuit.lookups().count() * lanes) as u64;
    Ok(stages)
}

/// What some evaluations took, at the slowest party.
fn online<F: MacField>(method: LookupMethod, cipher: &str, lanes: usize, iterations: u64) -> Vec<Stages> {
    let config: SpdzConfig<F> =
        SpdzConfig::new(2, method, Preprocessing::Dealt(&InsecureDealing), Packing::Elements)
            .expect("it is valid");
    let runs = run_parties(2, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
        let mut spdz = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let circuit = compile(&catalog::find(cipher).expect("the catalog has it").encrypt, &spdz);
        let cells = |port: usize, lanes| {
            let port = &circuit.inputs()[port];
            Cells::zero(port.cells.len(), port.bits, lanes)
        };
        let inputs = [cells(0, lanes), cells(1, 1)];
        (0..iterations).map(|_| evaluate(&mut spdz, &circuit, &inputs, net)).collect::<Result<Vec<_>>>()
    });
    runs.into_iter().next().expect("two parties").expect("honest parties finish")
}

fn measure<F: MacField>(c: &mut Criterion, method: LookupMethod, sizes: &[(&str, usize)]) {
    let mut group = c.benchmark_group(format!("{} online, MACs in {}", method.name(), F::NAME));
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for &(cipher, lanes) in sizes {
        group.throughput(Throughput::Elements(lanes as u64));
        let best: Mutex<Option<Stages>> = Mutex::default();
        group.bench_function(BenchmarkId::new(cipher, lanes), |b| {
            b.iter_custom(|n| {
                // One more to warm up.
                let runs = online::<F>(method, cipher, lanes, n + 1).split_off(1);
                let time = |run: &Stages| run.stages.iter().sum::<Duration>();
                let total = runs.iter().map(time).sum();
                let mut best = best.lock();
                *best = runs.into_iter().chain(*best).min_by_key(time);
                total
            })
        });
        if let Some(best) = *best.lock() {
            let each = |time: Duration| time.as_nanos() as f64 / best.lookups as f64;
            let stages =
                STAGES.iter().zip(best.stages).map(|(name, time)| format!("{name} {:.1}", each(time)));
            let exchanges = each(best.exchanges);
            println!("    best: {}, exchanges {exchanges:.1}", stages.collect::<Vec<_>>().join(", "));
        }
    }
    group.finish();
}

fn all(c: &mut Criterion) {
    const AES: [(&str, usize); 2] = [("aes-128", 4096), ("aes-128", 1)];
    const DES: [(&str, usize); 2] = [("3des-ede3", 1024), ("3des-ede3", 1)];
    for sizes in [AES, DES] {
        measure::<Gf2_64>(c, LookupMethod::MaskedTables, &sizes);
        measure::<Gf2_40>(c, LookupMethod::MaskedTables, &sizes);
    }
    measure::<Gf2_64>(c, LookupMethod::Tower, &AES);
}
criterion_group!(benches, all);
criterion_main!(benches);
