//! The last step of a proof: vectors of 64 elements, and a mask in front of each. Half of the elements of U
//! are from A and half from B, and in W it is the other way round.
//!
//! U and W become polynomials of degree 64 through 65 points: at point 0 a random u_0 that the prover shares
//! with V1, or w_0 that it shares with V2, and at points 1 to 64 the elements. p = U W has degree 128, and
//! 129 values fix it. The claim is p(1) + .. + p(64) = c. So the value at point 1 is not sent: each verifier
//! derives its share of it from its share of c. V1 has its shares of the other values from a generator, V2
//! receives the rest. A coin r is tossed. V1 sends U(r) and its share of p(r) to V2, which verifies U(r)
//! W(r) = p(r).
//!
//! * **Sound**: if the claim is false, p is not U W. Two polynomials of degree 128 agree in at most 128 of
//!   the 2^64 - 129 values that r can have.
//! * **Zero knowledge**: V2's shares of p are masked by V1's. U(r) contains u_0 times a factor that is not
//!   zero, because r is none of the points; so it is uniform to V2. V1's share of p(r) follows from U(r),
//!   W(r) and V2's own share.

use std::sync::LazyLock;

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::super::ring::{Ring, seed};
use super::interpolation::{Interpolation, point};
use super::proof::{Claims, Prover, Vector, draw, read, write};
use crate::Result;
use crate::interface::net::Net;

/// Elements of a vector in the last step. With more of them a proof has fewer rounds, and a party more to do
/// for a small proof.
pub(super) const WIDTH: usize = 64;
/// Points that fix U, and points that fix p.
const OF_FACTOR: usize = WIDTH + 1;
const OF_PRODUCT: usize = 2 * WIDTH + 1;
/// The point whose value follows from the claim.
const DERIVED: usize = 1;

static OF_FACTORS: LazyLock<Interpolation> = LazyLock::new(|| Interpolation::through(OF_FACTOR));
static OF_PRODUCTS: LazyLock<Interpolation> = LazyLock::new(|| Interpolation::through(OF_PRODUCT));
/// What makes the values at the points behind those that fix a factor.
static BEHIND: LazyLock<Vec<Vec<u64>>> = LazyLock::new(|| {
    let embedded = |point| OF_FACTORS.at_point(point).iter().map(|c| Gf2_64::embed(c.0)).collect();
    (OF_FACTOR..OF_PRODUCT).map(embedded).collect()
});

/// Whether the proof of the party before this one is right.
pub(super) fn run(prover: &mut Prover, claims: &Claims, ring: &mut Ring, net: &mut dyn Net) -> Result<bool> {
    // Of this party's proof and of that of the party behind; of the party before and of this party's.
    let [u_mine, u_next] = prover.with_first.each_mut().map(draw::<1>);
    let [w_previous, w_mine] = prover.with_second.each_mut().map(draw::<1>);
    let [[a, b], [next_a, next_b]] = &claims.shares;
    let product = product(&masked(u_mine, [a, b]), &masked(w_mine, [next_b, next_a]));
    let [mine, of_next] =
        prover.with_first.each_mut().map(|generator| Zeroizing::new(draw::<{ OF_PRODUCT - 1 }>(generator)));
    let mut rest = mine;
    rest.iter_mut().zip(without_derived(&product)).for_each(|(share, value)| *share ^= value);
    #[cfg(test)]
    prover.lie.last(&mut rest[..]);
    let (received, coins) = prover.asked(&write(&*rest), ring, net)?;

    let r = point_apart(coins);
    let of_factor = OF_FACTORS.at(r);
    let of_product = OF_PRODUCTS.at(r);
    let at_r = |shares: &[u64; OF_PRODUCT - 1], claim| {
        Gf2_64::inner_product(&of_product, &*with_derived(shares, claim))
    };
    let u = Gf2_64::inner_product(&of_factor, &masked(u_next, [next_a, next_b]));
    let from_first = ring.pass_back(&write(&[u, at_r(&of_next, claims.of_next)]), net)?;

    let [u, first] = read::<2>(&from_first);
    let second = at_r(&read(&received), claims.of_previous);
    let w = Gf2_64::inner_product(&of_factor, &masked(w_previous, [b, a]));
    Ok(ct_eq(&[Gf2_64::multiply(u, w)], &[first ^ second]))
}

/// A vector behind its mask.
fn masked(mask: [u64; 1], halves: [&Vector; 2]) -> Vector {
    let mut all = Zeroizing::new(Vec::with_capacity(OF_FACTOR));
    all.extend(mask);
    halves.into_iter().for_each(|half| all.extend_from_slice(&half[..WIDTH / 2]));
    all
}

/// The values of p at all points.
fn product(u: &[u64], w: &[u64]) -> Zeroizing<[u64; OF_PRODUCT]> {
    Zeroizing::new(core::array::from_fn(|at| match at < OF_FACTOR {
        true => Gf2_64::multiply(u[at], w[at]),
        false => {
            let value = |vector| Gf2_64::inner_product(&BEHIND[at - OF_FACTOR], vector);
            Gf2_64::multiply(value(u), value(w))
        }
    }))
}

fn without_derived(values: &[u64; OF_PRODUCT]) -> impl Iterator<Item = u64> + '_ {
    values.iter().enumerate().filter(|(at, _)| *at != DERIVED).map(|(_, value)| *value)
}

/// All shares, with the one that makes those of points 1 to 64 add up to the claim's.
fn with_derived(shares: &[u64; OF_PRODUCT - 1], claim: u64) -> Zeroizing<[u64; OF_PRODUCT]> {
    let mut all = Zeroizing::new([0; OF_PRODUCT]);
    all[..DERIVED].copy_from_slice(&shares[..DERIVED]);
    all[DERIVED + 1..].copy_from_slice(&shares[DERIVED..]);
    // It is zero until then.
    all[DERIVED] = all[1..OF_FACTOR].iter().fold(claim, |sum, share| sum ^ share);
    all
}

/// A uniform element of K that is none of the points.
fn point_apart(coins: [u8; 32]) -> u64 {
    let mut generator = AesPrg::new(&seed(&coins), 0);
    first_apart(std::iter::repeat_with(|| draw::<1>(&mut generator)[0]))
}

/// The first that is none of the points, at which U(r) would be one of the secrets in U.
fn first_apart(mut candidates: impl Iterator<Item = u64>) -> u64 {
    let is_apart = |r: &u64| (0..OF_PRODUCT).all(|i| point(i) != *r);
    candidates.find(is_apart).expect("they do not end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_at_a_point_where_a_secret_would_be_told_are_drawn_again() {
        let u: Vec<u64> = (0..OF_FACTOR as u64).map(|i| i * i + 0x0123_4567).collect();
        for at in 0..OF_FACTOR {
            assert_eq!(Gf2_64::inner_product(&OF_FACTORS.at(point(at)), &u), u[at], "it would be told");
        }
        let apart = 0x0123_4567_89ab_cdef;
        assert_eq!(first_apart((0..OF_PRODUCT).map(point).chain([apart, 2])), apart);
    }
}
