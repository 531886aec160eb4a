//! Which nodes are asked to serve: as many as can be had, then without those that are suspected.

use polyclave_protocol::{Party, PartySet};

/// How much speaks against a node that was silent, or sent garbage, as against one that another node takes to be the cause.
pub(super) const CAUGHT: u32 = 100;

/// Choices of nodes that correct each other: as many as can be had, then without those that are suspected most, each choice once.
#[derive(Default)]
pub(super) struct Choices {
    tried: Vec<PartySet>,
    /// By party: what speaks against it.
    against: [u32; PartySet::MOST],
}

impl Choices {
    /// At first without those that were suspected before; but if these are more than `tolerated`, which may cheat, some are suspected
    /// wrongly and the suspicion is of no use: with all.
    pub(super) fn without(suspects: PartySet, tolerated: usize) -> Choices {
        let mut choices = Choices::default();
        if suspects.len() <= tolerated {
            suspects.iter().for_each(|suspect| choices.suspect(suspect, 1));
        }
        choices
    }

    /// A choice that was made may be made once more.
    pub(super) fn allow_again(&mut self, serving: PartySet) {
        self.tried.retain(|tried| *tried != serving);
    }

    /// Something speaks against a node.
    pub(super) fn suspect(&mut self, node: Party, weight: u32) {
        if let Some(against) = self.against.get_mut(node.index()) {
            *against = against.saturating_add(weight);
        }
    }

    /// The next choice of at least so many of these.
    pub(super) fn next(&mut self, candidates: PartySet, needed: usize) -> Option<PartySet> {
        let within = |bits: &u16| PartySet::from_bits(*bits).without(candidates).is_empty();
        let left_out = (0..=candidates.bits()).filter(within).map(PartySet::from_bits);
        // Twice what speaks against those that are left out, less one for each that is missed.
        let worth =
            |out: &PartySet| out.iter().map(|p| 2 * i64::from(self.against[p.index()]) - 1).sum::<i64>();
        let untried = left_out.filter(|out| {
            let serving = candidates.without(*out);
            serving.len() >= needed && !self.tried.contains(&serving)
        });
        // Of equals those first that leave out the first nodes, which lead.
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
