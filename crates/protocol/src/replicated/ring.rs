//! What a party shares with its neighbours: keys, and the way of messages round the ring.
//!
//! P_i has a key k_i with the party before it and a key k_(i+1) with the party behind it: those that Shamir
//! sharing has for pairs.

use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::{PARTIES, Pair, Setup};
use crate::interface::net::Net;
use crate::interface::session::Stream;
use crate::interface::tally::{Counts, Phase, Tally};
use crate::pool::{Pool, Shares};
use crate::shamir;
use crate::{Party, Result};

/// Random bytes are drawn in pieces that stay in the first-level cache.
const TILE: usize = 4096;

/// One party's place in the ring, in one session and stream.
pub struct Ring {
    pub(super) me: Party,
    /// Generators of k_i and of k_(i+1), for shares of zero.
    zero: Pair<AesPrg>,
    /// The same, for the shares of inputs.
    input: Pair<AesPrg>,
    /// The generator of the common key, for what goes to clients.
    client: AesPrg,
    pub(super) pool: Pool,
    pub(super) phase: Phase,
    pub(super) tally: Tally,
}

/// What a key is used for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// Shares of zero, for products.
    Zero = 0,
    /// Shares of inputs.
    Input = 1,
    /// What the prover of this key shares with the party before it.
    Proof = 2,
    /// A mask of the last step of a proof, of the party behind the prover.
    LastStep = 3,
    /// Digests of shares.
    Digest = 4,
    /// Zeros in what goes to clients, of the common key.
    Client = 5,
    /// Digests of shares that were refreshed.
    Refresh = 6,
    /// Seeds of garbled circuits, of both garblers.
    Garbling = 7,
    /// Masks of outputs of garbled circuits, of a garbler and the evaluator.
    OutputMask = 8,
}

pub(super) fn next(party: Party) -> Party {
    Party((party.0 + 1) % PARTIES as u8)
}

pub(super) fn previous(party: Party) -> Party {
    next(next(party))
}

impl Ring {
    pub(super) fn new(setup: &Setup, stream: &Stream) -> Ring {
        Ring {
            me: setup.keys.me(),
            zero: generators(&setup.keys, stream, Purpose::Zero),
            input: generators(&setup.keys, stream, Purpose::Input),
            client: AesPrg::new(&seed(&key(&setup.common, stream, Purpose::Client)), 0),
            pool: Pool::default(),
            phase: Phase::Preprocessing,
            tally: Tally::default(),
        }
    }

    /// Which of this party's two shares is share 0 of the value, to which public values are added; `None` at
    /// one of the parties.
    pub(super) fn share_zero(&self) -> Option<usize> {
        match self.me {
            Party(0) => Some(0),
            party if next(party) == Party(0) => Some(1),
            _ => None,
        }
    }

    /// F(k_i) + F(k_(i+1)). The three parties' bytes add up to zero. To any one party the two others' bytes
    /// are random except for that, because it lacks a key.
    pub(super) fn zero_share(&mut self, len: usize) -> Shares {
        let mut share = self.pool.take(len);
        self.zero[0].fill(&mut share);
        let mut other = self.pool.take(TILE.min(len));
        for tile in share.chunks_mut(TILE) {
            let other = &mut other[..tile.len()];
            self.zero[1].fill(other);
            add(tile, other);
        }
        share
    }

    /// The same as its two summands.
    pub(super) fn zero_parts(&mut self, len: usize) -> Pair<Shares> {
        let [before, behind] = &mut self.zero;
        [before, behind].map(|generator| {
            let mut part = self.pool.take(len);
            generator.fill(&mut part);
            part
        })
    }

    /// The next bytes of the generators for inputs: of k_i (0) or k_(i+1) (1).
    pub(super) fn input_share(&mut self, which: usize, len: usize) -> Shares {
        let mut share = self.pool.take(len);
        self.input[which].fill(&mut share);
        share
    }

    /// A zero sharing that all parties know and no client: this party's two shares.
    pub(super) fn zero_for_client(&mut self, len: usize) -> Pair<Zeroizing<Vec<u8>>> {
        common_zero(&mut self.client, self.me, len)
    }

    /// Sends a message to the party before this one and receives one of the same length from the party
    /// behind. One round.
    pub(super) fn pass_back(&mut self, message: &[u8], net: &mut dyn Net) -> Result<Shares> {
        self.pass(previous(self.me), next(self.me), message, net)
    }

    /// Sends a message to one neighbour and receives one of the same length from the other. One round.
    pub(super) fn pass(
        &mut self,
        to: Party,
        from: Party,
        message: &[u8],
        net: &mut dyn Net,
    ) -> Result<Shares> {
        self.counts().rounds += 1;
        let mut received = self.pool.take(message.len());
        let mut out: [&[u8]; PARTIES] = [&[]; PARTIES];
        let mut into: [&mut [u8]; PARTIES] = [&mut [], &mut [], &mut []];
        out[to.index()] = message;
        into[from.index()] = &mut received;
        net.exchange(&out, &mut into)?;
        Ok(received)
    }

    /// Sends a message to each neighbour, the party before first, and receives one of the same length from
    /// each. One round.
    pub(super) fn swap_with_both(
        &mut self,
        messages: Pair<&[u8]>,
        net: &mut dyn Net,
    ) -> Result<Pair<Shares>> {
        self.exchange_with_both(messages, messages.map(<[u8]>::len), net)
    }

    /// Sends a message to each neighbour, the party before first, and receives one of these lengths from
    /// each. One round.
    pub(super) fn exchange_with_both(
        &mut self,
        [to_before, to_behind]: Pair<&[u8]>,
        lengths: Pair<usize>,
        net: &mut dyn Net,
    ) -> Result<Pair<Shares>> {
        self.counts().rounds += 1;
        let [before, behind] = [previous(self.me), next(self.me)].map(Party::index);
        let [mut from_before, mut from_behind] = lengths.map(|len| self.pool.take(len));
        let mut out: [&[u8]; PARTIES] = [&[]; PARTIES];
        let mut into: [&mut [u8]; PARTIES] = [&mut [], &mut [], &mut []];
        (out[before], out[behind]) = (to_before, to_behind);
        (into[before], into[behind]) = (&mut from_before, &mut from_behind);
        net.exchange(&out, &mut into)?;
        Ok([from_before, from_behind])
    }

    /// The counts of the current phase.
    pub(super) fn counts(&mut self) -> &mut Counts {
        self.tally.of(self.phase)
    }
}

/// All parties draw the same three rows m_0, m_1 and m_2, which add up to zero. Returns the two that belong
/// to the shares of a party.
pub(super) fn common_zero(generator: &mut AesPrg, me: Party, len: usize) -> Pair<Zeroizing<Vec<u8>>> {
    let mut rows: [Zeroizing<Vec<u8>>; PARTIES] = std::array::from_fn(|_| Zeroizing::new(vec![0; len]));
    let [first, second, third] = &mut rows;
    generator.fill(first);
    generator.fill(second);
    third.copy_from_slice(first);
    add(third, second);
    [me, next(me)].map(|party| std::mem::take(&mut rows[party.index()]))
}

/// Generators for a purpose of this stream, under k_i and k_(i+1).
pub(super) fn generators(setup: &shamir::Setup, stream: &Stream, purpose: Purpose) -> Pair<AesPrg> {
    keys(setup, stream, purpose).map(|key| AesPrg::new(&seed(&key), 0))
}

/// Keys for a purpose of this stream, from k_i and k_(i+1).
pub(super) fn keys(setup: &shamir::Setup, stream: &Stream, purpose: Purpose) -> Pair<Zeroizing<[u8; 32]>> {
    let me = setup.me();
    [previous(me), next(me)].map(|peer| key(setup.key_of_pair(peer), stream, purpose))
}

/// A key for a purpose of this stream.
fn key(from: &[u8; 32], stream: &Stream, purpose: Purpose) -> Zeroizing<[u8; 32]> {
    let mut hasher = blake3::Hasher::new_keyed(from);
    hasher.update(b"polyclave replicated 1").update(&[purpose as u8]).update(&stream.label());
    Zeroizing::new(*hasher.finalize().as_bytes())
}

/// The seed of a generator.
pub(super) fn seed(key: &[u8; 32]) -> Zeroizing<[u8; 16]> {
    let mut seed = Zeroizing::new([0; 16]);
    seed.copy_from_slice(&key[..16]);
    seed
}

pub(super) fn add(sum: &mut [u8], term: &[u8]) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term);
}
