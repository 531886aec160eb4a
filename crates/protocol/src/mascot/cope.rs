//! Correlated oblivious product evaluation with errors: for every ordered pair of parties, shares of a product x alpha, x one
//! party's and alpha the other's share of the MAC key (Keller, Orsini, Scholl 2016, figure 3, COPEe).
//!
//! Set-up: k transfers, in which the holder of alpha chooses with its bits and gets one of two random seeds of the other's. For
//! every x the latter sends u_i = t0_i + t1_i + x for every bit i, t0_i and t1_i being the next elements of the streams of
//! both seeds; the holder of alpha takes q_i = t_i + alpha_i u_i = t0_i + alpha_i x with the stream that it has. With
//! q = sum q_i X^i and t = sum t0_i X^i, q + t = x alpha.
//!
//! As the name says, whoever gives x can use another one at every bit: then q + t is off by what depends on bits of alpha.
//! [`super::authenticate`] checks. Pseudorandom streams are the only computational assumption besides the transfers'.
//!
//! # Differences from the paper
//! * The k transfers are the first of the extension, after its check, instead of base transfers. Seeds are random, not chosen:
//!   a cheater can steer those that it knows anyway; the other one, which hides x, it cannot.
//!
//! Cost: k k bits to every peer for an element of this party (each of k elements in whole bytes), one round.

use std::sync::Arc;

use polyclave_field::{MacField, Word};
use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::rows::{Gadget, Row, add, add_bytes, read, zeros};
use crate::net::Net;
use crate::ot::{Pairs, forked_seed};
use crate::spdz::MacKey;
use crate::{Party, Result};

/// This party's ends of the products with every peer, in both roles.
pub(super) struct Cope<F: MacField> {
    me: Party,
    /// This party's share of the key, towards each peer.
    alphas: Row<F>,
    gadget: Gadget<F>,
    /// Both streams for every bit of a peer's share of the key, by peer.
    offered: Vec<Vec<[AesPrg; 2]>>,
    /// The chosen stream for every bit of this party's share, by peer.
    chosen: Vec<Vec<AesPrg>>,
    seeds: Arc<Seeds>,
}

/// What the streams come from, by peer and bit.
struct Seeds {
    offered: Vec<Vec<[Seed; 2]>>,
    chosen: Vec<Vec<Seed>>,
}

type Seed = Zeroizing<[u8; 16]>;

impl<F: MacField> Cope<F> {
    /// Takes k checked transfers with every peer, in which this party chooses with the bits of its share of the key. Four
    /// rounds.
    pub(super) fn set_up(key: &MacKey<F>, transfers: &mut Pairs, net: &mut dyn Net) -> Result<Self> {
        let alphas = Zeroizing::new(vec![key.reveal_own_share(); key.parties()]);
        Self::set_up_towards(key.me(), alphas, transfers, net)
    }

    /// The same with a share of the key for each peer; only tests of cheaters have different ones.
    pub(super) fn set_up_towards(
        me: Party,
        alphas: Row<F>,
        transfers: &mut Pairs,
        net: &mut dyn Net,
    ) -> Result<Self> {
        let n = alphas.len();
        let mut choices = Zeroizing::new(vec![0; n * F::BYTES]);
        F::write_row(&alphas, &mut choices);
        let choices = choices.chunks_exact(F::BYTES).zip(Party::all(n));
        let choices: Vec<&[u8]> = choices.map(|(bits, p)| if p == me { &[][..] } else { bits }).collect();
        let seeds = transfers.extend(&choices, F::BITS as usize, net)?;
        transfers.check(net)?;

        let seed = |message: &u128| Zeroizing::new(message.to_le_bytes());
        let (mut offered, mut chosen) = (Vec::new(), Vec::new());
        for p in Party::all(n) {
            if p == me {
                offered.push(Vec::new());
                chosen.push(Vec::new());
                continue;
            }
            let [zero, one] = transfers.random_sent(&seeds, p)?;
            offered.push(zero.iter().zip(one.iter()).map(|(zero, one)| [seed(zero), seed(one)]).collect());
            chosen.push(transfers.random_received(&seeds, p)?.iter().map(seed).collect());
        }
        Ok(Self::of_seeds(me, alphas, Arc::new(Seeds { offered, chosen }), None))
    }

    /// Independent streams for the same shares of the key, bound to a label that is used once. Local.
    pub(super) fn fork(&self, label: &[u8]) -> Self {
        Self::of_seeds(self.me, self.alphas.clone(), self.seeds.clone(), Some(label))
    }

    /// Uses other shares of the key than it has seeds for; only a cheater does.
    #[cfg(test)]
    pub(super) fn claim(&mut self, alphas: Row<F>) {
        self.alphas = alphas;
    }

    fn of_seeds(me: Party, alphas: Row<F>, seeds: Arc<Seeds>, label: Option<&[u8]>) -> Self {
        let stream = |seed: &Seed| match label {
            None => AesPrg::new(seed, 0),
            Some(label) => AesPrg::new(&Zeroizing::new(forked_seed(label, seed)), 0),
        };
        let offered = seeds.offered.iter();
        let offered =
            offered.map(|bits| bits.iter().map(|both| both.each_ref().map(stream)).collect()).collect();
        let chosen = seeds.chosen.iter().map(|bits| bits.iter().map(stream).collect()).collect();
        Cope { me, alphas, gadget: Gadget::new(), offered, chosen, seeds }
    }

    /// This party's shares of alpha times everybody's elements, by owner: `counts` says how many each has, and `own` are
    /// this party's. One round.
    pub(super) fn extend(
        &mut self,
        own: &[F::Word],
        counts: &[usize],
        net: &mut dyn Net,
    ) -> Result<Vec<Row<F>>> {
        let me = self.me;
        assert_eq!(own.len(), counts[me.index()], "this party's elements");
        let mut shares: Vec<Row<F>> = counts.iter().map(|count| zeros::<F>(*count)).collect();

        let alpha = self.alphas[me.index()];
        let alphas = Zeroizing::new(vec![alpha; own.len()]);
        F::multiply_rows(&mut shares[me.index()], own, &alphas);
        let mut out: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        for p in Party::all(counts.len()) {
            let message = match p == me {
                true => Zeroizing::default(),
                false => self.offer(p, own, &mut shares[me.index()]),
            };
            out.push(message);
        }
        let len = |p: Party| if p == me { 0 } else { counts[p.index()] * F::BITS as usize * F::BYTES };
        let mut into: Vec<Vec<u8>> = Party::all(counts.len()).map(|p| vec![0; len(p)]).collect();
        net.exchange(
            &out.iter().map(|message| message.as_slice()).collect::<Vec<_>>(),
            &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(),
        )?;
        for p in me.peers(counts.len()) {
            self.take(p, &into[p.index()], &mut shares[p.index()]);
        }
        Ok(shares)
    }

    /// The u_i for a peer, by i; adds t to `shares`.
    fn offer(&mut self, peer: Party, own: &[F::Word], shares: &mut [F::Word]) -> Zeroizing<Vec<u8>> {
        let row_bytes = own.len() * F::BYTES;
        let mut message = Zeroizing::new(vec![0; F::BITS as usize * row_bytes]);
        if own.is_empty() {
            return message;
        }
        let mut elements = Zeroizing::new(vec![0; row_bytes]);
        F::write_row(own, &mut elements);
        let mut stream = Zeroizing::new(vec![0; row_bytes]);
        let mut sums = zeros::<F>(own.len());
        let streams = self.offered[peer.index()].iter_mut();
        for ([zero, one], u) in streams.zip(message.chunks_exact_mut(row_bytes)).rev() {
            one.fill(u);
            add_bytes(u, &elements);
            zero.fill(&mut stream);
            add_bytes(u, &stream);
            self.gadget.add_row(&mut sums, &stream);
        }
        add::<F>(shares, &sums);
        message
    }

    /// Sets `shares` to q, from what a peer sent.
    fn take(&mut self, peer: Party, message: &[u8], shares: &mut [F::Word]) {
        let row_bytes = shares.len() * F::BYTES;
        if shares.is_empty() {
            return;
        }
        let alpha = self.alphas[peer.index()];
        let mut row = Zeroizing::new(vec![0; row_bytes]);
        let streams = self.chosen[peer.index()].iter_mut().zip(0..F::BITS);
        for ((stream, i), u) in streams.zip(message.chunks_exact(row_bytes)).rev() {
            let mut chosen = [0];
            alpha.shift_right(i).spread().write_to(&mut chosen);
            stream.fill(&mut row);
            row.iter_mut().zip(u).for_each(|(q, u)| *q ^= u & chosen[0]);
            self.gadget.add_row(shares, &row);
        }
    }
}

impl<F: MacField> Gadget<F> {
    /// One step for a row of elements in bytes.
    fn add_row(&self, sums: &mut [F::Word], bytes: &[u8]) {
        for (sum, bytes) in sums.iter_mut().zip(bytes.chunks_exact(F::BYTES)) {
            *sum = self.step(*sum, read::<F>(bytes));
        }
    }
}
