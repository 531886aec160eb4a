//! The MAC key, and whether it may still be used.
//!
//! After a check under it has failed, of any kind, a key is given up for all sessions. The failure may come
//! from a guess at bits of the key, and then it tells the cheater whether the guess was right (security-notes
//! G). The key is also given up if a peer leaves a check of transfers, or of products with shares of the key,
//! without an answer once it could know the coins ([`Error::Unanswered`]). Any other silence is no failure.
//! The messages of honest parties before a check has passed at all of them reveal nothing of the key, except
//! whether one value, which cheaters chose beforehand, is right: `check.rs` argues this for the zero test,
//! and `mascot/cope.rs` for products with shares of the key. So a peer that is killed costs the session, but
//! not what is stored under the key. `guesses.rs` says how many failures are tolerable for a key that is used
//! again at the operators' order. A check of leaky products that is left without an answer is treated in the
//! same way, though it tells nothing of the key (`tinyot/coset_check.rs`).

use std::sync::Arc;

use polyclave_field::{Gf2_64, MacField, Word};
use zeroize::Zeroizing;

use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::retirement::{GuessGuard, Retirement};
use crate::{Error, Party, Result};

/// A party's share of alpha. Clones are the same key and share its fate.
pub struct MacKey<F: MacField> {
    me: Party,
    parties: usize,
    share: Arc<Zeroizing<F::Word>>,
    retired: Retirement,
}

impl<F: MacField> MacKey<F> {
    /// A fresh share of a fresh key. Local: any shares make a key.
    pub fn generate(net: &dyn Net) -> Result<Self> {
        let mut bytes = Zeroizing::new(vec![0; F::BYTES]);
        random_bytes(&mut bytes)?;
        let mut share = [F::Word::default()];
        F::read_row(&bytes, &mut share);
        Ok(Self::of_share(net.me(), net.parties(), share[0]))
    }

    /// The key with this word as the share of party `me`.
    pub fn of_share(me: Party, parties: usize, share: F::Word) -> Self {
        MacKey { me, parties, share: Arc::new(Zeroizing::new(share)), retired: Retirement::default() }
    }

    /// This party's share.
    pub fn reveal_own_share(&self) -> F::Word {
        **self.share
    }

    /// Which party this is.
    pub fn me(&self) -> Party {
        self.me
    }

    /// Number of parties that have a share.
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// Whether this party adds public values to its shares.
    pub fn is_first(&self) -> bool {
        self.me.0 == 0
    }

    /// An error if a check under this key has failed.
    pub fn refuse_retired(&self) -> Result<()> {
        self.retired.refuse_retired()
    }

    /// Gives the key up, for all sessions.
    pub fn retire(&self) {
        self.retired.retire();
    }

    /// From now on this guard stands before comparisons that a guess at a bit of this party's share can make
    /// fail.
    pub fn guard(&self, guard: Arc<dyn GuessGuard>) {
        self.retired.guard(guard);
    }

    /// Whether the key may still be used, for everything else that a guess at its bits can spoil.
    pub(crate) fn retirement(&self) -> &Retirement {
        &self.retired
    }

    /// Looks for what does not fit in a check of the whole key, and gives the key up if there is something.
    pub(crate) fn judge(&self, fault: impl FnOnce() -> Option<Error>) -> Result<()> {
        self.retired.judge(fault)
    }

    /// Gives the key up if an error can be that of a cheater's wrong guess.
    pub(crate) fn retire_after(&self, error: &Error) {
        self.retired.retire_after(error);
    }
}

impl<F: MacField> MacKey<F> {
    /// The same key for authenticated bits of two parties, if it has as many bits: it shares this one's fate.
    pub(crate) fn for_bits(&self) -> Option<MacKey<Gf2_64>> {
        let mut bytes = Zeroizing::new([0; 8]);
        if F::BITS != Gf2_64::BITS {
            return None;
        }
        self.share.write_to(&mut *bytes);
        let share = Arc::new(Zeroizing::new(u64::from_le_bytes(*bytes)));
        Some(MacKey { me: self.me, parties: self.parties, share, retired: self.retired.clone() })
    }
}

impl<F: MacField> Clone for MacKey<F> {
    fn clone(&self) -> Self {
        MacKey {
            me: self.me,
            parties: self.parties,
            share: self.share.clone(),
            retired: self.retired.clone(),
        }
    }
}
