//! Parties that follow the protocol: nothing is verified.

use polyclave_cipher::Cells;

use super::Setup;
use super::lookup::Round;
use super::ring::Ring;
use super::security::AdversaryModel;
use super::shared::Shared;
use crate::Result;
use crate::net::Net;
use crate::pool::Shares;
use crate::protocol::Owner;
use crate::release::Unverified;
use crate::session::Stream;

/// Against a party that only looks on.
pub struct Passive;

impl AdversaryModel for Passive {
    type Released = Unverified<Cells>;

    fn new(_: &Setup, _: &Stream) -> Passive {
        Passive
    }

    fn released(cells: Cells) -> Unverified<Cells> {
        Unverified::new(cells)
    }

    fn mark(&self, _: &mut Shared) {}

    fn refuse_foreign(&self, _: &Shared) -> Result<()> {
        Ok(())
    }

    fn compare(&mut self, _: &[&Shared], _: &mut Ring, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    fn zero_share(&mut self, len: usize, ring: &mut Ring) -> Shares {
        ring.zero_share(len)
    }

    fn remember(&mut self, _: &[Round<'_>], _: &[u8], _: &Ring) {}

    fn relieve(&mut self, _: &mut Ring, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    fn check(&mut self, _: &mut Ring, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    /// From the party before the owner.
    fn third_share(
        &mut self,
        value: &Shared,
        to: Owner,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        ring.first_to_owners(value.share(0), to, net)
    }
}
