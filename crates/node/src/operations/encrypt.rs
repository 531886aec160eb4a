//! A key encrypts, decrypts, tokenizes or computes codes, in one of its modes.

use polyclave_api::operations::UseKey;
use polyclave_api::{self as api, Choice, KeyInfo, Refusal, Right, Use, why_apart};

use super::refusals::{not_for_this, refuse_other_usage, refuse_state, refuse_unchecked};
use super::use_key::Used;
use crate::computation::modes::{envelope, machine};
use crate::requests::plan::{Draft, Operation, Planned};

impl Operation for UseKey {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let UseKey { key, id, how } = self;
        let (service, client) = draft.by();
        let (wanted, right) = how.needs();
        let (info, stored) = service.keys.for_use(key, id.as_ref())?;
        if !info.properties.modes.contains(&wanted) {
            let modes: Vec<String> = info.properties.modes.iter().map(api::Mode::to_string).collect();
            let message = format!("the key '{key}' was made for {}, not for {wanted}", modes.join(", "));
            return Err(not_for_this(message));
        }
        refuse_other_usage(&info, right)?;
        refuse_undoing(&info, wanted, right)?;
        refuse_state(service, client, &info, right)?;
        refuse_chosen_nonce(&info, how)?;
        refuse_unchecked(service, &[wanted])?;
        if let Use::EnvelopeWrite(envelope) = how {
            envelope::owns(envelope, &client.name)?;
        }
        let mode = machine(how, &service.library.cipher(&info.properties.cipher)?, info.id)?;
        Ok(Box::new(Used::alone(info, stored, mode)))
    }
}

/// Refuses a nonce of a client under a key that does not take one.
fn refuse_chosen_nonce(info: &KeyInfo, how: &Use) -> Result<(), Refusal> {
    if how.chosen() == Choice::Nothing || info.properties.caller_nonces {
        return Ok(());
    }
    let name = &info.properties.name;
    Err(not_for_this(format!(
        "the key '{name}' takes no nonces or initial blocks of its clients. It was not made for them, and that cannot be changed"
    )))
}

/// For keys made before it was refused to allow CBC together with a mode that undoes it. Nothing more is
/// encrypted under them in CBC; what was encrypted can be decrypted.
fn refuse_undoing(info: &KeyInfo, wanted: api::Mode, right: Right) -> Result<(), Refusal> {
    if (wanted, right) != (api::Mode::Cbc, Right::Encrypt) {
        return Ok(());
    }
    let Some(why) = why_apart(&info.properties.modes) else { return Ok(()) };
    let name = &info.properties.name;
    Err(not_for_this(format!(
        "the key '{name}' was made before this was refused: {why}. What there is can be decrypted"
    )))
}
