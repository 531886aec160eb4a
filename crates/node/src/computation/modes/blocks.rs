//! Independent blocks: both directions of ECB, and the decryption of CBC, where the client adds the chain.

use std::collections::VecDeque;

use polyclave_api::{CHUNK, End, MASKED, Reason, Refusal, Step};
use polyclave_protocol::any::{AnyMask, AnyShared};
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceSession;

use super::numbers::Tweaks;
use super::{Answer, Mode, StepError, misplaced, whole_blocks};
use crate::computation::Computation;

/// Decrypts blocks that are public among the nodes.
pub(crate) struct Decrypt {
    block: usize,
    tweaks: Tweaks,
}

impl Decrypt {
    pub(crate) fn new(block: usize, tweaks: Tweaks) -> Decrypt {
        Decrypt { block, tweaks }
    }
}

impl Mode for Decrypt {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        match at.circuits.of_cipher()?.decrypt {
            Some(_) => Ok((Vec::new(), Vec::new())),
            None => {
                Err(StepError::Refused(Refusal::new(Reason::NotForThis, "this cipher has no decryption")))
            }
        }
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        match step {
            Step::Blocks { ciphertext } => {
                let count = whole_blocks(ciphertext.len(), self.block, CHUNK)?;
                self.tweaks.admit(count)?;
                Ok(count)
            }
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let (Step::Blocks { ciphertext }, Some(circuit)) = (&step, &at.circuits.of_cipher()?.decrypt) else {
            return Err(StepError::Refused(misplaced(&step)));
        };
        let tweaks = self.tweaks.take((ciphertext.len() / self.block) as u64);
        let plaintext = at.decrypt(circuit, ciphertext, &tweaks)?;
        Ok(Answer::data(at.protocol.reveal_to_client(&plaintext, at.net)?))
    }
}

/// Encrypts a client's secret blocks independently of each other.
pub(crate) struct Encrypt {
    block: usize,
    tweaks: Tweaks,
    masks: Masks,
}

impl Encrypt {
    pub(crate) fn new(block: usize, tweaks: Tweaks, mask: u32) -> Result<Self, Refusal> {
        Ok(Encrypt { block, tweaks, masks: Masks::new(block, MASKED, mask)? })
    }
}

impl Mode for Encrypt {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        Ok((Vec::new(), self.masks.draw(at)?))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        match step {
            Step::Masked { data, next, end: End::No } => {
                let count = self.masks.admit(data, *next)?;
                self.tweaks.admit(count)?;
                Ok(count)
            }
            other => Err(misplaced(other)),
        }
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let Step::Masked { data, .. } = &step else { return Err(StepError::Refused(misplaced(&step))) };
        let mask = self.masks.take()?;
        let circuit = &at.circuits.of_cipher()?.encrypt;
        let blocks = at.protocol.unmask(&mask, 0, data, &circuit.inputs()[0])?;
        let lanes = data.len() / self.block;
        let tweaks = at.circuits.tweaks(&self.tweaks.take(lanes as u64))?;
        let inputs: Vec<Input<'_, AnyShared>> =
            [Input::Shared(&blocks)].into_iter().chain(tweaks.as_ref().map(Input::Public)).collect();
        let ciphertext = at.one(circuit, lanes, &inputs)?;
        let data = at.protocol.reveal_to_client(&ciphertext, at.net)?;
        Ok(Answer { mask: self.masks.draw(at)?, ..Answer::data(data) })
    }
}

/// The masks of a client's secret input. Each is drawn, used once, and discarded. The client may deal the
/// first one itself: then its data are admitted before the mask is there.
pub(crate) struct Masks {
    block: usize,
    most: usize,
    /// The mask under which the next data are.
    current: Option<AnyMask>,
    /// The size in bytes of the data that come next.
    due: usize,
    /// The sizes of the masks that are to be drawn.
    to_draw: VecDeque<usize>,
}

impl Masks {
    /// Masks for steps of at most `most` bytes; the first has `first` bytes.
    pub(crate) fn new(block: usize, most: usize, first: u32) -> Result<Self, Refusal> {
        let due = first as usize;
        let masks = Masks { block, most, current: None, due, to_draw: [due].into() };
        masks.check(due)?;
        Ok(masks)
    }

    fn check(&self, bytes: usize) -> Result<u64, Refusal> {
        whole_blocks(bytes, self.block, self.most)
    }

    /// Draws the next mask, if one is due, or takes the one that the client has dealt. Returns this node's
    /// part of it for the client; empty if none is due or the client knows it.
    pub(crate) fn draw(&mut self, at: &mut Computation<'_>) -> Result<Vec<u8>, StepError> {
        let Some(bytes) = self.to_draw.pop_front().filter(|bytes| *bytes > 0) else {
            return Ok(Vec::new());
        };
        let (mask, message) = match at.dealt.take() {
            Some(seeds) => (at.protocol.dealt_mask(&seeds, bytes)?, Vec::new()),
            None => at.protocol.mask_input(bytes, at.net)?,
        };
        self.current = Some(mask);
        Ok(message)
    }

    /// Checks that masked data fits the mask. Returns the number of its blocks.
    pub(crate) fn admit(&mut self, data: &[u8], next: u32) -> Result<u64, Refusal> {
        let blocks = self.check(data.len())?;
        if data.len() != self.due {
            let message = format!("{} bytes under a mask of {}", data.len(), self.due);
            return Err(Refusal::new(Reason::Malformed, message));
        }
        if next > 0 {
            self.check(next as usize)?;
        }
        self.due = next as usize;
        self.to_draw.push_back(self.due);
        Ok(blocks)
    }

    /// Takes the mask out, for its only use.
    pub(crate) fn take(&mut self) -> Result<AnyMask, StepError> {
        let none =
            || Refusal::new(Reason::Malformed, "there is no mask left; ask for one with the step before");
        self.current.take().ok_or_else(|| StepError::Refused(none()))
    }
}
