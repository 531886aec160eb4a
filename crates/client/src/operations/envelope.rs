//! Files in envelopes (docs/use/envelope.md): the nodes derive a key for one file and give it to the client,
//! and the client encrypts the file under it by itself, with AES-256-GCM.
//!
//! Writing reads the input twice: once for the commitment, on which the key depends, and once to encrypt.
//! Opening reads it once. What it writes is verified as a whole only when it returns, so a caller passes
//! nothing on before that.

mod chunks;
mod commitment;
mod format;
#[cfg(test)]
mod fuzz;
mod marks;
mod spool;
mod stages;
#[cfg(test)]
mod tests;

use std::io::{Read, Seek, SeekFrom, Write};

use polyclave_api::{Envelope, FILE_KEY, KeyVersion, MAX_HEADER, Step, Use};
use polyclave_kernels::secret::ct_eq;
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use crate::client::Client;
use crate::operations::encrypt::KeyHandle;
use crate::operations::encrypt::aead::no_key;
use crate::session::first::First;
use crate::{Error, Result};
use chunks::{CHUNK, MAX_FILE, Sealer, TAG};
use commitment::{Commitment, RHO};
use format::Head;
use marks::Marks;
use stages::Ahead;

pub use format::{EnvelopeHead, MAGIC as ENVELOPE_MAGIC};
pub use spool::Spool;

impl Client {
    /// Encrypts a file in an envelope. `header` is public, also to the nodes, and stays with the file. The
    /// input is read twice, from where it is. `progress` receives the number of bytes done, of twice the
    /// input's.
    pub fn write_envelope(
        &self,
        key: &str,
        header: &[u8],
        input: &mut (impl Read + Seek),
        output: &mut (dyn Write + Send),
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64> {
        if header.len() > MAX_HEADER {
            let message = format!("a header of {} bytes; at most {MAX_HEADER} are allowed", header.len());
            return Err(Error::Misuse(message));
        }
        let mut rho = Zeroizing::new([0; RHO]);
        random_bytes(&mut *rho)?;
        let begin = input.stream_position().map_err(Error::reading)?;
        let (commitment, seen) = committed(input, header, &rho, progress)?;
        let envelope = Envelope { owner: self.name().into(), header: header.to_vec(), commitment };
        let (id, file, file_key) = file_key(&self.key(key)?, Use::EnvelopeWrite(envelope.clone()))?;
        let head = Head { key: id, file, envelope };
        input.seek(SeekFrom::Start(begin)).map_err(Error::reading)?;
        write_under(&file_key, &head, (&rho, &seen), input, output, progress)?;
        Ok(seen.bytes)
    }

    /// Decrypts a file in an envelope, in one pass. **Nothing that it wrote is verified before it returns
    /// without an error**: until then the caller keeps the output to itself, in a file without a name or in a
    /// [`Spool`].
    pub fn open_envelope(
        &self,
        key: &str,
        input: &mut dyn Read,
        output: &mut (dyn Write + Send),
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let (head, bytes) = Head::read(input)?;
        let how = Use::EnvelopeOpen { envelope: head.envelope.clone(), file: head.file };
        let key = self.key_with_id(KeyVersion { name: key.into(), id: Some(head.key) });
        let (_, _, file_key) = file_key(&key, how)?;
        open_under(&file_key, (&head, &bytes), input, output, progress)
    }
}

type FileKey = ([u8; 16], [u8; 32], Zeroizing<[u8; FILE_KEY]>);

/// The id of the key in use, the file's id, and the file's key.
fn file_key(key: &KeyHandle<'_>, how: Use) -> Result<FileKey> {
    let (mut conversation, accepted) = key.begin(how, First::Step(&Step::FileKey))?;
    let info = accepted.key.ok_or_else(no_key)?;
    let file = accepted.start.try_into().map_err(|_| Error::Answers("they gave no file id".into()))?;
    let bytes = conversation.bytes(FILE_KEY)?;
    let mut file_key = Zeroizing::new([0; FILE_KEY]);
    file_key.copy_from_slice(&bytes);
    conversation.finish()?;
    Ok((info.id, file, file_key))
}

/// Writes a file under its key.
fn write_under(
    file_key: &[u8; FILE_KEY],
    head: &Head,
    (rho, seen): (&[u8; RHO], &Seen),
    input: &mut dyn Read,
    output: &mut (dyn Write + Send),
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<()> {
    let bytes = head.to_bytes();
    let sealer = Sealer::new(file_key, &bytes)?;
    let mut first = Zeroizing::new(Vec::with_capacity(RHO + TAG));
    first.extend_from_slice(rho);
    sealer.seal(0, false, &mut first)?;
    output.write_all(&bytes).and_then(|()| output.write_all(&first)).map_err(Error::writing)?;
    sealed(input, &sealer, seen, output, progress)?;
    output.flush().map_err(Error::writing)
}

/// Opens the rest of a file under its key, and compares it with its commitment.
fn open_under(
    file_key: &[u8; FILE_KEY],
    (head, bytes): (&Head, &[u8]),
    input: &mut dyn Read,
    output: &mut (dyn Write + Send),
    progress: &mut dyn FnMut(u64),
) -> Result<u64> {
    let sealer = Sealer::new(file_key, bytes)?;
    let rho = sealer.open_rho(input)?;
    let mut commit = Commitment::new();
    let done = opened(input, &sealer, &mut commit, output, progress)?;
    let computed = commit.finish(&head.envelope.header, &rho);
    if !ct_eq(&computed, &head.envelope.commitment) {
        return Err(Error::Unauthentic(
            "the file is not the one that its envelope was made for: somebody who once had its key changed it. Use nothing of it".into(),
        ));
    }
    output.flush().map_err(Error::writing)?;
    Ok(done)
}

/// What the first pass saw of the input, so that the second notices whether it has changed.
struct Seen {
    bytes: u64,
    marks: Marks,
}

/// First pass: the commitment to a file.
fn committed(
    input: &mut dyn Read,
    header: &[u8],
    rho: &[u8; RHO],
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<([u8; 32], Seen)> {
    let mut commit = Commitment::new();
    let mut ahead = Ahead::new(input);
    let mut seen = Seen { bytes: 0, marks: Marks::new()? };
    stages::run(
        &mut |buffer| {
            let more = ahead.fill(buffer, CHUNK)?;
            seen.bytes += buffer.len() as u64;
            if seen.bytes > MAX_FILE {
                return Err(Error::Misuse(format!(
                    "the input has more than {} GiB, the most under one key of a file: cut it into several files",
                    MAX_FILE >> 30
                )));
            }
            seen.marks.note(buffer);
            Ok(more)
        },
        &mut |buffer| {
            commit.update(buffer);
            progress(commit.bytes());
            Ok(())
        },
    )?;
    Ok((commit.finish(header, rho), seen))
}

/// Second pass: the chunks of a file, which has not changed since the first.
fn sealed(
    input: &mut dyn Read,
    sealer: &Sealer,
    seen: &Seen,
    output: &mut (dyn Write + Send),
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<()> {
    let changed = || Error::Misuse("the input changed while it was read; nothing was encrypted".into());
    let mut ahead = Ahead::new(input);
    let (mut index, mut left, mut done) = (0, seen.bytes, seen.bytes);
    stages::run(
        &mut |buffer| {
            let more = ahead.fill(buffer, CHUNK)?;
            let due = left.min(CHUNK as u64);
            left -= due;
            if buffer.len() as u64 != due || more != (left > 0) || !seen.marks.fits(index, buffer) {
                return Err(changed());
            }
            index += 1;
            sealer.seal(index as u64, !more, buffer)?;
            Ok(more)
        },
        &mut |buffer| {
            output.write_all(buffer).map_err(Error::writing)?;
            done += (buffer.len() - TAG) as u64;
            progress(done);
            Ok(())
        },
    )
}

/// The chunks of a file, decrypted. Returns the number of bytes.
fn opened(
    input: &mut dyn Read,
    sealer: &Sealer,
    commit: &mut Commitment,
    output: &mut (dyn Write + Send),
    progress: &mut dyn FnMut(u64),
) -> Result<u64> {
    let mut ahead = Ahead::new(input);
    let (mut number, mut done) = (1, 0);
    stages::run(
        &mut |buffer| {
            let more = ahead.fill(buffer, CHUNK + TAG)?;
            sealer.open(number, !more, buffer)?;
            if buffer.is_empty() && number > 1 {
                return Err(chunks::cut());
            }
            number += 1;
            commit.update(buffer);
            done += buffer.len() as u64;
            if done > MAX_FILE {
                return Err(Error::Unauthentic("the file is longer than any file in an envelope".into()));
            }
            progress(done);
            Ok(more)
        },
        &mut |buffer| output.write_all(buffer).map_err(Error::writing),
    )?;
    Ok(done)
}
