//! The stored state of a move of all keys to another set of nodes: prepared beside what is in use, then taken
//! into use, all at once. `crates/node/src/reshare.rs` describes how the nodes do this together.
//!
//! Keys are prepared in pieces, a transaction each, and count once the stage is [`Stage::Prepared`]. A node
//! of the new set then replaces everything that it has by what was prepared. A node that leaves has prepared
//! nothing, and destroys what it has.

use std::collections::BTreeMap;

use polyclave_api::KeyInfo;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use super::approvals::forget_approved_reshare;
use super::engine::{Changes, ERASE, Records, Table, encode};
use super::entry::Entry;
use super::keys::COUNT;
use super::quarantine::QUARANTINE;
use super::refresh::{self, SINCE, WANTED};
use super::setup::{AGREED, PROPOSED, load, save};
use super::versions::record_of;
use super::{Ciphers, KeyState, Result, Store, StoreError, accounts, children, deletions, failures};

/// How far the node is.
const STAGE: &[u8] = b"reshare";
/// The keys of the first piece. The others have their number behind it.
const KEYS: &[u8] = b"reshare keys";
/// The common secrets of the new nodes.
const SETUP: &[u8] = b"reshare setup";
/// Ids of keys that were deleted.
const DELETED: &[u8] = b"reshare tombstones";

/// How far a node is with a move of all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// What is new is stored beside what is in use. The node uses neither.
    Prepared,
    /// The node has taken what is new into use.
    Done,
    /// The node has left the cluster and destroyed its shares.
    Left,
}

/// The move of all keys that a node has prepared or made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reshared {
    /// Distinguishes it from all others.
    pub id: [u8; 32],
    /// How far the node is.
    pub stage: Stage,
    /// The file of the cluster that takes the keys over.
    pub cluster: String,
    /// The file of the cluster before.
    pub before: String,
}

/// A key that moves.
pub struct MovedKey {
    /// Its properties.
    pub info: KeyInfo,
    /// How many blocks of its account count as spent at this node.
    pub spent: u64,
    /// The ciphers of the keys that were derived from keys of its account.
    pub children: Ciphers,
    /// This node's shares of it.
    pub shares: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

#[derive(Serialize)]
struct Borrowed<'a> {
    info: &'a KeyInfo,
    spent: u64,
    children: &'a Ciphers,
    shares: BTreeMap<&'a str, &'a [u8]>,
}

#[derive(Deserialize)]
struct Owned {
    info: KeyInfo,
    spent: u64,
    children: Ciphers,
    shares: BTreeMap<String, Vec<u8>>,
}

impl Store {
    /// The last move of all keys that this node has prepared or made.
    pub fn reshared(&self) -> Result<Option<Reshared>> {
        self.engine.read(|records| records.get(Table::Meta, STAGE))
    }

    /// This node's shares of a key, pending or announced, by its id.
    pub fn shares_of(&self, id: [u8; 16]) -> Result<BTreeMap<String, Zeroizing<Vec<u8>>>> {
        self.engine.read(|records| {
            let shares: Option<BTreeMap<String, Vec<u8>>> = records.get(Table::Shares, &id)?;
            let missing =
                || StoreError::corrupt(format!("the share of the key with the id {}", hex::encode(id)));
            Ok(shares
                .ok_or_else(missing)?
                .into_iter()
                .map(|(of, share)| (of, Zeroizing::new(share)))
                .collect())
        })
    }

    /// Whether the node holds nothing that belongs to a cluster.
    pub fn is_blank(&self) -> Result<bool> {
        self.engine.read(|records| {
            let is_used = records.holds_any(Table::Keys)?
                || records.holds_any(Table::Tombstones)?
                || load(records, AGREED)?.is_some()
                || load(records, PROPOSED)?.is_some();
            let has_left = records.get(Table::Meta, STAGE)?.is_some_and(|r: Reshared| r.stage == Stage::Left);
            Ok(!is_used || has_left)
        })
    }

    /// Stores a piece of the keys under the shares of the new nodes. The pieces have numbers from 0 on; the
    /// first replaces all that was prepared before.
    pub fn prepare_moved(&self, piece: u32, keys: &[MovedKey]) -> Result<()> {
        let borrowed: Vec<Borrowed<'_>> = keys
            .iter()
            .map(|key| Borrowed {
                info: &key.info,
                spent: key.spent,
                children: &key.children,
                shares: key.shares.iter().map(|(of, share)| (of.as_str(), &share[..])).collect(),
            })
            .collect();
        let shares = keys.iter().flat_map(|key| &key.shares);
        let room: usize = shares.map(|(of, share)| of.len() + share.len() + 20).sum();
        let names = |key: &MovedKey| key.children.iter().map(|cipher| cipher.len() + 5).sum::<usize>();
        let infos: usize =
            keys.iter().map(|key| 512 + names(key) + key.info.properties.attributes.len()).sum();
        let encoded = encode(&borrowed, room + infos + 16)?;
        self.change(|changes| {
            if piece == 0 {
                clear(changes)?;
            }
            changes.put_bytes(Table::Meta, &keys_of(piece), encoded)
        })
    }

    /// Remembers that this node has stored all that it needs of the new cluster, or that it is about to leave
    /// (without `setup`). From now on it serves nothing, until the move is done or given up.
    pub fn prepare_reshare(
        &self,
        (id, cluster, before): ([u8; 32], &str, &str),
        setup: Option<&[u8]>,
        deleted: &[[u8; 16]],
    ) -> Result<()> {
        self.change(|changes| {
            match setup {
                Some(bytes) => save(changes, SETUP, id, 1, bytes)?,
                None => clear(changes)?,
            }
            changes.put(Table::Meta, DELETED, &deleted)?;
            let stage = Stage::Prepared;
            let reshared = Reshared { id, stage, cluster: cluster.into(), before: before.into() };
            changes.put(Table::Meta, STAGE, &reshared)
        })
    }

    /// Deletes what was prepared. A move that is done stays done.
    pub fn discard_reshare(&self) -> Result<()> {
        self.change(|changes| {
            clear(changes)?;
            match changes.get(Table::Meta, STAGE)?.is_some_and(|r: Reshared| r.stage == Stage::Prepared) {
                true => changes.remove(Table::Meta, STAGE),
                false => Ok(()),
            }
        })
    }

    /// The same, and the move has to be approved again if it needs approval.
    pub fn abandon_reshare(&self) -> Result<()> {
        self.discard_reshare()?;
        self.change(forget_approved_reshare)
    }

    /// Takes what was prepared into use in the place of everything else, at the time `now`, or destroys
    /// everything if the node leaves. Repeating this has no effect.
    pub fn commit_reshare(&self, id: [u8; 32], now: u64) -> Result<()> {
        self.change(|changes| {
            let reshared: Option<Reshared> = changes.get(Table::Meta, STAGE)?;
            let mut reshared = reshared.filter(|r| r.id == id).ok_or(StoreError::NoReshare)?;
            if reshared.stage != Stage::Prepared {
                return Ok(());
            }
            let setup = load(changes, SETUP)?.filter(|setup| setup.id == id);
            for table in [Table::Keys, Table::Shares, Table::Spent, Table::Peers, Table::Lots] {
                changes.clear(table)?;
            }
            refresh::clear(changes)?;
            accounts::clear(changes)?;
            children::clear(changes)?;
            failures::clear(changes)?;
            deletions::clear(changes)?;
            for record in [AGREED, PROPOSED, WANTED, QUARANTINE, SINCE, COUNT] {
                changes.remove(Table::Meta, record)?;
            }
            reshared.stage = if setup.is_some() { Stage::Done } else { Stage::Left };
            if let Some(setup) = setup {
                let count = put_keys(changes)?;
                let deleted: Vec<[u8; 16]> = changes.get(Table::Meta, DELETED)?.unwrap_or_default();
                deleted.iter().try_for_each(|id| changes.put(Table::Tombstones, id, &()))?;
                changes.put(Table::Meta, COUNT, &count)?;
                save(changes, AGREED, id, setup.epoch, &setup.bytes)?;
                changes.put(Table::Meta, SINCE, &now)?;
            }
            changes.put(Table::Meta, STAGE, &reshared)?;
            changes.put(Table::Meta, ERASE, &())?;
            forget_approved_reshare(changes)?;
            clear(changes)
        })?;
        self.cache.clear();
        self.budgets.clear();
        self.failures.clear();
        self.sessions.forget();
        Ok(())
    }
}

/// Puts the prepared keys in their places, as announced: all nodes hold them. Returns how many there are.
fn put_keys(changes: &Changes) -> Result<u64> {
    let mut count = 0;
    for piece in 0.. {
        let Some(keys) = changes.get::<Vec<Owned>>(Table::Meta, &keys_of(piece))? else { break };
        for Owned { info, spent, children: ciphers, shares } in keys {
            let (id, record) = (info.id, record_of(&info.properties.name, info.version));
            let mut encoded = shares;
            let borrowed: BTreeMap<&str, &[u8]> =
                encoded.iter().map(|(of, share)| (of.as_str(), share.as_slice())).collect();
            let room = borrowed.iter().map(|(of, share)| of.len() + share.len() + 20).sum::<usize>() + 10;
            changes.put_bytes(Table::Shares, &id, encode(&borrowed, room)?)?;
            encoded.values_mut().for_each(Zeroize::zeroize);
            accounts::join(changes, &info)?;
            children::add(changes, info.account, ciphers)?;
            // A key and its copies bring what their account has spent, each at most its own budget.
            let account = info.account;
            let before: u64 = changes.get(Table::Spent, &account)?.unwrap_or(0);
            if spent > before {
                changes.put(Table::Spent, &account, &spent)?;
            }
            changes.put(Table::Keys, &record, &Entry { info, state: KeyState::Announced, maker: None })?;
            count += 1;
        }
    }
    Ok(count)
}

/// Removes everything that was prepared except the stage.
fn clear(changes: &Changes) -> Result<()> {
    for piece in 0.. {
        let keys = keys_of(piece);
        if changes.sealed(Table::Meta, &keys)?.is_none() {
            break;
        }
        changes.remove(Table::Meta, &keys)?;
    }
    changes.remove(Table::Meta, SETUP)?;
    changes.remove(Table::Meta, DELETED)
}

fn keys_of(piece: u32) -> Vec<u8> {
    if piece == 0 { KEYS.to_vec() } else { [KEYS, b" ", &piece.to_be_bytes()].concat() }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::super::versions::Which;
    use super::*;

    const OLD: [u8; 32] = [1; 32];
    const ID: [u8; 32] = [2; 32];
    const NOW: u64 = 1_800_000_000;

    /// A store of the old cluster with an announced key that was used, one that is pending here only, and one
    /// that was deleted.
    fn old() -> (Store, Disk) {
        let (store, disk) = in_memory();
        store.put_setup(OLD, 5, b"old", true).expect("put");
        for (name, seed) in [("a", 1), ("gone", 3)] {
            store.put_pending(&key(name, seed)).expect("put");
            store.announce(name, [seed; 16]).expect("announced");
        }
        store.spend(([1; 16], [1; 16]), 10, 6400).expect("in the budget");
        store.delete("gone", [3; 16]).expect("deleted");
        store.put_pending(&key("half", 4)).expect("put");
        store.want_refresh().expect("wanted");
        (store, disk)
    }

    fn moved(name: &str, seed: u8, spent: u64) -> MovedKey {
        let shares = key(name, seed).shares.into_keys().map(|part| (part, Zeroizing::new(vec![seed, 9, 9])));
        MovedKey { info: key(name, seed).info, spent, children: Ciphers::default(), shares: shares.collect() }
    }

    fn prepared(store: &Store) {
        store.prepare_moved(0, &[moved("a", 1, 77)]).expect("prepared");
        store.prepare_moved(1, &[moved("b", 2, 0)]).expect("prepared");
        store
            .prepare_reshare((ID, "the new file", "the old file"), Some(b"new"), &[[3; 16], [8; 16]])
            .expect("prepared");
    }

    fn stage(store: &Store) -> Option<Stage> {
        store.reshared().expect("read").map(|reshared| reshared.stage)
    }

    fn is_old(store: &Store) -> bool {
        let setup = store.setup().expect("read");
        let keys = store.key("a").expect("read").is_some_and(|a| a.shares == key("a", 1).shares)
            && store.pending_key("half").expect("read").is_some();
        setup.is_some_and(|setup| setup.id == OLD && *setup.bytes == b"old")
            && keys
            && stage(store) != Some(Stage::Done)
    }

    fn is_new(store: &Store) -> bool {
        let setup = store.setup().expect("read").expect("there");
        let keys = [("a", 1), ("b", 2)].into_iter().all(|(name, seed)| {
            let found = store.key(name).expect("read");
            found.is_some_and(|found| found.shares == moved(name, seed, 0).shares)
        });
        let gone = store.pending_key("half").expect("read").is_none() && store.count().expect("read") == 2;
        let deleted = [3, 8]
            .into_iter()
            .all(|seed| store.state("x", [seed; 16]).expect("read") == Some(KeyState::Deleted));
        assert_eq!(store.spent([1; 16]).expect("read"), 77);
        assert!(!store.refresh_wanted().expect("read"));
        let stage = store.reshared().expect("read").expect("there");
        assert_eq!((stage.stage, stage.cluster.as_str()), (Stage::Done, "the new file"));
        setup.agreed && setup.id == ID && *setup.bytes == b"new" && keys && gone && deleted
    }

    #[test]
    fn what_is_prepared_touches_nothing_until_all_of_it_is_taken_into_use() {
        let (store, disk) = old();
        prepared(&store);
        assert!(is_old(&store) && stage(&store) == Some(Stage::Prepared));
        store.discard_reshare().expect("given up");
        assert!(matches!(store.commit_reshare(ID, NOW), Err(StoreError::NoReshare)));
        assert_eq!(stage(&store), None);
        prepared(&store);
        assert!(matches!(store.commit_reshare(OLD, NOW), Err(StoreError::NoReshare)));
        store.commit_reshare(ID, NOW).expect("committed");
        store.commit_reshare(ID, NOW).expect("twice is once");
        store.discard_reshare().expect("nothing is prepared");
        for store in [&store, &reopen(&disk.copy())] {
            assert!(is_new(store));
        }
    }

    #[test]
    fn every_version_of_a_key_moves_to_its_own_place() {
        let (store, _) = old();
        let versions = [1, 2, 3].map(|seed| {
            let mut version = moved("a", seed, 0);
            version.info.version = u32::from(seed);
            version
        });
        store.prepare_moved(0, &versions).expect("prepared");
        let files = (ID, "the new file", "the old file");
        store.prepare_reshare(files, Some(b"new"), &[]).expect("prepared");
        store.commit_reshare(ID, NOW).expect("committed");
        for seed in [1, 2, 3] {
            let found = store.find("a", Which::Version(u32::from(seed))).expect("read").expect("there");
            assert_eq!((found.info.id, &found.shares), ([seed; 16], &moved("a", seed, 0).shares));
        }
        assert_eq!(store.count().expect("read"), 3);
        assert_eq!(store.key("a").expect("read").expect("there").info.version, 3);
    }

    #[test]
    fn a_node_that_leaves_has_no_share_and_no_common_secret_any_more() {
        let (store, disk) = old();
        assert!(!store.is_blank().expect("read"));
        store.prepare_reshare((ID, "the new file", "the old file"), None, &[]).expect("prepared");
        assert!(is_old(&store));
        store.commit_reshare(ID, NOW).expect("committed");
        for store in [&store, &reopen(&disk.copy())] {
            assert_eq!(store.setup().expect("read"), None);
            assert_eq!(
                (store.held_keys().expect("read").len(), store.count().expect("read")),
                (1, 0),
                "a tombstone"
            );
            assert!(store.shares_of([1; 16]).is_err() && store.shares_of([4; 16]).is_err());
            assert_eq!(stage(store), Some(Stage::Left));
            assert!(store.is_blank().expect("read"), "it can become a node of another cluster");
        }
    }

    #[test]
    fn after_a_crash_at_any_sync_everything_is_old_or_everything_is_new() {
        let (store, disk) = old();
        disk.record();
        prepared(&store);
        store.commit_reshare(ID, NOW).expect("committed");
        let mut seen = [0; 3];
        for bytes in disk.history() {
            let crashed = reopen(&Disk::from_bytes(bytes));
            match stage(&crashed) {
                None => {
                    assert!(is_old(&crashed));
                    seen[0] += 1;
                    prepared(&crashed);
                    crashed.commit_reshare(ID, NOW).expect("done again");
                }
                Some(Stage::Prepared) => {
                    assert!(is_old(&crashed));
                    seen[1] += 1;
                    crashed.commit_reshare(ID, NOW).expect("completed");
                }
                _ => seen[2] += 1,
            }
            assert!(is_new(&crashed));
        }
        assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
    }

    #[test]
    fn a_full_disk_leaves_the_old_or_the_new() {
        let mut seen = [false; 2];
        for room in (0..400_000).step_by(8_000) {
            let (store, disk) = old();
            disk.leave(room);
            let done = store
                .prepare_moved(0, &[moved("a", 1, 77)])
                .and_then(|()| store.prepare_moved(1, &[moved("b", 2, 0)]))
                .and_then(|()| {
                    store.prepare_reshare(
                        (ID, "the new file", "the old file"),
                        Some(b"new"),
                        &[[3; 16], [8; 16]],
                    )
                })
                .and_then(|()| store.commit_reshare(ID, NOW))
                .is_ok();
            seen[usize::from(done)] = true;
            disk.make_room();
            let fresh = reopen(&disk.copy());
            assert!(if done { is_new(&fresh) } else { is_old(&fresh) || is_new(&fresh) }, "{room}");
        }
        assert_eq!(seen, [true; 2], "the range of room covers both ends");
    }
}
