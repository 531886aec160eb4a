//! Sets of items of a lot, such as those that are spent.

use rangemap::RangeSet;

/// A set of numbers as ranges, in order, that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(RangeSet<u64>);

impl Ranges {
    /// All numbers below one.
    pub(super) fn below(end: u64) -> Ranges {
        let mut ranges = Ranges::default();
        ranges.add(0, end);
        ranges
    }

    /// One more than the last number.
    pub(super) fn end(&self) -> u64 {
        self.0.last().map_or(0, |range| range.end)
    }

    /// How many numbers the set has.
    pub(super) fn len(&self) -> u64 {
        self.iter().map(|(from, to)| to - from).sum()
    }

    /// Whether any number of the set is in `from..to`.
    pub(super) fn meets(&self, from: u64, to: u64) -> bool {
        self.first_met(from, to).is_some()
    }

    /// The ranges, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|range| (range.start, range.end))
    }

    /// How many ranges there are.
    pub(super) fn pieces(&self) -> usize {
        self.0.len()
    }

    /// The first range that has a number in `from..to`.
    pub(super) fn first_met(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        // The library takes no empty ranges.
        if from >= to {
            return None;
        }
        self.0.overlapping(from..to).next().map(|range| (range.start, range.end))
    }

    /// The gaps: numbers below `count` that the set lacks, in order.
    pub(super) fn gaps(&self, count: u64) -> impl Iterator<Item = (u64, u64)> {
        // Here, too: no empty range.
        let below = (count > 0).then_some(0..count);
        let gaps: Vec<_> = below.iter().flat_map(|below| self.0.gaps(below)).collect();
        gaps.into_iter().map(|gap| (gap.start, gap.end))
    }

    /// The numbers that are in at least `least` of some sets.
    pub(super) fn in_at_least(least: usize, sets: &[Ranges]) -> Ranges {
        let edges = sets.iter().flat_map(Ranges::iter).flat_map(|(from, to)| [(from, 1), (to, -1)]);
        let mut edges: Vec<(u64, isize)> = edges.collect();
        edges.sort_unstable();
        let (mut shared, mut depth, least) = (Ranges::default(), 0, least as isize);
        for pair in edges.windows(2) {
            depth += pair[0].1;
            if depth >= least {
                shared.add(pair[0].0, pair[1].0);
            }
        }
        shared
    }

    /// Adds the numbers of `from..to`.
    pub(super) fn add(&mut self, from: u64, to: u64) {
        if from < to {
            self.0.insert(from..to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a plain set of numbers: every pair of ranges of small numbers, one added after the
    /// other.
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
                    let pieces: Vec<(u64, u64)> = ranges.iter().collect();
                    assert!(pieces.windows(2).all(|pair| pair[0].1 < pair[1].0));
                    assert!(
                        (0..9).all(|x| is_in(x) != ranges.gaps(9).any(|(from, to)| (from..to).contains(&x)))
                    );
                    let of = |(from, to): (u64, u64)| {
                        let mut one = Ranges::default();
                        one.add(from, to);
                        one
                    };
                    let shared = Ranges::in_at_least(2, &[of(*a), of(*b), of(*c)]);
                    let times =
                        |x: u64| [a, b, c].iter().filter(|(from, to)| (*from..*to).contains(&x)).count();
                    assert!((0..7).all(|x| shared.meets(x, x + 1) == (times(x) >= 2)), "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
