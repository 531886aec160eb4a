//! The proof that all products are right: a fully linear interactive oracle proof with two verifiers, recursively halved (Boneh et al.
//! 2019, sections 4 and 5; Boyle, Gilboa, Ishai and Nof 2019 for three parties).
//!
//! For every product, prover P_i claims
//!
//! x_i y_(i+1) + y_i x_(i+1) = \[z_i + x_i y_i + F(k_i)\] + \[F(k_(i+1))\].
//!
//! The party before, V1 = P_(i-1), knows share i and has received z_i. So it knows x_i, y_i and the first bracket. The party behind,
//! V2 = P_(i+1), knows x_(i+1), y_(i+1) and the second. All three prove at once, under the same coins.
//!
//! 1. **Weights.** Coins give every product k a weight theta_k in K = GF(2^64). The claim becomes <U, W> = c1 + c2, with U = (x_i, y_i),
//!    W = (theta y_(i+1), theta x_(i+1)), where V1 knows U and c1, and V2 knows W and c2. If any product is wrong, the claim is false
//!    except with probability 2^-64: the errors are elements of GF(2^8) in K, and not all zero.
//! 2. **Halves.** Let U(X) and W(X) be the lines through the halves of the vectors at 0 and 1, and q(X) = <U(X), W(X)>, of degree 2. (If the
//!    number is odd, a zero is added.) The prover gives shares of q(0) and of the coefficient q2 of X^2: to V1 by a generator that both
//!    have, to V2 in a message. q(1) follows, because q(0) + q(1) is the claim. After that a coin r is tossed. The new claim is
//!    <U(r), W(r)> = q(r), with vectors half as long. A false claim stays false except with probability 2 / 2^64, because a wrong q agrees
//!    with the right one in two points at most.
//! 3. **Last step** (`last_step.rs`): 32 / (2^64 - 33).
//! 4. **Verdicts** go round. Nothing is opened unless all three are good.
//!
//! **Soundness**: (1 + 2 levels + 33) / 2^64 < 2^-57 for one proof. **Every coin is tossed after the messages that it checks have come**,
//! with commitments that are compared; none is batched, cached or put off. If V1 and P_i had different coins, or products in another
//! order, V2 would learn a linear function of share i. So coins are bound to the number of products and of messages before them.
//!
//! **Zero knowledge.** V1 is sent nothing but coins and verdicts. V2 receives, at each level, q(0) and q2 plus what a generator under k_i
//! gives, which V2 lacks; the last step is argued in its file. The verdict depends on the errors of a cheater and on the coins alone.
//!
//! **Cost**: three rounds a level, 16 bytes a level to one neighbour. The first level, which halves factors x from factors y, works on
//! bytes: two products in GF(2^8) and six embedded ones for each product that is proven. The later ones take as much again.

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::cells::Embedding;
use polyclave_kernels::gf256::multiply;
use polyclave_kernels::words64::{inner_product_unreduced, reduce};
use zeroize::Zeroizing;

use super::super::Pair;
use super::super::ring::{Purpose, Ring, add, generators, seed};
use super::last_step::{self, WIDTH};
use super::products::{Piece, Products};
use crate::coins::toss;
use crate::net::Net;
use crate::session::Stream;
use crate::shamir::Setup;
use crate::{Error, Result};

/// Secret elements of K.
pub(super) type Vector = Zeroizing<Vec<u64>>;

/// Elements that are worked on at once: in the nearest cache.
const TILE: usize = 512;

/// One party's generators for proofs, in one session and stream, and room for them.
pub(super) struct Prover {
    /// Under k_i and k_(i+1): what the prover of this key shares with V1.
    pub(super) with_first: Pair<AesPrg>,
    /// The same keys: what the prover before this key shares with V2.
    pub(super) with_second: Pair<AesPrg>,
    context: Vec<u8>,
    label: [u8; 40],
    tosses: u64,
    claims: Claims,
    #[cfg(test)]
    pub(super) lie: super::cheaters::Lie,
}

/// The vectors and claims of a party in all three proofs.
#[derive(Default)]
pub(super) struct Claims {
    /// U of this party's proof, and of that of the party behind, whose V1 it is.
    pub(super) u_mine: Vector,
    pub(super) u_next: Vector,
    /// W of the proof of the party before, whose V2 it is, and of this party's proof.
    pub(super) w_previous: Vector,
    pub(super) w_mine: Vector,
    /// Elements of a vector now. What is behind them means nothing.
    len: usize,
    /// The share of the claim that this party has as V1 of the party behind.
    pub(super) of_next: u64,
    /// The share of the claim that this party has as V2 of the party before.
    pub(super) of_previous: u64,
}

impl Prover {
    pub(super) fn new(setup: &Setup, stream: &Stream) -> Prover {
        Prover {
            with_first: generators(setup, stream, Purpose::Proof),
            with_second: generators(setup, stream, Purpose::LastStep),
            context: Vec::new(),
            label: stream.label(),
            tosses: 0,
            claims: Claims::default(),
            #[cfg(test)]
            lie: Default::default(),
        }
    }

    /// Proves this party's products, and verifies those of the others.
    pub(super) fn prove(&mut self, products: &Products, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        let counts = [products.count() as u64, products.rounds()].map(u64::to_le_bytes);
        self.context = [b"polyclave replicated proof 1", &self.label[..], counts.as_flattened()].concat();
        let weights = weights(self.coins(ring, net)?, products.count());
        let mut claims = std::mem::take(&mut self.claims);
        self.first_level(products, &weights, &mut claims, ring, net)?;
        while claims.len > WIDTH {
            self.halve(&mut claims, ring, net)?;
        }
        claims.fill_up();
        let is_right = last_step::run(self, &claims, ring, net)?;
        self.claims = claims;
        exchange_verdicts(is_right, ring, net)
    }

    /// Fresh coins. Two rounds.
    pub(super) fn coins(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<[u8; 32]> {
        let context = [&self.context[..], &self.tosses.to_le_bytes()].concat();
        self.tosses += 1;
        ring.counts().rounds += 2;
        toss(&context, net)
    }

    /// Halves the vectors of all products into x and y, before they are vectors over K.
    fn first_level(
        &mut self,
        products: &Products,
        weights: &[u64],
        claims: &mut Claims,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<()> {
        let mut at_zero = 0;
        let mut of_square = 0;
        (claims.of_next, claims.of_previous) = (0, 0);
        for_tiles(products, |piece, tile, places| {
            let weights = &weights[places];
            let sums = [0, 1].map(|share| sum(&piece.x[share][tile.clone()], &piece.y[share][tile.clone()]));
            let of_elements = |cells: &[u8]| Gf2_64::embedded_inner_product(weights, cells);
            at_zero ^= of_elements(&product(&piece.x[0][tile.clone()], &piece.y[1][tile.clone()]));
            of_square ^= of_elements(&product(&sums[0], &sums[1]));
            claims.of_next ^= of_elements(&piece.as_first[tile.clone()]);
            claims.of_previous ^= of_elements(&piece.as_second[tile]);
        });
        #[cfg(test)]
        self.lie.begin(weights[0]);
        let r = self.fix_claims(claims, [at_zero, of_square], ring, net)?;
        claims.make_room(products.count());
        let [one_less, times] = [1 ^ r, r].map(multiples);
        for_tiles(products, |piece, tile, places| {
            let between = |from: &[u8], to: &[u8], vector: &mut [u64]| {
                let mut other = Zeroizing::new([0; TILE]);
                let other = &mut other[..vector.len()];
                one_less.words64(vector, from);
                times.words64(other, to);
                vector.iter_mut().zip(other).for_each(|(sum, word)| *sum ^= *word);
            };
            let weighted = |from: &[u8], to: &[u8], vector: &mut [u64]| {
                let mut line = Zeroizing::new([0; TILE]);
                let line = &mut line[..vector.len()];
                between(from, to, line);
                Gf2_64::multiply_rows(vector, line, &weights[places.clone()]);
            };
            let [[x0, x1], [y0, y1]] =
                [&piece.x, &piece.y].map(|both| [0, 1].map(|share: usize| &both[share][tile.clone()]));
            between(x0, y0, &mut claims.u_mine[places.clone()]);
            between(x1, y1, &mut claims.u_next[places.clone()]);
            weighted(y0, x0, &mut claims.w_previous[places.clone()]);
            weighted(y1, x1, &mut claims.w_mine[places.clone()]);
        });
        Ok(())
    }

    /// From vectors to vectors of half the length.
    fn halve(&mut self, claims: &mut Claims, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        let half = claims.len.div_ceil(2);
        let (u, w) = (&claims.u_mine[..claims.len], &claims.w_mine[..claims.len]);
        let at_zero = Gf2_64::inner_product(&u[..half], &w[..half]);
        let of_square = inner_product_of_sums(u.split_at(half), w.split_at(half));
        let r = self.fix_claims(claims, [at_zero, of_square], ring, net)?;
        let len = claims.len;
        for vector in [&mut claims.u_mine, &mut claims.u_next, &mut claims.w_previous, &mut claims.w_mine] {
            let (low, high) = vector[..len].split_at_mut(half);
            fold(low, high, r);
        }
        claims.len = half;
        Ok(())
    }

    /// Sends a level's message, tosses its coin, and gives the verifiers their shares of the new claims.
    fn fix_claims(
        &mut self,
        claims: &mut Claims,
        message: [u64; 2],
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<u64> {
        #[cfg(test)]
        let message = self.lie.told(message);
        let [mine, of_next] = self.with_first.each_mut().map(draw::<2>);
        let masked = write(&[message[0] ^ mine[0], message[1] ^ mine[1]]);
        let of_previous = read::<2>(&ring.pass_on(&masked, net)?);
        let r = word(&self.coins(ring, net)?);
        // q(r) = q(0) + r (c + q2) + r^2 q2.
        let evaluate = |claim: u64, [at_zero, of_square]: [u64; 2]| {
            let linear = Gf2_64::multiply(r, claim ^ of_square);
            at_zero ^ linear ^ Gf2_64::multiply(Gf2_64::multiply(r, r), of_square)
        };
        claims.of_next = evaluate(claims.of_next, of_next);
        claims.of_previous = evaluate(claims.of_previous, of_previous);
        #[cfg(test)]
        self.lie.goes_on(r);
        Ok(r)
    }
}

impl Claims {
    /// Vectors of so many elements, with any contents.
    fn make_room(&mut self, len: usize) {
        for vector in [&mut self.u_mine, &mut self.u_next, &mut self.w_previous, &mut self.w_mine] {
            if vector.len() < len.max(WIDTH) {
                *vector = Zeroizing::new(vec![0; len.max(WIDTH)]);
            }
        }
        self.len = len;
    }

    /// Zeros up to the width of the last step.
    fn fill_up(&mut self) {
        for vector in [&mut self.u_mine, &mut self.u_next, &mut self.w_previous, &mut self.w_mine] {
            vector[self.len..WIDTH].fill(0);
        }
    }
}

/// Calls `work` for tiles of all products: with a piece, the tile's range in it, and that among all products.
fn for_tiles(
    products: &Products,
    mut work: impl FnMut(&Piece, std::ops::Range<usize>, std::ops::Range<usize>),
) {
    let mut at = 0;
    for piece in products.pieces() {
        let count = piece.as_first.len();
        for start in (0..count).step_by(TILE) {
            let end = count.min(start + TILE);
            work(piece, start..end, at + start..at + end);
        }
        at += count;
    }
}

/// Each party says whether the proof of the party before it was right. One round.
fn exchange_verdicts(is_right: bool, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
    let mine = [u8::from(is_right)];
    let theirs = ring.swap_with_both([&mine, &mine], net)?;
    match is_right && theirs.iter().all(|verdict| verdict[..] == [1]) {
        true => Ok(()),
        false => Err(Error::CheckFailed { what: "a proof of the products" }),
    }
}

/// Pseudorandom weights from coins.
fn weights(coins: [u8; 32], count: usize) -> Vec<u64> {
    let mut bytes = vec![0; 8 * count];
    AesPrg::new(&seed(&coins), 0).fill(&mut bytes);
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The map from bytes to K that multiplies by a public element.
fn multiples(factor: u64) -> Embedding<8> {
    Embedding::new(core::array::from_fn(|i| Gf2_64::multiply(factor, Gf2_64::embed(1 << i)).into()))
}

/// An element of K from coins.
pub(super) fn word(coins: &[u8; 32]) -> u64 {
    u64::from_le_bytes(*coins.first_chunk().expect("there are 32 bytes"))
}

/// Sums and products of a tile.
fn sum(a: &[u8], b: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut sum = Zeroizing::new(a.to_vec());
    add(&mut sum, b);
    sum
}

fn product(a: &[u8], b: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut all = Zeroizing::new(vec![0; a.len()]);
    multiply(&mut all, a, b);
    all
}

/// The sum of (u0 + u1)(w0 + w1). The second halves may be shorter by an element, which is zero.
fn inner_product_of_sums((u0, u1): (&[u64], &[u64]), (w0, w1): (&[u64], &[u64])) -> u64 {
    let (mut u, mut w) = (Zeroizing::new([0; TILE]), Zeroizing::new([0; TILE]));
    let mut all = 0;
    for start in (0..u0.len()).step_by(TILE) {
        let end = u0.len().min(start + TILE);
        let sums = [(&mut u, u0, u1), (&mut w, w0, w1)];
        for (tile, low, high) in sums {
            let tile = &mut tile[..end - start];
            tile.copy_from_slice(&low[start..end]);
            tile.iter_mut().zip(&high[start..]).for_each(|(sum, word)| *sum ^= word);
        }
        all ^= inner_product_unreduced(&u[..end - start], &w[..end - start]);
    }
    reduce::<Gf2_64>(all)
}

/// Overwrites the lower half by (1 + r) times it plus r times the upper half, which may be shorter by an element that is zero.
fn fold(low: &mut [u64], high: &[u64], r: u64) {
    let mut folded = Zeroizing::new([0; TILE]);
    let shorter = high.len();
    for start in (0..low.len()).step_by(TILE) {
        let end = low.len().min(start + TILE);
        let both = end.min(shorter).max(start);
        let (tile, rest) = folded[..end - start].split_at_mut(both - start);
        Gf2_64::combine(
            tile,
            &[(&low[start..both], 1 ^ r), (&high[start.min(shorter)..both.min(shorter)], r)],
            0,
        );
        Gf2_64::combine(rest, &[(&low[both..end], 1 ^ r)], 0);
        low[start..end].copy_from_slice(&folded[..end - start]);
    }
}

/// The next elements of a generator.
pub(super) fn draw<const N: usize>(generator: &mut AesPrg) -> [u64; N] {
    core::array::from_fn(|_| {
        let mut word = [0; 8];
        generator.fill(&mut word);
        u64::from_le_bytes(word)
    })
}

/// Elements as bytes.
pub(super) fn write(elements: &[u64]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(elements.iter().flat_map(|element| element.to_le_bytes()).collect())
}

/// Elements from as many bytes as they take.
pub(super) fn read<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let words = bytes.as_chunks().0;
    core::array::from_fn(|i| u64::from_le_bytes(words[i]))
}
