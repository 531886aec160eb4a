//! The MAC check: it verifies that every opened value is the shared one.
//!
//! Coins are tossed after everything is opened. They give every opened value v_j with MAC m_j an independent
//! coefficient chi_j. Every party computes sigma_i = sum chi_j m_ij - alpha_i sum chi_j v_j. The sum of all
//! sigma_i is sum chi_j (m_j - alpha v_j), which is 0 if everything is right. If some v_j are off by d_j, the
//! sum is alpha times sum chi_j d_j, plus any value that a cheater adds to its own part. The cheater fixes
//! that before it can know alpha, so the sum is 0 with probability at most 2 / |F|, however many values there
//! are (security-notes H; Damgard et al. 2012, figure "MACCheck"; Keller et al. 2017, section 2). If there
//! are three parties or more, they first compare digests of what each has seen. So all v_j are the same at
//! all honest parties.
//!
//! A **zero test** reveals whether the sum is zero, and nothing else. It takes a random product c = a b that
//! is used for nothing else: the parties open d = sigma - a and then z = d b + c = sigma b, both by
//! commitment. (In the plain check of the papers all parties open their parts of sigma. A party that opened
//! with an error learns alpha from the others' parts, and can then withhold its own; security-notes F.)
//!
//! * *It finds errors.* If a cheater shifts d by e and z by f, then z = (sigma + e) b + f. The cheater fixed
//!   e before it saw d. So sigma + e = 0 for a sigma that is alpha times something needs a guess at alpha,
//!   and otherwise z = 0 needs a guess at b: 2 / |F| together.
//! * *The product need not be verified.* An error in c that depends on nothing secret is a part of f. In
//!   addition a cheater can make c wrong by a function g of bits of honest shares of a, if it makes other
//!   offers from transfer to transfer; and by sums of Delta_i b_i, where b_i is the share of honest party i,
//!   if it uses other factors from peer to peer (`mascot/triples.rs`). Together z = sum (sigma + e + Delta_i)
//!   b_i + g(a) + f. The b_i stay uniform under any knowledge of a and alpha, because no message reveals
//!   anything of them. So z is uniform, and reveals nothing of g(a), unless all sigma + e + Delta_i are zero.
//!   They are zero if sigma = 0 and the cheater changed none of these values, or by a guess at alpha. Then z
//!   reveals something of a; but all that a has hidden is sigma, which the cheater knows. (The parts of sigma
//!   of single honest parties are also hidden by their shares of MACs.) So neither a sacrifice nor a
//!   combination of several products is needed. A cheater that makes c wrong fails its own test.
//! * *It reveals nothing of alpha*, even if it fails and the cheater, which sees z first, withholds its own
//!   part for ever: d is uniform because a is, and z is independent of d and alpha, as said. The cheater
//!   learns whether sigma + e is zero, that is, that one value which it has chosen beforehand is not alpha.
//!   So silence does not cost the key; a failure does, as in every check. Over Q tests that end in either way
//!   the loss is Q 2 / |F|.
//! * *Tests that run side by side* under the same key reveal nothing more, because each has its own product
//!   and its own coins. Their sums are looked at one after the other, and after a failure in one session the
//!   key is given up ([`MacKey::judge`]). So a test of another session that ends later does not count, and
//!   many guesses at once are as good as one.
//!
//! All this needs sigma to be alpha times something, and not to consist of bits of alpha that a cheater has
//! guessed one by one, because silence would then reveal something. `mascot/cope.rs` and the check of
//! transfers guarantee that: there the holder of a share of alpha is the first to know.
//!
//! Coins are the same at all honest parties (`commitment.rs`). Two parties need neither common coins nor
//! commitments (`check/of_two.rs`).

mod of_two;
#[cfg(test)]
mod tests;

use polyclave_field::{MacField, Word};
use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::key::MacKey;
use super::opening::Openings;
use super::source::Product;
use crate::commitment::commit_and_open;
use crate::interface::net::Net;
use crate::{Error, Result, coins};

pub(crate) use of_two::{Answered, Asked, CHECK_ROUNDS_OF_TWO, check_of_two};

/// Rounds of a [`check`].
pub(crate) const CHECK_ROUNDS: u64 = 6;

/// Checks all openings since the last check, which uses up a random product. If it fails the key is given up.
/// Six rounds.
pub(crate) fn check<F: MacField>(
    key: &MacKey<F>,
    openings: &mut Openings<F>,
    product: Product<F>,
    net: &mut dyn Net,
) -> Result<()> {
    key.refuse_retired()?;
    zero_test(key, openings, product, net).inspect_err(|e| key.retire_after(e))?;
    openings.clear();
    Ok(())
}

fn zero_test<F: MacField>(
    key: &MacKey<F>,
    openings: &Openings<F>,
    product: Product<F>,
    net: &mut dyn Net,
) -> Result<()> {
    let (context, sigma) = difference(key, openings, net)?;
    zero_test_in(key, &context, *sigma, product, net)
}

/// Tests that a sum is zero of which every party has a part, and which is alpha times something. It uses up a
/// random product. `coin` is what the parties agreed on for this sum. If it fails the key is given up. Four
/// rounds.
pub(crate) fn zero_test_of<F: MacField>(
    key: &MacKey<F>,
    coin: &[u8; 32],
    part: F::Word,
    product: Product<F>,
    net: &mut dyn Net,
) -> Result<()> {
    key.refuse_retired()?;
    zero_test_in(key, coin, part, product, net).inspect_err(|e| key.retire_after(e))
}

fn zero_test_in<F: MacField>(
    key: &MacKey<F>,
    context: &[u8],
    part: F::Word,
    product: Product<F>,
    net: &mut dyn Net,
) -> Result<()> {
    let shares = open_sum::<F>(context, part ^ product.a, net)?;
    let z = F::multiply(shares, product.b) ^ product.c;
    let sum = open_sum::<F>(context, z, net)?;
    key.judge(|| (sum != F::Word::ZERO).then_some(FAILED))
}

const FAILED: Error = Error::CheckFailed { what: "the MACs of opened values" };

/// This party's part of sum chi_j (m_j - alpha v_j), and what the parties must agree on when they open it.
fn difference<F: MacField>(
    key: &MacKey<F>,
    openings: &Openings<F>,
    net: &mut dyn Net,
) -> Result<([u8; 64], Zeroizing<F::Word>)> {
    // The digest of what was seen is the context of the coins: parties that saw different things get none,
    // and accuse nobody, since contexts are compared before openings.
    let transcript = if net.parties() > 2 { openings.transcript() } else { [0; 32] };
    let seed = coins::toss(&transcript, net)?;
    // The toss has compared the transcripts. That the openings are bound to them, too, is not needed.
    let mut context = [0; 64];
    context[..32].copy_from_slice(&transcript);
    context[32..].copy_from_slice(&seed);

    Ok((context, part_of_difference(key, openings, &seed)))
}

/// The same, with coins that are known.
fn part_of_difference<F: MacField>(
    key: &MacKey<F>,
    openings: &Openings<F>,
    coins: &[u8; 32],
) -> Zeroizing<F::Word> {
    let mut coefficients = Coefficients::<F>::new(coins);
    let mut values = F::Word::ZERO;
    let mut sigma = Zeroizing::new(F::Word::ZERO);
    let elements = openings.elements.chunks(BATCH).zip(openings.element_macs.chunks(BATCH));
    for (opened, macs) in elements {
        let chi = coefficients.next(opened.len());
        values ^= F::inner_product(chi, opened);
        *sigma ^= F::inner_product(chi, macs);
    }
    for (opened, macs) in openings.cells.chunks(BATCH).zip(openings.cell_macs.chunks(BATCH)) {
        let chi = coefficients.next(opened.len());
        values ^= F::embedded_inner_product(chi, opened);
        *sigma ^= F::inner_product(chi, macs);
    }
    *sigma ^= F::multiply(key.reveal_own_share(), values);
    sigma
}

/// The sum of what all parties say at once.
fn open_sum<F: MacField>(context: &[u8], share: F::Word, net: &mut dyn Net) -> Result<F::Word> {
    let mut message = Zeroizing::new(vec![0; F::BYTES]);
    F::write_row(&[share], &mut message);
    let mut sum = F::Word::ZERO;
    for bytes in commit_and_open(context, &message, net)?.iter().filter(|bytes| !bytes.is_empty()) {
        let mut share = [F::Word::ZERO];
        F::read_row(bytes, &mut share);
        sum ^= share[0];
    }
    Ok(sum)
}

/// Values that coefficients are drawn for at a time.
const BATCH: usize = 512;

/// Independent uniform elements from tossed coins.
pub struct Coefficients<F: MacField> {
    stream: AesPrg,
    bytes: Vec<u8>,
    words: Vec<F::Word>,
}

impl<F: MacField> Coefficients<F> {
    /// Determined by the seed.
    pub fn new(seed: &[u8; 32]) -> Self {
        let derived = blake3::derive_key("polyclave 2026 coefficients of a check", seed);
        let mut key = [0; 16];
        key.copy_from_slice(&derived[..16]);
        Coefficients { stream: AesPrg::new(&key, 0), bytes: Vec::new(), words: Vec::new() }
    }

    /// The next ones.
    pub fn next(&mut self, count: usize) -> &[F::Word] {
        self.bytes.resize(count * F::BYTES, 0);
        self.words.resize(count, F::Word::ZERO);
        self.stream.fill(&mut self.bytes);
        F::read_row(&self.bytes, &mut self.words);
        &self.words
    }
}
