//! The node's side of the gate before comparisons that a guess at one bit of its share of the MAC key can make fail ([`GuessGuard`]): consistency of
//! transfers, of trees of seeds, and of products with shares of the key (`ot/`, `mascot/cope.rs` of the protocol crate).
//!
//! A cheater learns one bit from each of them that fails. So one takes place at a time, between all streams and requests of an epoch (the gate of its
//! set-up), between epochs, since sessions of one that was given up may still run, and between all workers (`store/src/checks.rs`); none takes place under quarantine, or while a failure could not be counted; and one that
//! fails is counted, with the quarantine, before this node sends anything more. Until the operators order a refresh, a node therefore has one
//! such failure under a MAC key, however many streams and workers it has.

use std::sync::{Arc, Weak};

use polyclave_protocol::spdz::Guesses;
use polyclave_protocol::{EARLIER_CHECK, Error, GuessGuard};

use crate::Result;
use crate::error::system;
use crate::material::quarantine::Failure;
use crate::material::state::Material;

/// What was under way when such a comparison failed.
const DURING: &str = "transfers under the MAC key were checked";

/// Stands before the comparisons of one epoch, or of one round of a refresh.
struct Guard {
    /// What it guards belongs to this.
    material: Weak<Material>,
    /// The node carries keys over to a fresh MAC key, which it also does under quarantine.
    refreshes: bool,
}

impl Material {
    /// What stands before comparisons in an epoch, or in a round of a refresh.
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
        // It is counted, or remembered.
        material.quarantine(failure(&error));
        Ok(Some(error))
    }
}
