//! Some keys at a time: their shares are read, carried over together, and put back in their places.

use polyclave_protocol::Error;
use polyclave_protocol::any::AnySetup;
use polyclave_protocol::service::{Carried, ServiceConfig, Stored};
use polyclave_protocol::session::AgreedSession;
use polyclave_transport::TlsNet;

use super::give_up;
use crate::Result;
use crate::error::system;
use crate::keys::key::{HASH_KEY, Shares};
use crate::material::state::Material;
use crate::store::{CarriedKey, HeldKey, Store, Which};

/// How many keys an error names.
const MOST_NAMED: usize = 5;

/// Some keys under other common secrets. Ends the wish for fresh ones if this node's shares of a key cannot be read, or if those of two
/// nodes do not fit: it would end like this again.
pub(super) fn carry_over(
    material: &Material,
    [old, new]: [&AnySetup; 2],
    keys: &[HeldKey],
    session: &mut AgreedSession,
    net: &mut TlsNet,
) -> Result<Vec<CarriedKey>> {
    let mut carried = read(&material.store, keys).inspect_err(|_| give_up(material))?;
    let values: Vec<Stored<'_>> = carried
        .iter()
        .flat_map(|key| &key.shares)
        .map(|(part, bytes)| if part == HASH_KEY { Stored::Elements(bytes) } else { Stored::Value(bytes) })
        .collect();
    if values.is_empty() {
        return Ok(carried);
    }
    let outcome = material.config.carry_over(old, new, session.stream(), &values, net);
    let Carried { stored, faults } = outcome.map_err(|e| match e {
        Error::SharesDiffer { first, second, values } => {
            give_up(material);
            Error::System(format!(
                "{first} and {second} hold different shares of {}: the memory or disk of one of them is damaged or was changed, or it \
                 cheats. Restore the backup of that node (`polyclave node restore`), or delete the key at all nodes, and order the \
                 refresh again. Nothing was changed",
                named(keys, &carried, &values)
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
    for share in carried.iter_mut().flat_map(|key| key.shares.values_mut()) {
        *share = fresh.next().ok_or_else(|| Error::System("not all shares were carried over".into()))?;
    }
    Ok(carried)
}

/// The keys, with this node's shares.
fn read(store: &Store, keys: &[HeldKey]) -> Result<Vec<CarriedKey>> {
    let name = |key: &HeldKey| key.info.as_ref().map(|info| info.properties.name.clone()).unwrap_or_default();
    let read = |key: &HeldKey| {
        let name = name(key);
        Ok(CarriedKey { shares: shares_of(store, &name, key.id)?, id: key.id, name })
    };
    keys.iter().map(read).collect()
}

/// The keys to which some of the carried values belong, for people: the first ones by their names.
fn named(keys: &[HeldKey], carried: &[CarriedKey], values: &[usize]) -> String {
    let mut first = 0;
    let mut labels = Vec::new();
    for (key, held) in carried.iter().zip(keys) {
        let own = first..first + key.shares.len();
        first = own.end;
        if values.iter().any(|value| own.contains(value)) {
            let version = held.info.as_ref().map_or(1, |info| info.version);
            labels.push(match version {
                1 => format!("'{}'", key.name),
                version => format!("'{}' (version {version})", key.name),
            });
        }
    }
    let more = labels.len().saturating_sub(MOST_NAMED);
    labels.truncate(MOST_NAMED);
    let (what, names) = (if labels.len() == 1 { "the key" } else { "the keys" }, labels.join(", "));
    if more == 0 { format!("{what} {names}") } else { format!("{what} {names} and {more} more") }
}

fn shares_of(store: &Store, name: &str, id: [u8; 16]) -> Result<Shares> {
    let key = store.find(name, Which::Id(id)).map_err(system)?;
    Ok(key.ok_or_else(|| Error::System(format!("the key {name} is gone")))?.shares.clone())
}
