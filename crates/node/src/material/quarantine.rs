//! What happens when a check fails: this node computes nothing any more, for anybody, until its operators have made fresh common secrets.
//!
//! A failed check of any kind can tell a cheater about a bit of a secret, and mostly this node cannot know who cheated; the reason names a
//! node only if that node itself sent something that does not fit ([`Error::Peer`]). So nothing is tried again. The node writes down what
//! happened before it answers, gives up the epoch and all material, and remains under quarantine over restarts. Only a rotation ends it
//! ([`crate::material::rotation`]). A client learns that it happened and nothing about how far its computation had come. The peers learn of
//! it with the next beat.
//!
//! Under replicated sharing a failed check tells a cheater nothing, because there is no MAC key. But it shows that one of the two other nodes
//! cheats, and neither this node nor anybody else can tell which ([`Error::OneOfTwo`]). Without either of them there is no third share. So this node
//! stops, too. The reason and the audit log name the two, and claim no more.
//!
//! Where there is a MAC key, the node counts failures under it, and also checks that a peer left without an answer ([`Error::Unanswered`]). The latter end
//! the epoch and are no quarantine, because machines are killed, until there are so many that the key must be replaced ([`Guesses`], which
//! has the bound). The count is durable: every epoch makes its transfers afresh under the same stored share of the key, and a node that
//! started the count again with each would allow any number of guesses. Every node counts what it has seen: those are the guesses at its
//! own share, and a forger needs the shares of all nodes that do not cheat.

use polyclave_protocol::spdz::{Guesses, MOST_FORGED_LOG2};
use polyclave_protocol::{EARLIER_CHECK, Error};
use polyclave_transport::wire::{Reason, Refusal};

use crate::error::system;
use crate::material::state::Material;
use crate::operator::audit::Event;
use crate::operator::clock::now;
use crate::store::{Quarantine, Store};

/// What operators have to do.
pub(crate) const REMEDY: &str = "find out which machine was altered; when all are sound, order fresh common secrets at every \
                                 node (`polyclave node refresh DIR`)";

/// Where a check names two nodes and cannot say which of them cheats.
const ALTERNATIVE: &str = "under shamir-active four nodes can";

/// Bits of the MAC keys of all protocols that nodes serve with.
const KEY_BITS: u32 = 64;

/// Decides what a failure among the nodes means for this one. Returns whether it is a quarantine. `during` says what was under way, never
/// how far.
pub(crate) fn judge(material: &Material, during: &str, error: &Error) -> bool {
    if !error.may_be_a_wrong_guess() {
        return false;
    }
    let mut suspects = Vec::new();
    let reason = match error {
        // The failure itself belongs to another session, which judges it.
        Error::CheckFailed { what } if *what == EARLIER_CHECK => {
            material.end_epoch("its MAC key was given up");
            return false;
        }
        Error::Unanswered { peer, .. } => {
            tracing::warn!(node = material.members.name_of(*peer), during, error = %error, "a node left a check without an answer");
            material.count_guesses(Guesses { failed: 0, unanswered: 1 });
            material.end_epoch("a node left a check without an answer");
            if !material.guesses().must_rotate(KEY_BITS) {
                return false;
            }
            "too many checks failed or were left without an answer under one MAC key".into()
        }
        Error::Peer { peer, .. } => {
            format!("{} sent something that does not fit while {during}", material.members.name_of(*peer))
        }
        Error::Equivocation { .. } => format!("a node told others different things while {during}"),
        Error::OneOfTwo { first, second, what } => {
            suspects = material.members.names_of([*first, *second].into_iter().collect());
            format!(
                "a check failed while {during} ({what}): {} departed from the protocol, or its memory or disk is damaged. It cannot be \
                 found out which, and the nodes cannot go on without one: {ALTERNATIVE}",
                suspects.join(" or ")
            )
        }
        _ => format!("a check failed while {during}"),
    };
    if !matches!(error, Error::Unanswered { .. }) && material.strategy.has_mac_key() {
        material.count_guesses(Guesses { failed: 1, unanswered: 0 });
    }
    material.quarantine(&reason, &suspects);
    true
}

/// Why keys cannot be carried over from the MAC key in use, if that is so: a cheater may know so much of that key that the probability of a
/// correct result is too small, and the operator has not accepted that risk.
pub(crate) fn refuse_guessed(store: &Store) -> crate::Result<()> {
    let guesses = store.guesses().map_err(system)?;
    if guesses.may_go_on(KEY_BITS) || store.guesses_accepted().map_err(system)? {
        return Ok(());
    }
    let Guesses { failed, unanswered } = guesses;
    let bound = guesses.forgery_bound_log2(KEY_BITS);
    Err(Error::System(format!(
        "{failed} checks have failed under the MAC key in use, and {unanswered} were left without an answer: what is carried over \
         from it is right only but for 2^{bound:.0}, and 2^{MOST_FORGED_LOG2} is the limit. Take the machine out that makes checks \
         fail; then, to take the risk rather than to lose the keys: `polyclave node refresh DIR --despite-failed-checks`"
    )))
}

impl Material {
    /// Puts this node under quarantine: from now on it computes nothing.
    /// Of the suspects, if there are any, one has cheated.
    pub(crate) fn quarantine(&self, reason: &str, suspects: &[String]) {
        let reason = self.members.told(reason);
        let quarantine = Quarantine { reason: reason.clone(), since: now() };
        {
            let mut current = self.quarantine.write();
            if current.is_some() {
                return;
            }
            *current = Some(quarantine);
        }
        self.settle_quarantine();
        self.strategy.give_up(self, "a check failed");
        tracing::error!(reason, remedy = REMEDY, "this node is under quarantine and serves nothing");
        let detail = match suspects {
            [] => String::new(),
            suspects => format!("one-of={}", suspects.join(",")),
        };
        self.logbook.note(&Event { detail: &detail, ..Event::of_node("quarantine", "check-failed") });
        metrics::gauge!("polyclave_quarantined").set(1.0);
    }

    /// Adds failed and unanswered checks under the MAC key in use.
    pub(crate) fn guesses(&self) -> Guesses {
        let stored = self.store.guesses().unwrap_or_default();
        let uncounted = *self.uncounted.lock();
        sum(stored, uncounted)
    }

    fn count_guesses(&self, more: Guesses) {
        {
            let mut uncounted = self.uncounted.lock();
            *uncounted = sum(*uncounted, more);
        }
        self.settle_guesses();
    }

    /// Writes the count to disk, if that is not yet done, and publishes it.
    fn settle_guesses(&self) {
        {
            let mut uncounted = self.uncounted.lock();
            if *uncounted != Guesses::default() {
                match self.store.count_guesses(*uncounted) {
                    Ok(()) => *uncounted = Guesses::default(),
                    Err(e) => {
                        tracing::error!(error = %e, "a check that did not pass could not be counted; this is tried again");
                    }
                }
            }
        }
        let Guesses { failed, unanswered } = self.guesses();
        metrics::gauge!("polyclave_checks_failed").set(f64::from(failed));
        metrics::gauge!("polyclave_checks_unanswered").set(f64::from(unanswered));
    }

    /// Writes the quarantine and the count to disk, if that is not yet done: a disk may have been full.
    pub(crate) fn settle_quarantine(&self) {
        self.settle_guesses();
        // Held until it is written: otherwise a rotation could end the quarantine meanwhile, and it would be written after that.
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

    pub(crate) fn is_quarantined(&self) -> bool {
        self.quarantine.read().is_some()
    }

    /// The refusal of every request for a computation.
    pub(crate) fn refuse_quarantined(&self) -> Result<(), Refusal> {
        if !self.is_quarantined() {
            return Ok(());
        }
        let told = format!(
            "a check failed among the nodes, so this one computes nothing any more. Its operators: {REMEDY}"
        );
        Err(Refusal::new(Reason::Quarantined, told))
    }
}

fn sum(a: Guesses, b: Guesses) -> Guesses {
    Guesses {
        failed: a.failed.saturating_add(b.failed),
        unanswered: a.unanswered.saturating_add(b.unanswered),
    }
}
