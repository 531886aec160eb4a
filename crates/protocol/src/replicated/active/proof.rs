//! The proof that all products are right: a fully linear interactive oracle proof with two verifiers,
//! recursively (Boneh et al. 2019, sections 4 and 5; Boyle, Gilboa, Ishai and Nof 2019 for three
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
//! 1. **Rows** (`rows.rs`): 16 / 2^64. Products stand in eight rows, and become a claim <U, W> = c1 + c2 over
//!    K = GF(2^64). V1 knows U and c1, and V2 knows W and c2. U is (A, B) of share i, and W is (B, A) of share
//!    i + 1: so a party has four vectors, a pair for each of its shares, for all three proofs.
//! 2. **Levels.** The sixteen parts of a vector are the values of polynomials in four variables, of degree 1
//!    in each, where every variable is 0 or 1. (Zeros are added up to a multiple of sixteen.) q = <U, W> has
//!    degree 2 in each variable. It is fixed by its 81 values where every variable is 0, 1 or infinite (the
//!    coefficient of the square). The prover gives shares of 80 of them: to V1 by a generator that both have,
//!    to V2 in a message. The last one, q(1, 1, 1, 1), follows, because the sixteen values at 0 and 1 add up
//!    to the claim. After that coins r are tossed, one for each variable. The new claim is <U(r), W(r)> =
//!    q(r), with vectors a sixteenth as long. A false claim stays false except with probability 8 / 2^64: if
//!    q is wrong, its difference to the right one is not zero and of degree 2 in each of four variables, so
//!    at most this part of all r are zeros of it (Schwartz 1980, Zippel 1979).
//! 3. **Last step** (`last_step.rs`): 128 / (2^64 - 129).
//! 4. **Verdicts** go round. Nothing is opened unless all three are good.
//!
//! **Soundness**: (16 + 8 levels + 129) / 2^64 < 2^-56 for one proof: there are fewer than 8 levels. **Every
//! coin is opened after the messages that it checks have come**, with commitments that are compared; none is
//! batched, cached or put off. Commitments travel with these messages: V2 opens its own only when it has that
//! of P_i, and until then no coin is known. If V1 and P_i had different coins, or products in another order,
//! V2 would learn a linear function of share i. So coins are bound to the number of products and of messages
//! before them.
//!
//! **Zero knowledge.** V1 is sent nothing but coins and verdicts. V2 receives, for the rows and at each
//! level, values plus what a generator under k_i gives, which V2 lacks; the last step is argued in its file.
//! The verdict depends on the errors of a cheater and on the coins alone.
//!
//! **Cost**, to one neighbour: 56 bytes and four rounds for the rows, 640 bytes and two rounds for a level,
//! 1,024 bytes, 16 to the other neighbour and three rounds for the last step, and a round for the verdicts.

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::words64::parts::{self, PARTS, PLACES};
use polyclave_kernels::words64::reduce;
use zeroize::Zeroizing;

use super::super::ring::{Purpose, Ring, generators, next, previous};
use super::super::{PARTIES, Pair};
use super::last_step::{self, WIDTH};
use super::products::Products;
use super::rows::{self, Weights};
use crate::coins::{Toss, toss};
use crate::interface::net::Net;
use crate::interface::session::Stream;
use crate::pool::Shares;
use crate::shamir::Setup;
use crate::{Error, Result};

/// Secret elements of K.
pub(super) type Vector = Zeroizing<Vec<u64>>;

/// Values of q that a level's message has.
pub(super) const VALUES: usize = PLACES - 1;
/// The place of the other one, where every variable is 1.
const DERIVED: usize = PLACES / 2;
/// In how many variables.
const VARIABLES: usize = 4;

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
    /// A and B of both shares of this party.
    pub(super) shares: Pair<Pair<Vector>>,
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
        self.context = [b"polyclave replicated proof 2", &self.label[..], counts.as_flattened()].concat();
        let mut claims = std::mem::take(&mut self.claims);
        self.first_level(products, &mut claims, ring, net)?;
        // One level more would be right too: zeros fill up. It only costs its rounds.
        while claims.len > WIDTH / 2 {
            self.level(&mut claims, ring, net)?;
        }
        claims.fill_up();
        let is_right = last_step::run(self, &claims, ring, net)?;
        self.claims = claims;
        exchange_verdicts(is_right, ring, net)
    }

    /// Coins that check no message, but what all parties have computed. Two rounds.
    fn coins(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<[u8; 32]> {
        let context = self.next_context();
        ring.counts().rounds += 2;
        toss(&context, net).map(|coins| self.forced(coins))
    }

    /// Sends a message of the prover to V2, and tosses the coins that check it. Returns that of the party
    /// before, with its commitment behind, and the coins. Commitments go with the message, and this party
    /// opens its own when it has the message that it verifies. Two rounds.
    pub(super) fn asked(
        &mut self,
        message: &[u8],
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<(Shares, [u8; 32])> {
        let context = self.next_context();
        let toss = Toss::begin(&context, ring.me)?;
        let mine = toss.commitment();
        let to_next = Zeroizing::new([message, mine].concat());
        let (before, behind) = (previous(ring.me), next(ring.me));
        let [received, of_behind] =
            ring.exchange_with_both([mine, &to_next], [to_next.len(), mine.len()], net)?;
        let mut commitments = vec![mine.to_vec(); PARTIES];
        commitments[before.index()] = received[message.len()..].to_vec();
        commitments[behind.index()] = of_behind.to_vec();
        ring.counts().rounds += 1;
        let coins = toss.open(commitments, net)?;
        Ok((received, self.forced(coins)))
    }

    /// What the next coins are for.
    fn next_context(&mut self) -> Vec<u8> {
        let context = [&self.context[..], &self.tosses.to_le_bytes()].concat();
        self.tosses += 1;
        context
    }

    /// The coins that were tossed, or in a test others.
    fn forced(&self, coins: [u8; 32]) -> [u8; 32] {
        #[cfg(not(test))]
        return coins;
        #[cfg(test)]
        super::cheaters::forced(coins, self.forced, self.tosses)
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
        #[cfg(test)]
        self.lie.begin(&weights);
        let [mine, of_next] = self.with_first.each_mut().map(|generator| Zeroizing::new(draw(generator)));
        let mut masked = mine;
        masked.iter_mut().zip(&*values).for_each(|(share, value)| *share ^= value);
        #[cfg(test)]
        self.lie.of_rows(&mut masked[0]);
        let (received, coins) = self.asked(&write(&*masked), ring, net)?;
        let of_previous = Zeroizing::new(read(&received));
        let [r] = read(&coins);
        let coefficients = rows::coefficients(r);
        let (at_rows, at_others) = coefficients.split_at(rows::POINTS - rows::OTHERS);
        let known = rows::known(products, &weights, at_rows);
        let shares: [&[u64; rows::OTHERS]; 2] = [&of_next, &of_previous];
        [claims.of_next, claims.of_previous] =
            [0, 1].map(|i| known[i] ^ Gf2_64::inner_product(at_others, shares[i]));
        #[cfg(test)]
        self.lie.goes_on([at_rows[0], at_others[0]]);
        rows::fold(products, &weights, r, claims);
        Ok(())
    }

    /// From vectors to vectors of a sixteenth of the length.
    fn level(&mut self, claims: &mut Claims, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        let all = claims.in_parts();
        let [[a, b], [next_a, next_b]] = claims.shares.each_ref().map(|s| s.each_ref().map(|v| &v[..all]));
        let [first, second] = [parts::products(a, next_b), parts::products(b, next_a)].map(Zeroizing::new);
        let values = Zeroizing::new(sent(|place| reduce::<Gf2_64>(first[place] ^ second[place])));
        let r = self.fix_claims(claims, values, ring, net)?;
        let [_, weights @ ..] = of_parts(r);
        for vector in claims.shares.iter_mut().flatten() {
            parts::fold::<Gf2_64>(&mut vector[..all], weights);
        }
        claims.len = all / PARTS;
        Ok(())
    }

    /// Sends a level's message, tosses its coins, and gives the verifiers their shares of the new claims.
    fn fix_claims(
        &mut self,
        claims: &mut Claims,
        values: Zeroizing<[u64; VALUES]>,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<[u64; VARIABLES]> {
        #[cfg(test)]
        let values = Zeroizing::new(self.lie.message(*values));
        let [mut masked, of_next] = self.with_first.each_mut().map(|of| Zeroizing::new(draw::<VALUES>(of)));
        masked.iter_mut().zip(&*values).for_each(|(share, value)| *share ^= value);
        let (received, coins) = self.asked(&write(&*masked), ring, net)?;
        let (of_previous, r) = (Zeroizing::new(read::<VALUES>(&received)), read(&coins));
        let weights = of_places(r);
        claims.of_next = at_place(&weights, claims.of_next, &of_next);
        claims.of_previous = at_place(&weights, claims.of_previous, &of_previous);
        #[cfg(test)]
        self.lie.goes_on([weights[DERIVED], weights[0] ^ weights[DERIVED]]);
        Ok(r)
    }
}

impl Claims {
    /// Vectors of so many elements, with any contents.
    pub(super) fn make_room(&mut self, len: usize) {
        let needed = len.next_multiple_of(PARTS).max(WIDTH / 2);
        for vector in self.shares.iter_mut().flatten() {
            // What is large enough is kept: new room would only cost time.
            if vector.len() < needed {
                *vector = Zeroizing::new(vec![0; needed]);
            }
        }
        self.len = len;
    }

    /// Adds zeros until all parts are equally long, and returns how long vectors are with them.
    fn in_parts(&mut self) -> usize {
        let all = self.len.next_multiple_of(PARTS);
        self.shares.iter_mut().flatten().for_each(|vector| vector[self.len..all].fill(0));
        all
    }

    /// Zeros up to the width of the last step.
    fn fill_up(&mut self) {
        self.shares.iter_mut().flatten().for_each(|vector| vector[self.len..WIDTH / 2].fill(0));
    }
}

/// The weights with which values at 0, at 1 and at infinity make that of a polynomial of degree 2 at r.
fn of_degree_two(r: u64) -> [u64; 3] {
    [1 ^ r, r, Gf2_64::multiply(r, 1 ^ r)]
}

/// The weights of the values of q at all places.
fn of_places(r: [u64; VARIABLES]) -> [u64; PLACES] {
    let of_variables = r.map(of_degree_two);
    core::array::from_fn(|place| {
        let digits = [place / 27, place / 9 % 3, place / 3 % 3, place % 3];
        product(of_variables.iter().zip(digits).map(|(weights, digit)| weights[digit]))
    })
}

/// The weights of the parts. They add up to 1.
fn of_parts(r: [u64; VARIABLES]) -> [u64; PARTS] {
    core::array::from_fn(|part| {
        product((0..VARIABLES).map(|i| if part >> (VARIABLES - 1 - i) & 1 == 1 { r[i] } else { 1 ^ r[i] }))
    })
}

fn product(factors: impl Iterator<Item = u64>) -> u64 {
    factors.fold(1, Gf2_64::multiply)
}

/// Something for each place whose value is sent.
fn sent(of_place: impl Fn(usize) -> u64) -> [u64; VALUES] {
    core::array::from_fn(|i| of_place(i + usize::from(i >= DERIVED)))
}

/// A verifier's share of the new claim, from what was sent. The value that was not follows from the claim.
fn at_place(weights: &[u64; PLACES], claim: u64, values: &[u64; VALUES]) -> u64 {
    // The summands of the claim are the places without an infinite variable.
    let is_summand = |place: usize| [1, 3, 9, 27].iter().all(|digit| place / digit % 3 < 2);
    let summands = sent(|place| is_summand(place).into());
    let derived = claim ^ Gf2_64::inner_product(&summands, values);
    Gf2_64::multiply(weights[DERIVED], derived) ^ Gf2_64::inner_product(&sent(|i| weights[i]), values)
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

/// The next elements of a generator.
pub(super) fn draw<const N: usize>(generator: &mut AesPrg) -> [u64; N] {
    let mut elements = [0; N];
    fill(generator, &mut elements);
    elements
}

/// Overwrites all by the next elements of a generator.
pub(super) fn fill(generator: &mut AesPrg, elements: &mut [u64]) {
    let mut bytes = Zeroizing::new([0; 512]);
    for elements in elements.chunks_mut(64) {
        let bytes = &mut bytes[..8 * elements.len()];
        generator.fill(bytes);
        Gf2_64::read_row(bytes, elements);
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
