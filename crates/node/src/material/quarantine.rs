//! What happens when a check fails: this node computes nothing any more, for anybody, until its operators
//! have made fresh common secrets.
//!
//! A failed check shows that a node departed from the protocol. Where there is a MAC key, it can also tell a
//! cheater about a bit of that key. Usually this node cannot know which node cheated. The reason names a node
//! only if that node itself sent something that does not fit ([`Error::Peer`]). So nothing is tried again.
//! The node writes down what happened before it answers, gives up the epoch and all material, and remains
//! under quarantine over restarts. Only a refresh ends it ([`crate::material::refresh`]). A client learns
//! that it happened and nothing about how far its computation had come. The peers learn of it with the next
//! beat.
//!
//! Under replicated sharing a failed check tells a cheater nothing, because there is no MAC key. But it shows
//! that one of the two other nodes cheats, or that the disk of one of the three is damaged, and neither this
//! node nor anybody else can tell which ([`Error::OneOfTwo`]). All three nodes are needed: without one of
//! them there is no third share. So this node stops, too. The reason and the audit log name the two, and
//! claim no more.
//!
//! Where there is a MAC key, the node counts failures under it, and also checks that a peer left without an
//! answer ([`Error::Unanswered`]). An unanswered check ends the epoch, also without a MAC key. It causes no
//! quarantine, because machines are killed, until there are so many failures that the key must be replaced
//! ([`Guesses`], which has the bound). The count is durable: every epoch makes its transfers afresh under the
//! same stored share of the key, and a node that started the count again with each would allow any number of
//! guesses. Every node counts the failures that it has seen: these are the guesses at its own share. A forger
//! needs the shares of all nodes that do not cheat.
//!
//! * **Failures that can tell a bit of the key** happen behind a gate, one at a time between all streams,
//!   requests and workers of the node. The node counts them before the gate opens (`guard.rs`). They come
//!   here as [`Error::Counted`].
//! * **All other failures** tell at most that one guess at the whole key was wrong. Several failures at once,
//!   on streams or at workers, count as one. Otherwise a peer could fail everywhere at once, and so make the
//!   keys too dangerous to refresh. A failure in a later round of a refresh counts again.
//! * **Unanswered checks** count one by one.
//!
//! **Standby pairs.** A check that fails in a standby pair puts the node under quarantine in all: one of the
//! two nodes departed from the protocol, and it is one of the three. Each pair counts for its own MAC key.
//! After so many silences that this key must be replaced, the pair begins anew, and nothing is quarantined.
//!
//! A caller that runs several sessions at once gives [`judge`] the error of each session as soon as that
//! session ends. It does not wait for the others. While a failure or a silence is not written down, the node
//! does not use its MAC key ([`Material::refuse_uncounted`]).

use std::sync::atomic::Ordering::Relaxed;

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::authenticated::{Guesses, MAX_FORGED_LOG2};
use polyclave_protocol::{EARLIER_CHECK, Error, Party};
use polyclave_store::{Quarantine, Store, StoreError};

use crate::audit::Event;
use crate::audit::logbook::Logbook;
use crate::clock::now;
use crate::error::system;
use crate::material::epoch::Epoch;
use crate::material::state::Material;

/// What operators have to do.
pub(crate) const REMEDY: &str = "find out which machine was altered; when all are sound, order fresh common secrets at every \
                                 node (`polyclave node refresh DIR`)";

/// What operators can do if a check names two nodes again and again, and cannot say which of them cheats.
const ALTERNATIVE: &str = "Four nodes under shamir-active go on without a cheater";

/// The reason of a quarantine that follows from a count.
const TOO_MANY: &str = "too many checks failed or were left without an answer under one MAC key";

/// What the node says until the store can be written again.
const UNCOUNTED: &str = "a check that did not pass could not be written down: make room on this node's disk, or let it reach the server of \
                         its store. Until then this node does not use its MAC key";

/// Bits of the MAC keys of all protocols that nodes serve with.
const KEY_BITS: u32 = 64;

/// A check that failed, as it is told to the operator.
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// Names of nodes. If there are any, one of them cheats, or the memory or disk of one of them or of this
    /// node is damaged.
    suspects: Vec<String>,
}

impl Failure {
    /// What an error shows, if a check that failed in the same session caused it. `during` says what was
    /// under way, never how far.
    pub(crate) fn of(error: &Error, during: &str, name_of: impl Fn(Party) -> String) -> Option<Failure> {
        let reason = match error {
            Error::Counted(error) => return Failure::of(error, during, name_of),
            Error::Unanswered { .. } => return None,
            // The failure itself belongs to another session, which judges it.
            Error::CheckFailed { what } if *what == EARLIER_CHECK => return None,
            error if !error.may_be_a_wrong_guess() => return None,
            Error::Peer { peer, .. } => {
                format!("{} sent something that does not fit while {during}", name_of(*peer))
            }
            Error::Equivocation { .. } => format!("a node told others different things while {during}"),
            Error::OneOfTwo { first, second, what } => {
                let mut suspects = [*first, *second];
                suspects.sort_by_key(|node| node.index());
                let suspects = suspects.map(name_of).to_vec();
                let reason = format!(
                    "a check failed while {during} ({what}): {} departed from the protocol, or its memory or disk is damaged, or this \
                     node's own disk is damaged. It cannot be found out which, and the nodes cannot go on without one. {ALTERNATIVE}",
                    suspects.join(" or ")
                );
                return Some(Failure { reason, suspects });
            }
            _ => format!("a check failed while {during}"),
        };
        Some(Failure::from(reason))
    }

    /// The record that the node writes down.
    pub(crate) fn quarantine(&self) -> Quarantine {
        Quarantine { reason: self.reason.clone(), since: now() }
    }

    /// Tells the operator, after the failure is on this node's disk.
    pub(crate) fn announce(&self, logbook: &Logbook) {
        tracing::error!(
            reason = self.reason,
            remedy = REMEDY,
            "this node is under quarantine and serves nothing"
        );
        let detail = match &self.suspects[..] {
            [] => String::new(),
            suspects => format!("one-of={}", suspects.join(",")),
        };
        logbook.note(&Event { detail: &detail, ..Event::of_node("quarantine", "check-failed") });
    }
}

/// Nobody is suspected.
impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure { reason, suspects: Vec::new() }
    }
}

/// Decides what a failure among the nodes means for this one. Returns whether it is a quarantine. `during`
/// says what was under way, never how far. `epoch` is that of the session, if it ran in one. A session of an
/// epoch that was given up meanwhile says nothing about the present one, except by a check that failed. A
/// caller that runs several sessions calls this once for each error, as soon as the session ends.
pub(crate) fn judge(material: &Material, during: &str, epoch: Option<&Epoch>, error: &Error) -> bool {
    judge_named(material, during, epoch, error, |node| material.members.name_of(node).to_owned())
}

/// The same for an error in which nodes have other numbers than they have under these common secrets.
pub(crate) fn judge_named(
    material: &Material,
    during: &str,
    epoch: Option<&Epoch>,
    error: &Error,
    name_of: impl Fn(Party) -> String,
) -> bool {
    let has_mac_key = material.strategy.has_mac_key();
    let end = |why| epoch.iter().for_each(|epoch| material.end_only(epoch, why));
    let failure = match error {
        Error::CheckFailed { what } if *what == EARLIER_CHECK => {
            end(match has_mac_key {
                true => "its MAC key was given up",
                false => "a check has failed under its common secrets",
            });
            return false;
        }
        Error::Unanswered { peer, .. } => {
            tracing::warn!(node = name_of(*peer), during, error = %error, "a node left a check without an answer");
            if has_mac_key {
                material.count_guesses(Guesses { failed: 0, unanswered: 1 });
            }
            end("a node left a check without an answer");
            if !has_mac_key || !material.guesses().must_refresh(KEY_BITS) {
                return false;
            }
            if material.of_all.is_some() {
                material.wear_out();
                return false;
            }
            Failure::from(TOO_MANY.to_owned())
        }
        error => {
            let Some(failure) = Failure::of(error, during, name_of) else { return false };
            let counts = has_mac_key && !matches!(error, Error::Counted(_));
            material.fail(failure, counts);
            return true;
        }
    };
    material.quarantine(failure);
    true
}

/// Refuses to carry keys over from the MAC key in use if a cheater may know too much of that key: then the
/// probability of a correct result is too small. The operator can accept that risk. Without a MAC key there
/// is no such risk.
pub(crate) fn refuse_guessed(store: &Store, has_mac_key: bool) -> crate::Result<()> {
    let guesses = store.guesses().map_err(system)?;
    if !has_mac_key || guesses.may_go_on(KEY_BITS) || store.guesses_accepted().map_err(system)? {
        return Ok(());
    }
    let Guesses { failed, unanswered } = guesses;
    let bound = guesses.forgery_bound_log2(KEY_BITS);
    Err(Error::System(format!(
        "{failed} checks have failed under the MAC key in use, and {unanswered} were left without an answer: what is refreshed \
         from it is right only but for 2^{bound:.0}, and 2^{MAX_FORGED_LOG2} is the limit. Take the machine out that makes checks \
         fail; then, to take the risk rather than to lose the keys: `polyclave node refresh DIR --despite-failed-checks`"
    )))
}

impl Material {
    /// Puts this node under quarantine: from now on it computes nothing.
    pub(crate) fn quarantine(&self, failure: Failure) {
        self.fail(failure, false);
    }

    /// Puts this node under quarantine after a check that failed. With `counts` the failure is counted, too.
    fn fail(&self, failure: Failure, counts: bool) {
        let failure = Failure { reason: self.members.message(&failure.reason), ..failure };
        let quarantine = failure.quarantine();
        let is_first = {
            let mut current = self.quarantine.write();
            let is_first = current.is_none();
            current.get_or_insert_with(|| quarantine.clone());
            is_first
        };
        if counts && let Err(e) = self.store.count_failure(&quarantine, self.is_refreshing()) {
            self.note_uncounted(Guesses { failed: 1, unanswered: 0 }, &e);
        }
        if is_first {
            self.settle_quarantine();
            self.strategy.give_up(self, "a check failed");
            failure.announce(&self.logbook);
            metrics::gauge!("polyclave_quarantined").set(1.0);
            if let Some(of_all) = &self.of_all {
                of_all.quarantine(failure);
            }
        }
    }

    /// At a start, writes down a quarantine that follows from the count. The node may have been killed
    /// between the two.
    pub(crate) fn resume_quarantine(&self) {
        let guesses = self.guesses();
        if !self.strategy.has_mac_key() {
            return;
        }
        // A quarantine that there is already keeps its reason.
        if guesses.failed > 0 {
            self.quarantine("a check failed before this start".to_owned().into());
        } else if guesses.must_refresh(KEY_BITS) {
            match self.of_all {
                Some(_) => self.wear_out(),
                None => self.quarantine(TOO_MANY.to_owned().into()),
            }
        }
    }

    /// Notes that too many checks were left without an answer under the MAC key of a standby pair. The key is
    /// not used any more, and the pair begins anew, with another one.
    fn wear_out(&self) {
        tracing::warn!("{TOO_MANY}; a standby pair begins anew");
        self.is_worn_out.store(true, Relaxed);
    }

    /// Whether the MAC key of this standby pair has to be replaced.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.is_worn_out.load(Relaxed)
    }

    /// Failed and unanswered checks under the MAC key in use.
    pub(crate) fn guesses(&self) -> Guesses {
        let stored = self.store.guesses().unwrap_or_default();
        let uncounted = *self.uncounted.lock();
        sum(stored, uncounted)
    }

    /// Adds to the count of failed and unanswered checks. What could not be written is settled within a
    /// second, as is the metric.
    fn count_guesses(&self, more: Guesses) {
        if let Err(e) = self.store.count_guesses(more) {
            self.note_uncounted(more, &e);
        }
    }

    /// Remembers failures or silences that could not be written down.
    pub(super) fn note_uncounted(&self, more: Guesses, why: &StoreError) {
        tracing::error!(error = %why, "a check that did not pass could not be counted; this is tried again, and the MAC key is not used meanwhile");
        let mut uncounted = self.uncounted.lock();
        *uncounted = sum(*uncounted, more);
    }

    /// Refuses to use the MAC key while a failure or a silence is not written down, because a restart would
    /// forget it. This concerns epochs, refreshes, material and requests.
    pub(crate) fn refuse_uncounted(&self) -> crate::Result<()> {
        if self.is_worn_out() {
            return Err(Error::System(TOO_MANY.into()));
        }
        match *self.uncounted.lock() == Guesses::default() {
            true => Ok(()),
            false => Err(Error::System(UNCOUNTED.into())),
        }
    }

    /// Writes the count to disk, if that is not yet done, and publishes it.
    fn settle_guesses(&self) {
        {
            let mut uncounted = self.uncounted.lock();
            if *uncounted != Guesses::default() {
                match self.store.count_guesses(*uncounted) {
                    Ok(()) => *uncounted = Guesses::default(),
                    Err(e) => {
                        tracing::error!(error = %e, "a check that did not pass is still not counted; this is tried again");
                    }
                }
            }
        }
        if self.of_all.is_some() {
            return;
        }
        let Guesses { failed, unanswered } = self.guesses();
        metrics::gauge!("polyclave_checks_failed").set(f64::from(failed));
        metrics::gauge!("polyclave_checks_unanswered").set(f64::from(unanswered));
    }

    /// Writes the quarantine and the count to disk, if that is not yet done: a disk may have been full.
    pub(crate) fn settle_quarantine(&self) {
        self.settle_guesses();
        // Held until it is written: otherwise a refresh could end the quarantine meanwhile, and it would be
        // written after that.
        let current = self.quarantine.read();
        let Some(quarantine) = &*current else { return };
        let settled = self.store.quarantined().and_then(|stored| match stored {
            Some(_) => Ok(()),
            None => self.store.quarantine(&quarantine.reason, quarantine.since),
        });
        if let Err(e) = settled {
            tracing::error!(error = %e, "the quarantine could not be written down; this is tried again");
        }
    }

    /// Why this node computes nothing, if that is so.
    pub(crate) fn quarantined(&self) -> Option<Quarantine> {
        self.quarantine.read().clone()
    }

    /// Whether sessions may use the MAC key: no check has failed under it, and the whole count is on the
    /// disk.
    pub(crate) fn may_use_mac_key(&self) -> bool {
        !self.is_quarantined() && self.refuse_uncounted().is_ok()
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.quarantine.read().is_some() || self.of_all.as_ref().is_some_and(|all| all.is_quarantined())
    }

    /// The refusal of every request for a computation.
    pub(crate) fn refuse_quarantined(&self) -> Result<(), Refusal> {
        if !self.is_quarantined() {
            return Ok(());
        }
        let message = format!(
            "a check failed among the nodes, so this one computes nothing any more. Its operators: {REMEDY}"
        );
        Err(Refusal::new(Reason::Quarantined, message))
    }
}

fn sum(a: Guesses, b: Guesses) -> Guesses {
    Guesses {
        failed: a.failed.saturating_add(b.failed),
        unanswered: a.unanswered.saturating_add(b.unanswered),
    }
}

#[cfg(test)]
mod tests;
