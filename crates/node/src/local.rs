//! A cluster on one host, to try things out. One command makes all directories and could read all of them.
//!
//! It shows how nodes work together. It does not separate trust: for that, each node's directory must be made
//! on the machine where it stays.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use polyclave_api::Right;
use polyclave_config::{Card, ClientDir, Cluster, Consent, NodeDir, NodeSettings, Place, Roles, private};
use polyclave_protocol::Error;
use polyclave_protocol::session::random_bytes;
use polyclave_transport::Identity;

use crate::Result;
use crate::error::system;

/// How long the certificates of a trial cluster are valid.
const VALID_DAYS: u32 = 365;

/// The directories of a cluster on one host.
pub struct Local {
    /// One directory for each node.
    pub nodes: Vec<PathBuf>,
    /// The directories of further workers of the nodes.
    pub workers: Vec<PathBuf>,
    /// The directory of a client that has all rights.
    pub client: PathBuf,
}

impl Local {
    /// Changes the cluster's file at all nodes and the client, before they are started.
    pub fn change_cluster<E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Cluster) -> Result<(), E>,
    ) -> Result<(), E> {
        let client = ClientDir::open(&self.client).map_err(system)?;
        let Some(mut cluster) = client.cluster().map_err(system)? else { return Ok(()) };
        let before = cluster.fingerprint();
        change(&mut cluster)?;
        if cluster.fingerprint() == before {
            return Ok(());
        }
        client.set_cluster(&cluster, Consent::None).map_err(system)?;
        cluster.save(&self.client.with_file_name("cluster.toml")).map_err(system)?;
        for path in self.nodes.iter().chain(&self.workers) {
            NodeDir::open(path).and_then(|dir| dir.set_cluster(&cluster, Consent::None)).map_err(system)?;
        }
        Ok(())
    }
}

/// Where the nodes of a cluster on one host keep their stores, if not in files, and how many workers share
/// each.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'s> {
    /// Workers of each node, at least 1.
    pub workers: usize,
    /// A database at a PostgreSQL server, in which each node gets a schema of its own.
    pub store: &'s str,
    /// The file with the password for it.
    pub password: Option<&'s Path>,
    /// What the workers do; `None` if all of them serve and make material.
    pub roles: Option<&'s Roles>,
}

/// Ports of one worker: for its peers, for clients, and for HTTP.
pub const PORTS: usize = 3;

/// Makes `node-1` .. `node-n` and `client` in a new directory, all on the loopback interface, on ports that
/// are free now.
pub fn create(dir: &Path, protocol: &str, nodes: usize, threshold: usize) -> Result<Local> {
    create_on(dir, (protocol, threshold), &free_ports(PORTS * nodes)?, None)
}

/// The same with stores at a server, and workers that share them.
pub fn create_shared(
    dir: &Path,
    (protocol, nodes, threshold): (&str, usize, usize),
    shared: Shared<'_>,
) -> Result<Local> {
    let ports = free_ports(PORTS * nodes * shared.workers)?;
    create_on(dir, (protocol, threshold), &ports, Some(shared))
}

/// The same on given ports, [`PORTS`] for each worker of each node.
pub fn create_on(
    dir: &Path,
    (protocol, threshold): (&str, usize),
    ports: &[u16],
    shared: Option<Shared<'_>>,
) -> Result<Local> {
    private::make_dir(dir).map_err(system)?;
    let made = fill(dir, (protocol, threshold), ports, shared);
    if made.is_err() {
        // This made the directory, and the next attempt needs its name. The caller gets the first error.
        let _ = std::fs::remove_dir_all(dir);
    }
    made
}

/// Makes everything in a new directory.
fn fill(
    dir: &Path,
    (protocol, threshold): (&str, usize),
    ports: &[u16],
    shared: Option<Shared<'_>>,
) -> Result<Local> {
    let workers = shared.map_or(1, |shared| shared.workers.max(1));
    let mut trial = [0; 4];
    random_bytes(&mut trial)?;
    let mut cards: Vec<Card> = Vec::new();
    let mut paths = Vec::new();
    let ports: Vec<&[[u16; PORTS]]> = ports.as_chunks::<PORTS>().0.chunks_exact(workers).collect();
    for (number, ports) in (1..).zip(&ports) {
        let name = format!("node-{number}");
        let at = |port: u16| format!("127.0.0.1:{port}");
        let places = ports.iter().map(|ports| Place { address: at(ports[0]), client_address: at(ports[1]) });
        let mut settings = NodeSettings::new(&name, &at(ports[0][0]), &at(ports[0][1]));
        settings.http_listen = Some(at(ports[0][2]));
        if let Some(shared) = shared {
            let schema = format!("polyclave_{}_{number}", hex::encode(trial));
            settings.store =
                Some(polyclave_store::make_schema(shared.store, shared.password, &schema).map_err(system)?);
            settings.workers = places.skip(1).collect();
        }
        let identity = Identity::generate_named(&name, VALID_DAYS)?;
        let path = dir.join(&name);
        let card = NodeDir::init(&path, &settings, &identity.certificate(), &identity.reveal_private_key());
        cards.push(card.map_err(system)?);
        paths.push(path);
    }
    let mut cluster = Cluster::define(protocol, threshold, cards).map_err(system)?;
    if let Some(roles) = shared.and_then(|shared| shared.roles) {
        cluster.set_roles(roles.clone()).map_err(system)?;
    }
    if cluster.can_have_standby() {
        cluster.set_standby(true).map_err(system)?;
    }
    cluster.save(&dir.join("cluster.toml")).map_err(system)?;

    let identity = Identity::generate_named("client", VALID_DAYS)?;
    let client = dir.join("client");
    let card = ClientDir::init(&client, "client", &identity.certificate(), &identity.reveal_private_key());
    let card = card.map_err(system)?;
    ClientDir::open(&client).and_then(|dir| dir.set_cluster(&cluster, Consent::None)).map_err(system)?;
    for path in &paths {
        let dir = NodeDir::open(path).map_err(system)?;
        dir.set_cluster(&cluster, Consent::None).map_err(system)?;
        let mut policy = dir.policy().map_err(system)?;
        policy.allow(&card, &Right::ALL, &["*".into()]).map_err(system)?;
        dir.save_policy(&policy).map_err(system)?;
        if let Some(password) = shared.and_then(|shared| shared.password) {
            let password = private::read(password).map_err(system)?;
            private::write(&dir.store_password_path(), &password).map_err(system)?;
        }
    }
    let mut workers = Vec::new();
    for (path, ports) in paths.iter().zip(&ports) {
        let node = NodeDir::open(path).map_err(system)?;
        for (number, ports) in (1..).zip(&ports[1..]) {
            let worker = path.with_file_name(worker_dir(&node.settings().name, number));
            node.init_worker(&worker, number, Some(format!("127.0.0.1:{}", ports[2]))).map_err(system)?;
            workers.push(worker);
        }
    }
    Ok(Local { nodes: paths, workers, client })
}

/// The name of the directory of a node's worker in a cluster on one host.
pub fn worker_dir(node: &str, number: u16) -> String {
    if number == 0 { node.into() } else { format!("{node}-worker-{number}") }
}

/// Makes directories for more nodes of a cluster on one host, with the limits, stock and rules for clients of
/// one of its nodes. Returns their cards.
pub fn add_nodes(dir: &Path, count: usize, like: &str) -> Result<Vec<Card>> {
    let model = NodeDir::open(&dir.join(like)).map_err(system)?;
    let policy = model.policy().map_err(system)?;
    let names = (1..).map(|number| format!("node-{number}")).filter(|name| !dir.join(name).exists());
    let ports = free_ports(3 * count)?;
    let mut cards = Vec::new();
    for (name, ports) in names.take(count).collect::<Vec<_>>().into_iter().zip(ports.chunks(3)) {
        let at = |port: u16| format!("127.0.0.1:{port}");
        let mut settings = NodeSettings::new(&name, &at(ports[0]), &at(ports[1]));
        settings.http_listen = Some(at(ports[2]));
        (settings.limits, settings.stock) = (model.settings().limits.clone(), model.settings().stock.clone());
        let identity = Identity::generate_named(&name, VALID_DAYS)?;
        let path = dir.join(&name);
        let card = NodeDir::init(&path, &settings, &identity.certificate(), &identity.reveal_private_key());
        cards.push(card.map_err(system)?);
        NodeDir::open(&path).and_then(|node| node.save_policy(&policy)).map_err(system)?;
    }
    Ok(cards)
}

/// Ports on which no process listens now. They lie below the range that systems use for outgoing connections,
/// so that a node that is down for a while finds its own ports free again. This process never returns the
/// same port twice.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    const FIRST: u16 = 10_000;
    const PORTS: u16 = 14_000;
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // Another process starts at another port.
    let start = std::process::id() as u16;
    let mut free = Vec::new();
    while free.len() < count {
        let tried = TRIED.fetch_add(1, Relaxed);
        if tried >= PORTS {
            return Err(Error::System(format!("no free port on the loopback interface from {FIRST} on")));
        }
        let port = FIRST + start.wrapping_mul(97).wrapping_add(tried) % PORTS;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            free.push(port);
        }
    }
    Ok(free)
}
