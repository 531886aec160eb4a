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
//! 2. **Halves.** Let U(X) and W(X) be the lines through the halves of the vectors at 0 and 1, and q(X) = <U(X), W(X)>, of degree 2. The
//!    prover gives shares of q(0) and of the coefficient q2 of X^2: to V1 by a generator that both have, to V2 in a message. q(1) follows,
//!    because q(0) + q(1) is the claim. After that a coin r is tossed. The new claim is <U(r), W(r)> = q(r), with vectors half as long. A
//!    false claim stays false except with probability 2 / 2^64, because a wrong q agrees with the right one in two points at most.
//! 3. **Last step** (`last_step.rs`): 32 / (2^64 - 33).
//! 4. **Verdicts** go round. Nothing is opened unless all three are good.
//!
//! **Soundness**: (1 + 2 levels + 33) / 2^64 < 2^-57 for one proof. **Every coin is tossed after the messages that it checks have come**,
//! with commitments that are compared; none is batched, cached or put off. If V1 and P_i had different coins, V2 would learn a linear
//! function of share i.
//!
//! **Zero knowledge.** V1 is sent nothing but coins and verdicts. V2 receives, at each level, q(0) and q2 plus what a generator under k_i
//! gives, which V2 lacks; the last step is argued in its file. The verdict depends on the errors of a cheater and on the coins alone.
//!
//! **Cost**: three rounds a level, 16 bytes a level to one neighbour; about 20 products in K for each product that is proven.

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::super::ring::{Purpose, Ring, keys, next, previous, seed};
use super::super::{PARTIES, Pair};
use super::last_step::{self, WIDTH};
use super::products::Products;
use crate::coins::toss;
use crate::net::Net;
use crate::session::Stream;
use crate::shamir::Setup;
use crate::{Error, Result};

/// Secret vectors over K.
pub(super) type Vector = Zeroizing<Vec<u64>>;

/// One party's generators for proofs, in one session and stream.
pub(super) struct Prover {
    /// Under k_i and k_(i+1): what the prover of this key shares with the party before it.
    pub(super) shared: Pair<AesPrg>,
    /// The same keys: what the prover before this key shares with the party behind it.
    pub(super) masks: Pair<AesPrg>,
    /// The stream, and how many coins were tossed in it.
    label: [u8; 40],
    tosses: u64,
}

/// The vectors and claims of a party in all three proofs.
pub(super) struct Claims {
    /// U of this party's proof, and of that of the party behind, whose V1 it is.
    pub(super) u: Pair<Vector>,
    /// W of the proof of the party before, whose V2 it is, and of this party's proof.
    pub(super) w: Pair<Vector>,
    /// The share of the claim that this party has as V1 of the party behind.
    pub(super) of_next: u64,
    /// The share of the claim that this party has as V2 of the party before.
    pub(super) of_previous: u64,
}

impl Prover {
    pub(super) fn new(setup: &Setup, stream: &Stream) -> Prover {
        let generators = |purpose| keys(setup, stream, purpose).map(|key| AesPrg::new(&seed(&key), 0));
        Prover {
            shared: generators(Purpose::Proof),
            masks: generators(Purpose::LastStep),
            label: stream.label(),
            tosses: 0,
        }
    }

    /// Proves this party's products, and verifies those of the others.
    pub(super) fn prove(&mut self, products: &Products, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        let weights = weights(self.coins(ring, net)?, products.count());
        let mut claims = Claims::new(products, &weights);
        while claims.u[0].len() > WIDTH {
            claims = self.halve(claims, ring, net)?;
        }
        let is_right = last_step::run(self, &claims, ring, net)?;
        exchange_verdicts(is_right, ring, net)
    }

    /// Fresh coins. Two rounds.
    pub(super) fn coins(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<[u8; 32]> {
        let mut context = b"polyclave replicated proof 1".to_vec();
        context.extend_from_slice(&self.label);
        context.extend_from_slice(&self.tosses.to_le_bytes());
        self.tosses += 1;
        ring.counts().rounds += 2;
        toss(&context, net)
    }

    /// From vectors to vectors of half the length.
    fn halve(&mut self, claims: Claims, ring: &mut Ring, net: &mut dyn Net) -> Result<Claims> {
        let (u, w) = (&claims.u[0], &claims.w[1]);
        let ((u0, u1), (w0, w1)) = (u.split_at(u.len() / 2), w.split_at(w.len() / 2));
        let at_zero = Gf2_64::inner_product(u0, w0);
        let of_square = Gf2_64::inner_product(&sum(u0, u1), &sum(w0, w1));
        let [mine, of_next] = self.shared.each_mut().map(draw::<2>);
        let message = write(&[at_zero ^ mine[0], of_square ^ mine[1]]);
        let received = ring.pass_on(&message, net)?;
        let of_previous = read::<2>(&received);
        let r = word(&self.coins(ring, net)?);
        // q(r) = q(0) + r (c + q2) + r^2 q2.
        let evaluate = |claim: u64, [at_zero, of_square]: [u64; 2]| {
            let linear = Gf2_64::multiply(r, claim ^ of_square);
            at_zero ^ linear ^ Gf2_64::multiply(Gf2_64::multiply(r, r), of_square)
        };
        Ok(Claims {
            of_next: evaluate(claims.of_next, of_next),
            of_previous: evaluate(claims.of_previous, of_previous),
            u: claims.u.map(|vector| fold(&vector, r)),
            w: claims.w.map(|vector| fold(&vector, r)),
        })
    }
}

impl Claims {
    /// The vectors of all products, and zeros up to a length that can be halved.
    fn new(products: &Products, weights: &[u64]) -> Claims {
        let half = products.count().next_power_of_two().max(WIDTH / 2);
        let vector = || [0, 1].map(|_| Zeroizing::new(vec![0; 2 * half]));
        let mut claims = Claims { u: vector(), w: vector(), of_next: 0, of_previous: 0 };
        let mut at = 0;
        for piece in products.pieces() {
            let range = at..at + piece.before.len();
            let weights = &weights[range.clone()];
            for share in 0..2 {
                let (ux, uy) = claims.u[share].split_at_mut(half);
                let (wy, wx) = claims.w[share].split_at_mut(half);
                for (cells, u, w) in [(&piece.x[share], ux, wx), (&piece.y[share], uy, wy)] {
                    Gf2_64::embed_row(&mut u[range.clone()], cells);
                    Gf2_64::multiply_rows(&mut w[range.clone()], &u[range.clone()], weights);
                }
            }
            claims.of_next ^= Gf2_64::embedded_inner_product(weights, &piece.before);
            claims.of_previous ^= Gf2_64::embedded_inner_product(weights, &piece.behind);
            at = range.end;
        }
        claims
    }
}

/// Each party says whether the proof of the party before it was right. One round.
fn exchange_verdicts(is_right: bool, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
    ring.counts().rounds += 1;
    let mine = [u8::from(is_right)];
    let mut theirs = [[0]; PARTIES];
    let mut out: [&[u8]; PARTIES] = [&[]; PARTIES];
    let mut into = theirs.each_mut().map(|verdict| &mut verdict[..]);
    into[ring.me.index()] = &mut [];
    for peer in [previous(ring.me), next(ring.me)] {
        out[peer.index()] = &mine;
    }
    net.exchange(&out, &mut into)?;
    theirs[ring.me.index()] = mine;
    match theirs == [[1]; PARTIES] {
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

/// An element of K from coins.
pub(super) fn word(coins: &[u8; 32]) -> u64 {
    u64::from_le_bytes(*coins.first_chunk().expect("there are 32 bytes"))
}

/// (1 + r) times the lower half, plus r times the upper half.
fn fold(vector: &[u64], r: u64) -> Vector {
    let (low, high) = vector.split_at(vector.len() / 2);
    let mut folded = Zeroizing::new(vec![0; low.len()]);
    Gf2_64::combine(&mut folded, &[(low, 1 ^ r), (high, r)], 0);
    folded
}

fn sum(a: &[u64], b: &[u64]) -> Vector {
    Zeroizing::new(a.iter().zip(b).map(|(a, b)| a ^ b).collect())
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
pub(super) fn write(elements: &[u64]) -> Vec<u8> {
    elements.iter().flat_map(|element| element.to_le_bytes()).collect()
}

/// Elements from as many bytes as they take.
pub(super) fn read<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let words = bytes.as_chunks().0;
    core::array::from_fn(|i| u64::from_le_bytes(words[i]))
}
