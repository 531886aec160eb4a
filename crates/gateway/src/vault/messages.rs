//! Messages: encrypted, decrypted and rewrapped, one or a batch; and keys for data.

use std::future::Future;
use std::sync::Arc;

use axum::http::StatusCode;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use polyclave_api::{KeyVersion, MAX_REWRAPPED};
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use super::answer::Answer;
use super::data::{Data, Datum, Message, Outcome};
use super::fields::Fields;
use super::item::{HIGHER, base64, bound_to, ciphertext_of, has_context, refuse_nonce, version_of};
use super::route::Call;
use super::types::Form;
use super::{Caller, Vault, upsert};
use crate::failure::Failure;
use crate::versions::{Found, Source};

/// How many items of one batch are with the nodes, or wait for them, at once.
const AT_ONCE: usize = 8;

/// The caller and its call.
pub(super) type Ask<'a> = (&'a Caller, &'a Call);
pub(super) type Result<T> = std::result::Result<T, Failure>;

/// `encrypt/N`. A key that is not there is made, if the token may do that.
pub(super) async fn encrypt(vault: &Vault, asked: Ask<'_>, key: &str, fields: &Fields) -> Result<Answer> {
    match encrypt_each(vault, asked, key, fields).await {
        Err(Failure::NoKey) => {
            let warning = upsert::make(vault, asked.0, key, fields).await?;
            Ok(encrypt_each(vault, asked, key, fields).await?.with_warnings(warning))
        }
        outcome => outcome,
    }
}

async fn encrypt_each(vault: &Vault, asked: Ask<'_>, key: &str, fields: &Fields) -> Result<Answer> {
    each(vault, asked, fields, |item| async move {
        let item = &item;
        let plaintext = item.text("plaintext")?.ok_or_else(|| bad("missing plaintext to encrypt"))?;
        let plaintext = Arc::new(Zeroizing::new(base64(plaintext, "plaintext")?));
        encrypt_one(vault, asked.0, key, item, plaintext).await
    })
    .await
}

/// `decrypt/N`.
pub(super) async fn decrypt(vault: &Vault, asked: Ask<'_>, key: &str, fields: &Fields) -> Result<Answer> {
    each(vault, asked, fields, |item| async move {
        let item = &item;
        let (version, ciphertext) = ciphertext_of(item)?;
        let plaintext = decrypt_one(vault, asked.0, (key, version), item, Arc::new(ciphertext)).await?;
        Ok(vec![("plaintext", Datum::Plaintext(plaintext))])
    })
    .await
}

/// `rewrap/N`. The nodes rewrap short messages of keys that are not derived themselves, and this program does
/// not see them.
pub(super) async fn rewrap(vault: &Vault, asked: Ask<'_>, key: &str, fields: &Fields) -> Result<Answer> {
    each(vault, asked, fields, |item| async move {
        let item = &item;
        let (version, ciphertext) = ciphertext_of(item)?;
        let ciphertext = Arc::new(ciphertext);
        let is_short = ciphertext.len() <= MAX_REWRAPPED + Form::Plain.around();
        let is_of_nodes = is_short && version_of(item)?.is_none();
        let anew = |form: Form| {
            let ciphertext = ciphertext.clone();
            async move {
                if form == Form::Plain && is_of_nodes {
                    return rewrap_one(vault, asked.0, (key, version), item, ciphertext).await;
                }
                let plaintext = decrypt_one(vault, asked.0, (key, version), item, ciphertext).await?;
                encrypt_one(vault, asked.0, key, item, Arc::new(plaintext)).await
            }
        };
        in_form(vault, asked.0, key, anew).await
    })
    .await
}

async fn rewrap_one(
    vault: &Vault,
    caller: &Caller,
    (key, version): (&str, u32),
    item: &Fields,
    ciphertext: Arc<Vec<u8>>,
) -> Result<Message> {
    let additional = Arc::new(bound_to(item, Form::Plain)?);
    let (encrypted, info) = under(vault, caller, (key, version), |old| {
        let (new, additional, ciphertext) = (key.to_owned(), additional.clone(), ciphertext.clone());
        caller.asker.ask(&vault.queue, move |client| {
            client.key_with_id(old.clone()).gcm().aad(&additional).rewrap(&new, &ciphertext)
        })
    })
    .await?;
    Ok(encrypted_as(info.version, encrypted))
}

/// `datakey/plaintext/N` and `datakey/wrapped/N`.
pub(super) async fn data_key(
    vault: &Vault,
    asked: Ask<'_>,
    (key, shown): (&str, bool),
    fields: &Fields,
) -> Result<Answer> {
    let bytes = match fields.number("bits")?.unwrap_or(256) {
        128 => 16,
        256 => 32,
        512 => 64,
        _ => return Err(bad("invalid bit length; it must be 128, 256 or 512")),
    };
    let mut drawn = Zeroizing::new(vec![0; bytes]);
    random_bytes(&mut drawn).map_err(|e| Failure::Internal(e.to_string()))?;
    let drawn = Arc::new(drawn);
    let mut data = encrypt_one(vault, asked.0, key, fields, drawn.clone()).await?;
    if shown {
        data.push(("plaintext", Datum::Plaintext((*drawn).clone())));
    }
    Ok(Answer::data(data))
}

async fn encrypt_one(
    vault: &Vault,
    caller: &Caller,
    key: &str,
    item: &Fields,
    plaintext: Arc<Zeroizing<Vec<u8>>>,
) -> Result<Message> {
    refuse_nonce(item)?;
    let asker = &caller.asker;
    let Some(version) = version_of(item)? else {
        let latest = |form: Form| {
            let (name, additional, plaintext) = (key.to_owned(), bound_to(item, form), plaintext.clone());
            async move {
                let additional = additional?;
                let encrypted = asker.ask(&vault.queue, move |client| {
                    form.messages(&client.key(&name)?).aad(&additional).encrypt_with_info(&plaintext)
                });
                encrypted.await
            }
        };
        let (encrypted, info) = in_form(vault, caller, key, latest).await?;
        return Ok(encrypted_as(info.version, encrypted));
    };
    let of_version = |form: Form| {
        let (additional, plaintext) = (bound_to(item, form).map(Arc::new), plaintext.clone());
        async move {
            let additional = additional?;
            under(vault, caller, (key, version), |id| {
                let (additional, plaintext) = (additional.clone(), plaintext.clone());
                asker.ask(&vault.queue, move |client| {
                    form.messages(&client.key_with_id(id.clone())).aad(&additional).encrypt(&plaintext)
                })
            })
            .await
        }
    };
    let encrypted = in_form(vault, caller, key, of_version).await.map_err(|failure| match failure {
        Failure::Bad(message) if message == TOO_NEW => bad(HIGHER),
        Failure::Bad(message) if message == TOO_OLD => {
            bad("requested version for encryption is less than the minimum encryption key version")
        }
        other => other,
    })?;
    Ok(encrypted_as(version, encrypted))
}

async fn decrypt_one(
    vault: &Vault,
    caller: &Caller,
    (key, version): (&str, u32),
    item: &Fields,
    ciphertext: Arc<Vec<u8>>,
) -> Result<Zeroizing<Vec<u8>>> {
    refuse_nonce(item)?;
    let of_version = |form: Form| {
        let (additional, ciphertext) = (bound_to(item, form).map(Arc::new), ciphertext.clone());
        async move {
            let additional = additional?;
            if ciphertext.len() < form.around() {
                return Err(bad("invalid ciphertext: it is shorter than a nonce and a tag"));
            }
            under(vault, caller, (key, version), |id| {
                let (additional, ciphertext) = (additional.clone(), ciphertext.clone());
                caller.asker.ask(&vault.queue, move |client| {
                    form.messages(&client.key_with_id(id.clone())).aad(&additional).decrypt(&ciphertext)
                })
            })
            .await
        }
    };
    in_form(vault, caller, key, of_version).await
}

/// How messages under a key are encrypted. Nodes refuse what is not for the key, with their words.
async fn form_of(vault: &Vault, caller: &Caller, key: &str) -> Result<(Form, Source)> {
    let (modes, source) = vault.versions.modes(&caller.asker, &vault.queue, key).await?;
    Ok((Form::of(&modes).unwrap_or(Form::Plain), source))
}

/// Does something in the form that messages of a key have. If the key is not what is remembered of it, this
/// is refused, and then the nodes are asked anew: nothing is ever done in another form than the key's.
async fn in_form<T, F: Future<Output = Result<T>>>(
    vault: &Vault,
    caller: &Caller,
    key: &str,
    work: impl Fn(Form) -> F,
) -> Result<T> {
    let (remembered, source) = form_of(vault, caller, key).await?;
    let outcome = work(remembered).await;
    if source == Source::Nodes
        || !matches!(outcome, Err(Failure::Bad(_) | Failure::Denied(_) | Failure::NoKey))
    {
        return outcome;
    }
    vault.versions.forget(key);
    match form_of(vault, caller, key).await? {
        (now, _) if now != remembered => work(now).await,
        _ => outcome,
    }
}

const TOO_NEW: &str = "invalid ciphertext: version is too new";
const TOO_OLD: &str = "ciphertext or signature version is disallowed by policy (too old)";

/// Does something under a version of a key, given the version's number. If the nodes do not know the
/// remembered id any more, the id is looked up again.
async fn under<T, F: Future<Output = Result<T>>>(
    vault: &Vault,
    caller: &Caller,
    (key, version): (&str, u32),
    work: impl Fn(KeyVersion) -> F,
) -> Result<T> {
    let asker = &caller.asker;
    loop {
        let (id, source) = match vault.versions.find(asker, &vault.queue, (key, version)).await? {
            Found::Version(id, source) => (id, source),
            Found::TooNew => return Err(bad(TOO_NEW)),
            Found::Destroyed => return Err(bad(TOO_OLD)),
        };
        match work(id).await {
            Err(Failure::NoKey) if source == Source::Memory => vault.versions.forget(key),
            // What nodes refuse has their words, except for what Vault has its own.
            Err(Failure::Bad(message)) => {
                let shown = vault.versions.shown(asker, &vault.queue, key).await?;
                return Err(bad(if version < shown[0].least_version { TOO_OLD } else { &message }));
            }
            outcome => return outcome,
        }
    }
}

/// Does something with the message of a request, or with each of a batch. What is wrong with one item is told
/// of that item.
async fn each<F: Future<Output = Result<Message>>>(
    vault: &Vault,
    (caller, call): Ask<'_>,
    fields: &Fields,
    one: impl Fn(Fields) -> F,
) -> Result<Answer> {
    let Some(items) = fields.batch()? else { return one(fields.clone()).await.map(Answer::data) };
    let first = has_context(&items[0])?;
    for item in &items {
        if has_context(item)? != first {
            return Err(bad("context should be set either in all the request blocks or in none"));
        }
    }
    let one = &one;
    let outcomes: Vec<Outcome> = stream::iter(items)
        .map(|item| async move {
            // A token that is revoked in the middle of a batch stops there.
            caller.allow(vault, call)?;
            let reference = item.text("reference")?.filter(|text| !text.is_empty()).map(str::to_owned);
            match one(item).await {
                Err(failure) if failure.is_of_all() => Err(failure),
                outcome => Ok((reference, outcome)),
            }
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    batch_answer(fields, outcomes)
}

/// The answer to a batch. The status says that something failed, or what the request wants it to be if
/// something succeeded.
pub(super) fn batch_answer(fields: &Fields, outcomes: Vec<Outcome>) -> Result<Answer> {
    let failures = outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().err());
    let worst = failures.map(status_of).max();
    let some_succeeded = outcomes.iter().any(|(_, outcome)| outcome.is_ok());
    let data = Data::Results(outcomes);
    let Some(worst) = worst else { return Ok(Answer::data(data)) };
    let status = match fields.number("partial_failure_response_code")?.filter(|_| some_succeeded) {
        None => worst,
        Some(wanted) => u16::try_from(wanted)
            .ok()
            .filter(|code| (200..600).contains(code))
            .and_then(|code| StatusCode::from_u16(code).ok())
            .ok_or_else(|| bad("partial_failure_response_code must be from 200 to 599"))?,
    };
    Ok(Answer::Partly(status, data, Vec::new()))
}

fn status_of(failure: &Failure) -> StatusCode {
    match failure {
        Failure::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        Failure::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn encrypted_as(version: u32, bytes: Vec<u8>) -> Message {
    vec![("ciphertext", Datum::Versioned(version, bytes)), ("key_version", Datum::Number(version))]
}

fn bad(message: &str) -> Failure {
    Failure::Bad(message.into())
}
