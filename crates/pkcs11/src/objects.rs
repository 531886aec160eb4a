//! Objects: keys of the nodes are listed, made, imported, changed, copied and deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use cryptoki_sys::*;
use polyclave_api::{KeyInfo, NewKey, Usage};
use polyclave_cipher::hmac::Sha2;
use polyclave_client::Withdrawal;

use crate::attributes::Object;
use crate::hmac;
use crate::mechanism::{Mechanism, entry_for, key_bytes};
use crate::rv::{Doing, Result, Rv, because, of_client};
use crate::session::Session;
use crate::stored::Stored;
use crate::template::{Described, Making, Template, USES, lifetime, name_for, readable, retain_used};
use crate::token::Token;

/// Names of session objects: `prefix` + this + hexadecimal digits.
const OF_SESSION: &str = "p11-session-";

/// The handles of all objects that fit a template. The nodes are asked which keys there are. Without a login
/// there are none.
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
    // Session objects of other processes are theirs alone.
    for object in objects.filter(|object| !object.info.is_of_session() || token.has_session_object(object)) {
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
    let due = match mechanism.kind {
        CKM_DES2_KEY_GEN => CKK_DES2,
        CKM_DES3_KEY_GEN => CKK_DES3,
        CKM_GENERIC_SECRET_KEY_GEN => CKK_GENERIC_SECRET,
        other => Sha2::ALL
            .into_iter()
            .find(|hash| hmac::generation(*hash) == other)
            .map_or(CKK_AES, hmac::key_type),
    };
    let incomplete = || because(CKR_TEMPLATE_INCOMPLETE, "CKA_VALUE_LEN is missing");
    let bytes = template.number(CKA_VALUE_LEN)?;
    let cipher = match due {
        CKK_DES2 => "3des-ede2",
        CKK_DES3 => "3des-ede3",
        CKK_AES => match bytes.ok_or_else(incomplete)? {
            16 => "aes-128",
            24 => "aes-192",
            32 => "aes-256",
            other => return Err(because(CKR_KEY_SIZE_RANGE, format!("no AES key has {other} bytes"))),
        },
        CKK_GENERIC_SECRET if bytes.is_none() => return Err(incomplete()),
        kind => hmac::cipher(kind, &template.mechanism_list()?.unwrap_or_default(), (false, bytes))?,
    };
    if template.get(CKA_VALUE).is_some() || template.number(CKA_KEY_TYPE)?.is_some_and(|kind| kind != due) {
        let why =
            "a key that is generated has no CKA_VALUE in its template, and the CKA_KEY_TYPE of its mechanism";
        return Err(because(CKR_TEMPLATE_INCONSISTENT, why));
    }
    let described = template.describe(&session.token.settings, Making::Generated, Some((cipher, due)))?;
    make(session, described, |client, new| client.generate(new))
}

/// Imports a key.
pub(crate) fn create(session: &Session, template: &Template) -> Result<CK_OBJECT_HANDLE> {
    // A program may ask by this whether a session reads only, with an object of any kind.
    if template.flag(CKA_TOKEN)? == Some(true) {
        session.refuse_read_only()?;
    }
    let described = template.describe(&session.token.settings, Making::Imported, None)?;
    let value =
        template.get(CKA_VALUE).ok_or_else(|| because(CKR_TEMPLATE_INCOMPLETE, "CKA_VALUE is missing"))?;
    let bytes = key_bytes(&described.new.cipher);
    // Keys for HMAC have other lengths, which the type of key has decided about.
    if described.stored.of_hmac.is_none() && value.len() != bytes {
        let why = format!("a key of this type has {bytes} bytes, CKA_VALUE has {}", value.len());
        return Err(because(CKR_ATTRIBUTE_VALUE_INVALID, why));
    }
    make(session, described, |client, new| client.import(new, value))
}

/// Makes a key under a free name.
pub(crate) fn make(
    session: &Session,
    described: Described,
    work: impl Fn(&polyclave_client::Client, NewKey) -> polyclave_client::Result<KeyInfo>,
) -> Result<CK_OBJECT_HANDLE> {
    if !described.is_session {
        session.refuse_read_only()?;
    }
    make_as(session, described, Doing::Managing, work)
}

/// The same; of a session that only reads, too.
pub(crate) fn make_as(
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
        // Nobody can say a name is free until the nodes take it: two programs may make a key at once, and one
        // is told so.
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
    let versions = versions(session, name)?;
    let is_current = versions.iter().all(|other| other.version <= object.info.version);
    let has_others = versions.iter().any(|other| other.version != object.info.version);
    if is_current && has_others {
        let why = format!("{name} has older versions; delete them first");
        return Err(because(CKR_ACTION_PROHIBITED, why));
    }
    token.ask(&client, Doing::Changing, || match is_current {
        true => client.delete(name),
        false => client.delete_version(name, object.info.version),
    })?;
    token.forget(handle);
    Ok(())
}

/// Deletes the session objects of a session that has ended, or of all sessions of a token. What cannot be
/// deleted now ends by itself within a day, and the log says so.
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
        return Err(because(CKR_ACTION_PROHIBITED, "the key was made unmodifiable (CKA_MODIFIABLE)"));
    }
    let (stored, withdrawn) = changed(&object, template)?;
    describe(session, &object, stored, &withdrawn)
}

/// What an object becomes by a template: what programs set, and what it is not for any more.
fn changed(object: &Object, template: &Template) -> Result<(Stored, Withdrawal)> {
    let (mut stored, mut withdrawn) = (object.stored.clone(), Withdrawal::default());
    for (kind, value) in &template.0 {
        match *kind {
            CKA_LABEL => stored.label = value.to_vec(),
            CKA_ID => stored.id = value.to_vec(),
            CKA_START_DATE => stored.start_date = template.date(*kind)?,
            CKA_END_DATE => stored.end_date = template.date(*kind)?,
            CKA_ENCRYPT | CKA_DECRYPT | CKA_SIGN | CKA_VERIFY | CKA_WRAP | CKA_UNWRAP | CKA_DERIVE => {
                match (template.flag(*kind)?, object.is_for(*kind)) {
                    (Some(false), true) => {
                        stored.turn_off(*kind);
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
                if withdrawn.wrappable {
                    stored.turn_off(CKA_NEVER_EXTRACTABLE);
                }
            }
            kind => match object.value(kind) {
                Ok(same) if same == **value => {}
                Ok(_) | Err(Rv(CKR_ATTRIBUTE_SENSITIVE)) => {
                    let why = format!("attribute {kind:#x} of a key is fixed when it is made");
                    return Err(because(CKR_ATTRIBUTE_READ_ONLY, why));
                }
                Err(rv) => return Err(rv),
            },
        }
    }
    withdrawn.usage.sort();
    Ok((stored, withdrawn))
}

/// Puts a key under a second name and handle. The copy is for no more than the key, and both pay from one
/// budget.
pub(crate) fn copy(
    session: &Session,
    handle: CK_OBJECT_HANDLE,
    template: &Template,
) -> Result<CK_OBJECT_HANDLE> {
    let object = session.object(handle)?;
    let of_place = |kind: CK_ATTRIBUTE_TYPE| [CKA_TOKEN, CKA_PRIVATE, CKA_MODIFIABLE].contains(&kind);
    let others = template.0.iter().filter(|(kind, _)| !of_place(*kind)).cloned().collect();
    let (mut stored, withdrawn) = changed(&object, &Template(others))?;
    let is_session = template.flag(CKA_TOKEN)?.map_or(object.info.is_of_session(), |token| !token);
    template.refuse_visible(&session.token.settings)?;
    stored.is_fixed = template.flag(CKA_MODIFIABLE)?.map_or(stored.is_fixed, |is_open| !is_open);
    let too_long =
        || because(CKR_ATTRIBUTE_VALUE_INVALID, "the attributes of the key are longer than nodes keep");
    let mut new = object.info.properties.clone();
    new.attributes = stored.to_bytes().ok_or_else(too_long)?;
    new.label = readable(&stored.label);
    new.usage.retain(|usage| !withdrawn.usage.contains(usage));
    retain_used(&mut new.modes, &new.usage);
    new.caller_nonces &= new.usage.contains(&Usage::Encrypt);
    new.wrappable &= !withdrawn.wrappable;
    new.lifetime = lifetime(is_session);
    let (name, id) = (object.info.properties.name.clone(), object.info.id);
    make(session, Described { new, stored, is_session }, |client, new| client.copy(&name, id, new))
}

/// The versions of the key of an object, the newest first.
fn versions(session: &Session, name: &str) -> Result<Vec<KeyInfo>> {
    let client = session.token.client()?;
    let versions = session.token.ask(&client, Doing::Using, || client.versions(name));
    versions.map_err(|rv| if rv == Rv(CKR_KEY_HANDLE_INVALID) { Rv(CKR_OBJECT_HANDLE_INVALID) } else { rv })
}

/// Writes the attributes of a key at the nodes, and withdraws uses there: of all its versions.
fn describe(session: &Session, object: &Arc<Object>, stored: Stored, withdrawn: &Withdrawal) -> Result<()> {
    let (token, client) = (&session.token, session.token.client()?);
    let (name, id) = (&object.info.properties.name, object.info.id);
    let as_object = |info: &KeyInfo| Object::of(info.clone(), &token.settings.prefix);
    let mut all: BTreeMap<[u8; 16], KeyInfo> = BTreeMap::new();
    for version in versions(session, name)? {
        let known = all.entry(version.id).or_insert_with(|| version.clone());
        if known.revision < version.revision {
            *known = version;
        }
    }
    if !all.contains_key(&id) {
        return Err(Rv(CKR_OBJECT_HANDLE_INVALID));
    }
    let write = |info: &mut KeyInfo, stored: &Stored| -> Result<()> {
        let too_long =
            || because(CKR_ATTRIBUTE_VALUE_INVALID, "the attributes of the key are longer than nodes keep");
        let (attributes, label) = (stored.to_bytes().ok_or_else(too_long)?, readable(&stored.label));
        let (id, revision) = (info.id, info.revision);
        token.ask(&client, Doing::Changing, || client.describe((name, id), revision, &label, &attributes))?;
        info.revision += 1;
        (info.properties.label, info.properties.attributes) = (label, attributes);
        Ok(())
    };
    if withdrawn.wrappable {
        // Noted before it is so, of every version, with what else is noted already. If this is interrupted,
        // nobody could know later that they could leave once.
        for info in all.values_mut().filter(|info| info.properties.wrappable) {
            let Some(Object { stored: mut noted, .. }) = as_object(info) else { continue };
            if noted.turn_off(CKA_NEVER_EXTRACTABLE) {
                write(info, &noted)?;
            }
        }
    }
    if *withdrawn != Withdrawal::default() {
        let as_now = all.get(&id).map(|info| (info.least_version, info.deletable));
        let as_now = as_now.ok_or(Rv(CKR_OBJECT_HANDLE_INVALID))?;
        token.ask(&client, Doing::Changing, || client.withdraw(name, as_now, withdrawn))?;
        for info in all.values_mut() {
            info.properties.usage.retain(|usage| !withdrawn.usage.contains(usage));
            info.properties.wrappable &= !withdrawn.wrappable;
        }
    }
    let mut info = all.remove(&id).ok_or(Rv(CKR_OBJECT_HANDLE_INVALID))?;
    write(&mut info, &stored)?;
    token.handle_of(Object { info, stored, session: object.session });
    for other in all.values().filter_map(as_object) {
        token.handle_of(other);
    }
    Ok(())
}
