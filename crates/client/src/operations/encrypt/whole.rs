//! Messages that the nodes take whole: short ones of SIV, CCM and GCM-SIV.
//!
//! The message goes to the nodes under masks. They never see it, and fill it up themselves.

use polyclave_api::{CHAINED, End, KeyInfo, Message, Step, Use};
use zeroize::Zeroizing;

use super::aead::Aead;
use super::pieces::add;
use crate::session::first::{First, Masked, under};
use crate::{Error, Result};

const BLOCK: usize = 16;

/// The steps of a message: pieces, filled up with zeros to whole blocks; an empty one has one block.
fn pieces(message: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let filled = |piece: &[u8]| {
        let bytes = piece.len().next_multiple_of(BLOCK).max(BLOCK);
        // Allocated at its full size: growing would leave a copy behind.
        let mut filled = Zeroizing::new(Vec::with_capacity(bytes));
        filled.extend_from_slice(piece);
        filled.resize(bytes, 0);
        filled
    };
    match message {
        [] => vec![filled(&[])],
        _ => message.chunks(CHAINED).map(filled).collect(),
    }
}

impl Aead<'_> {
    /// What the nodes are told of a message of so many bytes. Refuses what they would refuse.
    fn described(&self, nonce: Option<&[u8]>, bytes: usize, tag_bytes: usize) -> Result<Message> {
        let message = Message {
            mode: self.mode,
            nonce: nonce.map(<[u8]>::to_vec),
            additional: self.additional.iter().map(|string| string.to_vec()).collect(),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        };
        message.check(tag_bytes).map(|()| message).map_err(Error::Misuse)
    }

    pub(crate) fn encrypt_whole(&self, message: &[u8]) -> Result<(Vec<u8>, Option<KeyInfo>)> {
        let described = self.described(self.nonce, message.len(), self.tag_bytes)?;
        let pieces = pieces(message);
        // It was checked.
        let tag_bytes = self.tag_bytes as u8;
        let how = Use::MessageEncrypt { message: described, tag_bytes, mask: pieces[0].len() as u32 };
        let next = |i: usize| pieces.get(i + 1).map_or(0, |next| next.len());
        let masked = |i: usize| Masked { data: &pieces[i], next: next(i), end: End::No };
        let (mut conversation, accepted) = self.key.begin(how, First::Masked(masked(0)))?;
        let mut tag = Zeroizing::default();
        for i in 0..pieces.len() {
            if next(i) == 0 && !message.is_empty() {
                // Behind the last piece, so that its answer comes with the tag.
                conversation.step(&Step::Keystream { bytes: message.len() as u32 })?;
            }
            let mask;
            (tag, mask) = conversation.bytes_and_mask((next(i) == 0).then_some(self.tag_bytes), next(i))?;
            if next(i) > 0 {
                conversation.step(&masked(i + 1).under(&mask)?)?;
            }
        }
        let mut ciphertext = Vec::new();
        if !message.is_empty() {
            ciphertext = under(&conversation.bytes(message.len())?, message)?;
        }
        conversation.finish()?;
        let nonce = self.first_bytes(&accepted.start)?;
        let parts = if self.mode.begins_with_tag() {
            [&tag[..], nonce, &ciphertext]
        } else {
            [nonce, &ciphertext, &tag]
        };
        Ok((parts.concat(), accepted.key))
    }

    /// Has the nodes compare the tag of a ciphertext, and decrypts it with the keystream that they give then.
    pub(crate) fn decrypt_whole(&self, message: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let (nonce, ciphertext, tag) = self.parts(message)?;
        let nonce = Some(nonce).filter(|_| self.mode.nonce_bytes().is_some());
        let described = self.described(nonce, ciphertext.len(), tag.len())?;
        let how = Use::MessageDecrypt { message: described, tag: tag.to_vec() };
        let absorb = |piece: &[u8]| Step::Absorb { ciphertext: piece.to_vec() };
        let check = Step::Check { tag: tag.to_vec() };
        let mut steps: Vec<Step> = ciphertext.chunks(CHAINED).map(absorb).chain([check]).collect();
        let further = steps.split_off(1);
        let (mut conversation, _) = self.key.begin(how, First::Step(&steps[0]))?;
        for step in &further {
            conversation.step(step)?;
            conversation.nothing()?;
        }
        conversation.nothing()?;
        let mut message = Zeroizing::new(ciphertext.to_vec());
        for piece in message.chunks_mut(CHAINED) {
            conversation.step(&Step::Keystream { bytes: piece.len() as u32 })?;
            add(piece, &conversation.bytes(piece.len())?);
        }
        conversation.finish()?;
        Ok(message)
    }
}
