//! Moves stored values from one MAC key to another, among the same parties (security-notes F, I). Stored keys
//! have to outlive a MAC key, because every failed check may have told a bit of it.
//!
//! A value x is moved under a mask r that is authenticated under both keys. The parties open x + r under the
//! old key and check it, and \[x\] = (x + r) + \[r\] under the new key. Masks are sums of random bits.
//!
//! * *Bits under both keys.* Each party i has random bits that it knows: b under the old key and b' under the
//!   new one ([`Source::bits_of`], which guarantees that they are bits). It tells all others d = b + b', and
//!   everybody adds d to b'. The sums over all parties of the former and the latter are r and r'. They are
//!   equal if nobody lied, and uniform as long as one party is honest; d reveals nothing of b, because b' is
//!   uniform.
//! * *The check.* Coins give every bit an independent coefficient chi_j of the field. With k more bits s_i
//!   made in the same way, V = sum chi_j r_j + sum X^i s_i is opened under the old key, and V', made of r'
//!   and s', under the new one. V' passes its MAC check, and V = V' is required. V is checked together with
//!   x + r, before anything that depends on either is handed out. Until then it tells nothing: s makes V
//!   uniform. Let r'_j = r_j + e_j and s'_i = s_i + f_i. Then V + V' = sum chi_j e_j + sum X^i f_i, where the
//!   cheater has fixed the errors before the coins. If some e_j is not zero, the sum is zero with probability
//!   2^-k. The errors are the cheater's own and depend on no secret, so a failure tells it nothing. If there
//!   are three parties or more, d is noted under both keys, and the checks detect it if some party received
//!   another d.
//! * *The value.* x + r is used after its MAC has been checked under the old key, with that of V, so it is
//!   right except with probability 2 / 2^k. Only the bits of the identity view are opened. The other images
//!   of a cell are made anew from x + r and the bits of r, and so agree with it.
//!
//! **What it requires of the old key**: that nobody knows it. After b failed checks under it, the MAC check
//! of x + r errs with probability sum over j <= b of C(k, j) 2^-k (`guesses.rs`). A setup that was given up
//! in this process is refused. Nodes read it anew from what they stored, after an operator's order, and
//! refuse if that probability is too large (`node/src/material/refresh.rs`).
//!
//! Values that are alike move as one, up to 2^18 bits (`together.rs`), so many keys take the rounds and
//! checks of one.
//!
//! Cost of a bit: two bits of each party's from the source, and n bits told to all. Rounds, in addition to
//! the source's: one for d, two for coins, two openings and a check for the bits; one opening and one check
//! for the value.

mod bits;
mod together;

use polyclave_cipher::{Cells, Matrix};
use polyclave_field::{MacField, Word};
use zeroize::Zeroizing;

use super::arithmetic::Arithmetic;
use super::config::Preprocessing;
use super::setup::Setup;
use super::shared::{Shared, image_of_bits};
use crate::authenticated::{Authenticated, Coefficients, MacKey};
use crate::commitment::broadcast;
use crate::interface::net::Net;
use crate::interface::session::Stream;
use crate::unchecked::Unchecked;
use crate::{Error, Party, Result, coins};
pub(crate) use together::{groups, ranges};

/// One party's side of moving values from one setup to another, on one stream.
pub struct Refresh<F: MacField> {
    old: Arithmetic<F>,
    new: Arithmetic<F>,
}

impl<F: MacField> Refresh<F> {
    /// Both setups are renewed. The material of each is bound to the stream and to its side.
    pub fn new(
        old: &Setup<F>,
        new: &Setup<F>,
        preprocessing: Preprocessing<F>,
        stream: &Stream,
    ) -> Result<Self> {
        if (old.key().me(), old.key().parties()) != (new.key().me(), new.key().parties()) {
            return Err(Error::misuse("values move among the parties that share them"));
        }
        let side = |setup: &Setup<F>, name: &[u8]| {
            let source = setup.source(preprocessing, &[&stream.label(), name].concat())?;
            Ok(Arithmetic::new(setup.key().clone(), stream.label(), source))
        };
        Ok(Refresh { old: side(old, OLD_SIDE)?, new: side(new, NEW_SIDE)? })
    }

    /// Cells, and the images of them that the value has.
    pub fn refresh_cells(&mut self, value: &Shared<F>, net: &mut dyn Net) -> Result<Shared<F>> {
        self.guarded(|refresh| {
            refresh.old.refuse_unchecked(&value.unchecked)?;
            let len = value.count * value.lanes;
            let [old, new] = refresh.dual_bits(len * usize::from(value.bits), net)?;

            let mask = image_of_bits(&old, &Matrix::identity(value.bits), len);
            let mut cells = Zeroizing::new(vec![0; len]);
            F::project_row(&mut cells, &mask.values);
            cells.iter_mut().zip(&value.cells[..len]).for_each(|(mask, x)| *mask ^= x);
            let mut macs = mask.macs;
            macs.iter_mut().zip(&value.macs[..len]).for_each(|(mask, x)| *mask ^= *x);
            let (_, opened) = refresh.old.open(&Authenticated::zero(0), &cells, &macs, net)?;
            refresh.old.check(net)?;

            let mut public = Cells::zero(value.count, value.bits, value.lanes);
            public.rows_mut().copy_from_slice(&opened);
            let mut refreshed = value.clone();
            refreshed.unchecked = Unchecked::default();
            for (k, view) in value.views.iter().enumerate() {
                let image = image_of_bits(&new, view, len);
                F::project_row(&mut refreshed.cells[k * len..(k + 1) * len], &image.values);
                refreshed.macs[k * len..(k + 1) * len].copy_from_slice(&image.macs);
            }
            refreshed.add_public(&public, &refresh.new.key);
            Ok(refreshed)
        })
    }

    /// Elements of the field of MACs.
    pub fn refresh_elements(
        &mut self,
        values: &Authenticated<F>,
        net: &mut dyn Net,
    ) -> Result<Authenticated<F>> {
        self.guarded(|refresh| {
            let [old, new] = refresh.dual_bits(values.len() * F::BITS as usize, net)?;
            let [mut masked, mut refreshed] = [old, new].map(|bits| elements_of_bits(&bits, values.len()));
            masked.add(values);
            let (public, _) = refresh.old.open(&masked, &[], &[], net)?;
            refresh.old.check(net)?;
            refreshed.add_public(&public, &refresh.new.key);
            Ok(refreshed)
        })
    }

    /// The same random bits under the old key and the new, checked.
    fn dual_bits(&mut self, count: usize, net: &mut dyn Net) -> Result<[Authenticated<F>; 2]> {
        let all = count + F::BITS as usize;
        let (mut old, mut new) = (Authenticated::zero(all), Vec::new());
        let mut own = Zeroizing::new(vec![0; all.div_ceil(8)]);
        for owner in Party::all(net.parties()) {
            let (of_old, known_old) = self.old.source.bits_of(owner, all, net)?;
            let (of_new, known_new) = self.new.source.bits_of(owner, all, net)?;
            old.add(&of_old);
            new.push(of_new);
            if let (Some(b), Some(c)) = (known_old, known_new) {
                let sums = b.iter().zip(c.iter()).enumerate();
                sums.for_each(|(j, (b, c))| own[j / 8] |= (b ^ c) << (j % 8));
            }
        }
        let mut sum = Authenticated::zero(all);
        for (mut bits, d) in new.into_iter().zip(self.tell(&own, net)?) {
            let d: Vec<F::Word> = (0..all).map(|j| F::Word::from_bytes(&[d[j / 8] >> (j % 8) & 1])).collect();
            bits.add_public(&d, &self.new.key);
            sum.add(&bits);
        }
        let both = [old, sum];
        self.check_equal(&both, net)?;
        Ok(both.map(|bits| bits.part(0..count)))
    }

    /// What every party tells all others, noted under both keys. The check under the new key comes first; to
    /// note it under the old one is not needed.
    fn tell(&mut self, own: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
        let text = broadcast(own, net)?;
        for message in &text {
            self.old.openings.note(message);
            self.new.openings.note(message);
        }
        Ok(text)
    }

    /// Whether bits under the old key are those under the new. The last k of them mask the rest. Holds only
    /// if the next check under the old key passes, which has to come before anything is made of the bits.
    fn check_equal(&mut self, bits: &[Authenticated<F>; 2], net: &mut dyn Net) -> Result<()> {
        let seed = coins::toss(b"bits under two MAC keys", net)?;
        let [of_old, of_new] = bits.each_ref().map(|bits| combination(bits, &seed));
        // All have the same coins, or none: to note them is not needed.
        self.old.openings.note(&seed);
        self.new.openings.note(&seed);
        let (v_old, _) = self.old.open(&of_old, &[], &[], net)?;
        let (v_new, _) = self.new.open(&of_new, &[], &[], net)?;
        self.new.check(net)?;
        match v_old == v_new {
            true => Ok(()),
            false => Err(Error::CheckFailed { what: "that bits under two MAC keys are the same" }),
        }
    }

    /// Refuses keys that were given up, and gives both up after what is a cheater's fault.
    fn guarded<T>(&mut self, carry: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let keys: [MacKey<F>; 2] = [self.old.key.clone(), self.new.key.clone()];
        keys.iter().try_for_each(MacKey::refuse_retired)?;
        let outcome = carry(self).inspect_err(|e| keys.iter().for_each(|key| key.retire_after(e)))?;
        keys.iter().try_for_each(MacKey::refuse_retired)?;
        Ok(outcome)
    }
}

/// Elements of which these are the bits: the lowest of all elements, then the next ..
fn elements_of_bits<F: MacField>(bits: &Authenticated<F>, len: usize) -> Authenticated<F> {
    // With fewer bits a part of a value would be opened without a mask.
    assert_eq!(bits.len(), len * F::BITS as usize, "all bits of so many elements");
    let powers = powers::<F>();
    let mut elements = Authenticated::zero(len);
    for (to, from) in [(&mut elements.values, &bits.values), (&mut elements.macs, &bits.macs)] {
        let terms: Vec<_> = from.chunks(len.max(1)).zip(powers.iter().copied()).collect();
        F::combine(to, &terms, F::Word::ZERO);
    }
    elements
}

/// sum chi_j r_j + sum X^i s_i: s are the last k.
fn combination<F: MacField>(bits: &Authenticated<F>, seed: &[u8; 32]) -> Authenticated<F> {
    let count = bits.len() - F::BITS as usize;
    let mut sum = elements_of_bits(&bits.part(count..bits.len()), 1);
    let mut coefficients = Coefficients::<F>::new(seed);
    let rows = bits.values[..count].chunks(BATCH).zip(bits.macs[..count].chunks(BATCH));
    for (values, macs) in rows {
        let chi = coefficients.next(values.len());
        sum.values[0] ^= F::inner_product(chi, values);
        sum.macs[0] ^= F::inner_product(chi, macs);
    }
    sum
}

/// 1, X, X^2 ..
fn powers<F: MacField>() -> Vec<F::Word> {
    (0..F::BITS).map(|i| F::Word::ONE.shift_left(i)).collect()
}

/// What the material of either side is bound to, beside the stream.
const OLD_SIDE: &[u8] = b" old MAC key";
const NEW_SIDE: &[u8] = b" new MAC key";

/// Bits that coefficients are drawn for at a time.
const BATCH: usize = 512;

#[cfg(test)]
mod cheaters;
#[cfg(test)]
mod tests;
