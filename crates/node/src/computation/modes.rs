//! Modes of operation at a node: how each use of a key answers the steps of a client.
//!
//! The node first admits a step (is it allowed here, and how many blocks will it compute?), then all nodes
//! compare it, and only then it runs. If all nodes refuse in [`Mode::run`] for the same reason (a wrong tag),
//! they remain in step.

mod blocks;
mod ccm;
mod chain;
mod code;
mod counter;
pub(crate) mod envelope;
mod ff1;
mod gcm;
mod gcm_siv;
mod hmac;
pub(crate) mod kdf;
pub(crate) mod key_block;
mod nonce;
mod numbers;
pub(crate) mod pay;
pub(crate) mod rewrap;
mod sealed;
mod siv;
mod whole;
pub(crate) mod wrap;
mod xaes;

use polyclave_api::{self as api, MAX_ADDITIONAL_DATA, Message, Reason, Refusal, Step, Use, operations};
use polyclave_cipher::Cipher;
use polyclave_protocol::Error;

use crate::computation::Computation;
use crate::computation::modes::numbers::Tweaks;

/// The answer to a client's step.
pub(crate) struct Answer {
    pub(crate) data: Vec<u8>,
    pub(crate) mask: Vec<u8>,
    /// With the first answer of CBC: this node's part of the initial block.
    pub(crate) initial: Vec<u8>,
    /// The ciphertext of a whole message, which the nodes have opened among themselves.
    pub(crate) opened: Vec<u8>,
}

impl Answer {
    pub(crate) fn data(data: Vec<u8>) -> Answer {
        Answer { data, mask: Vec::new(), initial: Vec::new(), opened: Vec::new() }
    }
}

/// Why a step did not run.
pub(crate) enum StepError {
    /// All nodes refuse it for the same reason.
    Refused(Refusal),
    /// This node alone cannot continue, by its own fault. Whether the others continue without it depends on
    /// the strategy.
    Own(Refusal),
    /// The protocol failed: the nodes may be out of step.
    Failed(Error),
}

impl From<Error> for StepError {
    fn from(error: Error) -> StepError {
        StepError::Failed(error)
    }
}

/// One use of a key, from its first step to its last.
pub(crate) trait Mode: Send {
    /// Blocks that the start computes.
    fn blocks_at_start(&self) -> u64 {
        0
    }

    /// What the client gets at the start: the data of the session, and its first mask.
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError>;

    /// Checks whether a step is allowed here. Returns how many blocks it computes. Nothing is computed yet.
    fn admit(&mut self, step: &Step) -> Result<u64, Refusal>;

    /// Runs an admitted step.
    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError>;
}

/// The state machine for a use of a key of a cipher.
pub(crate) fn machine(how: &Use, cipher: &Cipher, key_id: [u8; 16]) -> Result<Box<dyn Mode>, Refusal> {
    let (block, tweak) = (cipher.block_bytes, cipher.tweak_bytes);
    Ok(match how {
        Use::Seal { additional } => Box::new(sealed::Seal::new(key_id, *additional)),
        Use::Open { file, additional } => Box::new(sealed::Open::new(key_id, *file, *additional)),
        Use::GcmEncrypt { additional, nonce } => {
            Box::new(gcm::Encrypt::new(nonce.as_deref(), additional, cipher)?)
        }
        Use::GcmDecrypt { nonce, additional } => Box::new(gcm::Decrypt::new(nonce, additional, cipher)?),
        Use::CtrEncrypt => Box::new(counter::Counter::fresh(block, tweak)),
        Use::CtrDecrypt { counter } => Box::new(counter::Counter::from(block, tweak, counter)?),
        Use::CbcEncrypt { mask, initial } => Box::new(chain::Chain::cbc(block, *mask, initial.as_deref())?),
        Use::CbcDecrypt => Box::new(blocks::Decrypt::new(block, Tweaks::new(tweak, &[])?)),
        Use::EcbEncrypt { mask, tweak: first } => {
            Box::new(blocks::Encrypt::new(block, Tweaks::new(tweak, first)?, *mask)?)
        }
        Use::EcbDecrypt { tweak: first } => Box::new(blocks::Decrypt::new(block, Tweaks::new(tweak, first)?)),
        Use::Cmac { mask } => Box::new(chain::Chain::cmac(block, *mask)?),
        Use::EnvelopeWrite(envelope) => Box::new(envelope::FileKey::write(envelope)?),
        Use::EnvelopeOpen { envelope, file } => Box::new(envelope::FileKey::open(envelope, *file)?),
        Use::MessageEncrypt { message, tag_bytes, mask } => {
            Box::new(whole::Encrypt::new((message, cipher), *tag_bytes, *mask)?)
        }
        Use::MessageDecrypt { message, tag } => Box::new(whole::Decrypt::new((message, cipher), tag)?),
        Use::Tokenize(operations::Tokenize { radix, length, tweaks, values, inverse }) => {
            Box::new(ff1::Rounds::new((*radix, *length), tweaks, *values, *inverse)?)
        }
        Use::XaesEncrypt { additional, nonce } => Box::new(gcm::Encrypt::with_own_key(*nonce, additional)?),
        Use::XaesDecrypt { nonce, additional } => Box::new(gcm::Decrypt::with_own_key(*nonce, additional)?),
        Use::Hmac(asked) => Box::new(hmac::Codes::new(*asked, cipher)?),
    })
}

/// What the mode of a message that the nodes take whole computes of it.
fn whole(message: &Message, tag_bytes: usize, cipher: &Cipher) -> Result<Box<dyn whole::Whole>, Refusal> {
    message.check(tag_bytes).map_err(whole::malformed)?;
    match message.mode {
        api::Mode::Ccm => Ok(Box::new(ccm::Ccm::new(message, tag_bytes)?)),
        api::Mode::GcmSiv => Ok(Box::new(gcm_siv::GcmSiv::new(message, cipher)?)),
        api::Mode::Siv => Ok(Box::new(siv::Siv::new(message))),
        mode => Err(whole::malformed(format!("{mode} does not take messages whole"))),
    }
}

/// The refusal of a step that does not belong here.
pub(crate) fn misplaced(step: &Step) -> Refusal {
    let name = match step {
        Step::Keystream { .. } => "Keystream",
        Step::Seal { .. } => "Seal",
        Step::Open { .. } => "Open",
        Step::Absorb { .. } => "Absorb",
        Step::Tag => "Tag",
        Step::Check { .. } => "Check",
        Step::Masked { .. } => "Masked",
        Step::Message { .. } => "Message",
        Step::Blocks { .. } => "Blocks",
        Step::Chi { .. } => "Chi",
        Step::Finish => "Finish",
        Step::Wrapped => "Wrapped",
        Step::FileKey => "FileKey",
        Step::Derived => "Derived",
        Step::Rewrapped => "Rewrapped",
        Step::Answers => "Answers",
    };
    Refusal::new(
        Reason::Malformed,
        format!("the step {name} does not belong here; is the client of another version?"),
    )
}

/// Checks that bytes make whole blocks, at least one, and at most `most` bytes. Returns the number of blocks.
pub(crate) fn whole_blocks(bytes: usize, block: usize, most: usize) -> Result<u64, Refusal> {
    if bytes == 0 || bytes > most || !bytes.is_multiple_of(block) {
        let message = format!("{bytes} bytes are not whole blocks of {block} bytes, from 1 to {most} bytes");
        return Err(Refusal::new(Reason::Malformed, message));
    }
    Ok((bytes / block) as u64)
}

/// The same for bytes that may end in part of a block.
pub(crate) fn piece(bytes: usize) -> Result<(), Refusal> {
    if bytes == 0 || bytes > api::CHUNK {
        let message = format!("a piece of {bytes} bytes; 1 to {} are allowed", api::CHUNK);
        return Err(Refusal::new(Reason::Malformed, message));
    }
    Ok(())
}

/// Refuses more additional data than one message may have.
fn refuse_long_additional(bytes: usize) -> Result<(), Refusal> {
    if bytes > MAX_ADDITIONAL_DATA {
        let message = format!("{bytes} bytes of additional data; {MAX_ADDITIONAL_DATA} are allowed");
        return Err(Refusal::new(Reason::Malformed, message));
    }
    Ok(())
}

/// One answer for everything that does not fit together, so that nobody learns what exactly is wrong.
pub(crate) fn unauthentic() -> Refusal {
    Refusal::new(
        Reason::Unauthentic,
        "the ciphertext does not authenticate: it was altered, cut or reordered, or it belongs to another key, nonce or \
         additional data",
    )
}
