//! A file that is being written. It gets its name when it is committed, complete and synced to the disk;
//! before that it has none.
//!
//! The file is made without a name (`O_TMPFILE`), so that the system removes it however the program ends,
//! even by `kill -9`. It has a temporary name if the file system has no such files, and at the moment in
//! which it takes the place of another file. Then it is locked as long as its program lives, and the next
//! program that writes to the same place removes those that nobody locks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use polyclave_protocol::session::random_bytes;
use rustix::fs::{AtFlags, CWD, OFlags, linkat};

use super::{parent, sync_dir};
use crate::{Error, Result};

const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;
/// The number of random bytes that distinguish temporary names.
const SALT: usize = 8;

/// A file that is being written. When it is committed, it gets its name and replaces an older file. If it is
/// dropped before, it is gone.
#[derive(Debug)]
pub struct Draft {
    file: File,
    /// Its temporary name, if it has one.
    temporary: Option<PathBuf>,
    path: PathBuf,
}

impl Draft {
    /// A draft of a file that only its owner can read.
    pub fn private(path: &Path) -> Result<Draft> {
        Draft::create(path, PRIVATE)
    }

    /// A draft of a file that everybody can read.
    pub fn public(path: &Path) -> Result<Draft> {
        Draft::create(path, PUBLIC)
    }

    fn create(path: &Path, mode: u32) -> Result<Draft> {
        if path.file_name().is_none() {
            return Err(Error::malformed(path, "is not the name of a file"));
        }
        sweep(path);
        match without_name(path, mode) {
            Ok(file) => Ok(Draft { file, temporary: None, path: path.into() }),
            // What is really wrong shows again.
            Err(_) => Draft::named(path, mode),
        }
    }

    fn named(path: &Path, mode: u32) -> Result<Draft> {
        let temporary = temporary_name(path)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary);
        let file = file.map_err(Error::io(path, "write"))?;
        let draft = Draft { file, temporary: Some(temporary), path: path.into() };
        // Where there are no locks, none is swept away either.
        let _ = draft.file.try_lock();
        Ok(draft)
    }

    /// The path that the file will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The temporary path, if it has one. Code that ends the program without dropping this has to remove that
    /// file.
    pub fn temporary(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    /// Makes what was written durable under its name.
    pub fn commit(mut self) -> Result<()> {
        self.file.sync_all().map_err(Error::io(&self.path, "write"))?;
        if self.temporary.is_some() || !self.take_free_name()? {
            let temporary = match self.temporary.clone() {
                Some(temporary) => temporary,
                None => self.take_temporary_name()?,
            };
            fs::rename(&temporary, &self.path).map_err(Error::io(&self.path, "write"))?;
            self.temporary = None;
        }
        sync_dir(parent(&self.path))
    }

    /// Gives the file its final name, unless another file has that name.
    fn take_free_name(&self) -> Result<bool> {
        match link(&self.file, &self.path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(Error::io(&self.path, "write")(e)),
        }
    }

    fn take_temporary_name(&mut self) -> Result<PathBuf> {
        let temporary = temporary_name(&self.path)?;
        let _ = self.file.try_lock();
        link(&self.file, &temporary).map_err(Error::io(&self.path, "write"))?;
        self.temporary = Some(temporary.clone());
        Ok(temporary)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing can be done if this fails, too. The next write to this place tries again.
            let _ = fs::remove_file(temporary);
        }
    }
}

fn without_name(path: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::TMPFILE.bits() as i32;
    OpenOptions::new().write(true).mode(mode).custom_flags(flags).open(parent(path))
}

/// Gives this name to an open file that has none.
fn link(file: &File, name: &Path) -> io::Result<()> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// `.NAME.SALT.tmp` beside the file.
fn temporary_name(path: &Path) -> Result<PathBuf> {
    let mut salt = [0; SALT];
    random_bytes(&mut salt).map_err(|e| Error::malformed(path, e.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(path.with_file_name(format!(".{name}.{}.tmp", hex::encode(salt))))
}

/// Removes files that killed programs left here while they wrote this file.
fn sweep(path: &Path) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_salt = |salt: &str| salt.len() == 2 * SALT && salt.bytes().all(|b| b.is_ascii_hexdigit());
    let is_left = |found: &str| {
        let salt = found.strip_prefix('.').and_then(|rest| rest.strip_prefix(&*name)?.strip_prefix('.'));
        salt.and_then(|salt| salt.strip_suffix(".tmp")).is_some_and(is_salt)
    };
    let Ok(entries) = fs::read_dir(parent(path)) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_left)) {
        // Locked: somebody is at work on it.
        if File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("a directory").flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_draft_that_is_not_committed_leaves_the_old_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("f");
        fs::write(&file, b"old").expect("written");
        for make in [Draft::create, Draft::named] {
            let mut draft = make(&file, PRIVATE).expect("begun");
            draft.write_all(b"half").expect("written");
            drop(draft);
            assert_eq!(
                (fs::read(&file).expect("read"), names(dir.path())),
                (b"old".to_vec(), vec!["f".into()])
            );
        }
    }

    #[test]
    fn a_file_on_its_way_has_no_name_so_that_none_is_left_when_the_program_is_killed() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut draft = Draft::private(&dir.path().join("f")).expect("begun");
        draft.write_all(b"half").expect("written");
        // File systems without such files: see the next test.
        assert!(draft.temporary().is_some() || names(dir.path()).is_empty());
    }

    #[test]
    fn what_a_killed_program_left_is_swept_away_and_what_lives_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("f");
        let (dead, foreign) = (".f.0123456789abcdef.tmp", ".f.mine.tmp");
        [dead, foreign].iter().for_each(|name| fs::write(dir.path().join(name), b"half").expect("written"));
        let alive = Draft::named(&file, PUBLIC).expect("begun");
        let alive_name =
            alive.temporary().and_then(Path::file_name).expect("named").to_string_lossy().into_owned();
        Draft::public(&file).expect("begun").commit().expect("committed");
        let mut left = vec![alive_name, foreign.into(), "f".into()];
        left.sort();
        assert_eq!(names(dir.path()), left);
        alive.commit().expect("it is still there");
    }

    #[test]
    fn a_committed_file_is_whole_has_its_mode_and_replaces_another() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("f");
        for (make, mode, text) in [
            (Draft::create as fn(&Path, u32) -> Result<Draft>, PUBLIC, "one"),
            (Draft::create, PRIVATE, "two"),
            (Draft::named, PRIVATE, "three"),
        ] {
            let mut draft = make(&file, mode).expect("begun");
            draft.write_all(text.as_bytes()).expect("written");
            draft.commit().expect("committed");
            assert_eq!(fs::read_to_string(&file).expect("read"), text);
            assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, mode);
            assert_eq!(names(dir.path()), ["f"]);
        }
    }
}
