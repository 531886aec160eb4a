//! What a node decides alone about a request: whether the client may do this, with which key, and in which
//! mode. The node uses nothing that the client said before the nodes have compared it
//! ([`begin`](super::begin)).
//!
//! What is decided for each operation is above this folder, in `operations/`: it implements the traits here.

use polyclave_api::{self as api, Describe, KeyInfo, Permission, Reason, Refusal, Request, Step};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::dealt::HeldSeeds;
use polyclave_protocol::service::ServiceConfig;

use crate::clients::approvals::Approved;
use crate::clients::client::Client;
use crate::computation::modes::{StepError, misplaced};
use crate::error::refuse_damaged;
use crate::keys::names::Taken;
use crate::requests::conversation::Serving;
use crate::requests::pending::Ticket;
use crate::requests::service::Service;

/// An operation as a node judges it, before it says anything to the other nodes.
pub(crate) trait Operation: Describe {
    /// What the rules have to allow for it, by what this node holds.
    fn permissions_here(&self, _: &Service, _: &Client) -> Result<Vec<Permission>, Refusal> {
        Ok(self.permissions())
    }

    /// Checks it against this node's own keys and limits.
    fn plan(&self, _: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        Err(Refusal::new(Reason::Malformed, "each node answers this operation alone"))
    }
}

/// An operation that this node is ready to do with the other nodes.
pub(crate) trait Planned {
    /// The keys that it uses, as the nodes compare them.
    fn identity(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Checks the first step, and says which keys pay how many blocks for it and for the beginning, before
    /// the nodes compare it with the request.
    fn blocks(&mut self, first: Option<&Step>) -> Result<Vec<(&KeyInfo, u64)>, Refusal> {
        first.map_or(Ok(Vec::new()), |step| Err(misplaced(step)))
    }

    /// Does it, after the nodes have agreed on it.
    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        protocol: AnyServiceSession,
        first: Option<Step>,
    ) -> Result<(), StepError>;
}

/// A key, as the nodes compare it.
pub(crate) fn identity(info: &KeyInfo) -> Vec<u8> {
    api::encode(&info.identity()).unwrap_or_default()
}

/// Finds what a node does for an operation.
pub(crate) type Operations = fn(&api::Operation) -> &dyn Operation;

/// A request as it came.
pub(crate) struct Asked<'a> {
    pub(crate) request: Request,
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
    /// What followed them: the seeds of a mask that the client deals. Else empty.
    pub(crate) seeds: &'a [u8],
    /// Whether the node comes to it for the first time.
    pub(crate) is_first_try: bool,
}

/// A request that this node is ready to serve.
pub(crate) struct Plan {
    pub(crate) request: Request,
    /// Digest of the client's certificate and all bytes of its request.
    pub(crate) digest: [u8; 32],
    pub(crate) ticket: Ticket,
    /// What the client deals of the first mask.
    pub(crate) dealt: Option<HeldSeeds>,
    pub(crate) planned: Box<dyn Planned>,
    /// The blocks that were paid for before the nodes compare it.
    pub(super) paid: u64,
    /// Whether this node begins the request for the first time.
    pub(super) is_first_try: bool,
    /// The client that asks.
    pub(super) client: String,
    /// What it asks of the rules.
    pub(super) asked: Vec<Permission>,
    /// The approval that this node's rules want for it.
    pub(crate) approved: Option<Approved>,
    /// The name of the key that the request makes or deletes.
    _taken: Option<Taken>,
}

impl Plan {
    /// Checks a request against this node's own policy, keys and limits. It asks no other node, and spends
    /// nothing except that a request that can be served counts against the limits of its rules, when the node
    /// comes to it for the first time.
    pub(crate) fn make(
        service: &Service,
        client: &Client,
        asked: Asked<'_>,
        operations: Operations,
    ) -> Result<Plan, Refusal> {
        let Asked { request, bytes, seeds, is_first_try } = asked;
        refuse_damaged(&service.store)?;
        service.material.refuse_quarantined()?;
        let all = service.members.all();
        let serving = request.serving;
        if serving.iter().any(|p| !all.contains(p)) || !serving.contains(service.members.me) {
            let message = format!(
                "this is {} of {} nodes; the request is for {serving}",
                service.members.me, service.members.nodes
            );
            return Err(Refusal::new(Reason::Malformed, message));
        }
        let needs_all = !request.operation.describe().only_uses();
        if let Some(of_all) = service.of_all.as_ref().filter(|_| needs_all) {
            let message = format!(
                "keys are made, changed and deleted by all nodes, and this was asked of two of them, which go on while {} is away;                  ask all nodes, when it is back",
                of_all.third()
            );
            return Err(Refusal::new(Reason::Unavailable, message));
        }
        let least = if needs_all { service.members.nodes } else { service.config.quorum() };
        if serving.len() < least {
            let message =
                format!("the request names {} nodes to serve it, and needs at least {least}", serving.len());
            return Err(Refusal::new(Reason::Unavailable, message));
        }
        let dealt = dealt(service, &request, seeds)?;
        let operation = operations(&request.operation);
        let asked = operation.permissions_here(service, client)?;
        asked.iter().try_for_each(|asked| service.rules.allow(client, asked))?;
        let approvals = service.approvals();
        let approved = approvals.check(client, &request, &asked, {
            serving.len() == service.members.nodes && service.of_all.is_none()
        })?;
        let mut draft = Draft { service, client, asked: &asked, taken: None };
        let planned = operation.plan(&mut draft)?;
        let taken = draft.taken;
        let who = client.bound();
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 request of a client");
        hasher.update(&(who.len() as u64).to_le_bytes()).update(who).update(bytes);
        let (ticket, digest) = (ticket(client, &request.id), hasher.finalize().into());
        if is_first_try {
            service.rules.charge(client, &asked, [1, 0])?;
        }
        Ok(Plan {
            ticket,
            request,
            digest,
            dealt,
            planned,
            paid: 0,
            is_first_try,
            client: client.name.clone(),
            asked,
            approved,
            _taken: taken,
        })
    }

    /// What requests have in common that probably take the same from the stock: what is done, with which
    /// keys, and how many blocks were paid for.
    pub(super) fn likeness(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 requests that are alike");
        hasher.update(&self.key_digest()).update(&self.paid.to_le_bytes());
        hasher.update(self.request.operation.describe().kind().as_bytes());
        hasher.finalize().into()
    }

    /// A digest of the keys that the request uses, which the nodes compare.
    pub(super) fn key_digest(&self) -> [u8; 32] {
        blake3::derive_key("polyclave 2026 properties of a key", &self.planned.identity())
    }
}

/// What the client deals of the mask of its first step. Only such a step can be under a mask: the nodes'
/// masks come later. The commitments are part of the request, which all nodes compare.
fn dealt(service: &Service, request: &Request, seeds: &[u8]) -> Result<Option<HeldSeeds>, Refusal> {
    let malformed = |message: String| Refusal::new(Reason::Malformed, message);
    let is_masked = matches!(request.first, Some(Step::Masked { .. } | Step::Message { .. }));
    if is_masked == request.dealt.is_empty() {
        let message =
            "a client deals a mask for a first step under it, and for no other; is it of another version?";
        return Err(malformed(message.into()));
    }
    if !is_masked {
        return Ok(None);
    }
    let components = service.config.components();
    let held = HeldSeeds::checked(&components, service.members.me, &request.dealt, seeds);
    held.map(Some).map_err(|error| malformed(error.to_string()))
}

/// A plan in the making.
pub(crate) struct Draft<'a> {
    pub(crate) service: &'a Service,
    pub(crate) client: &'a Client,
    pub(crate) asked: &'a [Permission],
    /// The name of the key that the request makes or changes.
    pub(crate) taken: Option<Taken>,
}

impl<'a> Draft<'a> {
    /// The client that asks, and the node that it asks.
    pub(crate) fn by(&self) -> (&'a Service, &'a Client) {
        (self.service, self.client)
    }
}

/// Identifies a client's request among the nodes.
pub(crate) fn ticket(client: &Client, id: &[u8; 16]) -> Ticket {
    let mut ticket = blake3::Hasher::new_derive_key("polyclave 2026 ticket of a request");
    ticket.update(id).update(client.bound()).finalize().into()
}
