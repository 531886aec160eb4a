//! The check of leaky products: z = x y with its MAC, or a cheater is found
//! (docs/protocols/tower-material.md, check C).
//!
//! When all offers of a phase are in, coins give every product z_j an independent coefficient chi_j in
//! GF(2^64). The parties open rho = sum chi_j z_j + r, where r is a random element, and a zero test
//! ([`crate::spdz`]) checks the MAC of rho.
//!
//! Let a cheater's offers put the values off by E'_j and the MACs by E''_j (`products.rs`). After the coins
//! it can also send a wrong rho, off by d, and add s to its part of the sum. The zero test passes if sum
//! chi_j (E''_j + E'_j Delta) = d Delta + s, where Delta is the sum of both keys. Unless sum chi_j E'_j = d,
//! that names Delta: 2^-64. Otherwise sum chi_j E''_j = s. The coefficients are uniform and independent of
//! each other and of all offers, so two different families of errors have the same two sums with probability
//! 2^-64 at most. So except with probability 2^-63 the test passes only if all errors are those that the
//! cheater expected when it chose d and s: **if the honest party's bits lie, for each product, in a coset of
//! the subspace where its errors are 0**. The cheater can then correct its own part by what it expected, as
//! if its errors were 0. Coefficients must not be powers of one element or common to several products. The
//! test would then be a linear function of bits of many products, which a cheater guesses with one bit of
//! luck; `rotation.rs` counts one bit for each function of each product.
//!
//! r hides everything else that rho could tell. What a failed test tells is a guess about bits that are
//! thrown away. The zero test's sum is a constant, or alpha times something that the cheater knows, and never
//! single bits of alpha: a cheater that is silent instead of failing learns nothing of the key. But it has
//! tried its guesses for nothing. So silence after the coins counts
//! ([`Error::Unanswered`](crate::Error::Unanswered)).
//!
//! **More than two parties.** The honest party's bits are those of all honest parties together. Parties that
//! were told different rho open nothing to each other. Cheaters that have other bits of x towards one honest
//! party than towards another fail for all values of the secrets: z is then off by honest shares of y, whose
//! MACs contain keys that the cheaters do not know (docs/protocols/tower-material.md).
//!
//! Rounds: nine.

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::secret::mark_public;

use super::Key;
use super::opening::context;
use super::products::Elements;
use super::word_products::Words;
use crate::authenticated::{Authenticated, Coefficients, Product, zero_test_of};
use crate::commitment::broadcast;
use crate::interface::net::Net;
use crate::{Error, Result, coins};

/// Products whose coefficients are drawn at once.
const PIECE: usize = 512;

/// Products of a phase: of elements of subfields, and of words.
#[derive(Default)]
pub(super) struct Products<'a> {
    pub(super) elements: Vec<Elements<'a>>,
    pub(super) words: Vec<Words<'a>>,
}

/// Checks all products of a phase with a random element and a random product, both for this only use.
pub(super) fn check(
    products: &Products<'_>,
    random: &Authenticated<Gf2_64>,
    product: Product<Gf2_64>,
    key: &Key,
    net: &mut dyn Net,
) -> Result<()> {
    let coin = coins::toss_for_check(b"leaky products", net)?;
    let mut coefficients = Coefficients::<Gf2_64>::new(&coin);
    let (mut rho, mut mac) = (random.values[0], random.macs[0]);
    for Elements { values, macs } in &products.elements {
        for (values, macs) in values.chunks(PIECE).zip(macs.chunks(PIECE)) {
            let chi = coefficients.next(values.len());
            rho ^= Gf2_64::embedded_inner_product(chi, values);
            mac ^= Gf2_64::inner_product(chi, macs);
        }
    }
    for Words { values, macs } in &products.words {
        for (values, macs) in values.chunks(PIECE).zip(macs.chunks(PIECE)) {
            let chi = coefficients.next(values.len());
            rho ^= Gf2_64::inner_product(chi, values);
            mac ^= Gf2_64::inner_product(chi, macs);
        }
    }
    let opened = open_word(rho, net).map_err(Error::in_a_check)?;
    let sigma = mac ^ Gf2_64::multiply(key.reveal_own_share(), opened);
    let context = context(&coin, [&opened.to_le_bytes()[..]], net);
    zero_test_of(key, &context, sigma, product, net).map_err(Error::in_a_check)
}

/// The sum of the words that all parties tell each other. One round.
pub(super) fn open_word(word: u64, net: &mut dyn Net) -> Result<u64> {
    let message = broadcast(&word.to_le_bytes(), net)?;
    // They are sent.
    message.iter().for_each(|bytes| mark_public(bytes));
    let word = |bytes: &Vec<u8>| bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
    Ok(message.iter().fold(0, |sum, bytes| sum ^ word(bytes)))
}
