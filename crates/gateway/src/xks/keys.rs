//! Keys as KMS sees them, and their current versions.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use polyclave_api::{KeyInfo, Mode, Usage, VersionState};
use serde::Serialize;

use super::error::{Kind, Result};
use crate::nodes::Asker;
use crate::queue::Queue;

/// How long a version is taken for the current one. Within this time a new version is used.
const FRESH: Duration = Duration::from_secs(30);

/// Who asks the nodes.
#[derive(Clone, Copy)]
pub(super) struct Nodes<'a> {
    pub(super) asker: &'a Asker,
    pub(super) queue: &'a Queue,
}

/// The current versions of keys, as the nodes have shown them. It has only keys that the gateway's file
/// names.
#[derive(Default)]
pub(crate) struct Current(Mutex<HashMap<String, (Instant, KeyInfo)>>);

impl Current {
    /// The current version, as the nodes show it now.
    pub(super) async fn shown(&self, nodes: Nodes<'_>, key: &str) -> Result<KeyInfo> {
        let name = key.to_owned();
        let info = nodes.asker.ask(nodes.queue, move |client| client.info(&name)).await?;
        self.0.lock().insert(key.into(), (Instant::now(), info.clone()));
        Ok(info)
    }

    /// The current version, and whether the nodes have shown it for this request.
    pub(super) async fn known(&self, nodes: Nodes<'_>, key: &str) -> Result<(KeyInfo, bool)> {
        let known = self.0.lock().get(key).cloned();
        match known {
            Some((at, info)) if at.elapsed() < FRESH => Ok((info, false)),
            _ => Ok((self.shown(nodes, key).await?, true)),
        }
    }
}

/// What is told of a key.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyMetadata {
    key_spec: String,
    key_usage: Vec<&'static str>,
    key_status: &'static str,
}

/// What is told of the current version of a key.
pub(super) fn metadata(info: &KeyInfo) -> KeyMetadata {
    let uses = [(Usage::Encrypt, "ENCRYPT"), (Usage::Decrypt, "DECRYPT")];
    let key_usage = uses.iter().filter(|(usage, _)| is_for(info, *usage)).map(|(_, name)| *name).collect();
    let is_enabled = is_in_force(info) && state(info) == VersionState::Active;
    KeyMetadata {
        // KMS takes AES_256 and nothing else.
        key_spec: info.properties.cipher.to_uppercase().replace('-', "_"),
        key_usage,
        key_status: if is_enabled { "ENABLED" } else { "DISABLED" },
    }
}

/// Refuses a use that a version of a key is not for, or not any more. The nodes decide it, too.
pub(super) fn check_use(info: &KeyInfo, usage: Usage) -> Result<()> {
    if info.properties.cipher != "aes-256" || !is_for(info, usage) {
        let why =
            format!("the key is not for this: it has to be one of aes-256, for gcm, with the usage {usage}");
        return Err(Kind::InvalidKeyUsage.exception(why));
    }
    let may = match state(info) {
        VersionState::Active => true,
        VersionState::Deactivated => usage == Usage::Decrypt,
        VersionState::Compromised => false,
    };
    match may && is_in_force(info) {
        true => Ok(()),
        false => Err(Kind::InvalidState.exception("this version of the key is not used for this any more")),
    }
}

fn is_for(info: &KeyInfo, usage: Usage) -> bool {
    info.properties.modes.contains(&Mode::Gcm) && info.properties.usage.contains(&usage)
}

/// Its state now, by this machine's clock.
fn state(info: &KeyInfo) -> VersionState {
    let is_expired = info.properties.expires.is_some_and(|expires| expires <= now());
    if is_expired { info.state.max(VersionState::Deactivated) } else { info.state }
}

fn is_in_force(info: &KeyInfo) -> bool {
    info.version >= info.least_version && info.ends().is_none_or(|ends| ends > now())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use polyclave_api::{NewKey, Origin};

    use super::*;

    fn key(change: impl FnOnce(&mut KeyInfo)) -> KeyInfo {
        let properties = NewKey::for_modes("a", "aes-256", &[Mode::Gcm], 1 << 20);
        let mut info = KeyInfo::first(properties, [1; 16], Origin::Generated, now(), vec![0; 8]);
        change(&mut info);
        info
    }

    #[test]
    fn a_key_is_told_and_used_as_it_is() {
        /// A change of the key; its length, what it is for and how it is, as told; and why either use is
        /// refused.
        type Case<'c> = (fn(&mut KeyInfo), &'c str, Vec<&'c str>, &'c str, [Option<Kind>; 2]);
        let all = vec!["ENCRYPT", "DECRYPT"];
        let (ok, usage, state) = (None, Some(Kind::InvalidKeyUsage), Some(Kind::InvalidState));
        let cases: [Case<'_>; 10] = [
            (|_| (), "AES_256", all.clone(), "ENABLED", [ok, ok]),
            (|of| of.properties.cipher = "aes-128".into(), "AES_128", all.clone(), "ENABLED", [usage, usage]),
            (|of| of.properties.modes = vec![Mode::Ecb], "AES_256", vec![], "ENABLED", [usage, usage]),
            (
                |of| of.properties.usage = vec![Usage::Encrypt],
                "AES_256",
                vec!["ENCRYPT"],
                "ENABLED",
                [ok, usage],
            ),
            (
                |of| of.properties.usage = vec![Usage::Decrypt],
                "AES_256",
                vec!["DECRYPT"],
                "ENABLED",
                [usage, ok],
            ),
            (|of| of.state = VersionState::Deactivated, "AES_256", all.clone(), "DISABLED", [state, ok]),
            (|of| of.state = VersionState::Compromised, "AES_256", all.clone(), "DISABLED", [state, state]),
            (|of| of.properties.expires = Some(now() - 1), "AES_256", all.clone(), "DISABLED", [state, ok]),
            (|of| of.least_version = 2, "AES_256", all.clone(), "DISABLED", [state, state]),
            (
                |of| {
                    of.properties.lifetime = polyclave_api::Lifetime::Session { seconds: 1 };
                    of.made = now() - 2;
                },
                "AES_256",
                all,
                "DISABLED",
                [state, state],
            ),
        ];
        for (at, (change, key_spec, key_usage, key_status, refused)) in cases.into_iter().enumerate() {
            let info = key(change);
            let told = KeyMetadata { key_spec: key_spec.into(), key_usage, key_status };
            assert_eq!(metadata(&info), told, "{at}");
            let kinds = [Usage::Encrypt, Usage::Decrypt].map(|of| check_use(&info, of).err().map(|e| e.kind));
            assert_eq!(kinds, refused, "{at}");
        }
    }
}
