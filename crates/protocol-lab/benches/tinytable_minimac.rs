//! Two parties on threads of one process, no network: what scrambled tables under commitments take for each
//! gate, by the number of gates, and beside it what they take without verification and with tags of 64 bits.
//! Time is a thread's time on a processor, by Linux's accounts, of the slower party, the median of some runs;
//! online is everything after the dealer.

use std::time::Duration;

use polyclave_cipher::boolean::{self, BooleanBuilder};
use polyclave_cipher::{Cells, Circuit, Compiled, compile};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{Mesh, mesh};
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tinytable::{Batch, Macs, Preprocessing, TinyTable, TinyTableConfig, Worth};
use polyclave_protocol_lab::dealers::InsecureDealing;

const RUNS: usize = 5;

/// Of one party, for a whole circuit.
#[derive(Clone, Copy, Default)]
struct Cost {
    gates: usize,
    material: usize,
    sent: u64,
    rounds: u64,
    dealer: Duration,
    online: Duration,
}

fn measure(macs: Macs, circuit: &Circuit, lanes: usize) -> Cost {
    let mut costs: Vec<_> = (0..RUNS).map(|_| run(macs, circuit, lanes)).collect();
    let mut median = |time: fn(&Cost) -> Duration| {
        costs.sort_by_key(time);
        time(&costs[RUNS / 2])
    };
    let (dealer, online) = (median(|cost| cost.dealer), median(|cost| cost.online));
    Cost { dealer, online, ..costs[0] }
}

fn run(macs: Macs, circuit: &Circuit, lanes: usize) -> Cost {
    let costs = std::thread::scope(|scope| {
        let party = |end| match macs {
            Macs::None => party::<Unverified<Cells>>(macs, circuit, lanes, Metered::new(end)),
            _ => party::<Checked<Cells>>(macs, circuit, lanes, Metered::new(end)),
        };
        let threads: Vec<_> = mesh(2).into_iter().map(|end| scope.spawn(move || party(end))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    let slower = |time: fn(&Cost) -> Duration| costs.iter().map(time).max().unwrap_or_default();
    Cost { dealer: slower(|cost| cost.dealer), online: slower(|cost| cost.online), ..costs[0] }
}

fn party<R: Worth>(macs: Macs, circuit: &Circuit, lanes: usize, mut net: Metered<Mesh>) -> Cost {
    let config = TinyTableConfig::<R>::new(macs, Preprocessing::Dealt(&InsecureDealing)).expect("a dealer");
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), &mut net).expect("the same");
    let setup = config.setup(&mut net).expect("two parties");
    let mut protocol = config.join(&setup, session.stream(), net.members()).expect("both");
    let compiled = compile(circuit, &protocol);
    let began = on_processor();
    let batch = prepare(&mut protocol, &compiled, lanes, &mut net).expect("material");
    let dealer = on_processor() - began;
    let (material, gates) = (batch.bytes(), lanes * compiled.lookups().count());
    let (before, began) = (net.meter().snapshot(), on_processor());
    online(&mut protocol, &compiled, lanes, batch, &mut net);
    let (traffic, online) = (net.meter().snapshot() - before, on_processor() - began);
    Cost { gates, material, sent: traffic.payload_sent, rounds: traffic.exchanges, dealer, online }
}

fn online<R: Worth>(
    protocol: &mut TinyTable<R>,
    compiled: &Compiled,
    lanes: usize,
    batch: Batch,
    net: &mut dyn Net,
) {
    let cells: Vec<_> = compiled
        .inputs()
        .iter()
        .map(|port| Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes }))
        .collect();
    let inputs: Vec<_> = cells.iter().map(Input::Public).collect();
    let shared = evaluate(protocol, compiled, lanes, &inputs, batch, net).expect("honest parties");
    for port in &shared {
        release(protocol, port, Owner::All, net).expect("honest parties finish");
    }
}

/// How long this thread has been running; nothing where the system does not tell.
fn on_processor() -> Duration {
    let accounts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = accounts.split_whitespace().next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

const PORT: usize = 128;
const LAYERS: usize = 8;

/// Layers of so many gates, each on two bits of the layer before, picked at random.
fn random(width: usize) -> Circuit {
    let mut b = BooleanBuilder::new("random gates");
    let mut noise = blake3::Hasher::new().update(&width.to_le_bytes()).finalize_xof();
    let mut pick = |below: usize| {
        let mut bytes = [0; 8];
        noise.fill(&mut bytes);
        (u64::from_le_bytes(bytes) % below as u64) as usize
    };
    let input = b.input("x", PORT, false);
    let mut bits = input.clone();
    for _ in 0..LAYERS {
        bits = (0..width)
            .map(|i| {
                // Gate by gate another one, so that none is left out for being the same as another, or
                // unused.
                let (x, y) = (bits[i % bits.len()], bits[pick(bits.len())]);
                let z = b.xor(y, input[pick(PORT)]);
                b.and(x, z)
            })
            .collect();
    }
    let sums: Vec<_> = (0..PORT)
        .map(|i| {
            let part: Vec<_> = bits.iter().skip(i).step_by(PORT).copied().collect();
            b.xor_all(&part)
        })
        .collect();
    b.output("y", &sums);
    b.finish()
}

fn main() {
    let aes = boolean::cipher("aes-128").expect("the catalog has it").encrypt;
    println!(
        "{:17} {:24} {:>7} {:>15} {:>12} {:>7} {:>15} {:>15}",
        "protocol",
        "circuit",
        "gates",
        "material, B/gate",
        "sent, B/gate",
        "rounds",
        "dealer, ns/gate",
        "online, ns/gate"
    );
    for lanes in [1, 2, 4, 8, 16, 32, 64] {
        print(Macs::Minimac, &format!("aes-128, {lanes} lanes"), &aes, lanes);
    }
    for log in 7..=13 {
        print(Macs::Minimac, &format!("random, {LAYERS} layers of 2^{log}"), &random(1 << log), 8);
    }
    for macs in [Macs::None, Macs::Linear64, Macs::Minimac] {
        print(macs, "aes-128, 64 lanes", &aes, 64);
    }
}

fn print(macs: Macs, what: &str, circuit: &Circuit, lanes: usize) {
    let cost = measure(macs, circuit, lanes);
    let each = |total: f64| total / cost.gates as f64;
    let (material, sent) = (each(cost.material as f64), each(cost.sent as f64));
    let [dealer, online] = [cost.dealer, cost.online].map(|time| each(time.as_secs_f64() * 1e9));
    println!(
        "{:17} {what:24} {:>7} {material:>16.1} {sent:>12.2} {:>7} {dealer:>15.0} {online:>15.0}",
        macs.protocol(),
        cost.gates,
        cost.rounds
    );
}
