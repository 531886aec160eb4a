//! Shared elements of GF(2^128): a placeholder until they are merged.
#![allow(unused_variables, clippy::unused_self)]

use std::ops::Range;

use zeroize::Zeroizing;

use super::arithmetic::Arithmetic;
use crate::net::Net;
use crate::service::Element;
use crate::{PartySet, Result};

/// A vector of shared elements of GF(2^128); wiped on drop.
#[derive(Clone)]
pub struct Elements;

impl Arithmetic {
    pub(super) fn random_elements(&mut self, count: usize) -> Elements {
        unimplemented!()
    }
    pub(super) fn elements_of_bytes(
        &mut self,
        rows: &[u8],
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        unimplemented!()
    }
    pub(super) fn elements_of_parts(&self, parts: &[&[u8]], count: usize) -> Elements {
        unimplemented!()
    }
    pub(super) fn multiply_elements(
        &mut self,
        a: &Elements,
        b: &Elements,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        unimplemented!()
    }
    pub(super) fn inner_product(
        &mut self,
        a: &Elements,
        b: &Elements,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        unimplemented!()
    }
    pub(super) fn open_elements(&mut self, a: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        unimplemented!()
    }
    pub(super) fn element_is_zero(&mut self, a: &Elements, net: &mut dyn Net) -> Result<bool> {
        unimplemented!()
    }
    pub(super) fn reveal_elements(&mut self, a: &Elements) -> Vec<u8> {
        unimplemented!()
    }
}

impl Elements {
    pub(super) fn count(&self) -> usize {
        unimplemented!()
    }
    pub(super) fn part(&self, range: Range<usize>) -> Elements {
        unimplemented!()
    }
    pub(super) fn join(parts: &[&Elements]) -> Elements {
        unimplemented!()
    }
    pub(super) fn weighted_sums(&self, weights: &[Element]) -> Elements {
        unimplemented!()
    }
    pub(super) fn add(&self, other: &Elements) -> Elements {
        unimplemented!()
    }
    pub(super) fn add_public(&self, public: &[Element]) -> Elements {
        unimplemented!()
    }
    pub(super) fn save(&self) -> Zeroizing<Vec<u8>> {
        unimplemented!()
    }
    pub(super) fn restore(bytes: &[u8]) -> Result<Elements> {
        unimplemented!()
    }
}

pub(super) fn combine_elements(serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
    unimplemented!()
}
