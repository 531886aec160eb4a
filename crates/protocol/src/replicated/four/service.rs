//! Sharing among four for long-lived nodes: `client.rs`, `elements.rs`, `refresh.rs` and `storage.rs` under
//! the names of [`crate::interface::service`]. Three of the nodes are enough. Nothing is made ahead, so no
//! request runs out of material.

use polyclave_cipher::{Compiled, CompiledPort};
use zeroize::Zeroizing;

use super::super::{Mask, Setup};
use super::config::ReplicatedFourConfig;
use super::refresh::refresh;
use super::{COMPONENTS, PARTIES, ReplicatedFour, Shared, storage, structure};
use crate::interface::net::Net;
use crate::interface::protocol::{ProtocolConfig, Session};
use crate::interface::service::{
    Element, ElementArithmetic, Elements, Refreshed, ServiceConfig, ServiceSession, Stored,
};
use crate::interface::session::Stream;
use crate::replicated::lookup::{bytes_per_lane, product_bits};
use crate::shamir;
use crate::{Party, PartySet, Result};

impl ServiceConfig for ReplicatedFourConfig {
    /// Any two sets of three have two nodes in common, and one of these does not cheat.
    fn quorum(&self) -> usize {
        PARTIES - 1
    }

    fn save_setup(&self, setup: &Setup) -> Zeroizing<Vec<u8>> {
        storage::save_setup(setup)
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup> {
        storage::restore_setup(me, bytes)
    }

    /// All of it is stored.
    fn renew(&self, setup: &Setup, _: &mut dyn Net) -> Result<Setup> {
        Ok(setup.clone())
    }

    fn refresh(
        &self,
        _: &Setup,
        new: &Setup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        let mut session = self.join(new, stream, PartySet::all(PARTIES))?;
        let stored = refresh(&mut session, stored, net)?;
        Ok(Refreshed { stored, faults: session.faults() })
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        shamir::combine_shares::<shamir::Active>(structure(), serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        shamir::combine_elements::<shamir::Active>(structure(), serving, messages)
    }
}

impl ServiceSession for ReplicatedFour {
    type Mask = Mask<COMPONENTS>;

    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        // The sums of all products are kept until the verdict (`transcript.rs`).
        let kept = COMPONENTS * product_bits(compiled, &self.programs).div_ceil(8);
        (bytes / (bytes_per_lane::<COMPONENTS>(compiled, &self.programs) + kept).max(1)).max(1)
    }

    fn can_join(&self, a: &Shared<COMPONENTS>, b: &Shared<COMPONENTS>) -> bool {
        (a.bits, a.count) == (b.bits, b.count)
    }

    fn join_lanes(&self, parts: &[&Shared<COMPONENTS>]) -> Shared<COMPONENTS> {
        Shared::join(parts)
    }

    fn save(&self, value: &Shared<COMPONENTS>) -> Zeroizing<Vec<u8>> {
        storage::save(value, self.me())
    }

    fn restore(&self, bytes: &[u8]) -> Result<Shared<COMPONENTS>> {
        storage::restore(bytes, self.me())
    }

    fn mask_input(&mut self, len: usize, _: &mut dyn Net) -> Result<(Mask<COMPONENTS>, Vec<u8>)> {
        Ok(self.draw_mask(len))
    }

    fn mask_elements(&self, mask: &Mask<COMPONENTS>) -> Elements {
        mask.elements()
    }

    fn unmask(
        &mut self,
        mask: &Mask<COMPONENTS>,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<Shared<COMPONENTS>> {
        self.share_masked(mask, at, masked, port)
    }

    fn block_bytes(&self, value: &Shared<COMPONENTS>) -> usize {
        value.block_bytes()
    }

    fn bytes_for_client(
        &mut self,
        value: &Shared<COMPONENTS>,
        bytes: usize,
        _: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        Ok(self.value_for_client(value, bytes))
    }

    /// Local: no round.
    fn elements(&mut self, blocks: &Shared<COMPONENTS>, _: &mut dyn Net) -> Result<Elements> {
        blocks.elements()
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        self
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        storage::save_elements(elements, self.me())
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        storage::restore_elements(bytes, self.me())
    }
}
