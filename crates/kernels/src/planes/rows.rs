//! The way through the planes, for every kind of register.

use super::formulas::{Register, bits, gf4, gf16, gf16_by_gf4, gf256_by_gf16};
use super::{Factors, Planes};

/// The largest register.
const MOST_BYTES: usize = 64;

/// See [`super::add_cross_products`]; lengths were checked there.
#[inline(always)]
pub(super) fn add_cross_products<R: Register>(
    factors: Factors,
    sum: &mut [u8],
    x: [Planes<'_>; 2],
    y: [Planes<'_>; 2],
) {
    match factors {
        Factors::Bits => add::<R, 1, 1>(bits, sum, x, y),
        Factors::Gf4 => add::<R, 2, 2>(gf4, sum, x, y),
        Factors::Gf16 => add::<R, 4, 4>(gf16, sum, x, y),
        Factors::Gf16ByGf4 => add::<R, 4, 2>(gf16_by_gf4, sum, x, y),
        Factors::Gf256ByGf16 => add::<R, 8, 4>(gf256_by_gf16, sum, x, y),
    }
}

#[inline(always)]
fn add<R: Register, const X: usize, const Y: usize>(
    multiply: impl Fn([R; X], [R; Y]) -> [R; X],
    sum: &mut [u8],
    [x0, x1]: [Planes<'_>; 2],
    [y0, y1]: [Planes<'_>; 2],
) {
    let len = sum.len() / X;
    let whole = len / R::BYTES * R::BYTES;
    for at in (0..whole).step_by(R::BYTES) {
        let (y0, y1) = (load::<R, Y>(y0, at), load::<R, Y>(y1, at));
        let left = multiply(load(x0, at), add_each(y0, y1));
        let product = add_each(left, multiply(load(x1, at), y0));
        for (p, product) in product.into_iter().enumerate() {
            let place = &mut sum[p * len + at..][..R::BYTES];
            R::load(place).xor(product).store(place);
        }
    }
    let rest = len - whole;
    if rest > 0 {
        let (y0, y1) = (load_rest::<R, Y>(y0, whole, rest), load_rest::<R, Y>(y1, whole, rest));
        let left = multiply(load_rest(x0, whole, rest), add_each(y0, y1));
        let product = add_each(left, multiply(load_rest(x1, whole, rest), y0));
        for (p, product) in product.into_iter().enumerate() {
            let mut padded = [0; MOST_BYTES];
            product.store(&mut padded);
            let place = &mut sum[p * len + whole..][..rest];
            place.iter_mut().zip(padded).for_each(|(sum, byte)| *sum ^= byte);
        }
    }
}

#[inline(always)]
fn add_each<R: Register, const N: usize>(a: [R; N], b: [R; N]) -> [R; N] {
    core::array::from_fn(|i| a[i].xor(b[i]))
}

#[inline(always)]
fn load<R: Register, const N: usize>(planes: Planes<'_>, at: usize) -> [R; N] {
    core::array::from_fn(|p| R::load(&planes.bytes[p * planes.stride + at..][..R::BYTES]))
}

/// Fewer bytes than a register has, and zeros behind them.
#[inline(always)]
fn load_rest<R: Register, const N: usize>(planes: Planes<'_>, at: usize, rest: usize) -> [R; N] {
    core::array::from_fn(|p| {
        let mut padded = [0; MOST_BYTES];
        padded[..rest].copy_from_slice(&planes.bytes[p * planes.stride + at..][..rest]);
        R::load(&padded)
    })
}
