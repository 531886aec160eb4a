//! A running node, from start to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use polyclave_api::NodeStatus;
use polyclave_config::{Card, Cluster, NodeDir, NodeLimits, Role};
use polyclave_protocol::Error;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::catalog;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::stock::{Levels, Transfers};
use polyclave_store::{Quarantine, Secret, Store};
use polyclave_transport::{Admits, Identity, Limits, Mesh, Node as Address, Reception};

use crate::audit::faults::Seen;
use crate::audit::logbook::{Logbook, open_log};
use crate::audit::{Event, STARTED, STOPPED};
use crate::clients::limits::Clients;
use crate::clients::rules::Rules;
use crate::clock::Dates;
use crate::control::{give_orders, take_orders};
use crate::core::{Core, PairBoard, PairState};
use crate::error::system;
use crate::keys::held::Keys;
use crate::keys::standby::destroy_others;
use crate::material::preparation;
use crate::material::quarantine::REMEDY;
use crate::material::state::{Material, Means};
use crate::material::target::levels;
use crate::material::workers::{self, NO_SECRETS};
use crate::members::{Members, named};
use crate::operator::admin::Socket;
use crate::operator::housekeeping::keep_house;
use crate::operator::reload;
use crate::operator::{files, http};
use crate::peers::network::Network;
use crate::peers::rollback_guard::Marks;
use crate::requests::channels::Channels;
use crate::requests::delay::Delay;
use crate::requests::memory::Memory;
use crate::requests::service::Service;
use crate::server::reception::receive_clients;
use crate::standby::{self, Pairs};
use crate::strategy::Strategy;
use crate::threads::Threads;
use crate::traces::Traces;
use crate::{FaultInjection, Result, reshare};

/// How long threads of a stopping node may still wait for peers.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long it then waits until they have noticed that nothing comes any more, and have ended.
const LAST_THREADS: Duration = Duration::from_secs(15);

/// A running node. It runs until this is dropped or [`stopped`](Running::stop).
pub struct Running {
    stop: Option<Box<dyn FnOnce() + Send + Sync>>,
    status: Box<dyn Fn() -> NodeStatus + Send + Sync>,
    why_not_ready: Box<dyn Fn() -> Option<String> + Send + Sync>,
    is_outdated: Box<dyn Fn() -> bool + Send + Sync>,
    computed: Arc<AtomicU64>,
    stopped_by_audit: Box<dyn Fn() -> Option<String> + Send + Sync>,
    standby: Box<dyn Fn() -> Vec<PairState> + Send + Sync>,
    client_addr: SocketAddr,
    adversary: String,
    #[cfg(test)]
    pub(crate) store: Arc<Store>,
    #[cfg(test)]
    pub(crate) material: Arc<Material>,
    #[cfg(test)]
    pub(crate) service: Arc<Service>,
}

/// The cluster's protocol, as this node's settings have it.
fn service(dir: &NodeDir, cluster: &Cluster) -> Result<AnyServiceConfig> {
    let transfers = dir.settings().stock.transfers;
    let config = catalog::service_with(cluster.protocol(), cluster.nodes(), cluster.threshold(), transfers);
    config.map_err(|e| match transfers {
        Transfers::Quick => e,
        _ => Error::Misuse(format!("{e}; remove `transfers` under [stock] from this node's node.toml")),
    })
}

impl Running {
    /// Starts the node of a directory.
    pub fn start(dir: NodeDir) -> Result<Running> {
        Running::begin(dir, FaultInjection::HONEST)
    }

    /// Starts a node that cheats, for demonstrations and tests.
    #[cfg(feature = "cheats")]
    pub fn start_cheating(dir: NodeDir, cheat: crate::Cheat) -> Result<Running> {
        Running::begin(dir, cheat.into())
    }

    /// Starts a node that waits no longer than this for a peer that is silent while a key is used, for tests
    /// of what comes after that.
    #[cfg(feature = "cheats")]
    pub fn start_impatient(dir: NodeDir, cheat: Option<crate::Cheat>, silence: Duration) -> Result<Running> {
        Running::begin(dir, cheat.map_or(FaultInjection::HONEST, FaultInjection::from).with_silence(silence))
    }

    fn begin(dir: NodeDir, faults: FaultInjection) -> Result<Running> {
        let cluster = dir.cluster().map_err(system)?.ok_or_else(|| {
            Error::misuse(
                "this node belongs to no cluster yet; define one from the cards of all nodes (`polyclave cluster define`) \
                 and give its file to each (`polyclave node join`)",
            )
        })?;
        let store = open_store(&dir)?;
        let cluster = of_worker(&dir, reshare::settle(&dir, cluster, &store)?, &store)?;
        service(&dir, &cluster)
            .and_then(|config| start((dir, store), cluster.clone(), config, faults))
            .map_err(|e| named(e, &cluster))
    }

    /// Starts the node of a directory under a protocol that differs from its cluster file's.
    #[cfg(test)]
    pub(crate) fn start_with(
        dir: NodeDir,
        config: AnyServiceConfig,
        faults: FaultInjection,
    ) -> Result<Running> {
        let cluster = dir.cluster().map_err(system)?.expect("it is in a cluster");
        let store = open_store(&dir)?;
        let cluster = of_worker(&dir, cluster, &store)?;
        start((dir, store), cluster, config, faults)
    }

    /// Starts the node of a directory with another store than that of the directory.
    #[cfg(test)]
    pub(crate) fn start_over(dir: NodeDir, store: Store) -> Result<Running> {
        let cluster = dir.cluster().map_err(system)?.expect("it is in a cluster");
        let config = catalog::service(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
        start((dir, Arc::new(store)), cluster, config, FaultInjection::HONEST)
    }

    /// The address at which clients reach the node.
    pub fn client_addr(&self) -> SocketAddr {
        self.client_addr
    }

    /// The status that the node reports of itself.
    pub fn status(&self) -> NodeStatus {
        (self.status)()
    }

    /// Whether it can serve requests now.
    pub fn is_ready(&self) -> bool {
        self.why_not_ready().is_none()
    }

    /// Why the node cannot serve requests now, for people; `None` if it can.
    pub fn why_not_ready(&self) -> Option<String> {
        (self.why_not_ready)()
    }

    /// Whether this is a worker that has to be started again, because another one has taken fresh common
    /// secrets into use.
    pub fn is_outdated(&self) -> bool {
        (self.is_outdated)()
    }

    /// Blocks that the node has computed for clients since it started.
    pub fn computed_blocks(&self) -> u64 {
        self.computed.load(Relaxed)
    }

    /// Why the audit log cannot be written, if the node refuses requests because of that.
    pub fn stopped_by_audit(&self) -> Option<String> {
        (self.stopped_by_audit)()
    }

    /// How the standby pairs of this node stood a second ago at most.
    pub fn standby(&self) -> Vec<PairState> {
        (self.standby)()
    }

    /// One sentence on the adversary that the protocol protects against.
    pub fn adversary(&self) -> &str {
        &self.adversary
    }

    /// Stops the node: running requests may end, new ones are refused. Returns when all threads have ended.
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

/// Starts a node under the protocol of its cluster.
fn start(
    (dir, store): (NodeDir, Arc<Store>),
    cluster: Cluster,
    config: AnyServiceConfig,
    faults: FaultInjection,
) -> Result<Running> {
    let settings = dir.settings().clone();
    let me = cluster.party_named(&settings.name).ok_or_else(|| {
        Error::misuse(format!("the cluster has no node '{}'; update its file", settings.name))
    })?;
    let identity = Identity::from_der(&dir.identity().certificate, &dir.identity().key)?;
    if !cluster.cards()[me.index()].certificates.contains(&identity.certificate()) {
        return Err(Error::Misuse(format!(
            "the cluster file has another certificate for '{0}' than the one that this node uses, so its peers would refuse it. This happens if \
             `node rotate --finish` was run before the file with the next certificate was here. Put the node's card into the file (`polyclave cluster \
             update cluster.toml {1}/card.toml --replace`). Give the file to all nodes and clients (`node join` and `client join`, with \
             --expect and its fingerprint). Then restart the other nodes and start this one",
            settings.name,
            dir.path().display()
        )));
    }
    let dates = Dates::of(&cluster, me, &identity.certificate())?;
    destroy_others(&dir, Some(&cluster))?;
    let socket = Socket::bind(dir.path())?;
    let audit = settings.audit.enabled.then(|| open_log(&dir, &store)).transpose()?;
    let incarnation = store.begin_incarnation().map_err(system)?;
    let logbook = Arc::new(Logbook::new(audit, store.clone()));
    let rules = Rules::new(reload::at_start(&dir, &store, cluster.id())?);
    let authorities = rules.read_authorities(dir.path());
    let files = files::share(&settings.limits, cluster.nodes());
    let limits = Limits::default();
    let nodes: Vec<Address> = cluster.cards().iter().map(peer_address).collect();
    let mesh =
        Mesh::start(settings.listen.as_str(), identity.clone(), limits, me, &nodes, cluster.connection_id())?;
    let reception = Reception::start(
        settings.client_listen.as_str(),
        identity.clone(),
        Limits::for_clients(),
        me,
        nodes.len(),
        cluster.connection_id(),
        admits(rules.clone()),
    )?;
    let reception = reception.for_some(standby::sets_of(&cluster, me));
    let adversary = config.promise();
    let Strategy { requests, material } = Strategy::of(&config);
    let (config, threads) = (Arc::new(config), Arc::new(Threads::default()));
    let levels = match cluster.role() {
        Role::Make => Levels { aes_blocks: 0, des_blocks: 0, circuits: 0 },
        Role::Both | Role::Serve => levels(cluster.protocol(), &settings.stock, &settings.latency),
    };
    let members = Arc::new(Members::new(cluster, me));
    members.note_features(store.features().map_err(system)?);
    let network = Arc::new(Network::new(members.clone(), mesh));
    let keys = Keys::new(store.clone(), (config.quorum(), members.nodes), settings.limits.keys);
    let means = Means {
        config: config.clone(),
        members: members.clone(),
        threads: threads.clone(),
        store: store.clone(),
        logbook: logbook.clone(),
        network: network.clone(),
        boot: incarnation.boot,
        processors: settings.processors.unwrap_or_else(processors_here),
        of_all: None,
    };
    let material = Material::new(means, material, levels)?;
    let limits = &settings.limits;
    let service = Service {
        config,
        strategy: requests,
        members: members.clone(),
        identity,
        threads: threads.clone(),
        store: store.clone(),
        network: network.clone(),
        rollback_guard: Marks::new(members.clone(), store.clone(), network.clone(), threads.clone(), faults),
        material: material.clone(),
        rules: rules.clone(),
        clients: Arc::new(Clients::new(NodeLimits { connections: files.clients, ..limits.clone() })),
        keys,
        library: Default::default(),
        // Memory parts go to requests in order of arrival, and channels are shared fairly among clients. So
        // channels must be the scarcer of the two.
        channels: Channels::new(limits.channels.min(Memory::parts(limits))),
        pending: Default::default(),
        memory: Arc::new(Memory::new(limits)),
        delay: Delay::default(),
        foresight: Default::default(),
        circuits_from: material
            .keeps_circuits()
            .then(|| Duration::from_millis(settings.latency.from_ms.into())),
        failed_payments_an_hour: limits.failed_payments_an_hour,
        computed: Arc::default(),
        begun_at_once: AtomicU64::default(),
        faults,
        of_all: None,
    };
    let (orders, orders_of_pairs) = sync_channel(1);
    let traces = Traces::start(&settings)?;
    let core = Arc::new(Core {
        seen: Seen::new(members.clone(), logbook.clone()),
        tally: Default::default(),
        kept: Default::default(),
        members,
        threads,
        store,
        logbook,
        rules,
        network,
        material,
        service: Arc::new(service),
        incarnation,
        dates,
        warn_days: settings.certificates.warn_days,
        most_followed: files.followed,
        pairs: PairBoard::new(orders),
        traces,
    });
    core.logbook.note(&Event { blocks: core.incarnation.number, ..Event::of_node(STARTED, "done") });
    reload::log(&core);
    reload::log_authorities(&core, &authorities);
    core.material.load()?;
    core.material.resume_quarantine();
    if let Some(Quarantine { reason, .. }) = core.material.quarantined() {
        tracing::error!(reason, remedy = REMEDY, "this node is under quarantine and serves nothing");
        metrics::gauge!("polyclave_quarantined").set(1.0);
    }
    let (client_addr, dir) = (reception.local_addr(), Arc::new(dir));
    let mut threads = Vec::new();
    for peer in core.members.others() {
        threads.push(core.spawn("orders to a peer", move |core| give_orders(core, peer))?);
        threads.push(core.spawn("orders of a peer", move |core| take_orders(core, peer))?);
    }
    let pairs = Arc::<Pairs>::default();
    let of_clients = pairs.clone();
    threads.push(core.spawn("clients", move |core| {
        receive_clients(core, reception, &|pair| of_clients.core_of(pair));
    })?);
    if core.members.cluster.has_standby() {
        let (dir, given, told) = (dir.clone(), pairs.clone(), pairs.clone());
        // Nothing was set before.
        let _ = core.pairs.states.set(Box::new(move |core| standby::states(core, &told)));
        threads.push(core.spawn("standby", move |core| standby::keep(core, &dir, &pairs))?);
        // Not joined: this thread may wait for a peer as long as the peer may compute.
        drop(core.spawn("keys for pairs", move |core| standby::give(core, &given, &orders_of_pairs))?);
    }
    let path = dir.path().to_path_buf();
    threads.push(core.spawn("operator", move |core| socket.serve(core, &path))?);
    let policy_path = dir.policy_path();
    threads.push(core.spawn("housekeeping", move |core| keep_house(core, &dir, &policy_path))?);
    // Not joined: this thread may wait for a peer as long as the peer may compute.
    drop(core.spawn("preparation", |core| preparation::prepare(&core.material))?);
    let http = match &settings.http_listen {
        Some(address) => {
            let is_one_of_several = settings.worker > 0 || !settings.workers.is_empty();
            Some(http::start(address, is_one_of_several.then_some(settings.worker), core.clone())?)
        }
        None => None,
    };
    tracing::info!(node = %settings.name, party = me.0 + 1, incarnation = core.incarnation.number, "running");
    let computed = core.service.computed.clone();
    let (for_status, for_ready, for_audit) = (core.clone(), core.clone(), core.clone());
    let (for_standby, for_stop) = (core.clone(), core);
    let material = for_stop.material.clone();
    Ok(Running {
        #[cfg(test)]
        store: for_stop.store.clone(),
        #[cfg(test)]
        material: material.clone(),
        #[cfg(test)]
        service: for_stop.service.clone(),
        stop: Some(Box::new(move || stop(&for_stop, threads, http))),
        status: Box::new(move || for_status.status()),
        why_not_ready: Box::new(move || for_ready.why_not_ready()),
        is_outdated: Box::new(move || material.is_outdated()),
        computed,
        stopped_by_audit: Box::new(move || for_audit.logbook.refuses()),
        standby: Box::new(move || for_standby.pair_states()),
        client_addr,
        adversary,
    })
}

/// The cluster as the worker of a directory sees it. Workers but the first start once there are common
/// secrets.
fn of_worker(dir: &NodeDir, cluster: Cluster, store: &Store) -> Result<Cluster> {
    let number = dir.settings().worker;
    let seen = cluster.of_worker_group(number).ok_or_else(|| {
        Error::misuse(format!(
            "the cluster file says nothing of a worker {number}: its nodes have workers 0 to {}. Put the card of each node's first worker into \
             it with `cluster update`",
            cluster.worker_groups() - 1
        ))
    })?;
    if !cluster.roles().is_empty() && !store.is_shared() {
        return Err(Error::misuse(
            "the cluster file has workers that only serve or only make material. They hand it to each other through a PostgreSQL server, and the \
             store of this node is a file: move it (`polyclave node migrate`), or let all workers do both (`polyclave cluster duties`)",
        ));
    }
    match number == 0 || workers::have_agreed(store).map_err(system)? {
        true => Ok(seen),
        false => Err(Error::System(NO_SECRETS.into())),
    }
}

/// The store of a node, which is made at its first start.
pub(crate) fn open_store(dir: &NodeDir) -> Result<Arc<Store>> {
    let secret = Secret::from_bytes(*dir.secret().map_err(system)?);
    let store = Store::of_or_new(dir, &secret).map_err(system)?;
    store.restate_needs(dir).map_err(system)?;
    Ok(Arc::new(store))
}

fn processors_here() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn peer_address(card: &Card) -> Address {
    Address { address: card.address.clone(), certificates: card.certificates.clone() }
}

fn admits(rules: Rules) -> Admits {
    Arc::new(move |shown| rules.admit(shown))
}

fn stop(core: &Arc<Core>, threads: Vec<JoinHandle<()>>, http: Option<http::Server>) {
    tracing::info!("stopping");
    core.threads.stop();
    core.network.peers.wake();
    for thread in threads {
        // A thread that panicked has already ended.
        let _ = thread.join();
    }
    drop(http);
    // Waits for the threads that nobody joins: those of channels, clients, standby pairs and preparation.
    // When the last of them has ended, the store and the ports are free.
    if !core.threads.wait(LAST_WORDS) {
        core.network.halt();
        if !core.threads.wait(LAST_THREADS) {
            tracing::warn!("some threads have not ended; until they do, no other process can open the store");
        }
    }
    core.logbook.note(&Event::of_node(STOPPED, "in-order"));
    core.logbook.settle(&mut None);
    tracing::info!("stopped");
}
