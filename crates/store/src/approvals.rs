//! The spent approvals. They are kept for ever: people sign approvals, so there are few. So a clock that is
//! put back makes no approval usable again.

use serde::{Deserialize, Serialize};

use super::engine::{Changes, Records, Table};
use super::refresh;
use super::{Result, Store};

const APPROVED_POLICY: &[u8] = b"approved policy";
const APPROVED_RESHARE: &[u8] = b"approved reshare";

/// A spent approval.
#[derive(Debug, Serialize, Deserialize)]
struct Spent {
    /// Seconds since 1970, by this node's clock.
    at: u64,
    /// The digest of what was approved.
    digest: [u8; 32],
}

/// A move of all keys that is approved, and may be begun again while the approval holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedReshare {
    /// The fingerprint of the cluster file from before.
    pub from: [u8; 32],
    /// The fingerprint of the cluster file that takes over.
    pub to: [u8; 32],
    /// The last second, since 1970, in which it may be begun.
    pub until: u64,
}

fn record(nonce: [u8; 32]) -> Vec<u8> {
    [b"approval ", &nonce[..]].concat()
}

impl Store {
    /// Spends an approval, unless it is spent. Returns since when it was, if so.
    pub fn spend_approval(&self, nonce: [u8; 32], digest: [u8; 32], now: u64) -> Result<Option<u64>> {
        self.change(|changes| spend(changes, nonce, Spent { at: now, digest }))
    }

    /// The same, and remembers in one write with it that the rules with a digest are approved, until they are
    /// noted as those in force.
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

    /// The same, and in one write with it the operator's wish for fresh common secrets; if `accepted`,
    /// despite failed checks.
    pub fn spend_for_refresh(
        &self,
        nonce: [u8; 32],
        digest: [u8; 32],
        now: u64,
        accepted: bool,
    ) -> Result<Option<u64>> {
        self.change(|changes| {
            let before = spend(changes, nonce, Spent { at: now, digest })?;
            if before.is_none() {
                refresh::want(changes, accepted)?;
            }
            Ok(before)
        })
    }

    /// The same, and remembers in one write with it that a move of all keys is approved.
    pub fn spend_for_reshare(
        &self,
        nonce: [u8; 32],
        digest: [u8; 32],
        now: u64,
        approved: &ApprovedReshare,
    ) -> Result<Option<u64>> {
        self.change(|changes| {
            let before = spend(changes, nonce, Spent { at: now, digest })?;
            if before.is_none() {
                changes.put(Table::Meta, APPROVED_RESHARE, approved)?;
            }
            Ok(before)
        })
    }

    /// The move of all keys that is approved, and neither done nor given up.
    pub fn approved_reshare(&self) -> Result<Option<ApprovedReshare>> {
        self.engine.read(|records| records.get(Table::Meta, APPROVED_RESHARE))
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

/// A move of all keys is done or given up: another one has to be approved again.
pub(super) fn forget_approved_reshare(changes: &Changes) -> Result<()> {
    changes.remove(Table::Meta, APPROVED_RESHARE)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

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
    fn a_spent_approval_of_a_refresh_leaves_the_wish_for_it_whenever_the_node_dies() {
        let (store, disk) = in_memory();
        store.put_setup([7; 32], 1, b"secrets", true).expect("put");
        disk.record();
        assert_eq!(store.spend_for_refresh([1; 32], [2; 32], 5, false).expect("written"), None);
        let mut seen = [0; 2];
        for bytes in disk.history() {
            let crashed = reopen(&Disk::from_bytes(bytes));
            let spent = crashed.approval_spent([1; 32]).expect("read").is_some();
            assert_eq!(crashed.refresh_wanted().expect("read"), spent);
            seen[usize::from(spent)] += 1;
        }
        assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
        store.forget_refresh().expect("given up");
        assert_eq!(store.spend_for_refresh([1; 32], [2; 32], 6, false).expect("read"), Some(5));
        assert!(!store.refresh_wanted().expect("read"), "a spent approval orders nothing");
    }

    #[test]
    fn an_approved_move_is_known_until_it_is_done_or_given_up() {
        let approved = ApprovedReshare { from: [3; 32], to: [4; 32], until: 9 };
        let approve = |store: &Store, nonce: u8| {
            let spent = store.spend_for_reshare([nonce; 32], [2; 32], 5, &approved).expect("written");
            assert_eq!(spent, None);
        };
        let (store, disk) = in_memory();
        approve(&store, 1);
        let store = reopen(&disk.copy());
        assert_eq!(store.approved_reshare().expect("read"), Some(approved.clone()));
        store.discard_reshare().expect("begun anew");
        assert_eq!(store.approved_reshare().expect("read"), Some(approved.clone()));
        store.abandon_reshare().expect("given up");
        assert_eq!(store.approved_reshare().expect("read"), None);
        approve(&store, 6);
        store.prepare_reshare(([8; 32], "new", "old"), None, &[]).expect("prepared");
        store.commit_reshare([8; 32], 7).expect("done");
        assert_eq!(store.approved_reshare().expect("read"), None);
        assert_eq!(store.approval_spent([1; 32]).expect("read"), Some(5), "it stays spent");
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
