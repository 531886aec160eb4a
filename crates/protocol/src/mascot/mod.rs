//! Material for authenticated sharing from oblivious transfer, among n parties of which all but one may
//! cheat: Keller, Orsini, Scholl 2016, "MASCOT: Faster Malicious Arithmetic Secure Computation with Oblivious
//! Transfer" (CCS 2016, ePrint 2016/505).
//!
//! | file | what | source |
//! |---|---|---|
//! | `cope.rs` | products with shares of the MAC key, by bits | figure 3, COPEe |
//! | `authenticate.rs` | authenticated elements, and their check | authenticated sharing, "Input" |
//! | `triples.rs` | multiplication triples | Multiply, Combine, Authenticate, Sacrifice |
//! | `bits.rs` | random bits, unknown to all or known to one party | transfers under the MAC key |
//! | `messages.rs` | messages in memory that is reused | |
//! | `binding.rs` | fresh material under a stored key | |
//! | `bit_triples.rs` | TinyOT under the same key; triples of bits between two parties | [`crate::tinyot`] |
//! | `inverses.rs` | records for inversions | [`crate::tinyot`] |
//! | `unforked.rs` | material of a session, forked at first use | |
//! | `zero_tests.rs` | the check of values that are opened on the way | `authenticated/check.rs` |
//!
//! **Adversary**: active, static, any number of parties but one; secure with abort. A failed check of MACs
//! does not name the cheater. Channels are private and authentic. Every file says why its checks are enough.
//!
//! **Parameters.** Computational: that of oblivious transfer, 128 bits. Statistical: every check errs with
//! probability about 2^-k for a field of 2^k elements. A cheater that guesses bits and is right learns
//! something, and triples still stay uniform except with probability 2^-kappa; kappa = 40 for k = 40 and 42,
//! and 64 for 64 and 128. Over Q attempts the loss is Q 2^-k.
//!
//! **A failed check** of any kind can tell a cheater about one bit of the key. So the key is given up
//! ([`MacKey::retire`]), and nothing more is made. The error says what was checked, but not where the fault
//! was. A batch is checked as a whole, so when it fails does not depend on where the error is. If errors can
//! depend on bits of a share of the key, the holder of the share does the check, and no cheater knows before
//! it whether a guess was right (`cope.rs`, and the check of transfers under the key, [`crate::ot`]). So a
//! peer that falls silent has learnt nothing of the key, and the key is kept. The exception is a peer that
//! leaves such a check without an answer once it could know the coins: then the key is given up in this
//! process, and that is counted ([`crate::authenticated::Guesses`]).
//!
//! **Memory**: batches of 2^18 transfers for triples and 2^17 for bits. They take some twenty megabytes for
//! every peer, which are kept for the next batch, and the result.

mod authenticate;
mod binding;
mod bit_triples;
mod bits;
mod cope;
mod inverses;
mod messages;
mod rows;
mod triples;
mod unforked;
mod zero_tests;

use polyclave_field::MacField;
use zeroize::Zeroizing;

use crate::authenticated::{
    Authenticated, Inverses, MacKey, Openings, OwnedBits, Product, Source, Triples, Vectors,
};
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::ot::{Pairs, Shape};
use crate::pool::Pool;
use crate::tinyot::TinyOt;
use crate::{Error, Party, PartySet, Result};
use authenticate::Zeros;
use bits::Stock;
use cope::Cope;
use messages::Messages;
pub use unforked::Unforked;

/// Makes material under one MAC key.
pub struct Mascot<F: MacField> {
    key: MacKey<F>,
    /// Transfers of 128 bits, under a Delta of their own.
    transfers: Pairs,
    /// Transfers whose Delta is the share of the MAC key.
    keyed: Pairs,
    cope: Cope<F>,
    zeros: Zeros,
    openings: Openings<F>,
    /// For zero tests.
    products: Vec<Product<F>>,
    stock: Stock<F>,
    /// The messages of [`triples`].
    messages: Messages,
    /// If what it makes was asked for.
    tinyot: Option<Box<TinyOt>>,
    failed: bool,
}

impl<F: MacField> Mascot<F> {
    /// Everything that is needed once. `label` names the session and is used once
    /// ([`Stream::label`](crate::interface::session::Stream::label)); `expansion`, 1 to 8, trades computation
    /// for communication ([`crate::ot`]), and is the same at all parties. Nine rounds.
    pub fn setup(label: &[u8], key: &MacKey<F>, expansion: usize, net: &mut dyn Net) -> Result<Self> {
        if (net.me(), net.parties(), net.members()) != (key.me(), key.parties(), PartySet::all(key.parties()))
        {
            return Err(Error::misuse("material is made among all parties that have a share of the MAC key"));
        }
        key.refuse_retired()?;
        let columns = (F::BITS as usize).max(MIN_COLUMNS);
        let (wide, narrow) = (Shape::new(128, expansion)?, Shape::new(columns, expansion)?);
        let mut deltas = [Zeroizing::new([0; 16]), Zeroizing::new([0; 16])];
        for delta in &mut deltas {
            random_bytes(&mut **delta)?;
        }
        let [delta, rest] = deltas.map(|bytes| Zeroizing::new(u128::from_le_bytes(*bytes)));
        // A check of any of them that fails is the end of all.
        let fate = key.retirement();
        let mut outcome = || {
            let mut transfers =
                Pairs::set_up_under(&[label, b" products"].concat(), *delta, wide, fate, net)?;
            // Columns beyond the field's are of no account but random.
            let above = rest.checked_shl(F::BITS).unwrap_or(0);
            let share = Zeroizing::new(above ^ rows::wide::<F>(key.reveal_own_share()));
            let keyed = Pairs::set_up_under(&[label, b" bits"].concat(), *share, narrow, fate, net)?;
            let cope = Cope::setup(key, &mut transfers, net)?;
            let zeros = Zeros::setup(net)?;
            Ok(Mascot {
                key: key.clone(),
                transfers,
                keyed,
                cope,
                zeros,
                openings: Openings::default(),
                products: Vec::new(),
                stock: Party::all(key.parties()).map(|_| Default::default()).collect(),
                messages: Messages::new(key.parties()),
                tinyot: None,
                failed: false,
            })
        };
        outcome().inspect_err(|e| key.retire_after(e))
    }

    /// Independent material under the same key, for another stream of a session or another session: bound to
    /// a label that is used once. Each party's share of the key is the one it fixed when this was set up, so
    /// a value made here passes checks there and a cheater cannot check one stream under another key than the
    /// next. Local.
    pub fn fork(&self, label: &[u8]) -> Self {
        Mascot {
            key: self.key.clone(),
            transfers: self.transfers.fork(&[label, b" products"].concat()),
            keyed: self.keyed.fork(&[label, b" bits"].concat()),
            cope: self.cope.fork(&[label, b" keyed products"].concat()),
            zeros: self.zeros.fork(&[label, b" zeros"].concat()),
            openings: Openings::default(),
            products: Vec::new(),
            stock: Party::all(self.key.parties()).map(|_| Default::default()).collect(),
            messages: Messages::new(self.key.parties()),
            tinyot: self
                .tinyot
                .as_ref()
                .map(|tinyot| Box::new(tinyot.fork(&[label, b" triples of bits"].concat()))),
            failed: self.failed,
        }
    }

    /// Runs something after which, if it fails, nothing more is made.
    fn guarded<T>(&mut self, make: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.failed {
            return Err(Error::misuse("making material has failed before; it must be set up afresh"));
        }
        self.key.refuse_retired()?;
        let outcome = make(self);
        if let Err(e) = &outcome {
            self.failed = true;
            self.key.retire_after(e);
        }
        outcome
    }

    fn refuse_unknown(&self, owner: Party) -> Result<()> {
        match owner.index() < self.key.parties() {
            true => Ok(()),
            false => Err(Error::misuse(format!("{owner} is not one of {} parties", self.key.parties()))),
        }
    }
}

/// The fewest columns of transfers.
const MIN_COLUMNS: usize = 40;

impl<F: MacField> Source<F> for Mascot<F> {
    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.guarded(|mascot| mascot.triples_in_batches(count, net))
    }

    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Authenticated<F>> {
        self.guarded(|mascot| mascot.summed_bits(count, net))
    }

    fn bits_of(&mut self, owner: Party, count: usize, net: &mut dyn Net) -> Result<OwnedBits<F>> {
        self.refuse_unknown(owner)?;
        self.guarded(|mascot| mascot.owned_bits(owner, count, net))
    }

    fn bit_triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.triples_of_bits(count, net)
    }

    fn unit_vectors(
        &mut self,
        in_bits: u8,
        count: usize,
        pool: &Pool,
        net: &mut dyn Net,
    ) -> Result<Vectors<F>> {
        self.vectors(in_bits, count, pool, net)
    }

    fn inverses(&mut self, count: usize, net: &mut dyn Net) -> Result<Inverses<F>> {
        self.records(count, net)
    }

    fn zeros(&mut self, shares: &mut [F::Word]) {
        self.zeros.add_to::<F>(shares);
    }
}

#[cfg(test)]
mod cheaters;
#[cfg(test)]
mod tests;
