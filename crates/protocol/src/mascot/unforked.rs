//! A source that forks a setup when it first makes something, and not before. A session with material from a
//! stock usually makes nothing and needs only sharings of zero. A fork derives a seed for each leaf of each
//! tree of transfers, some thousands of them.
//!
//! The sharings of zero come from a label of their own. So those of the fork, which has its own, are other
//! ones.

use std::sync::Arc;

use polyclave_field::MacField;

use super::Mascot;
use super::authenticate::Zeros;
use crate::authenticated::{Authenticated, Inverses, OwnedBits, Source, Triples, Vectors};
use crate::interface::net::Net;
use crate::pool::Pool;
use crate::{Party, Result};

/// What [`Mascot::fork`] makes, made at first use.
pub struct Unforked<F: MacField> {
    root: Arc<Mascot<F>>,
    label: Vec<u8>,
    zeros: Zeros,
    forked: Option<Box<Mascot<F>>>,
}

impl<F: MacField> Unforked<F> {
    /// For a label that is used once.
    pub fn new(root: Arc<Mascot<F>>, label: &[u8]) -> Self {
        let zeros = root.zeros.fork(&[label, b" zeros of a session"].concat());
        Unforked { root, label: label.to_vec(), zeros, forked: None }
    }

    fn forked(&mut self) -> &mut Mascot<F> {
        let (root, label) = (&self.root, &self.label);
        self.forked.get_or_insert_with(|| Box::new(root.fork(label)))
    }
}

impl<F: MacField> Source<F> for Unforked<F> {
    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.forked().triples(count, net)
    }

    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Authenticated<F>> {
        self.forked().bits(count, net)
    }

    fn bits_of(&mut self, owner: Party, count: usize, net: &mut dyn Net) -> Result<OwnedBits<F>> {
        self.forked().bits_of(owner, count, net)
    }

    fn bit_triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.forked().bit_triples(count, net)
    }

    fn unit_vectors(
        &mut self,
        in_bits: u8,
        count: usize,
        pool: &Pool,
        net: &mut dyn Net,
    ) -> Result<Vectors<F>> {
        self.forked().unit_vectors(in_bits, count, pool, net)
    }

    fn inverses(&mut self, count: usize, net: &mut dyn Net) -> Result<Inverses<F>> {
        self.forked().inverses(count, net)
    }

    fn zeros(&mut self, shares: &mut [F::Word]) {
        self.zeros.add_to::<F>(shares);
    }
}
