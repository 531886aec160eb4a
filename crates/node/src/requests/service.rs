//! The parts of a node that serving a request takes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use polyclave_api::operations::{Hmac, UseKey};
use polyclave_api::{KeyInfo, Operation, Permission, Refusal, Request, Use};
use polyclave_protocol::PartySet;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_store::Store;

use crate::FaultInjection;
use crate::clients::approvals::Approvals;
use crate::clients::client::Client;
use crate::clients::limits::Clients;
use crate::clients::rules::Rules;
use crate::computation::circuits::Library;
use crate::keys::held::Keys;
use crate::material::state::Material;
use crate::members::Members;
use crate::peers::rollback_guard::Marks;
use polyclave_transport::Identity;

use crate::peers::network::Network;
use crate::requests::channels::Channels;
use crate::requests::delay::Delay;
use crate::requests::foresight::Foresight;
use crate::requests::memory::Memory;
use crate::requests::pending::PendingRequests;
use crate::requests::strategy::RequestStrategy;
use crate::threads::Threads;

/// The parts that serve requests.
pub(crate) struct Service {
    pub(crate) config: Arc<AnyServiceConfig>,
    pub(crate) strategy: Box<dyn RequestStrategy>,
    pub(crate) members: Arc<Members>,
    /// By its key this node opens what was sealed to it.
    pub(crate) identity: Identity,
    pub(crate) threads: Arc<Threads>,
    pub(crate) store: Arc<Store>,
    pub(crate) network: Arc<Network>,
    pub(crate) rollback_guard: Marks,
    pub(crate) material: Arc<Material>,
    pub(crate) rules: Rules,
    pub(crate) clients: Arc<Clients>,
    pub(crate) keys: Keys,
    pub(crate) library: Library,
    pub(crate) channels: Channels,
    pub(crate) pending: PendingRequests,
    pub(crate) memory: Arc<Memory>,
    /// How far the other nodes are.
    pub(crate) delay: Delay,
    /// What requests take of the stock.
    pub(crate) foresight: Foresight,
    /// From this distance on few blocks go through garbled circuits; none do if absent.
    pub(crate) circuits_from: Option<Duration>,
    /// Payment commands under one key that may fail in an hour, at all nodes together.
    pub(crate) failed_payments_an_hour: u64,
    /// Blocks computed since this node started.
    pub(crate) computed: Arc<AtomicU64>,
    /// Requests whose hello took one round.
    pub(crate) begun_at_once: AtomicU64,
    /// How the node behaves: honestly, or, in tests, as a cheater.
    pub(crate) faults: FaultInjection,
    /// What all nodes serve with, if these are the two nodes of a standby pair.
    pub(crate) of_all: Option<OfAll>,
}

/// The service of all nodes, of which two are a standby pair.
pub(crate) struct OfAll {
    pub(crate) service: Arc<Service>,
    /// The two nodes, by their numbers among all.
    pub(crate) pair: PartySet,
}

impl OfAll {
    /// The name of the node that is not of the pair.
    pub(crate) fn third(&self) -> String {
        let members = &self.service.members;
        members.names_of(members.all().without(self.pair)).join(" and ")
    }
}

/// How often a use in a standby pair is charged to the budget of a key. Let a node cheat, and let f, p, q and
/// r be the blocks that were computed by all three nodes, by the honest two, and by each of these with the
/// cheater. The honest nodes charge f + 2 p + 2 q and f + 2 p + 2 r, each at most the budget. Half of the sum
/// is f + 2 p + q + r, so what was computed, f + p + q + r, is within the budget, whatever the cheater told
/// each of them of the other.
pub(crate) const CHARGED_IN_STANDBY: u64 = 2;

impl Service {
    /// At the leading node: whether few blocks of a request are to go through garbled circuits, if some are
    /// in stock. Where the nodes are near, rounds are faster, but for short hashes, which have hundreds.
    pub(crate) fn takes_circuits(&self, request: &Request) -> bool {
        let Some(from) = self.circuits_from else { return false };
        let is_far = self.delay.known().is_some_and(|delay| delay >= from);
        match &request.operation {
            Operation::Use(UseKey { how: Use::Hmac(messages), .. }) => is_far || is_short(messages),
            // In rounds a session has all material before the try is counted. Through circuits it goes on
            // without what the stock does not have, and could find too little afterwards.
            Operation::ImportSealed(_) => false,
            _ => is_far,
        }
    }

    /// Where approvals are checked and spent.
    pub(crate) fn approvals(&self) -> Approvals<'_> {
        Approvals { rules: &self.rules, store: &self.store, cluster: self.members.cluster.id() }
    }

    /// Pays for blocks before they are computed, from the client's limits in the rules and from the key's
    /// budget. Then waits until enough other serving nodes hold the mark of the change to the budget.
    pub(crate) fn pay(
        &self,
        (client, asked): (&Client, &[Permission]),
        info: &KeyInfo,
        blocks: u64,
        serving: PartySet,
    ) -> Result<(), Refusal> {
        if blocks == 0 {
            return Ok(());
        }
        let of_key = asked.iter().filter(|asked| asked.key == info.properties.name);
        self.rules.charge(client, of_key, [0, blocks])?;
        match &self.of_all {
            None => self.keys.pay(info, blocks)?,
            Some(OfAll { service, .. }) => {
                service.keys.pay(info, blocks.saturating_mul(CHARGED_IN_STANDBY))?;
            }
        }
        self.protect(serving)
    }

    /// Waits until enough other serving nodes hold the mark of what this node wrote down.
    pub(crate) fn protect(&self, serving: PartySet) -> Result<(), Refusal> {
        match &self.of_all {
            None => self.rollback_guard.protect(serving),
            // Budgets are in the store that all nodes guard.
            Some(OfAll { service, pair }) => service.rollback_guard.protect(*pair),
        }
    }
}

/// Whether codes take so few compressions that they leave circuits for other requests. A longer message would
/// take all that there are, and go in rounds in the end.
fn is_short(messages: &Hmac) -> bool {
    const MOST: u64 = 24;
    let of_one = u64::from(messages.bytes) / 64 + 3;
    of_one.saturating_mul(messages.messages.into()) <= MOST
}
