//! One party's part of a benchmark.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use polyclave_cipher::{AnyMap, Cells, Circuit, Compiled, Direction, cleartext, compile};
use polyclave_protocol::any::{AnyBatch, AnyProtocolConfig, AnySession, AnyShared};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tally::{Phase, Tally};
use polyclave_protocol::{Error, Party};

use super::BenchJob;
use super::child::{Connected, announce, meet, peak_memory_bytes};
use super::measure::{Measurement, Repeat};
use crate::options;
use crate::workload::{Workload, key_cells};

/// The party that gives the key. Benchmarks use a known key, so that the output can be compared.
const KEY_OWNER: Party = Party(0);
const KEY_BYTE: u8 = 0x2b;
/// The time limit for measuring single blocks.
const LATENCY_BUDGET: Duration = Duration::from_secs(5);
/// How many blocks are compared with the expected output before anything is measured.
const CHECKED_BLOCKS: usize = 3;

/// Runs one party. Returns one measurement for each size. `progress` receives the number of the job's steps
/// that are done.
pub fn party(
    config: &AnyProtocolConfig,
    job: &BenchJob,
    connected: &mut Connected<impl Net>,
    mut progress: impl FnMut(u64),
) -> Result<Vec<Measurement>> {
    let Connected { net, payload, wire } = connected;
    let cipher = job.form.cipher(&job.cipher)?;
    let direction = if job.decrypt { Direction::Decrypt } else { Direction::Encrypt };
    let one_way = "the cipher has no decryption";
    let circuit = cipher.circuit_with_key_schedule(direction).context(one_way)?;
    // In every form, outputs are compared with those of the cipher's own description.
    let plain = options::cipher(&job.cipher)?.circuit_with_key_schedule(direction).context(one_way)?;
    let terms = config
        .handshake(HandshakeParameters::new(net.parties()))
        .with("job", serde_json::to_string(job)?.as_bytes());
    let mut session = hello(&terms.with("circuit", &circuit.digest()), net)?;
    let setup = config.setup(net)?;
    let mut first = config.join(&setup, session.stream(), net.members())?;
    let workload = Workload::new(&cipher, direction, job.key_schedule, &first)?;
    let key = key_cells(&cipher, &vec![KEY_BYTE; cipher.key_bytes])?;
    let given = if net.me() == KEY_OWNER { Input::Mine(&key) } else { Input::From(KEY_OWNER) };
    let key_input = workload.expand(&given, &mut first, net)?;

    let mut streams = Vec::new();
    for _ in 0..job.threads {
        let stream_net = net.fork()?;
        let protocol = config.join(&setup, session.stream(), net.members())?;
        streams.push(Stream { protocol, net: stream_net, key: &key_input, workload: &workload, batch: None });
    }
    let lanes_at_once = workload.lanes_at_once(&first);
    let mut measurements = Vec::new();
    for (i, &blocks) in job.sizes.iter().enumerate() {
        let mut m = Measurement { blocks, ..Measurement::default() };
        let cost = first.cost(&workload.cipher);
        m.material_per_block = cost.material_bytes_per_lane;
        let tally = first.tally();
        check_output(&mut first, &workload, &key_input, &plain, &key, net)?;
        let counted = first.tally() - tally;
        (m.rounds, m.preprocessing_rounds) = (counted.online.rounds, counted.preprocessing.rounds);
        for repeat in 0..=job.repeats {
            let mut sum = Repeat::default();
            let mut sent = Sent::default();
            let tallies = |streams: &[Stream<'_>]| -> Vec<Tally> {
                streams.iter().map(|s| s.protocol.tally()).collect()
            };
            let before = tallies(&streams);
            let sent_so_far = || (payload.snapshot().payload_sent as f64, wire.sent() as f64);
            for shares in shares_of_threads(blocks, job.threads, lanes_at_once) {
                run_batches(&mut streams, &shares, net, &mut sum, &mut sent, &sent_so_far)?;
            }
            // The first one warms caches and grows buffers.
            if repeat > 0 {
                let counted: Vec<Tally> =
                    tallies(&streams).into_iter().zip(before).map(|(now, before)| now - before).collect();
                let per_block = |operations: fn(&Tally) -> u64| {
                    counted.iter().map(operations).sum::<u64>() as f64 / blocks as f64
                };
                m.operations_per_block = per_block(|t| t.online.operations());
                m.preprocessing_operations_per_block = per_block(|t| t.preprocessing.operations());
                // The check of an active protocol is a part of its time.
                let rounds = |t: &Tally| t.preprocessing.rounds + t.online.rounds + t.output.rounds;
                sum.rounds = counted.iter().map(rounds).max().unwrap_or(0);
                m.payload_per_block = sent.online.0 / blocks as f64;
                m.preprocessing_payload_per_block = sent.preprocessing.0 / blocks as f64;
                m.bytes_per_block = sent.online.1 / blocks as f64;
                m.preprocessing_bytes_per_block = sent.preprocessing.1 / blocks as f64;
                m.repeats.push(sum);
            }
            progress((i * (job.repeats + 1) + repeat + 1) as u64);
        }
        let began = Instant::now();
        for _ in 0..job.latency_samples {
            // One party decides when to stop; on a slow network a few samples must be enough.
            let enough = !m.latencies.is_empty() && began.elapsed() > LATENCY_BUDGET;
            if announce(KEY_OWNER, [u8::from(enough)], net)? != [0] {
                break;
            }
            m.latencies.push(latency(&mut streams[0], net)?);
        }
        m.peak_memory_bytes = peak_memory_bytes();
        measurements.push(m);
    }
    let began = Instant::now();
    drop(streams);
    if let Some(last) = measurements.last_mut() {
        last.wiping = began.elapsed().as_secs_f64();
    }
    Ok(measurements)
}

/// A thread's own protocol state and connections.
struct Stream<'a> {
    protocol: AnySession,
    net: Box<dyn Net>,
    key: &'a AnyShared,
    workload: &'a Workload,
    /// Material for some lanes.
    batch: Option<(usize, AnyBatch)>,
}

impl Stream<'_> {
    fn prepare(&mut self, lanes: usize) -> Result<(), Error> {
        if lanes > 0 {
            let batch = prepare(&mut self.protocol, &self.workload.cipher, lanes, &mut *self.net)?;
            self.batch = Some((lanes, batch));
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<Vec<AnyShared>, Error> {
        let Some((lanes, batch)) = self.batch.take() else { return Ok(Vec::new()) };
        let blocks = public_blocks(&self.workload.cipher, lanes);
        let inputs = [Input::Public(&blocks), Input::Shared(self.key)];
        let net = &mut *self.net;
        let shared = evaluate(&mut self.protocol, &self.workload.cipher, lanes, &inputs, batch, net)?;
        // What an active protocol verifies before anything is revealed is a part of its time; its rounds are
        // counted separately.
        self.protocol.enter(Phase::Output);
        self.protocol.check(net)?;
        Ok(shared)
    }
}

/// Payload and socket bytes sent.
#[derive(Default)]
struct Sent {
    preprocessing: (f64, f64),
    online: (f64, f64),
}

/// Distributes blocks: the lanes of every thread's batch, repeatedly until none are left.
fn shares_of_threads(blocks: usize, threads: usize, lanes_at_once: usize) -> Vec<Vec<usize>> {
    let most = threads * lanes_at_once;
    let rounds = (0..blocks).step_by(most).map(|done| most.min(blocks - done));
    rounds
        .map(|round| (0..threads).map(|t| round / threads + usize::from(t < round % threads)).collect())
        .collect()
}

/// One batch on every thread: all prepare, all evaluate. Then all parties meet on each stream. A party that
/// the others did not wait for is sent there what it still lacks. It would lack it for ever if the others
/// went on to wait for it on another stream ([`Net::gather`]).
fn run_batches(
    streams: &mut [Stream<'_>],
    lanes: &[usize],
    net: &mut dyn Net,
    sum: &mut Repeat,
    sent: &mut Sent,
    sent_so_far: &impl Fn() -> (f64, f64),
) -> Result<()> {
    let add = |to: &mut (f64, f64), since: (f64, f64)| {
        let now = sent_so_far();
        *to = (to.0 + now.0 - since.0, to.1 + now.1 - since.1);
    };
    meet(net)?;
    let (began, before) = (Instant::now(), sent_so_far());
    on_threads(streams, |i, stream| stream.prepare(lanes[i]))?;
    sum.preprocessing += began.elapsed().as_secs_f64();
    add(&mut sent.preprocessing, before);

    meet(net)?;
    let (began, before) = (Instant::now(), sent_so_far());
    let outputs = on_threads(streams, |_, stream| stream.evaluate())?;
    sum.online += began.elapsed().as_secs_f64();
    add(&mut sent.online, before);
    drop(outputs);
    on_threads(streams, |_, stream| meet(&mut *stream.net)).map(drop)
}

/// Runs every stream on a thread of its own, or a single one on this thread.
fn on_threads<T: Send>(
    streams: &mut [Stream<'_>],
    run: impl Fn(usize, &mut Stream<'_>) -> Result<T, Error> + Sync,
) -> Result<Vec<T>> {
    if let [only] = streams {
        return Ok(vec![run(0, only)?]);
    }
    let run = &run;
    std::thread::scope(|scope| {
        let streams = streams.iter_mut().enumerate();
        let threads: Vec<_> = streams.map(|(i, stream)| scope.spawn(move || run(i, stream))).collect();
        let results = threads.into_iter().map(|t| t.join().map_err(|_| anyhow::anyhow!("a thread panicked")));
        let results = results.collect::<Result<Vec<_>, _>>()?;
        // What failed on one stream ends others with errors that only follow from it.
        match results.iter().filter_map(|result| result.as_ref().err()).min_by_key(|e| e.rank()) {
            Some(error) => Err(error.clone().into()),
            None => results.into_iter().map(|result| Ok(result?)).collect(),
        }
    })
}

/// Seconds that one block takes online.
fn latency(stream: &mut Stream<'_>, net: &mut dyn Net) -> Result<f64> {
    stream.prepare(1)?;
    meet(net)?;
    let began = Instant::now();
    let outputs = stream.evaluate()?;
    let seconds = began.elapsed().as_secs_f64();
    drop(outputs);
    meet(&mut *stream.net)?;
    Ok(seconds)
}

/// Runs some blocks, opens the output and compares it with the cleartext.
fn check_output(
    protocol: &mut AnySession,
    workload: &Workload,
    key_input: &AnyShared,
    plain: &Circuit,
    key: &Cells,
    net: &mut dyn Net,
) -> Result<()> {
    let blocks = public_blocks(&workload.cipher, CHECKED_BLOCKS);
    let batch = prepare(protocol, &workload.cipher, CHECKED_BLOCKS, net)?;
    let inputs = [Input::Public(&blocks), Input::Shared(key_input)];
    let shared = evaluate(protocol, &workload.cipher, CHECKED_BLOCKS, &inputs, batch, net)?.remove(0);
    let output = release(protocol, &shared, Owner::All, net)?.context("the output is for all")?.accept();
    let inputs = plain.inputs().iter().zip([&blocks, key]);
    let inputs =
        inputs.map(|(port, cells)| Cells::from_blocks(port.cells.len(), port.bits, &cells.to_blocks()));
    let inputs = inputs.collect::<Result<Vec<Cells>, _>>()?;
    let expected = cleartext::run(&compile(plain, &AnyMap), CHECKED_BLOCKS, &inputs)?.remove(0);
    ensure!(
        output.to_blocks() == expected.to_blocks(),
        "the output differs from the cleartext: this is a defect, please report it"
    );
    Ok(())
}

/// Blocks that all parties know, all different.
fn public_blocks(cipher: &Compiled, lanes: usize) -> Cells {
    let port = &cipher.inputs()[0];
    let mut cells = Cells::zero(port.cells.len(), port.bits, lanes);
    let mask = 0xffu8 >> (8 - port.bits);
    for i in 0..port.cells.len() {
        let numbers = cells.row_mut(i).iter_mut().enumerate();
        numbers.for_each(|(lane, cell)| *cell = (lane.wrapping_mul(2 * i + 1) >> (i % 8)) as u8 & mask);
    }
    cells
}
