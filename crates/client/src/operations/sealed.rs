//! Sealed files: the default format, streamed in chunks that cannot be altered, dropped, reordered or cut
//! (docs/use/sealed-files.md).
//!
//! The client adds keystream to its data, and sends the ciphertext, which is not secret, to get the tag. The
//! next chunk is always in progress while one is sealed, so that the nodes need not wait for the client.

#[cfg(test)]
mod fuzz;

use std::collections::VecDeque;
use std::io::{Read, Write};

use polyclave_api::{CHUNK, KeyVersion, Step, Use};

use crate::client::Client;
use crate::operations::encrypt::aead::no_key;
use crate::operations::encrypt::pieces::{Piece, Pieces, Source, WINDOW, add, write_whole};
use crate::session::first::First;
use crate::{Error, Result};

/// The first bytes of a sealed file.
pub const MAGIC: &[u8; 16] = b"polyclave-seal-1";
/// The first bytes of a sealed file that is bound to additional data.
pub const MAGIC_BOUND: &[u8; 16] = b"polyclave-seal-2";
/// Bytes before the first chunk: the format's name, the key's id, the file's id.
pub const HEAD: usize = 16 + 16 + 32;
/// Bytes of a tag.
const TAG: usize = 16;

/// What the next answer will contain.
enum Awaited<'r> {
    Keystream(Piece<'r>),
    /// The tag of this ciphertext.
    Tag(Vec<u8>),
}

impl Client {
    /// Seals a stream. `progress` receives the number of bytes done.
    pub fn seal(
        &self,
        key: &str,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        self.seal_bound(key, None, input, output, progress)
    }

    /// The same, bound to additional data if there are any: the file opens only with the same, and does not
    /// contain them.
    pub fn seal_bound(
        &self,
        key: &str,
        additional: Option<&[u8]>,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let mut pieces = Pieces::new(Source::Stream(input), CHUNK)?;
        let first =
            pieces.next()?.ok_or_else(|| Error::Misuse("a stream without even an empty piece".into()))?;
        let keystream = |piece: &Piece<'_>| Step::Keystream { bytes: piece.data.len() as u32 };
        let how = Use::Seal { additional: additional.map(digest) };
        let step = keystream(&first);
        let asked = match first.whole() {
            Some(message) => First::Message { message, otherwise: &step },
            None => First::Step(&step),
        };
        let (mut conversation, accepted) = self.key(key)?.begin(how, asked)?;
        let info = accepted.key.ok_or_else(no_key)?;
        let no_file = |_| Error::Answers("they gave no file id".into());
        let file: [u8; 32] = accepted.start.as_slice().try_into().map_err(no_file)?;
        let magic = magic(additional.is_some());
        output.write_all(&[&magic[..], &info.id, &file].concat()).map_err(Error::writing)?;

        if let (Some(message), true) = (first.whole(), accepted.is_dealt) {
            let (ciphertext, tag) = conversation.ciphertext_and_tag(message.len())?;
            conversation.finish()?;
            return write_whole((&ciphertext, &tag), output, progress);
        }
        let mut awaited = VecDeque::from([Awaited::Keystream(first)]);
        // Asking ahead saves time only: the answers come in the order of the questions.
        let (mut open, mut done) = (1, 0);
        while let Some(next) = {
            while open < WINDOW
                && let Some(piece) = pieces.next()?
            {
                conversation.step(&keystream(&piece))?;
                awaited.push_back(Awaited::Keystream(piece));
                open += 1;
            }
            awaited.pop_front()
        } {
            match next {
                Awaited::Keystream(piece) => {
                    let keystream = conversation.bytes(piece.data.len())?;
                    let mut ciphertext = keystream.to_vec();
                    add(&mut ciphertext, &piece.data);
                    conversation.step(&Step::Seal { ciphertext: ciphertext.clone(), last: piece.last })?;
                    awaited.push_back(Awaited::Tag(ciphertext));
                    open -= 1;
                }
                Awaited::Tag(ciphertext) => {
                    let tag = conversation.tag()?;
                    output
                        .write_all(&ciphertext)
                        .and_then(|()| output.write_all(&tag))
                        .map_err(Error::writing)?;
                    done += ciphertext.len() as u64;
                    progress(done);
                }
            }
        }
        // Saves time only: without it the connections end, and the next request makes new ones.
        conversation.finish()?;
        output.flush().map_err(Error::writing)?;
        Ok(done)
    }

    /// Opens a sealed stream. Every chunk that is written has been authenticated, with its place in the file.
    /// Only when this returns is it known that the file is complete, so after an error the caller must
    /// discard what was written.
    pub fn open_sealed(
        &self,
        key: &str,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        self.open_bound(key, None, input, output, progress)
    }

    /// The same for a file that was sealed with these additional data, or with none.
    pub fn open_bound(
        &self,
        key: &str,
        additional: Option<&[u8]>,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let Head { is_bound, id, file } = read_head(input)?;
        check_bound(is_bound, additional.is_some())?;
        let how = Use::Open { file, additional: additional.map(digest) };
        let mut pieces = Pieces::new(Source::Stream(input), CHUNK + TAG)?;
        let first = pieces.next()?.ok_or_else(not_sealed)?;
        let key = self.key_with_id(KeyVersion { name: key.into(), id: Some(id) });
        let (mut conversation, _) = key.begin(how, First::Step(&step(&first)?.0))?;

        let mut done = 0;
        pieces.answered(&mut conversation, Some(first), step, |piece, mut data| {
            add(&mut data, &piece.data);
            output.write_all(&data).map_err(Error::writing)?;
            done += data.len() as u64;
            progress(done);
            Ok(())
        })?;
        conversation.finish()?;
        output.flush().map_err(Error::writing)?;
        Ok(done)
    }
}

/// Refuses to open a file that is bound to additional data without any, and another one with some.
fn check_bound(is_bound: bool, has_additional: bool) -> Result<()> {
    match (is_bound, has_additional) {
        (true, false) => {
            Err(Error::Misuse("this file was sealed with additional data: give the same".into()))
        }
        (false, true) => {
            Err(Error::Unauthentic("this file was sealed without additional data, and some are given".into()))
        }
        _ => Ok(()),
    }
}

/// What the nodes are told of a client's additional data.
pub(crate) fn digest(additional: &[u8]) -> [u8; 32] {
    blake3::derive_key("polyclave 2026 additional data of a sealed file", additional)
}

/// What a sealed file says before its chunks.
pub(crate) struct Head {
    /// Whether the file is bound to additional data.
    is_bound: bool,
    /// The id of the key.
    pub(crate) id: [u8; 16],
    pub(crate) file: [u8; 32],
}

impl Head {
    /// The first bytes of a file of its kind.
    pub(crate) fn magic(&self) -> &'static [u8; 16] {
        magic(self.is_bound)
    }
}

/// The first bytes of a file that is bound to additional data, or of another one.
fn magic(is_bound: bool) -> &'static [u8; 16] {
    if is_bound { MAGIC_BOUND } else { MAGIC }
}

/// What a whole sealed file says before its chunks, and these.
pub(crate) fn head_of(mut sealed: &[u8], has_additional: bool) -> Result<(Head, &[u8])> {
    let head = read_head(&mut sealed)?;
    check_bound(head.is_bound, has_additional)?;
    Ok((head, sealed))
}

fn read_head(input: &mut dyn Read) -> Result<Head> {
    let mut head = [0; HEAD];
    input.read_exact(&mut head).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => not_sealed(),
        _ => Error::reading(e),
    })?;
    let is_bound = head[..16] == MAGIC_BOUND[..];
    if !is_bound && head[..16] != MAGIC[..] {
        return Err(not_sealed());
    }
    let (mut id, mut file) = ([0; 16], [0; 32]);
    id.copy_from_slice(&head[16..32]);
    file.copy_from_slice(&head[32..]);
    Ok(Head { is_bound, id, file })
}

/// The step that opens a piece, and the bytes of its plaintext.
fn step(piece: &Piece<'_>) -> Result<(Step, usize)> {
    let (ciphertext, tag) = piece.data.split_last_chunk::<TAG>().ok_or_else(cut)?;
    Ok((Step::Open { ciphertext: ciphertext.to_vec(), tag: *tag, last: piece.last }, ciphertext.len()))
}

pub(crate) fn cut() -> Error {
    Error::Unauthentic("the file was cut: it ends in the middle of a tag".into())
}

fn not_sealed() -> Error {
    let message = "this is no sealed file, or its beginning is lost; plain formats of other programs are decrypted in their own mode";
    Error::Unauthentic(message.into())
}
