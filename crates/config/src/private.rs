//! Writes and reads files safely: after a crash a file is the old one or the new one, and only its owner can
//! read a private file.

mod draft;

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use polyclave_protocol::session::random_bytes;
use rustix::process::geteuid;
use zeroize::{Zeroize, Zeroizing};

use crate::{Error, Result};

pub use draft::Draft;

/// The largest file that is read whole.
const MAX_BYTES: u64 = 16 << 20;

/// Writes a file that only its owner can read.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_draft(Draft::private(path)?, bytes)
}

/// Writes a file that everybody can read.
pub fn write_public(path: &Path, bytes: &[u8]) -> Result<()> {
    write_draft(Draft::public(path)?, bytes)
}

fn write_draft(mut draft: Draft, bytes: &[u8]) -> Result<()> {
    let path = draft.path().to_path_buf();
    draft.write_all(bytes).map_err(Error::io(&path, "write"))?;
    draft.commit()
}

/// Opens a private file for reading, unless others could have read it.
pub fn open(path: &Path) -> Result<File> {
    let file = open_file(path)?;
    check_mode(&file, path)?;
    Ok(file)
}

/// A directory can be opened like a file, and then every error about it would mislead.
fn open_file(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(Error::io(path, "read"))?;
    let is_dir = file.metadata().map_err(Error::io(path, "read"))?.is_dir();
    if is_dir { Err(Error::malformed(path, "is a directory; give a file")) } else { Ok(file) }
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

/// Reads a file that is not secret.
pub(crate) fn read_public(path: &Path) -> Result<String> {
    let mut bytes = read_all(open_file(path)?, path)?;
    String::from_utf8(std::mem::take(&mut *bytes)).map_err(|_| Error::malformed(path, "is not text"))
}

fn read_all(file: File, path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let len = file.metadata().map_err(Error::io(path, "read"))?.len();
    if len > MAX_BYTES {
        return Err(Error::malformed(path, format!("is too large ({len} bytes) to be what it should be")));
    }
    // Room for all, so that no copy stays behind when it grows.
    let mut bytes = Zeroizing::new(Vec::with_capacity(len as usize + 1));
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
    Ok(bytes)
}

/// Makes a directory that only its owner can enter. It must not exist yet; its parent must.
pub fn make_dir(path: &Path) -> Result<()> {
    DirBuilder::new().mode(0o700).create(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists { path: path.into() },
        _ => Error::Io { path: path.into(), doing: "make the directory", cause },
    })?;
    sync_dir(parent(path))
}

/// Makes a directory, or takes one that is there, if it is empty and belongs to this user. Packages and
/// service managers make such ones.
pub fn make_or_take_dir(path: &Path) -> Result<()> {
    match make_dir(path) {
        Err(Error::Exists { .. }) if is_own_and_empty(path)? => {
            fs::set_permissions(path, Permissions::from_mode(0o700))
                .map_err(Error::io(path, "close to others"))
        }
        made => made,
    }
}

/// Whether a path is an empty directory that belongs to this user.
pub fn is_own_and_empty(path: &Path) -> Result<bool> {
    let Ok(found) = path.metadata() else { return Ok(false) };
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return Ok(false);
    }
    Ok(fs::read_dir(path).map_err(Error::io(path, "read"))?.next().is_none())
}

/// Makes renames and removals in a directory durable.
pub fn sync_dir(path: &Path) -> Result<()> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(Error::io(path, "sync the directory"))
}

/// The directory that a file is in.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Draws 32 bytes and stores them, in hexadecimal, in a private file that must not exist yet.
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
    fn an_empty_directory_of_this_user_is_taken_and_closed_and_no_other_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let (new, own, full) = (dir.path().join("new"), dir.path().join("own"), dir.path().join("full"));
        for made in [&own, &full] {
            fs::create_dir(made).expect("made");
            fs::set_permissions(made, Permissions::from_mode(0o755)).expect("set");
        }
        fs::write(full.join(".profile"), b"").expect("written");
        for taken in [&new, &own] {
            make_or_take_dir(taken).expect("it is made or taken");
            assert_eq!(mode(taken), 0o700);
        }
        assert!(matches!(make_or_take_dir(&full), Err(Error::Exists { .. })));
        assert_eq!(mode(&full), 0o755, "what is not taken is left as it is");
        // Root owns this one. If root runs this test, it is full.
        assert!(!is_own_and_empty(Path::new("/")).expect("it can be read"));
    }

    #[test]
    fn a_private_file_that_others_can_read_is_refused_with_advice() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("f");
        write(&file, b"secret").expect("written");
        for exposed in [0o640, 0o604, 0o620, 0o660] {
            fs::set_permissions(&file, Permissions::from_mode(exposed)).expect("set");
            let error = read(&file).expect_err("refused").to_string();
            assert!(error.contains("chmod 600") && error.contains("/f"), "{error}");
        }
    }

    #[test]
    fn a_directory_in_place_of_a_file_is_called_that() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("set");
        for error in
            [read(dir.path()).map(drop), load_secret(dir.path()).map(drop), read_public(dir.path()).map(drop)]
        {
            let error = error.expect_err("no file").to_string();
            assert!(error.contains("is a directory; give a file") && !error.contains("chmod"), "{error}");
        }
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
