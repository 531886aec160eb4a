//! Wrapping a stored key in a key block of TR-31 under the key in use. Both stay shared; the MAC and the
//! encrypted key go to the client, and nobody else learns them. The random bytes behind the key come from all
//! serving nodes.

use std::sync::Arc;

use polyclave_api::{Refusal, Step};
use polyclave_cipher::Cipher;
use polyclave_cipher::key_block::plaintext_bytes;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceSession;
use polyclave_store::StoredKey;

use super::{Answer, Mode, StepError, misplaced};
use crate::computation::Computation;
use crate::computation::circuits::form;
use crate::computation::key::raw_key;
use crate::computation::key::unreadable;
use crate::computation::key_block::{BlockKeys, blocks};
use crate::computation::pieces::run;

/// Wraps one key, once.
pub(crate) struct WrapBlock {
    head: Vec<u8>,
    key: Arc<StoredKey>,
    cipher: Cipher,
    /// Bytes of the plaintext.
    plaintext: usize,
    blocks: u64,
    done: bool,
}

impl WrapBlock {
    /// `head` is the whole header, in whole blocks of `kek`.
    pub(crate) fn new(head: Vec<u8>, key: Arc<StoredKey>, cipher: Cipher, kek: &Cipher) -> WrapBlock {
        let plaintext = plaintext_bytes(&cipher, kek.block_bytes);
        let blocks = blocks(kek, head.len(), plaintext);
        WrapBlock { head, key, cipher, plaintext, blocks, done: false }
    }
}

impl Mode for WrapBlock {
    fn start(&mut self, _: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        Ok((Vec::new(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        if self.done || *step != Step::Wrapped {
            return Err(misplaced(step));
        }
        self.done = true;
        Ok(self.blocks)
    }

    fn run(&mut self, _: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let name = &self.key.info.properties.name;
        let key = raw_key(name, &self.key.shares, &at.protocol).map_err(|e| {
            tracing::error!(key = %name, error = %e, "the shares of a key cannot be used");
            StepError::Own(unreadable(name))
        })?;
        let cipher = form(self.cipher.clone(), &at.protocol);
        let circuit = at.circuits.keys.key_block(at.circuits, &cipher, &at.protocol)?;
        at.progress.begin(self.blocks as usize);
        // A mask that masks nothing is a random value that nobody knows; this node's part of its message to a
        // client goes nowhere.
        let (random, _) = at.protocol.mask_input(self.plaintext, at.net)?;
        let zeros = vec![0; self.plaintext];
        let random = at.protocol.unmask(&random, 0, &zeros, &circuit.inputs()[1])?;
        let inputs = [Input::Shared(&key), Input::Shared(&random)];
        let plain = run(&mut at.protocol, at.net, &circuit, 1, &inputs)?;

        let keys = BlockKeys::derive(at.key, at.circuits, &mut at.protocol, at.net)?;
        let code = keys.code(at.circuits, (&self.head, &plain), &mut at.protocol, at.net)?;
        let mut message = vec![code];
        for block in &plain {
            let previous = &message[message.len() - 1];
            let inputs = [Input::Shared(block), Input::Shared(previous), Input::Shared(&keys.encryption)];
            let chain = &at.circuits.chained()?.chain;
            let encrypted = run(&mut at.protocol, at.net, chain, 1, &inputs)?.remove(0);
            message.push(encrypted);
        }
        at.progress.advance(self.blocks as usize);
        let mut revealed = Vec::new();
        for value in &message {
            revealed.extend(at.protocol.reveal_to_client(value, at.net)?);
        }
        Ok(Answer::data(revealed))
    }
}
