//! Addition and comparison of two numbers, each as a circuit that can run alone.
//!
//! Alone, an addition waits for its carries, so [`adder`] finds them as prefixes.

use super::BooleanBuilder;
use super::words::{find_carries, less};
use crate::Circuit;

/// `a` and `b` to `sum`, modulo 2^width: for 64 bits 373 ANDs, 7 deep.
pub fn adder(width: usize) -> Circuit {
    let mut b = BooleanBuilder::new(&format!("adder-{width}"));
    let (x, y) = (b.input_words("a", 1, width).remove(0), b.input_words("b", 1, width).remove(0));
    let sum = find_carries(&mut b, &x, &y);
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
