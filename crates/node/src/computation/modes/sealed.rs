//! Sealed files: a file as numbered chunks, each a GCM message of its own whose additional data binds it to
//! its file and place (docs/use/sealed-files.md). Chunks cannot be dropped, reordered, cut off or taken from
//! another file.
//!
//! A chunk takes one evaluation, with E(J0) among its blocks. On encryption the keystream is sent first, and
//! the tag follows when the client has sent the ciphertext. Meanwhile the next chunk can be in progress.

use std::collections::VecDeque;

use polyclave_api::{CHUNK, MESSAGE, Reason, Refusal, Step};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::service::{Elements, ServiceSession};

use super::gcm::{
    BLOCK, admit_message, counters, encrypted, fits, hash_key, hashed, lengths, padded, tag_mask,
};
use super::{Answer, Mode, StepError, misplaced, unauthentic};
use crate::computation::Computation;

/// The most chunks whose keystream was sent and whose ciphertext has not arrived.
const MAX_OPEN: usize = 4;

/// The nonce of a chunk: pseudorandom from the file's id, which no party could choose.
pub(super) fn nonce(file: &[u8; 32], number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 nonce of a sealed chunk");
    hasher.update(file).update(&number.to_le_bytes()).finalize_xof().fill(&mut nonce);
    nonce
}

/// What every chunk of a file is bound to.
pub(super) struct Bound {
    pub(super) key: [u8; 16],
    pub(super) file: [u8; 32],
    /// Digest of the client's additional data, if it gave any: format 2.
    pub(super) additional: Option<[u8; 32]>,
}

impl Bound {
    /// The additional data of a chunk: the kind of file, the key, the file, the chunk's number, whether it is
    /// the last, and the digest of the client's additional data.
    pub(super) fn to(&self, number: u64, last: bool) -> Vec<u8> {
        let kind: &[u8] =
            if self.additional.is_some() { b"polyclave sealed file 2" } else { b"polyclave sealed file 1" };
        let client = self.additional.as_ref().map_or(&[][..], |digest| digest);
        [kind, &self.key, &self.file, &number.to_le_bytes(), &[u8::from(last)], client].concat()
    }
}

/// Checks the length of a chunk. Only the last may be short, and only an empty file has an empty one.
fn admit_chunk(bytes: usize, number: u64, last: bool) -> Result<(), Refusal> {
    let fits = bytes == CHUNK || (last && bytes < CHUNK && (bytes > 0 || number == 0));
    if fits { Ok(()) } else { Err(unauthentic()) }
}

/// The hash of a whole chunk.
fn hash(additional: &[u8], ciphertext: &[u8], at: &mut Computation<'_>) -> Result<Elements, StepError> {
    let mut blocks = padded(additional);
    blocks.extend(padded(ciphertext));
    blocks.extend(lengths(additional.len() as u64, ciphertext.len() as u64));
    hashed(hash_key(at)?, None, &blocks, at)
}

/// E(J0) and the keystream of a chunk.
fn evaluated(
    file: &[u8; 32],
    number: u64,
    bytes: usize,
    at: &mut Computation<'_>,
) -> Result<(Elements, Option<AnyShared>), StepError> {
    let count = bytes.div_ceil(BLOCK);
    let blocks = at.encrypt(&counters(&nonce(file, number), 1, 1 + count as u64), &[])?;
    let keystream = (count > 0).then(|| at.protocol.lanes(&blocks, 1..1 + count));
    Ok((tag_mask(&blocks, at)?, keystream))
}

fn revealed(
    keystream: Option<AnyShared>,
    bytes: usize,
    at: &mut Computation<'_>,
) -> Result<Answer, StepError> {
    Ok(Answer::data(match keystream {
        Some(keystream) => at.protocol.reveal_bytes_to_client(&keystream, bytes, at.net)?,
        None => Vec::new(),
    }))
}

/// Seals a file.
pub(crate) struct Seal {
    to: Bound,
    /// Numbers of the keystreams admitted, and of the chunks admitted to be sealed.
    given: u64,
    sealed: u64,
    /// The sizes in bytes of the chunks in between; with the cover of the tag where the keystream has been
    /// computed.
    lengths: VecDeque<usize>,
    covers: VecDeque<Elements>,
    ended: bool,
}

impl Seal {
    /// `additional` is the digest of the client's additional data, if it gave any.
    pub(crate) fn new(key: [u8; 16], additional: Option<[u8; 32]>) -> Self {
        let to = Bound { key, file: [0; 32], additional };
        let (lengths, covers) = (VecDeque::new(), VecDeque::new());
        Seal { to, given: 0, sealed: 0, lengths, covers, ended: false }
    }
}

impl Mode for Seal {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        self.to.file = at.derived("polyclave 2026 id of a sealed file");
        Ok((self.to.file.to_vec(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        match step {
            Step::Keystream { bytes } if !self.ended => {
                let bytes = *bytes as usize;
                admit_chunk(bytes, self.given, bytes < CHUNK).map_err(|_| misplaced(step))?;
                if self.lengths.len() == MAX_OPEN {
                    let message = format!("{MAX_OPEN} chunks wait for their ciphertext; seal one first");
                    return Err(Refusal::new(Reason::Malformed, message));
                }
                self.given += 1;
                self.ended = bytes < CHUNK;
                self.lengths.push_back(bytes);
                Ok(1 + bytes.div_ceil(BLOCK) as u64)
            }
            Step::Seal { ciphertext, last } if self.lengths.front() == Some(&ciphertext.len()) => {
                let nothing_follows = self.lengths.len() == 1;
                admit_chunk(ciphertext.len(), self.sealed, *last).map_err(|_| misplaced(step))?;
                if *last && !nothing_follows {
                    return Err(misplaced(step));
                }
                self.ended |= *last;
                self.lengths.pop_front();
                self.sealed += 1;
                Ok(0)
            }
            Step::Message { masked } if !self.ended && self.given == 0 => {
                admit_message(masked.len(), MESSAGE)?;
                (self.given, self.sealed, self.ended) = (1, 1, true);
                Ok(1 + masked.len().div_ceil(BLOCK) as u64)
            }
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        match &step {
            Step::Keystream { bytes } => {
                let bytes = *bytes as usize;
                let (tag_mask, keystream) = evaluated(&self.to.file, self.given - 1, bytes, at)?;
                self.covers.push_back(tag_mask);
                revealed(keystream, bytes, at)
            }
            Step::Seal { ciphertext, last } => {
                let tag_mask = self.covers.pop_front().ok_or_else(|| StepError::Refused(misplaced(&step)))?;
                self.tag(ciphertext, *last, &tag_mask, at)
            }
            Step::Message { masked } => {
                let (tag_mask, ciphertext) = encrypted(&nonce(&self.to.file, 0), masked, at)?;
                let tag = self.tag(&ciphertext, true, &tag_mask, at)?;
                Ok(Answer { opened: ciphertext, ..tag })
            }
            other => Err(StepError::Refused(misplaced(other))),
        }
    }
}

impl Seal {
    /// The tag of the chunk that was admitted last to be sealed.
    fn tag(
        &self,
        ciphertext: &[u8],
        last: bool,
        tag_mask: &Elements,
        at: &mut Computation<'_>,
    ) -> Result<Answer, StepError> {
        let hash = hash(&self.to.to(self.sealed - 1, last), ciphertext, at)?;
        let tag = hash.add(tag_mask);
        Ok(Answer::data(at.protocol.reveal_elements(&tag, at.net)?))
    }
}

/// Opens a sealed file, chunk by chunk from the first.
pub(crate) struct Open {
    to: Bound,
    opened: u64,
    ended: bool,
}

impl Open {
    /// `additional` is the digest of the client's additional data, if it gave any.
    pub(crate) fn new(key: [u8; 16], file: [u8; 32], additional: Option<[u8; 32]>) -> Self {
        Open { to: Bound { key, file, additional }, opened: 0, ended: false }
    }
}

impl Mode for Open {
    fn start(&mut self, _: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        Ok((Vec::new(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        match step {
            Step::Open { ciphertext, last, .. } if !self.ended => {
                admit_chunk(ciphertext.len(), self.opened, *last)?;
                self.opened += 1;
                self.ended = *last;
                Ok(1 + ciphertext.len().div_ceil(BLOCK) as u64)
            }
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let Step::Open { ciphertext, tag, last } = &step else {
            return Err(StepError::Refused(misplaced(&step)));
        };
        let number = self.opened - 1;
        let (tag_mask, keystream) = evaluated(&self.to.file, number, ciphertext.len(), at)?;
        let hash = hash(&self.to.to(number, *last), ciphertext, at)?;
        match fits(&hash, &tag_mask, tag, at)? {
            true => revealed(keystream, ciphertext.len(), at),
            false => Err(StepError::Refused(unauthentic())),
        }
    }
}
