//! Authenticated sharing as long-lived nodes offer it: `elements.rs`, `client.rs` and `storage.rs` under the names of
//! [`crate::service`]. MACs are in GF(2^64), since elements of GF(2^128) have coordinates over it.

use std::ops::Range;
use std::sync::Arc;

use polyclave_cipher::{Cells, CompiledPort};
use polyclave_field::Gf2_64;
use zeroize::Zeroizing;

use super::{Authenticated, Elements, Mask, Rotation, Setup, Shared, Spdz, SpdzConfig, client, stocked};
use crate::net::Net;
use crate::protocol::{ProtocolConfig, Session};
use crate::service::{Element, ServiceConfig, ServiceSession, Stored};
use crate::session::Stream;
use crate::stock::{Kind, Stock};
use crate::tally::Phase;
use crate::{Error, Party, PartySet, Result};

impl ServiceConfig for SpdzConfig<Gf2_64> {
    fn quorum(&self) -> usize {
        self.parties()
    }

    fn renews(&self) -> bool {
        true
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
        setup.renew(self.preprocessing, self.wants_bit_triples(), net)
    }

    fn kinds(&self) -> Vec<Kind> {
        stocked::kinds::<Gf2_64>()
    }

    fn make_material(
        &self,
        setup: &Setup<Gf2_64>,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
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

    fn carry_over(
        &self,
        old: &Setup<Gf2_64>,
        new: &Setup<Gf2_64>,
        stream: Stream,
        stored: Stored<'_>,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let mut rotation = Rotation::new(old, new, self.preprocessing, &stream)?;
        match stored {
            Stored::Value(bytes) => {
                let value = Shared::restore(bytes, old.key())?;
                Ok(rotation.carry_cells(&value, net)?.save(new.key()))
            }
            Stored::Elements(bytes) => {
                let [x0, x1] = Elements::restore(bytes, old.key())?.coordinates();
                let carried = rotation.carry_elements(&Authenticated::join(&[&x0, &x1]), net)?;
                let [x0, x1] = [0..x0.len(), x0.len()..2 * x0.len()].map(|range| carried.part(range));
                Ok(Elements::of_coordinates(&x0, &x1).save(new.key()))
            }
        }
    }
}

impl ServiceSession for Spdz<Gf2_64> {
    type Mask = Mask;
    type Elements = Elements;

    fn join_lanes(&self, parts: &[&Shared<Gf2_64>]) -> Shared<Gf2_64> {
        Shared::join(parts)
    }

    fn save(&self, value: &Shared<Gf2_64>) -> Zeroizing<Vec<u8>> {
        value.save(&self.arithmetic.key)
    }

    fn restore(&self, bytes: &[u8]) -> Result<Shared<Gf2_64>> {
        Shared::restore(bytes, &self.arithmetic.key)
    }

    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(Mask, Vec<u8>)> {
        self.arithmetic.mask_input(len, net)
    }

    fn mask_blind(&mut self, net: &mut dyn Net) -> Result<(Elements, Vec<u8>)> {
        let blind = self.arithmetic.random_elements(1, net)?;
        let message = self.arithmetic.reveal_elements(&blind, net)?;
        Ok((blind, message))
    }

    fn open_mask_check(
        &mut self,
        mask: &Mask,
        blind: Elements,
        chi: Element,
        net: &mut dyn Net,
    ) -> Result<Element> {
        self.arithmetic.open_mask_check(mask, &blind, chi, net)
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

    fn reveal_to_client(&mut self, value: &Shared<Gf2_64>, net: &mut dyn Net) -> Result<Vec<u8>> {
        let bytes = Cells::block_bytes(value.count, value.bits) * value.lanes;
        self.reveal_bytes_to_client(value, bytes, net)
    }

    fn reveal_bytes_to_client(
        &mut self,
        value: &Shared<Gf2_64>,
        bytes: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.enter(Phase::Output);
        self.arithmetic.reveal_bytes(value, bytes, net)
    }

    fn elements(&mut self, blocks: &Shared<Gf2_64>, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.elements_of_blocks(blocks, net)
    }

    fn count(&self, elements: &Elements) -> usize {
        elements.count()
    }

    fn part(&self, elements: &Elements, range: Range<usize>) -> Elements {
        elements.part(range)
    }

    fn join_elements(&self, parts: &[&Elements]) -> Elements {
        self.resting_on(Elements::join(parts), parts)
    }

    fn multiply_elements(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.multiply_elements(a, b, net)
    }

    fn inner_product(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.inner_product(a, b, net)
    }

    fn weighted_sums(&self, weights: &[Element], elements: &Elements) -> Elements {
        let sums = elements.weighted_sums(weights, weights.len() / elements.count());
        self.resting_on(sums, &[elements])
    }

    fn add_elements(&self, a: &Elements, b: &Elements) -> Elements {
        let mut sum = a.clone();
        sum.add(b);
        self.resting_on(sum, &[a, b])
    }

    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements {
        let mut sum = a.clone();
        sum.add_public(public, &self.arithmetic.key);
        sum
    }

    fn is_zero(&mut self, element: &Elements, net: &mut dyn Net) -> Result<bool> {
        if element.count() != 1 {
            return Err(Error::misuse("one element is compared with zero at a time"));
        }
        self.arithmetic.element_is_zero(element, net)
    }

    fn reveal_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.enter(Phase::Output);
        self.arithmetic.reveal_elements(elements, net)
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        elements.save(&self.arithmetic.key)
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        Elements::restore(bytes, &self.arithmetic.key)
    }
}

impl Spdz<Gf2_64> {
    /// Elements that were made of others.
    fn resting_on(&self, mut made: Elements, of: &[&Elements]) -> Elements {
        made.unchecked = self.arithmetic.rests_on(of.iter().map(|of| &of.unchecked));
        made
    }
}
