//! Keys as callers name and see them: aliases, ARNs and key check values.
//!
//! An alias is the name of a key of the nodes, and means its current version. The resource of an ARN is the
//! id of one version. Region and account of an ARN mean nothing here; in answers the region is that of the
//! request's signature.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::{CheckKind, KeyInfo, Reason};
use polyclave_client::{Client, Error};
use polyclave_config::check_name;
use polyclave_payments::Purpose;

use super::error::{Exception, Result};
use crate::nodes::Asker;
use crate::queue::Queue;

const ARN: &str = "arn:aws:payment-cryptography:";
/// The account in ARNs: there are none here.
const ACCOUNT: &str = "000000000000";
/// The most ids that are remembered.
const MAX: usize = 100_000;
/// How long an id that nobody knows is not looked for again: that takes a list of all keys.
const NOT_AGAIN_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a check value.
const CHECK_VALUE: usize = 3;

/// A key as a request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyId {
    /// The current version of a name.
    Alias(String),
    /// One version.
    Version([u8; 16]),
}

impl KeyId {
    /// Reads a member of a request.
    pub(super) fn read(member: &'static str, text: &str) -> Result<KeyId> {
        let wrong = || {
            Exception::Invalid(member, "alias/NAME, or the ARN of an alias or a key, is expected".to_owned())
        };
        let resource = match text.strip_prefix(ARN) {
            None => text,
            Some(rest) => {
                let parts: Vec<&str> = rest.splitn(3, ':').collect();
                let [region, account, resource] = parts[..] else { return Err(wrong()) };
                let is_account = account.len() == 12 && account.bytes().all(|c| c.is_ascii_digit());
                if region.is_empty() || !is_account {
                    return Err(wrong());
                }
                match resource.strip_prefix("key/") {
                    None => resource,
                    Some(id) => {
                        let mut bytes = [0; 16];
                        // AWS has other ids: no key here has one of these.
                        return match hex::decode_to_slice(id, &mut bytes) {
                            Ok(()) => Ok(KeyId::Version(bytes)),
                            Err(_) => Err(Exception::NoKey(text.chars().take(160).collect())),
                        };
                    }
                }
            }
        };
        let name = resource.strip_prefix("alias/").ok_or_else(wrong)?;
        match check_name("key", name) {
            Ok(()) => Ok(KeyId::Alias(name.into())),
            // No key can have this name.
            Err(_) => Err(Exception::NoKey(text.chars().take(160).collect())),
        }
    }

    fn text(&self) -> String {
        match self {
            KeyId::Alias(name) => format!("alias/{name}"),
            KeyId::Version(id) => hex::encode(id),
        }
    }
}

/// A key of a request, as the nodes show it.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) info: KeyInfo,
    /// Its check value, in upper-case hexadecimal digits.
    pub(super) check_value: String,
    pub(super) arn: String,
}

impl Key {
    /// The version that was shown, for the client.
    pub(super) fn numbered(&self) -> String {
        format!("{}@{}", self.info.properties.name, self.info.version)
    }
}

/// What is remembered of keys. Ids and check values belong to their version for ever.
#[derive(Default)]
pub(super) struct Known {
    /// Names and numbers of versions by their ids.
    ids: Mutex<Ids>,
    check_values: Arc<Mutex<HashMap<[u8; 16], Vec<u8>>>>,
}

#[derive(Default)]
struct Ids {
    of: HashMap<[u8; 16], (String, u32)>,
    listed: Option<Instant>,
}

impl Known {
    /// The name of a key, with the number of the version if one was meant.
    pub(super) async fn name_of(&self, id: &KeyId, asker: &Asker, queue: &Queue) -> Result<(String, String)> {
        let version = match id {
            KeyId::Alias(name) => return Ok((name.clone(), name.clone())),
            KeyId::Version(version) => version,
        };
        let find = |ids: &Ids| ids.of.get(version).map(|(name, number)| (name.clone(), *number));
        let listed_lately = {
            let ids = self.ids.lock();
            if let Some((name, number)) = find(&ids) {
                return Ok((name.clone(), format!("{name}@{number}")));
            }
            ids.listed.is_some_and(|at| at.elapsed() < NOT_AGAIN_WITHIN)
        };
        if !listed_lately {
            let listing = asker.ask(queue, Client::keys).await?;
            let mut ids = self.ids.lock();
            ids.listed = Some(Instant::now());
            ids.of = listing
                .keys
                .into_iter()
                .take(MAX)
                .map(|listed| (listed.info.id, (listed.info.properties.name, listed.info.version)))
                .collect();
            if let Some((name, number)) = find(&ids) {
                return Ok((name.clone(), format!("{name}@{number}")));
            }
        }
        Err(Exception::NoKey(id.text()))
    }

    /// The keys of these names, with their check values.
    pub(super) async fn show(
        &self,
        (asker, queue): (&Asker, &Queue),
        ids: &[KeyId],
        names: Vec<String>,
        region: &str,
    ) -> Result<Vec<Key>> {
        let at = Arc::new(AtomicUsize::new(0));
        let (reached, check_values) = (at.clone(), self.check_values.clone());
        let shown = asker.try_to_ask(queue, move |client| {
            let mut all = Vec::new();
            for (i, name) in names.iter().enumerate() {
                reached.store(i, Relaxed);
                let info = client.key(name)?.info()?.clone();
                let check_value = check_value(client, &info, &check_values)?;
                all.push((info, check_value));
            }
            Ok(all)
        });
        let shown = shown.await?.map_err(|error| match &error {
            Error::Refused { refusal, .. } if refusal.reason == Reason::NoSuchKey => {
                let id = ids.get(at.load(Relaxed)).map(KeyId::text);
                Exception::NoKey(id.unwrap_or_default())
            }
            _ => error.into(),
        })?;
        let key = |(info, check_value): (KeyInfo, Vec<u8>)| Key {
            check_value: hex::encode_upper(check_value),
            arn: format!("{ARN}{region}:{ACCOUNT}:key/{}", hex::encode(info.id)),
            info,
        };
        Ok(shown.into_iter().map(key).collect())
    }
}

/// The check value of a key: of Triple DES the encryption of zeros (ANSI X9.24-1), as AWS shows it, and of
/// AES the CMAC of zeros, which is in the record of the key.
///
/// Where codes are computed with a key of Triple DES by CMAC, the encryption of zeros is what its subkeys are
/// made of. So of these keys the CMAC is shown.
fn check_value(
    client: &Client,
    info: &KeyInfo,
    known: &Mutex<HashMap<[u8; 16], Vec<u8>>>,
) -> polyclave_client::Result<Vec<u8>> {
    let recorded = || info.check_value.iter().take(CHECK_VALUE).copied().collect();
    let by_zeros = info.properties.cipher.starts_with("3des")
        && info.properties.purpose().is_some_and(|purpose| purpose != Purpose::MacCmac);
    if !by_zeros {
        return Ok(recorded());
    }
    if let Some(value) = known.lock().get(&info.id) {
        return Ok(value.clone());
    }
    let value = match client.check(info, CheckKind::Zeros) {
        Ok(value) => value.into_iter().take(CHECK_VALUE).collect(),
        // The nodes do not show it of a key from which others were derived, and of a copy.
        Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::NotForThis => recorded(),
        Err(e) => return Err(e),
    };
    let mut known = known.lock();
    if known.len() >= MAX {
        known.clear();
    }
    known.insert(info.id, value.clone());
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_by_alias_and_by_arn() {
        let read = |text: &str| KeyId::read("KeyIdentifier", text);
        let alias = Ok(KeyId::Alias("pin-1".into()));
        assert_eq!(read("alias/pin-1"), alias);
        assert_eq!(read("arn:aws:payment-cryptography:eu-central-1:111122223333:alias/pin-1"), alias);
        let id = "00112233445566778899aabbccddeeff";
        let version = read(&format!("arn:aws:payment-cryptography:us-east-1:000000000000:key/{id}"));
        assert_eq!(version.map(|key| key.text()), Ok(id.into()));
        for wrong in [
            "",
            "pin-1",
            "key/00112233445566778899aabbccddeeff",
            "arn:aws:kms:us-east-1:000000000000:alias/pin-1",
            "arn:aws:payment-cryptography:us-east-1:0:alias/pin-1",
            "arn:aws:payment-cryptography:us-east-1:alias/pin-1",
        ] {
            assert!(matches!(read(wrong), Err(Exception::Invalid("KeyIdentifier", _))), "{wrong}");
        }
        for nobody in [
            "alias/",
            "alias/a/b",
            "alias/pin@1",
            "alias/..",
            "arn:aws:payment-cryptography:us-east-1:000000000000:key/kwapwa6qaifllw2h",
        ] {
            assert!(matches!(read(nobody), Err(Exception::NoKey(_))), "{nobody}");
        }
    }
}
