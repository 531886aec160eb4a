//! Arithmetic on numbers within a larger circuit, for examples and for the circuits `adder` and `comparator`.

use super::{Bit, BooleanBuilder, Word};

/// A public number of this many bits.
pub fn number(value: u64, width: usize) -> Word {
    (0..width).map(|i| Bit::constant(i < 64 && value >> i & 1 == 1)).collect()
}

/// The sum of numbers of one width, modulo a power of 2: carries are saved until two numbers are left, which
/// ripple. One AND for each number but the first and each bit but the last. Those that are ready late go
/// last. Among many additions, as in SHA-256, the carries of one run while the next begins.
pub fn add(b: &mut BooleanBuilder, numbers: &[&Word]) -> Word {
    let mut sum = numbers[0].clone();
    let Some((last, saved)) = numbers[1..].split_last() else { return sum };
    let mut carries: Option<Word> = None;
    for number in saved {
        let Some(old) = carries.take() else {
            carries = Some(number.to_vec());
            continue;
        };
        let (partial, new) = save_carries(b, &sum, &old, number);
        (sum, carries) = (partial, Some(new));
    }
    if let Some(old) = carries {
        let (partial, carries) = save_carries(b, &sum, &old, last);
        return ripple(b, &partial, &carries);
    }
    ripple(b, &sum, last)
}

/// Two numbers whose sum is that of three: one AND a bit, one level. The lowest bit of the second, the
/// carries, is 0.
pub(super) fn save_carries(b: &mut BooleanBuilder, x: &Word, y: &Word, z: &Word) -> (Word, Word) {
    let bits = x.iter().zip(y).zip(z);
    let sum = bits.clone().map(|((x, y), z)| b.xor_all(&[*x, *y, *z])).collect();
    let carries = bits.map(|((x, y), z)| majority(b, *x, *y, *z)).collect::<Word>();
    (sum, shifted(carries))
}

fn shifted(mut carries: Word) -> Word {
    carries.rotate_right(1);
    carries[0] = Bit::ZERO;
    carries
}

fn ripple(b: &mut BooleanBuilder, x: &Word, y: &Word) -> Word {
    let mut carry = Bit::ZERO;
    let mut sum = Word::new();
    for (x, y) in x.iter().zip(y) {
        sum.push(b.xor_all(&[*x, *y, carry]));
        carry = majority(b, *x, *y, carry);
    }
    sum
}

/// The sum of two numbers of one width, modulo a power of 2, for addition that nothing else runs beside:
/// carries are found as prefixes (Sklansky, "Conditional-sum addition logic", 1960). The depth is one more
/// than the logarithm of the width, for more ANDs than rippling takes.
pub fn find_carries(b: &mut BooleanBuilder, x: &Word, y: &Word) -> Word {
    let sums: Word = x.iter().zip(y).map(|(x, y)| b.xor(*x, *y)).collect();
    // Whether the bits so far generate a carry, and whether they pass one on.
    let mut prefixes: Vec<(Bit, Bit)> =
        x.iter().zip(y).zip(&sums).map(|((x, y), sum)| (b.and(*x, *y), *sum)).collect();
    let mut block = 1;
    while block < x.len() {
        for i in (0..x.len()).filter(|i| i & block != 0) {
            let low = prefixes[i / block * block - 1];
            prefixes[i] = joined(b, prefixes[i], low);
        }
        block *= 2;
    }
    let carries = std::iter::once(Bit::ZERO).chain(prefixes.into_iter().map(|(generated, _)| generated));
    sums.into_iter().zip(carries).map(|(sum, carry)| b.xor(sum, carry)).collect()
}

/// Whether x < y, as numbers of one width without sign: an AND for each bit, and two for each bit but the
/// first.
pub fn less(b: &mut BooleanBuilder, x: &Word, y: &Word) -> Bit {
    // Whether x < y in these bits, and whether they are equal.
    let bits = x.iter().zip(y).map(|(x, y)| (b.and(!*x, *y), !b.xor(*x, *y)));
    let bits = bits.collect();
    pairwise(bits, |low, high| joined(b, *high, *low)).map_or(Bit::ZERO, |(less, _)| less)
}

/// The first of two numbers of one width if `which`, otherwise the second. One AND a bit.
pub fn choose(b: &mut BooleanBuilder, which: Bit, first: &[Bit], second: &[Bit]) -> Word {
    let mut chosen = |(x, y): (&Bit, &Bit)| choice(b, which, *x, *y);
    first.iter().zip(second).map(&mut chosen).collect()
}

/// Joins neighbours, and those again, until one is left: as many levels as the logarithm. The first is joined
/// in every level. `None` of none.
pub fn pairwise<T: Clone>(mut values: Vec<T>, mut join: impl FnMut(&T, &T) -> T) -> Option<T> {
    while values.len() > 1 {
        let mut joined = |pair: &[T]| match pair {
            [x, y] => join(x, y),
            rest => rest[0].clone(),
        };
        values = values.chunks(2).map(&mut joined).collect();
    }
    values.pop()
}

/// y where x is 1, z where it is 0. One AND.
pub(super) fn choice(b: &mut BooleanBuilder, x: Bit, y: Bit, z: Bit) -> Bit {
    let difference = b.xor(y, z);
    let chosen = b.and(x, difference);
    b.xor(chosen, z)
}

/// Combines the pairs (decided, undecided) of higher and lower bits to the pair of both together.
pub(super) fn joined(b: &mut BooleanBuilder, high: (Bit, Bit), low: (Bit, Bit)) -> (Bit, Bit) {
    let through = b.and(high.1, low.0);
    (b.xor(high.0, through), b.and(high.1, low.1))
}

/// Whether two or three of the bits are 1: one AND.
pub(super) fn majority(b: &mut BooleanBuilder, x: Bit, y: Bit, z: Bit) -> Bit {
    let (xz, yz) = (b.xor(x, z), b.xor(y, z));
    let product = b.and(xz, yz);
    b.xor(product, z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMap, Cells, Circuit, cleartext, compile};

    /// What a circuit of two bytes x and y gives, for all of them.
    fn check(write: impl Fn(&mut BooleanBuilder, &Word, &Word) -> Word, is: impl Fn(u8, u8) -> u64) {
        let circuit: Circuit = {
            let mut b = BooleanBuilder::new("tested");
            let words = b.input_words("words", 2, 8);
            let out = write(&mut b, &words[0], &words[1]);
            b.output_words("out", &[out]);
            b.finish()
        };
        let compiled = compile(&circuit, &AnyMap);
        let pairs: Vec<[u8; 2]> = (0..=u16::MAX).step_by(7).map(u16::to_be_bytes).collect();
        let cells = Cells::from_blocks(16, 1, &pairs.concat()).expect("whole blocks");
        let out = cleartext::run(&compiled, pairs.len(), &[cells]).expect("it fits").remove(0);
        for (lane, [x, y]) in pairs.into_iter().enumerate() {
            let found = (0..out.count()).fold(0, |number, cell| number << 1 | u64::from(out.row(cell)[lane]));
            assert_eq!(found, is(x, y), "{x} {y}");
        }
    }

    #[test]
    fn numbers_are_added_compared_and_chosen_as_by_plain_code() {
        check(|b, x, y| add(b, &[x, y]), |x, y| x.wrapping_add(y).into());
        check(
            |b, x, y| add(b, &[x, y, &number(200, 8), x]),
            |x, y| x.wrapping_add(y).wrapping_add(200).wrapping_add(x).into(),
        );
        check(|b, x, y| vec![less(b, x, y)], |x, y| u64::from(x < y));
        check(|b, x, y| vec![less(b, &number(99, 8), x), less(b, y, y)], |x, _| u64::from(99 < x));
        let larger = |b: &mut BooleanBuilder, x: &Word, y: &Word| {
            let is_less = less(b, x, y);
            choose(b, is_less, y, x)
        };
        check(larger, |x, y| x.max(y).into());
    }

    #[test]
    fn neighbours_are_joined_in_order() {
        let joined = |n: usize| pairwise((0..n).map(|i| i.to_string()).collect(), |x, y| format!("({x}{y})"));
        assert_eq!((joined(0), joined(1).as_deref()), (None, Some("0")));
        assert_eq!(joined(5).as_deref(), Some("(((01)(23))4)"));
    }
}
