//! Health and metrics over HTTP: `/healthz` (it runs), `/readyz` (it can serve), `/metrics` (Prometheus).
//!
//! It reveals nothing about keys except their number, and nothing about clients. It is meant for an interface
//! that only operators reach; a caller can use no more of the node than [`connections`] allows.

pub(crate) mod connections;

use std::net::TcpListener;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::Result;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use polyclave_protocol::Error;
use tokio::sync::oneshot;

use crate::core::Core;
use crate::operator::metrics_help;

/// One recorder for the process, because metrics are global to the process.
static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// How often samples are sorted into their buckets.
const UPKEEP: Duration = Duration::from_secs(5);

/// Upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 12] = [0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 2.0, 10.0, 60.0];

/// The metrics of one of several workers of a node have its number, so that they can be told apart, and
/// summed.
fn record(worker: Option<u16>) -> Option<PrometheusHandle> {
    let mut builder = PrometheusBuilder::new().set_buckets(&BUCKETS).ok()?;
    if let Some(number) = worker {
        builder = builder.add_global_label("worker", number.to_string());
    }
    let recorder = builder.install_recorder().ok()?;
    metrics_help::describe();
    Some(recorder)
}

/// A running server. It ends when this is dropped.
pub(crate) struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The server's thread has no result.
            let _ = thread.join();
        }
    }
}

/// Starts to answer on an address, for a node or one of its `worker`s.
pub(crate) fn start(address: &str, worker: Option<u16>, core: Arc<Core>) -> Result<Server> {
    let broken = |e: std::io::Error| Error::System(format!("cannot answer HTTP on {address}: {e}"));
    let listener = TcpListener::bind(address).map_err(broken)?;
    listener.set_nonblocking(true).map_err(broken)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(broken)?;
    let recorder = RECORDER.get_or_init(|| record(worker)).clone();
    let upkeep = recorder.clone();
    let for_health = core.clone();
    let ready = move || {
        let answer = match core.why_not_ready() {
            None => (StatusCode::OK, "ready\n".to_owned()),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
        };
        std::future::ready(answer)
    };
    let alive = move || {
        let quarantined = for_health.material.is_quarantined();
        std::future::ready(if quarantined { "alive, under quarantine\n" } else { "alive\n" })
    };
    let counts = move || {
        let text = recorder.as_ref().map(PrometheusHandle::render).unwrap_or_default();
        std::future::ready(text)
    };
    let pages = Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(counts));
    let (stop, stopped) = oneshot::channel();
    let serve = async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let server = tokio::spawn(connections::serve(listener, pages));
        // Samples accumulate until this is called.
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(UPKEEP).await;
                upkeep.iter().for_each(PrometheusHandle::run_upkeep);
            }
        });
        // Dropped or sent: in both cases the server ends, even with unfinished requests.
        let _ = stopped.await;
        server.abort();
        std::io::Result::Ok(())
    };
    let thread = std::thread::Builder::new().name("http".into()).spawn(move || {
        if let Err(e) = runtime.block_on(serve) {
            tracing::error!(error = %e, "HTTP ended");
        }
    });
    Ok(Server { stop: Some(stop), thread: Some(thread.map_err(broken)?) })
}
