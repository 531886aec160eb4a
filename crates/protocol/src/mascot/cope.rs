//! Correlated oblivious product evaluation with errors: for every ordered pair of parties, shares of a
//! product x alpha, where x is known to one party and alpha is the other's share of the MAC key (Keller,
//! Orsini, Scholl 2016, figure 3, COPEe).
//!
//! Set-up: k transfers, in which the holder of alpha chooses with its bits and gets one of two random seeds
//! of the other party's. For every x, that other party (the owner) sends u_i = t0_i + t1_i + x for every bit
//! i, where t0_i and t1_i are the next elements of the streams of both seeds. The holder of alpha computes
//! q_i = t_i + alpha_i u_i = t0_i + alpha_i x with the stream that it has. With q = sum q_i X^i and t = sum
//! t0_i X^i, q + t = x alpha.
//!
//! As the name says, the owner can use another x at every bit. Then q + t is wrong by a value that depends on
//! bits of alpha. The holder of alpha finds that out before anybody else can:
//!
//! * *The check.* The owner of x_1 .. x_m gives one more, uniform x_0. After that coins r_h are tossed. The
//!   owner sends the holder y = x_0 + sum r_h x_h and t = t_0 + sum r_h t_h, and the holder compares q_0 +
//!   sum r_h q_h with t + alpha y. An honest owner's y is masked, and its t follows from the holder's q and
//!   y. The holder sends nothing.
//! * *What passes.* Let the owner use x_hl at bit l of alpha, so that q_h + t_h = E_h(alpha), linear over
//!   GF(2), and let E = E_0 + sum r_h E_h. The check passes if E(alpha) + y alpha is what the owner makes of
//!   t: d equations on bits of alpha, which hold with probability 2^-d, and an owner that passes knows that
//!   they hold. What remains are the differences beta of two solutions, 2^(k-d) of them. If (E_h(beta) /
//!   beta)_h is the same x_h for all beta, every E_h(alpha) is x_h alpha plus what the owner knows, as it
//!   should be. If not, at least half of their pairs, 2^(2k-2d-2), differ in it and agree in sum r_h
//!   E_h(beta) / beta. One pair does so with probability 2^-k, and of all 2^(2k-1) pairs 2^(k-1) are expected
//!   to. So there are such r with probability 2^(2d+1-k), which with the guess makes 2^(d+1-k), or 2^-d if
//!   that is less: 2^(1-k/2) at most, after which a later test can tell one bit more. So an owner with that
//!   luck has d + 1 equations for the price of d.
//! * *What fails* makes the holder give the key up, and tells the owner about one bit (security-notes G); the
//!   owner does not learn it before the holder does. **If the first test of x were the joint check of MACs, a
//!   cheater would see first whether a guess at one bit of alpha was right, and could then fall silent: one
//!   bit each time, and honest parties would only see slow peers.** So everything that comes later tests
//!   alpha as a whole only: it is wrong by d alpha plus what the cheater knows.
//! * *Silence*. An owner that falls silent once it may know the coins, and before it answers, knows no more
//!   of alpha than before: what the holder has sent does not depend on alpha. But it may be an owner that did
//!   not like the coins (a lucky toss gives d + 1 equations, as said), and nothing shows that it made no
//!   guess. So the holder gives the key up in this process, and the check counts as unanswered
//!   ([`crate::authenticated::Guesses`]; nodes do so durably). Silence before the coins costs the session
//!   only.
//!
//! That x_h is the same towards all peers is checked in [`super::authenticate`]. Besides the assumptions of
//! the transfers, pseudorandom streams are the only computational assumption.
//!
//! # Differences from the paper
//! * The k transfers are the first of the extension, after its check, instead of base transfers. Seeds are
//!   random, not chosen. A cheater can influence the seeds that it knows anyway; it cannot influence the
//!   other one, which hides x.
//! * There is a check towards each peer, like that of Keller, Orsini, Scholl 2015 for transfers; the paper
//!   checks MACs only.
//!
//! Cost: k k bits to every peer for an element of this party (each of k elements in whole bytes) and one
//! element more; then two elements. Four rounds.

use std::sync::Arc;

use polyclave_field::{MacField, Word};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::messages::Messages;
use super::rows::{Gadget, Row, add, add_bytes, repeated, with_mask, zeros};
use crate::authenticated::{Coefficients, MacKey};
use crate::interface::net::Net;
use crate::ot::{Pairs, forked_seed};
use crate::retirement::Retirement;
use crate::{Error, Party, Result, coins};

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
    messages: Messages,
    /// Of the key.
    retired: Retirement,
}

/// What the streams come from, by peer and bit.
struct Seeds {
    offered: Vec<Vec<[Seed; 2]>>,
    chosen: Vec<Vec<Seed>>,
}

type Seed = Zeroizing<[u8; 16]>;

impl<F: MacField> Cope<F> {
    /// Takes k checked transfers with every peer, in which this party chooses with the bits of its share of
    /// the key. Four rounds.
    pub(super) fn setup(key: &MacKey<F>, transfers: &mut Pairs, net: &mut dyn Net) -> Result<Self> {
        let alphas = repeated::<F>(key.reveal_own_share(), key.parties());
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
        let seeds = Arc::new(Seeds { offered, chosen });
        Ok(Self::of_seeds(me, alphas, seeds, transfers.retirement(), None))
    }

    /// Independent streams for the same shares of the key, bound to a label that is used once. Local.
    pub(super) fn fork(&self, label: &[u8]) -> Self {
        Self::of_seeds(self.me, self.alphas.clone(), self.seeds.clone(), &self.retired, Some(label))
    }

    /// Takes another share of the key as its own than it has seeds for; only a cheater does.
    #[cfg(test)]
    pub(super) fn claim(&mut self, share: F::Word) {
        self.alphas[self.me.index()] = share;
    }

    fn of_seeds(
        me: Party,
        alphas: Row<F>,
        seeds: Arc<Seeds>,
        retired: &Retirement,
        label: Option<&[u8]>,
    ) -> Self {
        let stream = |seed: &Seed| match label {
            None => AesPrg::new(seed, 0),
            Some(label) => AesPrg::new(&Zeroizing::new(forked_seed(label, seed)), 0),
        };
        let offered = seeds.offered.iter();
        let offered =
            offered.map(|bits| bits.iter().map(|both| both.each_ref().map(stream)).collect()).collect();
        let chosen = seeds.chosen.iter().map(|bits| bits.iter().map(stream).collect()).collect();
        let messages = Messages::new(alphas.len());
        let (gadget, retired) = (Gadget::new(), retired.clone());
        Cope { me, alphas, gadget, offered, chosen, seeds, messages, retired }
    }

    /// This party's shares of alpha times everybody's elements, by owner: `counts` says how many each has,
    /// and `own` are this party's. Four rounds.
    pub(super) fn extend(
        &mut self,
        own: &[F::Word],
        counts: &[usize],
        net: &mut dyn Net,
    ) -> Result<Vec<Row<F>>> {
        assert_eq!(own.len(), counts[self.me.index()], "this party's elements");
        // One more element masks the check. A party without elements has nothing to check.
        let own = if own.is_empty() { zeros::<F>(0) } else { with_mask::<F>(own)? };
        self.extend_towards(&vec![own; counts.len()], counts, net)
    }

    /// The same with masked elements for each peer; only tests of cheaters have different ones. This party's
    /// own entry is what it has itself.
    pub(super) fn extend_towards(
        &mut self,
        own: &[Row<F>],
        counts: &[usize],
        net: &mut dyn Net,
    ) -> Result<Vec<Row<F>>> {
        let me = self.me;
        let masked = |count: usize| if count == 0 { 0 } else { count + 1 };

        let bytes = |elements: usize| elements * F::BITS as usize * F::BYTES;
        let mut ts: Vec<Row<F>> = Vec::new();
        for (p, own) in Party::all(counts.len()).zip(own) {
            let mut t = Row::<F>::default();
            if p != me {
                t = zeros::<F>(own.len());
                let message = self.messages.outgoing(p, bytes(own.len()));
                offer(&self.gadget, &mut self.offered[p.index()], own, message, &mut t);
            }
            ts.push(t);
        }
        let len = |p: Party| if p == me { 0 } else { bytes(masked(counts[p.index()])) };
        self.messages.exchange(len, net)?;
        let mut qs: Vec<Row<F>> = counts.iter().map(|count| zeros::<F>(masked(*count))).collect();
        for p in me.peers(counts.len()) {
            let (alpha, message) = (self.alphas[p.index()], self.messages.incoming(p));
            take(&self.gadget, &mut self.chosen[p.index()], alpha, message, &mut qs[p.index()]);
        }
        self.check(own, &ts, &qs, net)?;

        let own = &own[me.index()];
        let alphas = repeated::<F>(self.alphas[me.index()], own.len());
        let mut shares = qs;
        F::multiply_rows(&mut shares[me.index()], own, &alphas);
        for p in me.peers(counts.len()) {
            add::<F>(&mut shares[me.index()], &ts[p.index()]);
        }
        shares.iter_mut().zip(counts).for_each(|(row, count)| row.truncate(*count));
        Ok(shares)
    }

    /// Whether every peer used one element at all bits of this party's share, for each of its elements. Three
    /// rounds.
    fn check(&self, own: &[Row<F>], ts: &[Row<F>], qs: &[Row<F>], net: &mut dyn Net) -> Result<()> {
        let (me, n) = (self.me, qs.len());
        let seed = coins::toss_for_check(b"products with shares of the key", net)?;
        let mut out: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        for (p, (own, t)) in Party::all(n).zip(own.iter().zip(ts)) {
            let mut answer = Zeroizing::default();
            if p != me && !own.is_empty() {
                answer = Zeroizing::new(vec![0; 2 * F::BYTES]);
                F::write_row(&[own, t].map(|row| combination::<F>(&seed, row)), &mut answer);
            }
            out.push(answer);
        }
        let len = |p: Party| if p == me || qs[p.index()].is_empty() { 0 } else { 2 * F::BYTES };
        let into = exchange(&out, len, net).map_err(Error::in_a_check)?;
        let compared = me.peers(n).filter(|p| !qs[p.index()].is_empty()).map(|p| {
            let mut answer = [F::Word::ZERO; 2];
            F::read_row(&into[p.index()], &mut answer);
            let [y, t] = answer;
            let expected = t ^ F::multiply(self.alphas[p.index()], y);
            (p, combination::<F>(&seed, &qs[p.index()]), expected)
        });
        let compared: Vec<_> = compared.collect();
        // Where they differ, the difference depends on bits of the share of the key.
        let differ = compared.iter().filter(|(_, sum, expected)| !ct_eq(&[*sum], &[*expected]));
        self.retired.judge_guess(|| {
            let (peer, ..) = differ.clone().next()?;
            let detail = "its products with this party's share of the MAC key are of no one element".into();
            Some(Error::Peer { peer: *peer, detail })
        })
    }
}

/// Writes the u_i for a peer, by i, and t.
fn offer<F: MacField>(
    gadget: &Gadget<F>,
    streams: &mut [[AesPrg; 2]],
    own: &[F::Word],
    message: &mut [u8],
    t: &mut [F::Word],
) {
    let row_len = own.len();
    let [mut elements, mut stream] = [Wiped::zeros(PIECE * F::BYTES), Wiped::zeros(PIECE * F::BYTES)];
    let mut terms = zeros::<F>(PIECE);
    for (start, (own, t)) in (0..).step_by(PIECE).zip(own.chunks(PIECE).zip(t.chunks_mut(PIECE))) {
        let len = own.len() * F::BYTES;
        let (elements, stream, terms) = (&mut elements[..len], &mut stream[..len], &mut terms[..own.len()]);
        F::write_row(own, elements);
        for (i, [zero, one]) in streams.iter_mut().enumerate().rev() {
            let u = &mut message[(i * row_len + start) * F::BYTES..][..len];
            one.fill(u);
            zero.fill(stream);
            add_bytes(u, elements);
            add_bytes(u, stream);
            F::read_row(stream, terms);
            gadget.add_row(t, terms);
        }
    }
}

/// Sets `q`, which is zero, from what a peer sent.
fn take<F: MacField>(
    gadget: &Gadget<F>,
    streams: &mut [AesPrg],
    alpha: F::Word,
    message: &[u8],
    q: &mut [F::Word],
) {
    let row_len = q.len();
    let mut stream = Wiped::zeros(PIECE * F::BYTES);
    let mut terms = zeros::<F>(PIECE);
    for (start, q) in (0..).step_by(PIECE).zip(q.chunks_mut(PIECE)) {
        let len = q.len() * F::BYTES;
        let (stream, terms) = (&mut stream[..len], &mut terms[..q.len()]);
        for (i, chosen) in (0..F::BITS).zip(streams.iter_mut()).rev() {
            let mut bit = [0];
            alpha.shift_right(i).spread().write_to(&mut bit);
            let u = &message[(i as usize * row_len + start) * F::BYTES..][..len];
            chosen.fill(stream);
            stream.iter_mut().zip(u).for_each(|(q, u)| *q ^= u & bit[0]);
            F::read_row(stream, terms);
            gadget.add_row(q, terms);
        }
    }
}

/// Elements that are worked on at a time: whole AES blocks, and what belongs to them stays in the first-level
/// cache.
const PIECE: usize = 512;

/// Sends every peer its message, and returns theirs.
fn exchange(
    out: &[Zeroizing<Vec<u8>>],
    len: impl Fn(Party) -> usize,
    net: &mut dyn Net,
) -> Result<Vec<Vec<u8>>> {
    let mut into: Vec<Vec<u8>> = Party::all(out.len()).map(|p| vec![0; len(p)]).collect();
    net.exchange(
        &out.iter().map(|message| message.as_slice()).collect::<Vec<_>>(),
        &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(),
    )?;
    Ok(into)
}

/// The last element plus the sum of r_h times the h-th of the others.
fn combination<F: MacField>(seed: &[u8; 32], row: &[F::Word]) -> F::Word {
    let Some((mask, row)) = row.split_last() else { return F::Word::ZERO };
    let mut coefficients = Coefficients::<F>::new(seed);
    let sums = row.chunks(BATCH).map(|part| F::inner_product(coefficients.next(part.len()), part));
    sums.fold(*mask, |sum, part| sum ^ part)
}

/// Elements that coefficients are drawn for at a time.
const BATCH: usize = 512;
