//! The way through the planes, for every kind of register. There are no closures: see `formulas.rs`.

#![allow(clippy::needless_range_loop)] // Closures of iterators would not be compiled into their callers.

use super::formulas::{Bits, Gf4, Gf16, Gf16ByGf4, Gf256ByGf16, Multiply, Register};
use super::{Factors, Planes, Terms};

/// The largest register.
const MAX_BYTES: usize = 64;

/// See [`super::add_products`]; lengths were checked there.
#[inline(always)]
pub(super) fn add_products<R: Register>(
    factors: Factors,
    terms: Terms,
    sum: &mut [u8],
    x: [Planes<'_>; 2],
    y: [Planes<'_>; 2],
) {
    match factors {
        Factors::Bits => add::<R, Bits, 1, 1>(terms, sum, x, y),
        Factors::Gf4 => add::<R, Gf4, 2, 2>(terms, sum, x, y),
        Factors::Gf16 => add::<R, Gf16, 4, 4>(terms, sum, x, y),
        Factors::Gf16ByGf4 => add::<R, Gf16ByGf4, 4, 2>(terms, sum, x, y),
        Factors::Gf256ByGf16 => add::<R, Gf256ByGf16, 8, 4>(terms, sum, x, y),
    }
}

#[inline(always)]
fn add<R: Register, M: Multiply<R, X, Y>, const X: usize, const Y: usize>(
    terms: Terms,
    sum: &mut [u8],
    [x0, x1]: [Planes<'_>; 2],
    [y0, y1]: [Planes<'_>; 2],
) {
    let len = sum.len() / X;
    let whole = len / R::BYTES * R::BYTES;
    for at in (0..whole).step_by(R::BYTES) {
        let (x0, x1, y0, y1) = (load(x0, at), load(x1, at), load(y0, at), load(y1, at));
        let product: [R; X] = products::<R, M, X, Y>(terms, x0, x1, y0, y1);
        for p in 0..X {
            let place = &mut sum[p * len + at..][..R::BYTES];
            R::load(place).xor(product[p]).store(place);
        }
    }
    let rest = len - whole;
    if rest > 0 {
        let (x0, x1) = (load_rest(x0, whole, rest), load_rest(x1, whole, rest));
        let (y0, y1) = (load_rest(y0, whole, rest), load_rest(y1, whole, rest));
        let product: [R; X] = products::<R, M, X, Y>(terms, x0, x1, y0, y1);
        for p in 0..X {
            let mut padded = [0; MAX_BYTES];
            product[p].store(&mut padded);
            for i in 0..rest {
                sum[p * len + whole + i] ^= padded[i];
            }
        }
    }
}

#[inline(always)]
fn products<R: Register, M: Multiply<R, X, Y>, const X: usize, const Y: usize>(
    terms: Terms,
    x0: [R; X],
    x1: [R; X],
    y0: [R; Y],
    y1: [R; Y],
) -> [R; X] {
    match terms {
        Terms::Contributed => add_each(M::multiply(x0, add_each(y0, y1)), M::multiply(x1, y0)),
        Terms::Mixed => add_each(M::multiply(x0, y1), M::multiply(x1, y0)),
        Terms::Second => M::multiply(x1, y1),
    }
}

#[inline(always)]
fn add_each<R: Register, const N: usize>(mut a: [R; N], b: [R; N]) -> [R; N] {
    for i in 0..N {
        a[i] = a[i].xor(b[i]);
    }
    a
}

#[inline(always)]
fn load<R: Register, const N: usize>(planes: Planes<'_>, at: usize) -> [R; N] {
    let mut registers = [R::load(&[0; MAX_BYTES]); N];
    for p in 0..N {
        registers[p] = R::load(&planes.bytes[p * planes.stride + at..][..R::BYTES]);
    }
    registers
}

/// Fewer bytes than a register has, and zeros behind them.
#[inline(always)]
fn load_rest<R: Register, const N: usize>(planes: Planes<'_>, at: usize, rest: usize) -> [R; N] {
    let mut registers = [R::load(&[0; MAX_BYTES]); N];
    for p in 0..N {
        let mut padded = [0; MAX_BYTES];
        padded[..rest].copy_from_slice(&planes.bytes[p * planes.stride + at..][..rest]);
        registers[p] = R::load(&padded);
    }
    registers
}
