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
    self, Derivation, KeyInfo, NewKey, Operation, Reason, Refusal, Request, Rewrapped, Right, Usage, Use,
    VersionState, Wrapping, key_of_component, why_apart,
};

use crate::clients::approvals::Approved;
use crate::clients::rules::Client;
use crate::computation::key_circuits::padding;
use crate::computation::modes::envelope;
use crate::computation::modes::kdf::Kdf;
use crate::computation::modes::key_block::WrapBlock;
use crate::computation::modes::rewrap::Rewrap;
use crate::computation::modes::wrap::Wrap;
use crate::computation::modes::{Mode, machine, needs};
use crate::error::refuse_damaged;
use crate::keys::derive;
use crate::keys::make::{check_description, check_new_key};
use crate::keys::names::Taken;
use crate::keys::states::{refuse_retired, refuse_return};
use crate::keys::unwrap::unauthentic;
use crate::keys::{key_block, key_copy};
use crate::operator::clock::now;
use crate::requests::asked::asked;
use crate::requests::components::{self, Combination, GivenComponent};
use crate::requests::conversation::Description;
use crate::requests::pending::Ticket;
use crate::requests::sealed::{self, SealedKey};
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
                let cipher = new_key((service, client), new, &mut taken)?;
                Task::Generate { cipher, new: new.clone() }
            }
            Operation::Import(new) => {
                let cipher = new_key((service, client), new, &mut taken)?;
                Task::Import { cipher, new: new.clone() }
            }
            Operation::ImportComponent { new, number, of, expected } => {
                refuse_two_keys(new)?;
                let which = (new, *number, *of);
                let given = components::give(service, client, which, expected.as_ref(), &mut taken)?;
                Task::ImportComponent(Box::new(given))
            }
            Operation::ImportSealed(sealed) => {
                refuse_two_keys(&sealed.new)?;
                let cipher = new_key((service, client), &sealed.new, &mut taken)?;
                Task::ImportSealed(Box::new(sealed::open(service, sealed, cipher)?))
            }
            Operation::Combine { key, expected, parity } => {
                let expected = (expected.as_ref(), *parity);
                let combination = components::combine(service, key, expected, &mut taken)?;
                Task::Combine(Box::new(combination))
            }
            Operation::Delete { key, version } => {
                taken = Some(service.keys.take_name(key)?);
                refuse_deletion(service, key, *version)?;
                Task::Delete { key: key.clone(), version: *version }
            }
            Operation::Rotate { key } => {
                taken = Some(service.keys.take_name(key)?);
                let (current, _) = service.keys.get(key)?;
                service.library.cipher(&current.properties.cipher)?;
                if current.is_of_session() {
                    return Err(key_refusal(format!(
                        "the key '{key}' is a session key, which has one version"
                    )));
                }
                if current.version == u32::MAX {
                    return Err(key_refusal(format!(
                        "the key '{key}' has no more versions: make another key"
                    )));
                }
                service.keys.refuse_too_many()?;
                Task::Rotate { key: key.clone(), current }
            }
            Operation::Retire { key, version, state } => {
                taken = Some(service.keys.take_name(key)?);
                refuse_return(&service.keys.version(key, *version)?, *state)?;
                Task::Retire { key: key.clone(), version: *version, state: *state }
            }
            Operation::Configure { key, least_version, deletable, withdraw_wrappable, withdraw_usage } => {
                taken = Some(service.keys.take_name(key)?);
                let (current, _) = service.keys.get(key)?;
                if !(1..=current.version).contains(least_version) {
                    return Err(key_refusal(format!(
                        "the least version of the key '{key}' is 1 to {}, which is the current one",
                        current.version
                    )));
                }
                if current.properties.usage.iter().all(|usage| withdraw_usage.contains(usage)) {
                    return Err(key_refusal(format!(
                        "nothing would be left of the usage of the key '{key}': delete it instead"
                    )));
                }
                Task::Configure {
                    key: key.clone(),
                    least_version: *least_version,
                    deletable: *deletable,
                    withdraw_wrappable: *withdraw_wrappable,
                    withdraw_usage: withdraw_usage.clone(),
                }
            }
            Operation::Describe { key, id, revision, label, attributes } => {
                taken = Some(service.keys.take_name(key)?);
                check_description(label, attributes).map_err(key_refusal)?;
                let (info, _) = service.keys.with_id(key, *id)?;
                let (label, attributes) = (label.clone(), attributes.clone());
                let description = Description { id: *id, revision: *revision, label, attributes };
                description.refuse_stale(&info)?;
                Task::Describe { key: key.clone(), description }
            }
            Operation::Use { key, id, how } => {
                let (wanted, right) = needs(how);
                let (info, stored) = match id {
                    Some(id) => service.keys.with_id(key, *id)?,
                    None => service.keys.get(key)?,
                };
                if !info.properties.modes.contains(&wanted) {
                    let modes: Vec<String> =
                        info.properties.modes.iter().map(wire::Mode::to_string).collect();
                    let told = format!("the key '{key}' was made for {}, not for {wanted}", modes.join(", "));
                    return Err(key_refusal(told));
                }
                refuse_other_usage(&info, right)?;
                refuse_undoing(&info, wanted, right)?;
                refuse_state(service, client, &info, right)?;
                refuse_chosen_nonce(&info, how)?;
                refuse_unchecked(service, &[wanted])?;
                if let Use::EnvelopeWrite(envelope) = how {
                    envelope::owns(envelope, &client.name)?;
                }
                let mode = machine(how, &service.library.cipher(&info.properties.cipher)?, info.id)?;
                Task::Use { info, key: stored, mode, other: None }
            }
            Operation::Copy { key, id, new } => {
                new_key((service, client), new, &mut taken)?;
                let (info, source) = service.keys.with_id(key, *id)?;
                key_copy::may_be_made(&info, new).map_err(key_refusal)?;
                let rights = asked.iter().filter(|asked| asked.key == *key).map(|asked| asked.right);
                rights.into_iter().try_for_each(|right| refuse_state(service, client, &info, right))?;
                Task::Copy { source, new: new.clone() }
            }
            Operation::Derive { base, new, how } => {
                let cipher = new_key((service, client), new, &mut taken)?;
                refuse_two_keys(new)?;
                let base = key_for((service, client), Right::Derive, base)?;
                let of_base = service.library.cipher(&base.info.properties.cipher)?;
                let blocks = derive::blocks(how, &of_base, &cipher).map_err(key_refusal)?;
                Task::Derive { base, new: new.clone(), cipher, how: how.clone(), blocks }
            }
            Operation::Wrap { wrapping, key, how } => {
                let (kek, wrapped) = to_wrap((service, client), (wrapping, key))?;
                refuse_key_of_blocks(&kek.info)?;
                let cipher = service.library.cipher(&wrapped.info.properties.cipher)?;
                refuse_unfit(*how, &cipher)?;
                let mode = Box::new(Wrap::new(*how, wrapped.clone(), cipher));
                Task::Use {
                    info: kek.info.clone(),
                    key: kek,
                    mode,
                    other: Some(Other { key: wrapped, blocks: 0 }),
                }
            }
            Operation::Rewrap { key, old, id, what } => {
                let by = (service, client);
                let (rights, mode) = match what {
                    Rewrapped::Gcm { .. } | Rewrapped::Sealed { .. } => {
                        ([Right::Decrypt, Right::Encrypt], Some(wire::Mode::Gcm))
                    }
                    Rewrapped::Key { .. } => ([Right::Unwrap, Right::Wrap], None),
                };
                let old = match id {
                    Some(id) => service.keys.with_id(old, *id)?.1,
                    None => service.keys.get(old)?.1,
                };
                let new = service.keys.get(key)?.1;
                for (stored, right) in [(&old, rights[0]), (&new, rights[1])] {
                    refuse_to_rewrap(by, &stored.info, right, mode)?;
                }
                let rewrap = Rewrap::new(what, old.info.id, new.info.id)?;
                let other = Some(Other { key: old, blocks: rewrap.blocks() });
                Task::Use { info: new.info.clone(), key: new, mode: Box::new(rewrap), other }
            }
            Operation::WrapBlock { wrapping, key, header } => {
                let (kek, wrapped) = to_wrap((service, client), (wrapping, key))?;
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
                Task::Use {
                    info: kek.info.clone(),
                    key: kek,
                    mode,
                    other: Some(Other { key: wrapped, blocks: 0 }),
                }
            }
            Operation::UnwrapBlock { unwrapping, block, new } => {
                let cipher = new_key((service, client), new, &mut taken)?;
                refuse_two_keys(new)?;
                let kek = key_for((service, client), Right::Unwrap, unwrapping)?;
                let of_kek = service.library.cipher(&kek.info.properties.cipher)?;
                let block = KeyBlock::parse(block).map_err(malformed)?;
                key_block::may_become(&block, &kek.info.properties, new, &cipher).map_err(key_refusal)?;
                let blocks = key_block::blocks(&of_kek, block.head.len(), block.encrypted.len());
                let task = UnwrappedBlock { kek, new: new.clone(), cipher, block, blocks };
                Task::UnwrapBlock(Box::new(task))
            }
            Operation::Kdf { key, how, bytes } => {
                let stored = key_for((service, client), Right::Kdf, key)?;
                let cipher = service.library.cipher(&stored.info.properties.cipher)?;
                let mode = Box::new(Kdf::new(how, *bytes, cipher.block_bytes).map_err(key_refusal)?);
                Task::Use { info: stored.info.clone(), key: stored, mode, other: None }
            }
            Operation::Unwrap { unwrapping, wrapped, how, new } => {
                let cipher = new_key((service, client), new, &mut taken)?;
                refuse_two_keys(new)?;
                let kek = key_for((service, client), Right::Unwrap, unwrapping)?;
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
        let encoded = |info: &KeyInfo| wire::encode(&info.identity()).unwrap_or_default();
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
            Task::ImportComponent(given) => wire::encode(&given.component).unwrap_or_default(),
            Task::Combine(task) => task.components.iter().flat_map(|key| encoded(&key.info)).collect(),
            Task::Rotate { current, .. } => {
                // Which version is current is settled afterwards.
                let properties = NewKey { expires: None, ..current.identity().properties };
                wire::encode(&properties).unwrap_or_default()
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

/// A key that is for such a use.
fn key_for(
    (service, client): (&Service, &Client),
    right: Right,
    key: &str,
) -> Result<Arc<StoredKey>, Refusal> {
    let (info, stored) = service.keys.get(key)?;
    refuse_other_usage(&info, right)?;
    refuse_state(service, client, &info, right)?;
    Ok(stored)
}

/// Refuses to rewrap from or to a key that is not for it. The rights are those that each key's usage and state have to allow; the client needs
/// none of them.
fn refuse_to_rewrap(
    (service, client): (&Service, &Client),
    info: &KeyInfo,
    right: Right,
    mode: Option<wire::Mode>,
) -> Result<(), Refusal> {
    let KeyInfo { properties: NewKey { name, cipher, modes, .. }, component, .. } = info;
    if component.is_some() || !cipher.starts_with("aes-") {
        return Err(key_refusal(format!("'{name}' is no key of AES, and only such keys rewrap")));
    }
    match mode {
        Some(mode) if !modes.contains(&mode) => {
            return Err(key_refusal(format!("the key '{name}' was not made for {mode}")));
        }
        None => refuse_key_of_blocks(info)?,
        _ => {}
    }
    refuse_other_usage(info, right)?;
    refuse_state(service, client, info, right)
}

/// Refuses a use of a version that its state does not allow.
fn refuse_state(service: &Service, client: &Client, info: &KeyInfo, right: Right) -> Result<(), Refusal> {
    let configures = service.rules.allows(client, Right::Configure, &info.properties.name);
    refuse_retired(info, right, configures, now())
}

/// Refuses to delete a key that may not be deleted, and the current version alone: its number would be given again.
fn refuse_deletion(service: &Service, key: &str, version: Option<u32>) -> Result<(), Refusal> {
    let [current, _] = service.keys.newest(key)?;
    let Some(current) = current else { return Ok(()) };
    if !current.deletable {
        return Err(key_refusal(format!(
            "the key '{key}' may not be deleted; allow it first with `polyclave key configure {key} --deletable yes`"
        )));
    }
    match version {
        Some(version) if version == current.version => Err(key_refusal(format!(
            "version {version} is the current one of the key '{key}': make a new version first, or delete the whole key"
        ))),
        Some(version) if version > current.version => service.keys.version(key, version).map(drop),
        _ => Ok(()),
    }
}

/// A key that wraps, and a key that may be wrapped under it.
fn to_wrap(
    (service, client): (&Service, &Client),
    (wrapping, key): (&str, &str),
) -> Result<(Arc<StoredKey>, Arc<StoredKey>), Refusal> {
    let kek = key_for((service, client), Right::Wrap, wrapping)?;
    let (info, wrapped) = service.keys.get(key)?;
    // It leaves to be used elsewhere.
    refuse_state(service, client, &info, Right::Wrap)?;
    if !info.properties.wrappable {
        return Err(key_refusal(format!(
            "the key '{key}' never leaves the nodes: it was not made wrappable, or that was withdrawn"
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

/// Refuses to make a key for a mode that takes two from the bytes of one.
fn refuse_two_keys(new: &NewKey) -> Result<(), Refusal> {
    match new.parts() {
        1 => Ok(()),
        _ => Err(key_refusal(
            "a key for siv is two keys: it is generated or imported whole, not derived, unwrapped or combined".into(),
        )),
    }
}

/// Refuses to use a key for what it was not made for.
fn refuse_other_usage(info: &KeyInfo, right: Right) -> Result<(), Refusal> {
    let (name, usage) = (&info.properties.name, &info.properties.usage);
    match right.usage() {
        Some(wanted) if !usage.contains(&wanted) => {
            let usage: Vec<String> = usage.iter().map(Usage::to_string).collect();
            Err(key_refusal(format!("the key '{name}' is for the usage {}, not {wanted}", usage.join(", "))))
        }
        _ => Ok(()),
    }
}

/// Refuses a nonce of a client under a key that does not take one.
fn refuse_chosen_nonce(info: &KeyInfo, how: &Use) -> Result<(), Refusal> {
    let is_chosen = matches!(
        how,
        Use::GcmEncrypt { nonce: Some(_), .. }
            | Use::CcmEncrypt { nonce: Some(_), .. }
            | Use::CbcEncrypt { initial: Some(_), .. }
    );
    if !is_chosen || info.properties.caller_nonces {
        return Ok(());
    }
    let name = &info.properties.name;
    Err(key_refusal(format!(
        "the key '{name}' takes no nonces or initial blocks of its clients: it was not made with --caller-nonces"
    )))
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

fn new_key(
    (service, client): (&Service, &Client),
    new: &NewKey,
    taken: &mut Option<Taken>,
) -> Result<Cipher, Refusal> {
    if key_of_component(&new.name).is_some() {
        let told = format!("'{}' is how a component of a key is called; choose another name", new.name);
        return Err(key_refusal(told));
    }
    let cipher = service.library.cipher(&new.cipher)?;
    check_new_key(new, &cipher).map_err(key_refusal)?;
    refuse_unchecked(service, &new.modes)?;
    if new.expires.is_some_and(|expires| expires <= now()) {
        return Err(key_refusal("the key would have expired already, by this node's clock".into()));
    }
    *taken = Some(service.keys.take_name(&new.name)?);
    if service.keys.has(&new.name)? {
        return Err(key_refusal(format!(
            "there is a key '{}' already; choose another name or delete it",
            new.name
        )));
    }
    service.keys.refuse_too_many_of(new, &client.name)?;
    Ok(cipher)
}
