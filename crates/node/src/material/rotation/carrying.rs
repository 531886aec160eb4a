//! Some keys at a time: their shares are read, carried over together, and put back in their places.

use polyclave_protocol::Error;
use polyclave_protocol::any::AnySetup;
use polyclave_protocol::service::{Carried, ServiceConfig, Stored};
use polyclave_protocol::session::AgreedSession;
use polyclave_transport::TlsNet;

use crate::Result;
use crate::error::system;
use crate::keys::key::{HASH_KEY, Shares};
use crate::material::state::Material;
use crate::store::{CarriedKey, HeldKey, Store, Which};

/// Some keys under other common secrets.
pub(super) fn carry_over(
    material: &Material,
    [old, new]: [&AnySetup; 2],
    keys: &[HeldKey],
    session: &mut AgreedSession,
    net: &mut TlsNet,
) -> Result<Vec<CarriedKey>> {
    let name = |key: &HeldKey| key.info.as_ref().map(|info| info.properties.name.clone()).unwrap_or_default();
    let mut carried = Vec::with_capacity(keys.len());
    for key in keys {
        let name = name(key);
        carried.push(CarriedKey { shares: shares_of(&material.store, &name, key.id)?, id: key.id, name });
    }
    let values: Vec<Stored<'_>> = carried
        .iter()
        .flat_map(|key| &key.shares)
        .map(|(part, bytes)| if part == HASH_KEY { Stored::Elements(bytes) } else { Stored::Value(bytes) })
        .collect();
    if values.is_empty() {
        return Ok(carried);
    }
    let Carried { stored, faults } = material.config.carry_over(old, new, session.stream(), &values, net)?;
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

fn shares_of(store: &Store, name: &str, id: [u8; 16]) -> Result<Shares> {
    let key = store.find(name, Which::Id(id)).map_err(system)?;
    Ok(key.ok_or_else(|| Error::System(format!("the key {name} is gone")))?.shares.clone())
}
