//! Modes of operation at a node: how each use of a key answers the steps of a client.
//!
//! A step is first admitted (does it fit here, and how many blocks will it compute?), then all nodes compare it, and only then
//! it runs. What every node refuses alike in [`Mode::run`] (a wrong tag) leaves the nodes in step.

mod blocks;
mod chain;
mod counter;
mod gcm;
mod numbers;
mod sealed;

use polyclave_cipher::Cipher;
use polyclave_protocol::Error;
use polyclave_transport::wire::{self, Reason, Refusal, Right, Step, Use};

use crate::computation::Computation;
use crate::computation::modes::numbers::Tweaks;

/// What the client is answered to a step.
pub(crate) struct Answer {
    pub(crate) data: Vec<u8>,
    pub(crate) mask: Vec<u8>,
    /// With the first answer of CBC: of the initial block.
    pub(crate) initial: Vec<u8>,
}

impl Answer {
    pub(crate) fn data(data: Vec<u8>) -> Answer {
        Answer { data, mask: Vec::new(), initial: Vec::new() }
    }
}

/// Why a step did not run.
pub(crate) enum Fault {
    /// All nodes refuse it alike.
    Refused(Refusal),
    /// This node alone cannot go on, by its own fault: the others go on without it, or not.
    Own(Refusal),
    /// The protocol failed: the nodes may be out of step.
    Failed(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Failed(error)
    }
}

/// One use of a key, from its first step to its last.
pub(crate) trait Mode: Send {
    /// Blocks that the start computes.
    fn blocks_at_start(&self) -> u64 {
        0
    }

    /// What the client is told at the start: of the session, and its first mask.
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), Fault>;

    /// Whether a step fits here; how many blocks it computes. Nothing is computed yet.
    fn admit(&mut self, step: &Step) -> Result<u64, Refusal>;

    /// Runs an admitted step.
    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, Fault>;
}

/// The mode of a key that a use needs, and the right.
pub(crate) fn needs(how: &Use) -> (wire::Mode, Right) {
    match how {
        Use::Seal | Use::GcmEncrypt { .. } => (wire::Mode::Gcm, Right::Encrypt),
        Use::Open { .. } | Use::GcmDecrypt { .. } => (wire::Mode::Gcm, Right::Decrypt),
        Use::CtrEncrypt => (wire::Mode::Ctr, Right::Encrypt),
        Use::CtrDecrypt { .. } => (wire::Mode::Ctr, Right::Decrypt),
        Use::CbcEncrypt { .. } => (wire::Mode::Cbc, Right::Encrypt),
        Use::CbcDecrypt => (wire::Mode::Cbc, Right::Decrypt),
        Use::EcbEncrypt { .. } => (wire::Mode::Ecb, Right::Encrypt),
        Use::EcbDecrypt { .. } => (wire::Mode::Ecb, Right::Decrypt),
        Use::Cmac { .. } => (wire::Mode::Cmac, Right::Mac),
    }
}

/// The machine for a use of a key of a cipher.
pub(crate) fn machine(how: &Use, cipher: &Cipher, key_id: [u8; 16]) -> Result<Box<dyn Mode>, Refusal> {
    let (block, tweak) = (cipher.block_bytes, cipher.tweak_bytes);
    Ok(match how {
        Use::Seal => Box::new(sealed::Seal::new(key_id)),
        Use::Open { file } => Box::new(sealed::Open::new(key_id, *file)),
        Use::GcmEncrypt { additional } => Box::new(gcm::Encrypt::new(additional)?),
        Use::GcmDecrypt { nonce, additional } => Box::new(gcm::Decrypt::new(*nonce, additional)?),
        Use::CtrEncrypt => Box::new(counter::Counter::fresh(block, tweak)),
        Use::CtrDecrypt { counter } => Box::new(counter::Counter::from(block, tweak, counter)?),
        Use::CbcEncrypt { mask } => Box::new(chain::Chain::cbc(block, *mask)?),
        Use::CbcDecrypt => Box::new(blocks::Decrypt::new(block, Tweaks::new(tweak, &[])?)),
        Use::EcbEncrypt { mask, tweak: first } => {
            Box::new(blocks::Encrypt::new(block, Tweaks::new(tweak, first)?, *mask)?)
        }
        Use::EcbDecrypt { tweak: first } => Box::new(blocks::Decrypt::new(block, Tweaks::new(tweak, first)?)),
        Use::Cmac { mask } => Box::new(chain::Chain::cmac(block, *mask)?),
    })
}

/// A step that does not belong here.
pub(crate) fn misplaced(step: &Step) -> Refusal {
    let name = match step {
        Step::Keystream { .. } => "Keystream",
        Step::Seal { .. } => "Seal",
        Step::Open { .. } => "Open",
        Step::Absorb { .. } => "Absorb",
        Step::Tag => "Tag",
        Step::Check { .. } => "Check",
        Step::Masked { .. } => "Masked",
        Step::Blocks { .. } => "Blocks",
        Step::Chi { .. } => "Chi",
        Step::Finish => "Finish",
    };
    Refusal::new(
        Reason::Malformed,
        format!("the step {name} does not belong here; is the client of another version?"),
    )
}

/// Bytes that make whole blocks, at least one and at most `most` bytes.
pub(crate) fn whole_blocks(bytes: usize, block: usize, most: usize) -> Result<u64, Refusal> {
    if bytes == 0 || bytes > most || !bytes.is_multiple_of(block) {
        let told = format!("{bytes} bytes are not whole blocks of {block} bytes, from 1 to {most} bytes");
        return Err(Refusal::new(Reason::Malformed, told));
    }
    Ok((bytes / block) as u64)
}

/// The same that may end in part of a block.
pub(crate) fn piece(bytes: usize) -> Result<(), Refusal> {
    if bytes == 0 || bytes > wire::CHUNK {
        let told = format!("a piece of {bytes} bytes; 1 to {} are allowed", wire::CHUNK);
        return Err(Refusal::new(Reason::Malformed, told));
    }
    Ok(())
}

/// The one answer to whatever does not fit together, so that nobody learns what exactly.
pub(crate) fn unauthentic() -> Refusal {
    Refusal::new(
        Reason::Unauthentic,
        "the ciphertext does not authenticate: it was altered, cut or reordered, or it belongs to another key, nonce or \
         additional data",
    )
}
