//! Random bits, unknown to all or known to one party, from correlated transfers under shares of the MAC key.
//!
//! Party j's Delta is its share alpha_j of the key. Every party i chooses with its random bits b_i, the same
//! towards all peers. Then q_ji = t_ij + b_i alpha_j, so q_ji and t_ij are shares of the MAC of b_i under
//! alpha_j, and m_i = b_i alpha_i + sum_j (t_ij + q_ij) is i's share of the MAC of the bit b = sum b_i.
//! (Keller, Orsini, Scholl 2016 make bits from products. This is the authentication of bits of Nielsen,
//! Nordholt, Orlandi, Burra 2012, whose shares of MACs under all keys are added up, as in Frederiksen,
//! Keller, Orsini, Scholl 2015.) A choice is a bit by construction.
//!
//! The check: k more bits, times X^i, and one more element that [`super::cope`] authenticates, mask a
//! combination y = x_0 + sum X^i b_(N+i) + sum r_h b_h with coefficients that are tossed afterwards. It is
//! opened, and its MAC is checked.
//!
//! Why this is enough, together with the check of transfers. That check leaves cheaters one choice for each
//! transfer and one Delta towards each peer, except for guesses of bits of Delta (2^-c for c bits, and a
//! failed check):
//!
//! * *Another bit towards another peer.* Towards honest i the cheaters' bits sum up to z_ih. What the check
//!   adds for i is alpha_i (y' + y_H + sum r_h z_ih + x_0i), where y' is what they make of the opening. It
//!   must be zero for every honest i, or alpha_i must be guessed: 2^-k. If z_ih and z_i'h differ in some h,
//!   the combinations differ except with probability 2^-k, and no y' fits both. That x_0i can differ, too, is
//!   of no use to them, because it is fixed before the coins. (It cannot differ from bit to bit of alpha_i:
//!   [`super::cope`] checks it.)
//! * *A Delta that is not the share of the key*, or not the same towards all peers. Let the cheaters' value
//!   be d_i towards i in these transfers, and e_i in COPEe. The check adds the sum of Y_i d_i + X_i e_i,
//!   where Y_i is the part of y that i's bits make, and X_i that of x_0. What is opened reveals only the sum
//!   of all Y_i and X_i, because of the sharing of zero; each is uniform because of the masks. If not all d_i
//!   and e_i are the same, the sum is uniform to the cheaters: 2^-k. So x_0 ties the bits to the key of the
//!   elements. Without it a cheater could find a bit by whether a later check fails.
//!
//! Honest bits are hidden by the masks in y, and by the transfers.
//!
//! One extension makes bits of every party at once, in both directions with every peer. So the bits of other
//! parties that [`Mascot::owned_bits`] makes are kept until somebody asks for them, as many as a batch has.
//!
//! Cost: columns / expansion bits to every peer for a bit, columns = k (40 at least): 5 bytes for k = 40 at
//! expansion 1. Rounds: one for the transfers, four for COPEe, three for the check of transfers, nine for
//! this check.

use std::collections::VecDeque;

use polyclave_field::{MacField, Word};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::secret::masks;
use zeroize::Zeroizing;

use super::Mascot;
use super::rows::{Row, add, low, zeros};
use crate::authenticated::Authenticated;
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::ot::Blocks;
use crate::{Party, Result};

/// Bits in a batch: bounds the memory.
const BATCH: usize = 1 << 17;

/// Bits of one party, and at that party their values.
pub(super) type Owned<F> = (Authenticated<F>, Option<Zeroizing<Vec<u8>>>);

/// Bits of every party that have been made and not asked for, by owner; batches from the oldest to the
/// newest.
pub(super) type Stock<F> = Vec<VecDeque<Owned<F>>>;

/// One extension, not checked.
pub(super) struct Extended<F: MacField> {
    /// This party's bits.
    pub(super) own: Row<F>,
    /// Its shares of the MACs of all parties' bits, by owner.
    pub(super) macs: Vec<Row<F>>,
    /// Shares of the mask of the check.
    pub(super) mask: Authenticated<F>,
}

impl<F: MacField> Mascot<F> {
    /// Bits that nobody knows: the sums of all parties' bits.
    pub(super) fn summed_bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Authenticated<F>> {
        let mut batches = Vec::new();
        let mut missing = count;
        while missing > 0 {
            let now = missing.min(BATCH);
            let extended = self.extend(now, net)?;
            batches.push(self.sum_checked(extended, net)?);
            missing -= now;
        }
        Ok(Authenticated::join(&batches.iter().collect::<Vec<_>>()))
    }

    /// The sums of all parties' bits of one extension.
    pub(super) fn sum_checked(
        &mut self,
        extended: Extended<F>,
        net: &mut dyn Net,
    ) -> Result<Authenticated<F>> {
        let Extended { own, macs, mask } = extended;
        let mut macs = macs.into_iter();
        let mut sum = macs.next().unwrap_or_default();
        macs.for_each(|row| add::<F>(&mut sum, &row));
        Ok(self.check_bits(vec![Authenticated { values: own, macs: sum }], mask, net)?.remove(0))
    }

    /// Bits that one party knows, of the stock or fresh.
    pub(super) fn owned_bits(&mut self, owner: Party, count: usize, net: &mut dyn Net) -> Result<Owned<F>> {
        let mut missing = count.saturating_sub(in_stock(&self.stock[owner.index()]));
        while missing > 0 {
            let now = missing.min(BATCH);
            self.stock_up(owner, now, net)?;
            missing -= now;
        }
        let stock = &mut self.stock[owner.index()];
        let mut taken = Vec::new();
        let mut missing = count;
        while missing > 0 {
            let Some((shares, bits)) = stock.pop_front() else { break };
            let now = missing.min(shares.len());
            let part = |range: std::ops::Range<usize>| {
                (shares.part(range.clone()), bits.as_ref().map(|bits| Zeroizing::new(bits[range].to_vec())))
            };
            taken.push(part(0..now));
            if now < shares.len() {
                stock.push_front(part(now..shares.len()));
            }
            missing -= now;
        }
        let mut bits = (owner == self.key.me()).then(|| Zeroizing::new(Vec::with_capacity(count)));
        if let Some(bits) = &mut bits {
            taken.iter().filter_map(|(_, bits)| bits.as_ref()).for_each(|part| bits.extend_from_slice(part));
        }
        Ok((Authenticated::join(&taken.iter().map(|(shares, _)| shares).collect::<Vec<_>>()), bits))
    }

    /// Puts bits of every party into the stock. Of those that nobody asks for only this many are kept.
    fn stock_up(&mut self, asked: Party, count: usize, net: &mut dyn Net) -> Result<()> {
        let me = self.key.me();
        let Extended { own, macs, mask } = self.extend(count, net)?;
        let bits = Zeroizing::new(own[..count].iter().map(|bit| low_byte(*bit)).collect::<Vec<u8>>());
        let mut all = Vec::new();
        for (p, macs) in Party::all(macs.len()).zip(macs) {
            let mut values = if p == me { own.clone() } else { zeros::<F>(own.len()) };
            self.zeros.add_to::<F>(&mut values);
            all.push(Authenticated { values, macs });
        }
        let checked = self.check_bits(all, mask, net)?;
        for ((p, shares), stock) in Party::all(checked.len()).zip(checked).zip(&mut self.stock) {
            stock.push_back((shares, (p == me).then(|| bits.clone())));
            while p != asked && in_stock(stock) > BATCH {
                stock.pop_front();
            }
        }
        Ok(())
    }

    /// Correlated transfers for this many bits and k more, and a mask that COPEe authenticates.
    fn extend(&mut self, count: usize, net: &mut dyn Net) -> Result<Extended<F>> {
        let all = count + F::BITS as usize;
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        let mut choices = Zeroizing::new(vec![0; all.div_ceil(8)]);
        AesPrg::new(&seed, 0).fill(&mut choices);
        self.extend_choosing(&vec![choices.as_slice(); self.key.parties()], all, net)
    }

    /// The same with bits of this party's own, by peer: its own entry is what it has itself. Only in tests of
    /// cheaters they differ. Eight rounds.
    pub(super) fn extend_choosing(
        &mut self,
        choices: &[&[u8]],
        all: usize,
        net: &mut dyn Net,
    ) -> Result<Extended<F>> {
        let (me, n) = (self.key.me(), self.key.parties());
        let towards = Party::all(n).zip(choices);
        let towards: Vec<&[u8]> = towards.map(|(p, bits)| if p == me { &[][..] } else { bits }).collect();
        let correlated = self.keyed.extend(&towards, all, net)?;
        self.keyed.check(net)?;

        let mut own = zeros::<F>(all);
        for (eight, byte) in own.chunks_mut(8).zip(choices[me.index()]) {
            for (place, bit) in eight.iter_mut().enumerate() {
                *bit = F::Word::from_bytes(&[byte >> place & 1]);
            }
        }
        let alpha = self.key.reveal_own_share();
        let of_peer = |q: &Blocks| Row::<F>::new(q.iter().map(|q| low::<F>(*q)).collect());
        let mut macs: Vec<Row<F>> = correlated.sent.iter().map(of_peer).collect();
        macs[me.index()] = zeros::<F>(all);
        let row = &mut macs[me.index()];
        masks(row, |i| own[i]);
        row.iter_mut().for_each(|mac| *mac = alpha.and(*mac));
        for t in &correlated.received {
            row.iter_mut().zip(t.iter()).for_each(|(mac, t)| *mac ^= low::<F>(*t));
        }
        let mask = self.share_masked(&[], net)?;
        Ok(Extended { own, macs, mask })
    }

    /// Checks bits and returns them without the last k of each, which have masked the check.
    fn check_bits(
        &mut self,
        mut all: Vec<Authenticated<F>>,
        mut mask: Authenticated<F>,
        net: &mut dyn Net,
    ) -> Result<Vec<Authenticated<F>>> {
        let powers: Vec<F::Word> = (0..F::BITS).map(|i| F::Word::ONE.shift_left(i)).collect();
        for shares in &mut all {
            let count = shares.len() - powers.len();
            mask.values[0] ^= F::inner_product(&powers, &shares.values[count..]);
            mask.macs[0] ^= F::inner_product(&powers, &shares.macs[count..]);
            shares.values.truncate(count);
            shares.macs.truncate(count);
        }
        self.check_authentication(&all.iter().collect::<Vec<_>>(), mask, net)?;
        Ok(all)
    }
}

fn in_stock<F: MacField>(stock: &VecDeque<Owned<F>>) -> usize {
    stock.iter().map(|(shares, _)| shares.len()).sum()
}

fn low_byte<W: Word>(word: W) -> u8 {
    let mut byte = [0];
    word.write_to(&mut byte);
    byte[0]
}
