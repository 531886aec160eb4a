//! `polyclave cluster bench`: measures what a client gets from a running cluster.
//!
//! It makes keys of its own, measures single blocks one after the other, single blocks from many clients at
//! once, and a long stream in each direction, and deletes the keys. The client runs on this machine too, so
//! on one host it takes its share of the processors.

mod apart;
mod delay;
mod growth;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use polyclave_api::MAX_BLOCKS;
use polyclave_api::{Mode, NewKey};
use polyclave_client::{Client, Padding};
use polyclave_protocol::session::random_bytes;
use serde::Serialize;

use crate::client_option::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(mut_arg("dir", |dir| dir.required(false).required_unless_present_any(["workers", "round_trip"])))]
#[command(after_help = "Examples:\n  \
    polyclave cluster bench --client try/client\n  \
    polyclave cluster bench --round-trip 20 --protocol replicated-active\n  \
    polyclave cluster bench --workers 1,2,4,8 --store postgresql://USER@HOST/DATABASE --round-trip 20\n  \
    polyclave cluster bench --workers 1,2,3,5 --serving 1 --protocol spdz-tower --parties 2 --store ..\n\n\
    With --round-trip it makes a cluster of its own in a temporary folder, and puts a delay between its nodes. \
    With --workers it makes one cluster after the other, and measures what more workers of each node bring.")]
pub struct Arguments {
    #[command(flatten)]
    client: Option<ClientOption>,

    /// Measure new clusters with so many workers of each node
    #[arg(long, value_name = "W,W..", value_delimiter = ',', requires = "store", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Vec<u16>,

    /// With --workers: a database of a PostgreSQL server for their stores
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// With --workers: the private file with the password for it
    #[arg(long, value_name = "FILE", requires = "store")]
    store_password: Option<PathBuf>,

    /// Of a new cluster: the protocol
    #[arg(long, value_name = "P", default_value = "shamir")]
    protocol: String,

    /// Of a new cluster: nodes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=16))]
    parties: u16,

    /// With --workers: so many of them only serve, and the others only make material
    #[arg(long, value_name = "S", requires = "workers", value_parser = clap::value_parser!(u16).range(1..=64))]
    serving: Option<u16>,

    /// Measure a new cluster with so many milliseconds for the way from node to node and back
    #[arg(long, value_name = "MS")]
    round_trip: Option<u64>,

    /// Requests of one block, one after the other
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    requests: u32,

    /// Clients at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,

    /// Requests of all of these clients together
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    concurrent_requests: u64,

    /// Bytes of the stream that is sealed and opened
    #[arg(long, value_name = "BYTES", default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    bytes: u64,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

/// Requests of each kind that are not measured, and the time after them.
const WARM_UP: usize = 8;
const MAKING: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Measured {
    /// The way from node to node and back, as measured, if this made the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_ms: Option<f64>,
    key_ms: f64,
    /// A sealed file of one block: two blocks of AES and a tag.
    #[serde(flatten)]
    sealed: Times,
    /// One block in ecb.
    ecb: Times,
    clients: u32,
    requests_per_s: f64,
    bytes: u64,
    seal_mb_per_s: f64,
    open_mb_per_s: f64,
}

/// How long requests took.
#[derive(Clone, Copy, Serialize)]
struct Times {
    median_ms: f64,
    percentile_95_ms: f64,
    least_ms: f64,
}

impl Times {
    /// With a rest between two requests, in which the nodes end the one before.
    fn of(requests: u32, rest: Duration, mut request: impl FnMut() -> Result<()>) -> Result<Times> {
        let mut times = Vec::new();
        for _ in 0..requests {
            let began = Instant::now();
            request()?;
            times.push(began.elapsed());
            std::thread::sleep(rest);
        }
        times.sort_unstable();
        let at = |part: usize| milliseconds(times[(times.len() * part / 100).min(times.len() - 1)]);
        Ok(Times { median_ms: at(50), percentile_95_ms: at(95), least_ms: at(0) })
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Times { median_ms, percentile_95_ms, least_ms } = self;
        write!(f, "median {median_ms:.2} ms, 95% within {percentile_95_ms:.2} ms, least {least_ms:.2} ms")
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if !arguments.workers.is_empty() {
        return growth::run(arguments);
    }
    let measured = match (&arguments.client, arguments.round_trip) {
        (Some(_), Some(_)) => {
            bail!("a cluster that runs has the delay that it has: leave out --client or --round-trip")
        }
        (Some(client), None) => of_client(arguments, &client.open()?)?,
        (None, Some(ms)) => {
            let of_client = |client: &Client| of_client(arguments, client);
            let (way, measured) = apart::with_client(arguments, Duration::from_millis(ms), of_client)?;
            Measured { round_trip_ms: Some(milliseconds(way)), ..measured }
        }
        (None, None) => {
            bail!("name the client of a running cluster (--client DIR), or measure a new one (--round-trip)")
        }
    };
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&measured)?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(ms) = measured.round_trip_ms {
        say!("there and back     {ms:.2} ms between nodes, as measured");
    }
    say!("a key made         {:.1} ms", measured.key_ms);
    say!("one block sealed   {}", measured.sealed);
    say!("one block in ecb   {}", measured.ecb);
    say!(
        "{:<3} clients        {:.0} requests of one block a second",
        measured.clients,
        measured.requests_per_s
    );
    say!(
        "a long stream      sealed at {:.2} MB/s, opened at {:.2} MB/s",
        measured.seal_mb_per_s,
        measured.open_mb_per_s
    );
    Ok(ExitCode::SUCCESS)
}

/// Measures what a client gets, with keys of its own.
fn of_client(arguments: &Arguments, client: &Client) -> Result<Measured> {
    let mut number = [0; 8];
    random_bytes(&mut number)?;
    let name = format!("bench-{}", hex::encode(number));
    let names = [Mode::Gcm, Mode::Ecb].map(|mode| (format!("{name}-{mode}"), mode));
    let began = Instant::now();
    for (name, mode) in &names {
        client.generate(NewKey::for_modes(name, "aes-128", &[*mode], MAX_BLOCKS))?;
    }
    let key_ms = milliseconds(began.elapsed()) / names.len() as f64;
    let measured = measure(arguments, client, [&names[0].0, &names[1].0], key_ms);
    names.iter().try_for_each(|(name, _)| client.delete(name).map(drop))?;
    measured
}

fn measure(
    arguments: &Arguments,
    client: &Client,
    [key, ecb_key]: [&str; 2],
    key_ms: f64,
) -> Result<Measured> {
    // Nodes that are far from each other notice it by the first requests, and make what shortens the next.
    for _ in 0..WARM_UP {
        one_block(client, key)?;
        one_block_in_ecb(client, ecb_key)?;
    }
    std::thread::sleep(MAKING);
    let rest = Duration::from_millis(arguments.round_trip.unwrap_or_default());
    let sealed = Times::of(arguments.requests, rest, || one_block(client, key))?;
    let ecb = Times::of(arguments.requests, rest, || one_block_in_ecb(client, ecb_key))?;

    let began = Instant::now();
    let left = AtomicU64::new(arguments.concurrent_requests);
    let worker = || -> Result<()> {
        while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            one_block(client, key)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..arguments.clients).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|_| anyhow::bail!("a worker failed")))
    })?;
    let requests_per_s = arguments.concurrent_requests as f64 / began.elapsed().as_secs_f64();

    let mut file = tempfile::tempfile()?;
    let began = Instant::now();
    client.seal(key, &mut Zeros(arguments.bytes), &mut std::io::BufWriter::new(&mut file), &mut |_| ())?;
    let seal = began.elapsed().as_secs_f64();
    std::io::Seek::rewind(&mut file)?;
    let began = Instant::now();
    let mut input = std::io::BufReader::new(file);
    let opened = client.open_sealed(key, &mut input, &mut std::io::sink(), &mut |_| ())?;
    let open = began.elapsed().as_secs_f64();
    ensure!(opened == arguments.bytes, "{opened} bytes came back of {}", arguments.bytes);
    let rate = |seconds: f64| arguments.bytes as f64 / seconds.max(1e-9) / 1e6;
    Ok(Measured {
        round_trip_ms: None,
        key_ms,
        sealed,
        ecb,
        clients: arguments.clients,
        requests_per_s,
        bytes: arguments.bytes,
        seal_mb_per_s: rate(seal),
        open_mb_per_s: rate(open),
    })
}

fn one_block(client: &Client, key: &str) -> Result<()> {
    let mut sealed = Vec::new();
    client.seal(key, &mut &[7; 16][..], &mut sealed, &mut |_| ())?;
    Ok(())
}

fn one_block_in_ecb(client: &Client, key: &str) -> Result<()> {
    client.key(key)?.ecb().padding(Padding::None).encrypt(&[7; 16])?;
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A reader of this many zeros.
struct Zeros(u64);

impl std::io::Read for Zeros {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = buffer.len().min(usize::try_from(self.0).unwrap_or(usize::MAX));
        buffer[..count].fill(0);
        self.0 -= count as u64;
        Ok(count)
    }
}
