//! Which values move together: in the rounds and checks of one, and in memory that their number does not
//! change.

use std::ops::Range;

/// The most bits that move together. Each takes some hundred bytes while it moves.
const MAX_BITS: usize = 1 << 18;

/// Groups of values that are alike, in the order of their places, with `bits` bits each. A value that is too
/// large moves alone.
pub(crate) fn groups<T>(
    values: &[T],
    alike: impl Fn(&T, &T) -> bool,
    bits: impl Fn(&T) -> usize,
) -> Vec<Vec<usize>> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (place, value) in values.iter().enumerate() {
        let more = bits(value);
        let last = groups.iter_mut().rev().find(|(_, places)| alike(&values[places[0]], value));
        match last {
            Some((all, places)) if *all + more <= MAX_BITS => {
                *all += more;
                places.push(place);
            }
            _ => groups.push((more, vec![place])),
        }
    }
    groups.into_iter().map(|(_, places)| places).collect()
}

/// Where things of these lengths stand, one after another.
pub(crate) fn ranges(lens: impl IntoIterator<Item = usize>) -> impl Iterator<Item = Range<usize>> {
    lens.into_iter().scan(0, |at, len| {
        let range = *at..*at + len;
        *at = range.end;
        Some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_alike_move_together_until_they_are_too_many_bits() {
        let alike = |a: &(char, usize), b: &(char, usize)| a.0 == b.0;
        let bits = |value: &(char, usize)| value.1;
        let half = MAX_BITS / 2;
        let values = [('a', half), ('b', 1), ('a', half), ('a', 1), ('b', 2 * MAX_BITS), ('b', 3), ('a', 1)];
        assert_eq!(groups(&values, alike, bits), [vec![0, 2], vec![1], vec![3, 6], vec![4], vec![5]]);
        assert!(groups(&[], alike, bits).is_empty());
        assert_eq!(ranges([2, 0, 3]).collect::<Vec<_>>(), [0..2, 2..2, 2..5]);
    }
}
