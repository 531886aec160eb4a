//! `hmac/N` and `verify/N`: codes of HMAC, computed by the nodes, of one message or a batch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::{KeyInfo, MAX_CHAINED, MAX_CODES, Mode, VersionState};
use polyclave_cipher::hmac::{Sha2, hash_of};
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::answer::Answer;
use super::ciphertext;
use super::data::{Data, Datum, Message, Outcome};
use super::fields::Fields;
use super::item::base64;
use super::messages::{Ask, Result};
use super::{Caller, Vault};
use crate::failure::Failure;

/// Messages with the codes that the nodes compute of them.
type Codes = Vec<Result<Zeroizing<Vec<u8>>>>;

/// A message, and the version of the key for its code.
type Input = (Arc<KeyInfo>, Arc<Zeroizing<Vec<u8>>>);

/// `hmac/N`.
pub(super) async fn hmac(
    vault: &Vault,
    asked: Ask<'_>,
    (key, algorithm): (&str, Option<&str>),
    fields: &Fields,
) -> Result<Answer> {
    let wanted = wanted(algorithm.or(fields.text("algorithm")?))?;
    let versions = Versions::of(vault, asked.0, key, wanted).await?;
    let version = versions.for_new_codes(fields.number("key_version")?.unwrap_or_default())?;
    let (items, is_batch) = items_of(fields)?;
    let inputs = items.iter().map(|item| Ok((version.clone(), input(item)?))).collect();
    let codes = compute(vault, asked, inputs).await?;
    let told = |code: Zeroizing<Vec<u8>>| vec![("hmac", Datum::Versioned(version.version, code.to_vec()))];
    let outcomes = codes.into_iter().map(|code| code.map(told)).collect();
    answer(&items, is_batch, outcomes)
}

/// `verify/N`. A code that is not right is no error: the answer says so. An item of a batch that has an error
/// is not valid either, as in Vault.
pub(super) async fn verify(
    vault: &Vault,
    asked: Ask<'_>,
    (key, algorithm): (&str, Option<&str>),
    fields: &Fields,
) -> Result<Answer> {
    let in_body = fields.text("hash_algorithm")?.or(fields.text("algorithm")?);
    let wanted = wanted(algorithm.or(in_body))?;
    let versions = Versions::of(vault, asked.0, key, wanted).await?;
    let (items, is_batch) = items_of(fields)?;
    let (mut inputs, mut given) = (Vec::new(), Vec::new());
    for item in &items {
        let read = code_of(item)
            .and_then(|(version, code)| Ok(((versions.for_old_codes(version)?, input(item)?), code)));
        let (input, code) = match read {
            Ok((input, code)) => (Ok(input), code),
            Err(failure) => (Err(failure), Vec::new()),
        };
        inputs.push(input);
        given.push(code);
    }
    let codes = compute(vault, asked, inputs).await?;
    let told = |(code, given): (Result<Zeroizing<Vec<u8>>>, Vec<u8>)| match code {
        Ok(code) => Ok(vec![("valid", Datum::Flag(given.len() == code.len() && ct_eq(&code, &given)))]),
        Err(failure) if is_batch => {
            let error = Datum::Text(failure.to_string().into());
            Ok(vec![("error", error), ("valid", Datum::Flag(false))])
        }
        Err(failure) => Err(failure),
    };
    let outcomes = codes.into_iter().zip(given).map(told).collect();
    answer(&items, is_batch, outcomes)
}

/// The versions of a key for HMAC, the newest first, as the nodes show them now.
struct Versions(Vec<Arc<KeyInfo>>);

impl Versions {
    async fn of(vault: &Vault, caller: &Caller, key: &str, wanted: Option<Sha2>) -> Result<Versions> {
        let shown = vault.versions.shown(&caller.asker, &vault.queue, key).await?;
        let properties = &shown[0].properties;
        let of_key = hash_of(&properties.cipher).filter(|_| properties.modes.contains(&Mode::Hmac));
        let of_key = of_key.ok_or_else(|| bad("the key is not for HMAC: make one of type hmac for it"))?;
        match wanted.is_none_or(|wanted| wanted == of_key) {
            true => Ok(Versions(shown.into_iter().map(Arc::new).collect())),
            false => Err(bad(&format!(
                "the key is for HMAC with {} alone: leave out the algorithm, or take another key",
                name_of(of_key)
            ))),
        }
    }

    /// The version with this number; the newest for 0. Nodes give codes of a version that is retired to the
    /// gateway, which may configure keys, for [verification](Self::for_old_codes). So it is refused here.
    fn for_new_codes(&self, number: i64) -> Result<Arc<KeyInfo>> {
        let newest = &self.0[0];
        let version = match number {
            0 => newest,
            _ => self.find(number).ok_or_else(|| match number > i64::from(newest.version) {
                true => bad("cannot generate HMAC: version is higher than the latest key version"),
                false => bad("cannot generate HMAC: version is too old (disallowed by policy)"),
            })?,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let is_over = version.properties.expires.is_some_and(|expires| expires <= now);
        match version.state {
            VersionState::Active if !is_over => Ok(version.clone()),
            _ => Err(bad(&format!(
                "cannot generate HMAC: version {} is retired or has expired, and only verifies; rotate the key",
                version.version
            ))),
        }
    }

    /// The version of a code that is verified. Under a version that somebody may know, no code proves
    /// anything.
    fn for_old_codes(&self, number: u32) -> Result<Arc<KeyInfo>> {
        let version = self.find(i64::from(number)).ok_or_else(|| match number > self.0[0].version {
            true => bad("invalid HMAC: version is too new"),
            false => bad("cannot verify HMAC: version is too old (disallowed by policy)"),
        })?;
        match version.state {
            VersionState::Compromised => Err(bad(&format!(
                "cannot verify HMAC: version {number} is compromised, so anybody may have made the code"
            ))),
            _ => Ok(version.clone()),
        }
    }

    fn find(&self, number: i64) -> Option<&Arc<KeyInfo>> {
        let has = |info: &&Arc<KeyInfo>| i64::from(info.version) == number;
        self.0.iter().find(has).filter(|info| info.version >= info.least_version)
    }
}

/// The codes of messages. Those of one version and length are one request to the nodes.
async fn compute(vault: &Vault, (caller, call): Ask<'_>, inputs: Vec<Result<Input>>) -> Result<Codes> {
    let mut alike: BTreeMap<(u32, usize), Vec<usize>> = BTreeMap::new();
    for (at, input) in inputs.iter().enumerate() {
        if let Ok((version, message)) = input {
            alike.entry((version.version, message.len())).or_default().push(at);
        }
    }
    let wrong = |input: &Result<Input>| match input {
        Ok(_) => Err(bad("its code was not computed")),
        Err(failure) => Err(failure.clone()),
    };
    let mut codes: Codes = inputs.iter().map(wrong).collect();
    for group in alike.values().flat_map(|all| all.chunks(MAX_CODES)) {
        // A token that is revoked in the middle of a batch stops there.
        caller.allow(vault, call)?;
        let of_group = group.iter().filter_map(|at| inputs[*at].as_ref().ok());
        let messages: Vec<_> = of_group.clone().map(|(_, message)| message.clone()).collect();
        let Some(version) = of_group.map(|(version, _)| version.clone()).next() else { continue };
        let computed = caller.asker.ask(&vault.queue, move |client| {
            let messages: Vec<&[u8]> = messages.iter().map(|message| message.as_slice()).collect();
            let key = client.key_with_info(&version);
            key.hmac(&messages, key.hmac_hash()?.hash_bytes())
        });
        match computed.await {
            Ok(computed) => group.iter().zip(computed).for_each(|(at, code)| codes[*at] = Ok(code)),
            Err(Failure::Bad(message)) => group.iter().for_each(|at| codes[*at] = Err(bad(&message))),
            // Nothing is known of any code: that must not look like codes that are wrong.
            Err(failure) => return Err(failure),
        }
    }
    Ok(codes)
}

/// The items of a batch, or the one message. What stands beside a batch is ignored, as in Vault.
fn items_of(fields: &Fields) -> Result<(Vec<Fields>, bool)> {
    let batch = fields.batch()?;
    let is_batch = batch.is_some();
    Ok((batch.unwrap_or_else(|| vec![fields.clone()]), is_batch))
}

/// The answer. As in Vault, its status is 200 also if items of a batch have errors.
fn answer(items: &[Fields], is_batch: bool, mut outcomes: Vec<Result<Message>>) -> Result<Answer> {
    if !is_batch {
        return outcomes.pop().ok_or_else(|| bad("missing input"))?.map(Answer::data);
    }
    let reference = |item: &Fields| -> Result<Option<String>> {
        Ok(item.text("reference")?.filter(|text| !text.is_empty()).map(str::to_owned))
    };
    let with_reference = |(item, outcome)| Ok((reference(item)?, outcome));
    let outcomes: Result<Vec<Outcome>> = items.iter().zip(outcomes).map(with_reference).collect();
    Ok(Answer::data(Data::Results(outcomes?)))
}

fn input(item: &Fields) -> Result<Arc<Zeroizing<Vec<u8>>>> {
    let text = item.text("input")?.ok_or_else(|| bad("missing input for HMAC"))?;
    let message = Zeroizing::new(base64(text, "input")?);
    match message.len() > MAX_CHAINED {
        true => {
            Err(bad(&format!("input has more than {MAX_CHAINED} bytes; have the code of its hash computed")))
        }
        false => Ok(Arc::new(message)),
    }
}

/// The code that is to be verified, with the version of its key.
fn code_of(item: &Fields) -> Result<(u32, Vec<u8>)> {
    for other in ["signature", "cmac"] {
        if item.text(other)?.is_some_and(|text| !text.is_empty()) {
            return Err(bad(&format!("{other} cannot be verified: this gateway verifies hmac only")));
        }
    }
    let text = item.text("hmac")?.filter(|text| !text.is_empty());
    let (version, encoded) = ciphertext::versioned(text.ok_or_else(|| bad("missing hmac"))?, "HMAC")?;
    let code = STANDARD.decode(encoded).map_err(|_| bad("unable to decode verification HMAC as base64"))?;
    Ok((version, code))
}

/// The hash of this name; `None` if there is no name, which means that of the key.
fn wanted(algorithm: Option<&str>) -> Result<Option<Sha2>> {
    let Some(name) = algorithm.filter(|name| !name.is_empty()) else { return Ok(None) };
    let found = Sha2::ALL.into_iter().find(|hash| name_of(*hash) == name);
    found.map(Some).ok_or_else(|| {
        let shown: String = name.chars().take(32).collect();
        let all = Sha2::ALL.map(name_of).join(", ");
        bad(&format!("unsupported algorithm {shown:?}; the nodes compute HMAC with {all}"))
    })
}

/// As Vault names it.
fn name_of(hash: Sha2) -> &'static str {
    match hash {
        Sha2::Sha256 => "sha2-256",
        Sha2::Sha384 => "sha2-384",
        Sha2::Sha512 => "sha2-512",
    }
}

fn bad(message: &str) -> Failure {
    Failure::Bad(message.into())
}
