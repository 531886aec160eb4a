//! Products in the tower of fields, of registers that hold one coordinate of many elements each.

/// A register of bits.
pub(super) trait Register: Copy {
    /// Bytes in it.
    const BYTES: usize;

    /// The first bytes of a slice, which has so many.
    fn load(bytes: &[u8]) -> Self;

    /// Overwrites the first bytes of a slice, which has so many.
    fn store(self, bytes: &mut [u8]);

    fn xor(self, other: Self) -> Self;

    fn and(self, other: Self) -> Self;
}

#[inline(always)]
pub(super) fn bits<R: Register>([x]: [R; 1], [y]: [R; 1]) -> [R; 1] {
    [x.and(y)]
}

/// (x0 + x1 mu)(y0 + y1 mu), with mu^2 = mu + 1.
#[inline(always)]
pub(super) fn gf4<R: Register>([x0, x1]: [R; 2], [y0, y1]: [R; 2]) -> [R; 2] {
    let (low, high) = (x0.and(y0), x1.and(y1));
    let both = x0.xor(x1).and(y0.xor(y1));
    [low.xor(high), both.xor(low)]
}

/// (x0 + x1 zeta)(y0 + y1 zeta), with zeta^2 = zeta + mu.
#[inline(always)]
pub(super) fn gf16<R: Register>([a, b, c, d]: [R; 4], [e, f, g, h]: [R; 4]) -> [R; 4] {
    let (low, [high0, high1]) = (gf4([a, b], [e, f]), gf4([c, d], [g, h]));
    let both = gf4([a.xor(c), b.xor(d)], [e.xor(g), f.xor(h)]);
    // mu (high0 + high1 mu).
    let times_mu = [high1, high0.xor(high1)];
    [low[0].xor(times_mu[0]), low[1].xor(times_mu[1]), both[0].xor(low[0]), both[1].xor(low[1])]
}

#[inline(always)]
pub(super) fn gf16_by_gf4<R: Register>([a, b, c, d]: [R; 4], y: [R; 2]) -> [R; 4] {
    let ([a, b], [c, d]) = (gf4([a, b], y), gf4([c, d], y));
    [a, b, c, d]
}

#[inline(always)]
pub(super) fn gf256_by_gf16<R: Register>([a, b, c, d, e, f, g, h]: [R; 8], y: [R; 4]) -> [R; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (gf16([a, b, c, d], y), gf16([e, f, g, h], y));
    [a, b, c, d, e, f, g, h]
}
