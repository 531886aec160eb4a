//! A gateway that runs.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use hyper_util::server::graceful::GracefulShutdown;
use polyclave_client::Client;
use polyclave_config::{ClientDir, GatewayKmip, GatewaySettings, KmsListener};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::aws::{self, Aws};
use crate::bulk::Bulk;
use crate::connections::{ConnectionCounts, Connections, Limits};
use crate::counts::{Counts, Now};
use crate::kmip::Kmip;
use crate::kms::Kms;
use crate::listen::{Socket, bind, serve, serve_kmip, serve_kms};
use crate::login::{Allowance, Turns};
use crate::look::{Look, Looking};
use crate::memory::Memory;
use crate::nodes::Asker;
use crate::queue::Queue;
use crate::tokens::Tokens;
use crate::traced::Traces;
use crate::transform::Transformations;
use crate::ui::{self, Access, Collector, Hosts, Own, Ui};
use crate::vault::{Cluster, Vault, pages};
use crate::versions::Versions;
use crate::xks::{self, Store, Xks};
use crate::{Result, tls};

/// How long requests that are under way may take to end when the gateway stops.
const LAST_REQUESTS: Duration = Duration::from_secs(5);
/// How long a start waits for the first look at the nodes. After that it serves all the same.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// How often samples are sorted into their buckets.
const UPKEEP: Duration = Duration::from_secs(5);
/// Connections for health and metrics, and of an API server.
const FEW: usize = 64;

/// A gateway that serves until this is dropped.
pub struct Running {
    runtime: Option<Runtime>,
    /// The runtime of long requests.
    bulk: Option<Runtime>,
    tasks: Vec<JoinHandle<()>>,
    graceful: Arc<parking_lot::Mutex<GracefulShutdown>>,
    connections: Vec<Arc<Connections>>,
    seen: Seen,
    sockets: Vec<Arc<Socket>>,
    addresses: Vec<SocketAddr>,
    kmip_addresses: Vec<SocketAddr>,
    http_address: Option<SocketAddr>,
    looking: Looking,
    collector: Arc<Collector>,
    client: Arc<Client>,
}

/// What health and metrics are answered from.
#[derive(Clone)]
struct Seen {
    counts: Arc<Counts>,
    look: Arc<Look>,
    queue: Queue,
    memory: Arc<Memory>,
    bulk: Bulk,
    /// The connections of the listeners, the KMSs and KMIP, in the order of the file.
    listeners: Arc<Vec<Arc<Connections>>>,
    kms: Arc<Vec<Arc<Connections>>>,
    kmip: Arc<Vec<Arc<Connections>>>,
    traces: Traces,
}

impl Seen {
    /// The connections of each API.
    fn connections(&self) -> [(&'static str, ConnectionCounts); 3] {
        let sum = |all: &[Arc<Connections>]| {
            all.iter().map(|some| some.counts()).fold(ConnectionCounts::default(), ConnectionCounts::and)
        };
        [("transit", sum(&self.listeners)), ("kms", sum(&self.kms)), ("kmip", sum(&self.kmip))]
    }
}

impl Running {
    /// Starts the gateway of a file. The nodes need not be there yet.
    pub fn start(file: &Path) -> Result<Running> {
        let settings = GatewaySettings::load(file)?;
        let transformations = Transformations::new(&settings.transform)?;
        let client = Client::open(&ClientDir::open(&settings.client)?)?;
        let client = Arc::new(client.on_remark(|remark| tracing::warn!("{remark}")));
        let tokens = Arc::new(Tokens::load(file, client.clone())?);
        let keys = settings.kms.iter().map(|kms| kms.key.clone()).collect();
        let looking = Looking::start(client.clone(), keys)?;
        looking.wait_for_first(FIRST_LOOK);
        let counts = Arc::new(Counts::new().map_err(std::io::Error::other)?);
        let queue = Queue::new(settings.limits.requests_at_once, settings.limits.waiting_per_token);
        let memory = Memory::new(settings.limits.memory_mib << 20);
        let new = |limits: Limits| Connections::new(limits);
        let listeners = settings.listeners.iter().map(|_| new(Limits::of(settings.limits.connections)));
        let kms = settings.kms.iter().map(|_| new(Limits::of(FEW)));
        let kmip = settings.kmip.iter().map(|_| new(Limits::of(settings.limits.connections)));
        let (bulk_threads, bulk) = Bulk::start()?;
        let seen = Seen {
            counts,
            look: looking.look.clone(),
            queue,
            memory,
            bulk,
            listeners: Arc::new(listeners.collect()),
            kms: Arc::new(kms.collect()),
            kmip: Arc::new(kmip.collect()),
            traces: Traces::start(&settings.traces).map_err(std::io::Error::other)?,
        };
        let within = Duration::from_secs(settings.limits.request_seconds);
        let aws = Aws::new(tokens.clone(), seen.queue.clone(), seen.counts.clone(), within);
        let cluster = client.cluster();
        let xks = Xks {
            stores: settings.xks.iter().map(Store::new).collect(),
            tokens: tokens.clone(),
            queue: seen.queue.clone(),
            look: seen.look.clone(),
            counts: seen.counts.clone(),
            cluster: format!("cluster of {} nodes, {}", cluster.nodes(), cluster.protocol()),
            current: xks::Current::default(),
        };
        let vault = Arc::new(Vault {
            tokens: tokens.clone(),
            queue: seen.queue.clone(),
            versions: Versions::default(),
            look: seen.look.clone(),
            counts: seen.counts.clone(),
            memory: seen.memory.clone(),
            bulk: seen.bulk.clone(),
            within,
            failures: Allowance::of_failures(),
            turns: Turns::new(),
            transformations,
            cluster: Cluster {
                id: client.cluster().id(),
                protocol: client.cluster().protocol().into(),
                nodes: client.cluster().nodes(),
                needed: client.cluster().nodes() - client.spare_nodes(),
            },
        });
        let own = Own { counts: seen.counts.clone(), queue: seen.queue.clone() };
        let collector = Collector::new(client.clone(), Some(own))?;
        let page = Ui::new(Access::Gateway(tokens.clone()), collector.clone());
        let pages = pages(vault).merge(ui::pages(page, Hosts::Any)).merge(aws::pages(Arc::new(aws)));
        let with_stores = seen.traces.over(xks::with_stores(pages.clone(), xks));
        let pages = seen.traces.over(pages);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("gateway").build()?;
        let mut running = Running {
            runtime: Some(runtime),
            bulk: Some(bulk_threads),
            tasks: Vec::new(),
            graceful: Arc::new(parking_lot::Mutex::new(GracefulShutdown::new())),
            connections: Vec::new(),
            seen,
            sockets: Vec::new(),
            addresses: Vec::new(),
            kmip_addresses: Vec::new(),
            http_address: None,
            looking,
            collector,
            client,
        };
        running.listen(&settings, [&pages, &with_stores], &tokens)?;
        Ok(running)
    }

    /// Serves what the settings name.
    fn listen(
        &mut self,
        settings: &GatewaySettings,
        [pages, with_stores]: [&Router; 2],
        tokens: &Arc<Tokens>,
    ) -> Result<()> {
        let seen = self.seen.clone();
        for (listener, connections) in settings.listeners.iter().zip(&*seen.listeners) {
            let acceptor = tls::acceptor(listener)?;
            let pages = if settings.has_stores(listener) { with_stores } else { pages };
            let address = self.serve(&listener.address, acceptor, pages.clone(), connections)?;
            self.addresses.push(address);
        }
        if let Some(address) = &settings.http_listen {
            let connections = Connections::new(Limits::of(FEW));
            let address = self.serve(address, None, health_pages(seen.clone()), &connections)?;
            self.http_address = Some(address);
        }
        for (kms, connections) in settings.kms.iter().zip(&*seen.kms) {
            self.serve_kms(kms, connections)?;
        }
        for (kmip, connections) in settings.kmip.iter().zip(&*seen.kmip) {
            let kmip_server = Kmip {
                address: kmip.address.clone(),
                tokens: tokens.clone(),
                queue: seen.queue.clone(),
                counts: seen.counts.clone(),
                within: Duration::from_secs(settings.limits.request_seconds),
            };
            self.serve_kmip(kmip, kmip_server, connections)?;
        }
        let counts = seen.counts.clone();
        let upkeep = async move {
            loop {
                tokio::time::sleep(UPKEEP).await;
                counts.sort();
            }
        };
        self.spawn(upkeep);
        Ok(())
    }

    fn serve(
        &mut self,
        address: &str,
        acceptor: Option<tokio_rustls::TlsAcceptor>,
        pages: Router,
        connections: &Arc<Connections>,
    ) -> Result<SocketAddr> {
        let (listener, bound) = self.runtime().block_on(bind(address))?;
        self.connections.push(connections.clone());
        let connections = connections.clone();
        let graceful = self.graceful.clone();
        self.spawn(serve(listener, acceptor, pages, connections, move || graceful.lock().watcher()));
        Ok(bound)
    }

    fn serve_kms(&mut self, kms: &KmsListener, connections: &Arc<Connections>) -> Result<()> {
        let socket = {
            let _entered = self.runtime().enter();
            Arc::new(Socket::bind(&kms.socket)?)
        };
        self.sockets.push(socket.clone());
        let kms = Arc::new(Kms {
            asker: Asker::new(&self.client, &kms.name)?,
            key: kms.key.clone(),
            queue: self.seen.queue.clone(),
            look: self.seen.look.clone(),
            counts: self.seen.counts.clone(),
            traces: self.seen.traces.clone(),
        });
        self.connections.push(connections.clone());
        let connections = connections.clone();
        let graceful = self.graceful.clone();
        self.spawn(serve_kms(socket, kms, connections, move || graceful.lock().watcher()));
        Ok(())
    }

    fn serve_kmip(
        &mut self,
        settings: &GatewayKmip,
        kmip: Kmip,
        connections: &Arc<Connections>,
    ) -> Result<()> {
        let acceptor = tls::kmip_acceptor(settings)?;
        let (listener, bound) = self.runtime().block_on(bind(&settings.address))?;
        self.kmip_addresses.push(bound);
        self.connections.push(connections.clone());
        self.spawn(serve_kmip(listener, acceptor, Arc::new(kmip), connections.clone()));
        Ok(())
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let task = self.runtime().spawn(task);
        self.tasks.push(task);
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken when this is dropped")
    }

    /// The addresses on which it serves Vault's API and the others of HTTP, in the order of the file.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The addresses on which it serves KMIP, in the order of the file.
    pub fn kmip_addresses(&self) -> &[SocketAddr] {
        &self.kmip_addresses
    }

    /// The address on which it answers about its health and metrics.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// Why the nodes cannot serve at the moment; `None` if they can.
    pub fn trouble(&self) -> Option<String> {
        self.looking.look.trouble()
    }

    /// Ends it in order: requests that are under way may end within 5 s.
    pub fn stop(self) {}
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        self.tasks.iter().for_each(JoinHandle::abort);
        // A task that was told to end still has its listener for a moment. Another gateway may take the place
        // of this one as soon as it is dropped.
        runtime.block_on(async {
            for task in self.tasks.drain(..) {
                let _ = task.await;
            }
        });
        self.sockets.clear();
        // Streams of the page end with it.
        self.collector.end();
        let graceful = std::mem::take(&mut *self.graceful.lock());
        let ended =
            runtime.block_on(async { tokio::time::timeout(LAST_REQUESTS, graceful.shutdown()).await });
        if ended.is_err() {
            tracing::warn!("requests that took longer than {} s were broken off", LAST_REQUESTS.as_secs());
        }
        self.connections.iter().for_each(|connections| connections.close());
        self.client.end();
        // Threads that wait for nodes end by themselves.
        runtime.shutdown_background();
        if let Some(bulk) = self.bulk.take() {
            bulk.shutdown_background();
        }
    }
}

/// Health and metrics, without a token. They say nothing of keys, tokens or messages.
fn health_pages(seen: Seen) -> Router {
    Router::new().route("/healthz", get(health)).route("/metrics", get(metrics)).with_state(seen)
}

async fn health(State(seen): State<Seen>) -> (StatusCode, String) {
    let (status, mut text) = match seen.look.trouble() {
        None => (StatusCode::OK, "ok\n".into()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("the nodes cannot serve: {why}\n")),
    };
    for (api, ConnectionCounts { known, strangers, refused, most_known, most_strangers }) in
        seen.connections()
    {
        if most_known > 0 {
            text += &format!(
                "{api}: {known} of {most_known} connections in use, and {strangers} of {most_strangers} without a token; {refused} refused\n"
            );
        }
    }
    (status, text)
}

async fn metrics(State(seen): State<Seen>) -> String {
    let now = Now {
        queue: seen.queue.lengths(),
        can_serve: seen.look.trouble().is_none(),
        memory: seen.memory.taken(),
        long: seen.bulk.requests(),
        connections: seen.connections(),
        spans: seen.traces.counts(),
    };
    seen.counts.text(&now)
}
