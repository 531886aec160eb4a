//! Counts the starts of a node, and of each of its workers. A boot id distinguishes each start from all
//! others.

use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};

use super::engine::{Changes, Records, Table};
use super::own_records::{of_all_workers, own as own_record};
use super::{Result, Store};

const OWN: &[u8] = b"incarnation";

/// How many starts before the current one a node can prove to be its own. A peer that has missed more of them
/// refuses the node until an operator has looked.
pub(super) const EARLIER: usize = 128;

/// One start of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The number of the first change in it ([`Mark::number`](super::Mark)): the start itself.
    pub first: u64,
    /// Drawn at random.
    pub boot: [u8; 16],
}

/// The start that a node is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Durable counter, from 1.
    pub number: u64,
    /// Drawn at random.
    pub boot: [u8; 16],
}

/// What is stored of this node's starts.
#[derive(Default, Serialize, Deserialize)]
struct Own {
    number: u64,
    /// The latest first.
    starts: Vec<Start>,
}

impl Store {
    /// Counts this start. Called once for each.
    pub fn begin_incarnation(&self) -> Result<Incarnation> {
        let mut boot = [0; 16];
        random_bytes(&mut boot)?;
        let record = self.own(OWN);
        let begun = self.change(|changes| {
            let mut own = own(changes, &record)?;
            own.number = own.number.saturating_add(1);
            own.starts.insert(0, Start { first: changes.head().next_number(), boot });
            own.starts.truncate(1 + EARLIER);
            changes.put(Table::Meta, &record, &own)?;
            self.forget_claims(changes)?;
            Ok(Incarnation { number: own.number, boot })
        })?;
        self.worker.begin(boot);
        Ok(begun)
    }
}

/// The starts of a worker that are remembered, the latest first.
pub(super) fn starts(records: &impl Records, worker: u16) -> Result<Vec<Start>> {
    Ok(own(records, &own_record(worker, OWN))?.starts)
}

/// Forgets the starts of all workers. Their number remains.
pub(super) fn forget_starts(changes: &Changes) -> Result<()> {
    of_all_workers(changes, Table::Meta, OWN)?.iter().try_for_each(|record| {
        let number = own(changes, record)?.number;
        changes.put(Table::Meta, record, &Own { number, starts: Vec::new() })
    })
}

fn own(records: &impl Records, record: &[u8]) -> Result<Own> {
    Ok(records.get(Table::Meta, record)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;

    #[test]
    fn every_start_has_a_higher_number_and_remembers_those_before() {
        let (store, disk) = in_memory();
        let first = store.begin_incarnation().expect("counted");
        let store = reopen(&disk.copy());
        let second = store.begin_incarnation().expect("counted");
        assert_eq!((first.number, second.number), (1, 2));
        assert_ne!(first.boot, second.boot);
        let starts = store.past().expect("read").starts;
        assert_eq!(starts.iter().map(|s| s.boot).collect::<Vec<_>>(), [second.boot, first.boot]);
    }
}
