//! What a node decides alone about a request: whether the client may do this, with which key, and in which mode. The node uses nothing that
//! the client said before the nodes have compared it ([`begin`](super::begin)).

use std::sync::Arc;

use polyclave_cipher::{Cipher, key_wrap};
use polyclave_config::Asked;
use polyclave_protocol::catalog;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::service::ServiceConfig;
use polyclave_transport::wire::key_block::KeyBlock;
use polyclave_transport::wire::{
    self, Derivation, KeyInfo, NewKey, Operation, Reason, Refusal, Request, Right, Usage, Use, Wrapping,
    key_of_component, why_apart,
};

use crate::clients::approvals::Approved;
use crate::clients::rules::Client;
use crate::computation::key_circuits::padding;
use crate::computation::modes::envelope;
use crate::computation::modes::kdf::Kdf;
use crate::computation::modes::key_block::WrapBlock;
use crate::computation::modes::wrap::Wrap;
use crate::computation::modes::{Mode, machine, needs};
use crate::error::refuse_damaged;
use crate::keys::derive;
use crate::keys::key_block;
use crate::keys::make::check_new_key;
use crate::keys::names::Taken;
use crate::keys::unwrap::unauthentic;
use crate::requests::asked::asked;
use crate::requests::components::{self, Combination, GivenComponent};
use crate::requests::pending::Ticket;
use crate::requests::service::Service;
use crate::store::StoredKey;

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
    pub(super) asked: Vec<Asked>,
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
    },
    /// With the key that is wrapped, if one is.
    Use {
        info: KeyInfo,
        key: Arc<StoredKey>,
        mode: Box<dyn Mode>,
        wrapped: Option<Arc<StoredKey>>,
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
    Combine(Box<Combination>),
}

/// A key block that becomes a key.
pub(crate) struct UnwrappedBlock {
    pub(crate) kek: Arc<StoredKey>,
    pub(crate) new: NewKey,
    pub(crate) cipher: Cipher,
    pub(crate) block: KeyBlock,
    pub(crate) blocks: u64,
}

fn key_refusal(told: String) -> Refusal {
    Refusal::new(Reason::Key, told)
}

fn malformed(told: String) -> Refusal {
    Refusal::new(Reason::Malformed, told)
}

impl Plan {
    /// Checks a request against this node's own policy, keys and limits. It asks no other node, and spends nothing except that a request that
    /// can be served counts against the limits of its rules.
    pub(crate) fn make(
        service: &Service,
        client: &Client,
        request: Request,
        bytes: &[u8],
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
        let needs_all = !request.operation.only_uses();
        let least = if needs_all { service.members.nodes } else { service.config.quorum() };
        if serving.len() < least {
            let told =
                format!("the request names {} nodes to serve it, and needs at least {least}", serving.len());
            return Err(Refusal::new(Reason::Unavailable, told));
        }
        let asked = components::asked_of_giver(service, client, asked(&request.operation))?;
        asked.iter().try_for_each(|asked| service.rules.allow(client, asked))?;
        let desk = service.approvals();
        let approved = desk.check(client, &request, &asked, serving.len() == service.members.nodes)?;
        let mut taken = None;
        let task = match &request.operation {
            Operation::Generate(new) => {
                let cipher = new_key(service, new, &mut taken)?;
                Task::Generate { cipher, new: new.clone() }
            }
            Operation::Import(new) => {
                let cipher = new_key(service, new, &mut taken)?;
                Task::Import { cipher, new: new.clone() }
            }
            Operation::ImportComponent { new, number, of, expected } => {
                let which = (new, *number, *of);
                let given = components::give(service, client, which, expected.as_ref(), &mut taken)?;
                Task::ImportComponent(Box::new(given))
            }
            Operation::Combine { key, expected, parity } => {
                let expected = (expected.as_ref(), *parity);
                let combination = components::combine(service, key, expected, &mut taken)?;
                Task::Combine(Box::new(combination))
            }
            Operation::Delete { key } => {
                taken = Some(service.keys.take_name(key)?);
                Task::Delete { key: key.clone() }
            }
            Operation::Use { key, id, how } => {
                let (wanted, right) = needs(how);
                let (info, stored) = service.keys.get(key)?;
                if id.is_some_and(|id| id != info.id) {
                    return Err(key_refusal(format!(
                        "this was made under another key that was named '{key}'"
                    )));
                }
                if !info.properties.modes.contains(&wanted) {
                    let modes: Vec<String> =
                        info.properties.modes.iter().map(wire::Mode::to_string).collect();
                    let told = format!("the key '{key}' was made for {}, not for {wanted}", modes.join(", "));
                    return Err(key_refusal(told));
                }
                refuse_other_usage(&info, right)?;
                refuse_undoing(&info, wanted, right)?;
                refuse_unchecked(service, &[wanted])?;
                if let Use::EnvelopeWrite(envelope) = how {
                    envelope::owns(envelope, &client.name)?;
                }
                let mode = machine(how, &service.library.cipher(&info.properties.cipher)?, info.id)?;
                Task::Use { info, key: stored, mode, wrapped: None }
            }
            Operation::Derive { base, new, how } => {
                let cipher = new_key(service, new, &mut taken)?;
                let base = key_for(service, Right::Derive, base)?;
                let of_base = service.library.cipher(&base.info.properties.cipher)?;
                let blocks = derive::blocks(how, &of_base, &cipher).map_err(key_refusal)?;
                Task::Derive { base, new: new.clone(), cipher, how: how.clone(), blocks }
            }
            Operation::Wrap { wrapping, key, how } => {
                let (kek, wrapped) = to_wrap(service, (wrapping, key))?;
                refuse_key_of_blocks(&kek.info)?;
                let cipher = service.library.cipher(&wrapped.info.properties.cipher)?;
                refuse_unfit(*how, &cipher)?;
                let mode = Box::new(Wrap::new(*how, wrapped.clone(), cipher));
                Task::Use { info: kek.info.clone(), key: kek, mode, wrapped: Some(wrapped) }
            }
            Operation::WrapBlock { wrapping, key, header } => {
                let (kek, wrapped) = to_wrap(service, (wrapping, key))?;
                let (of_kek, cipher) = (
                    service.library.cipher(&kek.info.properties.cipher)?,
                    service.library.cipher(&wrapped.info.properties.cipher)?,
                );
                let head = key_block::head(
                    header,
                    &kek.info.properties,
                    &wrapped.info.properties,
                    (&of_kek, &cipher),
                );
                let head = head.map_err(key_refusal)?;
                let mode = Box::new(WrapBlock::new(head, wrapped.clone(), cipher, &of_kek));
                Task::Use { info: kek.info.clone(), key: kek, mode, wrapped: Some(wrapped) }
            }
            Operation::UnwrapBlock { unwrapping, block, new } => {
                let cipher = new_key(service, new, &mut taken)?;
                let kek = key_for(service, Right::Unwrap, unwrapping)?;
                let of_kek = service.library.cipher(&kek.info.properties.cipher)?;
                let block = KeyBlock::parse(block).map_err(malformed)?;
                key_block::may_become(&block, &kek.info.properties, new, &cipher).map_err(key_refusal)?;
                let blocks = key_block::blocks(&of_kek, block.head.len(), block.encrypted.len());
                let task = UnwrappedBlock { kek, new: new.clone(), cipher, block, blocks };
                Task::UnwrapBlock(Box::new(task))
            }
            Operation::Kdf { key, how, bytes } => {
                let stored = key_for(service, Right::Kdf, key)?;
                let cipher = service.library.cipher(&stored.info.properties.cipher)?;
                let mode = Box::new(Kdf::new(how, *bytes, cipher.block_bytes).map_err(key_refusal)?);
                Task::Use { info: stored.info.clone(), key: stored, mode, wrapped: None }
            }
            Operation::Unwrap { unwrapping, wrapped, how, new } => {
                let cipher = new_key(service, new, &mut taken)?;
                let kek = key_for(service, Right::Unwrap, unwrapping)?;
                refuse_key_of_blocks(&kek.info)?;
                refuse_unfit(*how, &cipher)?;
                if wrapped.len() != key_wrap::wrapped_bytes(cipher.key_bytes) {
                    return Err(unauthentic());
                }
                let blocks = key_wrap::blocks(padding(*how), cipher.key_bytes);
                Task::Unwrap { kek, new: new.clone(), cipher, wrapped: wrapped.clone(), how: *how, blocks }
            }
            Operation::Status
            | Operation::List { .. }
            | Operation::Show { .. }
            | Operation::Random { .. } => {
                return Err(Refusal::new(Reason::Malformed, "each node answers this operation alone"));
            }
        };
        let certificate = &client.certificate;
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 request of a client");
        hasher.update(&(certificate.len() as u64).to_le_bytes()).update(certificate).update(bytes);
        let (ticket, digest) = (ticket(client, &request.id), hasher.finalize().into());
        asked.iter().try_for_each(|asked| service.rules.charge(client, asked, [1, 0]))?;
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
        let encoded = |info: &KeyInfo| wire::encode(info).unwrap_or_default();
        let key = match &self.task {
            Task::Use { info, wrapped, .. } => {
                let mut keys = encoded(info);
                keys.extend(wrapped.iter().flat_map(|wrapped| encoded(&wrapped.info)));
                keys
            }
            Task::Derive { base: key, .. } | Task::Unwrap { kek: key, .. } => encoded(&key.info),
            Task::UnwrapBlock(task) => encoded(&task.kek.info),
            Task::ImportComponent(given) => wire::encode(&given.component).unwrap_or_default(),
            Task::Combine(task) => task.components.iter().flat_map(|key| encoded(&key.info)).collect(),
            Task::Generate { .. } | Task::Import { .. } | Task::Delete { .. } => Vec::new(),
        };
        blake3::derive_key("polyclave 2026 properties of a key", &key)
    }
}

/// A key that is for such a use.
fn key_for(service: &Service, right: Right, key: &str) -> Result<Arc<StoredKey>, Refusal> {
    let (info, stored) = service.keys.get(key)?;
    refuse_other_usage(&info, right)?;
    Ok(stored)
}

/// A key that wraps, and a key that may be wrapped under it.
fn to_wrap(
    service: &Service,
    (wrapping, key): (&str, &str),
) -> Result<(Arc<StoredKey>, Arc<StoredKey>), Refusal> {
    let kek = key_for(service, Right::Wrap, wrapping)?;
    let (info, wrapped) = service.keys.get(key)?;
    if !info.properties.wrappable {
        return Err(key_refusal(format!(
            "the key '{key}' never leaves the nodes: it was not made wrappable"
        )));
    }
    if info.id == kek.info.id {
        return Err(key_refusal(format!("the key '{key}' cannot wrap itself")));
    }
    Ok((kek, wrapped))
}

/// A key that protects key blocks does nothing else: otherwise what a block says about its key could be left out.
fn refuse_key_of_blocks(kek: &KeyInfo) -> Result<(), Refusal> {
    match kek.properties.modes.contains(&wire::Mode::Tr31) {
        true => {
            Err(key_refusal(format!("the key '{}' was made for key blocks only (tr31)", kek.properties.name)))
        }
        false => Ok(()),
    }
}

/// Refuses to wrap a key of a cipher in a way that does not take it.
fn refuse_unfit(how: Wrapping, cipher: &Cipher) -> Result<(), Refusal> {
    if key_wrap::takes(padding(how), cipher.key_bytes) {
        return Ok(());
    }
    let (bytes, name) = (cipher.key_bytes, &cipher.name);
    Err(key_refusal(format!(
        "kw wraps keys of 16 bytes and more, in multiples of 8; a key of {name} has {bytes}: take kwp"
    )))
}

/// Refuses to use a key for what it was not made for.
fn refuse_other_usage(info: &KeyInfo, right: Right) -> Result<(), Refusal> {
    let (name, usage) = (&info.properties.name, &info.properties.usage);
    match right.usage() {
        Some(wanted) if !usage.contains(&wanted) => {
            let usage: Vec<String> = usage.iter().map(Usage::to_string).collect();
            Err(key_refusal(format!(
                "the key '{name}' was made for the usage {}, not {wanted}",
                usage.join(", ")
            )))
        }
        _ => Ok(()),
    }
}

/// For keys made before it was refused to allow CBC together with a mode that undoes it. Nothing more is encrypted under them in CBC; what
/// was encrypted can be decrypted.
fn refuse_undoing(info: &KeyInfo, wanted: wire::Mode, right: Right) -> Result<(), Refusal> {
    if (wanted, right) != (wire::Mode::Cbc, Right::Encrypt) {
        return Ok(());
    }
    let Some(why) = why_apart(&info.properties.modes) else { return Ok(()) };
    let name = &info.properties.name;
    Err(key_refusal(format!(
        "the key '{name}' was made before this was refused: {why}. What there is can be decrypted"
    )))
}

/// Refuses `envelope` under a protocol whose outputs are not checked.
pub(super) fn refuse_unchecked(service: &Service, modes: &[wire::Mode]) -> Result<(), Refusal> {
    if !modes.contains(&wire::Mode::Envelope) || service.config.verifies() {
        return Ok(());
    }
    let checked: Vec<&str> = catalog::serving()
        .filter(|protocol| protocol.adversary != Adversary::Passive)
        .map(|protocol| protocol.name)
        .collect();
    Err(key_refusal(format!(
        "there are no keys for envelope under {}: its outputs are not checked, and with a wrong key a file would be lost. Take a \
         cluster under {}; or a key for gcm, with which the nodes encrypt the data themselves",
        service.config.name(),
        checked.join(", ")
    )))
}

/// Identifies a client's request among the nodes.
pub(crate) fn ticket(client: &Client, id: &[u8; 16]) -> Ticket {
    let mut ticket = blake3::Hasher::new_derive_key("polyclave 2026 ticket of a request");
    ticket.update(id).update(&client.certificate).finalize().into()
}

fn new_key(service: &Service, new: &NewKey, taken: &mut Option<Taken>) -> Result<Cipher, Refusal> {
    if key_of_component(&new.name).is_some() {
        let told = format!("'{}' is how a component of a key is called; choose another name", new.name);
        return Err(key_refusal(told));
    }
    let cipher = service.library.cipher(&new.cipher)?;
    check_new_key(new, &cipher).map_err(key_refusal)?;
    refuse_unchecked(service, &new.modes)?;
    *taken = Some(service.keys.take_name(&new.name)?);
    if service.keys.has(&new.name)? {
        return Err(key_refusal(format!(
            "there is a key '{}' already; choose another name or delete it",
            new.name
        )));
    }
    service.keys.refuse_too_many()?;
    Ok(cipher)
}
