//! Keys: made, shown, listed, rotated, configured and deleted. A key that nodes keep is one of the API if it
//! is of AES and for GCM, or for HMAC.

use std::collections::BTreeSet;

use polyclave_api::{KeyInfo, MAX_BLOCKS, Mode, NewKey, Origin, Reason, Right};
use polyclave_cipher::hmac::{self, Sha2};
use polyclave_client::Error;
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::fields::Fields;
use super::{Caller, Vault};
use crate::failure::Failure;

/// A type of keys.
struct Type {
    name: &'static str,
    /// What the nodes call it.
    cipher: &'static str,
    mode: Mode,
}

const TYPES: [Type; 5] = [
    Type { name: "aes256-gcm96", cipher: "aes-256", mode: Mode::Gcm },
    Type { name: "aes128-gcm96", cipher: "aes-128", mode: Mode::Gcm },
    // Vault has one type, whose keys serve every hash. At the nodes a key serves one.
    Type { name: "hmac", cipher: hmac::name(Sha2::Sha256), mode: Mode::Hmac },
    Type { name: "hmac-sha2-384", cipher: hmac::name(Sha2::Sha384), mode: Mode::Hmac },
    Type { name: "hmac-sha2-512", cipher: hmac::name(Sha2::Sha512), mode: Mode::Hmac },
];

/// `keys`: the names that the token may list.
pub(super) async fn list(vault: &Vault, caller: &Caller) -> Result<Answer, Failure> {
    let listing = caller.asker.ask(&vault.queue, |client| client.keys()).await?;
    let names: BTreeSet<String> = listing
        .keys
        .into_iter()
        .filter(|listed| is_of_api(&listed.info))
        .map(|listed| listed.info.properties.name)
        .filter(|name| caller.token.entry.allows(Right::List, name))
        .collect();
    match names.is_empty() {
        true => Ok(Answer::NotFound),
        false => Ok(Answer::data(Map::from_iter([("keys".into(), json!(names))]))),
    }
}

/// `keys/N`, written.
pub(super) async fn create(
    vault: &Vault,
    caller: &Caller,
    key: &str,
    fields: &Fields,
) -> Result<Answer, Failure> {
    for property in ["derived", "convergent_encryption", "exportable", "allow_plaintext_backup"] {
        refuse_if_set(fields, property)?;
    }
    refuse_auto_rotation(fields)?;
    let wanted = fields.text("type")?.filter(|text| !text.is_empty()).unwrap_or(TYPES[0].name);
    let Some(of_type) = TYPES.iter().find(|one| one.name == wanted) else {
        let shown: String = wanted.chars().take(64).collect();
        return Err(Failure::Bad(format!(
            "unknown key type {shown}; this gateway has {}",
            TYPES.map(|one| one.name).join(", ")
        )));
    };
    check_size(of_type, fields.number("key_size")?.unwrap_or_default())?;
    if let Some(versions) = known(vault, caller, key).await? {
        return Ok(Answer::Data(described(&versions).into(), vec![format!("key {key} already existed")]));
    }
    let new = NewKey::for_modes(key, of_type.cipher, &[of_type.mode], MAX_BLOCKS);
    let made = caller.asker.change(&vault.queue, move |client| match client.generate(new) {
        // Somebody else made it meanwhile.
        Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::Key => Ok(false),
        made => made.map(|_| true),
    });
    if !made.await? {
        let versions = known(vault, caller, key).await?;
        let versions =
            versions.ok_or_else(|| Failure::Bad(format!("the key {key} is there for another purpose")))?;
        return Ok(Answer::Data(described(&versions).into(), vec![format!("key {key} already existed")]));
    }
    // Vault deletes a key only after it was told that it may.
    let name = key.to_owned();
    let kept = caller.asker.change(&vault.queue, move |client| client.configure(&name, 1, false)).await;
    let warnings = match kept {
        Ok(()) => Vec::new(),
        Err(failure) => {
            vec![format!("the key was made, and may be deleted; set deletion_allowed to false: {failure}")]
        }
    };
    let versions = vault.versions.shown(&caller.asker, &vault.queue, key).await?;
    Ok(Answer::Data(described(&versions).into(), warnings))
}

/// `keys/N`, read.
pub(super) async fn read(vault: &Vault, caller: &Caller, key: &str) -> Result<Answer, Failure> {
    Ok(match known(vault, caller, key).await? {
        Some(versions) => Answer::data(described(&versions)),
        None => Answer::NotFound,
    })
}

/// `keys/N`, deleted, if it was allowed before.
pub(super) async fn delete(vault: &Vault, caller: &Caller, key: &str) -> Result<Answer, Failure> {
    let refused = |why: &str| Failure::Bad(format!("error deleting policy {key}: {why}"));
    let Some(versions) = known(vault, caller, key).await? else {
        return Err(refused("could not delete key; not found"));
    };
    if !versions[0].deletable {
        return Err(refused("deletion is not allowed for this policy"));
    }
    let name = key.to_owned();
    caller.asker.change(&vault.queue, move |client| client.delete(&name)).await?;
    vault.versions.forget(key);
    Ok(Answer::Nothing)
}

/// `keys/N/rotate`.
pub(super) async fn rotate(vault: &Vault, caller: &Caller, key: &str) -> Result<Answer, Failure> {
    known(vault, caller, key).await?.ok_or_else(|| Failure::Bad("key not found".into()))?;
    let name = key.to_owned();
    caller.asker.change(&vault.queue, move |client| client.rotate(&name)).await?;
    let versions = vault.versions.shown(&caller.asker, &vault.queue, key).await?;
    Ok(Answer::data(described(&versions)))
}

/// `keys/N/config`.
pub(super) async fn configure(
    vault: &Vault,
    caller: &Caller,
    key: &str,
    fields: &Fields,
) -> Result<Answer, Failure> {
    for property in ["exportable", "allow_plaintext_backup"] {
        refuse_if_set(fields, property)?;
    }
    refuse_auto_rotation(fields)?;
    if fields.number("min_encryption_version")?.unwrap_or_default() != 0 {
        return Err(Failure::Bad(
            "min_encryption_version cannot be set: the nodes encrypt under any version from min_decryption_version on, and under the latest \
             unless a request names another one"
                .into(),
        ));
    }
    let Some(versions) = known(vault, caller, key).await? else {
        return Err(Failure::Bad(format!("no existing key named {key} could be found")));
    };
    let newest = &versions[0];
    let (mut least, mut warnings) = (newest.least_version, Vec::new());
    if let Some(wanted) = fields.number("min_decryption_version")? {
        least = match wanted {
            ..0 => return Err(Failure::Bad("min decryption version cannot be negative".into())),
            0 => {
                warnings.push("versions of keys are numbered from 1 on; the minimum is 1".into());
                1
            }
            _ => u32::try_from(wanted).ok().filter(|wanted| *wanted <= newest.version).ok_or_else(|| {
                Failure::Bad(format!(
                    "cannot set min decryption version of {wanted}, latest key version is {}",
                    newest.version
                ))
            })?,
        };
    }
    let deletable = fields.flag("deletion_allowed")?.unwrap_or(newest.deletable);
    if (least, deletable) == (newest.least_version, newest.deletable) {
        return Ok(Answer::Data(described(&versions).into(), warnings));
    }
    let name = key.to_owned();
    caller.asker.change(&vault.queue, move |client| client.configure(&name, least, deletable)).await?;
    let versions = vault.versions.shown(&caller.asker, &vault.queue, key).await?;
    Ok(Answer::Data(described(&versions).into(), warnings))
}

/// The versions of a key, the newest first, if it is there and one of the API.
async fn known(vault: &Vault, caller: &Caller, key: &str) -> Result<Option<Vec<KeyInfo>>, Failure> {
    match vault.versions.shown(&caller.asker, &vault.queue, key).await {
        Ok(versions) if is_of_api(&versions[0]) => Ok(Some(versions)),
        Ok(_) | Err(Failure::NoKey) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn is_of_api(info: &KeyInfo) -> bool {
    type_of(info).is_some() && info.component.is_none()
}

fn type_of(info: &KeyInfo) -> Option<&'static Type> {
    let NewKey { cipher, modes, .. } = &info.properties;
    TYPES.iter().find(|one| one.cipher == cipher && modes.contains(&one.mode))
}

/// Refuses another size than keys of a type have.
fn check_size(of_type: &Type, bytes: i64) -> Result<(), Failure> {
    match (hmac::hash_of(of_type.cipher).map(Sha2::block_bytes), bytes) {
        (_, 0) => Ok(()),
        (Some(made), bytes) if usize::try_from(bytes) == Ok(made) => Ok(()),
        (Some(made), _) => Err(Failure::Bad(format!(
            "key_size must be {made}, or be left out: the nodes make keys of type {} of so many bytes",
            of_type.name
        ))),
        (None, _) => Err(Failure::Bad("key_size is not valid for keys of AES".into())),
    }
}

fn described(versions: &[KeyInfo]) -> Map<String, Value> {
    let newest = &versions[0];
    let encrypts = newest.properties.modes.contains(&Mode::Gcm);
    let usable = versions.iter().filter(|info| info.version >= newest.least_version);
    let keys: Map<String, Value> = usable.map(|info| (info.version.to_string(), info.made.into())).collect();
    let fields = [
        ("name", json!(newest.properties.name)),
        ("type", json!(type_of(newest).map(|one| one.name))),
        ("keys", Value::Object(keys)),
        ("latest_version", json!(newest.version)),
        ("min_available_version", json!(0)),
        ("min_decryption_version", json!(newest.least_version)),
        ("min_encryption_version", json!(0)),
        ("deletion_allowed", json!(newest.deletable)),
        ("derived", json!(false)),
        ("exportable", json!(false)),
        ("allow_plaintext_backup", json!(false)),
        ("auto_rotate_period", json!(0)),
        ("imported_key", json!(newest.origin != Origin::Generated)),
        ("supports_encryption", json!(encrypts)),
        ("supports_decryption", json!(encrypts)),
        ("supports_derivation", json!(false)),
        ("supports_signing", json!(false)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn refuse_if_set(fields: &Fields, property: &str) -> Result<(), Failure> {
    let why = match property {
        "derived" | "convergent_encryption" => "the nodes derive no key for each context",
        _ => "no key leaves the nodes in the clear",
    };
    match fields.flag(property)? {
        Some(true) => Err(Failure::Bad(format!("{property} cannot be set: {why}"))),
        _ => Ok(()),
    }
}

fn refuse_auto_rotation(fields: &Fields) -> Result<(), Failure> {
    match fields.is_some_duration("auto_rotate_period") {
        true => Err(Failure::Bad(
            "auto_rotate_period cannot be set: rotate the key by a timer of your own, with keys/NAME/rotate"
                .into(),
        )),
        false => Ok(()),
    }
}
