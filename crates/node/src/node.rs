//! A running node: its threads, from start to stop.

use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use crate::Result;
use polyclave_config::{Card, ClientPolicy, Cluster, NodeDir};
use polyclave_protocol::net::Net;
use polyclave_protocol::service::{ServiceScheme, Visitor, with_scheme};
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::{Error, Party};
use polyclave_transport::wire::{self, NodeStatus, Operation, Reason, Refusal, Reply, Request};
use polyclave_transport::{Caller, CertificateDer, Identity, Limits, Mesh, Node as Address, Reception};

use crate::admin::Socket;
use crate::audit::{AuditLog, Event};
use crate::channels::{Channels, Lent, PING_EVERY, next_request};
use crate::conversation::{kind, serve};
use crate::core::{CONNECT, Core, channel_name, system};
use crate::http;
use crate::limits::Clients;
use crate::peers::{Greeting, Order, Peers, control_stream};
use crate::request::{Client, Plan, terms, ticket};
use crate::set_up;
use crate::store::{Secret, Store};

/// How often threads look whether the node is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// The same for the many that wait for somebody else to begin.
const IDLE_LOOK: Duration = Duration::from_millis(500);
/// A client may be silent for so long between requests, and within one.
const IDLE_CLIENT: Duration = Duration::from_secs(120);
const SLOW_CLIENT: Duration = Duration::from_secs(20);
/// A client that was refused has so long to hang up.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// An announced request has to be brought by its client within this time.
const ARRIVAL: Duration = Duration::from_secs(2);
/// Running requests get so much time to end when the node stops.
const LAST_REQUESTS: Duration = Duration::from_secs(5);
/// And threads so much to see that there is nothing left to do.
const LAST_THREADS: Duration = Duration::from_secs(15);
/// Between two attempts to reach a peer that refuses this node or is refused.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// A node that runs until this is dropped or [`stopped`](Running::stop).
pub struct Running {
    stop: Option<Box<dyn FnOnce() + Send + Sync>>,
    status: Box<dyn Fn() -> NodeStatus + Send + Sync>,
    ready: Box<dyn Fn() -> bool + Send + Sync>,
    client_addr: SocketAddr,
    adversary: String,
}

impl Running {
    /// Starts the node of a directory.
    pub fn start(dir: NodeDir) -> Result<Running> {
        let cluster = dir.cluster().map_err(system)?.ok_or_else(|| {
            Error::misuse(
                "this node belongs to no cluster yet; define one from the cards of all nodes (`polyclave cluster define`) \
                 and give its file to each (`polyclave node join`)",
            )
        })?;
        let (protocol, nodes, threshold) =
            (cluster.protocol().to_owned(), cluster.nodes(), cluster.threshold());
        with_scheme(&protocol, nodes, threshold, Start { dir, cluster })
    }

    /// Where clients reach it.
    pub fn client_addr(&self) -> SocketAddr {
        self.client_addr
    }

    /// What it says of itself.
    pub fn status(&self) -> NodeStatus {
        (self.status)()
    }

    /// Whether it can serve requests now.
    pub fn is_ready(&self) -> bool {
        (self.ready)()
    }

    /// One sentence on whom the protocol protects against.
    pub fn adversary(&self) -> &str {
        &self.adversary
    }

    /// Stops: running requests may end, new ones are refused. Returns when all threads are gone.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a node under the scheme of its cluster.
struct Start {
    dir: NodeDir,
    cluster: Cluster,
}

impl Visitor for Start {
    type Output = Running;

    fn visit<S: ServiceScheme>(self, scheme: S) -> Result<Running> {
        let Start { dir, cluster } = self;
        let settings = dir.settings().clone();
        let me = cluster.party_named(&settings.name).ok_or_else(|| {
            Error::misuse(format!("the cluster has no node '{}'; update its file", settings.name))
        })?;
        let identity = Identity::from_der(&dir.identity().certificate, &dir.identity().key)?;
        let secret = Secret::from_bytes(*dir.secret().map_err(system)?);
        let store = match dir.store_path().exists() {
            true => Store::open(&dir.store_path(), &secret),
            false => Store::create(&dir.store_path(), &secret),
        };
        let store = store.map_err(system)?;
        let socket = Socket::bind(dir.path())?;
        let incarnation = store.begin_incarnation().map_err(system)?;
        let audit = match settings.audit {
            true => {
                let noted = store.audit_head().map_err(system)?;
                Some(AuditLog::open(&dir.audit_path(), noted).map_err(system)?)
            }
            false => None,
        };
        let policy = Arc::new(RwLock::new(dir.policy().map_err(system)?));
        let limits = Limits::default();
        let nodes: Vec<Address> = cluster.cards().iter().map(peer_address).collect();
        let mesh = Mesh::start(settings.listen.as_str(), identity.clone(), limits, me, &nodes, cluster.id())?;
        let reception = Reception::start(
            settings.client_listen.as_str(),
            identity,
            limits,
            me,
            nodes.len(),
            cluster.id(),
            admits(policy.clone()),
        )?;
        let adversary = scheme.adversary();
        let core = Arc::new(Core {
            scheme,
            me,
            nodes: nodes.len(),
            cluster_digest: cluster.fingerprint(),
            cluster,
            mesh,
            store,
            audit,
            policy,
            incarnation,
            set_up: RwLock::default(),
            library: Default::default(),
            ciphers: Mutex::default(),
            peers: Peers::new(me, nodes.len()),
            channels: Channels::new(settings.limits.channels),
            desk: Default::default(),
            clients: Clients::new(settings.limits.clone()),
            names: Default::default(),
            stopping: AtomicBool::new(false),
            threads: Default::default(),
        });
        set_up::load(&core)?;
        let client_addr = reception.local_addr();
        let mut threads = Vec::new();
        for peer in Party::all(core.nodes).filter(|p| *p != me) {
            threads.push(spawn("orders to a peer", &core, move |core| give_orders(core, peer))?);
            threads.push(spawn("orders of a peer", &core, move |core| take_orders(core, peer))?);
        }
        threads.push(spawn("clients", &core, move |core| receive_clients(core, &reception))?);
        let path = dir.path().to_path_buf();
        threads.push(spawn("operator", &core, move |core| socket.serve(core, &path))?);
        let policy_path = dir.policy_path();
        threads.push(spawn("housekeeping", &core, move |core| keep_house(core, &dir, &policy_path))?);
        let http = match &settings.http_listen {
            Some(address) => Some(http::start(address, core.clone())?),
            None => None,
        };
        tracing::info!(node = %settings.name, party = me.0 + 1, incarnation = core.incarnation.number, "running");
        let (for_status, for_ready, for_stop) = (core.clone(), core.clone(), core);
        Ok(Running {
            stop: Some(Box::new(move || stop(&for_stop, threads, http))),
            status: Box::new(move || for_status.status()),
            ready: Box::new(move || for_ready.is_ready()),
            client_addr,
            adversary,
        })
    }
}

fn peer_address(card: &Card) -> Address {
    Address { address: card.address.clone(), certificates: card.certificates.clone() }
}

fn admits(policy: Arc<RwLock<ClientPolicy>>) -> Arc<dyn Fn(&CertificateDer<'_>) -> bool + Send + Sync> {
    Arc::new(move |certificate| {
        policy.read().unwrap_or_else(PoisonError::into_inner).client_of(certificate).is_some()
    })
}

fn spawn<S: ServiceScheme>(
    name: &str,
    core: &Arc<Core<S>>,
    work: impl FnOnce(&Arc<Core<S>>) + Send + 'static,
) -> Result<JoinHandle<()>> {
    let (core, counted) = (core.clone(), Counted::new(core.threads.clone()));
    let thread = thread::Builder::new().name(name.into()).spawn(move || {
        // Dropped in the opposite order: who is not counted any more holds nothing of the node.
        let _counted = counted;
        let core = core;
        work(&core);
    });
    thread.map_err(|e| Error::System(format!("cannot start a thread: {e}")))
}

/// A thread that is counted as long as this is there.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(threads: Arc<AtomicUsize>) -> Counted {
        threads.fetch_add(1, Relaxed);
        Counted(threads)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release);
    }
}

fn stop<S: ServiceScheme>(core: &Arc<Core<S>>, threads: Vec<JoinHandle<()>>, http: Option<http::Server>) {
    tracing::info!("stopping");
    core.stopping.store(true, Relaxed);
    for thread in threads {
        // A thread that panicked has nothing left to end.
        let _ = thread.join();
    }
    drop(http);
    // Those of channels and clients, which nobody joins: with the last of them the store and the ports are free.
    let until = Instant::now() + LAST_THREADS;
    while core.threads.load(Acquire) > 0 && Instant::now() < until {
        thread::sleep(LOOK / 20);
    }
    if core.threads.load(Acquire) > 0 {
        tracing::warn!("some threads are still waiting for a client or a peer");
    }
    core.settle_audit(&mut None);
    tracing::info!("stopped");
}

/// Keeps a control stream to a peer.
fn give_orders<S: ServiceScheme>(core: &Arc<Core<S>>, peer: Party) {
    let Some(queue) = core.peers.queue(peer) else { return };
    let name = control_stream(core.me, peer);
    while !core.is_stopping() {
        let outcome =
            core.mesh.open(&name, [core.me, peer].into_iter().collect(), CONNECT).and_then(|mut net| {
                greet(core, peer, &mut net)?;
                core.peers.send_orders(peer, &queue, &mut net, &|| core.is_stopping())
            });
        after_control(core, peer, outcome);
    }
}

/// Keeps a control stream from a peer.
fn take_orders<S: ServiceScheme>(core: &Arc<Core<S>>, peer: Party) {
    let name = control_stream(peer, core.me);
    while !core.is_stopping() {
        let outcome =
            core.mesh.open(&name, [core.me, peer].into_iter().collect(), CONNECT).and_then(|mut net| {
                greet(core, peer, &mut net)?;
                tracing::info!(peer = %peer, "connected");
                core.peers.receive_orders(peer, &mut net, &|| core.is_stopping(), |order| {
                    carry_out(core, peer, order)
                })
            });
        core.channels.forget(peer);
        after_control(core, peer, outcome);
    }
}

fn after_control<S: ServiceScheme>(core: &Core<S>, peer: Party, outcome: Result<()>) {
    match outcome {
        _ if core.is_stopping() => {}
        Err(e @ (Error::Misuse(_) | Error::System(_) | Error::Disagreement { .. })) => {
            tracing::error!(peer = %peer, error = %e, "refused");
            let until = Instant::now() + AFTER_REFUSAL;
            while Instant::now() < until && !core.is_stopping() {
                thread::sleep(LOOK);
            }
        }
        Err(e) => tracing::debug!(peer = %peer, error = %e, "not connected"),
        Ok(()) => {}
    }
}

/// Greets a peer and judges its greeting.
fn greet<S: ServiceScheme>(core: &Core<S>, peer: Party, net: &mut polyclave_transport::TlsNet) -> Result<()> {
    let setup = core.set_up().map_or([0; 32], |set_up| set_up.id);
    let mine = Greeting { cluster: core.cluster_digest, incarnation: core.incarnation.clone(), setup };
    let theirs = mine.exchange(peer, net)?;
    if theirs.cluster != mine.cluster {
        return Err(Error::Disagreement { peer, field: "cluster file" });
    }
    core.store.peer_seen(peer, &theirs.incarnation).map_err(system)?;
    let both = theirs.setup != [0; 32] && setup != [0; 32];
    if both && theirs.setup != setup {
        return Err(Error::Disagreement { peer, field: "set of common secrets" });
    }
    core.peers.note_set_up(peer, theirs.setup != [0; 32]);
    Ok(())
}

fn carry_out<S: ServiceScheme>(core: &Arc<Core<S>>, peer: Party, order: Order) {
    let done = match order {
        Order::Beat => return,
        Order::Channel { serving, name } => {
            if serving.iter().next() != Some(peer) || !serving.contains(core.me) {
                tracing::warn!(peer = %peer, "ordered a channel that it does not lead");
                return;
            }
            spawn("channel", core, move |core| listen_on_channel(core, peer, serving, &name))
        }
        Order::SetUp { name } => spawn("set-up", core, move |core| {
            if let Err(e) = set_up::join(core, name) {
                tracing::warn!(error = %e, "the common secrets were not agreed on");
            }
        }),
    };
    if let Err(e) = done {
        tracing::error!(error = %e, "an order was not carried out");
    }
}

/// A follower's side of a channel.
fn listen_on_channel<S: ServiceScheme>(
    core: &Arc<Core<S>>,
    leader: Party,
    serving: polyclave_protocol::PartySet,
    name: &[u8; 16],
) {
    let opened = core.mesh.open(&channel_name(name), serving, CONNECT);
    let mut net = match opened {
        Ok(net) => net,
        Err(e) => return tracing::debug!(error = %e, "a channel did not open"),
    };
    while !core.is_stopping() {
        // Any peer: when one of them is gone the channel is of no use.
        match net.wait(serving, IDLE_LOOK) {
            Ok(Some(_)) => {}
            Ok(None) => continue,
            Err(e) => return tracing::debug!(error = %e, "a channel ended"),
        }
        let ticket = match next_request(leader, &mut net) {
            Ok(Some(ticket)) => ticket,
            Ok(None) => continue,
            Err(e) => return tracing::debug!(error = %e, "a channel ended"),
        };
        let (lent, back) = Lent::new(net);
        let returned = match core.desk.hand_over(&ticket, leader, lent, ARRIVAL) {
            Ok(()) => back.recv().ok().flatten(),
            Err(mut lent) => lent.net().and_then(|net| decline(core, net)),
        };
        match returned {
            Some(free) => net = free,
            None => return,
        }
    }
}

/// Tells the others in the hello round that the request is not here.
fn decline<S: ServiceScheme>(
    core: &Core<S>,
    mut net: polyclave_transport::TlsNet,
) -> Option<polyclave_transport::TlsNet> {
    let set_up = core.set_up().ok()?;
    let nothing = [0; 32];
    let outcome =
        polyclave_protocol::session::hello(&terms(core, &set_up, b"not here", &nothing, &nothing), &mut net);
    matches!(outcome, Err(Error::Disagreement { .. })).then_some(net)
}

fn receive_clients<S: ServiceScheme>(core: &Arc<Core<S>>, reception: &Reception) {
    let running = Arc::new(AtomicUsize::new(0));
    while !core.is_stopping() {
        let Some(caller) = reception.next(LOOK) else { continue };
        let counted = running.clone();
        counted.fetch_add(1, Relaxed);
        let served = spawn("client", core, move |core| {
            serve_client(core, caller);
            counted.fetch_sub(1, Relaxed);
        });
        if let Err(e) = served {
            running.fetch_sub(1, Relaxed);
            tracing::error!(error = %e, "a client was not served");
        }
    }
    let until = Instant::now() + LAST_REQUESTS;
    while running.load(Relaxed) > 0 && Instant::now() < until {
        thread::sleep(LOOK / 10);
    }
}

/// Serves one client's requests, one after the other, until it goes.
fn serve_client<S: ServiceScheme>(core: &Arc<Core<S>>, caller: Caller) {
    let Caller { certificate, mut net, from } = caller;
    let Some(name) = core.client_of(&certificate) else { return };
    let party = Party(core.nodes as u8);
    let _held = match core.clients.connection(&name) {
        Ok(held) => held,
        Err(refusal) => {
            let _ = wire::send(&mut net, party, &Reply::Refused(refusal));
            return;
        }
    };
    tracing::debug!(client = %name, %from, "connected");
    net.set_idle_limit(SLOW_CLIENT);
    let client = Client { name, certificate };
    let mut quiet_since = Instant::now();
    while !core.is_stopping() && quiet_since.elapsed() < IDLE_CLIENT {
        match net.wait(net.members(), IDLE_LOOK) {
            Ok(Some(_)) => {}
            Ok(None) => continue,
            Err(_) => return,
        }
        let Ok(bytes) = wire::receive_bytes(&mut net, party) else { return };
        if !answer(core, &client, &bytes, &mut net) {
            return linger(core, &mut net);
        }
        quiet_since = Instant::now();
    }
}

/// Takes what a client had sent before it could know that it was refused: closing on unread bytes would reset the connection,
/// and the reason would be lost with it.
fn linger<S: ServiceScheme>(core: &Core<S>, net: &mut polyclave_transport::TlsNet) {
    let party = Party(core.nodes as u8);
    let until = Instant::now() + LAST_WORDS;
    net.set_idle_limit(LAST_WORDS);
    while Instant::now() < until && !core.is_stopping() {
        match net.wait(net.members(), LOOK) {
            Ok(Some(_)) if wire::receive_bytes(net, party).is_ok() => {}
            Ok(None) => {}
            _ => return,
        }
    }
}

/// Answers one request; whether the connection can serve another.
fn answer<S: ServiceScheme>(
    core: &Arc<Core<S>>,
    client: &Client,
    bytes: &[u8],
    net: &mut polyclave_transport::TlsNet,
) -> bool {
    let began = Instant::now();
    let party = Party(core.nodes as u8);
    let request: Result<Request, Refusal> = wire::decode(bytes, party)
        .map_err(|e| Refusal::new(Reason::Malformed, e.to_string()))
        .and_then(|request: Request| match request.version {
            wire::VERSION => Ok(request),
            other => {
                let told = format!("the client speaks version {other}, this node version {}", wire::VERSION);
                Err(Refusal::new(Reason::Malformed, told))
            }
        });
    let request = match request {
        Ok(request) => request,
        Err(refusal) => {
            let _ = wire::send(net, party, &Reply::Refused(refusal));
            return false;
        }
    };
    let kind = kind(&request.operation);
    let key = key_of(&request.operation).to_owned();
    let ticket = ticket(client, &request.id);
    let id = request.id;
    let (blocks, result) = match &request.operation {
        Operation::Status => (0, tell(Ok(Reply::Status(core.status())), net, party)),
        Operation::Show { key } => {
            (0, tell(core.show(client, key).and_then(|info| list(vec![info])), net, party))
        }
        Operation::List => (0, tell(core.keys(client).and_then(list), net, party)),
        _ => {
            let held = core.clients.request(&client.name);
            match held.and_then(|held| Ok((held, Plan::make(core, client, request, bytes)?))) {
                Ok((_held, plan)) => {
                    let outcome = serve(core, client, plan, net);
                    (outcome.blocks, outcome.result)
                }
                Err(refusal) => {
                    core.desk.refuse(ticket);
                    let _ = wire::send(net, party, &Reply::Refused(refusal.clone()));
                    (0, Err(refusal))
                }
            }
        }
    };
    let outcome = result.as_ref().map_or_else(|refusal| reason_name(refusal.reason), |()| "done");
    metrics::counter!("polyclave_requests_total", "operation" => kind, "outcome" => outcome).increment(1);
    metrics::counter!("polyclave_blocks_total", "operation" => kind).increment(blocks);
    metrics::histogram!("polyclave_request_seconds", "operation" => kind)
        .record(began.elapsed().as_secs_f64());
    tracing::debug!(client = %client.name, operation = kind, key = %key, outcome, blocks, "request");
    core.note(&Event { client: &client.name, operation: kind, key: &key, outcome, blocks, request: id });
    result.is_ok()
}

/// Answers what a node answers for itself: with a reply, or with why there is none.
fn tell(
    reply: Result<Reply, Refusal>,
    net: &mut polyclave_transport::TlsNet,
    party: Party,
) -> Result<(), Refusal> {
    let told = reply.as_ref().map_or_else(|refusal| Reply::Refused(refusal.clone()), Reply::clone);
    wire::send(net, party, &told).map_err(lost)?;
    reply.map(drop)
}

fn list(keys: Vec<wire::KeyInfo>) -> Result<Reply, Refusal> {
    let reply = Reply::Keys(keys);
    match wire::encode(&reply) {
        Ok(_) => Ok(reply),
        Err(_) => Err(Refusal::new(
            Reason::Malformed,
            "there are too many keys for one list; ask for one by its name",
        )),
    }
}

fn lost(e: Error) -> Refusal {
    Refusal::new(Reason::Unavailable, e.to_string())
}

fn key_of(operation: &Operation) -> &str {
    match operation {
        Operation::Status | Operation::List => "",
        Operation::Generate(new) | Operation::Import(new) => &new.name,
        Operation::Show { key } | Operation::Delete { key } | Operation::Use { key, .. } => key,
    }
}

fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::Malformed => "malformed",
        Reason::Denied => "denied",
        Reason::Key => "key",
        Reason::Spent => "spent",
        Reason::Busy => "busy",
        Reason::Unauthentic => "unauthentic",
        Reason::Disagreement => "disagreement",
        Reason::Unavailable => "unavailable",
        Reason::Internal => "internal",
    }
}

/// Reloads the policy when its file changes, pings channels, has the nodes agree on common secrets, writes the audit log.
fn keep_house<S: ServiceScheme>(core: &Arc<Core<S>>, dir: &NodeDir, policy: &std::path::Path) {
    let modified = || policy.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let (mut policy_of, mut pinged, mut flushed) = (modified(), Instant::now(), Instant::now());
    let mut noted = None;
    while !core.is_stopping() {
        thread::sleep(LOOK);
        if modified() != policy_of {
            policy_of = modified();
            match dir.policy() {
                Ok(policy) => {
                    tracing::info!(clients = policy.rules().len(), "policy reloaded");
                    *core.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
                }
                Err(e) => {
                    tracing::error!(error = %e, "the policy cannot be read; the one before stays in force")
                }
            }
        }
        if pinged.elapsed() >= PING_EVERY {
            pinged = Instant::now();
            core.channels.ping();
        }
        let all_there = core.peers.connected().len() == core.nodes;
        if core.me == Party(0) && all_there && (core.set_up().is_err() || !core.peers.all_set_up()) {
            let mut name = [0; 16];
            if let Err(e) = random_bytes(&mut name).and_then(|()| set_up::lead(core, name)) {
                tracing::warn!(error = %e, "the common secrets were not agreed on");
                thread::sleep(LOOK * 10);
            } else {
                core.peers.note_all_set_up();
            }
        }
        if flushed.elapsed() >= Duration::from_secs(1) {
            flushed = Instant::now();
            core.settle_audit(&mut noted);
            metrics::gauge!("polyclave_peers_connected").set(core.peers.connected().len() as f64 - 1.0);
            metrics::gauge!("polyclave_ready").set(f64::from(u8::from(core.is_ready())));
            metrics::gauge!("polyclave_keys").set(core.store.count().unwrap_or_default() as f64);
        }
    }
}
