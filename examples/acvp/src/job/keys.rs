//! Key wrap and FF1.

use anyhow::{Context, Result};
use polyclave_api::Wrapping;
use polyclave_client::{Alphabet, Error, Tokenization, Tweaked};

use super::{Asked, Job, Plan, Task, aes, bytes, not_supported};

pub(super) fn wrap(asked: &Asked<'_>, how: Wrapping) -> Result<Plan> {
    let ((cipher, key), encrypts) = (asked.aes_key()?, asked.encrypts()?);
    let data = asked.data(encrypts)?;
    if !encrypts {
        return not_supported("nodes unwrap into a key of theirs, and give it to nobody");
    }
    if asked.group.kw_cipher.as_deref() != Some("cipher") {
        return not_supported("nodes wrap with the block cipher, not with its inverse");
    }
    match aes(data.len()) {
        Some(wrapped) => {
            let task = Task::Wrap { how, cipher: wrapped, wrapped: data };
            Ok(Plan::Ask(Job { cipher, key, task }))
        }
        None => not_supported("nodes wrap keys, and data of this length are no key of AES"),
    }
}

pub(super) fn ff1(asked: &Asked<'_>) -> Result<Plan> {
    let ((cipher, key), encrypts) = (asked.aes_key()?, asked.encrypts()?);
    let value = asked.input(encrypts)?.to_owned();
    let tweak = bytes("tweak", asked.test.tweak.as_deref())?;
    let alphabet = asked.group.alphabet.as_deref().context("its group has no alphabet")?;
    // What the client library refuses, before any node is asked.
    let alphabet = match Alphabet::new(alphabet) {
        Ok(alphabet) => alphabet,
        Err(Error::Misuse(why)) => return not_supported(why),
        Err(other) => return Err(other.into()),
    };
    let how = Tokenization { alphabet: &alphabet, keeps_others: false };
    match how.check(&Tweaked { value: &value, tweak: &tweak }) {
        Ok(()) => {}
        Err(Error::Misuse(why)) => return not_supported(why),
        Err(other) => return Err(other.into()),
    }
    Ok(Plan::Ask(Job { cipher, key, task: Task::Ff1 { encrypts, alphabet, tweak, value } }))
}
