//! Which nodes are asked to serve: as many as possible, then without those that are suspected.

use polyclave_protocol::{Party, PartySet};

/// The weight of a suspicion against a node that was silent or sent garbage. A node that another node blames
/// gets 1.
pub(super) const CAUGHT: u32 = 100;

/// Choices of nodes that correct each other: as many as possible, then without the most suspected ones. Each
/// choice is made once.
#[derive(Default)]
pub(super) struct Choices {
    tried: Vec<PartySet>,
    /// By party: the weight of the suspicion.
    against: [u32; PartySet::MAX],
}

impl Choices {
    /// Begins without the nodes that were suspected before. If these are more than `tolerated`, the number
    /// that may cheat, some are suspected wrongly and the suspicion is of no use: then it begins with all.
    pub(super) fn without(suspects: PartySet, tolerated: usize) -> Choices {
        let mut choices = Choices::default();
        if suspects.len() <= tolerated {
            suspects.iter().for_each(|suspect| choices.suspect(suspect, 1));
        }
        choices
    }

    /// Lets a choice be made once more.
    pub(super) fn allow_again(&mut self, serving: PartySet) {
        self.tried.retain(|tried| *tried != serving);
    }

    /// Adds to the suspicion against a node.
    pub(super) fn suspect(&mut self, node: Party, weight: u32) {
        if let Some(against) = self.against.get_mut(node.index()) {
            *against = against.saturating_add(weight);
        }
    }

    /// The next choice of at least `needed` of these nodes.
    pub(super) fn next(&mut self, candidates: PartySet, needed: usize) -> Option<PartySet> {
        let within = |bits: &u16| PartySet::from_bits(*bits).without(candidates).is_empty();
        let left_out = (0..=candidates.bits()).filter(within).map(PartySet::from_bits);
        // The value of a choice: twice the suspicion against the nodes that are left out, minus one for each
        // of them.
        let worth =
            |out: &PartySet| out.iter().map(|p| 2 * i64::from(self.against[p.index()]) - 1).sum::<i64>();
        let untried = left_out.filter(|out| {
            let serving = candidates.without(*out);
            serving.len() >= needed && !self.tried.contains(&serving)
        });
        // Of choices with equal value, prefer those that leave out nodes with low numbers, which lead.
        let best = untried.max_by_key(|out| (worth(out), std::cmp::Reverse(out.bits())))?;
        let serving = candidates.without(best);
        self.tried.push(serving);
        Some(serving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspicion_counts_if_no_more_are_suspected_than_may_cheat() {
        let (seven, suspects) = (PartySet::all(7), |bits| PartySet::from_bits(bits));
        let first = |of: PartySet, tolerated| Choices::without(of, tolerated).next(seven, 5);
        assert_eq!(first(suspects(0b11), 2), Some(seven.without(suspects(0b11))));
        assert_eq!(first(suspects(0b111), 2), Some(seven));
        let mut choices = Choices::default();
        for _ in 0..2 {
            assert_eq!(choices.next(seven, 5), Some(seven));
            choices.allow_again(seven);
        }
    }

    #[test]
    fn all_are_asked_first_then_those_that_are_suspected_less() {
        let (four, mut choices) = (PartySet::all(4), Choices::default());
        assert_eq!(choices.next(four, 3), Some(four));
        choices.suspect(Party(1), 1);
        choices.suspect(Party(3), 2);
        let without = |p: u8| four.without([Party(p)].into_iter().collect());
        let sets: Vec<PartySet> = std::iter::from_fn(|| choices.next(four, 3)).collect();
        assert_eq!(sets, [without(3), without(1), without(0), without(2)]);
        let mut suspected = Choices::default();
        suspected.suspect(Party(2), CAUGHT);
        assert_eq!(suspected.next(four, 3), Some(without(2)));
        assert_eq!(suspected.next(without(0), 3), Some(without(0)));
        assert_eq!(suspected.next(PartySet::all(2), 3), None);
    }
}
