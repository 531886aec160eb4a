//! Backups: one sealed file with everything in a node's directory.
//!
//! Inside are frames (four bytes of length and a postcard encoding): the files as they are, then the records of the store,
//! sealed as they are in it, then the number of frames. The records are of one moment. The store can be used meanwhile.
//!
//! A backup has the node's identity and its shares: under its key it is worth what the node's disk is worth. A node that is
//! restored counts its starts from where the backup was made, so its peers refuse it until they readmit it; what was spent
//! of budgets since is known to the other nodes only.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use polyclave_config::private::{self, Draft};
use polyclave_config::{KeptFile, NodeDir};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::engine::{Table, encode};
use super::seal::Seal;
use super::stream::{Opening, Sealing};
use super::{Result, Secret, Store, StoreError};

/// Bytes of a file in one frame.
const PIECE: usize = 64 << 10;

/// The largest frame: a key with all its shares fits.
const MOST_FRAME: u64 = 256 << 20;

#[derive(Serialize, Deserialize)]
enum Frame<'a> {
    /// A file begins.
    File(&'a str),
    /// It goes on.
    Piece(&'a [u8]),
    /// A table begins.
    Table(&'a str),
    /// A record of it, sealed.
    Record(&'a [u8], &'a [u8]),
    /// After so many frames.
    End(u64),
}

impl Store {
    /// Writes a backup of the node whose store this is.
    pub fn backup(&self, node: &NodeDir, path: &Path, key: &Secret) -> Result<()> {
        let io = |source| StoreError::Io { path: path.into(), source };
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path: path.into() });
        }
        // The records first: what the files say is then not older than what the store says of them.
        self.engine.read(|records| {
            let sealing = Sealing::new(BufWriter::new(Draft::private(path)?), key).map_err(io)?;
            let mut frames = Frames { sealing, written: 0 };
            for kept in NodeDir::KEPT {
                frames.file(node, kept).map_err(io)?;
            }
            for table in Table::ALL {
                frames.put(&Frame::Table(table.name())).map_err(io)?;
                records.each_sealed(table, |record, sealed| {
                    frames.put(&Frame::Record(record, sealed)).map_err(io)
                })?;
            }
            let end = Frame::End(frames.written);
            frames.put(&end).map_err(io)?;
            let draft = frames.sealing.finish().map_err(io)?.into_inner().map_err(|e| io(e.into_error()))?;
            Ok(draft.commit()?)
        })
    }
}

/// A backup that is being written.
struct Frames<W: Write> {
    sealing: Sealing<W>,
    written: u64,
}

impl<W: Write> Frames<W> {
    fn put(&mut self, frame: &Frame) -> io::Result<()> {
        let room = match frame {
            Frame::Piece(bytes) | Frame::Record(_, bytes) => bytes.len() + 512,
            _ => 512,
        };
        let bytes = encode(frame, room).map_err(io::Error::other)?;
        self.sealing.write_all(&(bytes.len() as u32).to_le_bytes())?;
        self.sealing.write_all(&bytes)?;
        self.written += 1;
        Ok(())
    }

    fn file(&mut self, node: &NodeDir, kept: KeptFile) -> io::Result<()> {
        let path = node.path().join(kept.name);
        let opened = if kept.private && path.exists() {
            private::open(&path).map_err(io::Error::other)
        } else {
            File::open(&path)
        };
        let file = match opened {
            Err(e) if e.kind() == io::ErrorKind::NotFound && !kept.needed => return Ok(()),
            opened => opened?,
        };
        self.put(&Frame::File(kept.name))?;
        // Not further than it reaches now: the audit log grows.
        let len = file.metadata()?.len();
        let mut file = file.take(len);
        let mut piece = Zeroizing::new(vec![0; PIECE]);
        loop {
            let n = file.read(&mut piece)?;
            if n == 0 {
                return Ok(());
            }
            self.put(&Frame::Piece(&piece[..n]))?;
        }
    }
}

/// Restores a node from a backup into a directory that must not be there yet. Everything is verified before anything is
/// written, and the directory appears when it is whole.
pub fn restore(file: &Path, key: &Secret, dir: &Path) -> Result<()> {
    if dir.symlink_metadata().is_ok() {
        return Err(StoreError::Exists { path: dir.into() });
    }
    verify(file, key)?;
    let name = dir.file_name().ok_or_else(|| StoreError::Missing { path: dir.into() })?;
    let staging = dir.with_file_name(format!(".{}.{}.restoring", name.to_string_lossy(), std::process::id()));
    private::make_dir(&staging)?;
    let staged = unpack(file, key, &staging).and_then(|()| {
        NodeDir::open(&staging)?;
        let io = |source| StoreError::Io { path: dir.into(), source };
        fs::rename(&staging, dir).map_err(io)?;
        Ok(private::sync_dir(private::parent(dir))?)
    });
    if staged.is_err() {
        // Best effort: the first error is the one that matters.
        let _ = fs::remove_dir_all(&staging);
    }
    staged
}

/// Reads a backup whole: every frame is authentic, known and complete, and every record opens under the node's secret.
fn verify(file: &Path, key: &Secret) -> Result<()> {
    let mut files = Vec::new();
    let mut secret = Zeroizing::new(Vec::with_capacity(128));
    let mut records: Option<(Table, Seal)> = None;
    let mut marked = false;
    each_frame(file, key, |frame| {
        match frame {
            Frame::File(name) => {
                if kept(name).is_none() || files.contains(&name.to_owned()) || records.is_some() {
                    return Err(damaged(file));
                }
                files.push(name.to_owned());
            }
            Frame::Piece(bytes) => match files.last() {
                Some(name) if records.is_none() => {
                    if name == "secret.key" {
                        secret.extend_from_slice(bytes);
                    }
                }
                _ => return Err(damaged(file)),
            },
            Frame::Table(name) => {
                let table = table(name).ok_or_else(|| damaged(file))?;
                let mut bytes = Zeroizing::new([0; 32]);
                hex::decode_to_slice(secret.trim_ascii(), &mut *bytes).map_err(|_| damaged(file))?;
                records = Some((table, Seal::new(&bytes.into())));
            }
            Frame::Record(record, sealed) => {
                let (table, seal) = records.as_ref().ok_or_else(|| damaged(file))?;
                seal.open(table.name(), record, sealed)?;
                marked |= *table == Table::Meta && record == super::MARKER;
            }
            Frame::End(_) => {}
        }
        Ok(())
    })?;
    let whole =
        NodeDir::KEPT.iter().filter(|kept| kept.needed).all(|kept| files.iter().any(|f| f == kept.name));
    if whole && marked { Ok(()) } else { Err(damaged(file)) }
}

/// Writes what is in a verified backup.
fn unpack(file: &Path, key: &Secret, staging: &Path) -> Result<()> {
    let mut draft: Option<(PathBuf, Draft)> = None;
    let mut engine = None;
    let mut batch: Vec<(Table, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut current = Table::Meta;
    each_frame(file, key, |frame| {
        match frame {
            Frame::File(name) => {
                commit(draft.take())?;
                let path = staging.join(name);
                let private = kept(name).is_some_and(|kept| kept.private);
                let begun = if private { Draft::private(&path)? } else { Draft::public(&path)? };
                draft = Some((path, begun));
            }
            Frame::Piece(bytes) => {
                let (path, draft) = draft.as_mut().ok_or_else(|| damaged(file))?;
                draft.write_all(bytes).map_err(|source| StoreError::Io { path: path.clone(), source })?;
            }
            Frame::Table(name) => {
                commit(draft.take())?;
                current = table(name).ok_or_else(|| damaged(file))?;
                if engine.is_none() {
                    let secret = Secret::load_file(&staging.join("secret.key"))?;
                    engine = Some(Store::create(&staging.join("store.redb"), &secret)?);
                }
            }
            Frame::Record(record, sealed) => {
                batch.push((current, record.to_vec(), sealed.to_vec()));
                if batch.len() >= 1000 {
                    put(engine.as_ref(), &mut batch)?;
                }
            }
            Frame::End(_) => put(engine.as_ref(), &mut batch)?,
        }
        Ok(())
    })
}

fn put(store: Option<&Store>, batch: &mut Vec<(Table, Vec<u8>, Vec<u8>)>) -> Result<()> {
    let store = store.ok_or_else(|| StoreError::corrupt("the backup"))?;
    store.engine.write(|changes| {
        batch.iter().try_for_each(|(table, record, sealed)| changes.put_sealed(*table, record, sealed))
    })?;
    batch.clear();
    Ok(())
}

fn commit(draft: Option<(PathBuf, Draft)>) -> Result<()> {
    draft.map_or(Ok(()), |(_, draft)| Ok(draft.commit()?))
}

/// Reads the frames of a backup in order. All are authentic; the last is an end after the right number of them.
fn each_frame(file: &Path, key: &Secret, mut work: impl FnMut(Frame) -> Result<()>) -> Result<()> {
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            StoreError::corrupt(format!("the backup {} ({source})", file.display()))
        }
        _ => StoreError::Io { path: file.into(), source },
    };
    let mut opening = Opening::new(BufReader::new(File::open(file).map_err(io)?), key).map_err(io)?;
    for number in 0.. {
        let mut len = [0; 4];
        opening.read_exact(&mut len).map_err(io)?;
        let len = u64::from(u32::from_le_bytes(len));
        if len > MOST_FRAME {
            return Err(damaged(file));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(len as usize));
        (&mut opening).take(len).read_to_end(&mut bytes).map_err(io)?;
        let (frame, rest) = postcard::take_from_bytes(&bytes).map_err(|_| damaged(file))?;
        if !rest.is_empty() {
            return Err(damaged(file));
        }
        let end = if let Frame::End(frames) = frame { Some(frames) } else { None };
        work(frame)?;
        if let Some(frames) = end {
            let ended = opening.read(&mut [0]).map_err(io)? == 0;
            return if frames == number && ended { Ok(()) } else { Err(damaged(file)) };
        }
    }
    Err(damaged(file))
}

fn kept(name: &str) -> Option<KeptFile> {
    NodeDir::KEPT.into_iter().find(|kept| kept.name == name)
}

fn table(name: &str) -> Option<Table> {
    Table::ALL.into_iter().find(|table| table.name() == name)
}

fn damaged(file: &Path) -> StoreError {
    StoreError::corrupt(format!("the backup {}", file.display()))
}

#[cfg(test)]
mod tests {
    use polyclave_config::NodeSettings;

    use super::super::testing::key;
    use super::*;

    struct Made {
        dir: tempfile::TempDir,
        node: NodeDir,
        store: Store,
    }

    impl Made {
        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }
    }

    fn backup_key() -> Secret {
        Secret::from_bytes([3; 32])
    }

    /// A node with two announced keys, one pending key and a long audit log, and a backup of it.
    fn made() -> Made {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("node");
        let settings = NodeSettings::new("a", "a.example:1", "a.example:2");
        NodeDir::init(&path, &settings, &[0x30, 1, 2, 3], &[0x30, 4, 5, 6]).expect("made");
        let node = NodeDir::open(&path).expect("opened");
        private::write(&node.audit_path(), &vec![b'x'; 200_000]).expect("written");
        let secret = node.secret().expect("read").into();
        let store = Store::create(&node.store_path(), &secret).expect("made");
        for (name, seed) in [("one", 1), ("two", 2), ("three", 3)] {
            store.put_pending(&key(name, seed)).expect("put");
        }
        store.announce("one", [1; 16]).expect("announced");
        store.announce("two", [2; 16]).expect("announced");
        store.backup(&node, &dir.path().join("backup"), &backup_key()).expect("backed up");
        Made { dir, node, store }
    }

    #[test]
    fn a_restored_node_has_everything_of_the_moment() {
        let made = made();
        made.store.delete("one", [1; 16]).expect("deleted");
        let path = made.path("restored");
        restore(&made.path("backup"), &backup_key(), &path).expect("restored");
        let node = NodeDir::open(&path).expect("opened");
        assert_eq!(node.identity(), made.node.identity());
        assert_eq!(fs::read(node.audit_path()).expect("read"), vec![b'x'; 200_000]);
        let store = Store::open(&node.store_path(), &node.secret().expect("read").into()).expect("opened");
        assert_eq!(store.count().expect("read"), 2);
        let one = store.key("one").expect("read").expect("there");
        assert_eq!(one.shares, key("one", 1).shares);
        assert!(store.pending_key("three").expect("read").is_some());
    }

    #[test]
    fn nothing_is_written_over_and_nothing_of_a_damaged_backup() {
        let made = made();
        let path = made.path("restored");
        let again = made.store.backup(&made.node, &made.path("backup"), &backup_key());
        assert!(matches!(again, Err(StoreError::Exists { .. })));
        let existing = restore(&made.path("backup"), &backup_key(), made.node.path());
        assert!(matches!(existing, Err(StoreError::Exists { .. })));
        let wrong = restore(&made.path("backup"), &Secret::from_bytes([4; 32]), &path);
        assert!(matches!(wrong, Err(StoreError::Corrupt { .. })));
        let bytes = fs::read(made.path("backup")).expect("read");
        let before = fs::read_dir(made.dir.path()).expect("a directory").count();
        for at in [0, 20, 40, bytes.len() / 2, bytes.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            fs::write(made.path("backup"), &flipped).expect("written");
            let error = restore(&made.path("backup"), &backup_key(), &path);
            assert!(matches!(error, Err(StoreError::Corrupt { .. })), "{at}");
        }
        for len in [0, 10, 32, 1000, 32 + (64 << 10) + 16, bytes.len() - 1] {
            fs::write(made.path("backup"), &bytes[..len]).expect("written");
            let error = restore(&made.path("backup"), &backup_key(), &path);
            assert!(matches!(error, Err(StoreError::Corrupt { .. })), "{len}");
        }
        assert!(!path.exists());
        assert_eq!(fs::read_dir(made.dir.path()).expect("a directory").count(), before);
    }

    #[test]
    fn a_backup_shows_nothing_and_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let made = made();
        let bytes = fs::read(made.path("backup")).expect("read");
        assert!(!bytes.windows(9).any(|w| w == b"xxxxxxxxx" || w == b"node.toml"));
        let mode = fs::metadata(made.path("backup")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_backup_can_be_made_while_keys_are_made() {
        let made = made();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (10..40).for_each(|i| made.store.put_pending(&key(&format!("n{i}"), i)).expect("put"))
            });
            for i in 0..5 {
                let (file, dir) = (made.path(&format!("b{i}")), made.path(&format!("r{i}")));
                made.store.backup(&made.node, &file, &backup_key()).expect("backed up");
                restore(&file, &backup_key(), &dir).expect("restored");
            }
        });
    }

    #[test]
    fn a_backup_key_comes_back_from_its_file() {
        let made = made();
        let file = made.path("backup.key");
        let key = Secret::generate_file(&file).expect("made");
        assert!(Secret::generate_file(&file).is_err());
        made.store.backup(&made.node, &made.path("other"), &key).expect("backed up");
        let key = Secret::load_file(&file).expect("read");
        restore(&made.path("other"), &key, &made.path("restored")).expect("restored");
    }
}
