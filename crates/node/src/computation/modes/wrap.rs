//! Wrapping a stored key under the key in use (RFC 3394, RFC 5649). Both stay shared; only the wrapped key
//! goes to the client.

use std::sync::Arc;

use polyclave_api::{Refusal, Step, Wrapping};
use polyclave_cipher::{Cipher, key_wrap};
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceSession;
use polyclave_store::StoredKey;

use super::{Answer, Mode, StepError, misplaced};
use crate::computation::Computation;
use crate::computation::circuits::form;
use crate::computation::key::raw_key;
use crate::computation::key::unreadable;
use crate::computation::key_circuits::padding;
use crate::computation::pieces::run;

/// Wraps one key, once.
pub(crate) struct Wrap {
    how: Wrapping,
    key: Arc<StoredKey>,
    cipher: Cipher,
    done: bool,
}

impl Wrap {
    pub(crate) fn new(how: Wrapping, key: Arc<StoredKey>, cipher: Cipher) -> Wrap {
        Wrap { how, key, cipher, done: false }
    }
}

impl Mode for Wrap {
    fn start(&mut self, _: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        Ok((Vec::new(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        if self.done || *step != Step::Wrapped {
            return Err(misplaced(step));
        }
        self.done = true;
        Ok(key_wrap::blocks(padding(self.how), self.cipher.key_bytes))
    }

    fn run(&mut self, _: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let name = &self.key.info.properties.name;
        let key = raw_key(name, &self.key.shares, &at.protocol).map_err(|e| {
            tracing::error!(key = %name, error = %e, "the shares of a key cannot be used");
            StepError::Own(unreadable(name))
        })?;
        let cipher = form(self.cipher.clone(), &at.protocol);
        let circuit = at.circuits.keys.wrap(&at.circuits.cipher, self.how, &cipher, &at.protocol)?;
        let inputs = [Input::Shared(&key), Input::Shared(&at.key.round_keys)];
        let blocks = key_wrap::blocks(padding(self.how), self.cipher.key_bytes) as usize;
        at.progress.begin(blocks);
        let wrapped = run(&mut at.protocol, at.net, &circuit, 1, &inputs)?.remove(0);
        at.progress.advance(blocks);
        Ok(Answer::data(at.protocol.reveal_to_client(&wrapped, at.net)?))
    }
}
