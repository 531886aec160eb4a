//! The node's gate before the comparisons that can tell a peer one bit of this node's share of the MAC key
//! ([`GuessGuard`]): consistency of transfers, of trees of seeds, and of products with shares of the key
//! (`ot/`, `mascot/cope.rs` of the protocol crate).
//!
//! A peer that cheats guesses a bit, and learns from each comparison that fails that its guess was wrong. So:
//!
//! * **One comparison at a time.** The gate of the setup keeps the streams and requests of one epoch apart.
//!   This one also keeps epochs apart, because sessions of an epoch that was given up may still run.
//!   `store/src/checks.rs` keeps workers apart.
//! * **None after a failure.** None takes place under quarantine, or while a failure could not be counted.
//! * **A failure counts at once.** The node writes down the failure and the quarantine before it sends
//!   anything more.
//!
//! So until the operators order a refresh, a node has one such failure under a MAC key, however many streams
//! and workers it has.

use std::sync::{Arc, Weak};

use polyclave_protocol::authenticated::Guesses;
use polyclave_protocol::{EARLIER_CHECK, Error, GuessGuard};

use crate::Result;
use crate::error::system;
use crate::material::quarantine::Failure;
use crate::material::state::Material;

/// What was under way, in the reason of a quarantine.
const DURING: &str = "transfers under the MAC key were checked";

/// The gate before the comparisons of one epoch, or of one round of a refresh.
struct Guard {
    /// The material of the node whose MAC key it guards.
    material: Weak<Material>,
    /// The comparisons belong to a refresh. The node takes part in one under quarantine, too.
    refreshes: bool,
}

impl Material {
    /// The gate before the comparisons of an epoch, or of a round of a refresh.
    pub(super) fn guard(&self, refreshes: bool) -> Arc<dyn GuessGuard> {
        Arc::new(Guard { material: self.this.clone(), refreshes })
    }
}

impl GuessGuard for Guard {
    fn look(&self, fault: &mut dyn FnMut() -> Option<Error>) -> Result<Option<Error>> {
        let material = self.material.upgrade().ok_or_else(|| Error::System("this node stops".into()))?;
        let _alone = material.comparing.lock();
        let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
        material.refuse_uncounted()?;
        if material.is_quarantined() && !self.refreshes {
            return earlier;
        }
        let failure = |error: &Error| {
            let name_of = |node| material.members.name_of(node).to_owned();
            Failure::of(error, DURING, name_of)
                .unwrap_or_else(|| Failure::from(format!("a check failed while {DURING}")))
        };
        let mut found = None;
        let compared = material.store.compare_alone(self.refreshes, || {
            found = fault();
            found.as_ref().map(|error| failure(error).quarantine())
        });
        let Some(error) = found else {
            return match compared.map_err(system)? {
                true => Ok(None),
                false => earlier,
            };
        };
        if let Err(e) = compared {
            material.note_uncounted(Guesses { failed: 1, unanswered: 0 }, &e);
        }
        // The failure is counted, or noted as uncounted.
        material.quarantine(failure(&error));
        Ok(Some(error))
    }
}
