//! Passive protocols serve like those that [abort](super::abort), but without checks: no failure reveals
//! anything about a secret, and nothing is made ahead.

use polyclave_api::Refusal;
use polyclave_protocol::{Error, Party};

use crate::Result;
use crate::material::epoch::Epoch;
use crate::material::refresh;
use crate::material::state::Material;
use crate::material::strategy::{MaterialStrategy, Preparation};
use crate::peers::orders::Order;

/// Nothing is made ahead except the common secrets.
pub(super) struct Unchecked;

impl MaterialStrategy for Unchecked {
    fn begin(&self, _: &Material, _: [u8; 32], _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn refuse_without_epoch(&self, _: &Material) -> Result<(), Refusal> {
        Ok(())
    }

    fn judge(&self, _: &Material, _: &str, _: Option<&Epoch>, _: &Error) -> bool {
        false
    }

    fn give_up(&self, _: &Material, _: &str) {}

    fn peer_started(&self, _: &Material, _: Party, _: Option<[u8; 16]>, _: [u8; 16]) {}

    fn settle(&self, _: &Material) {}

    fn follows(&self, order: &Order) -> bool {
        matches!(order, Order::Rotate { .. })
    }

    fn next(&self, material: &Material) -> Option<Preparation> {
        refresh::is_due(material).then_some(Preparation::Refresh)
    }

    fn pauses_for_refresh(&self) -> bool {
        false
    }

    fn has_mac_key(&self) -> bool {
        false
    }
}
