//! What all threads of a node share: its keys, its policy, its connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use parking_lot::{Mutex, RwLock};

use crate::{Conduct, Result};
use polyclave_cipher::{Cipher, catalog};
use polyclave_config::ClientPolicy;
use polyclave_protocol::PartySet;
use polyclave_protocol::any::{AnyServiceConfig, AnySetup};
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::spdz::Guesses;
use polyclave_transport::wire::{KEYS, KeyInfo, NodeStatus, Reason, Refusal, Reply, Right};
use polyclave_transport::{CertificateDer, Mesh, TlsNet};

use crate::clients::limits::Clients;
use crate::computation::circuits::Library;
use crate::error::of_store;
use crate::keys::key::Shares;
use crate::keys::names::Names;
use crate::material::epoch::Epoch;
use crate::material::target::Target;
use crate::members::Members;
use crate::operator::audit::AuditLog;
use crate::operator::clock::Dates;
use crate::operator::faults::Seen;
use crate::peers::orders::{Order, State};
use crate::peers::registry::{CONNECT, Peers};
use crate::requests::channels::Channels;
use crate::requests::memory::Memory;
use crate::requests::pending::PendingRequests;
use crate::requests::plan::Client;
use crate::store::{Incarnation, KeyState, Quarantine, Store, StoreError, StoredKey};
use crate::strategy::Strategy;
use crate::threads::Threads;

/// The common secrets of the nodes, as this one holds them.
pub(crate) struct SetUp {
    pub(crate) id: [u8; 32],
    pub(crate) setup: AnySetup,
}

/// One node.
pub(crate) struct Core {
    pub(crate) scheme: AnyServiceConfig,
    pub(crate) strategy: Strategy,
    pub(crate) members: Members,
    pub(crate) threads: Threads,
    pub(crate) mesh: Mesh,
    pub(crate) store: Arc<Store>,
    pub(crate) audit: Option<AuditLog>,
    pub(crate) policy: Arc<RwLock<ClientPolicy>>,
    pub(crate) incarnation: Incarnation,
    /// Of the nodes' certificates.
    pub(crate) dates: Dates,
    pub(crate) set_up: RwLock<Option<Arc<SetUp>>>,
    pub(crate) setting_up: Mutex<()>,
    /// What is made afresh after every start of a node, for schemes that need it.
    pub(crate) epoch: RwLock<Option<Arc<Epoch>>>,
    /// Why this node computes nothing.
    pub(crate) quarantine: RwLock<Option<Quarantine>>,
    /// Checks that did not pass and could not be written down yet.
    pub(crate) uncounted: Mutex<Guesses>,
    /// By kind: how much material is to be in stock.
    pub(crate) targets: Arc<[Target]>,
    pub(crate) filling: Mutex<()>,
    /// The operator has ordered fresh common secrets.
    pub(crate) wants_rotation: AtomicBool,
    /// They are being made.
    pub(crate) rotating: AtomicBool,
    /// They are stored and not yet in use.
    pub(crate) prepared: AtomicBool,
    /// Requests share it; a rotation has it alone.
    pub(crate) gate: RwLock<()>,
    pub(crate) library: Library,
    pub(crate) ciphers: Mutex<HashMap<String, Cipher>>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) channels: Channels,
    pub(crate) pending: PendingRequests,
    pub(crate) clients: Clients,
    pub(crate) memory: Memory,
    /// Blocks computed since this node started.
    pub(crate) computed: Arc<AtomicU64>,
    /// Channels of one peer that are followed at once.
    pub(crate) most_followed: usize,
    pub(crate) names: Arc<Names>,
    /// What it has seen of others' faults.
    pub(crate) seen: Seen,
    /// How it behaves.
    pub(crate) conduct: Conduct,
}

/// A record of a key is damaged here.
pub(crate) fn unreadable(name: &str) -> Refusal {
    let told = format!(
        "its share of the key '{name}' is damaged and cannot be read; its operator can restore a backup, and until then others serve"
    );
    Refusal::new(Reason::Internal, told)
}

impl Core {
    /// Starts a thread of this node.
    pub(crate) fn spawn(
        self: &Arc<Core>,
        name: &str,
        work: impl FnOnce(&Arc<Core>) + Send + 'static,
    ) -> Result<JoinHandle<()>> {
        let core = self.clone();
        self.threads.spawn(name, move || work(&core))
    }

    /// The name of the client with a certificate.
    pub(crate) fn client_of(&self, certificate: &CertificateDer<'_>) -> Option<String> {
        let policy = self.policy.read();
        policy.client_of(certificate).map(str::to_owned)
    }

    /// Whether the policy of this node allows it.
    pub(crate) fn allow(&self, client: &Client, right: Right, key: &str) -> Result<(), Refusal> {
        let policy = self.policy.read();
        if policy.allows(&client.certificate, right, key) {
            return Ok(());
        }
        let name = &client.name;
        let told = format!("its policy does not allow {name} to {right} with the key '{key}'");
        Err(Refusal::new(Reason::Denied, told))
    }

    /// A cipher of the catalog.
    pub(crate) fn cipher(&self, name: &str) -> Result<Cipher, Refusal> {
        let mut ciphers = self.ciphers.lock();
        if let Some(cipher) = ciphers.get(name) {
            return Ok(cipher.clone());
        }
        let unknown = || {
            let names: Vec<String> = catalog::all().into_iter().map(|c| c.name).collect();
            Refusal::new(
                Reason::Key,
                format!("there is no cipher '{name}'; choose one of {}", names.join(", ")),
            )
        };
        let cipher = catalog::find(name).filter(|c| c.name == name).ok_or_else(unknown)?;
        ciphers.insert(name.to_owned(), cipher.clone());
        Ok(cipher)
    }

    /// A key and this node's shares of it. One that is not yet announced counts: the nodes compare its id, and who has the
    /// same one has stored it in the same session.
    pub(crate) fn key(&self, name: &str) -> Result<(KeyInfo, Arc<StoredKey>), Refusal> {
        let damaged = |e: StoreError| match e {
            StoreError::Corrupt { .. } => {
                tracing::error!(key = name, error = %e, "a record of a key is damaged");
                unreadable(name)
            }
            e => of_store(e),
        };
        let key = match self.store.key(name).map_err(damaged)? {
            None => self.store.pending_key(name).map_err(damaged)?.map(Arc::new),
            announced => announced,
        };
        match key {
            Some(key) => Ok((key.info.clone(), key)),
            None => Err(Refusal::new(Reason::Key, format!("there is no key '{name}'"))),
        }
    }

    /// Whether a key of this name was announced.
    pub(crate) fn has_key(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self.store.key(name).map_err(of_store)?.is_some())
    }

    /// Pays for blocks, durably, before they are computed. Every node pays for the requests that it serves; since every request
    /// is served by `least` nodes at least, all of them together let no more than the key's budget pass. The others that serve know
    /// of it before they are computed ([`Core::protect`]).
    pub(crate) fn spend(&self, info: &KeyInfo, blocks: u64, serving: PartySet) -> Result<(), Refusal> {
        if blocks == 0 {
            return Ok(());
        }
        let (least, all) = (self.scheme.quorum() as u128, self.members.nodes as u128);
        let own_part = (u128::from(info.properties.budget_blocks) * least / all) as u64;
        self.store.spend(info.id, blocks, own_part).map_err(of_store)?;
        self.protect(serving)
    }

    /// Stores a key that is not yet announced.
    pub(crate) fn store_pending(&self, info: &KeyInfo, shares: Shares) -> Result<(), Refusal> {
        let key = StoredKey { info: info.clone(), state: KeyState::Pending, shares };
        self.store.put_pending(&key).map_err(of_store)
    }

    /// Marks a key as one that all nodes have stored.
    pub(crate) fn announce(&self, info: &KeyInfo) -> Result<(), Refusal> {
        self.store.announce(&info.properties.name, info.id).map_err(of_store)
    }

    /// Deletes the key of a name, if there is one.
    pub(crate) fn delete_key(&self, name: &str) -> Result<Option<KeyInfo>, Refusal> {
        // Whether its shares can be read does not matter.
        let Some(info) = self.store.info(name).map_err(of_store)? else { return Ok(None) };
        self.store.delete(name, info.id).map_err(of_store)?;
        Ok(Some(info))
    }

    /// The keys that a client may see, a page of them after a name.
    pub(crate) fn keys(&self, client: &Client, after: &str) -> Result<Reply, Refusal> {
        let mut keys = self.store.readable_keys().map_err(of_store)?;
        let policy = self.policy.read();
        keys.retain(|info| {
            let name = info.properties.name.as_str();
            name > after && policy.allows(&client.certificate, Right::List, name)
        });
        keys.sort_by(|a, b| a.properties.name.cmp(&b.properties.name));
        let more = keys.len() > KEYS;
        keys.truncate(KEYS);
        Ok(Reply::Keys { keys, more })
    }

    /// Refuses another key where there are as many as the operator wants: a client that may make keys could else fill the disk.
    pub(crate) fn refuse_too_many_keys(&self) -> Result<(), Refusal> {
        let (held, most) = (self.store.count().map_err(of_store)?, self.clients.most_keys() as u64);
        if held < most {
            return Ok(());
        }
        let told = format!(
            "it has {held} keys, and its limit is {most}: delete some that are not needed, or ask its operator to raise `keys` under \
             [limits]"
        );
        Err(Refusal::new(Reason::Key, told))
    }

    /// A key that a client may use in some way.
    pub(crate) fn show(&self, client: &Client, key: &str) -> Result<KeyInfo, Refusal> {
        let rights = [Right::List, Right::Encrypt, Right::Decrypt, Right::Mac, Right::Delete];
        let first = self.allow(client, Right::List, key);
        if rights.into_iter().all(|right| self.allow(client, right, key).is_err()) {
            first?;
        }
        Ok(self.key(key)?.0)
    }

    /// The agreed common secrets.
    pub(crate) fn set_up(&self) -> Result<Arc<SetUp>, Refusal> {
        let told = "the nodes have not yet agreed on their common secrets: all of them have to be running at once, this first time";
        let set_up = self.set_up.read().clone();
        set_up.ok_or_else(|| Refusal::new(Reason::Unavailable, told))
    }

    /// What this node says of itself.
    pub(crate) fn status(&self) -> NodeStatus {
        NodeStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            cluster: self.members.cluster.id(),
            connected: self.peers.connected(),
            set_up: self.set_up().is_ok(),
            keys: self.store.count().unwrap_or_default(),
            prepared: self.epoch().is_some() || self.strategy.material.refuse_without_epoch(self).is_ok(),
            stock: self.stock_levels(),
            quarantined: self.is_quarantined(),
            rotating: self.rotation_wanted_by(),
            outvoted: self.seen.outvoted(),
            silent: self.seen.silent(),
            damaged: self.store.damaged().len() as u64,
            lacking: self.lacking(),
        }
    }

    /// How many keys fewer it has than more nodes have than may lie.
    fn lacking(&self) -> u64 {
        let own = self.store.count().unwrap_or_default();
        let mut counts: Vec<u64> = self.peers.key_counts().into_iter().chain([own]).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.get(self.members.cluster.threshold()).map_or(0, |most| most.saturating_sub(own))
    }

    /// The nodes whose operators have ordered fresh common secrets.
    fn rotation_wanted_by(&self) -> PartySet {
        let own = self.wants_rotation.load(Relaxed).then_some(self.members.me);
        self.peers.which(|state| state.wants_rotation).iter().chain(own).collect()
    }

    /// What this node tells its peers of itself.
    pub(crate) fn beat(&self) -> State {
        State {
            epoch: self.epoch().map_or([0; 32], |epoch| epoch.id),
            quarantined: self.is_quarantined(),
            wants_rotation: self.wants_rotation.load(Relaxed),
            prepared: self.prepared.load(Relaxed),
            levels: self.levels(),
            keys: self.store.count().unwrap_or_default().try_into().unwrap_or(u32::MAX),
        }
    }

    /// Orders a new channel and connects to it.
    pub(crate) fn open_channel(&self, serving: PartySet) -> Result<TlsNet> {
        let mut name = [0; 16];
        random_bytes(&mut name)?;
        for peer in serving.iter().filter(|p| *p != self.members.me) {
            self.peers.order(peer, Order::Channel { serving, name })?;
        }
        self.mesh.open(&channel_name(&name), serving, CONNECT)
    }
}

/// The name of the stream of a channel.
pub(crate) fn channel_name(name: &[u8; 16]) -> String {
    format!("channel {}", hex::encode(name))
}
