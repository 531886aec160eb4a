//! Addition and comparison of two numbers, each as a circuit that can run alone.
//!
//! Alone, an addition waits for its carries, so [`adder`] finds them as prefixes (Sklansky, "Conditional-sum
//! addition logic", 1960): logarithmic depth for more ANDs than [`add`](super::words::add) takes, which lets
//! them ripple.

use super::words::{joined, less};
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
    let less = less(&mut b, &x, &y);
    b.output("less", &[less]);
    b.finish()
}
