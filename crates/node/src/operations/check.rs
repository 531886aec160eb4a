//! The check value of a key, computed anew from the shares of its round keys and opened to all nodes.
//!
//! By CMAC it is the value that was opened when the key was made, so nothing new is shown. By the encryption
//! of zeros it is 24 bits of E(0), and these are refused wherever a secret follows from E(0)
//! ([`why_no_zeros`]). What the record of the key does not say counts, too:
//!
//! * A copy can be for less than the key of which it is one, such as `ctr` without `gcm`. So no copy shows
//!   it.
//! * A base of derivations may have lost that usage since. A key that was derived from a block of zeros
//!   begins with E(0): three bytes of a key of DES leave 35 bits of it. So no base that has derived a key
//!   shows it.

use polyclave_api::operations::Check;
use polyclave_api::{CheckKind, KeyInfo, Refusal, Right, Step, why_no_zeros};

use super::refusals::{key_for, not_for_this};
use super::use_key::Used;
use crate::computation::Computation;
use crate::computation::make::check_value;
use crate::computation::modes::{Answer, Mode, StepError, misplaced};
use crate::error::of_store;
use crate::requests::plan::{Draft, Operation, Planned};
use crate::requests::service::Service;

impl Operation for Check {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let stored = key_for(draft.by(), Right::List, &self.key)?;
        if self.kind == CheckKind::Zeros {
            refuse_zeros(draft.service, &stored.info)?;
        }
        Ok(Box::new(Used::alone(stored.info.clone(), stored, Box::new(Checked(self.kind)))))
    }
}

fn refuse_zeros(service: &Service, info: &KeyInfo) -> Result<(), Refusal> {
    let key = &info.properties;
    if let Some(why) = why_no_zeros(key, &service.library.cipher(&key.cipher)?) {
        return Err(not_for_this(why));
    }
    let derives = !service.store.children(info.account).map_err(of_store)?.is_empty();
    if derives || info.account != info.id {
        let what = if derives {
            "has derived keys, which may begin with it"
        } else {
            "is a copy of a key that may be for more"
        };
        return Err(not_for_this(format!(
            "the encryption of zeros is not shown of the key '{}': it {what}; take the check value by CMAC",
            key.name
        )));
    }
    Ok(())
}

/// A key of which the check value is computed, when the request begins.
struct Checked(CheckKind);

impl Mode for Checked {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let parts: Vec<_> = [&at.key.round_keys].into_iter().chain(&at.key.second).collect();
        Ok((check_value(self.0, &parts, &mut at.protocol, at.net, at.circuits)?, Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        Err(misplaced(step))
    }

    fn run(&mut self, step: Step, _: &mut Computation<'_>) -> Result<Answer, StepError> {
        Err(StepError::Refused(misplaced(&step)))
    }
}
