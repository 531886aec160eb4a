//! Replicated sharing for long-lived nodes: `client.rs`, `elements.rs`, `refresh.rs` and `storage.rs` under
//! the names of [`crate::interface::service`]. All three nodes serve. Nothing has to be made ahead, so no
//! request runs out of material.

use polyclave_cipher::{Compiled, CompiledPort};
use zeroize::Zeroizing;

use super::config::Named;
use super::lookup::bytes_per_lane;
use super::refresh::refresh;
use super::ring::{next, previous};
use super::security::AdversaryModel;
use super::storage::{restore_elements, save_elements};
use super::{Mask, PARTIES, Replicated, ReplicatedConfig, Setup, Shared, client};
use crate::interface::dealt::HeldSeeds;
use crate::interface::net::Net;
use crate::interface::protocol::Faults;
use crate::interface::service::{
    Element, ElementArithmetic, Elements, Refreshed, ServiceConfig, ServiceSession, Stored,
};
use crate::interface::session::Stream;
use crate::{Party, PartySet, Result};

impl<A: AdversaryModel + Named + Sync> ServiceConfig for ReplicatedConfig<A> {
    fn quorum(&self) -> usize {
        PARTIES
    }

    fn save_setup(&self, setup: &Setup) -> Zeroizing<Vec<u8>> {
        setup.save::<A>()
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup> {
        Setup::restore::<A>(me, bytes)
    }

    /// All of it is stored. After a failed check it is of no use any more.
    fn renew(&self, setup: &Setup, _: &mut dyn Net) -> Result<Setup> {
        setup.retirement.refuse_retired()?;
        Ok(setup.clone())
    }

    /// Neither setup hides anything of it, since the zeros come from a fresh seed (`refresh.rs`).
    fn refresh(
        &self,
        _: &Setup,
        new: &Setup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        Ok(Refreshed { stored: refresh::<A>(new, &stream, stored, net)?, faults: Faults::default() })
    }

    /// Component j is the first share of P_j, and the second one of the party before it.
    fn components(&self) -> Vec<PartySet> {
        Party::all(PARTIES).map(|first| [first, previous(first)].into_iter().collect()).collect()
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        client::combine::<A>(serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        client::combine_elements::<A>(serving, messages)
    }
}

impl<A: AdversaryModel + Named> ServiceSession for Replicated<A> {
    type Mask = Mask;

    /// Products that wait for a proof come on top: they are proven when there are many, regardless of the
    /// memory of a lane.
    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        (bytes / bytes_per_lane::<2>(compiled, &self.programs).max(1)).max(1)
    }

    fn can_join(&self, a: &Shared, b: &Shared) -> bool {
        (a.bits, a.count) == (b.bits, b.count)
    }

    fn join_lanes(&self, parts: &[&Shared]) -> Shared {
        Shared::join(parts)
    }

    fn save(&self, value: &Shared) -> Zeroizing<Vec<u8>> {
        value.save::<A>(self.ring.me)
    }

    fn restore(&self, bytes: &[u8]) -> Result<Shared> {
        Shared::restore::<A>(bytes, self.ring.me)
    }

    fn mask_input(&mut self, len: usize, _: &mut dyn Net) -> Result<(Mask, Vec<u8>)> {
        self.draw_mask(len)
    }

    fn dealt_mask(&mut self, seeds: &HeldSeeds, len: usize) -> Result<Mask> {
        let me = self.ring.me;
        let shares = [seeds.component(me.index(), len)?, seeds.component(next(me).index(), len)?];
        Ok(Mask { shares, len })
    }

    fn mask_elements(&self, mask: &Mask) -> Elements {
        mask.elements()
    }

    fn unmask(&mut self, mask: &Mask, at: usize, masked: &[u8], port: &CompiledPort) -> Result<Shared> {
        client::share_masked(mask, at, masked, port, self.ring.share_zero())
    }

    fn block_bytes(&self, value: &Shared) -> usize {
        value.block_bytes()
    }

    fn bytes_for_client(&mut self, value: &Shared, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.value_for_client(value, bytes, net)
    }

    /// Local: no round.
    fn elements(&mut self, blocks: &Shared, _: &mut dyn Net) -> Result<Elements> {
        self.model.refuse_foreign(&blocks.unchecked)?;
        blocks.elements()
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        self
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        save_elements::<A>(elements, self.ring.me)
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        restore_elements::<A>(bytes, self.ring.me)
    }
}
