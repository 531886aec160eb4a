//! Authenticating elements that one party knows, or of which every party has a share (Keller, Orsini, Scholl
//! 2016, the "Input" phase of the protocol for the functionality of authenticated sharing).
//!
//! Every party's own elements go through [`super::cope`] with every peer, which gives shares of their MACs.
//! One more element, uniform, masks the check. Then coins give each element a coefficient r_h, all parties
//! open y = x_0 + sum r_h x_h, and the MAC of y is checked by a zero test ([`super::zero_tests`]).
//!
//! Why this is enough (as in the paper's proof; k is the degree of the field, and all parties but one may
//! cheat):
//!
//! * *Other elements at other bits* of a share of the key. The holder of the share finds them before anything
//!   is opened (`cope.rs`). A cheater that passes has guessed the bits that it used, c of them with
//!   probability 2^-c, and a wrong guess retires the key. The paper's functionality has this leak too ("key
//!   queries").
//! * *Other elements towards other peers.* Towards honest party i the cheaters' elements sum up to x_ih, and
//!   the check adds alpha_i (x_0i + sum_h r_h x_ih + y') to what they know. They fix x_ih before the coins.
//!   So if x_ih and x_jh differ in some h > 0, their combinations differ except with probability 2^-k, and no
//!   y' fits both: the cheaters must guess alpha_i or alpha_j as a whole.
//! * *Another share of the key towards other peers* than the one that this party takes as its own. Then the
//!   error is the sum over honest i of Y_i d_i, where Y_i is the part of y that consists of i's own elements,
//!   and the d_i are not the same for all. The shares that honest parties open are re-randomised by a sharing
//!   of zero between every two, so that only the sum of the Y_i becomes known. The Y_i are uniform, as x_0
//!   is: the cheater passes with probability 2^-k. (With two parties there is one honest share and nothing to
//!   compare. What the check in `cope.rs` reveals of i's elements has its own mask.)
//! * *Other coins at other parties*: the coins are part of what parties compare in the check.
//!
//! So the zero test, whose result cheaters see first, never depends on single bits of the key, and nothing is
//! lost if they fall silent then.
//!
//! All honest elements are hidden: what is opened is masked by x_0, and u_i of COPEe by a stream of which the
//! peer has only one.
//!
//! # Differences from the paper
//! * The owner sends no shares. Two parties each derive a sharing of zero from a common seed, which the
//!   owner's share completes. The distribution is the same as long as the streams are pseudorandom, and
//!   nothing is sent.
//! * If every party has a share (triples), one combination authenticates the shares of all, with coefficients
//!   that are the same for all parties: y and the MACs of the sum are all that the proof uses. They are not
//!   shared once more, because they are uniform and independent already.
//!
//! Rounds: four for COPEe, two for coins, one opening, six for the check. Bytes to every peer: k elements per
//! element of one's own; the same once and one element more per call.

use polyclave_field::MacField;
use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::Mascot;
use super::rows::{add, read, with_mask, zeros};
use crate::authenticated::{Authenticated, Coefficients};
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::ot::forked_seed;
use crate::{Error, Party, Result, coins};

impl<F: MacField> Mascot<F> {
    /// Authenticates elements that one party knows; it gives their values, the others none. Thirteen
    /// rounds.
    pub fn authenticate(
        &mut self,
        owner: Party,
        values: Option<&[F::Word]>,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Authenticated<F>> {
        self.refuse_unknown(owner)?;
        let fits = match values {
            Some(values) => owner == self.key.me() && values.len() == count,
            None => owner != self.key.me(),
        };
        if !fits {
            return Err(Error::misuse(format!("{owner}, and nobody else, gives the {count} elements")));
        }
        self.guarded(|mascot| mascot.authenticate_owned(owner, values.unwrap_or_default(), count, net))
    }

    fn authenticate_owned(
        &mut self,
        owner: Party,
        values: &[F::Word],
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Authenticated<F>> {
        let mut counts = vec![0; self.key.parties()];
        counts[owner.index()] = count + 1;
        let own = if owner == self.key.me() { with_mask::<F>(values)? } else { zeros::<F>(0) };
        let macs = self.cope.extend(&own, &counts, net)?.swap_remove(owner.index());
        let values = if own.is_empty() { zeros::<F>(count + 1) } else { own };
        let mut shares = Authenticated { values, macs };
        self.zeros.add_to::<F>(&mut shares.values);
        let mask = shares.part(count..count + 1);
        let shares = shares.part(0..count);
        self.check_authentication(&[&shares], mask, net)?;
        Ok(shares)
    }

    /// Authenticates the sums of all parties' elements, of which this party has these. Thirteen rounds.
    pub(super) fn authenticate_shares(
        &mut self,
        own: &[F::Word],
        net: &mut dyn Net,
    ) -> Result<Authenticated<F>> {
        let shares = self.share_masked(own, net)?;
        let mask = shares.part(own.len()..own.len() + 1);
        let shares = shares.part(0..own.len());
        self.check_authentication(&[&shares], mask, net)?;
        Ok(shares)
    }

    /// The same, their MACs not checked, and with a uniform element at the end. Four rounds.
    pub(super) fn share_masked(&mut self, own: &[F::Word], net: &mut dyn Net) -> Result<Authenticated<F>> {
        let values = with_mask::<F>(own)?;
        let counts = vec![values.len(); self.key.parties()];
        let mut macs = zeros::<F>(values.len());
        for shares in self.cope.extend(&values, &counts, net)? {
            add::<F>(&mut macs, &shares);
        }
        Ok(Authenticated { values, macs })
    }

    /// Opens a random combination of shares plus a mask, and checks its MAC. Nine rounds.
    pub(super) fn check_authentication(
        &mut self,
        shares: &[&Authenticated<F>],
        mask: Authenticated<F>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let seed = coins::toss(b"authentication", net)?;
        self.openings.note(&seed);
        let mut coefficients = Coefficients::<F>::new(&seed);
        let mut sum = mask;
        for shares in shares {
            for (values, macs) in shares.values.chunks(BATCH).zip(shares.macs.chunks(BATCH)) {
                let r = coefficients.next(values.len());
                sum.values[0] ^= F::inner_product(r, values);
                sum.macs[0] ^= F::inner_product(r, macs);
            }
        }
        self.open_and_check(sum, net)
    }

    /// Opens an element and checks its MAC. Seven rounds.
    pub(super) fn open_and_check(&mut self, sum: Authenticated<F>, net: &mut dyn Net) -> Result<()> {
        self.open_hiding_shares(sum, net)?;
        self.check_openings(net)
    }

    /// Opens an element. A sharing of zero hides the parts of single parties, of which a cheater must not
    /// know more than their sum. One round.
    pub(super) fn open_hiding_shares(&mut self, mut sum: Authenticated<F>, net: &mut dyn Net) -> Result<()> {
        self.zeros.add_to::<F>(&mut sum.values);
        self.openings.open(&sum, &[], &[], net).map(drop)
    }
}

/// Elements that coefficients are drawn for at a time.
const BATCH: usize = 512;

/// Sharings of zero, from a seed that every two parties have in common.
pub(super) struct Zeros {
    streams: Vec<AesPrg>,
    /// What they come from.
    seeds: Vec<Zeroizing<[u8; 16]>>,
}

impl Zeros {
    /// The first of every two parties draws the seed. One round.
    pub(super) fn setup(net: &mut dyn Net) -> Result<Self> {
        let (me, n) = (net.me(), net.parties());
        let mut seeds = vec![Zeroizing::new([0; 16]); n];
        // One for this party itself would be thrown away below.
        for p in Party::all(n).filter(|p| *p > me) {
            random_bytes(&mut *seeds[p.index()])?;
        }
        let out: Vec<&[u8]> =
            Party::all(n).map(|p| if p > me { &seeds[p.index()][..] } else { &[] }).collect();
        let mut into: Vec<Zeroizing<Vec<u8>>> =
            Party::all(n).map(|p| Zeroizing::new(vec![0; if p < me { 16 } else { 0 }])).collect();
        net.exchange(&out, &mut into.iter_mut().map(|seed| seed.as_mut_slice()).collect::<Vec<_>>())?;
        for p in Party::all(n).filter(|p| *p < me) {
            seeds[p.index()].copy_from_slice(&into[p.index()]);
        }
        seeds.remove(me.index());
        Ok(Zeros { streams: seeds.iter().map(|seed| AesPrg::new(seed, 0)).collect(), seeds })
    }

    /// Independent sharings, bound to a label that is used once. Local.
    pub(super) fn fork(&self, label: &[u8]) -> Self {
        let forked = |seed: &Zeroizing<[u8; 16]>| Zeroizing::new(forked_seed(label, seed));
        let seeds: Vec<_> = self.seeds.iter().map(forked).collect();
        Zeros { streams: seeds.iter().map(|seed| AesPrg::new(seed, 0)).collect(), seeds }
    }

    /// Adds this party's shares of zeros.
    pub(super) fn add_to<F: MacField>(&mut self, shares: &mut [F::Word]) {
        let mut bytes = Zeroizing::new(vec![0; shares.len() * F::BYTES]);
        for stream in &mut self.streams {
            stream.fill(&mut bytes);
            for (share, bytes) in shares.iter_mut().zip(bytes.chunks_exact(F::BYTES)) {
                *share ^= read::<F>(bytes);
            }
        }
    }
}
