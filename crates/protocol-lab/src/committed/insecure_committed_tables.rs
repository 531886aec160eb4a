//! A dealer of scrambled tables and of commitments to them: **either party could compute both parties'
//! tables, masks and keys**.
//!
//! F_MiniMac^pre of Damgard et al. 2016, figure 9, with the tables of figure 3: what
//! [`crate::dealers::insecure_tables`] deals, and each party's table string as
//! [`crate::minimac::insecure_minimac`] commits it. One MiniMac key for each stream of a session.

use polyclave_protocol::net::Net;
use polyclave_protocol::pool::Pool;
use polyclave_protocol::tally::Counts;
use polyclave_protocol::tinyot::Key;
use polyclave_protocol::tinytable::{Commitments, Macs, Made, Maker, Plan, TableDealer};
use polyclave_protocol::{Party, Result};

use super::{CommittedTables, Strings, table_string};
use crate::dealers::insecure_tables::{InsecureTables, table_key};
use crate::dealers::{InsecureDealing, NAME, seed};
use crate::minimac::insecure_minimac::InsecureMiniMac;
use crate::minimac::{Code, Committed};

impl TableDealer for InsecureDealing {
    fn name(&self) -> &'static str {
        NAME
    }

    fn agree_on_seed(&self, net: &mut dyn Net) -> Result<[u8; 32]> {
        seed(net)
    }

    fn key(&self, seed: &[u8; 32], me: Party) -> Key {
        table_key(seed, me)
    }

    fn dealt(
        &self,
        macs: Macs,
        seed: &[u8; 32],
        label: &[u8],
        me: Party,
    ) -> (Box<dyn Maker>, Option<Box<dyn Commitments>>) {
        if macs != Macs::Minimac {
            return (Box::new(InsecureTables::new(seed, label, me)), None);
        }
        let dealer = InsecureCommittedTables::new(seed, label, me);
        let commitments = CommittedTables::new(dealer.strings.key(), label, dealer.made.clone());
        (Box::new(dealer), Some(Box::new(commitments)))
    }
}

/// The dealer's side of one stream of a session, as either party runs it.
struct InsecureCommittedTables {
    me: Party,
    /// Batches so far.
    dealt: u64,
    made: Strings,
    tables: InsecureTables,
    strings: InsecureMiniMac,
}

impl InsecureCommittedTables {
    /// The dealer of a seed that both parties know, for one stream.
    fn new(seed: &[u8; 32], stream: &[u8], me: Party) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 insecure committed tables");
        let of_stream = hasher.update(seed).update(stream).finalize();
        InsecureCommittedTables {
            me,
            dealt: 0,
            made: Strings::default(),
            tables: InsecureTables::new(seed, stream, me),
            strings: InsecureMiniMac::new(of_stream.as_bytes(), Code::STANDARD, me),
        }
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
        let committed_bytes = committed.iter().map(Committed::bytes).sum();
        self.dealt += 1;
        self.made.lock().insert(self.dealt, committed);
        Ok(Made { number: self.dealt, committed_bytes, ..made })
    }
}
