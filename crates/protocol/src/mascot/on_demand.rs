//! MASCOT that is set up when material is first asked for: a session that asks for none pays for none.

use polyclave_field::MacField;

use super::Mascot;
use crate::net::Net;
use crate::spdz::{Authenticated, MacKey, OwnedBits, Source, Triples};
use crate::{Party, Result};

/// Material for one stream of a session.
pub struct OnDemand<F: MacField> {
    label: Vec<u8>,
    key: MacKey<F>,
    expansion: usize,
    made: Option<Mascot<F>>,
}

impl<F: MacField> OnDemand<F> {
    /// What [`Mascot::set_up`] will be given.
    pub fn new(label: &[u8], key: &MacKey<F>, expansion: usize) -> Self {
        OnDemand { label: label.to_vec(), key: key.clone(), expansion, made: None }
    }

    fn mascot(&mut self, net: &mut dyn Net) -> Result<&mut Mascot<F>> {
        let mascot = match self.made.take() {
            Some(mascot) => mascot,
            None => Mascot::set_up(&self.label, &self.key, self.expansion, net)?,
        };
        Ok(self.made.insert(mascot))
    }
}

impl<F: MacField> Source<F> for OnDemand<F> {
    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.mascot(net)?.triples(count, net)
    }

    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Authenticated<F>> {
        self.mascot(net)?.bits(count, net)
    }

    fn bits_of(&mut self, owner: Party, count: usize, net: &mut dyn Net) -> Result<OwnedBits<F>> {
        self.mascot(net)?.bits_of(owner, count, net)
    }

    fn bit_triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.mascot(net)?.bit_triples(count, net)
    }
}
