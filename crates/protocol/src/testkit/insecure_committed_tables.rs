//! A dealer of scrambled tables and of commitments to them: **either party could compute both parties' tables, masks and keys**.
//!
//! F_MiniMac^pre of Damgard et al. 2016, figure 9, with the tables of figure 3: what [`super::insecure_tables`] deals, and each party's
//! table string as [`super::insecure_minimac`] commits it. One MiniMac key for each stream of a session.

use super::insecure_minimac::InsecureMiniMac;
use super::insecure_tables::InsecureTables;
use crate::interface::net::Net;
use crate::interface::tally::Counts;
use crate::minimac::{Code, Committed, KeyShare};
use crate::pool::Pool;
use crate::tinytable::{Made, Maker, OfBatch, Plan, table_string};
use crate::{Party, Result};

/// The dealer's side of one stream of a session, as either party runs it.
pub struct InsecureCommittedTables {
    me: Party,
    tables: InsecureTables,
    strings: InsecureMiniMac,
}

impl InsecureCommittedTables {
    /// The dealer of a seed that both parties know, for one stream.
    pub fn new(seed: &[u8; 32], stream: &[u8], me: Party) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 insecure committed tables");
        let of_stream = hasher.update(seed).update(stream).finalize();
        InsecureCommittedTables {
            me,
            tables: InsecureTables::new(seed, stream, me),
            strings: InsecureMiniMac::new(of_stream.as_bytes(), Code::STANDARD, me),
        }
    }

    /// This party's share of the key of all commitments.
    pub fn key(&self) -> KeyShare {
        self.strings.key()
    }

    /// Commits both parties' strings; the first party's string comes first.
    fn commit(&mut self, mine: &[u8]) -> [Committed; 2] {
        [0, 1].map(|owner| match self.me == Party(owner) {
            true => self.strings.commit(mine),
            false => self.strings.commit_peer(mine.len()),
        })
    }
}

impl Maker for InsecureCommittedTables {
    fn make(&mut self, plan: &Plan<'_>, pool: &Pool, counts: &mut Counts, net: &mut dyn Net) -> Result<Made> {
        let made = self.tables.make(plan, pool, counts, net)?;
        let committed = self.commit(&table_string(plan, &made));
        Ok(Made { committed: OfBatch::new(committed), ..made })
    }
}
