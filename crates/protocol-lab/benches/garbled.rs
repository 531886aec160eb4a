//! Garbled circuits without a network that costs: AES-128 as a Boolean circuit, garbled into nothing,
//! evaluated from nothing, and both over the in-memory mesh, each party on a thread of its own. Throughput in
//! ANDs of a thread.
//!
//! `cargo bench -p polyclave-protocol-lab --bench garbled`

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use polyclave_cipher::{Cells, Compiled, boolean, compile};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::{Mesh, mesh};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::garbled::{Garbled, GarbledConfig, Gates, Setup};
use polyclave_protocol_lab::testkit::alone::Nobody;

const CONFIG: GarbledConfig = GarbledConfig { gates: Gates::Half, expansion: 4 };

/// A party with everything that is made once.
struct Seat {
    protocol: Garbled,
    compiled: Compiled,
    net: Mesh,
    _setup: (Setup, AgreedSession),
}

fn sit_down(mut net: Mesh) -> Result<Seat> {
    let mut session = hello(&CONFIG.handshake(HandshakeParameters::new(2)), &mut net)?;
    let setup = CONFIG.setup(&mut net)?;
    let protocol = CONFIG.join(&setup, session.stream(), net.members())?;
    let cipher = boolean::cipher("aes-128").expect("it has a Boolean circuit");
    let compiled = compile(&cipher.encrypt, &protocol);
    Ok(Seat { protocol, compiled, net, _setup: (setup, session) })
}

fn encrypt(protocol: &mut Garbled, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<()> {
    let cells = |port: usize, lanes| Cells::zero(compiled.inputs()[port].cells.len(), 1, lanes);
    let (block, key) = (cells(0, lanes), cells(1, 1));
    let batch = prepare(protocol, compiled, lanes, net)?;
    let inputs = [Input::Public(&block), Input::Public(&key)];
    black_box(evaluate(protocol, compiled, lanes, &inputs, batch, net)?);
    Ok(())
}

fn bench(criterion: &mut Criterion) {
    let [first, second] = <[Mesh; 2]>::try_from(mesh(2)).unwrap_or_else(|_| unreachable!("it has two ends"));
    let (garbler, evaluator) = std::thread::scope(|scope| {
        let garbler = scope.spawn(|| sit_down(first).expect("honest"));
        let evaluator = sit_down(second).expect("honest");
        (garbler.join().expect("no panic"), evaluator)
    });
    let own = garbler.protocol.lanes_at_once(&garbler.compiled);
    let ands = garbler.protocol.cost(&garbler.compiled).operations_per_lane as u64;
    println!("{own} lanes at once in {} slots", garbler.compiled.lane_slots());
    let mut seats = [garbler, evaluator];
    for (i, name) in [(0, "garbling"), (1, "evaluation")] {
        let mut group = criterion.benchmark_group(name);
        for lanes in [1, 16, 32, 64, 128, 256, 1024] {
            group.throughput(Throughput::Elements(ands * lanes as u64));
            let Seat { protocol, compiled, .. } = &mut seats[i];
            let mut net = Nobody(Party(i as u8));
            group.bench_function(format!("{lanes} lanes"), |bencher| {
                bencher.iter(|| encrypt(protocol, compiled, lanes, &mut net).expect("nobody fails"))
            });
        }
    }
    let mut group = criterion.benchmark_group("both");
    for lanes in [64, own, 512] {
        group.throughput(Throughput::Elements(ands * lanes as u64));
        group.bench_function(format!("{lanes} lanes"), |bencher| {
            bencher.iter_custom(|times| {
                let run = |seat: &mut Seat| {
                    for _ in 0..times {
                        encrypt(&mut seat.protocol, &seat.compiled, lanes, &mut seat.net).expect("honest");
                    }
                };
                let began = std::time::Instant::now();
                std::thread::scope(|scope| {
                    seats.iter_mut().for_each(|seat| _ = scope.spawn(move || run(seat)))
                });
                began.elapsed()
            })
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
