//! Payment commands that count as failed before they are computed, and how many of them may fail.
//!
//! Each node lets so many commands of an hour fail that all nodes together do not exceed the limit: as with
//! the budgets of keys, every request is served by at least a quorum. A standby pair counts each command
//! twice, for the reason that it charges blocks twice ([`super::service`]).

use polyclave_api::{KeyInfo, Refusal};

use crate::clock::now;
use crate::computation::modes::pay::Attempted;
use crate::error::of_store;
use crate::requests::service::{CHARGED_IN_STANDBY, Service};

impl Service {
    /// Counts commands under a key as failed. The mark of this change reaches the other nodes with that of
    /// the blocks that are paid next.
    pub(crate) fn attempt(&self, info: &KeyInfo, commands: u64) -> Result<Attempted, Refusal> {
        let (of_all, each) = match &self.of_all {
            None => (self, 1),
            Some(all) => (&*all.service, CHARGED_IN_STANDBY),
        };
        let limit = of_all.keys.own_part(of_all.failed_payments_an_hour);
        let attempts = of_all.store.attempt((info.id, info.account), commands * each, limit, now());
        Ok(Attempted::new(attempts.map_err(of_store)?, each))
    }
}
