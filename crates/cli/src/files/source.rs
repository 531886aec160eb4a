//! The input of a command that may have to be read again from the beginning: a file, or standard input, whose
//! beginning is kept for that.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use zeroize::Zeroizing;

use super::Input;

/// The most of standard input that is kept. Longer input cannot be read again.
const KEPT: usize = 16 << 20;

/// An input that can be read from its beginning.
pub struct Source {
    path: PathBuf,
    kept: Arc<Mutex<Kept>>,
}

/// The beginning of standard input.
struct Kept {
    bytes: Zeroizing<Vec<u8>>,
    /// Whether this is all of it.
    is_all: bool,
}

impl Source {
    /// A file; `-` is standard input.
    pub fn new(path: &Path) -> Source {
        let kept = Kept { bytes: Zeroizing::default(), is_all: true };
        Source { path: path.into(), kept: Arc::new(Mutex::new(kept)) }
    }

    /// Starts reading at the beginning, also repeatedly.
    pub fn open(&self) -> Result<Input> {
        let path = &self.path;
        if path == Path::new("-") {
            return Ok(Input::Stdin(Stdin { kept: self.kept.clone(), at: 0 }));
        }
        let broken = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(broken)?;
        let metadata = file.metadata().with_context(broken)?;
        ensure!(!metadata.is_dir(), "{} is a directory; give a file", path.display());
        Ok(Input::File(BufReader::new(file), metadata.len()))
    }

    /// Whether it can be read from its beginning once more.
    pub fn can_begin_anew(&self) -> bool {
        match self.path == Path::new("-") {
            true => self.kept.lock().is_all,
            false => self.path.is_file(),
        }
    }
}

/// Standard input from its beginning.
pub struct Stdin {
    kept: Arc<Mutex<Kept>>,
    at: usize,
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_after(&mut io::stdin().lock(), buffer)
    }
}

impl Stdin {
    /// Reads what is kept, then the rest, which it keeps, too.
    fn read_after(&mut self, rest: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
        let mut kept = self.kept.lock();
        if let Some(left) = kept.bytes.get(self.at..).filter(|left| !left.is_empty()) {
            let count = left.len().min(buffer.len());
            buffer[..count].copy_from_slice(&left[..count]);
            self.at += count;
            return Ok(count);
        }
        let count = rest.read(buffer)?;
        self.at += count;
        if kept.is_all && kept.bytes.len() + count <= KEPT {
            if kept.bytes.capacity() == 0 {
                // Allocated at its full size, so that growing leaves no copy behind. The system provides the
                // memory only as it is used.
                kept.bytes.reserve_exact(KEPT);
            }
            kept.bytes.extend_from_slice(&buffer[..count]);
        } else if count > 0 {
            *kept = Kept { bytes: Zeroizing::default(), is_all: false };
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &Source, rest: &mut &[u8], most: usize) -> Vec<u8> {
        let mut stdin = Stdin { kept: source.kept.clone(), at: 0 };
        let (mut data, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while data.len() < most {
            match stdin.read_after(rest, &mut buffer).expect("memory can be read") {
                0 => break,
                count => data.extend_from_slice(&buffer[..count]),
            }
        }
        data
    }

    #[test]
    fn what_was_read_of_a_pipe_is_read_again_and_then_the_rest() {
        let source = Source::new(Path::new("-"));
        let all: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
        let mut rest = &all[..];
        assert_eq!(read(&source, &mut rest, 100_000), all[..131_072], "two pieces");
        assert!(source.can_begin_anew());
        assert_eq!(read(&source, &mut rest, usize::MAX), all);
        assert_eq!(read(&source, &mut rest, usize::MAX), all);
    }

    #[test]
    fn a_pipe_that_is_too_long_to_be_kept_is_read_once() {
        let source = Source::new(Path::new("-"));
        let all = vec![7; KEPT + 100_000];
        assert_eq!(read(&source, &mut &all[..], usize::MAX).len(), all.len());
        assert!(!source.can_begin_anew());
    }
}
