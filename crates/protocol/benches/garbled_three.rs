//! Garbled circuits of AES-128 among three parties, without a network that costs: a garbler alone, all three
//! together ahead, and one block online from stored circuits.
//!
//! `cargo bench -p polyclave-protocol --bench garbled_three`

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use polyclave_cipher::{Cells, Compiled, boolean, compile};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::{Mesh, mesh};
use polyclave_protocol::metered::{Meter, Metered};
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::replicated::{GarbledThree, GarbledThreeConfig};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::{Party, Result};
use polyclave_protocol_lab::testkit::alone::Nobody;

type Shared = <GarbledThree as Session>::Shared;

/// A party with everything that is made once.
struct Seat {
    protocol: GarbledThree,
    compiled: Compiled,
    net: Metered<Mesh>,
    meter: Arc<Meter>,
    keys: Shared,
}

fn sit_down(net: Mesh) -> Result<Seat> {
    let mut net = Metered::new(net);
    let meter = net.meter();
    let config = GarbledThreeConfig::default();
    let mut session = hello(&config.handshake(HandshakeParameters::new(3)), &mut net)?;
    let setup = config.setup(&mut net)?;
    let mut protocol = config.join(&setup, session.stream(), polyclave_protocol::PartySet::all(3))?;
    let cipher = boolean::cipher("aes-128").expect("it has a Boolean circuit");
    // Round keys that nobody knows: those of a key that is shared.
    let schedule = compile(&cipher.key_schedule, &protocol);
    let batch = prepare(&mut protocol, &schedule, 1, &mut net)?;
    let key = Cells::zero(128, 1, 1);
    let keys = evaluate(&mut protocol, &schedule, 1, &[Input::Public(&key)], batch, &mut net)?.remove(0);
    let compiled = compile(&cipher.encrypt, &protocol);
    Ok(Seat { protocol, compiled, net, meter, keys })
}

impl Seat {
    fn sent(&self) -> u64 {
        self.meter.snapshot().payload_sent
    }

    /// Stored circuits of one block each, with the labels of the key. Made in lots.
    fn stock(&mut self, mut blocks: usize, lot: usize) -> Result<Vec<Vec<u8>>> {
        let name = self.compiled.inputs().iter().find(|port| port.uniform).expect("the key").name.clone();
        let mut stock = Vec::new();
        while blocks > 0 {
            let lanes = blocks.min(lot);
            let circuits = prepare(&mut self.protocol, &self.compiled, lanes, &mut self.net)?;
            let mut circuits =
                self.protocol.give(&self.compiled, circuits, &name, &self.keys, &mut self.net)?;
            for _ in 0..lanes {
                let one = self.protocol.take(&self.compiled, &mut circuits, 1)?;
                stock.push(self.protocol.save(one)?.to_vec());
            }
            blocks -= lanes;
        }
        Ok(stock)
    }

    /// A public block, such as a counter.
    fn encrypt(&mut self, stored: &[u8]) -> Result<()> {
        let item = self.protocol.restore(stored)?;
        let block = Cells::zero(128, 1, 1);
        let of = |port: &polyclave_cipher::CompiledPort| match port.uniform {
            true => Input::Shared(&self.keys),
            false => Input::Public(&block),
        };
        let inputs: Vec<Input<'_, Shared>> = self.compiled.inputs().iter().map(of).collect();
        black_box(evaluate(&mut self.protocol, &self.compiled, 1, &inputs, item, &mut self.net)?);
        Ok(())
    }
}

/// All parties do it, each on a thread of its own.
fn together<T: Send>(seats: &mut [Seat], run: impl Fn(&mut Seat) -> T + Sync) -> Vec<T> {
    let run = &run;
    std::thread::scope(|scope| {
        let threads: Vec<_> = seats.iter_mut().map(|seat| scope.spawn(move || run(seat))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn bench(criterion: &mut Criterion) {
    let mut seats: Vec<Seat> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            mesh(3).into_iter().map(|net| scope.spawn(|| sit_down(net).expect("honest"))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let ands = seats[0].protocol.cost(&seats[0].compiled).operations_per_lane;
    println!("{ands} ANDs a block");

    for (party, name) in [(0, "the first garbler alone"), (1, "the second garbler alone")] {
        let mut group = criterion.benchmark_group(name);
        for lanes in [1, 16, 64] {
            group.throughput(Throughput::Elements(lanes as u64));
            let Seat { protocol, compiled, .. } = &mut seats[party];
            let mut net = Nobody(Party(party as u8));
            group.bench_function(format!("{lanes} circuits"), |bencher| {
                bencher
                    .iter(|| black_box(prepare(protocol, compiled, lanes, &mut net).expect("nobody fails")))
            });
        }
    }
    // A garbler that was alone counts its lots otherwise than the others.
    drop(seats);
    let mut seats: Vec<Seat> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            mesh(3).into_iter().map(|net| scope.spawn(|| sit_down(net).expect("honest"))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut group = criterion.benchmark_group("all three ahead, with a key");
    for lot in [1, 16, 64] {
        group.throughput(Throughput::Elements(64));
        group.bench_function(format!("lots of {lot}"), |bencher| {
            bencher.iter(|| together(&mut seats, |seat| seat.stock(64, lot).expect("honest").len()))
        });
    }
    group.finish();
    let before: Vec<u64> = seats.iter().map(Seat::sent).collect();
    let mut stock = together(&mut seats, |seat| seat.stock(64, 16).expect("honest"));
    let ahead: Vec<u64> =
        seats.iter().zip(&before).map(|(seat, before)| (seat.sent() - before) / 64).collect();
    let stored: Vec<usize> = stock.iter().map(|items| items[0].len()).collect();
    println!("bytes ahead, by party: {ahead:?}; stored: {stored:?}");
    let before: Vec<u64> = seats.iter().map(Seat::sent).collect();
    together_with(&mut seats, &mut stock, 64);
    let online: Vec<u64> =
        seats.iter().zip(&before).map(|(seat, before)| (seat.sent() - before) / 64).collect();
    println!("bytes online, by party: {online:?}");

    criterion.bench_function("one block online, all three", |bencher| {
        bencher.iter_custom(|times| {
            let mut took = Duration::ZERO;
            let mut left = times as usize;
            while left > 0 {
                let blocks = left.min(256);
                let mut stock = together(&mut seats, |seat| seat.stock(blocks, 16).expect("honest"));
                took += together_with(&mut seats, &mut stock, blocks);
                left -= blocks;
            }
            took
        })
    });
}

/// Blocks one after another, each of a circuit of its own. Returns how long they took.
fn together_with(seats: &mut [Seat], stock: &mut [Vec<Vec<u8>>], blocks: usize) -> Duration {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for (seat, items) in seats.iter_mut().zip(stock.iter_mut()) {
            scope.spawn(move || {
                items.drain(..blocks).for_each(|item| seat.encrypt(&item).expect("honest"));
            });
        }
    });
    began.elapsed()
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = bench
}
criterion_main!(benches);
