//! Single messages from memory, under a version of a key whose properties the caller knows. So nothing is asked of the nodes before the
//! request itself, and steps are sent before the answers to those before them where these do not matter.
//!
//! Programs written for an HSM give their own initial blocks and counters:
//!
//! * **CTR** with a caller's counter is decryption, for encryption too, and takes the right to decrypt.
//! * **CBC** with a caller's initial block takes a key that was made for that (`caller_nonces`), or one for ECB: then the client chains single
//!   blocks. Both give who may encrypt E_K of any block: the initial block, with a first block of zeros.

use std::collections::VecDeque;

use polyclave_api::{
    CHAINED, CHUNK, End, KeyInfo, KeyVersion, MASKED, MAX_NONCE, Mode, Operation, Step, Use, operations,
};
use polyclave_cipher::{Cipher, catalog};
use zeroize::Zeroizing;

use crate::aead::{AeadDecryption, AeadEncryption};
use crate::begun::first_step;
use crate::blocks::under;
use crate::client::Client;
use crate::conversation::{Accepted, Conversation};
use crate::{Error, Result};

/// Bytes of a nonce of the nodes.
pub(crate) const NONCE: usize = 12;
/// Bytes of a whole tag.
const TAG: usize = 16;
/// The most steps under way.
const WINDOW: usize = 2;

impl Client {
    /// Encrypts whole blocks, each by itself.
    pub fn encrypt_known_ecb(&self, key: &KeyInfo, data: &[u8]) -> Result<Vec<u8>> {
        self.encrypt_masked(key, data, MASKED, |_, _| ())
    }

    /// Encrypts whole blocks in CBC from the caller's initial block on, one after the other.
    pub fn encrypt_known_cbc(&self, key: &KeyInfo, initial: &[u8], data: &[u8]) -> Result<Vec<u8>> {
        let block = cipher_of(key)?.block_bytes;
        if initial.len() != block {
            return Err(Error::Misuse(format!("an initial block of {} bytes, not {block}", initial.len())));
        }
        if key.properties.modes.contains(&Mode::Cbc) {
            return self.encrypt_chained(key, initial, data);
        }
        let chain = |before: Option<&[u8]>, piece: &mut [u8]| add(piece, before.unwrap_or(initial));
        self.encrypt_masked(key, data, block, chain)
    }

    /// The nodes chain the blocks. They give the last block of a step with the answer to the next one.
    fn encrypt_chained(&self, key: &KeyInfo, initial: &[u8], data: &[u8]) -> Result<Vec<u8>> {
        whole_blocks(key, data)?;
        let pieces: Vec<&[u8]> = data.chunks(CHAINED).collect();
        let Some(first) = pieces.first() else { return Ok(Vec::new()) };
        let how = Use::CbcEncrypt { mask: first.len() as u32, initial: Some(initial.to_vec()) };
        let (mut conversation, accepted) = self.begin_known(key, how, None)?;
        let (mut mask, mut out, mut owed) = (accepted.mask, Vec::with_capacity(data.len()), 0);
        for (i, piece) in pieces.iter().enumerate() {
            let next = pieces.get(i + 1).map_or(0, |next| next.len());
            let data = under(&mask, piece)?;
            conversation.step(&Step::Masked { data, next: next as u32, end: End::No })?;
            let held = if next > 0 { initial.len() } else { 0 };
            let due = owed + piece.len() - held;
            let (answer, of_next) = conversation.bytes_and_mask((due > 0).then_some(due), next)?;
            out.extend_from_slice(&answer);
            (mask, owed) = (of_next, held);
        }
        conversation.finish()?;
        Ok(out)
    }

    /// In pieces of so many bytes, each changed before by what was encrypted last.
    fn encrypt_masked(
        &self,
        key: &KeyInfo,
        data: &[u8],
        most: usize,
        change: impl Fn(Option<&[u8]>, &mut [u8]),
    ) -> Result<Vec<u8>> {
        whole_blocks(key, data)?;
        let pieces: Vec<&[u8]> = data.chunks(most).collect();
        let Some(first) = pieces.first() else { return Ok(Vec::new()) };
        let how = Use::EcbEncrypt { mask: first.len() as u32, tweak: Vec::new() };
        let (mut conversation, accepted) = self.begin_known(key, how, None)?;
        let (mut mask, mut out) = (accepted.mask, Vec::<u8>::with_capacity(data.len()));
        for (i, piece) in pieces.iter().enumerate() {
            let next = pieces.get(i + 1).map_or(0, |next| next.len());
            let mut plain = Zeroizing::new(piece.to_vec());
            change(out.len().checked_sub(piece.len()).map(|from| &out[from..]), &mut plain);
            let data = under(&mask, &plain)?;
            conversation.step(&Step::Masked { data, next: next as u32, end: End::No })?;
            let (answer, of_next) = conversation.bytes_and_mask(Some(piece.len()), next)?;
            out.extend_from_slice(&answer);
            mask = of_next;
        }
        conversation.finish()?;
        Ok(out)
    }

    /// Decrypts whole blocks, each by itself.
    pub fn decrypt_known_ecb(&self, key: &KeyInfo, data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        self.decrypt_known_blocks(key, Use::EcbDecrypt { tweak: Vec::new() }, data)
    }

    /// Decrypts whole blocks of CBC that began with this initial block. The key is one for CBC or for ECB.
    pub fn decrypt_known_cbc(
        &self,
        key: &KeyInfo,
        initial: &[u8],
        data: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let how = match key.properties.modes.contains(&Mode::Cbc) {
            true => Use::CbcDecrypt,
            false => Use::EcbDecrypt { tweak: Vec::new() },
        };
        let mut plain = self.decrypt_known_blocks(key, how, data)?;
        plain.iter_mut().zip(initial.iter().chain(data)).for_each(|(p, c)| *p ^= c);
        Ok(plain)
    }

    fn decrypt_known_blocks(&self, key: &KeyInfo, how: Use, data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        whole_blocks(key, data)?;
        let step = |piece: &[u8]| Step::Blocks { ciphertext: piece.to_vec() };
        self.answered(key, how, data, step)
    }

    /// Adds the keystream from a counter block on: encryption and decryption in CTR.
    pub fn known_ctr(&self, key: &KeyInfo, counter: &[u8], data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let step = |piece: &[u8]| Step::Keystream { bytes: piece.len() as u32 };
        let mut sum = self.answered(key, Use::CtrDecrypt { counter: counter.to_vec() }, data, step)?;
        add(&mut sum, data);
        Ok(sum)
    }

    /// The answers to steps that depend on nothing before them, one for each piece.
    fn answered(
        &self,
        key: &KeyInfo,
        how: Use,
        data: &[u8],
        step: impl Fn(&[u8]) -> Step,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let mut pieces = data.chunks(CHUNK);
        let Some(first) = pieces.next() else { return Ok(Zeroizing::default()) };
        let (mut conversation, _) = self.begin_known(key, how, Some(step(first)))?;
        // Its full size at once: growing would leave a copy behind.
        let mut out = Zeroizing::new(Vec::with_capacity(data.len()));
        let mut awaited = first.len();
        for next in pieces {
            conversation.step(&step(next))?;
            out.extend_from_slice(&conversation.bytes(awaited)?);
            awaited = next.len();
        }
        out.extend_from_slice(&conversation.bytes(awaited)?);
        conversation.finish()?;
        Ok(out)
    }

    /// Encrypts one message with GCM: nonce, ciphertext, tag.
    pub fn encrypt_known_gcm(
        &self,
        key: impl Into<KeyVersion>,
        how: &AeadEncryption<'_>,
        message: &[u8],
    ) -> Result<Vec<u8>> {
        Ok(self.encrypt_gcm_under(&key.into(), how, message)?.0)
    }

    /// Encrypts one message with GCM under the current version of a key: nonce, ciphertext, tag; and which version that is.
    pub fn encrypt_current_gcm(
        &self,
        key: &str,
        how: &AeadEncryption<'_>,
        message: &[u8],
    ) -> Result<(Vec<u8>, KeyInfo)> {
        let (encrypted, info) = self.encrypt_gcm_under(&key.into(), how, message)?;
        Ok((encrypted, info.ok_or_else(|| Error::Answers("they did not say which key they use".into()))?))
    }

    fn encrypt_gcm_under(
        &self,
        key: &KeyVersion,
        how: &AeadEncryption<'_>,
        message: &[u8],
    ) -> Result<(Vec<u8>, Option<KeyInfo>)> {
        let (nonce, additional) = (how.nonce.map(<[u8]>::to_vec), how.additional.to_vec());
        let pieces: Vec<&[u8]> = message.chunks(CHUNK).collect();
        let how_used = Use::GcmEncrypt { additional, nonce };
        let (conversation, accepted) = self.begin_under(key, how_used, Some(first_step(&pieces)))?;
        let mut out = Vec::with_capacity(MAX_NONCE + message.len() + TAG);
        match how.nonce {
            Some(nonce) => out.extend_from_slice(nonce),
            None if accepted.start.len() == NONCE => out.extend_from_slice(&accepted.start),
            None => return Err(Error::Answers("they gave no nonce".into())),
        }
        encrypt_pieces(conversation, &pieces, how.tag_bytes, &mut out)?;
        Ok((out, accepted.key))
    }

    /// Decrypts one message of GCM: nonce, ciphertext, tag. The nodes give no keystream unless it is authentic.
    pub fn decrypt_known_gcm(
        &self,
        key: impl Into<KeyVersion>,
        how: &AeadDecryption<'_>,
        message: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let len = how.ciphertext_bytes(message.len() as u64)? as usize;
        let (nonce, rest) = message.split_at(how.nonce_bytes);
        let (ciphertext, tag) = rest.split_at(len);
        let how = Use::GcmDecrypt { nonce: nonce.to_vec(), additional: how.additional.to_vec() };
        let check = Step::Check { tag: tag.to_vec() };
        let mut steps = ciphertext.chunks(CHUNK).map(|piece| Step::Absorb { ciphertext: piece.to_vec() });
        let first = steps.next();
        let mut awaited = usize::from(first.is_some());
        let (mut conversation, _) =
            self.begin_under(&key.into(), how, Some(first.unwrap_or_else(|| check.clone())))?;
        if awaited > 0 {
            for step in steps.chain([check]) {
                if awaited == WINDOW {
                    conversation.nothing()?;
                    awaited -= 1;
                }
                conversation.step(&step)?;
                awaited += 1;
            }
        }
        for _ in 0..awaited.max(1) {
            conversation.nothing()?;
        }
        let mut plain = Zeroizing::new(Vec::with_capacity(ciphertext.len()));
        let (mut ahead, mut open) = (ciphertext.chunks(CHUNK), 0);
        for piece in ciphertext.chunks(CHUNK) {
            while open < WINDOW
                && let Some(next) = ahead.next()
            {
                conversation.step(&Step::Keystream { bytes: next.len() as u32 })?;
                open += 1;
            }
            let keystream = conversation.bytes(piece.len())?;
            open -= 1;
            plain.extend(keystream.iter().zip(piece).map(|(k, c)| k ^ c));
        }
        conversation.finish()?;
        Ok(plain)
    }

    /// The whole message authentication code of a message (SP 800-38B).
    pub fn known_cmac(&self, key: &KeyInfo, message: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let block = cipher_of(key)?.block_bytes;
        let whole = !message.is_empty() && message.len().is_multiple_of(block);
        let mut filled = Zeroizing::new(Vec::with_capacity(message.len() + block));
        filled.extend_from_slice(message);
        if !whole {
            filled.push(0x80);
            let whole = filled.len().next_multiple_of(block);
            filled.resize(whole, 0);
        }
        let pieces: Vec<&[u8]> = filled.chunks(CHAINED).collect();
        let how = Use::Cmac { mask: pieces[0].len() as u32 };
        let (mut conversation, accepted) = self.begin_known(key, how, None)?;
        let (mut mask, mut tag) = (accepted.mask, Zeroizing::default());
        for (i, piece) in pieces.iter().enumerate() {
            let next = pieces.get(i + 1).map_or(0, |next| next.len());
            let end = match (next, whole) {
                (1.., _) => End::No,
                (0, true) => End::Whole,
                (0, false) => End::Filled,
            };
            conversation.step(&Step::Masked { data: under(&mask, piece)?, next: next as u32, end })?;
            (tag, mask) = conversation.bytes_and_mask((next == 0).then_some(block), next)?;
        }
        conversation.finish()?;
        Ok(tag)
    }

    pub(crate) fn begin_known(
        &self,
        key: &KeyInfo,
        how: Use,
        first: Option<Step>,
    ) -> Result<(Conversation<'_>, Accepted)> {
        self.begin_under(&key.into(), how, first)
    }

    fn begin_under(
        &self,
        KeyVersion { name, id }: &KeyVersion,
        how: Use,
        first: Option<Step>,
    ) -> Result<(Conversation<'_>, Accepted)> {
        let operation = Operation::Use(operations::UseKey { key: name.clone(), id: *id, how });
        Conversation::begin(self, &operation, first.as_ref())
    }
}

/// Encrypts the pieces of a message of GCM, of which the first step is sent: ciphertext and tag.
pub(crate) fn encrypt_pieces(
    mut conversation: Conversation<'_>,
    pieces: &[&[u8]],
    tag_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut ahead = pieces.iter().copied();
    // What is answered next: the keystream for a piece, or for `None` that one was taken.
    let mut awaited: VecDeque<Option<&[u8]>> = ahead.next().into_iter().map(Some).collect();
    let mut open = awaited.len();
    loop {
        while open < WINDOW
            && let Some(piece) = ahead.next()
        {
            conversation.step(&Step::Keystream { bytes: piece.len() as u32 })?;
            awaited.push_back(Some(piece));
            open += 1;
        }
        let Some(next) = awaited.pop_front() else { break };
        let Some(piece) = next else {
            conversation.nothing()?;
            continue;
        };
        let mut ciphertext = conversation.bytes(piece.len())?.to_vec();
        add(&mut ciphertext, piece);
        out.extend_from_slice(&ciphertext);
        conversation.step(&Step::Absorb { ciphertext })?;
        awaited.push_back(None);
        open -= 1;
        if open == 0 {
            conversation.step(&Step::Tag)?;
        }
    }
    let tag = conversation.tag()?;
    out.extend_from_slice(tag.get(..tag_bytes).unwrap_or(&tag));
    conversation.finish()
}

fn cipher_of(key: &KeyInfo) -> Result<Cipher> {
    let name = &key.properties.cipher;
    catalog::find(name).ok_or_else(|| Error::Misuse(format!("this program does not know the cipher {name}")))
}

fn whole_blocks(key: &KeyInfo, data: &[u8]) -> Result<()> {
    let block = cipher_of(key)?.block_bytes;
    match data.len().is_multiple_of(block) {
        true => Ok(()),
        false => Err(Error::Misuse(format!("the data are not whole blocks of {block} bytes"))),
    }
}

fn add(sum: &mut [u8], other: &[u8]) {
    sum.iter_mut().zip(other).for_each(|(s, o)| *s ^= o);
}
