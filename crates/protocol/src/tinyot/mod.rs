//! Authenticated bits, and products of them: Nielsen, Nordholt, Orlandi, Burra 2012, "A New Approach to
//! Practical Active-Secure Two-Party Computation" (TinyOT), as Damgard et al. 2016, section 4, uses it for
//! preprocessing.
//!
//! | file | what | source |
//! |---|---|---|
//! | `share.rs` | authenticated bits | Damgard et al. 2016, section 4 |
//! | `opening.rs` | opening them, with all tags compared by one hash | section 3.3 |
//! | `source.rs` | where random bits and triples come from | |
//! | `abit.rs` | random authenticated bits | TinyOT, aBit, from [`crate::ot`] |
//! | `products.rs` | products of elements of which a cheater may guess some bits | Wang, Ranellucci, Katz 2017; own |
//! | `coset_check.rs` | their check | own |
//! | `rotation.rs` | products of which it knows nothing | TinyOT's buckets; own |
//! | `groups.rs`, `shared.rs` | the same for records, with lists that several products share | own |
//! | `lists.rs`, `maker.rs`, `plan.rs` | what they are made of, and how many | |
//! | `subfield.rs` | the subfields of GF(2^8) | |
//! | `gates.rs` | triples of bits | |
//! | `wide.rs` | bits with tags of 128 bits, for garbled circuits | |
//! | `records.rs` | records for inversions in GF(2^8) | own |
//! | `word_products.rs`, `unit_vectors.rs` | unit vectors of random indices | Keller et al. 2017, Protocol 3; own |
//!
//! docs/protocols/tower-material.md argues for everything that is our own.
//!
//! **Adversary**: active, static, all parties but one; secure with abort. Channels are private and authentic.
//! Records are made among 2 to 16 parties. Bits with tags, triples of bits and unit vectors are made between
//! two.
//!
//! **Parameters.** Computational: 128 bits of oblivious transfer and of Delta, 127 of Delta if transfers are
//! silent. Statistical: a tag is forged
//! with probability 2^-64; triples are right and uniform except with probability 2^-kappa a batch
//! ([`Kappa`]). Over Q attempts the loss is Q times that.
//!
//! **A failed check** of any kind gives up the key ([`Key::retire`](crate::authenticated::MacKey::retire)),
//! and nothing more is made. The error says what was checked, but not where the fault was: everything is
//! checked by the batch. A peer that falls silent has learnt nothing of the key; every file argues this for
//! its own messages. So silence costs the session and not the key, unless it leaves a check of transfers
//! ([`crate::ot`]) or of leaky products (`coset_check.rs`) without an answer. For the latter that includes
//! what follows in the same phase.
//!
//! **Cost** of a triple to the peer: B (192/f + 65) + 64/f + B bits, where f is the expansion; B = 3 for
//! kappa = 40 if at least 370,728 are asked for at once, B = 4 for kappa = 64 if at least 2^20 are, and more
//! for fewer (`plan.rs`). For f = 4 and B = 3 that is 45 bytes.
//!
//! # Differences from the paper
//! * TinyOT's own leaky products (aAND, aOT) are replaced by those of `products.rs`, its buckets by
//!   rotations, and its transfers by Roy's.
//! * Tags have 64 bits: the upper halves of blocks of 128, or blocks of 64. Garbled circuits take whole
//!   blocks (`wide.rs`).

mod abit;
mod coset_check;
mod gates;
mod groups;
mod lists;
mod maker;
mod opening;
mod plan;
mod products;
mod records;
mod rotation;
mod share;
mod shared;
mod source;
mod subfield;
mod unit_vectors;
mod wide;
mod word_products;

pub use opening::Openings;
pub use opening::peer_of;
pub use share::Bits;
pub(crate) use share::{BitSlices, mask};
pub use source::{Key, Source, Triples};
pub(crate) use wide::WideBits;

use crate::authenticated::{Authenticated, Inverses};
use crate::interface::descriptor::{Choice, Parameters};
use crate::interface::net::Net;
use crate::ot::Means;
use crate::{Error, PartySet, Result};
use abit::{AT_ONCE, Rows, Transfers};
use maker::Maker;
use polyclave_field::Gf2_64;

/// Statistical security of triples: a cheater knows something of any of a batch with probability 2^-kappa at
/// most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kappa {
    /// 2^-40.
    Bits40,
    /// 2^-64.
    Bits64,
}

impl Kappa {
    /// The option of protocols with material from TinyOT.
    pub const CHOICE: Choice = Choice {
        name: "kappa",
        summary: "a cheater learns something of a batch of material with probability 2^-40 or 2^-64",
        values: || vec!["40", "64"],
        default: Some("64"),
    };

    /// The value of [`Kappa::CHOICE`] that was chosen.
    pub fn chosen(parameters: &Parameters) -> Kappa {
        if parameters.value(Kappa::CHOICE.name) == "40" { Kappa::Bits40 } else { Kappa::Bits64 }
    }

    /// kappa.
    pub fn bits(self) -> u32 {
        match self {
            Kappa::Bits40 => 40,
            Kappa::Bits64 => 64,
        }
    }
}

/// Makes records for inversions under the sum of all parties' keys, and between two parties authenticated
/// bits, triples and unit vectors.
pub struct TinyOt {
    kappa: Kappa,
    maker: Maker,
    gate_room: gates::Room,
    record_room: records::Room,
    vector_room: unit_vectors::Room,
    failed: bool,
}

impl TinyOt {
    /// Everything that is needed once. `label` names the session and is used once
    /// ([`Stream::label`](crate::interface::session::Stream::label)); the expansion of `means`, 1, 2, 4, 5, 6
    /// or 8, trades computation for communication ([`crate::ot`]). It and kappa are the same at all parties.
    /// Two rounds.
    ///
    /// Among more than two parties, a cheater can take another key towards another peer. The caller has to
    /// find that before anything else is made, as [`crate::mascot`] does when it joins this to its own
    /// material.
    pub fn setup(
        label: &[u8],
        key: &Key,
        kappa: Kappa,
        means: impl Into<Means>,
        net: &mut dyn Net,
    ) -> Result<Self> {
        let all = PartySet::all(key.parties());
        if (net.me(), net.parties(), net.members()) != (key.me(), key.parties(), all) {
            return Err(Error::misuse("authenticated bits are made among all parties that have keys"));
        }
        key.refuse_retired()?;
        let transfers = Transfers::setup(&[label, TRANSFERS].concat(), key, means.into(), net);
        let transfers = transfers.inspect_err(|e| key.retire_after(e))?;
        Ok(Self::with(label, key, kappa, transfers, false))
    }

    /// The statistical parameter of triples.
    pub(crate) fn kappa(&self) -> Kappa {
        self.kappa
    }

    /// Independent material under the same keys, for another stream of a session or another session: bound to
    /// a label that is used once. Each party's Delta is the one it fixed when this was set up. Local.
    pub fn fork(&self, label: &[u8]) -> Self {
        let transfers = self.maker.transfers.fork(&[label, TRANSFERS].concat());
        Self::with(label, &self.maker.key, self.kappa, transfers, self.failed)
    }

    fn with(label: &[u8], key: &Key, kappa: Kappa, transfers: Transfers, failed: bool) -> Self {
        TinyOt {
            kappa,
            maker: Maker::new(label, key, transfers),
            gate_room: gates::Room::default(),
            record_room: records::Room::default(),
            vector_room: unit_vectors::Room::default(),
            failed,
        }
    }

    /// Runs something after which, if it fails, nothing more is made.
    fn guarded<T>(&mut self, make: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.failed {
            return Err(Error::misuse("making material has failed before; it must be set up afresh"));
        }
        self.maker.key.refuse_retired()?;
        let outcome = make(self);
        if let Err(e) = &outcome {
            self.failed = true;
            self.maker.key.retire_after(e);
        }
        outcome
    }

    /// Bits with tags have one peer's.
    fn refuse_more_than_two(&self) -> Result<()> {
        if self.maker.key.parties() == 2 { Ok(()) } else { Err(between_two()) }
    }

    /// A random element that nobody knows, in authenticated sharing under the sum of all keys. Three rounds.
    pub(crate) fn random_element(&mut self, net: &mut dyn Net) -> Result<Authenticated<Gf2_64>> {
        self.guarded(|source| source.maker.random_element(net))
    }

    fn bits_in_batches(&mut self, count: usize, net: &mut dyn Net) -> Result<Bits> {
        let mut bits = Bits::zero(count);
        for at in (0..count).step_by(AT_ONCE) {
            let len = AT_ONCE.min(count - at);
            let [_, made] = self.maker.transfers.make(Rows::NONE, Rows { rows: 1, len }, net)?;
            made.write_to(&mut bits, at, len, &mut self.maker.rows.blocks)?;
        }
        Ok(bits)
    }

    /// Random records for inversions in GF(2^8), in authenticated sharing under the sum of all keys.
    pub fn inverses(&mut self, count: usize, net: &mut dyn Net) -> Result<Inverses<Gf2_64>> {
        self.guarded(|source| source.records_in_batches(count, net))
    }
}

fn between_two() -> Error {
    Error::misuse("bits with tags, triples of bits and unit vectors are made between two parties")
}

const TRANSFERS: &[u8] = b" authenticated bits";

impl Source for TinyOt {
    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Bits> {
        self.refuse_more_than_two()?;
        self.guarded(|source| source.bits_in_batches(count, net))
    }

    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples> {
        self.refuse_more_than_two()?;
        self.guarded(|source| source.triples_in_batches(count, net))
    }
}

#[cfg(test)]
mod cheaters;
#[cfg(test)]
mod cheaters_of_three;
#[cfg(test)]
mod edits;
#[cfg(test)]
mod places;
#[cfg(test)]
mod records_tests;
#[cfg(test)]
mod tests;
