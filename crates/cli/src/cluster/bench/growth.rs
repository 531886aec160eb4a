//! `cluster bench --workers`: what more workers of each node bring. It makes a cluster for each number, in a
//! temporary folder, and measures it while it runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use polyclave_api::MAX_BLOCKS;
use polyclave_api::{Mode, NewKey};
use polyclave_client::{Client, Padding};
use polyclave_config::{
    Card, ClientDir, Cluster, Consent, NodeDir, NodeSettings, Place, Roles, StockSettings,
};
use polyclave_node::local::{Local, Shared, create_shared};
use polyclave_transport::Shape;
use serde::Serialize;

use super::Arguments;
use super::delay::Ways;
use crate::cluster::run::Quiet;
use crate::protocols::properties;
use crate::say;

/// Requests at once for each worker group: as many as a node serves for one client.
const AT_ONCE: usize = 8;
/// Blocks of a request of many.
const BLOCKS: usize = 1000;
/// The same under protocols that take material made ahead: a request does not wait long for it.
const BLOCKS_OF_STOCK: usize = 64;
/// The level of their stock in blocks. All of it is used before anything is measured, so that as much has to
/// be made as is used.
const STOCK: usize = 512;
/// How long each kind of request is measured.
const FOR: Duration = Duration::from_secs(8);
/// The same under protocols that take material made ahead, since it comes in lots.
const FOR_LOTS: Duration = Duration::from_secs(30);
pub(super) const STARTING: Duration = Duration::from_secs(180);

#[derive(Serialize)]
struct Measured {
    workers: usize,
    /// How many of them serve: all, or those that only do that.
    serving: usize,
    requests_per_s: f64,
    blocks_per_s: f64,
    failed: u64,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Some(store) = &arguments.store else {
        bail!("--workers needs --store, a database in which each node gets a schema of its own");
    };
    let mut all = Vec::new();
    if !arguments.json {
        let network = match arguments.network {
            None => "no slower network between nodes: the processors are the bound".to_owned(),
            Some(network) => format!("the network between nodes is {network}"),
        };
        say!("{} nodes under {}, all on this host; {network}", arguments.parties, arguments.protocol);
        say!(
            "{:>8} {:>8} {:>12} {:>10} {:>12} {:>10} {:>8}",
            "workers",
            "serving",
            "requests/s",
            "to first",
            "blocks/s",
            "to first",
            "failed"
        );
    }
    for workers in &arguments.workers {
        let measured = measure(arguments, store, usize::from(*workers))?;
        all.push(measured);
        let (first, last) = (&all[0], &all[all.len() - 1]);
        if !arguments.json {
            say!(
                "{:>8} {:>8} {:>12.1} {:>10.2} {:>12.0} {:>10.2} {:>8}",
                last.workers,
                last.serving,
                last.requests_per_s,
                last.requests_per_s / first.requests_per_s,
                last.blocks_per_s,
                last.blocks_per_s / first.blocks_per_s,
                last.failed
            );
        }
    }
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&all)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments, store: &str, workers: usize) -> Result<Measured> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let serving = arguments.serving.map_or(workers, |serving| workers.min(serving.into()));
    let number = |worker: usize| u16::try_from(worker).unwrap_or(u16::MAX);
    let roles = Roles {
        serve_only: (0..serving).filter(|_| serving < workers).map(number).collect(),
        make_only: (serving..workers).map(number).collect(),
    };
    let shared =
        Shared { workers, store, password: arguments.store_password.as_deref(), roles: Some(&roles) };
    let parties = usize::from(arguments.parties);
    let threshold = crate::protocols::threshold(&arguments.protocol, parties, None, 1)?;
    let local = create_shared(&folder.path().join("try"), (&arguments.protocol, parties, threshold), shared)?;
    let mut ways = Ways::new(arguments.network.unwrap_or(Shape::LOOPBACK));
    if arguments.network.is_some() {
        take_ways(&local, &folder.path().join("try"), &mut ways, Far::Nodes)?;
    }
    let keeps_stock = properties(&arguments.protocol, parties, threshold)?.keeps_stock;
    if keeps_stock {
        set_stock(&local)?;
    }
    let mut nodes = Quiet::start(local.nodes.iter().chain(&local.workers).map(PathBuf::as_path))?;
    nodes.wait_until_ready(STARTING, || false)?;
    let client = Client::open(&ClientDir::open(&local.client)?)?;
    for (name, mode) in [("gcm", Mode::Gcm), ("ecb", Mode::Ecb)] {
        client.generate(NewKey::for_modes(name, "aes-128", &[mode], MAX_BLOCKS))?;
    }
    let at_once = AT_ONCE * serving;
    let time = if keeps_stock { FOR_LOTS } else { FOR };
    let (requests, failed) = rate(at_once, time, || {
        client.seal("gcm", &mut &[7; 16][..], &mut Vec::new(), &mut |_| ())?;
        Ok(())
    });
    let blocks = if keeps_stock { BLOCKS_OF_STOCK } else { BLOCKS };
    let input = vec![7; 16 * blocks];
    let ask = || {
        client.key("ecb")?.ecb().padding(Padding::None).encrypt(&input)?;
        Ok(())
    };
    if keeps_stock {
        (0..serving * STOCK / blocks).try_for_each(|_| ask())?;
    }
    let (many, failed_too) = rate(at_once, time, ask);
    client.end();
    Ok(Measured {
        workers,
        serving,
        requests_per_s: requests,
        blocks_per_s: many * blocks as f64,
        failed: failed + failed_too,
    })
}

fn set_stock(local: &Local) -> Result<()> {
    for path in local.nodes.iter().chain(&local.workers) {
        let mut dir = NodeDir::open(path)?;
        let stock = StockSettings::of(STOCK, 0);
        dir.set_settings(NodeSettings { stock, ..dir.settings().clone() })?;
    }
    Ok(())
}

/// How many times a second something is done, by so many threads at once, and how often it failed.
fn rate(threads: usize, time: Duration, work: impl Fn() -> Result<()> + Sync) -> (f64, u64) {
    let (done, failed, began) = (AtomicU64::new(0), AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while began.elapsed() < time {
                    let counter = if work().is_ok() { &done } else { &failed };
                    counter.fetch_add(1, Relaxed);
                }
            });
        }
    });
    (done.load(Relaxed) as f64 / began.elapsed().as_secs_f64(), failed.load(Relaxed))
}

/// Who is far from the nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Far {
    Nodes,
    NodesAndClient,
}

/// Puts a way before each worker. The addresses of the others lead there; each listens where it did.
pub(super) fn take_ways(local: &Local, folder: &Path, ways: &mut Ways, far: Far) -> Result<()> {
    let mut late = |address: &str| -> Result<String> {
        let end: SocketAddr = address.parse().context("an address of this host")?;
        Ok(ways.to(end)?.to_string())
    };
    let mut late_place = |place: &Place| -> Result<Place> {
        let client_address = match far {
            Far::Nodes => place.client_address.clone(),
            Far::NodesAndClient => late(&place.client_address)?,
        };
        Ok(Place { address: late(&place.address)?, client_address })
    };
    let cluster = Cluster::load(&folder.join("cluster.toml"))?;
    let mut changed = cluster.clone();
    for card in cluster.cards() {
        let workers = card.workers.iter().map(&mut late_place).collect::<Result<_>>()?;
        let first = Place { address: card.address.clone(), client_address: card.client_address.clone() };
        let Place { address, client_address } = late_place(&first)?;
        changed.update(Card { address, client_address, workers, ..card.clone() })?;
    }
    for path in local.nodes.iter().chain(&local.workers) {
        let mut dir = NodeDir::open(path)?;
        let mut settings = dir.settings().clone();
        let card = changed.card_named(&settings.name).context("its card")?;
        let place = card.places().nth(settings.worker.into()).context("its place")?;
        settings.address = place.address;
        settings.client_address = place.client_address;
        if settings.worker == 0 {
            settings.workers = card.workers.clone();
        }
        dir.set_settings(settings)?;
        dir.set_cluster(&changed, Consent::Certificates)?;
    }
    ClientDir::open(&local.client)?.set_cluster(&changed, Consent::Certificates)?;
    Ok(())
}
