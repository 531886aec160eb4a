//! The first oblivious transfers: Masny and Rindal 2019, "Endemic Oblivious Transfer" (CCS 2019, ePrint
//! 2019/706): one-of-two transfer from a key agreement whose messages are uniform, here Diffie and Hellman's
//! in Ristretto (RFC 9496).
//!
//! For one transfer with choice b: the receiver draws a scalar a and a uniform element `r[1-b]`, sets
//! `r[b] = a G - H(b, r[1-b])` and sends both. The sender draws y, sends `Y = y G`, and has the keys
//! `K(j, y (r[j] + H(j, r[1-j])))`; the receiver has `K(b, a Y)`.
//!
//! **Security** (the paper's theorem on this construction, for active static adversaries, universally
//! composable): H and K are random oracles, H onto the group, programmable; Diffie-Hellman is hard in
//! Ristretto, and since keys are hashed the computational assumption is enough. Both r are uniform for either
//! b, so the choice is hidden without any assumption. A receiver can know the logarithm of only one of the
//! two sums `r[j] + H(j, r[1-j])`: the one of the oracle's earlier query, which tells the simulator b. The
//! other is an answer of the oracle and Diffie-Hellman's challenge.
//!
//! **Endemic** means that a cheater can influence its own outputs: a sender both keys, a receiver the one it
//! learns. Here keys only encrypt what the sender chooses (`tree.rs`), as the paper's section on other
//! notions of security allows.
//!
//! **In a batch** a shared Y, or hashes without an index, let a receiver correlate transfers (McQuoid,
//! Rosulek and Roy 2021, "Batching base oblivious transfers", ePrint 2021/682). Here every transfer has its
//! own Y and is an instance by itself: its index stands in every hash, with the label of the session and the
//! pair of parties. A key hashes all of its messages too. Points are decoded strictly: an encoding that is
//! not canonical is the peer's fault. The group has prime order, so there is no small subgroup to check for.
//!
//! Constant time in choices and scalars. Cost: 64 bytes one way, then 32 the other way; five multiplications
//! of points.

use curve25519_dalek::{RistrettoPoint, Scalar, ristretto::CompressedRistretto};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use super::binding::Binding;
use crate::Result;
use crate::interface::session::random_bytes;

/// What encrypts one message.
pub(super) type Key = [u8; 16];

/// Both keys of every transfer.
pub(super) type KeyPairs = Zeroizing<Vec<[Key; 2]>>;

const POINT_BYTES: usize = 32;

/// Bytes of the receiver's message for one transfer: `r[0]` and `r[1]`.
pub(super) const OFFER_BYTES: usize = 2 * POINT_BYTES;

/// Bytes of the sender's message for one transfer: Y.
pub(super) const ANSWER_BYTES: usize = POINT_BYTES;

/// The receiver's end, between its message and the answer.
pub(super) struct Receiver {
    choices: Zeroizing<Vec<u8>>,
    scalars: Zeroizing<Vec<Scalar>>,
    offer: Vec<u8>,
}

impl Receiver {
    /// Chooses; a choice is 0 or 1.
    pub(super) fn new(binding: &Binding, choices: Zeroizing<Vec<u8>>) -> Result<Receiver> {
        let mut scalars = Zeroizing::new(Vec::with_capacity(choices.len()));
        let mut offer = Vec::with_capacity(choices.len() * OFFER_BYTES);
        for (index, choice) in choices.iter().enumerate() {
            let a = random_scalar()?;
            let mut uniform = Zeroizing::new([0; 64]);
            random_bytes(&mut *uniform)?;
            let other = RistrettoPoint::from_uniform_bytes(&uniform).compress();
            let chosen = RistrettoPoint::mul_base(&a) - hash_to_group(binding, index, *choice, &other);
            let (mut first, mut second) = (chosen.compress().to_bytes(), other.to_bytes());
            let swap = Choice::from(*choice);
            first.iter_mut().zip(&mut second).for_each(|(a, b)| u8::conditional_swap(a, b, swap));
            offer.extend_from_slice(&first);
            offer.extend_from_slice(&second);
            scalars.push(a);
        }
        Ok(Receiver { choices, scalars, offer })
    }

    /// The message to the sender.
    pub(super) fn offer(&self) -> &[u8] {
        &self.offer
    }

    /// The keys chosen.
    pub(super) fn keys(self, binding: &Binding, answer: &[u8]) -> Result<Zeroizing<Vec<Key>>> {
        let mut keys = Zeroizing::new(Vec::with_capacity(self.choices.len()));
        let answers = answer.chunks_exact(ANSWER_BYTES).zip(self.offer.chunks_exact(OFFER_BYTES));
        for (index, ((answer, offer), (choice, a))) in
            answers.zip(self.choices.iter().zip(self.scalars.iter())).enumerate()
        {
            let shared = Zeroizing::new((a * decode(binding, answer)?).compress().to_bytes());
            keys.push(key(binding, index, *choice, offer, answer, &shared));
        }
        Ok(keys)
    }
}

/// The sender's message and both keys of every transfer.
pub(super) fn answer(binding: &Binding, offer: &[u8]) -> Result<(Vec<u8>, KeyPairs)> {
    let count = offer.len() / OFFER_BYTES;
    let mut keys = Zeroizing::new(Vec::with_capacity(count));
    let mut answers = Vec::with_capacity(count * ANSWER_BYTES);
    for (index, offer) in offer.chunks_exact(OFFER_BYTES).enumerate() {
        let (first, second) = offer.split_at(POINT_BYTES);
        let points = [decode(binding, first)?, decode(binding, second)?];
        let y = Zeroizing::new(random_scalar()?);
        let answer = RistrettoPoint::mul_base(&y).compress().to_bytes();
        let key_of = |j: usize| {
            let sum = points[j] + hash_to_group(binding, index, j as u8, &points[1 - j].compress());
            let shared = Zeroizing::new((*y * sum).compress().to_bytes());
            key(binding, index, j as u8, offer, &answer, &shared)
        };
        keys.push([key_of(0), key_of(1)]);
        answers.extend_from_slice(&answer);
    }
    Ok((answers, keys))
}

fn random_scalar() -> Result<Scalar> {
    let mut wide = Zeroizing::new([0; 64]);
    random_bytes(&mut *wide)?;
    Ok(Scalar::from_bytes_mod_order_wide(&wide))
}

/// An element from its one encoding.
fn decode(binding: &Binding, bytes: &[u8]) -> Result<RistrettoPoint> {
    let point = CompressedRistretto::from_slice(bytes).ok().and_then(|point| point.decompress());
    point.ok_or_else(|| binding.fault("a point that is not one of the group"))
}

/// H.
fn hash_to_group(binding: &Binding, index: usize, side: u8, other: &CompressedRistretto) -> RistrettoPoint {
    let mut uniform = Zeroizing::new([0; 64]);
    let mut hasher = binding.hasher("base: to group");
    hasher.update(&(index as u64).to_le_bytes()).update(&[side]).update(other.as_bytes());
    hasher.finalize_xof().fill(&mut *uniform);
    RistrettoPoint::from_uniform_bytes(&uniform)
}

/// K.
fn key(binding: &Binding, index: usize, side: u8, offer: &[u8], answer: &[u8], shared: &[u8; 32]) -> Key {
    let mut key = Key::default();
    let mut hasher = binding.hasher("base: key");
    hasher.update(&(index as u64).to_le_bytes()).update(&[side]);
    hasher.update(offer).update(answer).update(shared);
    hasher.finalize_xof().fill(&mut key);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Party};

    fn binding(sender: u8) -> Binding {
        Binding::new(b"label", Party(sender), Party(2), Party(sender))
    }

    fn run(choices: &[u8]) -> (Receiver, Vec<u8>, KeyPairs) {
        let receiver = Receiver::new(&binding(1), Zeroizing::new(choices.to_vec())).expect("randomness");
        let (answers, keys) = answer(&binding(1), receiver.offer()).expect("points of the group");
        (receiver, answers, keys)
    }

    #[test]
    fn the_receiver_gets_the_key_of_its_choice_and_not_the_other() {
        let choices = [0, 1, 1, 0, 1];
        let (receiver, answers, keys) = run(&choices);
        let got = receiver.keys(&binding(1), &answers).expect("points of the group");
        for ((got, keys), b) in got.iter().zip(keys.iter()).zip(choices) {
            assert_eq!(*got, keys[usize::from(b)]);
            assert_ne!(*got, keys[usize::from(1 - b)]);
        }
    }

    #[test]
    fn keys_of_another_pair_or_of_another_index_differ() {
        let (receiver, answers, keys) = run(&[0, 0]);
        let swapped = [&answers[32..], &answers[..32]].concat();
        let got = receiver.keys(&binding(1), &swapped).expect("points of the group");
        assert!(got.iter().all(|got| keys.iter().flatten().all(|key| key != got)));
        let (receiver, answers, keys) = run(&[0, 0]);
        let got = receiver.keys(&binding(3), &answers).expect("points of the group");
        assert!(got.iter().all(|got| keys.iter().flatten().all(|key| key != got)));
    }

    /// The field's prime itself is an encoding of zero that is not canonical.
    #[test]
    fn points_outside_of_the_group_are_the_peers_fault() {
        let mut prime = [0xff; 32];
        (prime[0], prime[31]) = (0xed, 0x7f);
        for wrong in [[0xff; 32], prime, [1; 32]] {
            let (receiver, mut answers, _) = run(&[0, 1]);
            let mut offer = receiver.offer().to_vec();
            offer[64..96].copy_from_slice(&wrong);
            let faulty = |e| matches!(e, Some(Error::Peer { peer: Party(1), .. }));
            assert!(faulty(answer(&binding(1), &offer).err()));
            answers[32..].copy_from_slice(&wrong);
            assert!(faulty(receiver.keys(&binding(1), &answers).err()));
        }
    }
}
