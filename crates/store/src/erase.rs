//! Erasing what a refresh has replaced. Old shares and common secrets must not be found any more by somebody
//! who breaks into the machine afterwards, and reads both the disk and the node's secret. A database leaves
//! their sealed bytes in its free pages. So all records are written to a new file, which takes the place of
//! the old one; the old one is overwritten with zeros and removed.
//!
//! A crash leaves the old file or the new one in place, both whole, and perhaps one of two others: `.new`,
//! which the next attempt begins again, or `.old`, which is overwritten at the next start ([`erase_left`]).
//! The record that says that this is due is in the old file only.
//!
//! This cannot reach blocks that the file system or the disk keeps aside: on file systems that copy on write,
//! in snapshots, and on flash memory. There only a disk that is encrypted as a whole, or a secret that is
//! kept elsewhere, protects what was deleted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use polyclave_config::private;
use redb::{Database, ReadableDatabase, ReadableTable};

use super::engine::file::{FileDatabase, contained, definition, failed, open};
use super::engine::{ERASE, Records, Table};
use super::{Result, Store, StoreError, builder};

impl Store {
    /// Erases what a refresh has replaced, if that is not yet done, and returns whether there was something.
    /// Nothing else is read or changed meanwhile.
    pub fn erase_replaced(&self) -> Result<bool> {
        if !self.engine.read(|records| records.holds(Table::Meta, ERASE))? {
            return Ok(false);
        }
        self.engine.erase_replaced()?;
        Ok(true)
    }
}

impl FileDatabase {
    /// Writes all records to a new file, which takes the place of the old one.
    pub(super) fn rewrite(&self) -> Result<()> {
        let mut current = self.database.write();
        let (Some(path), Some(database)) = (self.path.as_ref().map(Path::new), current.as_ref()) else {
            return Err(StoreError::Failed("a store without a file cannot be rewritten".into()));
        };
        contained(|| {
            erase_left(path)?;
            copy(database, path)
        })?;
        let io = |cause| StoreError::Io { path: path.into(), cause };
        fs::hard_link(path, beside(path, OLD)).map_err(io)?;
        fs::rename(beside(path, NEW), path).map_err(io)?;
        private::sync_dir(private::parent(path))?;
        // Until it is open again, every transaction tries that first.
        self.failed.store(true, Ordering::Release);
        let old = current.take();
        contained(|| {
            drop(old);
            Ok(())
        })?;
        *current = Some(open(&self.reopen, Some(path))?);
        self.failed.store(false, Ordering::Release);
        erase_left(path)
    }
}

/// Copies all records, as they are, except the one that says that this is due.
fn copy(database: &Database, path: &Path) -> Result<()> {
    let io = |cause| StoreError::Io { path: path.into(), cause };
    let new = beside(path, NEW);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&new);
    let file = file.map_err(io)?;
    private::check_mode(&file, &new)?;
    let fresh = open(|| builder().create_file(file), Some(path))?;
    let from = database.begin_read().map_err(failed)?;
    let mut to = fresh.begin_write().map_err(failed)?;
    to.set_quick_repair(true);
    for table in Table::ALL {
        let records = from.open_table(definition(table)).map_err(failed)?;
        let mut copies = to.open_table(definition(table)).map_err(failed)?;
        for record in records.iter().map_err(failed)? {
            let (key, value) = record.map_err(failed)?;
            if (table, key.value()) != (Table::Meta, ERASE) {
                copies.insert(key.value(), value.value()).map_err(failed)?;
            }
        }
    }
    to.commit().map_err(failed)
}

const NEW: &str = ".new";
const OLD: &str = ".old";

/// The path of a file beside the store.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Overwrites and removes the file that was replaced, if it is still there.
pub(super) fn erase_left(path: &Path) -> Result<()> {
    let old = beside(path, OLD);
    erase(path, &old).map_err(|cause| StoreError::Io { path: old, cause })?;
    Ok(private::sync_dir(private::parent(path))?)
}

/// Overwrites and removes the file of a store that was moved elsewhere.
pub(super) fn erase_file(path: &Path) -> Result<()> {
    let io = |cause| StoreError::Io { path: path.into(), cause };
    let mut file = OpenOptions::new().write(true).open(path).map_err(io)?;
    let len = file.metadata().map_err(io)?.len();
    zeros(&mut file, len).and_then(|()| fs::remove_file(path)).map_err(io)?;
    Ok(private::sync_dir(private::parent(path))?)
}

fn erase(path: &Path, old: &Path) -> io::Result<()> {
    let replaced = match fs::symlink_metadata(old) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    // After a crash before the new file took its place, this is another name of the store itself.
    let current = fs::metadata(path)?;
    if (replaced.dev(), replaced.ino()) != (current.dev(), current.ino()) {
        let mut file = OpenOptions::new().write(true).open(old)?;
        zeros(&mut file, replaced.len())?;
    }
    fs::remove_file(old)
}

fn zeros(file: &mut File, len: u64) -> io::Result<()> {
    let piece = vec![0; 1 << 20];
    let mut left = len;
    while left > 0 {
        let now = left.min(piece.len() as u64);
        file.write_all(&piece[..now as usize])?;
        left -= now;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::super::RefreshedKey;
    use super::super::testing::*;
    use super::*;

    const NEW_ID: [u8; 32] = [2; 32];

    fn holds(file: &[u8], bytes: &[u8]) -> bool {
        file.windows(bytes.len()).any(|window| window == bytes)
    }

    /// A store in a file, with a key that was refreshed, and the sealed shares of it from before.
    fn refreshed(path: &Path) -> (Store, Vec<u8>) {
        let store = Store::create(path, &secret()).expect("made");
        store.put_setup([1; 32], 1, b"old", true).expect("put");
        store.put_pending(&key("k", 1)).expect("put");
        store.announce("k", [1; 16]).expect("announced");
        let sealed = store.engine.read(|records| records.sealed(Table::Shares, &[1; 16]));
        let shares = [("round keys".to_owned(), Zeroizing::new(vec![9; 40]))].into_iter().collect();
        store.prepare_keys(0, &[RefreshedKey { name: "k".into(), id: [1; 16], shares }]).expect("prepared");
        store.prepare_refresh(NEW_ID, b"new").expect("prepared");
        store.commit_refresh(NEW_ID, 5).expect("committed");
        (store, sealed.expect("read").expect("there"))
    }

    fn is_right(store: &Store) {
        assert_eq!(store.setup().expect("read").expect("there").id, NEW_ID);
        let key = store.key("k").expect("read").expect("announced");
        assert_eq!(*key.shares["round keys"], vec![9; 40]);
    }

    #[test]
    fn what_a_refresh_has_replaced_is_in_no_file_any_more() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store.redb");
        let (store, old) = refreshed(&path);
        assert!(holds(&fs::read(&path).expect("read"), &old), "it is in a free page");
        let second = dir.path().join("second name");
        fs::hard_link(&path, &second).expect("linked");
        assert!(store.erase_replaced().expect("erased"));
        assert!(!store.erase_replaced().expect("nothing is due"));
        assert!(
            fs::read(&second).expect("read").iter().all(|byte| *byte == 0),
            "the old file is overwritten"
        );
        for entry in fs::read_dir(dir.path()).expect("a directory") {
            assert!(!holds(&fs::read(entry.expect("an entry").path()).expect("read"), &old));
        }
        is_right(&store);
        store.delete("k", [1; 16]).expect("it can be changed");
        drop(store);
        let store = Store::open(&path, &secret()).expect("opened");
        assert_eq!(store.count().expect("read"), 0);
        assert!(!beside(&path, OLD).exists() && !beside(&path, NEW).exists());
    }

    #[test]
    fn what_a_crash_leaves_beside_the_store_is_erased_at_the_next_start() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store.redb");
        drop(refreshed(&path));
        // Before the new file took its place: a second name, and half a copy.
        fs::hard_link(&path, beside(&path, OLD)).expect("linked");
        private::write(&beside(&path, NEW), b"half a store").expect("written");
        let store = Store::open(&path, &secret()).expect("opened");
        is_right(&store);
        assert!(!beside(&path, OLD).exists());
        assert!(store.erase_replaced().expect("it is still due"));
        drop(store);
        // After that: the old file.
        fs::write(beside(&path, OLD), b"what was replaced").expect("written");
        fs::hard_link(beside(&path, OLD), dir.path().join("second name")).expect("linked");
        is_right(&Store::open(&path, &secret()).expect("opened"));
        assert_eq!(fs::read(dir.path().join("second name")).expect("read"), vec![0; 17]);
        assert!(!beside(&path, OLD).exists());
    }
}
