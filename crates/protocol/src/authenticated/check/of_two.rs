//! The MAC check between two parties, in two rounds in place of six: each verifies for itself.
//!
//! Each party draws coins of its own, after everything was opened, and learns whether the sum sigma of all
//! chi_j (m_j - alpha v_j) is zero. It has a random product c = a b for its own test, of which both have
//! shares. In what follows V verifies, and P is its peer; both tests run side by side.
//!
//! 1. V sends the coins and d_V = sigma_V + a_V.
//! 2. P sends d_P = sigma_P + a_P and z_P = d b_P + c_P, where d = d_V + d_P. V takes what was opened if z_P
//!    is its own z_V = d b_V + c_V.
//!
//! If sigma = 0, then z_V + z_P = d b + c = sigma b = 0, and both are the same.
//!
//! * *P cheats.* It opened wrongly before V drew its coins, so sigma = alpha D, with D other than 0 except
//!   with probability 1 / |F|. Whatever d_P it sends is sigma_P + a_P + e for some e. Then z_V = (alpha D +
//!   e) b_V + alpha D b_P + something that P knows. V has told only d_V, which a_V masks, and so nothing of
//!   alpha; it has told nothing of b_V. Both are uniform. So P knows z_V only by a guess: at alpha, which it
//!   needs for e = alpha D, or at the product with b_V. V tells nothing but whether it goes on.
//! * *V cheats.* It sees d_P, masked by a_P, and z_P. It has fixed its d_V, which is off by some e, before.
//!   With what it knows, z_P tells it (sigma + e) b_P + sigma b_V. Where sigma = 0 that is e b_P, of no use.
//!   Where V opened wrongly, sigma = alpha D for a D that it knows, and b_P, which is uniform, hides alpha
//!   unless e = alpha D. So V learns whether alpha is the one value that it has chosen beforehand. In this
//!   test P finds nothing; it does in its own, which the same openings fail. The coins are no secret of V's,
//!   and it may choose them as it likes.
//! * *Both at once.* A cheater has seen the answer to its own test when it answers the other's. The product
//!   is another one, so that answer is uniform, unless the cheater has guessed alpha D. A check passes with
//!   wrong openings with probability 4 / |F| at most: for D = 0, for each e, and for the product with b.
//! * *Other messages in between*, as with circuits (`spdz/arithmetic/alongside.rs`). The peer may see a
//!   question before it asks its own, and repeat the coins or choose its part of d by them: then one sigma_P is
//!   told twice, under the masks of two products, from which nothing follows. What travels between question and
//!   answer depends on alpha, on the secrets of a circuit and on values, and not on a, b and c: products are
//!   drawn apart from the circuit that they come with (`spdz/garbled/behind.rs`). A comparison in between that
//!   can fail is one more guess at all of alpha, which is judged as this one. A session has a check for each
//!   evaluation, and so 4 / |F| for each.
//! * *Silence*: a party that falls silent after the first message has learned whether one guess at alpha is
//!   right, and is not counted. So s sessions that end so give it s / |F|: 2^-29 after 2^35 of them.
//!
//! # What products have to be
//! A product answers one question, also across restored images of memory: two answers d b_P + c_P with one
//! product give b_P, and with it sigma_P; after a wrong opening of the cheater that is alpha.
//!
//! a and b are uniform to the other party: V has told d_V before P sends anything, so a P that knew a_V
//! would have sigma_V, and with it alpha. So this takes triples that a [`Source`](super::super::Source) hands
//! out, of which a cheater knows nothing. The products of `check.rs` may be worse.

use polyclave_field::{MacField, Word};
use polyclave_kernels::secret::{ct_eq, mark_public};

use super::super::key::MacKey;
use super::super::opening::Openings;
use super::super::source::Product;
use super::{FAILED, part_of_difference};
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::{Error, Party, Result};

/// Rounds of a [`check_of_two`].
pub(crate) const CHECK_ROUNDS_OF_TWO: u64 = 2;

/// Bytes of the coins of a party.
const COINS: usize = 32;

/// Checks all openings since the last check, which uses up two products: one for the test of each party, in
/// their order. If it fails the key is given up. Two rounds.
pub(crate) fn check_of_two<F: MacField>(
    key: &MacKey<F>,
    openings: &mut Openings<F>,
    products: [Product<F>; 2],
    net: &mut dyn Net,
) -> Result<()> {
    key.refuse_retired()?;
    test(key, openings, products, net).inspect_err(|e| key.retire_after(e))?;
    openings.clear();
    Ok(())
}

fn test<F: MacField>(
    key: &MacKey<F>,
    openings: &Openings<F>,
    products: [Product<F>; 2],
    net: &mut dyn Net,
) -> Result<()> {
    let peer = peer_of(net)?;
    let (asked, question) = Asked::new(net.me(), key, openings, products)?;
    let theirs = swap(&question, peer, net)?;
    let (answered, answer) = asked.answer(key, openings, &theirs);
    answered.judge(key, &swap(&answer, peer, net)?)
}

/// A check in which this party has asked, and has not answered. Nothing is opened until it has ended.
pub(crate) struct Asked<F: MacField> {
    question: Question<F>,
    own: Product<F>,
    theirs: Product<F>,
}

/// A check in which this party has asked and answered.
pub(crate) struct Answered<F: MacField> {
    question: Question<F>,
    own: Product<F>,
}

impl<F: MacField> Asked<F> {
    /// Bytes of a question.
    pub(crate) const BYTES: usize = COINS + F::BYTES;

    /// Of what was opened until now. Also gives the question to the peer.
    pub(crate) fn new(
        me: Party,
        key: &MacKey<F>,
        openings: &Openings<F>,
        products: [Product<F>; 2],
    ) -> Result<(Self, Vec<u8>)> {
        let [first, second] = products;
        let [own, theirs] = if me == Party(0) { [first, second] } else { [second, first] };
        let question = Question::new(key, openings, &own)?;
        let bytes = question.to_bytes();
        Ok((Asked { question, own, theirs }, bytes))
    }

    /// Answers the peer's question, once: a second answer with the same product would show a share of the
    /// key.
    pub(crate) fn answer(
        self,
        key: &MacKey<F>,
        openings: &Openings<F>,
        question: &[u8],
    ) -> (Answered<F>, Vec<u8>) {
        let mut told = vec![0; Answered::<F>::BYTES];
        let answer = Question::from_bytes(question).answer(key, openings, &self.theirs);
        F::write_row(&answer, &mut told);
        (Answered { question: self.question, own: self.own }, told)
    }
}

impl<F: MacField> Answered<F> {
    /// Bytes of an answer.
    pub(crate) const BYTES: usize = 2 * F::BYTES;

    /// Whether the peer's answer is right.
    pub(crate) fn judge(self, key: &MacKey<F>, told: &[u8]) -> Result<()> {
        let [part, z] = read::<F, 2>(told);
        let expected = F::multiply(self.question.part ^ part, self.own.b) ^ self.own.c;
        key.judge(|| (!ct_eq(&[expected], &[z])).then_some(FAILED))
    }
}

/// The first message of V: its coins, and its part of d.
pub(super) struct Question<F: MacField> {
    pub(super) coins: [u8; COINS],
    pub(super) part: F::Word,
}

impl<F: MacField> Question<F> {
    pub(super) fn new(key: &MacKey<F>, openings: &Openings<F>, product: &Product<F>) -> Result<Self> {
        let mut coins = [0; COINS];
        random_bytes(&mut coins)?;
        // They are told.
        mark_public(&coins);
        Ok(Question { coins, part: *part_of_difference(key, openings, &coins) ^ product.a })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; COINS + F::BYTES];
        bytes[..COINS].copy_from_slice(&self.coins);
        F::write_row(&[self.part], &mut bytes[COINS..]);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut coins = [0; COINS];
        coins.copy_from_slice(&bytes[..COINS]);
        let [part] = read::<F, 1>(&bytes[COINS..]);
        Question { coins, part }
    }

    /// What P tells: its parts of d and of z.
    pub(super) fn answer(
        &self,
        key: &MacKey<F>,
        openings: &Openings<F>,
        product: &Product<F>,
    ) -> [F::Word; 2] {
        let part = *part_of_difference(key, openings, &self.coins) ^ product.a;
        [part, F::multiply(self.part ^ part, product.b) ^ product.c]
    }
}

fn read<F: MacField, const N: usize>(bytes: &[u8]) -> [F::Word; N] {
    let mut words = [F::Word::ZERO; N];
    F::read_row(bytes, &mut words);
    words
}

/// A message to the peer, and one of equal length from it. One round.
pub(super) fn swap(told: &[u8], peer: Party, net: &mut dyn Net) -> Result<Vec<u8>> {
    let mut heard = vec![0; told.len()];
    let (mut out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) = (vec![&[]; 2], vec![&mut [], &mut []]);
    out[peer.index()] = told;
    into[peer.index()] = &mut heard;
    net.exchange(&out, &mut into)?;
    Ok(heard)
}

fn peer_of(net: &dyn Net) -> Result<Party> {
    match net.parties() {
        2 => Ok(Party(1 - net.me().0)),
        parties => Err(Error::Misuse(format!("two parties take part, not {parties}"))),
    }
}
