//! Objects: keys of the nodes are listed, made, imported, changed, deleted, wrapped, unwrapped and derived.

use std::sync::Arc;

use cryptoki_sys::*;
use polyclave_client::Withdrawal;
use polyclave_transport::wire::{Derivation, KeyInfo, NewKey, Usage, Wrapping};

use crate::attributes::Object;
use crate::mechanism::{KdfPart, Mechanism, Parameter, entry_for, family_of, key_bytes};
use crate::rv::{Doing, Result, Rv, because, of_client};
use crate::session::Session;
use crate::stored::Stored;
use crate::template::{Described, Making, Template, USES, date, name_for, readable};
use crate::token::Token;

/// Names of session objects: `prefix` + this + hexadecimal digits.
const OF_SESSION: &str = "p11-session-";

/// The handles of all objects that fit a template. The nodes are asked which keys there are. Without a login there are none.
pub(crate) fn find(session: &Session, template: &Template) -> Result<Vec<CK_OBJECT_HANDLE>> {
    let token = &session.token;
    let Ok(client) = token.client() else { return Ok(Vec::new()) };
    let listing = token.ask(&client, Doing::Managing, || client.keys())?;
    let mut listed = listing.keys;
    // If nodes list a version differently, as most of them do: a change was interrupted.
    let place = |info: &KeyInfo| (info.properties.name.clone(), std::cmp::Reverse(info.version));
    listed.sort_by_cached_key(|key| (place(&key.info), std::cmp::Reverse(key.at.len())));
    listed.dedup_by_key(|key| place(&key.info));
    listed.sort_by_key(|key| std::cmp::Reverse((key.info.made, key.info.version)));
    let objects = listed.into_iter().filter_map(|key| Object::of(key.info, &token.settings.prefix));
    let fits = |object: &Object| {
        template.0.iter().all(|(kind, wanted)| object.value(*kind).is_ok_and(|value| value == **wanted))
    };
    let mut found = Vec::new();
    for object in objects {
        let handle = token.handle_of(object);
        if token.object(handle).is_some_and(|object| fits(&object)) {
            found.push(handle);
        }
    }
    Ok(found)
}

/// Generates a key.
pub(crate) fn generate(
    session: &Session,
    mechanism: &Mechanism,
    template: &Template,
) -> Result<CK_OBJECT_HANDLE> {
    entry_for(mechanism.kind, CKF_GENERATE)?;
    let fixed = match mechanism.kind {
        CKM_DES2_KEY_GEN => Some("3des-ede2"),
        CKM_DES3_KEY_GEN => Some("3des-ede3"),
        _ => Some(match template.number(CKA_VALUE_LEN)? {
            Some(16) => "aes-128",
            Some(24) => "aes-192",
            Some(32) => "aes-256",
            Some(other) => return Err(because(CKR_KEY_SIZE_RANGE, format!("no AES key has {other} bytes"))),
            None => return Err(because(CKR_TEMPLATE_INCOMPLETE, "CKA_VALUE_LEN is missing")),
        }),
    };
    let due = match mechanism.kind {
        CKM_DES2_KEY_GEN => CKK_DES2,
        CKM_DES3_KEY_GEN => CKK_DES3,
        _ => CKK_AES,
    };
    if template.get(CKA_VALUE).is_some() || template.number(CKA_KEY_TYPE)?.is_some_and(|kind| kind != due) {
        return Err(Rv(CKR_TEMPLATE_INCONSISTENT));
    }
    make(session, template.describe(&session.token.settings, Making::Generated, fixed)?, |client, new| {
        client.generate(new)
    })
}

/// Imports a key.
pub(crate) fn create(session: &Session, template: &Template) -> Result<CK_OBJECT_HANDLE> {
    let described = template.describe(&session.token.settings, Making::Imported, None)?;
    let value = template.get(CKA_VALUE).ok_or(Rv(CKR_TEMPLATE_INCOMPLETE))?;
    if value.len() != key_bytes(&described.new.cipher) {
        return Err(Rv(CKR_ATTRIBUTE_VALUE_INVALID));
    }
    make(session, described, |client, new| client.import(new, value))
}

/// Makes a key under a free name.
fn make(
    session: &Session,
    described: Described,
    work: impl Fn(&polyclave_client::Client, NewKey) -> polyclave_client::Result<KeyInfo>,
) -> Result<CK_OBJECT_HANDLE> {
    if !described.is_session {
        session.refuse_read_only()?;
    }
    make_as(session, described, Doing::Managing, work)
}

fn make_as(
    session: &Session,
    described: Described,
    doing: Doing,
    work: impl Fn(&polyclave_client::Client, NewKey) -> polyclave_client::Result<KeyInfo>,
) -> Result<CK_OBJECT_HANDLE> {
    let token = &session.token;
    let client = token.client()?;
    let Described { mut new, stored, is_session } = described;
    let prefix = &token.settings.prefix;
    new.name = match is_session {
        true => name_for(&format!("{prefix}{OF_SESSION}"), b"", |_| false)?,
        // Nobody can say a name is free until the nodes take it: two programs may make a key at once, and one is told so.
        false => name_for(prefix, &stored.label, |name| client.info(name).is_ok())?,
    };
    let info = token.ask(&client, doing, || work(&client, new.clone()))?;
    let session = is_session.then_some(session.handle);
    Ok(token.handle_of(Object { info, stored, session }))
}

/// Deletes a key. The current version goes with all others, or not at all.
pub(crate) fn destroy(session: &Session, handle: CK_OBJECT_HANDLE) -> Result<()> {
    let object = session.object(handle)?;
    if object.session.is_none() {
        session.refuse_read_only()?;
    }
    let (token, client, name) = (&session.token, session.token.client()?, &object.info.properties.name);
    if !object.info.deletable {
        return Err(because(CKR_ACTION_PROHIBITED, format!("the key {name} is not deletable")));
    }
    let versions = token.ask(&client, Doing::Using, || client.versions(name));
    let versions = versions
        .map_err(|rv| if rv == Rv(CKR_KEY_HANDLE_INVALID) { Rv(CKR_OBJECT_HANDLE_INVALID) } else { rv })?;
    let is_current = versions.iter().all(|other| other.version <= object.info.version);
    let has_others = versions.iter().any(|other| other.version != object.info.version);
    if is_current && has_others {
        let why = format!("{name} has older versions; delete them first");
        return Err(because(CKR_ACTION_PROHIBITED, why));
    }
    token.ask(&client, Doing::Managing, || match is_current {
        true => client.delete(name),
        false => client.delete_version(name, object.info.version),
    })?;
    token.forget(handle);
    Ok(())
}

/// Deletes the session objects of a session that has ended, or of all sessions of a token. What cannot be deleted now ends by itself within a
/// day, and the log says so.
pub(crate) fn end_session_objects(token: &Token, session: Option<CK_SESSION_HANDLE>) {
    for (handle, object) in token.session_objects(session) {
        let name = &object.info.properties.name;
        let deleted =
            token.client().and_then(|client| client.delete(name).map_err(|e| of_client(&e, Doing::Managing)));
        if deleted.is_err() {
            crate::log::line(&format!(
                "the session key {name} could not be deleted; it ends by itself within a day"
            ));
        }
        token.forget(handle);
    }
}

/// Changes label, id and dates of a key, and turns uses off.
pub(crate) fn set(session: &Session, handle: CK_OBJECT_HANDLE, template: &Template) -> Result<()> {
    let object = session.object(handle)?;
    if object.session.is_none() {
        session.refuse_read_only()?;
    }
    if object.stored.is_fixed {
        return Err(Rv(CKR_ACTION_PROHIBITED));
    }
    let (mut stored, mut withdrawn) = (object.stored.clone(), Withdrawal::default());
    for (kind, value) in &template.0 {
        match *kind {
            CKA_LABEL => stored.label = value.to_vec(),
            CKA_ID => stored.id = value.to_vec(),
            CKA_START_DATE => stored.start_date = date(Some(value))?,
            CKA_END_DATE => stored.end_date = date(Some(value))?,
            CKA_ENCRYPT | CKA_DECRYPT | CKA_SIGN | CKA_VERIFY | CKA_WRAP | CKA_UNWRAP | CKA_DERIVE => {
                match (template.flag(*kind)?, object.is_for(*kind)) {
                    (Some(false), true) => {
                        stored.off.push(*kind);
                        // Nodes know no difference between signing and verifying.
                        let usage = USES.iter().find(|(of, _)| of == kind).map(|(_, usage)| *usage);
                        let is_over = |usage: &Usage| {
                            USES.iter().all(|(kind, of)| {
                                of != usage || stored.off.contains(kind) || !object.is_for(*kind)
                            })
                        };
                        withdrawn.usage.extend(usage.filter(is_over));
                    }
                    (Some(true), false) => {
                        return Err(because(CKR_ATTRIBUTE_READ_ONLY, "a use that is off stays off"));
                    }
                    _ => {}
                }
            }
            CKA_EXTRACTABLE if template.flag(CKA_EXTRACTABLE)? == Some(false) => {
                withdrawn.wrappable = object.info.properties.wrappable;
            }
            kind => match object.value(kind) {
                Ok(same) if same == **value => {}
                Ok(_) | Err(Rv(CKR_ATTRIBUTE_SENSITIVE)) => return Err(Rv(CKR_ATTRIBUTE_READ_ONLY)),
                Err(rv) => return Err(rv),
            },
        }
    }
    withdrawn.usage.sort();
    describe(session, &object, stored, &withdrawn)
}

/// Writes the attributes of a key at the nodes, and withdraws uses there: of all its versions.
fn describe(session: &Session, object: &Arc<Object>, stored: Stored, withdrawn: &Withdrawal) -> Result<()> {
    let (token, client) = (&session.token, session.token.client()?);
    let too_long =
        || because(CKR_ATTRIBUTE_VALUE_INVALID, "the attributes of the key are longer than nodes keep");
    let attributes = stored.to_bytes().ok_or_else(too_long)?;
    let (name, id) = (&object.info.properties.name, object.info.id);
    let versions = token.ask(&client, Doing::Using, || client.versions(name))?;
    let shown = versions.into_iter().filter(|other| other.id == id).max_by_key(|other| other.revision);
    let mut info = shown.ok_or(Rv(CKR_OBJECT_HANDLE_INVALID))?;
    if *withdrawn != Withdrawal::default() {
        let as_now = (info.least_version, info.deletable);
        token.ask(&client, Doing::Managing, || client.withdraw(name, as_now, withdrawn))?;
        info.properties.usage.retain(|usage| !withdrawn.usage.contains(usage));
        info.properties.wrappable &= !withdrawn.wrappable;
    }
    let revision = info.revision;
    let label = readable(&stored.label);
    token.ask(&client, Doing::Managing, || client.describe((name, id), revision, &label, &attributes))?;
    (info.properties.label, info.properties.attributes) = (label, attributes);
    token.handle_of(Object { info, stored, session: object.session });
    Ok(())
}

/// The name of a key, if the object is its current version: nodes wrap, unwrap and derive with no other.
fn current(session: &Session, object: &Object) -> Result<String> {
    let (token, client, name) = (&session.token, session.token.client()?, &object.info.properties.name);
    let info = token.ask(&client, Doing::Using, || client.info(name))?;
    if info.id != object.info.id {
        let why = format!("{name} was rotated; nodes wrap, unwrap and derive with its current version");
        return Err(because(CKR_KEY_FUNCTION_NOT_PERMITTED, why));
    }
    Ok(name.clone())
}

/// A key, wrapped under another.
pub(crate) fn wrap(
    session: &Session,
    mechanism: &Mechanism,
    wrapping: CK_OBJECT_HANDLE,
    key: CK_OBJECT_HANDLE,
) -> Result<Wrap> {
    let how = wrapping_of(mechanism, CKF_WRAP)?;
    let kek = session.token.object(wrapping).ok_or(Rv(CKR_WRAPPING_KEY_HANDLE_INVALID))?;
    let key = session.key(key)?;
    if family_of(&kek.info.properties.cipher) != Some(crate::mechanism::Family::Aes) {
        return Err(Rv(CKR_WRAPPING_KEY_TYPE_INCONSISTENT));
    }
    if !kek.is_for(CKA_WRAP) {
        return Err(Rv(CKR_KEY_FUNCTION_NOT_PERMITTED));
    }
    if !key.info.properties.wrappable {
        return Err(because(
            CKR_KEY_UNEXTRACTABLE,
            "the key was made to stay at the nodes (CKA_EXTRACTABLE)",
        ));
    }
    Ok(Wrap { kek, key, how })
}

/// What is wrapped under what.
pub(crate) struct Wrap {
    kek: Arc<Object>,
    key: Arc<Object>,
    how: Wrapping,
}

impl Wrap {
    /// Bytes of the wrapped key.
    pub(crate) fn bytes(&self) -> usize {
        key_bytes(&self.key.info.properties.cipher).next_multiple_of(8) + 8
    }

    pub(crate) fn run(&self, session: &Session) -> Result<Vec<u8>> {
        let client = session.token.client()?;
        let (kek, key) = (current(session, &self.kek)?, current(session, &self.key)?);
        session.token.ask(&client, Doing::Using, || client.wrap(&kek, &key, self.how))
    }
}

/// Unwraps a key into a key of the nodes.
pub(crate) fn unwrap(
    session: &Session,
    mechanism: &Mechanism,
    unwrapping: CK_OBJECT_HANDLE,
    wrapped: &[u8],
    template: &Template,
) -> Result<CK_OBJECT_HANDLE> {
    let how = wrapping_of(mechanism, CKF_UNWRAP)?;
    session.token.client()?;
    let kek = session.token.object(unwrapping).ok_or(Rv(CKR_UNWRAPPING_KEY_HANDLE_INVALID))?;
    if family_of(&kek.info.properties.cipher) != Some(crate::mechanism::Family::Aes) {
        return Err(Rv(CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT));
    }
    if !kek.is_for(CKA_UNWRAP) {
        return Err(Rv(CKR_KEY_FUNCTION_NOT_PERMITTED));
    }
    if wrapped.len() < 16 || wrapped.len() > 256 || !wrapped.len().is_multiple_of(8) {
        return Err(Rv(CKR_WRAPPED_KEY_LEN_RANGE));
    }
    if template.get(CKA_VALUE).is_some() {
        return Err(Rv(CKR_TEMPLATE_INCONSISTENT));
    }
    // Without a length the wrapped key's own is taken: all keys here are whole halves of blocks.
    let fixed = match (template.number(CKA_KEY_TYPE)?, template.number(CKA_VALUE_LEN)?) {
        (Some(CKK_AES) | None, None) => Some(match wrapped.len() - 8 {
            16 => "aes-128",
            24 => "aes-192",
            32 => "aes-256",
            _ => return Err(Rv(CKR_WRAPPED_KEY_LEN_RANGE)),
        }),
        _ => None,
    };
    let described = template.describe(&session.token.settings, Making::Unwrapped, fixed)?;
    if key_bytes(&described.new.cipher) + 8 != wrapped.len() {
        return Err(Rv(CKR_WRAPPED_KEY_LEN_RANGE));
    }
    if !described.is_session {
        session.refuse_read_only()?;
    }
    let kek = current(session, &kek)?;
    make_as(session, described, Doing::Unwrapping, |client, new| client.unwrap(&kek, wrapped, how, new))
}

fn wrapping_of(mechanism: &Mechanism, flag: CK_FLAGS) -> Result<Wrapping> {
    entry_for(mechanism.kind, flag)?;
    match mechanism.kind {
        CKM_AES_KEY_WRAP => Ok(Wrapping::Kw),
        CKM_AES_KEY_WRAP_KWP => Ok(Wrapping::Kwp),
        _ => Err(Rv(CKR_MECHANISM_INVALID)),
    }
}

/// Derives a key from another.
pub(crate) fn derive(
    session: &Session,
    mechanism: &Mechanism,
    base: CK_OBJECT_HANDLE,
    template: &Template,
) -> Result<CK_OBJECT_HANDLE> {
    let entry = entry_for(mechanism.kind, CKF_DERIVE)?;
    let base = session.key(base)?;
    if family_of(&base.info.properties.cipher) != Some(entry.family) {
        return Err(Rv(CKR_KEY_TYPE_INCONSISTENT));
    }
    if !base.is_for(CKA_DERIVE) {
        return Err(Rv(CKR_KEY_FUNCTION_NOT_PERMITTED));
    }
    if template.get(CKA_VALUE).is_some() {
        return Err(Rv(CKR_TEMPLATE_INCONSISTENT));
    }
    let described = template.describe(&session.token.settings, Making::Derived, None)?;
    let bits = 8 * key_bytes(&described.new.cipher) as u64;
    let how = match &mechanism.parameter {
        Parameter::Data(data) => Derivation::EcbData { data: data.clone() },
        Parameter::Chained { initial, data } => {
            Derivation::CbcData { iv: initial.clone(), data: data.clone() }
        }
        Parameter::CounterKdf { before, counter_bits, after } => Derivation::CmacCounter {
            before: joined(before, bits),
            counter_bits: *counter_bits,
            after: joined(after, bits),
        },
        _ => return Err(Rv(CKR_MECHANISM_PARAM_INVALID)),
    };
    if let Derivation::EcbData { data } | Derivation::CbcData { data, .. } = &how
        && ((data.len() as u64) * 8 < bits
            || !data.len().is_multiple_of(crate::mechanism::block_of(&base.info.properties.cipher)))
    {
        return Err(because(
            CKR_MECHANISM_PARAM_INVALID,
            "the data are whole blocks, at least as long as the derived key",
        ));
    }
    let base = current(session, &base)?;
    make(session, described, |client, new| client.derive(&base, new, how.clone()))
}

fn joined(parts: &[KdfPart], bits: u64) -> Vec<u8> {
    let bytes = |part: &KdfPart| match part {
        KdfPart::Bytes(bytes) => bytes.clone(),
        KdfPart::Length { bytes, little_endian: false } => bits.to_be_bytes()[8 - bytes..].to_vec(),
        KdfPart::Length { bytes, little_endian: true } => bits.to_le_bytes()[..*bytes].to_vec(),
    };
    parts.iter().flat_map(bytes).collect()
}
