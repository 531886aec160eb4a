//! Keys: made, shown, listed, rotated, configured and deleted. A key that nodes keep is one of the API if it
//! has one of its [types](super::types).

use std::collections::BTreeSet;

use polyclave_api::{KeyInfo, NewKey, Origin, Reason, Right, most_blocks};
use polyclave_cipher::hmac::{self, Sha2};
use polyclave_client::Error;
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::fields::Fields;
use super::types::{DEFAULT, Form, Type};
use super::{Caller, Vault};
use crate::failure::Failure;

/// `keys`: the names that the token may list.
pub(super) async fn list(vault: &Vault, caller: &Caller) -> Result<Answer, Failure> {
    let listing = caller.asker.ask(&vault.queue, |client| client.keys()).await?;
    let names: BTreeSet<String> = listing
        .keys
        .into_iter()
        .filter(|listed| Type::of(&listed.info).is_some())
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
    for property in ["exportable", "allow_plaintext_backup"] {
        refuse_if_set(fields, property)?;
    }
    refuse_auto_rotation(fields)?;
    let derived = fields.flag("derived")?.unwrap_or_default();
    let of_type = type_wanted(fields, derived)?;
    check_size(of_type, fields.number("key_size")?.unwrap_or_default())?;
    if let Some(versions) = known(vault, caller, key).await? {
        return Ok(Answer::Data(described(&versions).into(), vec![format!("key {key} already existed")]));
    }
    let Made { versions, is_new, warning } = make(vault, caller, key, of_type).await?;
    let existed = (!is_new).then(|| format!("key {key} already existed"));
    Ok(Answer::Data(described(&versions).into(), existed.into_iter().chain(warning).collect()))
}

/// The type of a key that a request wants made.
pub(super) fn type_wanted(fields: &Fields, derived: bool) -> Result<&'static Type, Failure> {
    let name = fields.text("type")?.filter(|text| !text.is_empty()).unwrap_or(DEFAULT);
    Type::named(name, (derived, fields.flag("convergent_encryption")?.unwrap_or_default()))
}

/// A key that was to be made.
pub(super) struct Made {
    /// Its versions, the newest first.
    pub(super) versions: Vec<KeyInfo>,
    /// Whether it was made, and not there already.
    pub(super) is_new: bool,
    pub(super) warning: Option<String>,
}

/// Makes a key, unless one has the name. Of two requests at once that make one name, the nodes refuse one.
pub(super) async fn make(
    vault: &Vault,
    caller: &Caller,
    key: &str,
    of_type: &'static Type,
) -> Result<Made, Failure> {
    let modes = [of_type.mode];
    let new = NewKey::for_modes(key, of_type.cipher, &modes, most_blocks(16, &modes));
    let made = caller.asker.change(&vault.queue, move |client| match client.generate(new) {
        // Somebody else made it meanwhile.
        Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::Key => Ok(false),
        made => made.map(|_| true),
    });
    if !made.await? {
        let versions = known(vault, caller, key).await?;
        let versions =
            versions.ok_or_else(|| Failure::Bad(format!("the key {key} is there for another purpose")))?;
        return Ok(Made { versions, is_new: false, warning: None });
    }
    // Vault deletes a key only after it was told that it may.
    let name = key.to_owned();
    let kept = caller.asker.change(&vault.queue, move |client| client.configure(&name, 1, false)).await;
    let warning = kept.err().map(|failure| {
        format!("the key was made, and may be deleted; set deletion_allowed to false: {failure}")
    });
    let versions = vault.versions.shown(&caller.asker, &vault.queue, key).await?;
    Ok(Made { versions, is_new: true, warning })
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
            _ if wanted < i64::from(available(&versions)) => {
                return Err(Failure::Bad(
                    "min decryption version should not be less then min available version".into(),
                ));
            }
            _ => u32::try_from(wanted).ok().filter(|wanted| *wanted <= newest.version).ok_or_else(|| {
                Failure::Bad(format!(
                    "cannot set min decryption version of {wanted}, latest key version is {}",
                    newest.version
                ))
            })?,
        };
    }
    let least_to_encrypt = fields.number("min_encryption_version")?.unwrap_or_default();
    if least_to_encrypt != 0 && least_to_encrypt != i64::from(least) {
        return Err(Failure::Bad(format!(
            "min_encryption_version can be set to min_decryption_version ({least}) only: the nodes encrypt under any version from that on, \
             and under the latest unless a request names another one"
        )));
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

/// `keys/N/trim`: the nodes delete old versions, for ever. What a deletion that was interrupted has left, the
/// same request deletes when it is made again.
pub(super) async fn trim(
    vault: &Vault,
    caller: &Caller,
    key: &str,
    fields: &Fields,
) -> Result<Answer, Failure> {
    let refused = |why: &str| Err(Failure::Bad(format!("minimum available version {why}")));
    let Some(wanted) = fields.number("min_available_version")? else {
        return Err(Failure::Bad("missing min_available_version".into()));
    };
    let Some(versions) = known(vault, caller, key).await? else {
        return Err(Failure::Bad("invalid key name".into()));
    };
    let newest = &versions[0];
    match wanted {
        ..0 => return refused("cannot be negative"),
        0 => return refused("should be positive"),
        _ if wanted < i64::from(available(&versions)) => return refused("cannot be decremented"),
        _ if wanted > i64::from(newest.least_version) => {
            return refused("cannot be greater than minimum decryption version");
        }
        _ if !newest.deletable => {
            return Err(Failure::Bad(format!(
                "versions of the key {key} cannot be deleted; set deletion_allowed to true first, with transit/keys/{key}/config"
            )));
        }
        _ => {}
    }
    for version in
        versions.iter().rev().map(|info| info.version).filter(|version| i64::from(*version) < wanted)
    {
        let name = key.to_owned();
        caller.asker.change(&vault.queue, move |client| client.delete_version(&name, version)).await?;
    }
    let versions = vault.versions.shown(&caller.asker, &vault.queue, key).await?;
    Ok(Answer::data(described(&versions)))
}

/// The oldest version that is there, if older ones were deleted; otherwise 0.
fn available(versions: &[KeyInfo]) -> u32 {
    versions.last().map(|oldest| oldest.version).filter(|oldest| *oldest > 1).unwrap_or_default()
}

/// The versions of a key, the newest first, if it is there and one of the API.
async fn known(vault: &Vault, caller: &Caller, key: &str) -> Result<Option<Vec<KeyInfo>>, Failure> {
    match vault.versions.shown(&caller.asker, &vault.queue, key).await {
        Ok(versions) if Type::of(&versions[0]).is_some() => Ok(Some(versions)),
        Ok(_) | Err(Failure::NoKey) => Ok(None),
        Err(failure) => Err(failure),
    }
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
    let of_type = Type::of(newest);
    let form = of_type.and_then(Type::form);
    let usable = versions.iter().filter(|info| info.version >= newest.least_version);
    let keys: Map<String, Value> = usable.map(|info| (info.version.to_string(), info.made.into())).collect();
    let fields = [
        ("name", json!(newest.properties.name)),
        ("type", json!(of_type.map(|one| one.name))),
        ("keys", Value::Object(keys)),
        ("latest_version", json!(newest.version)),
        ("min_available_version", json!(available(versions))),
        ("min_decryption_version", json!(newest.least_version)),
        ("min_encryption_version", json!(0)),
        ("deletion_allowed", json!(newest.deletable)),
        ("derived", json!(form.is_some_and(Form::is_derived))),
        ("convergent_encryption", json!(form == Some(Form::Convergent))),
        ("exportable", json!(false)),
        ("allow_plaintext_backup", json!(false)),
        ("auto_rotate_period", json!(0)),
        ("imported_key", json!(newest.origin != Origin::Generated)),
        ("supports_encryption", json!(form.is_some())),
        ("supports_decryption", json!(form.is_some())),
        // Of the type, as in Vault.
        ("supports_derivation", json!(form.is_some())),
        ("supports_signing", json!(false)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn refuse_if_set(fields: &Fields, property: &str) -> Result<(), Failure> {
    match fields.flag(property)? {
        Some(true) => {
            Err(Failure::Bad(format!("{property} cannot be set: no key leaves the nodes in the clear")))
        }
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
