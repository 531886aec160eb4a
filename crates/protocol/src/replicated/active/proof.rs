//! The proof that all products are right: a fully linear interactive oracle proof with two verifiers,
//! recursively halved (Boneh et al. 2019, sections 4 and 5; Boyle, Gilboa, Ishai and Nof 2019 for three
//! parties).
//!
//! For every product, prover P_i claims
//!
//! x_i y_(i+1) + y_i x_(i+1) = \[z_i + x_i y_i + F(k_i)\] + \[F(k_(i+1))\].
//!
//! The party before, V1 = P_(i-1), knows share i and has received z_i. So it knows x_i, y_i and the first
//! bracket. The party behind, V2 = P_(i+1), knows x_(i+1), y_(i+1) and the second. All three prove at once,
//! under the same coins.
//!
//! 1. **Rows** (`rows.rs`): 32 / 2^64. Products stand in sixteen rows, and become a claim <U, W> = c1 + c2
//!    over K = GF(2^64), with one element of U and W for each factor of sixteen products. V1 knows U and c1,
//!    and V2 knows W and c2.
//! 2. **Halves.** Let U(X) and W(X) be the lines through the halves of the vectors at 0 and 1, and q(X) =
//!    <U(X), W(X)>, of degree 2. (If the number is odd, a zero is added.) The prover gives shares of q(0) and
//!    of the coefficient q2 of X^2: to V1 by a generator that both have, to V2 in a message. q(1) follows,
//!    because q(0) + q(1) is the claim. After that a coin r is tossed. The new claim is
//!    <U(r), W(r)> = q(r), with vectors half as long. A false claim stays false except with probability 2 / 2^64, because a wrong q agrees
//!    with the right one in two points at most.
//! 3. **Last step** (`last_step.rs`): 128 / (2^64 - 129).
//! 4. **Verdicts** go round. Nothing is opened unless all three are good.
//!
//! **Soundness**: (32 + 2 levels + 129) / 2^64 < 2^-56 for one proof. **Every coin is tossed after the
//! messages that it checks have come**, with commitments that are compared; none is batched, cached or put
//! off. If V1 and P_i had different coins, or products in another order, V2 would learn a linear function of
//! share i. So coins are bound to the number of products and of messages before them.
//!
//! **Zero knowledge.** V1 is sent nothing but coins and verdicts. V2 receives, at each level, q(0) and q2
//! plus what a generator under k_i gives, which V2 lacks; the last step is argued in its file. The verdict
//! depends on the errors of a cheater and on the coins alone.
//!
//! **Cost**, to one neighbour: 240 bytes and five rounds for the rows, 16 bytes and three rounds for a level,
//! 1,024 bytes, 16 to the other neighbour and four rounds for the last step, and a round for the verdicts.

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::words64::{inner_product_unreduced, reduce};
use zeroize::Zeroizing;

use super::super::Pair;
use super::super::ring::{Purpose, Ring, generators};
use super::last_step::{self, WIDTH};
use super::products::Products;
use super::rows::{self, Weights};
use crate::coins::toss;
use crate::interface::net::Net;
use crate::interface::session::Stream;
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
    pub(super) label: [u8; 40],
    pub(super) tosses: u64,
    claims: Claims,
    #[cfg(test)]
    pub(super) lie: super::cheaters::Lie,
    /// The number of a toss, and what its coin is to be.
    #[cfg(test)]
    pub(super) forced: Option<(u64, u64)>,
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
            #[cfg(test)]
            forced: None,
        }
    }

    /// Proves this party's products, and verifies those of the others.
    pub(super) fn prove(&mut self, products: &Products, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        let counts = [products.count() as u64, products.rounds()].map(u64::to_le_bytes);
        self.context = [b"polyclave replicated proof 1", &self.label[..], counts.as_flattened()].concat();
        let mut claims = std::mem::take(&mut self.claims);
        self.first_level(products, &mut claims, ring, net)?;
        // One level more would be right too: zeros fill up. It only costs its rounds.
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
        #[cfg(not(test))]
        return toss(&context, net);
        #[cfg(test)]
        toss(&context, net).map(|coins| super::cheaters::forced(coins, self.forced, self.tosses))
    }

    /// From products to vectors over K.
    fn first_level(
        &mut self,
        products: &Products,
        claims: &mut Claims,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<()> {
        let weights = Weights::new(self.coins(ring, net)?, products);
        let values = rows::evaluate(products, &weights);
        [claims.of_next, claims.of_previous] = rows::claims(products, &weights);
        #[cfg(test)]
        self.lie.begin(&weights);
        let [mine, of_next] = self
            .with_first
            .each_mut()
            .map(|generator| Zeroizing::new(draw::<{ rows::POINTS - 1 }>(generator)));
        let mut masked = mine;
        masked.iter_mut().zip(&values[1..]).for_each(|(share, value)| *share ^= value);
        #[cfg(test)]
        self.lie.of_rows(&mut masked[0]);
        let of_previous = Zeroizing::new(read(&ring.pass_on(&write(&*masked), net)?));
        let r = word(&self.coins(ring, net)?);
        let coefficients = rows::coefficients(r);
        let at_r = |claim: u64, others: &[u64; rows::POINTS - 1]| {
            let first = Gf2_64::multiply(coefficients[0], weights.derived(claim, others));
            first ^ Gf2_64::inner_product(&coefficients[1..], others)
        };
        claims.of_next = at_r(claims.of_next, &of_next);
        claims.of_previous = at_r(claims.of_previous, &of_previous);
        #[cfg(test)]
        self.lie.goes_on([coefficients[0], coefficients[1]]);
        rows::fold(products, &weights, r, claims);
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
        let message = self.lie.message(message);
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
        self.lie.goes_on([r, 1 ^ r]);
        Ok(r)
    }
}

impl Claims {
    /// Vectors of so many elements, with any contents.
    pub(super) fn make_room(&mut self, len: usize) {
        for vector in [&mut self.u_mine, &mut self.u_next, &mut self.w_previous, &mut self.w_mine] {
            // What is large enough is kept: new room would only cost time.
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

/// Each party says whether the proof of the party before it was right. One round.
fn exchange_verdicts(is_right: bool, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
    let mine = [u8::from(is_right)];
    let theirs = ring.swap_with_both([&mine, &mine], net)?;
    match is_right && theirs.iter().all(|verdict| verdict[..] == [1]) {
        true => Ok(()),
        false => Err(Error::CheckFailed { what: "a proof of the products" }),
    }
}

/// An element of K from coins.
pub(super) fn word(coins: &[u8; 32]) -> u64 {
    u64::from_le_bytes(*coins.first_chunk().expect("there are 32 bytes"))
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

/// Overwrites the lower half by (1 + r) times it plus r times the upper half, which may be shorter by an
/// element that is zero.
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
    let mut elements = [0; N];
    fill(generator, &mut elements);
    elements
}

/// Overwrites all by the next elements of a generator.
pub(super) fn fill(generator: &mut AesPrg, elements: &mut [u64]) {
    for element in elements {
        let mut word = [0; 8];
        generator.fill(&mut word);
        *element = u64::from_le_bytes(word);
    }
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
