//! Epochs: what sessions run under in addition to the common secrets, with its material in stock.
//!
//! Under active protocols that abort, the nodes make an epoch afresh whenever a node has started. It belongs
//! to the common secrets and to one start of each node, which all nodes compare; it is in memory only. The
//! first node leads ([`crate::material::preparation`]): as soon as all nodes are connected, none is under
//! quarantine, and not all have the same epoch, it orders a new one. Every node then gives up the previous
//! one. No node relies on an epoch before all have said that they have it. A node that missed this says in
//! its next beat that it has none, and the nodes make another.
//!
//! An epoch ends at once, with its material, when a node greets with another start, when any node is under
//! quarantine, and when a check in it has failed or was left without an answer: its MAC key is given up then,
//! if there is one.
//!
//! Protocols that guarantee the output have a single permanent epoch, which every node begins for itself
//! ([`Epoch::permanent`]).

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::any::{AnyServiceSession, AnySetup};
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{AgreedSession, Stream, hello};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::TlsNet;

use crate::Result;
use crate::error::{refuse_damaged, system};
use crate::material::preparation::compared;
use crate::material::quarantine::judge;
use crate::material::refresh::REFRESHING;
use crate::material::setup::LoadedSetup;
use crate::material::state::Material;
use crate::material::stock::Lots;
use crate::material::stock::bounded::BoundedStock;
use crate::peers::exchange::tell_all;
use crate::peers::network::CONNECT;
use crate::peers::orders::Order;

/// How long a peer may compute between two messages while the nodes make something together.
const MAKING: Duration = Duration::from_secs(120);
/// How long a node waits for a peer to say that it has come to such a meeting.
const MEETING: Duration = Duration::from_secs(5);
/// The longest time that a node spends in a meeting to which some do not come.
pub(crate) const LONGEST_MEETING: Duration = CONNECT.saturating_add(MEETING);

/// One epoch, as this node holds it.
pub(crate) struct Epoch {
    pub(crate) id: [u8; 32],
    pub(crate) setup: AnySetup,
    pub(crate) lots: Arc<Lots>,
    /// By party: the start of it that takes part.
    boots: Vec<[u8; 16]>,
    /// The epoch was given up: requests that still run under it end without an answer.
    over: Arc<AtomicBool>,
}

impl Epoch {
    /// The permanent epoch. An item of its stock is used only if `quorum` nodes take it.
    pub(crate) fn permanent(
        material: &Material,
        setup_id: [u8; 32],
        setup: AnySetup,
        quorum: usize,
    ) -> Result<Epoch> {
        let id = blake3::derive_key("polyclave 2026 standing stock", &setup_id);
        let boot = material.boot;
        let (kinds, store) = (material.config.kinds(material.members.me), material.store.clone());
        let lots =
            Lots::permanent(material.members.me, material.members.nodes, (id, boot), kinds, store, quorum)?;
        Ok(Epoch { id, setup, lots, boots: Vec::new(), over: Arc::default() })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }
}

/// The common secrets and the epoch under which the sessions of one request run.
pub(crate) struct SessionContext {
    setup: Arc<LoadedSetup>,
    epoch: Option<Arc<Epoch>>,
}

/// The ids of both, for the nodes to compare; zeros if one is missing.
#[derive(Clone, Copy, Default)]
pub(crate) struct SessionContextId {
    pub(crate) setup: [u8; 32],
    pub(crate) epoch: [u8; 32],
}

/// What a request may take of a node.
pub(crate) struct Allowance {
    /// Bytes of memory.
    pub(crate) memory: usize,
    /// Whether it takes garbled circuits from the stock.
    pub(crate) takes_circuits: bool,
}

impl SessionContext {
    pub(crate) fn id(&self) -> SessionContextId {
        SessionContextId {
            setup: self.setup.id,
            epoch: self.epoch.as_ref().map_or([0; 32], |epoch| epoch.id),
        }
    }

    /// The epoch, if there is one.
    pub(crate) fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_deref()
    }

    /// The stock as one request may use it, if there is an epoch.
    pub(crate) fn stock(&self, material: &Material, allowance: Allowance) -> Option<Arc<BoundedStock>> {
        let epoch = self.epoch.as_ref()?;
        let Allowance { memory, takes_circuits } = allowance;
        let (lots, over) = (epoch.lots.clone(), epoch.over.clone());
        let (targets, through_circuits) = (material.targets.clone(), material.through_circuits.clone());
        let (first, ahead) = Default::default();
        Some(Arc::new(BoundedStock {
            lots,
            targets,
            memory,
            takes_circuits,
            through_circuits,
            over,
            first,
            ahead,
        }))
    }

    /// Joins a session of a request, with the stock as it may use it.
    pub(crate) fn join(
        &self,
        material: &Material,
        stock: Option<Arc<BoundedStock>>,
        stream: Stream,
        serving: PartySet,
    ) -> Result<AnyServiceSession> {
        match stock {
            Some(stock) => material.config.join_stocked(self.in_use(), stream, serving, stock),
            None => self.join_unstocked(material, stream, serving),
        }
    }

    /// Joins a session that makes its material on the way.
    pub(crate) fn join_unstocked(
        &self,
        material: &Material,
        stream: Stream,
        serving: PartySet,
    ) -> Result<AnyServiceSession> {
        material.config.join(self.in_use(), stream, serving)
    }

    /// What sessions are joined with.
    fn in_use(&self) -> &AnySetup {
        self.epoch.as_ref().map_or(&self.setup.setup, |epoch| &epoch.setup)
    }

    /// Refuses another step if it is too long ago that the common secrets of this context were replaced.
    pub(crate) fn refuse_outlived(&self, material: &Material) -> Result<(), Refusal> {
        if !material.has_outlived(&self.setup.id) {
            return Ok(());
        }
        let message = "all keys got fresh shares while this request was running, and it has taken too long since; ask again";
        Err(Refusal::new(Reason::Unavailable, message))
    }

    /// An error if the context was given up: then nothing that was computed in it may be sent.
    pub(crate) fn still_holds(&self, material: &Material) -> Result<()> {
        if material.is_quarantined() || self.epoch.as_ref().is_some_and(|epoch| epoch.is_over()) {
            return Err(Error::System("the epoch of this request has ended meanwhile".into()));
        }
        Ok(())
    }
}

impl Material {
    /// The context of a request that begins now; a refusal while there is none.
    pub(crate) fn context(&self) -> Result<SessionContext, Refusal> {
        self.context_unless(self.is_refreshing())
    }

    /// A refusal if a request that has begun gets no further step.
    pub(crate) fn refuse_further_steps(&self) -> Result<(), Refusal> {
        self.context_unless(self.refresh_ends_requests()).map(drop)
    }

    fn context_unless(&self, a_refresh_forbids_it: bool) -> Result<SessionContext, Refusal> {
        refuse_damaged(&self.store)?;
        self.refuse_quarantined()?;
        self.refuse_uncounted().map_err(|e| Refusal::new(Reason::Unavailable, e.to_string()))?;
        if a_refresh_forbids_it && self.strategy.pauses_for_refresh() {
            return Err(Refusal::new(Reason::Unavailable, REFRESHING));
        }
        let (setup, epoch) = (self.setup()?, self.epoch());
        if epoch.is_none() {
            self.strategy.refuse_without_epoch(self)?;
        }
        Ok(SessionContext { setup, epoch })
    }

    /// The epoch that is in use.
    pub(crate) fn epoch(&self) -> Option<Arc<Epoch>> {
        self.epoch.read().clone().filter(|epoch| !epoch.is_over())
    }

    /// Takes the permanent epoch into use. If the nodes have agreed again, because some were not sure, the
    /// epoch and the stock remain the same.
    pub(crate) fn keep_permanent(&self, epoch: Epoch) {
        let mut current = self.epoch.write();
        if current.as_ref().is_none_or(|before| before.id != epoch.id) {
            *current = Some(Arc::new(epoch));
        }
    }

    /// Gives the epoch up, with its material.
    pub(crate) fn end_epoch(&self, why: &str) {
        self.end_epoch_if(why, |_| true);
    }

    /// The same for one epoch: if it has been given up already, the one that followed it goes on.
    pub(crate) fn end_only(&self, ended: &Epoch, why: &str) {
        self.end_epoch_if(why, |epoch| ptr::eq(epoch, ended));
    }

    /// The same, if a peer has restarted since it joined the epoch.
    pub(crate) fn end_epoch_of_other_start(&self, peer: Party, boot: [u8; 16]) {
        self.end_epoch_if("a peer has started again", |epoch| epoch.boots[peer.index()] != boot);
    }

    fn end_epoch_if(&self, why: &str, ends: impl Fn(&Epoch) -> bool) {
        let mut current = self.epoch.write();
        if let Some(epoch) = current.take_if(|epoch| ends(epoch)) {
            epoch.over.store(true, Relaxed);
            tracing::info!(id = %hex::encode(&epoch.id[..8]), why, "an epoch has ended, and its material is given up");
        }
    }

    /// By party: its current start; `None` before every peer has greeted.
    fn boots(&self) -> Option<Vec<[u8; 16]>> {
        let own = Some(self.boot);
        Party::all(self.members.nodes)
            .map(|p| if p == self.members.me { own } else { self.network.peers.boot(p) })
            .collect()
    }
}

/// Whether a new epoch is due: not all nodes have the same one, and they can make one. Asked at the leading
/// node.
pub(crate) fn is_due(material: &Material) -> bool {
    let ready = material.setup().is_ok()
        && material.network.is_complete()
        && material.network.peers.all_set_up()
        && material.may_use_mac_key()
        && !material.is_refreshing()
        && !material.network.peers.any(|state| state.quarantined || state.prepared);
    ready && material.epoch().is_none_or(|epoch| material.network.peers.any(|state| state.epoch != epoch.id))
}

/// Orders all nodes to make an epoch.
pub(crate) fn lead(material: &Material, name: [u8; 16]) -> Result<()> {
    material.network.order_all(Order::Renew { name })?;
    join(material, name)
}

/// A stream among all nodes, for something that they make together. A node that was reached and has not come,
/// because it cannot take part now, is not waited for as long as a node that computes.
pub(crate) fn meet(material: &Material, what: &str, name: [u8; 16]) -> Result<TlsNet> {
    let all = material.members.all();
    let mut net = material.network.open_together(&format!("{what} {}", hex::encode(name)), all)?;
    net.set_idle_limit(MEETING);
    tell_all(&[1], &mut net)?;
    net.set_idle_limit(MAKING);
    Ok(net)
}

/// Takes part in making an epoch.
pub(crate) fn join(material: &Material, name: [u8; 16]) -> Result<()> {
    let _alone = material.setting_up.lock();
    let text = |refusal: Refusal| Error::System(refusal.message);
    material.refuse_quarantined().map_err(text)?;
    material.refuse_uncounted()?;
    let setup = material.setup().map_err(text)?;
    let boots = material.boots().ok_or_else(|| Error::System("not all nodes have greeted yet".into()))?;
    let mut net = meet(material, "renew", name)?;
    let parameters = material
        .members
        .handshake()
        .with("common secrets", &setup.id)
        .with("view of which start each node is in", &boots.concat());
    let parameters = compared(material, parameters);
    let session = hello(&material.config.handshake(parameters), &mut net)?;
    // Only when all are here: an order that comes late must not end what was made meanwhile.
    material.end_epoch("a new one is made");
    let epoch = make(material, &session, boots, &mut net).inspect_err(|e| {
        judge(material, "making what is made afresh after a start", None, e);
    })?;
    let id = epoch.id;
    take(material, epoch)?;
    material.network.peers.note_all_epochs(id);
    metrics::counter!("polyclave_epochs_total").increment(1);
    tracing::info!(id = %hex::encode(&id[..8]), "a new epoch has begun");
    Ok(())
}

fn make(
    material: &Material,
    session: &AgreedSession,
    boots: Vec<[u8; 16]>,
    net: &mut TlsNet,
) -> Result<Epoch> {
    // Restored as stored, without what sessions have noted in it of failed checks. The quarantine remembers
    // those.
    let stored = material.store.setup().map_err(system)?.filter(|stored| stored.agreed);
    let stored = stored.ok_or_else(|| Error::System("the common secrets are gone".into()))?;
    let setup = material.config.restore_setup(material.members.me, &stored.bytes)?;
    material.config.guard_guesses(&setup, material.guard(false));
    let setup = material.config.renew(&setup, net)?;
    // All nodes say that they have the epoch before it counts.
    tell_all(&[1], net)?;
    let id = session.id();
    let lots = Lots::new(
        material.members.me,
        material.members.nodes,
        id,
        material.config.kinds(material.members.me),
        material.store.clone(),
    )?;
    Ok(Epoch { id, setup, lots, boots, over: Arc::default() })
}

/// Takes an epoch into use, unless the common secrets or starts that it was made for have changed.
fn take(material: &Material, epoch: Epoch) -> Result<()> {
    let mut current = material.epoch.write();
    material.refuse_uncounted()?;
    if material.is_quarantined() || material.network.peers.any(|state| state.quarantined) {
        return Err(Error::System("a node came under quarantine meanwhile".into()));
    }
    if material.boots().as_ref() != Some(&epoch.boots) {
        return Err(Error::System("a node has started again meanwhile".into()));
    }
    *current = Some(Arc::new(epoch));
    Ok(())
}
