//! Whether the nodes can serve, and which are missing: a check every few seconds, on a thread of its own, so
//! that no caller has to wait for a node that does not answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use polyclave_api::{KeyInfo, NodeStatus};
use polyclave_client::{Client, Error};

/// How often the nodes are looked at.
const EVERY: Duration = Duration::from_secs(3);
/// How often the current versions of keys are asked for: each time is a line in a node's audit log.
const KEYS_EVERY: Duration = Duration::from_secs(30);
/// A look that is older says nothing.
const OLD: Duration = Duration::from_secs(10);

/// What was seen last.
pub(crate) struct Look {
    seen: Mutex<Seen>,
    /// Raised when the first look is over.
    first: Condvar,
}

struct Seen {
    at: Option<Instant>,
    since: Instant,
    trouble: Option<String>,
    /// All nodes by their names, and whether each can serve.
    nodes: Vec<(String, bool)>,
    /// Why a key of a KMS was not shown, while the nodes can serve.
    trouble_of_keys: Option<String>,
    keys: HashMap<String, KeyInfo>,
}

impl Look {
    /// Why the nodes cannot serve; `None` if they can.
    pub(crate) fn trouble(&self) -> Option<String> {
        let seen = self.seen.lock();
        let age = seen.at.unwrap_or(seen.since).elapsed();
        match seen.at {
            Some(_) if age <= OLD => seen.trouble.clone(),
            _ => Some(format!("the nodes have not answered for {} s", age.as_secs())),
        }
    }

    /// All nodes by their names, and whether each could serve at the last look.
    pub(crate) fn nodes(&self) -> Vec<(String, bool)> {
        self.seen.lock().nodes.clone()
    }

    /// Why the keys of KMSs cannot be used; `None` if they can.
    pub(crate) fn trouble_of_keys(&self) -> Option<String> {
        self.trouble().or_else(|| self.seen.lock().trouble_of_keys.clone())
    }

    /// The current version of a key that is looked at, if the nodes have shown it.
    pub(crate) fn key(&self, name: &str) -> Option<KeyInfo> {
        self.seen.lock().keys.get(name).cloned()
    }

    /// Notes a version that a request has met.
    pub(crate) fn note(&self, info: KeyInfo) {
        self.seen.lock().keys.insert(info.properties.name.clone(), info);
    }

    /// Waits until there was a first look, or for a while.
    fn wait(&self, at_most: Duration) {
        let mut seen = self.seen.lock();
        if seen.at.is_none() {
            self.first.wait_for(&mut seen, at_most);
        }
    }
}

/// Looks until it is dropped.
pub(crate) struct Looking {
    pub(crate) look: Arc<Look>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Looking {
    /// Begins to look at the nodes, and at the current versions of some keys.
    pub(crate) fn start(client: Arc<Client>, keys: Vec<String>) -> std::io::Result<Looking> {
        let since = Instant::now();
        let (nodes, keys_shown) = (Vec::new(), HashMap::new());
        let seen = Seen { at: None, since, trouble: None, nodes, trouble_of_keys: None, keys: keys_shown };
        let look = Arc::new(Look { seen: Mutex::new(seen), first: Condvar::new() });
        let stopping = Arc::new(AtomicBool::new(false));
        let (of_thread, stop) = (look.clone(), stopping.clone());
        let thread = std::thread::Builder::new().name("look".into()).spawn(move || {
            let mut of_keys = OfKeys::default();
            while !stop.load(Relaxed) {
                look_once(&client, &keys, &mut of_keys, &of_thread);
                std::thread::park_timeout(EVERY);
            }
        })?;
        Ok(Looking { look, stopping, thread: Some(thread) })
    }

    /// Waits for the first look, but not for long.
    pub(crate) fn wait_for_first(&self, at_most: Duration) {
        self.look.wait(at_most);
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.stopping.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has no result.
            let _ = thread.join();
        }
    }
}

/// What the last look at the keys has shown.
#[derive(Default)]
struct OfKeys {
    at: Option<Instant>,
    trouble: Option<String>,
}

fn look_once(client: &Client, keys: &[String], of_keys: &mut OfKeys, look: &Look) {
    let began = Instant::now();
    let nodes: Vec<(&str, Option<&str>)> = client
        .status()
        .into_iter()
        .map(|(node, status)| (client.node_name(node), why_not(&status)))
        .collect();
    let missing: Vec<String> =
        nodes.iter().filter_map(|(node, why)| Some(format!("{node} {}", (*why)?))).collect();
    let trouble = (missing.len() > client.spare_nodes()).then(|| missing.join("; "));
    let mut shown = Vec::new();
    // Nodes that are missing are looked for first.
    if trouble.is_none() && of_keys.at.is_none_or(|at| at.elapsed() >= KEYS_EVERY) {
        *of_keys = OfKeys::default();
        for key in keys {
            match client.info(key) {
                Ok(info) => shown.push(info),
                Err(e) => of_keys.trouble = Some(format!("the key {key}: {e}")),
            }
        }
        // What failed is tried again with the next look.
        of_keys.at = of_keys.trouble.is_none().then(Instant::now);
    }
    let mut seen = look.seen.lock();
    if seen.trouble != trouble {
        match &trouble {
            Some(message) => tracing::warn!(trouble = message, "the nodes cannot serve"),
            None => tracing::info!("the nodes can serve"),
        }
    }
    // What concerns one key says nothing of the nodes, which serve others.
    if seen.trouble_of_keys != of_keys.trouble
        && let Some(message) = &of_keys.trouble
    {
        tracing::warn!(trouble = message, "a KMS cannot use its key");
    }
    seen.trouble_of_keys = of_keys.trouble.clone();
    // What it says is as old as its beginning.
    seen.at = Some(began);
    seen.trouble = trouble;
    seen.nodes = nodes.into_iter().map(|(node, why)| (node.to_owned(), why.is_none())).collect();
    seen.keys.extend(shown.into_iter().map(|info| (info.properties.name.clone(), info)));
    look.first.notify_all();
}

/// Why a node cannot serve.
fn why_not(status: &Result<NodeStatus, Error>) -> Option<&'static str> {
    match status {
        Ok(status) if status.quarantined => Some("is under quarantine"),
        Ok(status) if !status.set_up || !status.prepared => Some("is not ready"),
        Ok(_) => None,
        Err(Error::NotAdmitted { .. }) => Some("does not admit the gateway's client"),
        Err(_) => Some("does not answer"),
    }
}
