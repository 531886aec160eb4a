//! Writing and reading files so that a crash leaves the old or the new, and that what is private stays so.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use polyclave_protocol::session::random_bytes;
use zeroize::{Zeroize, Zeroizing};

use crate::{Error, Result};

const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// The largest file that is read whole.
const MOST_BYTES: u64 = 16 << 20;

/// A file on its way: it gets its name, and replaces an older one, when it is committed. Dropped before, it is gone.
#[derive(Debug)]
pub struct Draft {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    committed: bool,
}

impl Draft {
    /// One that only its owner can read.
    pub fn private(path: &Path) -> Result<Draft> {
        Draft::create(path, PRIVATE)
    }

    /// One that everybody can read.
    pub fn public(path: &Path) -> Result<Draft> {
        Draft::create(path, PUBLIC)
    }

    fn create(path: &Path, mode: u32) -> Result<Draft> {
        let name = path.file_name().ok_or_else(|| Error::malformed(path, "is not the name of a file"))?;
        let mut salt = [0; 8];
        random_bytes(&mut salt).map_err(|e| Error::malformed(path, e.to_string()))?;
        let temporary = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), hex::encode(salt)));
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary);
        let file = file.map_err(Error::io(path, "write"))?;
        Ok(Draft { file, temporary, path: path.into(), committed: false })
    }

    /// Where it is until then: to be removed by who ends the program without dropping this.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Makes what was written durable under its name.
    pub fn commit(mut self) -> Result<()> {
        self.file.sync_all().map_err(Error::io(&self.path, "write"))?;
        fs::rename(&self.temporary, &self.path).map_err(Error::io(&self.path, "write"))?;
        self.committed = true;
        sync_dir(parent(&self.path))
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
        if !self.committed {
            // Nothing can be done if this fails, too; its name says that it is temporary.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes a file that only its owner can read.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_draft(Draft::private(path)?, bytes)
}

/// Writes a file that everybody can read.
pub fn write_public(path: &Path, bytes: &[u8]) -> Result<()> {
    write_draft(Draft::public(path)?, bytes)
}

fn write_draft(mut draft: Draft, bytes: &[u8]) -> Result<()> {
    let path = draft.path.clone();
    draft.write_all(bytes).map_err(Error::io(&path, "write"))?;
    draft.commit()
}

/// Opens a private file for reading, unless others could have read it.
pub fn open(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(Error::io(path, "read"))?;
    check_mode(&file, path)?;
    Ok(file)
}

/// Refuses an open file that others can read or write.
pub fn check_mode(file: &File, path: &Path) -> Result<()> {
    let mode = file.metadata().map_err(Error::io(path, "read"))?.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(Error::Exposed { path: path.into(), mode }) }
}

/// Reads a private file whole, unless others could have read it.
pub fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    read_all(open(path)?, path)
}

/// Reads a file that is no secret.
pub(crate) fn read_public(path: &Path) -> Result<String> {
    let file = File::open(path).map_err(Error::io(path, "read"))?;
    let mut bytes = read_all(file, path)?;
    String::from_utf8(std::mem::take(&mut *bytes)).map_err(|_| Error::malformed(path, "is not text"))
}

fn read_all(file: File, path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let len = file.metadata().map_err(Error::io(path, "read"))?.len();
    if len > MOST_BYTES {
        return Err(Error::malformed(path, format!("is too large ({len} bytes) to be what it should be")));
    }
    // Room for all, so that no copy stays behind when it grows.
    let mut bytes = Zeroizing::new(Vec::with_capacity(len as usize + 1));
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
    Ok(bytes)
}

/// Makes a directory that only its owner can enter. It must not be there; its parent must.
pub fn make_dir(path: &Path) -> Result<()> {
    DirBuilder::new().mode(0o700).create(path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists { path: path.into() },
        _ => Error::Io { path: path.into(), doing: "make the directory", source },
    })?;
    sync_dir(parent(path))
}

/// Makes renames and removals in a directory durable.
pub fn sync_dir(path: &Path) -> Result<()> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(Error::io(path, "sync the directory"))
}

/// The directory that a file is in.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Draws 32 bytes and keeps them, in hexadecimal, in a private file that must not be there yet.
pub fn generate_secret(path: &Path) -> Result<Zeroizing<[u8; 32]>> {
    if path.symlink_metadata().is_ok() {
        return Err(Error::Exists { path: path.into() });
    }
    let mut secret = Zeroizing::new([0; 32]);
    random_bytes(&mut *secret).map_err(|e| Error::malformed(path, e.to_string()))?;
    let mut text = Zeroizing::new([0; 65]);
    hex::encode_to_slice(*secret, &mut text[..64]).expect("twice as long");
    text[64] = b'\n';
    write(path, &*text)?;
    Ok(secret)
}

/// Reads what [`generate_secret`] wrote.
pub fn load_secret(path: &Path) -> Result<Zeroizing<[u8; 32]>> {
    let text = read(path)?;
    let mut secret = Zeroizing::new([0; 32]);
    hex::decode_to_slice(text.trim_ascii(), &mut *secret).map_err(|_| {
        secret.zeroize();
        Error::malformed(path, "is not 64 hexadecimal digits; restore it from a copy")
    })?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn private_files_and_directories_are_their_owners() {
        let dir = tempfile::tempdir().expect("a directory");
        let (inner, file) = (dir.path().join("d"), dir.path().join("d/f"));
        make_dir(&inner).expect("made");
        write(&file, b"one").expect("written");
        write(&file, b"two").expect("replaced");
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
        assert_eq!(*read(&file).expect("read"), b"two");
        assert_eq!(fs::read_dir(&inner).expect("a directory").count(), 1, "nothing temporary is left");
    }

    #[test]
    fn a_private_file_that_others_can_read_is_refused_with_advice() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("f");
        write(&file, b"secret").expect("written");
        for exposed in [0o640, 0o604, 0o620, 0o660] {
            fs::set_permissions(&file, fs::Permissions::from_mode(exposed)).expect("set");
            let error = read(&file).expect_err("refused").to_string();
            assert!(error.contains("chmod 600") && error.contains("/f"), "{error}");
        }
    }

    #[test]
    fn a_draft_that_is_not_committed_leaves_the_old_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("f");
        write(&file, b"old").expect("written");
        let mut draft = Draft::private(&file).expect("begun");
        draft.write_all(b"half").expect("written");
        drop(draft);
        assert_eq!(*read(&file).expect("read"), b"old");
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn a_secret_comes_back_and_is_never_overwritten() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("secret.key");
        let secret = generate_secret(&file).expect("made");
        assert_eq!(load_secret(&file).expect("read"), secret);
        assert!(matches!(generate_secret(&file), Err(Error::Exists { .. })));
        write(&file, b"beef").expect("written");
        assert!(load_secret(&file).is_err());
    }
}
