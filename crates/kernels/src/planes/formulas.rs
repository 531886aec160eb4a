//! Products in the tower of fields, of registers that hold one coordinate of many elements each.
//!
//! All of this has to be compiled into functions that have the instructions of their registers. A closure, or
//! a function that is passed as a value, would be a function of its own without them, which calls even an
//! XOR. So there are none here and in the ways through the planes.

/// A register of bits.
pub(super) trait Register: Copy {
    /// Bytes in it.
    const BYTES: usize;

    /// The first [`Self::BYTES`] bytes of a slice, which is at least as long.
    fn load(bytes: &[u8]) -> Self;

    /// Overwrites the first [`Self::BYTES`] bytes of a slice, which is at least as long.
    fn store(self, bytes: &mut [u8]);

    fn xor(self, other: Self) -> Self;

    fn and(self, other: Self) -> Self;
}

#[inline(always)]
fn bits<R: Register>([x]: [R; 1], [y]: [R; 1]) -> [R; 1] {
    [x.and(y)]
}

/// (x0 + x1 mu)(y0 + y1 mu), with mu^2 = mu + 1.
#[inline(always)]
fn gf4<R: Register>([x0, x1]: [R; 2], [y0, y1]: [R; 2]) -> [R; 2] {
    let (low, high) = (x0.and(y0), x1.and(y1));
    let both = x0.xor(x1).and(y0.xor(y1));
    [low.xor(high), both.xor(low)]
}

/// (x0 + x1 zeta)(y0 + y1 zeta), with zeta^2 = zeta + mu.
#[inline(always)]
fn gf16<R: Register>([a, b, c, d]: [R; 4], [e, f, g, h]: [R; 4]) -> [R; 4] {
    let (low, [high0, high1]) = (gf4([a, b], [e, f]), gf4([c, d], [g, h]));
    let both = gf4([a.xor(c), b.xor(d)], [e.xor(g), f.xor(h)]);
    // mu (high0 + high1 mu).
    let times_mu = [high1, high0.xor(high1)];
    [low[0].xor(times_mu[0]), low[1].xor(times_mu[1]), both[0].xor(low[0]), both[1].xor(low[1])]
}

#[inline(always)]
fn gf16_by_gf4<R: Register>([a, b, c, d]: [R; 4], y: [R; 2]) -> [R; 4] {
    let ([a, b], [c, d]) = (gf4([a, b], y), gf4([c, d], y));
    [a, b, c, d]
}

#[inline(always)]
fn gf256_by_gf16<R: Register>([a, b, c, d, e, f, g, h]: [R; 8], y: [R; 4]) -> [R; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (gf16([a, b, c, d], y), gf16([e, f, g, h], y));
    [a, b, c, d, e, f, g, h]
}

/// A product of two elements.
pub(super) trait Multiply<R, const X: usize, const Y: usize> {
    fn multiply(x: [R; X], y: [R; Y]) -> [R; X];
}

macro_rules! multiply {
    ($name:ident, $function:ident, $of_x:literal, $of_y:literal) => {
        pub(super) struct $name;

        impl<R: Register> Multiply<R, $of_x, $of_y> for $name {
            #[inline(always)]
            fn multiply(x: [R; $of_x], y: [R; $of_y]) -> [R; $of_x] {
                $function(x, y)
            }
        }
    };
}

multiply!(Bits, bits, 1, 1);
multiply!(Gf4, gf4, 2, 2);
multiply!(Gf16, gf16, 4, 4);
multiply!(Gf16ByGf4, gf16_by_gf4, 4, 2);
multiply!(Gf256ByGf16, gf256_by_gf16, 8, 4);
