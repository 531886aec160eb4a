//! Messages of GCM, and of XAES-256-GCM, which differ in their nonces only.
//!
//! Decryption of a stream reads it twice: the nodes give keystream only for an authenticated ciphertext, and
//! store nothing of its size.

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom, Write};

use polyclave_api::{CHUNK, KeyInfo, Mode, OPENED, Step, Use, XAES_NONCE};
use zeroize::Zeroizing;

use super::aead::Aead;
use super::counter::add_keystream;
use super::pieces::{Piece, Pieces, Progress, Source, WINDOW, add, write_whole};
use crate::session::conversation::{Accepted, Conversation};
use crate::session::first::First;
use crate::{Error, Result};

impl Aead<'_> {
    pub(crate) fn encrypt_gcm(
        &self,
        input: Source<'_>,
        output: &mut dyn Write,
        progress: Progress<'_>,
    ) -> Result<(u64, Option<KeyInfo>)> {
        let mut message = Message::new(input)?;
        let step = message.first_step();
        let first = match message.whole() {
            Some(message) => First::Message { message, otherwise: &step },
            None => First::Step(&step),
        };
        let (mut conversation, accepted) = self.begin_gcm(first)?;
        output.write_all(self.first_bytes(&accepted.start)?).map_err(Error::writing)?;
        if let (Some(message), true) = (message.whole(), accepted.is_dealt) {
            let (ciphertext, tag) = conversation.ciphertext_and_tag(message.len())?;
            conversation.finish()?;
            let done = write_whole((&ciphertext, &tag[..self.tag_bytes]), output, progress)?;
            return Ok((done, accepted.key));
        }
        let done = message.encrypt(conversation, self.tag_bytes, output, progress)?;
        Ok((done, accepted.key))
    }

    pub(crate) fn begin_gcm(&self, first: First<'_>) -> Result<(Conversation<'_>, Accepted)> {
        self.mode.check_tag(self.tag_bytes).map_err(Error::Misuse)?;
        let (additional, nonce) = (self.one_additional()?, self.nonce);
        let how = match self.mode {
            Mode::Xaes => Use::XaesEncrypt { additional, nonce: nonce.map(extended).transpose()? },
            _ => Use::GcmEncrypt { additional, nonce: nonce.map(<[u8]>::to_vec) },
        };
        self.key.begin(how, first)
    }

    /// How a message with this nonce is decrypted.
    fn decrypted(&self, nonce: &[u8]) -> Result<Use> {
        let additional = self.one_additional()?;
        Ok(match self.mode {
            Mode::Xaes => Use::XaesDecrypt { nonce: extended(nonce)?, additional },
            _ => Use::GcmDecrypt { nonce: nonce.to_vec(), additional },
        })
    }

    pub(crate) fn decrypt_gcm(&self, message: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let (nonce, ciphertext, tag) = self.parts(message)?;
        if let (1..=OPENED, Ok(tag)) = (ciphertext.len(), tag.try_into()) {
            return self.open_gcm(nonce, ciphertext, tag);
        }
        let pieces = || Pieces::new(Source::Memory(ciphertext), CHUNK);
        let conversation = self.authenticated(nonce, &mut pieces()?, tag, |_| ())?;
        // Its full size at once: growing would leave a copy behind.
        let mut plain = Zeroizing::new(Vec::with_capacity(ciphertext.len()));
        add_keystream(conversation, pieces()?, None, &mut *plain, &mut |_| ())?;
        Ok(plain)
    }

    /// The same for a short message with a whole tag: in one step.
    fn open_gcm(&self, nonce: &[u8], ciphertext: &[u8], tag: [u8; 16]) -> Result<Zeroizing<Vec<u8>>> {
        let how = self.decrypted(nonce)?;
        let step = Step::Open { ciphertext: ciphertext.to_vec(), tag, last: true };
        let (mut conversation, _) = self.key.begin(how, First::Step(&step))?;
        let mut plain = conversation.bytes(ciphertext.len())?;
        add(&mut plain, ciphertext);
        conversation.finish()?;
        Ok(plain)
    }

    pub(crate) fn decrypt_gcm_stream(
        &self,
        input: &mut (impl Read + Seek),
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let began = input.stream_position().map_err(Error::reading)?;
        let end = input.seek(SeekFrom::End(0)).map_err(Error::reading)?;
        let len = self.ciphertext_bytes(end - began)?;
        let (mut nonce, mut tag) = (vec![0; self.nonce_bytes], vec![0; self.tag_bytes]);
        input.seek(SeekFrom::Start(end - self.tag_bytes as u64)).map_err(Error::reading)?;
        input.read_exact(&mut tag).map_err(Error::reading)?;
        input.seek(SeekFrom::Start(began)).map_err(Error::reading)?;
        input.read_exact(&mut nonce).map_err(Error::reading)?;

        let mut hashes = VecDeque::new();
        let mut ciphertext = input.by_ref().take(len);
        let mut pieces = Pieces::new(Source::Stream(&mut ciphertext), CHUNK)?;
        let note = |piece: &[u8]| hashes.push_back(blake3::hash(piece));
        let conversation = self.authenticated(&nonce, &mut pieces, &tag, note)?;

        input.seek(SeekFrom::Start(began + nonce.len() as u64)).map_err(Error::reading)?;
        let mut same = Same { input: &mut input.by_ref().take(len), hashes, piece: Vec::new(), at: 0 };
        let pieces = Pieces::new(Source::Stream(&mut same), CHUNK)?;
        add_keystream(conversation, pieces, None, output, progress)
    }

    /// The additional data, which are one string.
    pub(crate) fn one_additional(&self) -> Result<Vec<u8>> {
        match self.additional[..] {
            [] => Ok(Vec::new()),
            [one] => Ok(one.to_vec()),
            _ => Err(Error::Misuse(format!("{} takes one string of additional data", self.mode))),
        }
    }

    /// Has the nodes authenticate a ciphertext: then they give keystream.
    fn authenticated(
        &self,
        nonce: &[u8],
        pieces: &mut Pieces<'_>,
        tag: &[u8],
        mut note: impl FnMut(&[u8]),
    ) -> Result<Conversation<'_>> {
        let mut absorb = |piece: Piece<'_>| {
            note(&piece.data);
            Step::Absorb { ciphertext: piece.data.to_vec() }
        };
        let how = self.decrypted(nonce)?;
        let check = Step::Check { tag: tag.to_vec() };
        let first = pieces.next_filled()?.map(&mut absorb);
        let mut awaited = usize::from(first.is_some());
        let first = first.as_ref().unwrap_or(&check);
        let (mut conversation, _) = self.key.begin(how, First::Step(first))?;
        if awaited > 0 {
            while let Some(piece) = pieces.next()? {
                if awaited == WINDOW {
                    conversation.nothing()?;
                    awaited -= 1;
                }
                conversation.step(&absorb(piece))?;
                awaited += 1;
            }
            conversation.step(&check)?;
        }
        for _ in 0..=awaited {
            conversation.nothing()?;
        }
        Ok(conversation)
    }
}

/// A nonce of XAES-256-GCM.
fn extended(nonce: &[u8]) -> Result<[u8; XAES_NONCE]> {
    nonce.try_into().map_err(|_| Error::Misuse(format!("nonces of xaes have {XAES_NONCE} bytes")))
}

/// A message that is being encrypted.
pub(crate) struct Message<'r> {
    first: Option<Piece<'r>>,
    further: Pieces<'r>,
}

impl<'r> Message<'r> {
    pub(crate) fn new(input: Source<'r>) -> Result<Message<'r>> {
        let mut further = Pieces::new(input, CHUNK)?;
        Ok(Message { first: further.next_filled()?, further })
    }

    /// All of it, if it can go to the nodes in one step.
    fn whole(&self) -> Option<&[u8]> {
        self.first.as_ref().and_then(Piece::whole)
    }

    /// What the nodes are asked first about it.
    pub(crate) fn first_step(&self) -> Step {
        self.first.as_ref().map_or(Step::Tag, keystream)
    }

    /// Writes ciphertext and tag. The first step is sent.
    pub(crate) fn encrypt(
        &mut self,
        mut conversation: Conversation<'_>,
        tag_bytes: usize,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        // What is answered next: the keystream for a piece, or for `None` that one was taken.
        let mut awaited: VecDeque<Option<Piece<'_>>> = self.first.take().into_iter().map(Some).collect();
        let (mut open, mut done) = (awaited.len(), 0);
        loop {
            while open < WINDOW
                && let Some(piece) = self.further.next()?
            {
                conversation.step(&keystream(&piece))?;
                awaited.push_back(Some(piece));
                open += 1;
            }
            let Some(next) = awaited.pop_front() else { break };
            let Some(piece) = next else {
                conversation.nothing()?;
                continue;
            };
            let mut ciphertext = conversation.bytes(piece.data.len())?.to_vec();
            add(&mut ciphertext, &piece.data);
            output.write_all(&ciphertext).map_err(Error::writing)?;
            done += ciphertext.len() as u64;
            progress(done);
            open -= 1;
            if open == 0 {
                conversation.step(&Step::Seal { ciphertext, last: true })?;
            } else {
                conversation.step(&Step::Absorb { ciphertext })?;
                awaited.push_back(None);
            }
        }
        let tag = conversation.tag()?;
        output.write_all(&tag[..tag_bytes]).and_then(|()| output.flush()).map_err(Error::writing)?;
        conversation.finish()?;
        Ok(done)
    }
}

fn keystream(piece: &Piece<'_>) -> Step {
    Step::Keystream { bytes: piece.data.len() as u32 }
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
