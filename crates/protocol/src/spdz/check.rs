//! The MAC check: it verifies that everything that was opened is what was shared.
//!
//! Coins are tossed after everything is opened, and give every opened value v_j with MAC m_j an independent coefficient chi_j.
//! Every party takes sigma_i = sum chi_j m_ij - alpha_i sum chi_j v_j; sum sigma_i = sum chi_j (m_j - alpha v_j) is 0 if all
//! is right. If some v_j is off by d_j, it is alpha times sum chi_j d_j plus whatever a cheater adds to its own part, which it
//! has fixed before it could know alpha: 0 with probability at most 2 / |F|, however many values there are (security-notes H;
//! Damgard et al. 2012, figure "MACCheck"; Keller et al. 2017, section 2). Among three parties and more the digests
//! of what each has seen are compared first, so all v_j are the same at all honest parties.
//!
//! Whether the sum is zero tells a **zero test**, and nothing else: with a random product c = a b that is used for nothing else,
//! d = sigma - a is opened and then z = d b + c = sigma b; both by commitment. (In the plain check of the papers all open their
//! parts of sigma: who opens with an error learns alpha from the others' and can then withhold its own; security-notes F.)
//!
//! * *It finds errors.* If a cheater shifts d by e and z by f, z = (sigma + e) b + f. It has fixed e before it saw d, so
//!   sigma + e = 0 for sigma = alpha times something needs a guess at alpha; otherwise z = 0 needs a guess at b: 2 / |F| together.
//! * *The product need not be verified.* What is off in c, but depends on nothing that is secret, is a part of f. A cheater
//!   can make c off by a function g of bits of honest shares of a, by other offers from transfer to transfer, and by sums of
//!   Delta_i b_i, with b_i the share of honest party i, by other factors from peer to peer (`mascot/triples.rs`). All in all
//!   z = sum (sigma + e + Delta_i) b_i + g(a) + f. The b_i are uniform, whatever is known of a and alpha, as no message tells
//!   anything of them; so z is uniform, and says nothing of g(a), unless all sigma + e + Delta_i are zero. They are if sigma = 0
//!   and the cheater has left all of that as it should be, or by a guess at alpha. Then z says something of a; but a has hidden
//!   nothing that the cheater does not know: sigma. (The parts of sigma of single honest parties are hidden by their shares of
//!   MACs besides.) So neither a sacrifice nor a combination of several products is needed; whoever has c off fails its own test.
//! * *It tells nothing of alpha*, even if it fails and the cheater, who sees z first, withholds its own part for ever: d is uniform
//!   as a is, z independent of d and alpha as said. What it learns is whether sigma + e is zero: that one value, which it has
//!   chosen beforehand, is not alpha. So silence does not cost the key; a failure does, as in every check. Over Q tests that end
//!   in either way the loss is Q 2 / |F|.
//! * *Side by side* with another test under the same key it tells nothing more: each has its own product and its own coins. After a
//!   failure in one session the key is given up, and a test of another that ends later does not count.
//!
//! That sigma is alpha times something, and not made of bits of alpha that a cheater has guessed one by one, which silence would
//! then tell, is what `mascot/cope.rs` sees to, and the check of transfers: there the holder of a share of alpha is the first to
//! know.
//!
//! Coins are the same at all honest parties (`commitment.rs`).

#[cfg(test)]
mod tests;

use polyclave_field::{MacField, Word};
use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::key::MacKey;
use super::opening::Openings;
use super::source::Product;
use crate::commitment::commit_and_open;
use crate::net::Net;
use crate::{Error, Result, coins};

/// Rounds of a [`check`].
pub(super) const ROUNDS: u64 = 6;

/// Checks all openings since the last check, which uses up a random product. If it fails the key is given up. Six rounds.
pub(crate) fn check<F: MacField>(
    key: &MacKey<F>,
    openings: &mut Openings<F>,
    product: Product<F>,
    net: &mut dyn Net,
) -> Result<()> {
    key.refuse_retired()?;
    zero_test(key, openings, product, net).inspect_err(|e| key.retire_after(e))?;
    key.refuse_retired()?;
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
    let shares = open_sum::<F>(&context, *sigma ^ product.a, net)?;
    let z = F::multiply(shares, product.b) ^ product.c;
    match open_sum::<F>(&context, z, net)? == F::Word::ZERO {
        true => Ok(()),
        false => Err(FAILED),
    }
}

const FAILED: Error = Error::CheckFailed { what: "the MACs of opened values" };

/// This party's part of sum chi_j (m_j - alpha v_j), and what the parties must agree on when they open it.
fn difference<F: MacField>(
    key: &MacKey<F>,
    openings: &Openings<F>,
    net: &mut dyn Net,
) -> Result<([u8; 64], Zeroizing<F::Word>)> {
    // The digest of what was seen is the context of the coins: parties that saw different things get none, and accuse nobody, since
    // contexts are compared before openings.
    let transcript = if net.parties() > 2 { openings.transcript() } else { [0; 32] };
    let seed = coins::toss(&transcript, net)?;
    let mut context = [0; 64];
    context[..32].copy_from_slice(&transcript);
    context[32..].copy_from_slice(&seed);

    let mut coefficients = Coefficients::<F>::new(&seed);
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
    Ok((context, sigma))
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
