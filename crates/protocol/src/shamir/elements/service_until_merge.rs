//! MERGE: replaced by shamir/service.rs. What tests of elements and of `ghash` need of the service, and nothing else.

use std::ops::Range;

use polyclave_cipher::CompiledPort;
use zeroize::Zeroizing;

use super::super::{Setup, Shamir, ShamirScheme, Shared};
use super::{Elements, combine_elements};
use crate::net::Net;
use crate::service::{Element, ServiceProtocol, ServiceScheme};
use crate::{Party, PartySet, Result};

impl ServiceScheme for ShamirScheme {
    fn least_servers(&self) -> usize {
        unimplemented!()
    }
    fn save_setup(&self, _: &Setup) -> Zeroizing<Vec<u8>> {
        unimplemented!()
    }
    fn restore_setup(&self, _: Party, _: &[u8]) -> Result<Setup> {
        unimplemented!()
    }
    fn combine(&self, _: PartySet, _: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        unimplemented!()
    }
    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        combine_elements(serving, messages)
    }
}

impl ServiceProtocol for Shamir {
    type Mask = ();
    type Elements = Elements;

    fn save(&self, _: &Shared) -> Zeroizing<Vec<u8>> {
        unimplemented!()
    }
    fn restore(&self, _: &[u8]) -> Result<Shared> {
        unimplemented!()
    }
    fn lanes(&self, _: &Shared, _: Range<usize>) -> Shared {
        unimplemented!()
    }
    fn mask_input(&mut self, _: usize) -> Result<((), Vec<u8>)> {
        unimplemented!()
    }
    fn mask_blind(&mut self) -> Result<(Elements, Vec<u8>)> {
        let blind = self.arithmetic.random_elements(1);
        let message = self.arithmetic.reveal_elements(&blind);
        Ok((blind, message))
    }
    fn open_mask_check(&mut self, _: &(), blind: Elements, _: Element, net: &mut dyn Net) -> Result<Element> {
        Ok(self.arithmetic.open_elements(&blind, net)?[0])
    }
    fn unmask(&mut self, _: &(), _: usize, _: &[u8], _: &CompiledPort) -> Result<Shared> {
        unimplemented!()
    }
    fn reveal_to_client(&mut self, _: &Shared, _: &mut dyn Net) -> Result<Vec<u8>> {
        unimplemented!()
    }
    fn elements(&mut self, blocks: &Shared, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.elements_of_bytes(&blocks.rows[..16 * blocks.lanes], blocks.lanes, net)
    }
    fn count(&self, elements: &Elements) -> usize {
        elements.count()
    }
    fn part(&self, elements: &Elements, range: Range<usize>) -> Elements {
        elements.part(range)
    }
    fn join_elements(&self, parts: &[&Elements]) -> Elements {
        Elements::join(parts)
    }
    fn multiply_elements(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.multiply_elements(a, b, net)
    }
    fn inner_product(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.inner_product(a, b, net)
    }
    fn weighted_sums(&self, weights: &[Element], elements: &Elements) -> Elements {
        elements.weighted_sums(weights)
    }
    fn add_elements(&self, a: &Elements, b: &Elements) -> Elements {
        a.add(b)
    }
    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements {
        a.add_public(public)
    }
    fn is_zero(&mut self, element: &Elements, net: &mut dyn Net) -> Result<bool> {
        self.arithmetic.element_is_zero(element, net)
    }
    fn reveal_elements(&mut self, elements: &Elements, _: &mut dyn Net) -> Result<Vec<u8>> {
        Ok(self.arithmetic.reveal_elements(elements))
    }
    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        elements.save()
    }
    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        Elements::restore(bytes)
    }
}
