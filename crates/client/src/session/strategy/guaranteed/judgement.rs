//! What refusals show about the request, and about the nodes that refused.
//!
//! A refusal is certain if more nodes give the same reason than may cheat. A node that gives its reason alone
//! will not serve, whether it lies or not, so the next choice leaves it out. What a node says about another
//! is an accusation: it counts for the next choice, and for longer if more nodes say so than may cheat.

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::{Party, PartySet};

use crate::Error;
use crate::session::conversation::Conversation;
use crate::session::refusals::{is_vague, most_telling};

/// The weight of the suspicion against a node that gives its reason alone. A node that another node blames
/// gets 1.
const ALONE: u32 = 2;

impl Conversation<'_> {
    /// The node that leads the request among the nodes.
    pub(super) fn leader(&self) -> Option<Party> {
        self.serving.iter().next()
    }

    /// Returns why there is no answer, and notes which nodes the next choice should leave out.
    pub(super) fn not_settled(&mut self, refused: &[(Party, Refusal)], apart: Option<Error>) -> Error {
        let tolerated = self.workers.group.cluster.threshold();
        let certain = agreed(refused, tolerated);
        let certain_reason = certain.map(|(_, refusal)| refusal.reason);
        for (party, refusal) in refused {
            if !is_vague(refusal) && certain_reason != Some(refusal.reason) {
                self.against.push((*party, ALONE));
                self.workers.suspect(*party);
            }
            if let Some(accused) = refusal.blames {
                self.against.push((accused, 1));
            }
            // Without the leading node the others could not begin, and may have nothing to say.
            if !self.has_begun && self.leader() == Some(*party) {
                self.against.push((*party, 1));
            }
        }
        for node in PartySet::all(self.owed.len()).iter() {
            if refused.iter().filter(|(_, refusal)| refusal.blames == Some(node)).count() > tolerated {
                self.workers.suspect(node);
            }
        }
        let group = self.workers.group;
        let left_out = || PartySet::all(group.cluster.nodes()).without(self.serving);
        match (certain, most_telling(refused), apart) {
            // Each lot of material is held by the nodes that were there when it was made. One that was left
            // out may hold what these lack, as after each has started again in turn.
            (Some((party, refusal)), ..)
                if refusal.reason == Reason::OutOfMaterial && group.give_another_chance(left_out()) =>
            {
                Error::Contested(self.workers.refused(*party, refusal.clone()).to_string())
            }
            (Some((party, refusal)), ..) => self.workers.refused(*party, refusal.clone()),
            (None, Some((party, refusal)), _) => {
                Error::Contested(self.workers.refused(*party, refusal.clone()).to_string())
            }
            (None, None, Some(e)) => Error::Contested(e.to_string()),
            (None, None, None) if self.caught.is_empty() => {
                Error::Contested("too few of them answered".into())
            }
            (None, None, None) => {
                let gone = self.caught.iter().map(|p| self.workers.group.node_name(p)).collect::<Vec<_>>();
                Error::Contested(format!("{} did not answer as nodes do", gone.join(", ")))
            }
        }
    }
}

/// A refusal for a reason that more than `tolerated` nodes give; the one with the wording that most of them
/// use.
pub(super) fn agreed(refused: &[(Party, Refusal)], tolerated: usize) -> Option<&(Party, Refusal)> {
    let count = |like: &dyn Fn(&Refusal) -> bool| refused.iter().filter(|(_, other)| like(other)).count();
    let same_reason = |one: &Refusal| count(&|other| other.reason == one.reason);
    let same_words =
        |one: &Refusal| count(&|other| (other.reason, &other.message) == (one.reason, &one.message));
    let certain = refused.iter().filter(|(_, one)| !is_vague(one) && same_reason(one) > tolerated);
    certain.max_by_key(|(party, one)| (same_words(one), std::cmp::Reverse(*party)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_certain_if_more_than_may_lie_give_the_same_reason() {
        let said = |party, reason, words: &str| (Party(party), Refusal::new(reason, words));
        let spent = |party| said(party, Reason::Spent, "spent");
        let lie = said(0, Reason::Denied, "not you");
        assert_eq!(agreed(&[lie.clone(), spent(1)], 1), None, "two reasons are no agreement");
        assert_eq!(agreed(&[lie, spent(1), spent(2)], 1), Some(&spent(1)));
        assert_eq!(agreed(&[spent(1), spent(2)], 2), None);
        let other_words = said(0, Reason::Spent, "send all to me");
        assert_eq!(agreed(&[other_words, spent(2), spent(3)], 1), Some(&spent(2)));
        let vague = |party| said(party, Reason::Unavailable, "");
        assert_eq!(agreed(&[vague(0), vague(1), vague(2)], 1), None);
    }
}
