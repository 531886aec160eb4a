//! Which items of a lot are spent.

/// Ranges of numbers, in order, that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// All numbers below one.
    pub(super) fn below(end: u64) -> Ranges {
        let mut ranges = Ranges::default();
        ranges.add(0, end);
        ranges
    }

    /// Behind the last number.
    pub(super) fn end(&self) -> u64 {
        self.0.last().map_or(0, |(_, to)| *to)
    }

    /// How many numbers.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }

    /// Whether one of them is in `from..to`.
    pub(super) fn meets(&self, from: u64, to: u64) -> bool {
        let at = self.0.partition_point(|(_, end)| *end <= from);
        from < to && self.0.get(at).is_some_and(|(start, _)| *start < to)
    }

    /// Adds the numbers of `from..to`.
    pub(super) fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let first = self.0.partition_point(|(_, end)| *end < from);
        let behind = self.0.partition_point(|(start, _)| *start <= to);
        let met = &self.0[first..behind];
        let start = met.first().map_or(from, |(start, _)| from.min(*start));
        let end = met.last().map_or(to, |(_, end)| to.max(*end));
        self.0.splice(first..behind, [(start, end)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a set of numbers: every pair of ranges of small numbers on top of every other.
    #[test]
    fn ranges_are_sets() {
        let pairs: Vec<(u64, u64)> = (0..7).flat_map(|from| (from..7).map(move |to| (from, to))).collect();
        for a in &pairs {
            for b in &pairs {
                for c in &pairs {
                    let mut ranges = Ranges::default();
                    [a, b].into_iter().for_each(|(from, to)| ranges.add(*from, *to));
                    let is_in = |x: u64| [a, b].iter().any(|(from, to)| (*from..*to).contains(&x));
                    assert_eq!(ranges.len(), (0..7).filter(|x| is_in(*x)).count() as u64);
                    assert_eq!(ranges.end(), (0..7).rev().find(|x| is_in(*x)).map_or(0, |x| x + 1));
                    assert_eq!(ranges.meets(c.0, c.1), (c.0..c.1).any(is_in), "{a:?} {b:?} {c:?}");
                    assert!(ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
                }
            }
        }
    }
}
