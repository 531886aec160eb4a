//! Authenticated sharing for long-lived nodes: `elements.rs`, `client.rs` and `storage.rs` under the names of
//! [`crate::interface::service`]. MACs are in GF(2^64), because elements of GF(2^128) have coordinates over
//! it.

use std::sync::Arc;

use polyclave_cipher::{Compiled, CompiledPort};
use polyclave_field::{Gf2_64, MacField};
use zeroize::Zeroizing;

use super::elements::{coordinates, of_coordinates};
use super::storage::{restore_elements, save_elements};
use super::{
    LookupMethod, Mask, Refresh, Setup, Shared, Spdz, SpdzConfig, client, client_masks, groups, ranges,
    stocked,
};
use crate::authenticated::Authenticated;
use crate::interface::any::AnyServiceConfig;
use crate::interface::net::Net;
use crate::interface::protocol::{Faults, ProtocolConfig, Session};
use crate::interface::service::{
    ELEMENT_BYTES, Element, ElementArithmetic, Elements, OwnMask, Refreshed, ServiceConfig, ServiceSession,
    Stored,
};
use crate::interface::session::Stream;
use crate::interface::stock::{Kind, Stock};
use crate::{GuessGuard, Party, PartySet, Result};

impl ServiceConfig for SpdzConfig<Gf2_64> {
    fn quorum(&self) -> usize {
        self.parties()
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        client::combine_bytes(self.parties(), serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        client::combine_elements(self.parties(), serving, messages)
    }

    fn save_setup(&self, setup: &Setup<Gf2_64>) -> Zeroizing<Vec<u8>> {
        setup.save()
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup<Gf2_64>> {
        Setup::restore(me, self.parties(), bytes)
    }

    fn renew(&self, setup: &Setup<Gf2_64>, net: &mut dyn Net) -> Result<Setup<Gf2_64>> {
        setup.renew(self.preprocessing, self.bits(), net)
    }

    fn has_mac_key(&self) -> bool {
        true
    }

    fn guard_guesses(&self, setup: &Setup<Gf2_64>, guard: Arc<dyn GuessGuard>) {
        setup.key().guard(guard);
    }

    fn kinds(&self, _: Party) -> Vec<Kind> {
        stocked::kinds::<Gf2_64>(self.method()).into_iter().chain([client_masks::KIND]).collect()
    }

    fn make_material(
        &self,
        setup: &Setup<Gf2_64>,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        if *kind == client_masks::KIND {
            return self.join(setup, stream, net.members())?.arithmetic.make_masks(count, net);
        }
        stocked::make_material(self, setup, stream, kind, count, net)
    }

    fn join_stocked(
        &self,
        setup: &Setup<Gf2_64>,
        stream: Stream,
        serving: PartySet,
        stock: Arc<dyn Stock>,
    ) -> Result<Spdz<Gf2_64>> {
        stocked::join_stocked(self, setup, stream, serving, stock)
    }

    /// By the tower of fields: a record for an inversion takes a small part of what a masked table takes.
    fn for_many(&self) -> Option<AnyServiceConfig> {
        let tower = self.with_method(LookupMethod::Tower);
        (self.method() == LookupMethod::MaskedTables).then(|| AnyServiceConfig::new(tower))
    }

    fn refresh(
        &self,
        old: &Setup<Gf2_64>,
        new: &Setup<Gf2_64>,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        let mut refresh = Refresh::new(old, new, self.preprocessing, &stream)?;
        let mut refreshed = vec![Zeroizing::default(); stored.len()];
        refresh_stored_elements(&mut refresh, [old, new], stored, &mut refreshed, net)?;
        let (places, values) = stored_values(stored, |bytes| Shared::restore(bytes, old.key()))?;
        for group in
            groups(&values, Shared::is_alike, |value| value.count * value.lanes * usize::from(value.bits))
        {
            let joined = Shared::join(&group.iter().map(|value| &values[*value]).collect::<Vec<_>>());
            let moved = refresh.refresh_cells(&joined, net)?;
            for (value, lanes) in group.iter().zip(ranges(group.iter().map(|value| values[*value].lanes))) {
                refreshed[places[*value]] = moved.select(&lanes.collect::<Vec<_>>()).save(new.key());
            }
        }
        Ok(Refreshed { stored: refreshed, faults: Faults::default() })
    }
}

/// The stored values that are cells, and their places among all.
pub(crate) fn stored_values<T>(
    stored: &[Stored<'_>],
    restore: impl Fn(&[u8]) -> Result<T>,
) -> Result<(Vec<usize>, Vec<T>)> {
    let mut values = (Vec::new(), Vec::new());
    for (place, stored) in stored.iter().enumerate() {
        if let Stored::Value(bytes) = stored {
            values.0.push(place);
            values.1.push(restore(bytes)?);
        }
    }
    Ok(values)
}

/// Moves those of some stored values that are elements from the first setup to the second.
pub(crate) fn refresh_stored_elements(
    refresh: &mut Refresh<Gf2_64>,
    [old, new]: [&Setup<Gf2_64>; 2],
    stored: &[Stored<'_>],
    refreshed: &mut [Zeroizing<Vec<u8>>],
    net: &mut dyn Net,
) -> Result<()> {
    let mut places = Vec::new();
    for (place, stored) in stored.iter().enumerate() {
        if let Stored::Elements(bytes) = stored {
            places.push((place, restore_elements(bytes, old.key())?));
        }
    }
    for group in groups(&places, |_, _| true, |(_, elements)| 8 * ELEMENT_BYTES * elements.count()) {
        let of_group: Vec<&Elements> = group.iter().map(|i| &places[*i].1).collect();
        let [x0, x1] = coordinates(&Elements::join(&of_group));
        let moved = refresh.refresh_elements(&Authenticated::join(&[&x0, &x1]), net)?;
        let [x0, x1] = [0..x0.len(), x0.len()..2 * x0.len()].map(|range| moved.part(range));
        let moved = of_coordinates(&x0, &x1);
        for (i, range) in group.iter().zip(ranges(of_group.iter().map(|elements| elements.count()))) {
            refreshed[places[*i].0] = save_elements(&moved.part(range), new.key());
        }
    }
    Ok(())
}

impl ServiceSession for Spdz<Gf2_64> {
    type Mask = Mask;

    /// A lane holds its material twice while that is taken out of a stock, then what it opens until the next
    /// check, and its slots.
    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        const CELL: usize = 1 + Gf2_64::BYTES;
        let cost = self.cost(compiled);
        let openings = cost.operations_per_lane as usize * CELL;
        let of_lane = 2 * cost.material_bytes_per_lane + openings + compiled.lane_slots() * CELL;
        (bytes / of_lane.max(1)).max(1)
    }

    fn can_join(&self, a: &Shared<Gf2_64>, b: &Shared<Gf2_64>) -> bool {
        a.is_alike(b)
    }

    fn join_lanes(&self, parts: &[&Shared<Gf2_64>]) -> Shared<Gf2_64> {
        Shared::join(parts)
    }

    fn save(&self, value: &Shared<Gf2_64>) -> Zeroizing<Vec<u8>> {
        value.save(&self.arithmetic.key)
    }

    fn restore(&self, bytes: &[u8]) -> Result<Shared<Gf2_64>> {
        Shared::restore(bytes, &self.arithmetic.key)
    }

    fn mask_of(&mut self, owner: Party, len: usize, net: &mut dyn Net) -> Result<Option<OwnMask<Mask>>> {
        self.arithmetic.mask_of(owner, len, net).map(Some)
    }

    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(Mask, Vec<u8>)> {
        self.arithmetic.mask_input(len, net)
    }

    fn mask_elements(&self, mask: &Mask) -> Elements {
        mask.elements()
    }

    fn unmask(
        &mut self,
        mask: &Mask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<Shared<Gf2_64>> {
        self.arithmetic.unmask(mask, at, masked, port)
    }

    fn block_bytes(&self, value: &Shared<Gf2_64>) -> usize {
        value.block_bytes()
    }

    fn bytes_for_client(
        &mut self,
        value: &Shared<Gf2_64>,
        bytes: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.arithmetic.bytes_for_client(value, bytes, net)
    }

    fn elements(&mut self, blocks: &Shared<Gf2_64>, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.elements_of_blocks(blocks, net)
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        &mut self.arithmetic
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        save_elements(elements, &self.arithmetic.key)
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        restore_elements(bytes, &self.arithmetic.key)
    }
}
