//! Backups: one sealed file with everything in a node's directory.
//!
//! It contains frames (four bytes of length and a postcard encoding): the files as they are, and the node's
//! secret in the clear, wherever the node keeps it; then the records of the store, sealed as they are in it,
//! except those of session keys; then the number of frames. All records are from the same moment. The store
//! can be used during a backup.
//!
//! A backup contains the node's identity and its shares: with its key it is worth as much as the node's disk.
//! A restored node has no past that its peers know ([`Store::past`]), so they refuse it until they readmit
//! it. Only the other nodes know what was spent of budgets since the backup.

pub(super) mod restore;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use polyclave_config::private::{self, Draft};
use polyclave_config::{KeptFile, NodeDir};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::engine::{Table, encode};
use super::sessions::OfSessions;
use super::stream::Sealing;
use super::{Result, Secret, Store, StoreError};
pub use restore::restore;

/// Bytes of a file in one frame.
const PIECE: usize = 64 << 10;

#[derive(Serialize, Deserialize)]
pub(super) enum Frame<'a> {
    /// A file begins.
    File(&'a str),
    /// The file continues.
    Piece(&'a [u8]),
    /// A table begins.
    Table(&'a str),
    /// A sealed record of the table.
    Record(&'a [u8], &'a [u8]),
    /// The end, with the number of frames before it.
    End(u64),
}

impl Store {
    /// Writes a backup of the node whose store this is.
    pub fn backup(&self, node: &NodeDir, path: &Path, key: &Secret) -> Result<()> {
        let io = |cause| StoreError::Io { path: path.into(), cause };
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { path: path.into() });
        }
        // The records first, so that the files are never older than what the store says about them.
        self.engine.read(|records| {
            let sealing = Sealing::new(BufWriter::new(Draft::private(path)?), key).map_err(io)?;
            let mut frames = Frames { sealing, written: 0 };
            for kept in NodeDir::KEPT {
                match kept.name {
                    NodeDir::SECRET => frames.secret(&self.secret),
                    _ => frames.file(node, kept),
                }
                .map_err(io)?;
            }
            let of_sessions = OfSessions::read(records)?;
            for table in Table::ALL {
                frames.put(&Frame::Table(table.name())).map_err(io)?;
                records.each_sealed(table, |record, sealed| {
                    if of_sessions.holds(table, record) {
                        return Ok(());
                    }
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

    /// The secret in the clear, wherever the node keeps it.
    fn secret(&mut self, secret: &Secret) -> io::Result<()> {
        self.put(&Frame::File(NodeDir::SECRET))?;
        self.put(&Frame::Piece(secret.to_text().as_bytes()))
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
        // Only up to its present length: the audit log grows.
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
