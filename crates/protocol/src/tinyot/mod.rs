//! Authenticated bits of two parties, and products of them: Nielsen, Nordholt, Orlandi, Burra 2012, "A New Approach to Practical
//! Active-Secure Two-Party Computation" (TinyOT), as Damgard et al. 2016, section 4, uses it for preprocessing.
//!
//! | file | what | source |
//! |---|---|---|
//! | `share.rs` | authenticated bits | Damgard et al. 2016, section 4 |
//! | `opening.rs` | opening them, with all tags compared by one hash | section 3.3 |
//! | `source.rs` | where random bits and triples come from | |
//! | `abit.rs` | random authenticated bits | TinyOT, aBit, from [`crate::ot`] |
//! | `leaky_and.rs` | triples of which a cheater may guess a bit | Katz, Ranellucci, Rosulek, Wang 2018 |
//! | `bucket.rs` | triples of which it knows nothing | TinyOT; Wang, Ranellucci, Katz 2017 |
//! | `shuffle.rs` | random orders | Rao 1961, Sandelius 1962 |
//!
//! **Adversary**: active, static, one of the two; secure with abort. Channels are private and authentic.
//!
//! **Parameters.** Computational: 128 bits of oblivious transfer, 127 of Delta. Statistical: a tag is forged with probability 2^-64;
//! triples are right and uniform except with probability 2^-kappa a batch ([`Kappa`]). Over Q attempts the loss is Q times that.
//!
//! **A failed check** of any kind gives up the key ([`Key::retire`](crate::spdz::MacKey::retire)), and nothing more is made. The error
//! says what was checked, but not where the fault was: everything is checked by the batch. A peer that falls silent has learnt nothing of
//! the key; every file argues this for its own messages. So silence costs the session and not the key, unless it leaves a check of
//! transfers without an answer ([`crate::ot`]).
//!
//! **Cost** of a triple to the peer: B (3 128/f + 129) + B - 1 bits, where f is the expansion; B = 3 for kappa = 40 if at least 276,325
//! are asked for at once, B = 4 for kappa = 64 if at least 779,083 are, and more for fewer (`bucket.rs`). For f = 4 and B = 3 that is 85
//! bytes. Rounds: six for every 2^15 leaky triples, and six for a batch.
//!
//! # Differences from the paper
//! * TinyOT's own leaky products (aAND, aOT) are replaced by those of Katz et al., and its transfers by Roy's.
//! * Tags have 64 bits: the upper halves of blocks of 128.

mod abit;
mod bucket;
mod leaky_and;
mod opening;
mod share;
mod shuffle;
mod source;

pub use opening::Openings;
pub(crate) use opening::peer_of;
pub use share::Bits;
pub(crate) use share::mask;
pub use source::{Key, Source, Triples};

use zeroize::{Zeroize, Zeroizing};

use crate::net::Net;
use crate::{Error, PartySet, Result, coins};
use abit::{AT_ONCE, Transfers, upper};
use bucket::Plan;
use leaky_and::{Leaky, LeakyAnd};

/// Statistical security of triples: a cheater knows something of any of a batch with probability 2^-kappa at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kappa {
    /// 2^-40.
    Bits40,
    /// 2^-64.
    Bits64,
}

impl Kappa {
    /// kappa.
    pub fn bits(self) -> u32 {
        match self {
            Kappa::Bits40 => 40,
            Kappa::Bits64 => 64,
        }
    }
}

/// Makes authenticated bits and triples under the keys of two parties.
pub struct TinyOt {
    key: Key,
    kappa: Kappa,
    transfers: Transfers,
    products: LeakyAnd,
    openings: Openings,
    leaky: Zeroizing<Vec<Leaky>>,
    failed: bool,
}

impl TinyOt {
    /// Everything that is needed once. `label` names the session and is used once
    /// ([`Stream::label`](crate::session::Stream::label)); `expansion`, 1, 2, 4 or 8, trades computation for communication
    /// ([`crate::ot`]). It and kappa are the same at both parties. Two rounds.
    pub fn set_up(
        label: &[u8],
        key: &Key,
        kappa: Kappa,
        expansion: usize,
        net: &mut dyn Net,
    ) -> Result<Self> {
        if (net.me(), net.parties(), net.members()) != (key.me(), key.parties(), PartySet::all(2)) {
            return Err(Error::misuse("authenticated bits are made between the two parties that have keys"));
        }
        key.refuse_retired()?;
        let transfers = Transfers::set_up(&[label, TRANSFERS].concat(), key, expansion, net);
        let transfers = transfers.inspect_err(|e| key.retire_after(e))?;
        Ok(Self::with(label, key, kappa, transfers, false))
    }

    /// Independent material under the same keys, for another stream of a session or another session: bound to a label that is
    /// used once. Each party's Delta is the one it fixed when this was set up. Local.
    pub fn fork(&self, label: &[u8]) -> Self {
        let transfers = self.transfers.fork(&[label, TRANSFERS].concat());
        Self::with(label, &self.key, self.kappa, transfers, self.failed)
    }

    fn with(label: &[u8], key: &Key, kappa: Kappa, transfers: Transfers, failed: bool) -> Self {
        TinyOt {
            key: key.clone(),
            kappa,
            products: LeakyAnd::new(label, key.me(), transfers.delta()),
            openings: Openings::new(&[label, b" buckets"].concat(), key.me()),
            transfers,
            leaky: Zeroizing::default(),
            failed,
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

    fn bits_in_batches(&mut self, count: usize, net: &mut dyn Net) -> Result<Bits> {
        let mut bits = with_room(count);
        while bits.len() < count {
            let made = self.transfers.make(AT_ONCE.min(count - bits.len()), net)?;
            bits.values.extend_from_slice(&made.values);
            bits.tags.extend(made.tags.iter().map(|tag| upper(*tag)));
            bits.keys.extend(made.keys.iter().map(|key| upper(*key)));
        }
        Ok(bits)
    }

    fn triples_in_batches(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples> {
        let mut made = Triples { x: with_room(count), y: with_room(count), z: with_room(count) };
        // The memory of the last batch, if there was one: fresh pages cost as much as what fills them.
        let mut leaky = std::mem::take(&mut self.leaky);
        while made.x.len() < count {
            let missing = count - made.x.len();
            let plan = Plan::of(missing, self.kappa);
            self.leaky_triples(plan.leaky(), &mut leaky, net)?;
            let coin = coins::toss(b"TinyOT: buckets", net)?;
            shuffle::shuffle(&coin, &mut leaky);
            let shape = [plan.size, plan.buckets.min(missing)];
            bucket::combine(&leaky, shape, &self.key, &mut self.openings, net, &mut made)?;
        }
        self.leaky = leaky;
        Ok(made)
    }

    /// Replaces the triples by this many new leaky triples, compared.
    fn leaky_triples(&mut self, count: usize, made: &mut Vec<Leaky>, net: &mut dyn Net) -> Result<()> {
        if made.capacity() < count {
            // Growing would leave copies behind.
            made.zeroize();
            made.reserve_exact(count);
        }
        made.clear();
        while made.len() < count {
            let now = (AT_ONCE / 3).min(count - made.len());
            let bits = self.transfers.make(3 * now, net)?;
            self.products.multiply(&bits, &self.key, net, made)?;
        }
        self.products.compare(&self.key, net)
    }
}

const TRANSFERS: &[u8] = b" authenticated bits";

/// None yet: room at once, since growing would leave copies behind.
fn with_room(count: usize) -> Bits {
    let mut bits = Bits::default();
    bits.values.reserve_exact(count);
    bits.tags.reserve_exact(count);
    bits.keys.reserve_exact(count);
    bits
}

impl Source for TinyOt {
    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Bits> {
        self.guarded(|source| source.bits_in_batches(count, net))
    }

    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples> {
        self.guarded(|source| source.triples_in_batches(count, net))
    }
}

#[cfg(test)]
mod cheaters;
#[cfg(test)]
mod tests;
