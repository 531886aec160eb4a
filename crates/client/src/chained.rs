//! Single messages of SIV and CCM, whose blocks the nodes compute one after the other: short ones.
//!
//! The message goes to the nodes under masks. They never see it, and fill it up themselves.

use polyclave_api::{CHAINED, End, MAX_CHAINED, Operation, Step, Use, operations};
use zeroize::Zeroizing;

use crate::aead::{AeadDecryption, AeadEncryption};
use crate::blocks::under;
use crate::client::Client;
use crate::conversation::{Accepted, Conversation};
use crate::{Error, Result};

const BLOCK: usize = 16;
/// Bytes of a nonce of the nodes.
const NONCE: usize = 12;

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

impl Client {
    /// Encrypts one message with SIV (RFC 5297): the tag of 16 bytes, then the ciphertext. Equal messages with equal additional data have
    /// equal ciphertexts.
    pub fn encrypt_siv(&self, key: &str, additional: &[Vec<u8>], message: &[u8]) -> Result<Vec<u8>> {
        let bytes = refuse_long(message.len(), "siv")?;
        let mut pieces = pieces(message);
        if pieces.is_empty() {
            pieces.push(Zeroizing::new(vec![0; BLOCK]));
        }
        let how = Use::SivEncrypt { additional: additional.to_vec(), bytes, mask: pieces[0].len() as u32 };
        let (mut conversation, accepted) = self.begin(key, how)?;
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

    /// Decrypts one message of SIV. Anything but the ciphertext of a message with this additional data is [`Error::Unauthentic`].
    pub fn decrypt_siv(
        &self,
        key: &str,
        additional: &[Vec<u8>],
        message: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let short = || Error::Unauthentic("the input is shorter than a tag".into());
        let (tag, ciphertext) = message.split_first_chunk::<BLOCK>().ok_or_else(short)?;
        let bytes = refuse_long(ciphertext.len(), "siv")?;
        let how = Use::SivDecrypt { additional: additional.to_vec(), bytes, tag: *tag };
        let (conversation, _) = self.begin(key, how)?;
        authenticated(conversation, ciphertext, tag)
    }

    /// Encrypts one message with CCM: nonce, ciphertext, tag.
    pub fn encrypt_ccm(&self, key: &str, how: &AeadEncryption<'_>, message: &[u8]) -> Result<Vec<u8>> {
        let bytes = refuse_long(message.len(), "ccm")?;
        let pieces = pieces(message);
        let (nonce, additional) = (how.nonce.map(<[u8]>::to_vec), how.additional.to_vec());
        let tag = u8::try_from(how.tag_bytes).unwrap_or(u8::MAX);
        let mask = pieces.first().map_or(0, |piece| piece.len()) as u32;
        let (mut conversation, accepted) =
            self.begin(key, Use::CcmEncrypt { nonce, additional, bytes, tag, mask })?;
        let mut out = match how.nonce {
            Some(nonce) => nonce.to_vec(),
            None if accepted.start.len() == NONCE => accepted.start,
            None => return Err(Error::Answers("they gave no nonce".into())),
        };
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
        out.extend_from_slice(&conversation.bytes(how.tag_bytes)?);
        conversation.finish()?;
        Ok(out)
    }

    /// Decrypts one message of CCM. Anything that does not authenticate is [`Error::Unauthentic`].
    pub fn decrypt_ccm(
        &self,
        key: &str,
        how: &AeadDecryption<'_>,
        message: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let ciphertext = how.ciphertext_bytes(message.len() as u64)? as usize;
        let (nonce, rest) = message.split_at(how.nonce_bytes);
        let (ciphertext, tag) = rest.split_at(ciphertext);
        let bytes = refuse_long(ciphertext.len(), "ccm")?;
        let (nonce, additional) = (nonce.to_vec(), how.additional.to_vec());
        let of_tag = u8::try_from(tag.len()).unwrap_or(u8::MAX);
        let (conversation, _) = self.begin(key, Use::CcmDecrypt { nonce, additional, bytes, tag: of_tag })?;
        authenticated(conversation, ciphertext, tag)
    }

    fn begin(&self, key: &str, how: Use) -> Result<(Conversation<'_>, Accepted)> {
        let operation = Operation::Use(operations::UseKey { key: key.into(), id: None, how });
        Conversation::begin(self, &operation, None)
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
