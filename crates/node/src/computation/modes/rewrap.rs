//! Rewrapping: what was encrypted under one key of AES is encrypted under another, and nobody sees it in the
//! clear in between.
//!
//! The nodes verify the old tag, or the beginning of the register of key wrap, before they do anything else.
//! Only if it fits they compute what is new, and reveal it to the client alone. An altered ciphertext tells
//! nobody more than that it was altered.
//!
//! * **GCM, and sealed files of one chunk.** With keystreams S under the old key and T under the new one,
//!   both shared, the new ciphertext is the old one plus S + T. The client learns S + T, which the old and
//!   the new ciphertext tell it anyway. The nodes hash the new ciphertext on shares: it is public blocks plus
//!   S + T, and what S + T adds to the hash is one inner product with powers of the new hash key. The client
//!   says nothing about the new ciphertext, so one that may only rewrap cannot change a bit of what is in it.
//! * **KW and KWP.** The register is unwrapped on shares, compared, and wrapped again.
//!
//! T is keystream under a nonce that the nodes draw, and used for nothing else. So S + T is uniform to a
//! client that does not know the message, and t nodes learn nothing: they see the old ciphertext, and shares.

use polyclave_api::{self as api, MAX_REWRAPPED, Reason, Refusal, Rewrapped, Step, Wrapping};
use polyclave_cipher::{catalog, key_wrap};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::{Elements, ServiceSession};

use super::gcm::{BLOCK, begins_so, counters, hash_key, hashed, lengths, padded, tag_mask};
use super::nonce::PLAIN;
use super::sealed::{Bound, nonce as nonce_of_chunk};
use super::{Answer, Mode, StepError, misplaced, refuse_long_additional, unauthentic};
use crate::computation::Computation;
use crate::computation::block_circuits::BlockCircuit;
use crate::computation::blocks::Term;
use crate::computation::key_circuits::padding;
use crate::computation::pieces::run;
use crate::computation::unwrap;

/// What is rewrapped.
pub(crate) struct Rewrap {
    what: Rewrapped,
    /// The ids of the old key and the new one.
    ids: [[u8; 16]; 2],
    /// The new nonce, or the id of the new file.
    start: Vec<u8>,
    /// The new tag, until it is asked for.
    tag: Option<Elements>,
    /// Which steps have been admitted.
    asked: Permission,
}

#[derive(PartialEq, Eq)]
enum Permission {
    Nothing,
    Ciphertext,
    Tag,
}

/// The nonce and the additional data of a message.
struct Frame {
    nonce: [u8; PLAIN],
    additional: Vec<u8>,
}

fn malformed(message: impl Into<String>) -> Refusal {
    Refusal::new(Reason::Malformed, message)
}

/// The cipher whose keys have as many bytes as a wrapped key.
fn cipher_of(wrapped: &[u8]) -> Result<&'static str, Refusal> {
    let lengths = [("aes-128", 16), ("aes-192", 24), ("aes-256", 32)];
    let found = lengths.into_iter().find(|(_, bytes)| key_wrap::wrapped_bytes(*bytes) == wrapped.len());
    let message = "wrapped keys of 16, 24 and 32 bytes are rewrapped";
    found.map(|(name, _)| name).ok_or_else(|| malformed(message))
}

impl Rewrap {
    /// Between the keys with these ids, of which the second is the one in use.
    pub(crate) fn new(what: &Rewrapped, old: [u8; 16], new: [u8; 16]) -> Result<Rewrap, Refusal> {
        let ciphertext = match what {
            Rewrapped::Gcm { nonce, additional, ciphertext, tag } => {
                refuse_long_additional(additional.len())?;
                if nonce.len() != PLAIN || api::Mode::Gcm.check_tag(tag.len()).is_err() {
                    return Err(malformed(
                        "messages with nonces of 12 bytes and tags of 12 to 16 are rewrapped",
                    ));
                }
                ciphertext
            }
            Rewrapped::Sealed { ciphertext, .. } => ciphertext,
            Rewrapped::Key { wrapped, .. } => {
                cipher_of(wrapped)?;
                &Vec::new()
            }
        };
        if ciphertext.len() > MAX_REWRAPPED {
            let given = ciphertext.len();
            return Err(malformed(format!(
                "{given} bytes are too many: at most {MAX_REWRAPPED} are rewrapped; decrypt and encrypt longer messages, or keep a key in them"
            )));
        }
        let (start, tag, asked) = (Vec::new(), None, Permission::Nothing);
        Ok(Rewrap { what: what.clone(), ids: [old, new], start, tag, asked })
    }

    /// Blocks that are computed under each of the two keys.
    pub(crate) fn blocks(&self) -> u64 {
        match &self.what {
            Rewrapped::Gcm { ciphertext, .. } | Rewrapped::Sealed { ciphertext, .. } => {
                1 + ciphertext.len().div_ceil(BLOCK) as u64
            }
            Rewrapped::Key { wrapped, how } => {
                key_wrap::blocks(padding(*how), wrapped.len() - key_wrap::wrapped_bytes(0))
            }
        }
    }

    /// The old and the new frame of a message.
    fn frames(&self) -> Result<[Frame; 2], StepError> {
        let broken = |_| StepError::Refused(malformed("a nonce of another length"));
        match &self.what {
            Rewrapped::Gcm { nonce, additional, .. } => {
                let of = |nonce: &[u8]| -> Result<Frame, StepError> {
                    Ok(Frame { nonce: nonce.try_into().map_err(broken)?, additional: additional.clone() })
                };
                Ok([of(nonce)?, of(&self.start)?])
            }
            Rewrapped::Sealed { file, additional, .. } => {
                let of = |file: [u8; 32], key: [u8; 16]| {
                    let to = Bound { key, file, additional: *additional };
                    Frame { nonce: nonce_of_chunk(&file, 0), additional: to.to(0, true) }
                };
                let [old, new] = self.ids;
                Ok([of(*file, old), of(self.start.as_slice().try_into().map_err(broken)?, new)])
            }
            Rewrapped::Key { .. } => Err(StepError::Refused(malformed("a key is no message"))),
        }
    }

    /// Returns this node's part of what the client adds to the ciphertext, and the new tag.
    fn message(
        &self,
        (ciphertext, tag): (&[u8], &[u8]),
        at: &mut Computation<'_>,
    ) -> Result<(Vec<u8>, Elements), StepError> {
        let [old, new] = self.frames()?;
        let count = ciphertext.len().div_ceil(BLOCK);
        let of_old = at.under_other(|at| {
            let (tag_mask, keystream) = keystream(&old.nonce, count, at)?;
            let hash = hash(&old.additional, ciphertext, at)?;
            match begins_so(&hash, &tag_mask, tag, at)? {
                true => Ok(keystream),
                false => Err(StepError::Refused(unauthentic())),
            }
        })?;
        let (tag_mask, of_new) = keystream(&new.nonce, count, at)?;
        let tag = hash(&new.additional, ciphertext, at)?.add(&tag_mask);
        let (Some(of_old), Some(of_new)) = (of_old, of_new) else { return Ok((Vec::new(), tag)) };
        let change = sum(&of_old, &of_new, ciphertext.len(), at)?;
        let changed = at.protocol.elements(&change, at.net)?;
        let of_change = hash_key(at)?.of_shared(&changed, at.protocol.arithmetic(), at.net)?;
        let tag = tag.add(&of_change);
        Ok((at.protocol.reveal_bytes_to_client(&change, ciphertext.len(), at.net)?, tag))
    }

    /// Returns this node's part of the key that is wrapped anew.
    fn key((wrapped, how): (&[u8], Wrapping), at: &mut Computation<'_>) -> Result<Vec<u8>, StepError> {
        let name = cipher_of(wrapped).map_err(StepError::Refused)?;
        let unknown =
            || StepError::Refused(Refusal::new(Reason::Key, format!("there is no cipher '{name}'")));
        let circuits = at.library.of(name, &at.protocol).ok_or_else(unknown)?;
        let cipher = at.protocol.form(catalog::find(name).ok_or_else(unknown)?);
        let key = at.under_other(|at| {
            let between = (at.circuits, &*circuits);
            let key = unwrap::unwrap((wrapped, how), at.key, between, &mut at.protocol, at.net)?;
            key.ok_or_else(|| StepError::Refused(unwrap::unauthentic()))
        })?;
        let circuit = at.circuits.keys.wrap(&at.circuits.cipher, how, &cipher, &at.protocol)?;
        let inputs = [Input::Shared(&key), Input::Shared(&at.key.round_keys)];
        let wrapped = run(&mut at.protocol, at.net, &circuit, 1, &inputs)?.remove(0);
        Ok(at.protocol.reveal_to_client(&wrapped, at.net)?)
    }
}

/// E(J0) and the keystream of a message of so many blocks.
fn keystream(
    nonce: &[u8; PLAIN],
    count: usize,
    at: &mut Computation<'_>,
) -> Result<(Elements, Option<AnyShared>), StepError> {
    let circuit = at.block_circuit(BlockCircuit::Encrypted)?;
    let blocks = at.circuits.blocks(&counters(nonce, 1, 1 + count as u64))?;
    let encrypted = at.one(&circuit, 1 + count, &[Input::Public(&blocks)])?;
    let keystream = (count > 0).then(|| at.protocol.lanes(&encrypted, 1..1 + count));
    Ok((tag_mask(&encrypted, at)?, keystream))
}

/// The hash of a message whose ciphertext is public.
fn hash(additional: &[u8], ciphertext: &[u8], at: &mut Computation<'_>) -> Result<Elements, StepError> {
    let lengths = lengths(additional.len() as u64, ciphertext.len() as u64);
    let blocks = [padded(additional), padded(ciphertext), lengths.to_vec()].concat();
    hashed(hash_key(at)?, None, &blocks, at)
}

/// The sum of two keystreams of so many bytes, with zeros behind it up to whole blocks. Local.
fn sum(
    one: &AnyShared,
    other: &AnyShared,
    bytes: usize,
    at: &mut Computation<'_>,
) -> Result<AnyShared, StepError> {
    let (whole, rest) = (bytes / BLOCK, bytes % BLOCK);
    let mut parts = Vec::new();
    if whole > 0 {
        let circuit = at.block_circuit(BlockCircuit::Beginning(BLOCK))?;
        let [one, other] = [one, other].map(|keystream| at.protocol.lanes(keystream, 0..whole));
        let inputs = [Input::Shared(&one), Input::Shared(&other)];
        parts.push(run(&mut at.protocol, at.net, &circuit, whole, &inputs)?.remove(0));
    }
    if rest > 0 {
        let [one, other] = [one, other].map(|keystream| at.protocol.lanes(keystream, whole..whole + 1));
        let cut = at.beginning(rest, &one, Term::Public([0; BLOCK]))?;
        parts.push(at.beginning(rest, &other, Term::Shared(&cut))?);
    }
    Ok(at.protocol.join_lanes(&parts.iter().collect::<Vec<_>>()))
}

impl Mode for Rewrap {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        self.start = match self.what {
            Rewrapped::Gcm { .. } => at.derived::<PLAIN>("polyclave 2026 gcm nonce").to_vec(),
            Rewrapped::Sealed { .. } => at.derived::<32>("polyclave 2026 id of a sealed file").to_vec(),
            Rewrapped::Key { .. } => Vec::new(),
        };
        Ok((self.start.clone(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        let is_message = !matches!(self.what, Rewrapped::Key { .. });
        match step {
            Step::Rewrapped if self.asked == Permission::Nothing => {
                self.asked = Permission::Ciphertext;
                Ok(self.blocks())
            }
            Step::Tag if self.asked == Permission::Ciphertext && is_message => {
                self.asked = Permission::Tag;
                Ok(0)
            }
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        match (&step, &self.what) {
            (Step::Rewrapped, Rewrapped::Key { wrapped, how }) => {
                Ok(Answer::data(Rewrap::key((wrapped, *how), at)?))
            }
            (Step::Rewrapped, Rewrapped::Gcm { ciphertext, tag, .. }) => {
                let (text, tag) = self.message((ciphertext, tag), at)?;
                self.tag = Some(tag);
                Ok(Answer::data(text))
            }
            (Step::Rewrapped, Rewrapped::Sealed { ciphertext, tag, .. }) => {
                let (text, tag) = self.message((ciphertext, tag), at)?;
                self.tag = Some(tag);
                Ok(Answer::data(text))
            }
            (Step::Tag, _) => {
                let tag = self.tag.take().ok_or_else(|| StepError::Refused(misplaced(&step)))?;
                Ok(Answer::data(at.protocol.reveal_elements(&tag, at.net)?))
            }
            _ => Err(StepError::Refused(misplaced(&step))),
        }
    }
}
