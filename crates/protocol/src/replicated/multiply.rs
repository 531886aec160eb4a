//! How three parties multiply: all products of a round are one message to one neighbour.

use polyclave_kernels::planes::{Terms, add_products};

use super::Pair;
use super::lookup::{Multiplier, Round, Vectors};
use super::ring::Ring;
use super::security::AdversaryModel;
use crate::Result;
use crate::interface::net::Net;
use crate::pool::{Pool, Shares};

/// A party's place in the ring, and its means against an adversary.
pub(super) struct Neighbours<'a, A> {
    pub(super) ring: &'a mut Ring,
    pub(super) model: &'a mut A,
}

impl<A: AdversaryModel> Multiplier<2> for Neighbours<'_, A> {
    fn share_zero(&self) -> Option<usize> {
        self.ring.share_zero()
    }

    fn pool(&self) -> &Pool {
        &self.ring.pool
    }

    fn multiply(&mut self, rounds: &[Round<'_, 2>], net: &mut dyn Net) -> Result<Pair<Shares>> {
        let Neighbours { ring, model } = self;
        ring.counts().multiplications += rounds.iter().map(|round| round.count() as u64).sum::<u64>();
        let mut own = model.zero_share(rounds.iter().map(Round::len).sum(), ring);
        let mut left = &mut own[..];
        for round in rounds {
            let (part, rest) = left.split_at_mut(round.len());
            round.add_to(part);
            left = rest;
        }
        let next = ring.pass_back(&own, net)?;
        model.remember(rounds, &next, ring);
        Ok([own, next])
    }

    fn relieve(&mut self, net: &mut dyn Net) -> Result<()> {
        self.model.relieve(self.ring, net)
    }
}

impl Round<'_, 2> {
    /// Adds what this party contributes to the products.
    fn add_to(&self, mut sum: &mut [u8]) {
        for Vectors { x, y, len } in &self.vectors {
            let (part, rest) = sum.split_at_mut(self.factors.planes()[0] * len);
            add_products(self.factors, Terms::Contributed, part, *x, *y);
            sum = rest;
        }
    }
}
