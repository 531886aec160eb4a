//! A file that is read again when it has changed. If it cannot be read, or says nothing that can be used,
//! what it said before stays in force.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::mark::Mark;

/// See the [module](self).
pub(super) struct Watched<T> {
    path: PathBuf,
    /// The most bytes that it may have.
    most: usize,
    parse: fn(&[u8]) -> Result<T, String>,
    last: Mutex<Last<T>>,
}

/// What was read last.
struct Last<T> {
    mark: Option<Mark>,
    bytes: [u8; 32],
    value: Arc<T>,
}

impl<T> Watched<T> {
    /// Reads a file. An error says what is wrong with it.
    pub(super) fn read(
        path: &Path,
        most: usize,
        parse: fn(&[u8]) -> Result<T, String>,
    ) -> Result<Watched<T>, String> {
        // Before it is read: a change meanwhile is noticed the next time.
        let mark = Mark::of(path);
        let bytes = read(path, most).map_err(unread)?;
        let value = Arc::new(parsed(&bytes, most, parse)?);
        let last = Last { mark, bytes: hash(&bytes), value };
        Ok(Watched { path: path.into(), most, parse, last: Mutex::new(last) })
    }

    /// What it says now. It is the same value if it has the same bytes.
    pub(super) fn present(&self) -> Arc<T> {
        self.look_again(|path| read(path, self.most))
    }

    fn look_again(&self, read: impl FnOnce(&Path) -> io::Result<Vec<u8>>) -> Arc<T> {
        let mark = Mark::of(&self.path);
        let mut last = self.last.lock();
        if mark != last.mark {
            // One that cannot be read now is tried again the next time.
            let new = read(&self.path).map_err(unread).and_then(|bytes| {
                last.mark = mark;
                match hash(&bytes) {
                    same if same == last.bytes => Ok(None),
                    other => parsed(&bytes, self.most, self.parse).map(|value| Some((other, value))),
                }
            });
            match new {
                Ok(None) => {}
                Ok(Some((bytes, value))) => (last.bytes, last.value) = (bytes, Arc::new(value)),
                Err(why) => {
                    let file = self.path.display();
                    tracing::error!(%file, why, "what this file said before stays in force, also what it was to end");
                }
            }
        }
        last.value.clone()
    }
}

fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than there may be: then it is too long.
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parsed<T>(bytes: &[u8], most: usize, parse: fn(&[u8]) -> Result<T, String>) -> Result<T, String> {
    match bytes.len() > most {
        true => Err(format!("it is longer than {} KiB", most >> 10)),
        false => parse(bytes),
    }
}

fn unread(error: io::Error) -> String {
    format!("cannot be read: {error}")
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8]) -> Result<u32, String> {
        let text = str::from_utf8(bytes).map_err(|e| e.to_string())?;
        text.parse().map_err(|_| "is no number".into())
    }

    #[test]
    fn a_file_that_cannot_be_read_once_is_tried_again_though_it_does_not_change() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::write(&path, "1").expect("written");
        let watched = Watched::read(&path, 8, number).expect("read");
        std::fs::write(&path, "23").expect("written");
        let cannot = |_: &Path| Err(io::Error::other("too many open files"));
        assert_eq!(*watched.look_again(cannot), 1, "what it said before");
        assert_eq!(*watched.present(), 23);
        assert_eq!(*watched.look_again(|_| panic!("it has not changed")), 23);
    }

    #[test]
    fn what_a_file_said_before_stays_if_it_is_wrong_or_gone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::write(&path, "1").expect("written");
        let watched = Watched::read(&path, 8, number).expect("read");
        for wrong in ["x", "123456789"] {
            std::fs::write(&path, wrong).expect("written");
            assert_eq!(*watched.present(), 1, "{wrong}");
        }
        std::fs::remove_file(&path).expect("removed");
        let before = watched.present();
        std::fs::write(&path, "1").expect("written");
        assert!(Arc::ptr_eq(&before, &watched.present()), "the same bytes are the same value");
        std::fs::write(&path, "22").expect("written");
        assert_eq!(*watched.present(), 22);
        assert!(Watched::read(&path, 1, number).is_err_and(|why| why.contains("longer")));
    }
}
