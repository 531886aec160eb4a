//! Counter mode. It authenticates nothing: somebody who can change the ciphertext can change the data.

use std::io::{Read, Write};

use polyclave_api::{CHUNK, Step, Use};
use zeroize::Zeroizing;

use super::KeyHandle;
use super::pieces::{Piece, Pieces, Progress, Source, add};
use crate::session::conversation::Conversation;
use crate::session::first::First;
use crate::{Error, Result};

/// Receives the first counter or initial block, which the nodes chose, before anything is written.
pub type OnStart<'f> = dyn FnMut(&[u8], &mut dyn Write) -> std::io::Result<()> + 'f;

/// Encrypts and decrypts in counter mode under a key.
///
/// A program that encrypts with a counter block of its own decrypts, which is the same computation, and needs
/// the right to decrypt.
pub struct Counter<'k> {
    pub(crate) key: &'k KeyHandle<'k>,
    pub(crate) start: Option<&'k mut OnStart<'k>>,
}

impl<'k> Counter<'k> {
    /// Gives the first counter block, which the nodes chose, to this function. Otherwise the output begins
    /// with it. If the key's cipher takes a tweak, it is the first tweak, which counts, and then the block
    /// that is encrypted under each tweak.
    pub fn on_start(self, start: &'k mut OnStart<'k>) -> Counter<'k> {
        Counter { start: Some(start), ..self }
    }

    /// Encrypts a stream. `progress` receives the number of bytes done.
    pub fn encrypt_stream(
        self,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        self.encrypt_from(Source::Stream(input), output, progress)
    }

    /// Encrypts data.
    pub fn encrypt(self, data: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.encrypt_from(Source::Memory(data), &mut out, &mut |_| ())?;
        Ok(out)
    }

    fn encrypt_from(self, input: Source<'_>, output: &mut dyn Write, progress: Progress<'_>) -> Result<u64> {
        let mut pieces = Pieces::new(input, CHUNK)?;
        let first = pieces.next_filled()?;
        let step = first.as_ref().map(|piece| keystream(piece).0);
        let (conversation, accepted) = self.key.begin(Use::CtrEncrypt, First::of(step.as_ref()))?;
        begin_output(self.start, &accepted.start, output)?;
        add_keystream(conversation, pieces, first, output, progress)
    }

    /// Decrypts a stream that began with this counter block, or with this tweak and block.
    pub fn decrypt_stream(
        &self,
        counter: &[u8],
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        self.decrypt_from(counter, Source::Stream(input), output, progress)
    }

    /// Decrypts data that began with this counter block.
    pub fn decrypt(&self, counter: &[u8], data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        // Its full size at once: growing would leave a copy behind.
        let mut out = Zeroizing::new(Vec::with_capacity(data.len()));
        if !data.is_empty() {
            self.decrypt_from(counter, Source::Memory(data), &mut *out, &mut |_| ())?;
        }
        Ok(out)
    }

    fn decrypt_from(
        &self,
        counter: &[u8],
        input: Source<'_>,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let mut pieces = Pieces::new(input, CHUNK)?;
        let first = pieces.next_filled()?;
        let step = first.as_ref().map(|piece| keystream(piece).0);
        let how = Use::CtrDecrypt { counter: counter.to_vec() };
        let (conversation, _) = self.key.begin(how, First::of(step.as_ref()))?;
        add_keystream(conversation, pieces, first, output, progress)
    }
}

/// Gives the initial block to the caller, or writes it.
pub(crate) fn begin_output(
    start: Option<&mut OnStart<'_>>,
    initial: &[u8],
    output: &mut dyn Write,
) -> Result<()> {
    match start {
        Some(start) => start(initial, output),
        None => output.write_all(initial),
    }
    .map_err(Error::writing)
}

/// Adds the nodes' keystream to an input, and ends the conversation. They were asked about the first piece if
/// one is given.
pub(crate) fn add_keystream<'r>(
    mut conversation: Conversation<'_>,
    mut pieces: Pieces<'r>,
    first: Option<Piece<'r>>,
    output: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<u64> {
    let mut done = 0;
    pieces.answered(
        &mut conversation,
        first,
        |piece| Ok(keystream(piece)),
        |piece, mut sum| {
            add(&mut sum, &piece.data);
            output.write_all(&sum).map_err(Error::writing)?;
            done += sum.len() as u64;
            progress(done);
            Ok(())
        },
    )?;
    conversation.finish()?;
    output.flush().map_err(Error::writing)?;
    Ok(done)
}

fn keystream(piece: &Piece<'_>) -> (Step, usize) {
    (Step::Keystream { bytes: piece.data.len() as u32 }, piece.data.len())
}
