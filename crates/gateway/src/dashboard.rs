//! The operator's page alone, on the loopback interface, for users with the directory of a client: `polyclave
//! dashboard`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper_util::server::graceful::GracefulShutdown;
use polyclave_client::Client;
use polyclave_config::GatewayToken;
use polyclave_protocol::session::random_bytes;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use zeroize::Zeroizing;

use crate::Result;
use crate::connections::{Connections, Limits};
use crate::listen::{bind, serve};
use crate::ui::{self, Access, Collector, Hosts, Ui};

/// Connections of browsers.
const CONNECTIONS: usize = 64;
/// How long answers that are under way may take when it ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// A page that is served until this is dropped.
pub struct Dashboard {
    runtime: Option<Runtime>,
    serving: JoinHandle<()>,
    collector: Arc<Collector>,
    graceful: Arc<parking_lot::Mutex<GracefulShutdown>>,
    connections: Arc<Connections>,
    client: Arc<Client>,
    address: SocketAddr,
    token: Zeroizing<String>,
}

impl Dashboard {
    /// Serves the page of a client's nodes on a port of the loopback interface, or on one that is free if it
    /// is 0.
    pub fn start(client: Client, port: u16) -> Result<Dashboard> {
        let client = Arc::new(client);
        let mut drawn = Zeroizing::new([0; 32]);
        random_bytes(&mut *drawn).map_err(polyclave_client::Error::from)?;
        let token = Zeroizing::new(URL_SAFE_NO_PAD.encode(*drawn));
        let collector = Collector::new(client.clone(), None)?;
        let ui = Ui::new(Access::One(GatewayToken::hash_of(&token)), collector.clone());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .thread_name("dashboard")
            .build()?;
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (listener, address) = runtime.block_on(bind(&wanted.to_string()))?;
        let pages = ui::pages(ui, Hosts::loopback(address));
        let graceful = Arc::new(parking_lot::Mutex::new(GracefulShutdown::new()));
        let (connections, watching) = (Connections::new(Limits::of(CONNECTIONS)), graceful.clone());
        let serving = serve(listener, None, pages, connections.clone(), move || watching.lock().watcher());
        let serving = runtime.spawn(serving);
        let runtime = Some(runtime);
        Ok(Dashboard { runtime, serving, collector, graceful, connections, client, address, token })
    }

    /// Where a browser finds the page. The token is in a part that browsers do not send: no log and no other
    /// site gets it from there. The page opens only with the token, so that other users of this machine
    /// cannot see it.
    pub fn url(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("http://{}/ui#token={}", self.address, *self.token))
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // A task that was told to end still has its listener for a moment.
        self.serving.abort();
        let _ = runtime.block_on(&mut self.serving);
        // Streams end with it.
        self.collector.end();
        let graceful = std::mem::take(&mut *self.graceful.lock());
        // A browser that holds its connection does not hold up the end.
        let _ = runtime.block_on(async { tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await });
        self.connections.close();
        self.client.end();
        runtime.shutdown_background();
    }
}
