//! Some keys at a time: their shares are read, carried over together, and put back in their places.

use polyclave_protocol::Error;
use polyclave_protocol::any::AnySetup;
use polyclave_protocol::service::{Refreshed, ServiceConfig, Stored};
use polyclave_protocol::session::AgreedSession;
use polyclave_store::{HeldKey, RefreshedKey, Store, Which};
use polyclave_transport::TlsNet;

use super::give_up;
use crate::Result;
use crate::computation::key::{HASH_KEY, Shares};
use crate::error::system;
use crate::material::state::Material;

/// How many keys an error names.
const MAX_NAMED: usize = 5;

/// Some keys under other common secrets. Ends the wish for fresh ones if this node's shares of a key cannot
/// be read, or if those of two nodes do not fit: it would end like this again.
pub(super) fn refresh_values(
    material: &Material,
    [old, new]: [&AnySetup; 2],
    keys: &[HeldKey],
    session: &mut AgreedSession,
    net: &mut TlsNet,
) -> Result<Vec<RefreshedKey>> {
    let mut refreshed = read(&material.store, keys).inspect_err(|_| give_up(material))?;
    let values: Vec<Stored<'_>> = refreshed
        .iter()
        .flat_map(|key| &key.shares)
        .map(|(part, bytes)| if part == HASH_KEY { Stored::Elements(bytes) } else { Stored::Value(bytes) })
        .collect();
    if values.is_empty() {
        return Ok(refreshed);
    }
    let outcome = material.config.refresh(old, new, session.stream(), &values, net);
    let Refreshed { stored, faults } = outcome.map_err(|e| match e {
        Error::SharesDiffer { first, second, values } => {
            give_up(material);
            Error::System(format!(
                "{first} and {second} hold different shares of {}: the memory or disk of one of them is damaged or was changed, or it \
                 cheats. Restore the backup of that node (`polyclave node restore`), or delete the key at all nodes, and order the \
                 refresh again. Nothing was changed",
                named(keys, &refreshed, &values)
            ))
        }
        e => e,
    })?;
    if !faults.outvoted.is_empty() {
        let nodes = material.members.names_of(faults.outvoted).join(", ");
        tracing::warn!(
            nodes,
            "sent something wrong while stored keys got fresh shares; the others corrected it"
        );
    }
    let mut fresh = stored.into_iter();
    for share in refreshed.iter_mut().flat_map(|key| key.shares.values_mut()) {
        *share = fresh.next().ok_or_else(|| Error::System("not all shares were refreshed".into()))?;
    }
    Ok(refreshed)
}

/// The keys, with this node's shares.
fn read(store: &Store, keys: &[HeldKey]) -> Result<Vec<RefreshedKey>> {
    let read = |key: &HeldKey| {
        let name = key.info.as_ref().map(|info| info.properties.name.clone()).unwrap_or_default();
        let shares = shares_of(store, &name, key.id).map_err(|e| {
            Error::System(format!(
                "this node's share of the key {} cannot be read: {e}; or delete the key at all nodes. Then order the refresh again",
                label(key)
            ))
        })?;
        Ok(RefreshedKey { shares, id: key.id, name })
    };
    keys.iter().map(read).collect()
}

fn shares_of(store: &Store, name: &str, id: [u8; 16]) -> Result<Shares> {
    let key = store.find(name, Which::Id(id)).map_err(system)?;
    Ok(key.ok_or_else(|| Error::System("it is gone".into()))?.shares.clone())
}

/// The keys that own some of the carried values, as a text for people: the first ones by their names.
fn named(keys: &[HeldKey], refreshed: &[RefreshedKey], values: &[usize]) -> String {
    let mut end = 0;
    let mut labels = Vec::new();
    for (key, refreshed) in keys.iter().zip(refreshed) {
        let own = end..end + refreshed.shares.len();
        end = own.end;
        if values.iter().any(|value| own.contains(value)) {
            labels.push(label(key));
        }
    }
    let more = labels.len().saturating_sub(MAX_NAMED);
    labels.truncate(MAX_NAMED);
    let (what, names) = (if labels.len() == 1 { "the key" } else { "the keys" }, labels.join(", "));
    if more == 0 { format!("{what} {names}") } else { format!("{what} {names} and {more} more") }
}

/// A version of a key, for people.
fn label(key: &HeldKey) -> String {
    match &key.info {
        Some(info) if info.version == 1 => format!("'{}'", info.properties.name),
        Some(info) => format!("'{}' (version {})", info.properties.name, info.version),
        None => format!("with the id {}", hex::encode(key.id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_store::KeyState;
    use polyclave_store::testing::key;

    #[test]
    fn values_that_do_not_fit_are_told_as_keys_and_many_are_counted() {
        let (mut keys, mut refreshed) = (Vec::new(), Vec::new());
        for seed in 0..9 {
            let mut stored = key(&format!("k{seed}"), seed);
            stored.info.version = if seed == 2 { 3 } else { 1 };
            refreshed.push(RefreshedKey { name: String::new(), id: stored.info.id, shares: stored.shares });
            let (id, state, deletion_begun) = (stored.info.id, KeyState::Announced, false);
            keys.push(HeldKey { id, state, info: Some(stored.info), deletion_begun });
        }
        // Each has two values.
        assert_eq!(named(&keys, &refreshed, &[0, 1]), "the key 'k0'");
        assert_eq!(named(&keys, &refreshed, &[3, 4]), "the keys 'k1', 'k2' (version 3)");
        let all: Vec<usize> = (0..18).collect();
        assert!(named(&keys, &refreshed, &all).ends_with("'k4' and 4 more"));
    }
}
