//! Which approvals are spent. They stay for ever: people sign them, so there are few, and a clock that is put back gives none back.

use serde::{Deserialize, Serialize};

use super::engine::{Changes, Records, Table};
use super::{Result, Store};

const APPROVED_POLICY: &[u8] = b"approved policy";

/// A spent approval.
#[derive(Debug, Serialize, Deserialize)]
struct Spent {
    /// Seconds since 1970, by this node's clock.
    at: u64,
    /// Of what was approved.
    digest: [u8; 32],
}

fn record(nonce: [u8; 32]) -> Vec<u8> {
    [b"approval ", &nonce[..]].concat()
}

impl Store {
    /// Spends an approval, unless it is spent. Returns since when it was, if so.
    pub fn spend_approval(&self, nonce: [u8; 32], digest: [u8; 32], now: u64) -> Result<Option<u64>> {
        self.change(|changes| spend(changes, nonce, Spent { at: now, digest }))
    }

    /// The same, and remembers in one write with it that the rules with a digest are approved, until they are noted as those in force.
    pub fn spend_for_policy(
        &self,
        nonce: [u8; 32],
        digest: [u8; 32],
        now: u64,
        policy: [u8; 32],
    ) -> Result<Option<u64>> {
        self.change(|changes| {
            let before = spend(changes, nonce, Spent { at: now, digest })?;
            if before.is_none() {
                changes.put(Table::Meta, APPROVED_POLICY, &policy)?;
            }
            Ok(before)
        })
    }

    /// Since when an approval is spent.
    pub fn approval_spent(&self, nonce: [u8; 32]) -> Result<Option<u64>> {
        let spent = self.engine.read(|records| records.get::<Spent>(Table::Meta, &record(nonce)))?;
        Ok(spent.map(|spent| spent.at))
    }

    /// The digest of rules that are approved and not yet noted.
    pub fn approved_policy(&self) -> Result<Option<[u8; 32]>> {
        self.engine.read(|records| records.get(Table::Meta, APPROVED_POLICY))
    }
}

fn spend(changes: &Changes, nonce: [u8; 32], spent: Spent) -> Result<Option<u64>> {
    let record = record(nonce);
    if let Some(before) = changes.get::<Spent>(Table::Meta, &record)? {
        return Ok(Some(before.at));
    }
    changes.put(Table::Meta, &record, &spent)?;
    Ok(None)
}

/// Rules are noted as those in force: they no longer need to be known as approved.
pub(super) fn forget_approved_policy(changes: &Changes) -> Result<()> {
    changes.remove(Table::Meta, APPROVED_POLICY)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;

    #[test]
    fn an_approval_is_spent_once_and_a_crash_gives_none_back() {
        let (store, disk) = in_memory();
        let before = store.mark().expect("read").number;
        assert_eq!(store.spend_approval([1; 32], [2; 32], 5).expect("written"), None);
        assert_eq!(store.mark().expect("read").number, before + 1, "peers notice an old copy of the disk");
        let reopened = reopen(&disk.copy());
        assert_eq!(reopened.approval_spent([1; 32]).expect("read"), Some(5));
        assert_eq!(reopened.spend_approval([1; 32], [2; 32], 6).expect("read"), Some(5));
        assert_eq!(reopened.approval_spent([3; 32]).expect("read"), None);
    }

    #[test]
    fn approved_rules_are_known_until_they_are_noted() {
        let (store, disk) = in_memory();
        assert_eq!(store.spend_for_policy([1; 32], [2; 32], 5, [9; 32]).expect("written"), None);
        assert_eq!(store.spend_for_policy([1; 32], [2; 32], 5, [8; 32]).expect("read"), Some(5));
        let store = reopen(&disk.copy());
        assert_eq!(store.approved_policy().expect("read"), Some([9; 32]));
        store.note_policy("rules").expect("noted");
        assert_eq!(store.approved_policy().expect("read"), None);
    }
}
