//! How much is spent of lots of material: for each lot a number below which all items count as spent.
//!
//! Lots belong to one epoch: the epoch of the common secrets under which they were made. When another epoch
//! begins, the marks of the earlier ones are forgotten, and nothing of their lots can be spent any more.

use super::engine::{Records, Table};
use super::own_records::number_of;
use super::{Result, Store, StoreError};

const EPOCH: &[u8] = b"lots epoch";

/// Whether a record of [`Table::Meta`] has the epoch of a worker's lots.
pub(super) fn is_epoch(record: &[u8]) -> bool {
    record == EPOCH || number_of(record, EPOCH).is_some()
}

/// Bytes of the id of a lot.
const LOT: usize = 16;

impl Store {
    /// From now on only lots of this epoch can be spent. If this is the epoch in use already, its marks
    /// remain.
    pub fn begin_lots(&self, epoch: [u8; 32]) -> Result<()> {
        self.engine.write_own(|changes| {
            changes.touch(Table::Lots)?;
            if self.is_current(changes, epoch)? {
                return Ok(());
            }
            let mine = changes.between(Table::Lots, &self.own(&[]), &self.own(&[0xff; LOT + 1]))?;
            let length = self.own(&[0; LOT]).len();
            let mine = mine.iter().filter(|(record, _)| record.len() == length);
            mine.into_iter().try_for_each(|(record, _)| changes.remove(Table::Lots, record))?;
            changes.put(Table::Meta, &self.own(EPOCH), &epoch)
        })
    }

    /// Marks lots as spent up to these items. All marks are written in one synced write, or none; no mark
    /// decreases.
    pub fn spend_lots(&self, epoch: [u8; 32], marks: &[([u8; 16], u64)]) -> Result<()> {
        self.engine.write_own(|changes| {
            self.refuse_other(changes, epoch)?;
            for (lot, mark) in marks {
                let lot = self.own(lot);
                let before: u64 = changes.get(Table::Lots, &lot)?.unwrap_or(0);
                changes.put(Table::Lots, &lot, mark.max(&before))?;
            }
            Ok(())
        })
    }

    /// The number below which the items of a lot count as spent.
    pub fn spent_of_lot(&self, epoch: [u8; 32], lot: [u8; 16]) -> Result<u64> {
        self.engine.read(|records| {
            self.refuse_other(records, epoch)?;
            Ok(records.get(Table::Lots, &self.own(&lot))?.unwrap_or(0))
        })
    }

    fn is_current(&self, records: &impl Records, epoch: [u8; 32]) -> Result<bool> {
        Ok(records.get::<[u8; 32]>(Table::Meta, &self.own(EPOCH))? == Some(epoch))
    }

    fn refuse_other(&self, records: &impl Records, epoch: [u8; 32]) -> Result<()> {
        if self.is_current(records, epoch)? { Ok(()) } else { Err(StoreError::OldMaterial) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const LOTS: [[u8; 16]; 2] = [[1; 16], [2; 16]];

    #[test]
    fn marks_are_there_after_a_crash_and_never_go_back() {
        let (store, disk) = in_memory();
        store.begin_lots([1; 32]).expect("begun");
        store.spend_lots([1; 32], &[(LOTS[0], 10), (LOTS[1], 7)]).expect("marked");
        store.spend_lots([1; 32], &[(LOTS[0], 9)]).expect("marked");
        let crashed = reopen(&disk.copy());
        crashed.begin_lots([1; 32]).expect("goes on");
        assert_eq!(LOTS.map(|lot| crashed.spent_of_lot([1; 32], lot).expect("read")), [10, 7]);
    }

    #[test]
    fn several_lots_take_one_synced_write() {
        let (store, disk) = in_memory();
        store.begin_lots([1; 32]).expect("begun");
        let syncs_of = |marks: &[([u8; 16], u64)]| {
            let before = disk.syncs();
            store.spend_lots([1; 32], marks).expect("marked");
            disk.syncs() - before
        };
        assert_eq!(syncs_of(&[(LOTS[0], 1), (LOTS[1], 1)]), syncs_of(&[(LOTS[0], 2)]));
    }

    #[test]
    fn nothing_is_spent_of_another_epoch() {
        let (store, _) = in_memory();
        assert!(matches!(store.spend_lots([1; 32], &[(LOTS[0], 1)]), Err(StoreError::OldMaterial)));
        store.begin_lots([1; 32]).expect("begun");
        store.spend_lots([1; 32], &[(LOTS[0], 1)]).expect("marked");
        store.begin_lots([2; 32]).expect("begun");
        assert!(matches!(store.spend_lots([1; 32], &[(LOTS[0], 2)]), Err(StoreError::OldMaterial)));
        assert_eq!(store.spent_of_lot([2; 32], LOTS[0]).expect("read"), 0);
    }
}
