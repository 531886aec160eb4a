//! Agreeing on the nodes' common secrets (PRSS keys), once, with all nodes present.
//!
//! Every node stores what came of it before any says that it is agreed; so after a crash at any moment either nobody counts
//! on it, and a new agreement replaces it, or everybody has stored it, and it is completed.

use std::sync::{Arc, PoisonError};

use crate::Result;
use polyclave_protocol::service::ServiceScheme;
use polyclave_protocol::session::{Terms, hello};
use polyclave_protocol::{Error, Party, PartySet};

use crate::agreement::tell_all;
use crate::core::{CONNECT, Core, SetUp, system};
use crate::epoch::Epoch;
use crate::peers::Order;

const NOTHING: u8 = 0;
const STORED: u8 = 1;
const AGREED: u8 = 2;

/// Takes what is stored, if it was agreed on.
pub(crate) fn load<S: ServiceScheme>(core: &Core<S>) -> Result<()> {
    if let Some(stored) = core.store.setup().map_err(system)?.filter(|stored| stored.agreed) {
        take(core, stored.id, &stored.bytes)?;
    }
    Ok(())
}

fn take<S: ServiceScheme>(core: &Core<S>, id: [u8; 32], bytes: &[u8]) -> Result<()> {
    let setup = core.scheme.restore_setup(core.me, bytes)?;
    if core.scheme.keeps_stock() && !core.scheme.renews() {
        let epoch = Epoch::standing(core, id, core.scheme.restore_setup(core.me, bytes)?)?;
        // Agreed on again, by nodes that were not sure: they are the same, and so is the stock.
        let mut current = core.epoch.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_none_or(|before| before.id != epoch.id) {
            *current = Some(Arc::new(epoch));
        }
    }
    *core.set_up.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(SetUp { id, setup }));
    Ok(())
}

/// Has all nodes agree, if this one leads and all are there.
pub(crate) fn lead<S: ServiceScheme>(core: &Core<S>, name: [u8; 16]) -> Result<()> {
    for peer in Party::all(core.nodes).filter(|p| *p != core.me) {
        core.peers.order(peer, Order::SetUp { name })?;
    }
    join(core, name)
}

/// Takes part in an agreement.
pub(crate) fn join<S: ServiceScheme>(core: &Core<S>, name: [u8; 16]) -> Result<()> {
    let all = PartySet::all(core.nodes);
    // One at a time: two would replace each other's proposals.
    let _alone = core.setting_up.lock().unwrap_or_else(PoisonError::into_inner);
    let mut net = core.mesh.open(&format!("set-up {}", hex::encode(name)), all, CONNECT)?;
    let terms = Terms::new(core.nodes).with("cluster", &core.cluster_digest);
    let session = hello(&core.scheme.terms(terms), &mut net)?;
    let stored = core.store.setup().map_err(system)?;
    let mut mine = [NOTHING; 33];
    if let Some(stored) = &stored {
        mine[0] = if stored.agreed { AGREED } else { STORED };
        mine[1..].copy_from_slice(&stored.id);
    }
    let mut states = tell_all(&mine, &mut net)?;
    states.push((core.me, mine));
    if let Some((_, agreed)) = states.iter().find(|(_, state)| state[0] == AGREED) {
        // Whoever agreed knew that all had stored it.
        if let Some((party, _)) = states.iter().find(|(_, state)| state[1..] != agreed[1..]) {
            return Err(Error::System(format!(
                "{party} lacks the common secrets that other nodes have agreed on; restore its backup, since its shares of \
                 keys are lost without one"
            )));
        }
    } else {
        let setup = core.scheme.set_up(&mut net)?;
        let bytes = core.scheme.save_setup(&setup);
        core.store.put_setup(session.id(), 1, &bytes, false).map_err(system)?;
        tell_all(&[1], &mut net)?;
    }
    let stored = core.store.setup().map_err(system)?;
    let stored = stored.ok_or_else(|| Error::System("the common secrets were not stored".into()))?;
    core.store.agree_setup(stored.id).map_err(system)?;
    take(core, stored.id, &stored.bytes)?;
    tracing::info!(id = %hex::encode(&stored.id[..8]), "the nodes have agreed on their common secrets");
    Ok(())
}
