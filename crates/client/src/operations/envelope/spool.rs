//! Data that has to wait: input that is read twice and comes from a pipe, and output that is not verified yet
//! and goes to one. It waits in a file without a name in the directory for temporary files, encrypted under a
//! key that only this process has. So nothing of it can be read on the disk, and nothing is left when the
//! process ends, however it ends.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use polyclave_api::FILE_KEY;
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use super::chunks::{CHUNK, Sealer, TAG};
use crate::{Error, Result};

/// A file of its own for data that is written once and then read, also repeatedly, from the beginning.
pub struct Spool {
    file: File,
    sealer: Sealer,
    /// The chunk at which it is.
    number: u64,
    /// What it has of this chunk in plain, and from where on it has not been read.
    chunk: Zeroizing<Vec<u8>>,
    from: usize,
    /// Whether everything is written.
    is_read: bool,
}

impl Spool {
    /// An empty one.
    pub fn new() -> Result<Spool> {
        let mut key = Zeroizing::new([0; FILE_KEY]);
        random_bytes(&mut *key)?;
        let file = tempfile::tempfile().map_err(failed)?;
        let sealer = Sealer::new(&key, b"spool")?;
        let chunk = Zeroizing::new(Vec::with_capacity(CHUNK + TAG));
        Ok(Spool { file, sealer, number: 0, chunk, from: 0, is_read: false })
    }

    /// Everything is written: from now on it is read from its beginning.
    pub fn finish(mut self) -> Result<Spool> {
        self.put(true).and_then(|()| self.rewound()).map_err(failed)?;
        Ok(self)
    }

    fn rewound(&mut self) -> io::Result<()> {
        self.file.rewind()?;
        self.chunk.clear();
        (self.number, self.from, self.is_read) = (0, 0, true);
        Ok(())
    }

    /// Writes the chunk that has been filled.
    fn put(&mut self, last: bool) -> io::Result<()> {
        self.sealer.seal(self.number, last, &mut self.chunk).map_err(io::Error::other)?;
        self.file.write_all(&self.chunk)?;
        self.chunk.clear();
        self.number += 1;
        Ok(())
    }

    /// Reads the next chunk. It is empty at the end.
    fn take(&mut self) -> io::Result<()> {
        (self.from, _) = (0, self.chunk.clear());
        (&mut self.file).take((CHUNK + TAG) as u64).read_to_end(&mut self.chunk)?;
        if self.chunk.is_empty() {
            return Ok(());
        }
        // Only the last chunk is shorter: a whole one is always written when more follows.
        let last = self.chunk.len() < CHUNK + TAG;
        self.sealer.open(self.number, last, &mut self.chunk).map_err(io::Error::other)?;
        self.number += 1;
        Ok(())
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..count]);
        if self.chunk.len() == CHUNK {
            self.put(false)?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Spool {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_read {
            return Err(io::Error::other("it is still being written"));
        }
        if self.from == self.chunk.len() {
            self.take()?;
        }
        let count = buffer.len().min(self.chunk.len() - self.from);
        buffer[..count].copy_from_slice(&self.chunk[self.from..self.from + count]);
        self.from += count;
        Ok(count)
    }
}

/// Only to its beginning.
impl Seek for Spool {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match to {
            SeekFrom::Start(0) => self.rewound().map(|()| 0),
            SeekFrom::Current(0) if self.number == 0 => Ok(0),
            _ => Err(io::Error::other("a spool is read from its beginning only")),
        }
    }
}

fn failed(error: impl Into<io::Error>) -> Error {
    Error::Io { what: "cannot keep data in the directory for temporary files (TMPDIR)", error: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_as_often_as_wanted_and_is_not_in_the_file() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7] {
            let all: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let mut spool = Spool::new().expect("made");
            spool.write_all(&all).expect("written");
            let mut spool = spool.finish().expect("finished");
            for _ in 0..2 {
                let mut read = Vec::new();
                spool.seek(SeekFrom::Start(0)).expect("its beginning");
                spool.read_to_end(&mut read).expect("read");
                assert!(read == all, "{len}");
            }
            let mut kept = Vec::new();
            spool.file.rewind().expect("its beginning");
            spool.file.read_to_end(&mut kept).expect("read");
            assert_eq!(kept.len(), len + TAG * (len / CHUNK + 1), "{len}");
            assert!(len < 16 || !kept.windows(16).any(|part| *part == all[..16]), "{len}");
        }
    }
}
