//! Addition and comparison of numbers.
//!
//! Two kinds of adders. Alone, an addition waits for its carries, so [`adder`] finds them as prefixes (Sklansky,
//! "Conditional-sum addition logic", 1960): logarithmic depth for more ANDs. Among many, as in SHA-256, the carries of
//! one run while the next begins, so [`add`] takes one AND for each bit but the last and lets them ripple.

use super::{Bit, BooleanBuilder, Word};
use crate::Circuit;

/// `a` and `b` to `sum`, modulo 2^width: for 64 bits 373 ANDs, 7 deep.
pub fn adder(width: usize) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("adder-{width}"));
    let (x, y) = (b.input_words("a", 1, width).remove(0), b.input_words("b", 1, width).remove(0));
    let sums: Word = x.iter().zip(&y).map(|(x, y)| b.xor(*x, *y)).collect();
    // Whether the bits so far generate a carry, and whether they pass one on.
    let mut prefixes: Vec<(Bit, Bit)> =
        x.iter().zip(&y).zip(&sums).map(|((x, y), sum)| (b.and(*x, *y), *sum)).collect();
    let mut block = 1;
    while block < width {
        for i in (0..width).filter(|i| i & block != 0) {
            let low = prefixes[i / block * block - 1];
            prefixes[i] = joined(&mut b, prefixes[i], low);
        }
        block *= 2;
    }
    let carries = std::iter::once(Bit::ZERO).chain(prefixes.into_iter().map(|(generated, _)| generated));
    let sum = sums.into_iter().zip(carries).map(|(sum, carry)| b.xor(sum, carry)).collect();
    b.output_words("sum", &[sum]);
    b.finish()
}

/// `a` and `b` to `less`, one bit: whether a < b as numbers without sign. For 64 bits 184 ANDs, 7 deep.
pub fn comparator(width: usize) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("comparator-{width}"));
    let (x, y) = (b.input_words("a", 1, width).remove(0), b.input_words("b", 1, width).remove(0));
    // Whether a < b in these bits, and whether they are equal.
    let mut parts: Vec<(Bit, Bit)> =
        x.iter().zip(&y).map(|(x, y)| (b.and(!*x, *y), !b.xor(*x, *y))).collect();
    while parts.len() > 1 {
        let pairs = parts.chunks(2);
        parts = pairs
            .map(|pair| {
                pair.iter().copied().reduce(|low, high| joined(&mut b, high, low)).expect("it has a part")
            })
            .collect();
    }
    b.output("less", &[parts[0].0]);
    b.finish()
}

/// Of (decided, undecided) for higher and lower bits, those of both.
fn joined(b: &mut BooleanBuilder, high: (Bit, Bit), low: (Bit, Bit)) -> (Bit, Bit) {
    let through = b.and(high.1, low.0);
    (b.xor(high.0, through), b.and(high.1, low.1))
}

/// The sum of numbers of one width, modulo a power of 2: carries are saved until two numbers are left, which ripple.
/// One AND for each number but the first and each bit but the last. Those that are ready late go last.
pub(super) fn add(b: &mut BooleanBuilder, numbers: &[&Word]) -> Word {
    let mut sum = numbers[0].clone();
    let Some((last, saved)) = numbers[1..].split_last() else { return sum };
    let mut carries: Option<Word> = None;
    for number in saved {
        let Some(old) = carries.take() else {
            carries = Some(number.to_vec());
            continue;
        };
        (sum, carries) = save_carries(b, &sum, &old, number);
    }
    if let Some(old) = carries {
        let (partial, carries) = save_carries(b, &sum, &old, last);
        return ripple(b, &partial, &carries.expect("it makes carries"));
    }
    ripple(b, &sum, last)
}

fn save_carries(b: &mut BooleanBuilder, x: &Word, y: &Word, z: &Word) -> (Word, Option<Word>) {
    let bits = x.iter().zip(y).zip(z);
    let sum = bits.clone().map(|((x, y), z)| b.xor_all(&[*x, *y, *z])).collect();
    let carries = bits.map(|((x, y), z)| majority(b, *x, *y, *z)).collect::<Word>();
    (sum, Some(shifted(carries)))
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

/// Whether two or three of the bits are 1: one AND.
pub(super) fn majority(b: &mut BooleanBuilder, x: Bit, y: Bit, z: Bit) -> Bit {
    let (xz, yz) = (b.xor(x, z), b.xor(y, z));
    let product = b.and(xz, yz);
    b.xor(product, z)
}
