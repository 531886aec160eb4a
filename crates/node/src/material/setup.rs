//! Agreement on the nodes' common secrets (PRSS keys), once, with all nodes present.
//!
//! Every node stores the result before any node says that it is agreed. So after a crash at any moment there
//! are two cases: no node relies on the result, and a new agreement replaces it, or all nodes have stored it,
//! and the agreement is completed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_api::{Reason, Refusal};

use crate::Result;
use polyclave_protocol::any::AnySetup;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{hello, random_bytes};
use polyclave_protocol::{Error, Party};

use crate::error::system;
use crate::material::epoch::{LONGEST_MEETING, meet};
use crate::material::state::Material;
use crate::peers::exchange::tell_all;
use crate::peers::orders::Order;
use crate::threads::Crew;

/// The time limit of an agreement.
const WITHIN: Duration = Duration::from_secs(60);
/// The pause between two attempts of the first node.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before the first agreement, to which the pause doubles. It is longer than a node spends
/// in two meetings to which some do not come, so that nodes that are out of step come to the same one.
const LONGEST_FIRST_PAUSE: Duration = Duration::from_secs(16);
const _: () = assert!(LONGEST_FIRST_PAUSE.as_secs() > 2 * LONGEST_MEETING.as_secs());
/// The longest pause. While this node has agreed and a peer says that it has not, the pause doubles up to
/// this: a peer that lies keeps saying so, and a peer that missed the end of an agreement needs one attempt.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

const NOTHING: u8 = 0;
const STORED: u8 = 1;
const AGREED: u8 = 2;

/// The common secrets of the nodes, as this node holds them.
pub(crate) struct LoadedSetup {
    pub(crate) id: [u8; 32],
    pub(crate) setup: AnySetup,
}

/// Loads the stored common secrets if the nodes had agreed on them.
pub(crate) fn load(material: &Material) -> Result<()> {
    if let Some(stored) = material.store.setup().map_err(system)?.filter(|stored| stored.agreed) {
        take(material, stored.id, &stored.bytes)?;
    }
    Ok(())
}

fn take(material: &Material, id: [u8; 32], bytes: &[u8]) -> Result<()> {
    let setup = material.config.restore_setup(material.members.me, bytes)?;
    material.strategy.begin(material, id, bytes)?;
    material.store.use_setup(id);
    *material.setup.write() = Some(Arc::new(LoadedSetup { id, setup }));
    Ok(())
}

/// The attempts of the first node to reach an agreement. Each runs in a thread of its own, so that a peer
/// that is silent in it holds up nothing else.
pub(crate) struct Leader {
    crew: Crew,
    due: Instant,
    pause: Duration,
}

impl Material {
    /// The agreed common secrets.
    pub(crate) fn setup(&self) -> Result<Arc<LoadedSetup>, Refusal> {
        let message = "the nodes have not yet agreed on their common secrets; for this first agreement all of them must run at the same time";
        let setup = self.setup.read().clone();
        setup.ok_or_else(|| Refusal::new(Reason::Unavailable, message))
    }
}

impl Default for Leader {
    fn default() -> Leader {
        Leader { crew: Crew::new("setup", 1), due: Instant::now(), pause: PAUSE }
    }
}

impl Leader {
    /// Starts an agreement if this is the first node, all nodes are connected, and one of them has not
    /// agreed.
    pub(crate) fn lead_if_due(&mut self, material: &Arc<Material>) {
        let all_there = material.network.is_complete();
        let has_agreed = material.setup().is_ok();
        if material.members.me != Party(0)
            || !material.members.is_first_worker()
            || !all_there
            || (has_agreed && material.network.peers.all_set_up())
        {
            return;
        }
        if !self.is_due(has_agreed, Instant::now()) {
            return;
        }
        let for_thread = material.clone();
        let begun = self.crew.spawn(&material.threads, move || match lead(&for_thread) {
            Ok(()) => for_thread.network.peers.note_all_set_up(),
            Err(e) => {
                tracing::warn!(
                    error = for_thread.members.message(&e),
                    "the nodes did not agree on common secrets"
                )
            }
        });
        if let Err(e) = begun {
            tracing::error!(
                error = material.members.message(&e),
                "the nodes are not asked to agree on common secrets"
            );
        }
    }

    /// Whether to try now. If so, this sets when the next attempt is due.
    fn is_due(&mut self, has_agreed: bool, now: Instant) -> bool {
        if !self.crew.has_place() || now < self.due {
            return false;
        }
        let longest = if has_agreed { LONGEST_PAUSE } else { LONGEST_FIRST_PAUSE };
        self.pause = (2 * self.pause).min(longest);
        self.due = now + self.pause;
        true
    }
}

fn lead(material: &Material) -> Result<()> {
    let mut name = [0; 16];
    random_bytes(&mut name)?;
    material.network.order_all(Order::Setup { name })?;
    join(material, name)
}

/// Takes part in an agreement.
pub(crate) fn join(material: &Material, name: [u8; 16]) -> Result<()> {
    // One at a time: two would replace each other's proposals.
    let _alone = material.setting_up.lock();
    let mut net = meet(material, "set-up", name)?;
    net.set_deadline(Some(Instant::now() + WITHIN));
    let parameters = material.members.handshake();
    let session = hello(&material.config.handshake(parameters), &mut net)?;
    let stored = material.store.setup().map_err(system)?;
    let mut mine = [NOTHING; 33];
    if let Some(stored) = &stored {
        mine[0] = if stored.agreed { AGREED } else { STORED };
        mine[1..].copy_from_slice(&stored.id);
    }
    let mut states = tell_all(&mine, &mut net)?;
    states.push((material.members.me, mine));
    if let Some((first, agreed)) = states.iter().find(|(_, state)| state[0] == AGREED) {
        // A node that has agreed knew that all had stored it. (Or it lies; each node speaks for itself only.)
        if let Some((party, _)) = states.iter().find(|(_, state)| state[1..] != agreed[1..]) {
            return Err(Error::System(format!(
                "{party} lacks the common secrets that {first} says all have agreed on; if that is so, restore the backup of \
                 {party}, since its shares of keys are lost without one"
            )));
        }
    } else {
        let setup = material.config.setup(&mut net)?;
        let bytes = material.config.save_setup(&setup);
        material.store.put_setup(session.id(), 1, &bytes, false).map_err(system)?;
        tell_all(&[1], &mut net)?;
    }
    let stored = material.store.setup().map_err(system)?;
    let stored = stored.ok_or_else(|| Error::System("the common secrets were not stored".into()))?;
    material.store.agree_setup(stored.id).map_err(system)?;
    take(material, stored.id, &stored.bytes)?;
    tracing::info!(id = %hex::encode(&stored.id[..8]), "the nodes have agreed on their common secrets");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_only_says_that_it_has_not_agreed_is_asked_less_and_less() {
        let (mut leader, began) = (Leader::default(), Instant::now());
        let mut tries = |has_agreed: bool, from: Duration| {
            let seconds =
                (0..3600).filter(|s| leader.is_due(has_agreed, began + from + Duration::from_secs(*s)));
            seconds.count()
        };
        let first = tries(false, Duration::ZERO);
        assert!((3600 / 16..3600 / 16 + 5).contains(&first), "the first time they are waited for: {first}");
        let denied = tries(true, Duration::from_secs(3600));
        assert!((5..20).contains(&denied), "{denied}");
    }
}
