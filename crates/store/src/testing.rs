//! A disk in memory that fills up, loses power, and counts its syncs.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use polyclave_api::{Component, KeyInfo, Lifetime, Mode, NewKey, Origin, component_name};
use redb::StorageBackend;
use zeroize::Zeroizing;

use super::engine::{Records, Table};
use super::entry::Entry;
use super::keys::encode_shares;
use super::{KeyState, Secret, Store, StoredKey};

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    syncs: usize,
    /// Bytes that can still be written.
    room: Option<usize>,
    /// Snapshots after each sync.
    history: Option<Vec<Vec<u8>>>,
    /// The contents when recording began, and every write since.
    writes: Option<(Vec<u8>, Vec<Change>)>,
}

/// What was done to a disk.
#[derive(Clone, Debug)]
pub enum Change {
    /// These bytes were written at this offset.
    Write(u64, Vec<u8>),
    /// It has this many bytes from now on.
    Resize(u64),
    /// Everything before is durable.
    Sync,
}

impl Change {
    /// Whether it is a sync.
    pub fn is_sync(&self) -> bool {
        matches!(self, Change::Sync)
    }
}

/// The bytes after some changes.
pub fn replay<'a>(base: &[u8], changes: impl Iterator<Item = &'a Change>) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for change in changes {
        match change {
            Change::Write(offset, data) => {
                let (start, end) = (*offset as usize, *offset as usize + data.len());
                bytes.resize(bytes.len().max(end), 0);
                bytes[start..end].copy_from_slice(data);
            }
            Change::Resize(len) => bytes.resize(*len as usize, 0),
            Change::Sync => {}
        }
    }
    bytes
}

impl Content {
    fn note(&mut self, change: Change) {
        if let Some((_, changes)) = &mut self.writes {
            changes.push(change);
        }
    }
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock()
    }

    /// Another disk with the same bytes, as a crash at this moment leaves it.
    pub fn copy(&self) -> Disk {
        Disk::from_bytes(self.lock().bytes.clone())
    }

    /// A disk with these bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Disk {
        Disk(Arc::new(Mutex::new(Content { bytes, ..Content::default() })))
    }

    /// All bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    /// How often it was synced.
    pub fn syncs(&self) -> usize {
        self.lock().syncs
    }

    /// From now on no byte can be written.
    pub fn fill_up(&self) {
        self.leave(0);
    }

    /// From now on this many more bytes can be written.
    pub fn leave(&self, bytes: usize) {
        self.lock().room = Some(bytes);
    }

    /// It is not full any more.
    pub fn make_room(&self) {
        self.lock().room = None;
    }

    /// From now on keeps a snapshot after every sync.
    pub fn record(&self) {
        self.lock().history = Some(Vec::new());
    }

    /// From now on keeps every write.
    pub fn record_writes(&self) {
        let mut content = self.lock();
        content.writes = Some((content.bytes.clone(), Vec::new()));
    }

    /// The bytes when recording began, and what happened since ([`record_writes`](Self::record_writes)).
    pub fn writes(&self) -> (Vec<u8>, Vec<Change>) {
        self.lock().writes.clone().expect("recorded")
    }

    /// The bytes after each sync since recording began ([`record`](Self::record)).
    pub fn history(&self) -> Vec<Vec<u8>> {
        self.lock().history.clone().unwrap_or_default()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let content = self.lock();
        let start = offset as usize;
        let part = content.bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(part);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut content = self.lock();
        if content.room.is_some() && len as usize > content.bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        content.bytes.resize(len as usize, 0);
        content.note(Change::Resize(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut content = self.lock();
        content.syncs += 1;
        content.note(Change::Sync);
        if content.history.is_some() {
            let bytes = content.bytes.clone();
            content.history.get_or_insert_default().push(bytes);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut content = self.lock();
        if let Some(room) = &mut content.room {
            *room = room.checked_sub(data.len()).ok_or(io::ErrorKind::StorageFull)?;
        }
        content.bytes[offset as usize..][..data.len()].copy_from_slice(data);
        content.note(Change::Write(offset, data.to_vec()));
        Ok(())
    }
}

/// A store in a schema of a test's own server, opened as a worker.
pub fn at_server(url: &str, schema: &str, worker: u16, secret: &Secret) -> Store {
    let nowhere = std::path::Path::new("/nowhere/at/all");
    let url = format!("{url}?options=-csearch_path%3D{schema}");
    let server = super::engine::server::Server::new(&url, nowhere, nowhere).expect("a server");
    let access = super::engine::postgres::Access::Worker(worker);
    let database = super::engine::postgres::Postgres::open(server, access, true).expect("opened");
    Store::over_server(database, access, secret).expect("marked")
}

/// The secret of all stores of tests.
pub fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

/// Opens the store on a disk, as after a restart.
pub fn reopen(disk: &Disk) -> Store {
    Store::with_backend(disk.clone(), &secret()).expect("opened")
}

/// A new store, and its disk.
pub fn in_memory() -> (Store, Disk) {
    let disk = Disk::default();
    (reopen(&disk), disk)
}

impl Store {
    /// Makes the store find damage in the file.
    pub fn find_damage(&self) {
        let found: super::Result<()> = self.engine.read(|_| panic!("a page makes no sense"));
        assert!(matches!(found, Err(super::StoreError::Damaged { .. })));
    }

    /// Flips the last byte of a record.
    pub(super) fn damage_record(&self, table: Table, record: &[u8]) {
        let changed = self.engine.write(|changes| {
            let mut sealed = changes.sealed(table, record)?.expect("it is there");
            *sealed.last_mut().expect("bytes") ^= 1;
            changes.put_sealed(table, record, &sealed)
        });
        changed.expect("written");
    }

    /// Changes a bit of the last share of a key, as an attacker with the secret of the store can. A second
    /// call mends it.
    pub fn change_share(&self, id: [u8; 16]) {
        let mut shares = self.shares_of(id).expect("they are there");
        let part = shares.values_mut().next_back().expect("shares");
        *part.last_mut().expect("bytes") ^= 1;
        let bytes = encode_shares(&shares).expect("encoded");
        let changed = self.engine.write(|changes| changes.put_bytes(Table::Shares, &id, bytes));
        changed.expect("written");
    }

    /// Damages the shares of a key; the same once more mends them.
    pub fn damage_shares(&self, id: [u8; 16]) {
        self.damage_record(Table::Shares, &id);
    }
}

impl Store {
    /// Stores many session keys of a client, in one transaction.
    pub fn put_session_keys(&self, maker: &str, count: usize) {
        let put = self.engine.write(|changes| {
            (0..count).try_for_each(|number| {
                let mut info = key(&format!("{maker}-{number}"), 0).info;
                info.id[..8].copy_from_slice(&(number as u64).to_le_bytes());
                info.id[8..].copy_from_slice(&blake3::hash(maker.as_bytes()).as_bytes()[..8]);
                info.properties.lifetime = Lifetime::Session { seconds: 60 };
                let record = info.properties.name.clone();
                let entry = Entry { info, state: KeyState::Announced, maker: Some(maker.into()) };
                changes.put(Table::Keys, record.as_bytes(), &entry)
            })
        });
        put.expect("written");
        self.sessions.forget();
    }
}

/// A pending component of a key of two, given at 1000.
pub fn component(of: &str, number: u8, seed: u8) -> StoredKey {
    let mut part = key(&component_name(of, number), seed);
    (part.info.made, part.info.component) = (1000, Some(Component { number, of: 2, giver: [seed; 32] }));
    part
}

/// A pending key; its id and its shares follow from the seed.
pub fn key(name: &str, seed: u8) -> StoredKey {
    let properties = NewKey::for_modes(name, "aes-128", &[Mode::Gcm], 1 << 20);
    let info = KeyInfo::first(properties, [seed; 16], Origin::Generated, 1, vec![seed; 3]);
    let shares = BTreeMap::from([
        ("key".to_owned(), Zeroizing::new(vec![seed; 16])),
        ("round keys".to_owned(), Zeroizing::new(vec![seed ^ 0xff; 176])),
    ]);
    StoredKey { info, state: KeyState::Pending, shares, maker: None }
}
