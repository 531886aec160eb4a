//! `polyclave cluster bench`: measures what a client gets from a running cluster, or from a new one with a
//! slower network between its nodes.
//!
//! It makes keys of its own, measures single requests of several kinds one after the other, single blocks
//! from many clients at once, and a long stream in each direction, and deletes the keys. The client runs on
//! this machine too, so on one host it takes its share of the processors.

mod apart;
mod delay;
mod growth;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use polyclave_client::Client;
use polyclave_protocol::session::random_bytes;
use polyclave_transport::Shape;
use serde::Serialize;

use self::apart::Apart;
use self::requests::{Kind, Requests, Times, delete_keys, milliseconds};
use crate::client_option::ClientOption;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(mut_arg("dir", |dir| dir.required(false).required_unless_present_any(["workers", "network"])))]
#[command(after_help = "Examples:\n  \
    polyclave cluster bench --client try/client\n  \
    polyclave cluster bench --network 20ms,1Gbit --far-client --protocol replicated-active\n  \
    polyclave cluster bench --network loopback --protocol replicated-active --without-one\n  \
    polyclave cluster bench --workers 1,2,4,8 --store postgresql://USER@HOST/DATABASE --network 20ms,unlimited\n  \
    polyclave cluster bench --workers 1,2,3,5 --serving 1 --protocol spdz-tower --parties 2 --store ..\n\n\
    With --network it makes a cluster of its own in a temporary folder, with such a network between its nodes: the way there and back, and \
    the rate of the connections that others make to a node, in each direction. With --workers it makes one cluster after the other, and \
    measures what more workers of each node bring.")]
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

    /// Measure a new cluster with this network between its nodes: loopback, lan, wan, or a round-trip time
    /// and a rate such as 20ms,1Gbit
    #[arg(long, value_name = "NETWORK")]
    network: Option<Shape>,

    /// With --network: the same network is between the client and the nodes
    #[arg(long, requires = "network", conflicts_with = "workers")]
    far_client: bool,

    /// With --network: end the last node once the keys are made, and measure the others
    #[arg(long, requires = "network", conflicts_with = "workers")]
    without_one: bool,

    /// Measure only these kinds of single requests, and make no keys for the others
    #[arg(long, value_name = "KIND,KIND..", value_delimiter = ',', value_enum)]
    only: Vec<Kind>,

    /// Requests of each kind, one after the other
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

/// The time in which nodes that are far from each other make what shortens requests.
const MAKING: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Measured {
    /// The network between the nodes of a new cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Network>,
    key_ms: f64,
    requests: BTreeMap<Kind, Times>,
    clients: u32,
    requests_per_s: f64,
    bytes: u64,
    seal_mb_per_s: f64,
    open_mb_per_s: f64,
}

#[derive(Serialize)]
struct Network {
    protocol: String,
    nodes: usize,
    shape: String,
    /// The way from node to node and back, as measured.
    round_trip_ms: f64,
    far_client: bool,
    without_one: bool,
}

impl Arguments {
    /// The kinds of single requests that are measured.
    fn kinds(&self) -> Vec<Kind> {
        let wanted = if self.only.is_empty() { &Kind::USUAL[..] } else { &self.only };
        BTreeSet::from_iter(wanted.iter().copied()).into_iter().collect()
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if !arguments.workers.is_empty() {
        return growth::run(arguments);
    }
    let measured = match (arguments.network, &arguments.client) {
        (Some(network), _) => of_new(arguments, network)?,
        (None, Some(client)) => of_running(arguments, &client.open()?)?,
        (None, None) => {
            bail!("name the client of a running cluster (--client DIR), or measure a new one (--network)")
        }
    };
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&measured)?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(network) = &measured.network {
        say!("{:<18} {:.2} ms between nodes, as measured", "there and back", network.round_trip_ms);
    }
    say!("{:<18} {:.1} ms", "a key made", measured.key_ms);
    for (kind, times) in &measured.requests {
        say!("{:<18} {times}", kind.title());
    }
    let clients = format!("{} clients", measured.clients);
    say!("{clients:<18} {:.0} requests of one block sealed a second", measured.requests_per_s);
    say!(
        "{:<18} sealed at {:.2} MB/s, opened at {:.2} MB/s",
        "a long stream",
        measured.seal_mb_per_s,
        measured.open_mb_per_s
    );
    Ok(ExitCode::SUCCESS)
}

/// Measures a running cluster. The keys are deleted afterwards, also if not all of them could be made.
fn of_running(arguments: &Arguments, client: &Client) -> Result<Measured> {
    let (name, kinds) = (fresh_name()?, arguments.kinds());
    let measured = Requests::new(client, name.clone(), &kinds).and_then(|(requests, key)| {
        let measured = measure(arguments, client, &requests, Duration::ZERO);
        requests.delete_made()?;
        let measured = measured?;
        Ok(Measured { key_ms: milliseconds(key), ..measured })
    });
    let deleted = delete_keys(client, &name, &kinds);
    let measured = measured?;
    deleted.map(|()| measured)
}

/// Measures a new cluster.
fn of_new(arguments: &Arguments, shape: Shape) -> Result<Measured> {
    let (mut cluster, client) = Apart::start(arguments, shape)?;
    let (requests, key) = Requests::new(&client, fresh_name()?, &arguments.kinds())?;
    if arguments.without_one {
        cluster.end_last()?;
    }
    let measured = measure(arguments, &client, &requests, shape.rtt);
    // The nodes end after it.
    client.end();
    let network = Network {
        protocol: arguments.protocol.clone(),
        nodes: arguments.parties.into(),
        shape: shape.to_string(),
        round_trip_ms: milliseconds(cluster.round_trip),
        far_client: arguments.far_client,
        without_one: arguments.without_one,
    };
    Ok(Measured { network: Some(network), key_ms: milliseconds(key), ..measured? })
}

fn fresh_name() -> Result<String> {
    let mut number = [0; 8];
    random_bytes(&mut number)?;
    Ok(format!("bench-{}", hex::encode(number)))
}

fn measure(
    arguments: &Arguments,
    client: &Client,
    requests: &Requests<'_>,
    rest: Duration,
) -> Result<Measured> {
    let kinds = arguments.kinds();
    requests.warm_up(&kinds)?;
    std::thread::sleep(MAKING);
    let times = kinds.iter().map(|kind| Ok((*kind, requests.times(*kind, arguments.requests, rest)?)));
    let times: BTreeMap<Kind, Times> = times.collect::<Result<_>>()?;

    let began = Instant::now();
    let left = AtomicU64::new(arguments.concurrent_requests);
    let worker = || -> Result<()> {
        while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            requests.one(Kind::Sealed)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..arguments.clients).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|_| anyhow::bail!("a worker failed")))
    })?;
    let requests_per_s = arguments.concurrent_requests as f64 / began.elapsed().as_secs_f64();

    let (mut file, key) = (tempfile::tempfile()?, requests.sealing_key());
    let began = Instant::now();
    client.seal(&key, &mut Zeros(arguments.bytes), &mut std::io::BufWriter::new(&mut file), &mut |_| ())?;
    let seal = began.elapsed().as_secs_f64();
    std::io::Seek::rewind(&mut file)?;
    let began = Instant::now();
    let mut input = std::io::BufReader::new(file);
    let opened = client.open_sealed(&key, &mut input, &mut std::io::sink(), &mut |_| ())?;
    let open = began.elapsed().as_secs_f64();
    ensure!(opened == arguments.bytes, "{opened} bytes came back of {}", arguments.bytes);
    let rate = |seconds: f64| arguments.bytes as f64 / seconds.max(1e-9) / 1e6;
    Ok(Measured {
        network: None,
        key_ms: 0.0,
        requests: times,
        clients: arguments.clients,
        requests_per_s,
        bytes: arguments.bytes,
        seal_mb_per_s: rate(seal),
        open_mb_per_s: rate(open),
    })
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
