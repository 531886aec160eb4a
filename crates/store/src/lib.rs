//! What a node must not lose: its shares of keys, how much of keys and material is spent, and what it has
//! seen of its peers.
//!
//! The store is one redb file, or tables of a PostgreSQL server (`engine/postgres.rs`). Every value in it is
//! sealed (XChaCha20-Poly1305, a fresh nonce for each) under a key derived from the node's [`Secret`]. Table,
//! record key and format are authenticated with it, so a value that was changed or moved is
//! [`StoreError::Corrupt`], never another key. Every change is one transaction and durable when the function
//! returns. Opening after a crash takes no longer than after an orderly end (redb's quick repair).
//!
//! # What it does not do
//!
//! Somebody who can write the disk can put an *older* copy of the whole file in place. Peers notice this by
//! the mark that moves with every change that matters ([`Store::mark`]), and the node itself by its audit
//! log. Single older records do not fit the digest of all records that the store keeps (`engine/head.rs`,
//! `engine/digest.rs`). They do not fit what this process knows of each record, either (`engine/index.rs`):
//! [`StoreError::PutBack`].
//!
//! Names of keys and the sizes of records are not hidden from somebody who can read the disk. The program
//! cannot reach a deleted record any more, but its sealed bytes stay in free pages until these are used
//! again, or until the file is rewritten after a refresh (`erase.rs`). A stolen disk does not reveal them as
//! long as the secret is kept elsewhere.

mod accounts;
mod approvals;
mod audit_head;
mod backup;
mod budget;
mod cache;
mod checks;
mod children;
mod damage;
mod deletions;
mod delivery;
pub(crate) mod engine;
mod entry;
mod erase;
mod error;
mod failures;
#[cfg(test)]
mod faults;
mod features;
#[cfg(test)]
mod file_damage;
#[cfg(test)]
mod fuzz;
mod incarnation;
mod keys;
mod lots;
mod mark;
mod migrate;
mod own_records;
mod policy;
#[cfg(test)]
mod put_back;
mod quarantine;
mod refresh;
mod reshare;
mod seal;
mod sealed;
mod secret;
mod seen;
mod sessions;
mod setup;
mod standby;
mod stream;
#[cfg(any(test, feature = "testkit"))]
pub mod testing;
mod versions;
mod worker;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyclave_config::{NodeDir, private};
use redb::{Database, DatabaseError, StorageBackend};

pub use approvals::ApprovedReshare;
pub use audit_head::Gap;
pub use backup::restore;
pub use children::Ciphers;
pub use delivery::{AskedLot, DeliveredLot, LotRequest, LotState, WantedLot};
pub use engine::connection::make_schema;
pub use engine::head::Mark;
pub use error::StoreError;
pub use failures::Attempts;
pub use incarnation::{Incarnation, Start};
pub use keys::{KeyState, StoredKey};
pub use mark::Past;
pub use migrate::{Migrated, migrate};
pub use quarantine::Quarantine;
pub use refresh::{HeldKey, RefreshedKey};
pub use reshare::{MovedKey, Reshared, Stage};
pub use sealed::SealedNote;
pub use secret::Secret;
pub use setup::StoredSetup;
pub use standby::{StandbyBinding, StandbyShares};
pub use versions::Which;

use budget::Budgets;
use cache::Cache;
use damage::Damage;
use engine::file::FileDatabase;
use engine::head::{HEAD, Head};
use engine::postgres::{Access, Postgres};
use engine::server::Server;
use engine::{Database as _, Engine, Records, Table, View};
use failures::Failures;
use seal::Seal;
use sessions::Sessions;
use worker::Worker;

/// The result of a fallible function of the store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A known record that distinguishes a wrong secret from a damaged store.
const MARKER: &[u8] = b"marker";

/// The most keys held in memory.
const CACHED_KEYS: usize = 1024;

/// The most bytes of the file held in memory.
const CACHED_BYTES: usize = 16 << 20;

/// A node's durable store. Threads share it by reference.
#[derive(Debug)]
pub struct Store {
    /// What the records are sealed under, for backups.
    secret: Secret,
    engine: Engine,
    cache: Cache,
    budgets: Budgets,
    failures: Failures,
    damage: Damage,
    sessions: Sessions,
    latest: mark::Latest,
    worker: Worker,
}

impl Store {
    /// Opens the store of a node as its worker, where its settings say.
    pub fn of(dir: &NodeDir, secret: &Secret) -> Result<Store> {
        Store::found(dir, Access::Worker(dir.settings().worker), secret)
    }

    /// The same for operations that concern all workers. No worker runs meanwhile.
    pub fn alone(dir: &NodeDir, secret: &Secret) -> Result<Store> {
        Store::found(dir, Access::Alone, secret)
    }

    /// Opens the store of a node as its worker, or makes it at the node's first start.
    pub fn of_or_new(dir: &NodeDir, secret: &Secret) -> Result<Store> {
        let settings = dir.settings();
        Store::at_or_new(dir, settings.store.as_deref(), Access::Worker(settings.worker), secret)
    }

    /// The same, and makes it if there is none.
    pub fn alone_or_new(dir: &NodeDir, secret: &Secret) -> Result<Store> {
        Store::at_or_new(dir, dir.settings().store.as_deref(), Access::Alone, secret)
    }

    fn found(dir: &NodeDir, access: Access, secret: &Secret) -> Result<Store> {
        match &dir.settings().store {
            Some(url) => Store::at_server(dir, url, (access, false), secret),
            None => Store::open(&dir.store_path(), secret),
        }
    }

    /// Opens a node's store at the server of a URL, or in its file, or makes it there.
    fn at_or_new(dir: &NodeDir, url: Option<&str>, access: Access, secret: &Secret) -> Result<Store> {
        match url {
            Some(url) => Store::at_server(dir, url, (access, true), secret),
            None if dir.store_path().exists() => Store::open(&dir.store_path(), secret),
            None => Store::create(&dir.store_path(), secret),
        }
    }

    fn at_server(
        dir: &NodeDir,
        url: &str,
        (access, may_make): (Access, bool),
        secret: &Secret,
    ) -> Result<Store> {
        let server = Server::new(url, &dir.store_password_path(), &dir.store_authority_path())?;
        Store::over_server(Postgres::open(server, access, may_make)?, access, secret)
    }

    /// Over a server whose store is owned once it is known that this program can read it.
    fn over_server(server: Postgres, access: Access, secret: &Secret) -> Result<Store> {
        let seal = Seal::new(secret);
        server.read(&mut |state| refuse_foreign(&View::unchecked(state, &seal)).map(drop))?;
        server.own()?;
        let mut store = Store::over(Box::new(server), secret);
        if let Access::Worker(number) = access {
            store.worker = Worker::new(number);
        }
        store.mark_or_check()?;
        Ok(store)
    }

    /// Marks a new store, or checks the mark of an old one.
    fn mark_or_check(&self) -> Result<()> {
        let fresh = self.engine.read_unchecked(|records| Ok(!records.holds_any(Table::Meta)?))?;
        if fresh { self.write_marker() } else { self.check_marker() }
    }

    /// Makes a new store.
    pub fn create(path: &Path, secret: &Secret) -> Result<Store> {
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path: path.into() });
        }
        // The file gets its final name when it is complete.
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        let broken = |e| StoreError::Io { path: path.into(), cause: e };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)
            .map_err(broken)?;
        private::check_mode(&file, &unfinished)?;
        let database = engine::file::open(|| builder().create_file(file), Some(path))?;
        let store = Store::from_database(database, reopener(path), Some(path), secret);
        store.write_marker()?;
        std::fs::rename(&unfinished, path).map_err(broken)?;
        private::sync_dir(private::parent(path))?;
        Ok(store)
    }

    /// Opens a store.
    pub fn open(path: &Path, secret: &Secret) -> Result<Store> {
        let reopen = reopener(path);
        if !path.exists() {
            return Err(StoreError::Missing { path: path.into() });
        }
        private::open(path)?;
        let database = engine::once_released(|| engine::file::open(&reopen, Some(path)))?;
        erase::erase_left(path)?;
        let store = Store::from_database(database, reopen, Some(path), secret);
        store.check_marker()?;
        Ok(store)
    }

    /// Makes a store on a backend, or opens the one that exists there. Clones of the backend are the same
    /// storage.
    pub fn with_backend<B: StorageBackend + Clone>(backend: B, secret: &Secret) -> Result<Store> {
        let reopen: engine::file::Reopen = Box::new(move || builder().create_with_backend(backend.clone()));
        let database = engine::file::open(&reopen, None)?;
        let store = Store::from_database(database, reopen, None, secret);
        store.mark_or_check()?;
        Ok(store)
    }

    fn from_database(
        database: Database,
        reopen: engine::file::Reopen,
        path: Option<&Path>,
        secret: &Secret,
    ) -> Store {
        Store::over(Box::new(FileDatabase::new(database, reopen, path)), secret)
    }

    fn over(database: Box<dyn engine::Database>, secret: &Secret) -> Store {
        let engine = Engine::new(database, Arc::new(Seal::new(secret)));
        let (cache, budgets, damage) = (Cache::new(CACHED_KEYS), Budgets::default(), Damage::default());
        let (sessions, latest, worker) = (Sessions::default(), Default::default(), Worker::default());
        let (secret, failures) = (secret.clone(), Failures::default());
        Store { secret, engine, cache, budgets, failures, damage, sessions, latest, worker }
    }

    fn write_marker(&self) -> Result<()> {
        self.engine.fill(|changes| {
            // Another worker may have been faster.
            if changes.sealed(Table::Meta, MARKER)?.is_some() {
                return Ok(());
            }
            // Create all tables, so that none is missing later.
            Table::ALL.iter().try_for_each(|table| changes.touch(*table))?;
            changes.put(Table::Meta, HEAD, &Head::default())?;
            changes.put(Table::Meta, MARKER, &())
        })?;
        self.check_marker()
    }

    fn check_marker(&self) -> Result<()> {
        let is_covered = self.engine.read_unchecked(|records| {
            if !refuse_foreign(records)? {
                return Err(StoreError::corrupt("the beginning of the store"));
            }
            records.bytes(Table::Meta, HEAD)?.map_or(Ok(false), |bytes| Ok(Head::read(&bytes)?.1))
        })?;
        if !is_covered && self.engine.adopt(false)? {
            tracing::info!(
                store = self.engine.place(),
                "from now on a digest covers the records of the store"
            );
        }
        self.engine.load()
    }

    /// Why the store cannot be used any more, if its file is damaged, its server has lost changes, or another
    /// process has taken it over.
    pub fn file_damage(&self) -> Option<StoreError> {
        self.engine.damage().or_else(|| self.latest.loss())
    }
}

/// Refuses a store that is sealed under another secret, or that needs what this program does not know.
/// Returns whether the store has been begun.
fn refuse_foreign(records: &View<'_>) -> Result<bool> {
    let Some(sealed) = records.sealed(Table::Meta, MARKER)? else { return Ok(false) };
    records.seal().open(Table::Meta.name(), MARKER, &sealed).map_err(|_| StoreError::WrongSecret)?;
    features::check(records)?;
    Ok(true)
}

impl Drop for Store {
    /// Returns what was reserved of budgets and not spent. If that fails, it counts as spent, as after a
    /// crash.
    fn drop(&mut self) {
        let _ = self.settle();
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHED_BYTES);
    builder
}

fn reopener(path: &Path) -> engine::file::Reopen {
    let path = path.to_path_buf();
    Box::new(move || -> std::result::Result<Database, DatabaseError> { builder().open(&path) })
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    #[test]
    fn a_store_is_found_again_and_never_made_over_another() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store.redb");
        assert!(matches!(Store::open(&path, &secret()), Err(StoreError::Missing { .. })));
        Store::create(&path, &secret()).expect("made").put_pending(&key("k", 1)).expect("put");
        assert!(matches!(Store::create(&path, &secret()), Err(StoreError::Exists { .. })));
        let store = Store::open(&path, &secret()).expect("opened");
        assert!(store.pending_key("k").expect("read").is_some());
    }

    #[test]
    fn a_store_in_use_says_so() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store.redb");
        let _store = Store::create(&path, &secret()).expect("made");
        assert!(matches!(Store::open(&path, &secret()), Err(StoreError::InUse { .. })));
    }

    #[test]
    fn a_store_that_another_process_gives_back_in_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store.redb");
        let store = Store::create(&path, &secret()).expect("made");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(200));
                drop(store);
            });
            Store::open(&path, &secret()).expect("it was given back");
        });
    }

    #[test]
    fn a_wrong_secret_is_told_from_damage() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store.redb");
        drop(Store::create(&path, &secret()).expect("made"));
        let other = Secret::from_bytes([8; 32]);
        assert!(matches!(Store::open(&path, &other), Err(StoreError::WrongSecret)));
    }

    #[test]
    fn a_store_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store.redb");
        drop(Store::create(&path, &secret()).expect("made"));
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
        assert!(Store::open(&path, &secret()).expect_err("refused").to_string().contains("chmod 600"));
    }

    #[test]
    fn what_a_crash_left_of_an_unfinished_store_is_no_obstacle() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store.redb");
        private::write(&dir.path().join("store.redb.new"), b"half a store").expect("written");
        Store::create(&path, &secret()).expect("made");
    }
}
