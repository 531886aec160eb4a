//! Single GCM messages in the plain format: nonce, ciphertext, tag.
//!
//! Decryption reads the input twice: the nodes give keystream only for an authenticated ciphertext, and store nothing of its size.

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom, Write};

use polyclave_api::{CHUNK, Mode, Operation, Step, Use, operations};

use crate::aead::{AeadDecryption, AeadEncryption};
use crate::client::Client;
use crate::conversation::Conversation;
use crate::counter::add_keystream;
use crate::pieces::{Piece, Pieces};
use crate::{Error, Result};

/// Bytes of a nonce of the nodes.
const NONCE: usize = 12;
/// The most pieces in progress.
const WINDOW: usize = 2;

enum Awaited {
    Keystream(Piece),
    Absorbed,
}

impl Client {
    /// Encrypts one message.
    pub fn encrypt_gcm(
        &self,
        key: &str,
        how: &AeadEncryption<'_>,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        if !Mode::Gcm.takes_tag(how.tag_bytes) {
            return Err(Error::Misuse(format!("gcm has tags of 12 to 16 bytes, not {}", how.tag_bytes)));
        }
        let (nonce, additional) = (how.nonce.map(<[u8]>::to_vec), how.additional.to_vec());
        let operation = Operation::Use(operations::UseKey {
            key: key.into(),
            id: None,
            how: Use::GcmEncrypt { additional, nonce },
        });
        let (mut conversation, accepted) = Conversation::begin(self, &operation, None)?;
        if how.nonce.is_none() && accepted.start.len() != NONCE {
            return Err(Error::Answers("they gave no nonce".into()));
        }
        output.write_all(how.nonce.unwrap_or(&accepted.start)).map_err(Error::writing)?;
        let mut pieces = Pieces::new(input, CHUNK)?;
        let mut awaited = VecDeque::new();
        let (mut open, mut done) = (0, 0);
        while let Some(next) = {
            while open < WINDOW
                && let Some(piece) = pieces.next()?
                && !piece.data.is_empty()
            {
                conversation.step(&Step::Keystream { bytes: piece.data.len() as u32 })?;
                awaited.push_back(Awaited::Keystream(piece));
                open += 1;
            }
            awaited.pop_front()
        } {
            let Awaited::Keystream(piece) = next else {
                conversation.nothing()?;
                continue;
            };
            let keystream = conversation.bytes(piece.data.len())?;
            let ciphertext: Vec<u8> = piece.data.iter().zip(keystream.iter()).map(|(d, k)| d ^ k).collect();
            output.write_all(&ciphertext).map_err(Error::writing)?;
            done += ciphertext.len() as u64;
            progress(done);
            conversation.step(&Step::Absorb { ciphertext })?;
            awaited.push_back(Awaited::Absorbed);
            open -= 1;
        }
        conversation.step(&Step::Tag)?;
        let tag = conversation.tag()?;
        output.write_all(&tag[..how.tag_bytes]).and_then(|()| output.flush()).map_err(Error::writing)?;
        conversation.finish()?;
        Ok(done)
    }

    /// Decrypts one message. Nothing is written unless the message is authentic.
    pub fn decrypt_gcm(
        &self,
        key: &str,
        how: &AeadDecryption<'_>,
        input: &mut (impl Read + Seek),
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let began = input.stream_position().map_err(Error::reading)?;
        let end = input.seek(SeekFrom::End(0)).map_err(Error::reading)?;
        let len = how.ciphertext_bytes(end - began)?;
        let (mut nonce, mut tag) = (vec![0; how.nonce_bytes], vec![0; how.tag_bytes]);
        input.seek(SeekFrom::Start(end - how.tag_bytes as u64)).map_err(Error::reading)?;
        input.read_exact(&mut tag).map_err(Error::reading)?;
        input.seek(SeekFrom::Start(began)).map_err(Error::reading)?;
        input.read_exact(&mut nonce).map_err(Error::reading)?;

        let nonce_bytes = nonce.len() as u64;
        let operation = Operation::Use(operations::UseKey {
            key: key.into(),
            id: None,
            how: Use::GcmDecrypt { nonce, additional: how.additional.to_vec() },
        });
        let (mut conversation, _) = Conversation::begin(self, &operation, None)?;
        let mut ciphertext = input.by_ref().take(len);
        let mut pieces = Pieces::new(&mut ciphertext, CHUNK)?;
        let (mut under_way, mut hashes) = (0, VecDeque::new());
        while let Some(piece) = pieces.next()?.filter(|piece| !piece.data.is_empty()) {
            if under_way == WINDOW {
                conversation.nothing()?;
                under_way -= 1;
            }
            hashes.push_back(blake3::hash(&piece.data));
            conversation.step(&Step::Absorb { ciphertext: piece.data })?;
            under_way += 1;
        }
        conversation.step(&Step::Check { tag })?;
        for _ in 0..=under_way {
            conversation.nothing()?;
        }

        input.seek(SeekFrom::Start(began + nonce_bytes)).map_err(Error::reading)?;
        let mut same = Same { input: &mut input.by_ref().take(len), hashes, piece: Vec::new(), at: 0 };
        add_keystream(conversation, &mut same, output, progress)
    }
}

/// Reads the authenticated input again. Changed content is an error before any of it is used.
struct Same<'r> {
    input: &'r mut dyn Read,
    /// The hashes of the pieces still to come.
    hashes: VecDeque<blake3::Hash>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Same<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.piece.len()
            && let Some(hash) = self.hashes.pop_front()
        {
            self.piece.clear();
            self.at = 0;
            self.input.take(CHUNK as u64).read_to_end(&mut self.piece)?;
            if blake3::hash(&self.piece) != hash {
                return Err(std::io::Error::other("it changed while it was being decrypted"));
            }
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..][..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_between_the_readings_is_not_used() {
        let data = vec![7; CHUNK + 5];
        let hashes = || data.chunks(CHUNK).map(blake3::hash).collect::<VecDeque<_>>();
        let read = |mut input: &[u8]| {
            let mut out = Vec::new();
            let mut same = Same { input: &mut input, hashes: hashes(), piece: Vec::new(), at: 0 };
            same.read_to_end(&mut out).map(|_| out)
        };
        assert_eq!(read(&data).ok().as_ref(), Some(&data));
        assert!(read(&data[..CHUNK]).is_err() && read(&data[..CHUNK + 4]).is_err());
        let mut changed = data.clone();
        changed[CHUNK] ^= 1;
        assert!(read(&changed).is_err());
    }
}
