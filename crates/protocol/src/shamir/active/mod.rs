//! Shamir sharing against parties that cheat: n >= 3t + 1 parties, and t of them may deviate in any way.
//!
//! Damgard and Keller 2010 run their AES on the actively secure scheme of Damgard, Geisler, Kroigaard and
//! Nielsen (PKC 2009). Triples are made ahead, by pseudorandom secret sharing or from sharings that are dealt
//! and verified ([`Preprocessing`]). Online only sharings of degree t are opened.
//!
//! **Adversary**: active, static, at most t < n/3 parties, over a **synchronous** network: a message between
//! two parties that follow the protocol arrives within the network's time limit, privately and authentically.
//! Secrecy is computational (pseudorandom sharing). There is no statistical error, because every check here
//! is a check of a code.
//!
//! * **Online** ([`opening`]) every opened value is decoded with correction ([`code`]): a value counts as
//!   soon as 2t + 1 shares agree. So no party can make it wrong, delay it or stop it. A wrong share is
//!   outvoted, and nobody waits for a silent or slow party. If n = 3t + 1 and one party is silent, the
//!   others' shares detect a wrong one but correct none: correction is off ([`Faults`]).
//! * **Ahead** ([`triples`], [`products`]) products are opened as sharings of degree 2t, where n shares
//!   detect wrong ones. What was made is used only after all parties have said by broadcast ([`agreement`])
//!   that they found nothing wrong. If any party has not, the material is thrown away and made again with
//!   shares that are broadcast, so that all parties see the same. Wrong shares then convict their senders
//!   before all parties ([`conviction`]), and the others go on without them. A party that is only silent or
//!   late ends the making of material, because that takes all parties that are not convicted. Material does
//!   not depend on any input.
//! * **Dealt sharings** ([`dealt`], [`dealt_triples`]) are checked by a hyper-invertible matrix
//!   ([`hyper_invertible`]), under the same verdict. Dealing is private. So a fault may come down to two
//!   parties that contradict each other ([`dispute`]). That ends the making of material, with an error that
//!   names the two.
//! * **Elements** ([`elements`]) have their own triples. With a stock these are made ahead. Without one, all
//!   parties make them when they are needed, when inputs are already known. The triples do not depend on
//!   inputs, but a silent party stops the evaluation there.
//! * **Inputs** ([`input`]): the owner learns a mask that nobody else knows, and broadcasts its input under
//!   that mask. So every input is a sharing of degree t by construction, or there is no input, and then all
//!   parties know that its owner gave none.
//!
//! # Differences from the papers
//! Triples come with all linear images of their product (`opening.rs`); the papers' bit decomposition needs
//! one opening for each. Shares are accepted as soon as they agree, and not only when all have arrived.

mod agreement;
pub(super) mod code;
mod config;
mod conviction;
mod dealt;
mod dealt_triples;
mod dispute;
mod elements;
mod hyper_invertible;
mod input;
mod opening;
mod preprocessing;
mod products;
mod service;
#[cfg(test)]
mod tests;
mod triples;

use std::sync::Arc;

use polyclave_cipher::{Cells, Compiled};
use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::arithmetic::Arithmetic;
use super::demand::Demand;
use super::opening::{Opened, Opening};
use super::security::{AdversaryModel, Image};
use super::setup::{Setup, Structure};
use super::{Batch, Shamir};
use crate::interface::net::{Gathered, Net, Patience};
use crate::interface::protocol::Faults;
use crate::interface::release::Checked;
use crate::interface::service::Element;
use crate::interface::session::{Stream, random_bytes};
use crate::interface::stock::Stock;
use crate::interface::tally::Cost;
use crate::pool::Shares;
use crate::{Error, Party, PartySet, Result};
pub(crate) use agreement::Broadcast;
pub(crate) use code::{Symbol, decode};
pub use config::ShamirActiveConfig;
use dealt_triples::DealtTriples;
pub use preprocessing::Preprocessing;
use triples::Triples;

/// How many of a network's time limits a party waits for a peer, depending on the phase.
///
/// Verdicts and openings must not give up an honest party because it waited for a cheater. Ahead, each round
/// needs a message of every party. So when this party has all messages, no other party is behind by more than
/// the time that it may wait itself in that round: [`AHEAD`] and the time for the largest message. That is
/// [`Active::behind`]. Each round of a broadcast waits one limit longer than that. If a party may have waited
/// for a cheater in that round, parties may be behind by as much from then on. Online nobody waits for a
/// cheater, except for one that owns an input and can end the evaluation anyway. So a party that is waited
/// for online is behind by no more than at the last verdict.
///
/// Ahead, a cheater can answer one party late and the others in time, so that the others give that party up.
/// This only ends the making of material, as silence would. So a party that is named as missing there may be
/// innocent.
mod patience {
    /// Ahead: what all must give.
    pub(super) const AHEAD: u32 = 1;
    /// Online, at least: what the others' shares do not settle, and inputs.
    pub(super) const ONLINE: u32 = 8;
}

/// A party among some that may cheat.
pub struct Active {
    /// Parties whose shares were wrong: this party knows it.
    outvoted: PartySet,
    /// Peers that fell silent.
    lost: PartySet,
    /// For so long a party that follows the protocol may still have been waiting for a cheater: see
    /// [`patience`].
    behind: Patience,
    /// Parties that all know to have cheated: without them from then on.
    convicted: PartySet,
    /// Whether shares of products are broadcast: after the first fault.
    broadcasts: bool,
    /// What is wrong with the material that is being made.
    spoiled: Option<Spoiled>,
    /// How triples are made.
    preprocessing: Preprocessing,
    /// What this party deals: drawn from its operating system.
    own_randomness: AesPrg,
    /// For the lookups under way.
    material: Material,
    /// Where material comes from, if it was made before the session.
    stock: Option<Arc<dyn Stock>>,
}

/// Triples for products: of one of the two kinds.
#[derive(Default)]
pub struct Material {
    triples: Triples,
    dealt: DealtTriples,
}

/// Why material is thrown away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spoiled {
    /// Seen by this party; the others may not.
    Mine,
    /// Seen by all.
    Common,
}

impl AdversaryModel for Active {
    type Released = Checked<Cells>;
    type Material = Material;
    const KINDS: [u8; 2] = *b"QT";
    const CORRECTS: bool = true;
    const HOLDS_STOCK: bool = true;

    fn new(_: &Setup, _: &Stream, _: PartySet) -> Result<Active> {
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        Ok(Active {
            outvoted: PartySet::default(),
            lost: PartySet::default(),
            behind: Patience::of(0),
            convicted: PartySet::default(),
            broadcasts: false,
            spoiled: None,
            preprocessing: Preprocessing::default(),
            own_randomness: AesPrg::new(&seed, 0),
            material: Material::default(),
            stock: None,
        })
    }

    /// Every opening was decoded with correction: right whatever t parties did.
    fn released(cells: Cells) -> Checked<Cells> {
        Checked::new(cells)
    }

    fn prepare(
        protocol: &mut Shamir<Active>,
        compiled: &Compiled,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Batch<Active>> {
        let demand = Demand::of(compiled, lanes, protocol.inversion, protocol.tables);
        if let Some(stock) = protocol.arithmetic.security.stock.clone() {
            return protocol.take_batch(compiled, lanes, &demand, &*stock, net);
        }
        loop {
            let products = Material::make(&mut protocol.arithmetic, demand.products, net)?;
            let mut batch = protocol.make_batch(compiled, lanes, net)?;
            batch.products = products;
            let made = demand.products > 0 || demand.inversions > 0 || !demand.masked.is_empty();
            if !made || protocol.arithmetic.is_accepted(net)? {
                return Ok(batch);
            }
        }
    }

    fn load(&mut self, material: Material) -> Material {
        std::mem::replace(&mut self.material, material)
    }

    fn products_bring_images(&self) -> bool {
        self.preprocessing == Preprocessing::Pseudorandom
    }

    fn cost_of_products(&self, cost: &mut Cost, per_lane: usize, uniform: usize, structure: Structure) {
        cost.triples_per_lane = per_lane as f64;
        cost.triples_uniform = uniform as f64;
        let (bytes, rounds) = match self.preprocessing {
            Preprocessing::Pseudorandom => {
                (triples::bytes_of_triple(structure.sets_of_a_party()), triples::ROUNDS)
            }
            Preprocessing::HyperInvertible => (dealt_triples::BYTES, dealt_triples::ROUNDS),
        };
        cost.material_bytes_per_lane += bytes * per_lane;
        let triples = if per_lane + uniform > 0 { rounds as f64 } else { 0.0 };
        if triples + cost.preprocessing_rounds > 0.0 {
            // Besides, t + 1 for the verdict.
            cost.preprocessing_rounds += triples + (structure.threshold() + 1) as f64;
        }
    }

    fn open(
        arithmetic: &mut Arithmetic<Active>,
        shares: &[u8],
        public: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        arithmetic.open_corrected(Symbol::Byte, shares, public, net)
    }

    fn reveal_to(
        arithmetic: &mut Arithmetic<Active>,
        owner: Party,
        shares: &[u8],
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        arithmetic.reveal_corrected(owner, shares, net)
    }

    fn open_masked(
        arithmetic: &mut Arithmetic<Active>,
        openings: Vec<Opening<'_>>,
        net: &mut dyn Net,
    ) -> Result<Opened> {
        match (arithmetic.is_ahead(), arithmetic.security.preprocessing) {
            (true, _) => arithmetic.open_ahead(openings, net),
            (_, Preprocessing::Pseudorandom) => arithmetic.open_with_triples(openings, net),
            (_, Preprocessing::HyperInvertible) => arithmetic.open_with_dealt(openings, net),
        }
    }

    fn multiply(
        arithmetic: &mut Arithmetic<Active>,
        products: &[(&[u8], &[u8])],
        net: &mut dyn Net,
    ) -> Result<Vec<Shares>> {
        if arithmetic.is_ahead() || arithmetic.security.preprocessing == Preprocessing::Pseudorandom {
            return arithmetic.multiply_by_opening(products, net);
        }
        let products: Vec<_> = products.iter().map(|(x, y)| (*x, *y, None)).collect();
        arithmetic.multiply_with_dealt(&products, net)
    }

    fn share_own(
        arithmetic: &mut Arithmetic<Active>,
        cells: &Cells,
        images: &[Image<'_>],
        dst: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        arithmetic.share_by_broadcast(arithmetic.me, Some(cells.rows()), cells.lanes(), images, dst, net)
    }

    fn receive_share(
        arithmetic: &mut Arithmetic<Active>,
        from: Party,
        (count, lanes): (usize, usize),
        images: &[Image<'_>],
        dst: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        arithmetic.receive_by_broadcast(from, count, lanes, images, dst, net)
    }

    /// The sharing was drawn for this client, which may know all of it: every value that the parties open
    /// from then on has a fresh mask on its whole polynomial.
    fn hand_out_mask(_: &mut Arithmetic<Active>, _: &mut [u8]) {}

    fn hand_out(arithmetic: &mut Arithmetic<Active>, message: &mut [u8], net: &mut dyn Net) -> Result<()> {
        arithmetic.share_afresh(message, net)
    }

    fn publish(
        arithmetic: &mut Arithmetic<Active>,
        message: &[u8],
        net: &mut dyn Net,
    ) -> Result<Vec<Vec<u8>>> {
        let lens = vec![message.len(); arithmetic.structure.parties()];
        let heard = arithmetic.broadcast(&lens, message, net)?;
        Ok(heard.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn outvote(arithmetic: &mut Arithmetic<Active>, parties: PartySet) {
        arithmetic.security.outvoted = arithmetic.security.outvoted.and(parties);
    }

    fn faults(arithmetic: &Arithmetic<Active>) -> Faults {
        let Active { outvoted, lost, convicted, .. } = arithmetic.security;
        Faults { outvoted: outvoted.and(convicted), silent: lost, ..Faults::default() }
    }

    fn combine(structure: Structure, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        service::combine(Symbol::Byte, structure, serving, messages)
    }

    fn combine_elements(structure: Structure, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        let values = service::combine(Symbol::Element, structure, serving, messages)?;
        Ok(values.as_chunks().0.to_vec())
    }
}

impl Material {
    /// Makes the material for `count` products.
    fn make(arithmetic: &mut Arithmetic<Active>, count: usize, net: &mut dyn Net) -> Result<Material> {
        let mut material = Material::default();
        match arithmetic.security.preprocessing {
            Preprocessing::Pseudorandom => material.triples = Triples::make(arithmetic, count, net)?,
            Preprocessing::HyperInvertible => material.dealt = DealtTriples::make(arithmetic, count, net)?,
        }
        Ok(material)
    }
}

impl Arithmetic<Active> {
    /// The parties that may still take part: all that serve, except those that all parties know to have
    /// cheated.
    fn partners(&self) -> PartySet {
        self.serving.without(self.security.convicted)
    }

    /// Refuses to make material unless all parties take part that were not convicted. If c were convicted,
    /// n - c shares of degree 2t detect the t - c wrong ones that are still possible.
    fn check_makers(&self) -> Result<()> {
        let needed = self.partners().len().max(self.structure.parties() - self.structure.threshold());
        let there = self.partners().without(self.security.lost);
        if there.len() < needed {
            return Err(Error::Missing { there, needed, purpose: "make material" });
        }
        Ok(())
    }

    /// How long an opening waits.
    fn online_patience(&self) -> Patience {
        let behind = self.security.behind;
        Patience { limits: patience::ONLINE.max(behind.limits + 1), ..behind }
    }

    /// To be called after a round ahead whose messages had `bytes` bytes at most.
    fn heard_ahead(&mut self, gathered: Gathered, bytes: usize) -> Result<()> {
        self.security.behind = Patience { limits: patience::AHEAD, bytes: bytes as u64 };
        self.heard_of(gathered);
        self.check_makers()
    }

    /// Whether all parties found the material right that was made since the last call. One broadcast.
    fn is_accepted(&mut self, net: &mut dyn Net) -> Result<bool> {
        let fault = self.security.spoiled.take();
        if self.security.broadcasts {
            // All have seen the same.
            return Ok(fault.is_none());
        }
        let complaint = [u8::from(fault.is_some())];
        let complaints = self.broadcast(&vec![1; self.structure.parties()], &complaint, net)?;
        let silent = self.partners().iter().find(|p| complaints[p.index()].is_none());
        if let Some(silent) = silent {
            let there = self.partners().without([silent].into_iter().collect());
            return Err(Error::Missing { there, needed: self.partners().len(), purpose: "make material" });
        }
        let accepted = complaints.iter().flatten().all(|complaint| complaint == &[0]);
        self.security.broadcasts |= !accepted;
        Ok(accepted)
    }

    /// All parties broadcast a message. Returns the messages by party, the same at all of them.
    fn broadcast(&mut self, lens: &[usize], mine: &[u8], net: &mut dyn Net) -> Result<Vec<Option<Vec<u8>>>> {
        let lens: Vec<usize> = Party::all(lens.len())
            .zip(lens)
            .map(|(p, len)| if self.partners().contains(p) { *len } else { 0 })
            .collect();
        let members = self.partners();
        let threshold = self.structure.threshold();
        let behind = match self.is_ahead() {
            true => self.security.behind,
            false => Patience { limits: self.online_patience().limits - 1, ..self.security.behind },
        };
        let broadcast = Broadcast { members, threshold, lens: &lens, behind };
        let heard = broadcast.run(mine, net)?;
        if self.is_ahead() {
            self.security.behind = heard.behind;
        }
        self.counts().rounds += heard.rounds;
        self.security.lost = self.security.lost.and(heard.lost);
        Ok(heard.messages)
    }
}
