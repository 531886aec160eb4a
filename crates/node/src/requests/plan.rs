//! What a node decides alone about a request: whether the client may do this, with which key, and in which mode. The node uses nothing that
//! the client said before the nodes have compared it ([`begin`](super::begin)).

mod life;
mod making;
mod refusals;
mod uses;

use std::sync::Arc;

use polyclave_api::key_block::KeyBlock;
use polyclave_api::{
    self as api, Derivation, KeyInfo, NewKey, Operation, Permission, Reason, Refusal, Request, Usage,
    VersionState, Wrapping, operations,
};
use polyclave_cipher::Cipher;
use polyclave_protocol::service::ServiceConfig;
use polyclave_store::StoredKey;

use crate::clients::approvals::Approved;
use crate::clients::rules::Client;
use crate::computation::modes::Mode;
use crate::error::refuse_damaged;
use crate::keys::names::Taken;
use crate::requests::components::{self, Combination, GivenComponent};
use crate::requests::conversation::Description;
use crate::requests::pending::Ticket;
use crate::requests::sealed::SealedKey;
use crate::requests::service::Service;

pub(super) use refusals::refuse_unchecked;

/// A request that this node is ready to serve.
pub(crate) struct Plan {
    pub(crate) request: Request,
    /// Digest of the client's certificate and all bytes of its request.
    pub(crate) digest: [u8; 32],
    pub(crate) ticket: Ticket,
    pub(crate) task: Task,
    /// The client that asks.
    pub(super) client: String,
    /// What it asks of the rules.
    pub(super) asked: Vec<Permission>,
    /// The approval that this node's rules want for it.
    pub(crate) approved: Option<Approved>,
    /// The name of the key that the request makes or deletes.
    _taken: Option<Taken>,
}

/// What the request does.
pub(crate) enum Task {
    Generate {
        new: NewKey,
        cipher: Cipher,
    },
    Import {
        new: NewKey,
        cipher: Cipher,
    },
    Delete {
        key: String,
        version: Option<u32>,
    },
    Rotate {
        key: String,
        /// The current version here. Another node may not have announced it yet.
        current: KeyInfo,
    },
    Retire {
        key: String,
        version: u32,
        state: VersionState,
    },
    Configure {
        key: String,
        least_version: u32,
        deletable: bool,
        withdraw_wrappable: bool,
        withdraw_usage: Vec<Usage>,
    },
    Describe {
        key: String,
        description: Description,
    },
    Use {
        info: KeyInfo,
        key: Arc<StoredKey>,
        mode: Box<dyn Mode>,
        other: Option<Other>,
    },
    Copy {
        source: Arc<StoredKey>,
        new: NewKey,
    },
    Derive {
        base: Arc<StoredKey>,
        new: NewKey,
        cipher: Cipher,
        how: Derivation,
        blocks: u64,
    },
    Unwrap {
        kek: Arc<StoredKey>,
        new: NewKey,
        cipher: Cipher,
        wrapped: Vec<u8>,
        how: Wrapping,
        blocks: u64,
    },
    UnwrapBlock(Box<UnwrappedBlock>),
    ImportComponent(Box<GivenComponent>),
    ImportSealed(Box<SealedKey>),
    Combine(Box<Combination>),
}

/// A second key of a use: one that is wrapped, or under which something was encrypted.
pub(crate) struct Other {
    pub(crate) key: Arc<StoredKey>,
    /// Blocks that are computed under it; none of a key that is wrapped.
    pub(crate) blocks: u64,
}

/// A key block that becomes a key.
pub(crate) struct UnwrappedBlock {
    pub(crate) kek: Arc<StoredKey>,
    pub(crate) new: NewKey,
    pub(crate) cipher: Cipher,
    pub(crate) block: KeyBlock,
    pub(crate) blocks: u64,
}

impl Plan {
    /// Checks a request against this node's own policy, keys and limits. It asks no other node, and spends nothing except that a request that
    /// can be served counts against the limits of its rules, if `counts`.
    pub(crate) fn make(
        service: &Service,
        client: &Client,
        request: Request,
        (bytes, counts): (&[u8], bool),
    ) -> Result<Plan, Refusal> {
        refuse_damaged(&service.store)?;
        service.material.refuse_quarantined()?;
        let all = service.members.all();
        let serving = request.serving;
        if serving.iter().any(|p| !all.contains(p)) || !serving.contains(service.members.me) {
            let told = format!(
                "this is {} of {} nodes; the request is for {serving}",
                service.members.me, service.members.nodes
            );
            return Err(Refusal::new(Reason::Malformed, told));
        }
        let needs_all = !request.operation.describe().only_uses();
        let least = if needs_all { service.members.nodes } else { service.config.quorum() };
        if serving.len() < least {
            let told =
                format!("the request names {} nodes to serve it, and needs at least {least}", serving.len());
            return Err(Refusal::new(Reason::Unavailable, told));
        }
        let asked = components::asked_of_giver(service, client, request.operation.describe().permissions())?;
        asked.iter().try_for_each(|asked| service.rules.allow(client, asked))?;
        let desk = service.approvals();
        let approved = desk.check(client, &request, &asked, serving.len() == service.members.nodes)?;
        let mut draft = Draft { service, client, asked: &asked, taken: None };
        let task = draft.task(&request.operation)?;
        let taken = draft.taken;
        let certificate = &client.certificate;
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 request of a client");
        hasher.update(&(certificate.len() as u64).to_le_bytes()).update(certificate).update(bytes);
        let (ticket, digest) = (ticket(client, &request.id), hasher.finalize().into());
        if counts {
            service.rules.charge(client, &asked, [1, 0])?;
        }
        Ok(Plan {
            ticket,
            request,
            digest,
            task,
            client: client.name.clone(),
            asked,
            approved,
            _taken: taken,
        })
    }

    /// A digest of the keys that the request uses, which the nodes compare.
    pub(super) fn key_digest(&self) -> [u8; 32] {
        let encoded = |info: &KeyInfo| api::encode(&info.identity()).unwrap_or_default();
        let key = match &self.task {
            Task::Use { info, other, .. } => {
                let mut keys = encoded(info);
                keys.extend(other.iter().flat_map(|other| encoded(&other.key.info)));
                keys
            }
            Task::Derive { base: key, .. }
            | Task::Copy { source: key, .. }
            | Task::Unwrap { kek: key, .. } => encoded(&key.info),
            Task::UnwrapBlock(task) => encoded(&task.kek.info),
            Task::ImportComponent(given) => api::encode(&given.component).unwrap_or_default(),
            Task::Combine(task) => task.components.iter().flat_map(|key| encoded(&key.info)).collect(),
            Task::Rotate { current, .. } => {
                // Which version is current is settled afterwards.
                let properties = NewKey { expires: None, ..current.identity().properties };
                api::encode(&properties).unwrap_or_default()
            }
            Task::Generate { .. }
            | Task::Import { .. }
            | Task::ImportSealed(_)
            | Task::Delete { .. }
            | Task::Retire { .. }
            | Task::Configure { .. }
            | Task::Describe { .. } => Vec::new(),
        };
        blake3::derive_key("polyclave 2026 properties of a key", &key)
    }
}

/// A plan in the making.
struct Draft<'a> {
    service: &'a Service,
    client: &'a Client,
    asked: &'a [Permission],
    /// The name of the key that the request makes or changes.
    taken: Option<Taken>,
}

impl Draft<'_> {
    fn task(&mut self, operation: &Operation) -> Result<Task, Refusal> {
        match operation {
            Operation::Generate(operations::Generate { new }) => {
                let cipher = self.new_key(new)?;
                Ok(Task::Generate { cipher, new: new.clone() })
            }
            Operation::Import(operations::Import { new }) => {
                let cipher = self.new_key(new)?;
                Ok(Task::Import { cipher, new: new.clone() })
            }
            Operation::ImportComponent(operations::ImportComponent { new, number, of, expected }) => {
                self.import_component((new, *number, *of), expected.as_ref())
            }
            Operation::ImportSealed(sealed) => self.import_sealed(sealed),
            Operation::Combine(operations::Combine { key, expected, parity }) => {
                self.combine(key, expected.as_ref(), *parity)
            }
            Operation::Delete(operations::Delete { key, version }) => self.delete(key, *version),
            Operation::Rotate(operations::Rotate { key }) => self.rotate(key),
            Operation::Retire(operations::Retire { key, version, state }) => {
                self.retire(key, *version, *state)
            }
            Operation::Configure(operations::Configure {
                key,
                least_version,
                deletable,
                withdraw_wrappable,
                withdraw_usage,
            }) => self.configure(key, *least_version, *deletable, *withdraw_wrappable, withdraw_usage),
            Operation::Describe(operations::DescribeKey { key, id, revision, label, attributes }) => {
                self.describe((key, *id), *revision, label, attributes)
            }
            Operation::Use(operations::UseKey { key, id, how }) => self.use_key(key, id.as_ref(), how),
            Operation::Copy(operations::CopyKey { key, id, new }) => self.copy(key, id, new),
            Operation::Derive(operations::Derive { base, new, how }) => self.derive(base, new, how),
            Operation::Wrap(operations::Wrap { wrapping, key, how }) => self.wrap(wrapping, key, *how),
            Operation::Rewrap(operations::Rewrap { key, old, id, what }) => {
                self.rewrap((old, id.as_ref()), key, what)
            }
            Operation::WrapBlock(operations::WrapBlock { wrapping, key, header }) => {
                self.wrap_block(wrapping, key, header)
            }
            Operation::UnwrapBlock(operations::UnwrapBlock { unwrapping, block, new }) => {
                self.unwrap_block(unwrapping, block, new)
            }
            Operation::Kdf(operations::Kdf { key, how, bytes }) => self.kdf(key, how, *bytes),
            Operation::Unwrap(operations::Unwrap { unwrapping, wrapped, how, new }) => {
                self.unwrap(unwrapping, wrapped, *how, new)
            }
            Operation::Status
            | Operation::List(_)
            | Operation::Show(_)
            | Operation::Report
            | Operation::Random(_) => {
                Err(Refusal::new(Reason::Malformed, "each node answers this operation alone"))
            }
        }
    }

    /// Who asks which node.
    fn by(&self) -> (&Service, &Client) {
        (self.service, self.client)
    }
}

/// Identifies a client's request among the nodes.
pub(crate) fn ticket(client: &Client, id: &[u8; 16]) -> Ticket {
    let mut ticket = blake3::Hasher::new_derive_key("polyclave 2026 ticket of a request");
    ticket.update(id).update(&client.certificate).finalize().into()
}
