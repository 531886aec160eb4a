//! Single messages of SIV and CCM, whose blocks the nodes compute one after the other: short ones.
//!
//! The message goes to the nodes under masks. They never see it, and fill it up themselves.

use polyclave_api::{CHAINED, End, KeyInfo, MAX_CHAINED, Step, Use};
use zeroize::Zeroizing;

use super::KeyHandle;
use super::aead::Aead;
use super::pieces::under;
use crate::session::conversation::Conversation;
use crate::{Error, Result};

const BLOCK: usize = 16;

/// Refuses a message that the nodes would refuse.
fn refuse_long(bytes: usize, mode: &str) -> Result<u32> {
    if bytes > MAX_CHAINED {
        return Err(Error::Misuse(format!(
            "{mode} takes messages of at most {MAX_CHAINED} bytes, because its blocks are computed one after the other; use gcm for \
             longer ones"
        )));
    }
    Ok(bytes as u32)
}

/// The steps of a message: pieces, filled up with zeros to whole blocks.
fn pieces(message: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let filled = |piece: &[u8]| {
        // Allocated at its full size: growing would leave a copy behind.
        let mut filled = Zeroizing::new(Vec::with_capacity(piece.len().next_multiple_of(BLOCK)));
        filled.extend_from_slice(piece);
        filled.resize(piece.len().next_multiple_of(BLOCK), 0);
        filled
    };
    message.chunks(CHAINED).map(filled).collect()
}

fn sum(data: &[u8], keystream: &[u8]) -> Vec<u8> {
    data.iter().zip(keystream).map(|(d, k)| d ^ k).collect()
}

/// Encrypts and decrypts messages of SIV (RFC 5297) under a key.
pub struct Siv<'k> {
    pub(crate) key: &'k KeyHandle<'k>,
    pub(crate) additional: &'k [Vec<u8>],
}

impl Siv<'_> {
    /// Encrypts one message: the tag of 16 bytes, then the ciphertext. Equal messages with equal additional
    /// data have equal ciphertexts.
    pub fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>> {
        let bytes = refuse_long(message.len(), "siv")?;
        let mut pieces = pieces(message);
        if pieces.is_empty() {
            pieces.push(Zeroizing::new(vec![0; BLOCK]));
        }
        let (additional, mask) = (self.additional.to_vec(), pieces[0].len() as u32);
        let (mut conversation, accepted) =
            self.key.begin(Use::SivEncrypt { additional, bytes, mask }, None)?;
        let (mut mask, mut out) = (accepted.mask, Vec::new());
        for (i, piece) in pieces.iter().enumerate() {
            let next = pieces.get(i + 1).map_or(0, |next| next.len());
            let data = under(&mask, piece)?;
            conversation.step(&Step::Masked { data, next: next as u32, end: End::No })?;
            let (tag, of_next) = conversation.bytes_and_mask((next == 0).then_some(BLOCK), next)?;
            mask = of_next;
            out.extend_from_slice(&tag);
        }
        if bytes > 0 {
            conversation.step(&Step::Keystream { bytes })?;
            out.extend(sum(message, &conversation.bytes(message.len())?));
        }
        conversation.finish()?;
        Ok(out)
    }

    /// Decrypts one message. Anything but the ciphertext of a message with this additional data is
    /// [`Error::Unauthentic`].
    pub fn decrypt(&self, message: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let short = || Error::Unauthentic("the input is shorter than a tag".into());
        let (tag, ciphertext) = message.split_first_chunk::<BLOCK>().ok_or_else(short)?;
        let bytes = refuse_long(ciphertext.len(), "siv")?;
        let how = Use::SivDecrypt { additional: self.additional.to_vec(), bytes, tag: *tag };
        let (conversation, _) = self.key.begin(how, None)?;
        authenticated(conversation, ciphertext, tag)
    }
}

impl Aead<'_> {
    pub(crate) fn encrypt_ccm(&self, message: &[u8]) -> Result<(Vec<u8>, Option<KeyInfo>)> {
        let bytes = refuse_long(message.len(), "ccm")?;
        let pieces = pieces(message);
        let (nonce, additional) = (self.nonce.map(<[u8]>::to_vec), self.additional.to_vec());
        let tag = u8::try_from(self.tag_bytes).unwrap_or(u8::MAX);
        let mask = pieces.first().map_or(0, |piece| piece.len()) as u32;
        let (mut conversation, accepted) =
            self.key.begin(Use::CcmEncrypt { nonce, additional, bytes, tag, mask }, None)?;
        let mut out = self.first_bytes(&accepted.start)?.to_vec();
        let mut mask = accepted.mask;
        for (i, piece) in pieces.iter().enumerate() {
            let next = pieces.get(i + 1).map_or(0, |next| next.len());
            let part = &message[CHAINED * i..message.len().min(CHAINED * (i + 1))];
            let data = under(&mask, piece)?;
            conversation.step(&Step::Masked { data, next: next as u32, end: End::No })?;
            let (keystream, of_next) = conversation.bytes_and_mask(Some(part.len()), next)?;
            mask = of_next;
            out.extend(sum(part, &keystream));
        }
        conversation.step(&Step::Tag)?;
        out.extend_from_slice(&conversation.bytes(self.tag_bytes)?);
        conversation.finish()?;
        Ok((out, accepted.key))
    }

    pub(crate) fn decrypt_ccm(&self, message: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let (nonce, ciphertext, tag) = self.parts(message)?;
        let bytes = refuse_long(ciphertext.len(), "ccm")?;
        let (nonce, additional) = (nonce.to_vec(), self.additional.to_vec());
        let of_tag = u8::try_from(tag.len()).unwrap_or(u8::MAX);
        let how = Use::CcmDecrypt { nonce, additional, bytes, tag: of_tag };
        let (conversation, _) = self.key.begin(how, None)?;
        authenticated(conversation, ciphertext, tag)
    }
}

/// Has the nodes compare the tag of a ciphertext, and decrypts it with the keystream that they give then.
fn authenticated(
    mut conversation: Conversation<'_>,
    ciphertext: &[u8],
    tag: &[u8],
) -> Result<Zeroizing<Vec<u8>>> {
    for piece in ciphertext.chunks(CHAINED) {
        conversation.step(&Step::Absorb { ciphertext: piece.to_vec() })?;
        conversation.nothing()?;
    }
    conversation.step(&Step::Check { tag: tag.to_vec() })?;
    conversation.nothing()?;
    let mut message = Zeroizing::new(Vec::with_capacity(ciphertext.len()));
    for piece in ciphertext.chunks(CHAINED) {
        conversation.step(&Step::Keystream { bytes: piece.len() as u32 })?;
        let keystream = conversation.bytes(piece.len())?;
        message.extend(piece.iter().zip(keystream.iter()).map(|(c, k)| c ^ k));
    }
    conversation.finish()?;
    Ok(message)
}
