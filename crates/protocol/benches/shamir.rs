//! Three parties on threads of one process, no network: the arithmetic of AES-128 under every inversion.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use polyclave_cipher::{Cells, catalog, compile};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::protocol::{Input, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Inversion, ShamirConfig, Structure, Tables};
use std::time::{Duration, Instant};

const LANES: usize = 10_000;

/// Seconds for some evaluations, at the slowest party.
fn seconds(inversion: Inversion, iterations: u64) -> Duration {
    let structure = Structure::new(3, 1).expect("it is valid");
    let config = ShamirConfig { structure, inversion, tables: Tables::Masked };
    let times = run_parties(3, |net| {
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let circuit = compile(&catalog::find("aes-128").expect("the catalog has it").encrypt, &protocol);
        let block = Cells::zero(16, 8, LANES);
        let keys = Cells::zero(176, 8, 1);
        let mut online = Duration::ZERO;
        for _ in 0..iterations {
            let batch = prepare(&mut protocol, &circuit, LANES, net)?;
            let began = Instant::now();
            let inputs = [Input::Public(&block), Input::Public(&keys)];
            evaluate(&mut protocol, &circuit, LANES, &inputs, batch, net)?;
            online += began.elapsed();
        }
        Ok(online)
    });
    times.into_iter().map(|t| t.expect("honest parties finish")).max().unwrap_or_default()
}

fn aes(c: &mut Criterion) {
    let mut group = c.benchmark_group("aes-128, three parties in one process");
    group.throughput(Throughput::Elements(LANES as u64)).sample_size(10);
    for inversion in Inversion::ALL {
        group.bench_function(BenchmarkId::from_parameter(inversion), |b| {
            b.iter_custom(|n| seconds(inversion, n))
        });
    }
    group.finish();
}

criterion_group!(benches, aes);
criterion_main!(benches);
