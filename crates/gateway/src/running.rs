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
use polyclave_config::{ClientDir, GatewaySettings, KmsListener};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::connections::Connections;
use crate::counts::Counts;
use crate::kms::Kms;
use crate::listen::{Socket, bind, serve, serve_kms};
use crate::look::{Look, Looking};
use crate::nodes::Asker;
use crate::queue::Queue;
use crate::tokens::Tokens;
use crate::transform::Transformations;
use crate::ui::{self, Access, Collector, Hosts, Own, Ui};
use crate::vault::{Cluster, Vault, pages};
use crate::versions::Versions;
use crate::{Result, tls};

/// How long requests that are under way may take to end when the gateway stops.
const LAST_REQUESTS: Duration = Duration::from_secs(5);
/// How long a start waits for the first look at the nodes. After that it serves all the same.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// How often samples are sorted into their buckets.
const UPKEEP: Duration = Duration::from_secs(5);
/// Connections of those who ask for health and metrics, and of an API server.
const FEW: usize = 64;

/// A gateway that serves until this is dropped.
pub struct Running {
    runtime: Option<Runtime>,
    tasks: Vec<JoinHandle<()>>,
    graceful: Arc<parking_lot::Mutex<GracefulShutdown>>,
    connections: Vec<Arc<Connections>>,
    sockets: Vec<Arc<Socket>>,
    addresses: Vec<SocketAddr>,
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
        let seen = Seen { counts, look: looking.look.clone(), queue };
        let memory_mib = u32::try_from(settings.limits.memory_mib).unwrap_or(u32::MAX >> 4);
        let vault = Arc::new(Vault {
            tokens: tokens.clone(),
            queue: seen.queue.clone(),
            versions: Versions::default(),
            look: seen.look.clone(),
            counts: seen.counts.clone(),
            memory: Arc::new(Semaphore::new(memory_mib as usize)),
            memory_mib,
            within: Duration::from_secs(settings.limits.request_seconds),
            transformations,
            cluster: Cluster { id: client.cluster().id(), protocol: client.cluster().protocol().into() },
        });
        let own = Own { counts: seen.counts.clone(), queue: seen.queue.clone() };
        let collector = Collector::new(client.clone(), Some(own))?;
        let page = Ui::new(Access::Gateway(tokens), collector.clone());
        let pages = pages(vault).merge(ui::pages(page, Hosts::Any));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("gateway").build()?;
        let mut running = Running {
            runtime: Some(runtime),
            tasks: Vec::new(),
            graceful: Arc::new(parking_lot::Mutex::new(GracefulShutdown::new())),
            connections: Vec::new(),
            sockets: Vec::new(),
            addresses: Vec::new(),
            http_address: None,
            looking,
            collector,
            client,
        };
        running.listen(&settings, &seen, &pages)?;
        Ok(running)
    }

    fn listen(&mut self, settings: &GatewaySettings, seen: &Seen, pages: &Router) -> Result<()> {
        let most = settings.limits.connections;
        for listener in &settings.listeners {
            let acceptor =
                listener.tls().map(|(certificate, key)| tls::acceptor(certificate, key)).transpose()?;
            let address = self.serve(&listener.address, acceptor, pages.clone(), most)?;
            self.addresses.push(address);
        }
        if let Some(address) = &settings.http_listen {
            let address = self.serve(address, None, health_pages(seen.clone()), FEW)?;
            self.http_address = Some(address);
        }
        for kms in &settings.kms {
            self.serve_kms(kms, seen)?;
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
        most: usize,
    ) -> Result<SocketAddr> {
        let (listener, bound) = self.runtime().block_on(bind(address))?;
        let connections = self.limited(most);
        let graceful = self.graceful.clone();
        self.spawn(serve(listener, acceptor, pages, connections, move || graceful.lock().watcher()));
        Ok(bound)
    }

    fn serve_kms(&mut self, kms: &KmsListener, seen: &Seen) -> Result<()> {
        let socket = {
            let _entered = self.runtime().enter();
            Arc::new(Socket::bind(&kms.socket)?)
        };
        self.sockets.push(socket.clone());
        let kms = Arc::new(Kms {
            asker: Asker::new(&self.client, &kms.name)?,
            key: kms.key.clone(),
            queue: seen.queue.clone(),
            look: seen.look.clone(),
            counts: seen.counts.clone(),
        });
        let connections = self.limited(FEW);
        let graceful = self.graceful.clone();
        self.spawn(serve_kms(socket, kms, connections, move || graceful.lock().watcher()));
        Ok(())
    }

    fn limited(&mut self, most: usize) -> Arc<Connections> {
        let connections = Connections::new(most);
        self.connections.push(connections.clone());
        connections
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let task = self.runtime().spawn(task);
        self.tasks.push(task);
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken when this is dropped")
    }

    /// The addresses on which it serves Vault's API, in the order of the file.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
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
    }
}

/// Health and metrics, without a token. They say nothing of keys, tokens or messages.
fn health_pages(seen: Seen) -> Router {
    Router::new().route("/healthz", get(health)).route("/metrics", get(metrics)).with_state(seen)
}

async fn health(State(seen): State<Seen>) -> (StatusCode, String) {
    match seen.look.trouble() {
        None => (StatusCode::OK, "ok\n".into()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("the nodes cannot serve: {why}\n")),
    }
}

async fn metrics(State(seen): State<Seen>) -> String {
    seen.counts.text(seen.queue.lengths(), seen.look.trouble().is_none())
}
