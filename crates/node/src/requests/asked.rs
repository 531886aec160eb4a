//! What an operation asks of the rules for clients: one place for all operations, so that none can forget a key, or something that it amounts to.
//!
//! An operation needs a right of its own, for each of its keys. Some amount to others, and then the rules for these bind as well
//! ([`Demand::Bound`]): what denies them, times and limits of what allows them, and approvals. The right itself is not needed: a client with the
//! right `rewrap` and without `decrypt` rewraps.
//!
//! | operation | amounts to |
//! |---|---|
//! | rewrap a message | decrypt under the old key, encrypt under the new one |
//! | rewrap a wrapped key | unwrap under the old key, wrap under the new one |
//! | encrypt in gcm or ccm under a nonce of the client | decrypt: under an old nonce it gives an old message's keystream |
//! | derive | generate the new key |
//! | unwrap | import the new key, which whoever has wrapped it may know |
//! | copy | all that the copy is for, with the key: [`Demand::Always`], since the copy has rules of its own afterwards |
//!
//! Not among them: to wrap, since what may be done with a key that has left is up to who can unwrap it; and to decrypt in ctr or with `envelope`,
//! which lets a client make ciphertexts, too, but neither mode promises that this takes the right to encrypt.

use polyclave_api::{Mode, NewKey, Operation, Rewrapped, Right, Use};
use polyclave_config::{Asked, Demand};

use crate::computation::modes::needs;
use crate::local::ALL_RIGHTS;

/// All that an operation asks. The first is the operation's own right, for the key that it is about.
///
/// There is nothing for `Status` and `Show`, which look at the rules themselves, and for `List`, which shows only the keys that the rules allow.
pub(crate) fn asked(operation: &Operation) -> Vec<Asked> {
    match operation {
        Operation::Status | Operation::List { .. } | Operation::Show { .. } => Vec::new(),
        Operation::Generate(new) => vec![Asked::of(Right::Generate, &new.name)],
        Operation::Import(new) | Operation::ImportComponent { new, .. } => {
            vec![Asked::of(Right::Import, &new.name)]
        }
        Operation::ImportSealed(sealed) => vec![Asked::of(Right::Import, &sealed.new.name)],
        Operation::Combine { key, .. } => vec![Asked::of(Right::Import, key)],
        Operation::Delete { key, .. } => vec![Asked::of(Right::Delete, key)],
        Operation::Rotate { key } => vec![Asked::of(Right::Generate, key)],
        Operation::Retire { key, .. }
        | Operation::Configure { key, .. }
        | Operation::Describe { key, .. } => {
            vec![Asked::of(Right::Configure, key)]
        }
        Operation::Use { key, how, .. } => to_use(key, how),
        Operation::Random { .. } => vec![Asked::of(Right::Random, "")],
        Operation::Report => vec![Asked::of(Right::Observe, "")],
        Operation::Derive { base, new, .. } => {
            [both(Right::Derive, &base.name, &new.name), vec![Asked::bound(Right::Generate, &new.name)]]
                .concat()
        }
        Operation::Rewrap { key, old, what, .. } => {
            let (undo, redo, mode) = match what {
                Rewrapped::Gcm { .. } | Rewrapped::Sealed { .. } => {
                    (Right::Decrypt, Right::Encrypt, Some(Mode::Gcm))
                }
                Rewrapped::Key { .. } => (Right::Unwrap, Right::Wrap, None),
            };
            let amounts =
                [(undo, old), (redo, key)].map(|(right, key)| Asked { mode, ..Asked::bound(right, key) });
            [both(Right::Rewrap, key, old), amounts.to_vec()].concat()
        }
        Operation::Copy { key, new, .. } => rights_to_copy(key, new),
        Operation::Wrap { wrapping, key, .. } | Operation::WrapBlock { wrapping, key, .. } => {
            both(Right::Wrap, &wrapping.name, &key.name)
        }
        Operation::Unwrap { unwrapping, new, .. } | Operation::UnwrapBlock { unwrapping, new, .. } => {
            [both(Right::Unwrap, &unwrapping.name, &new.name), vec![Asked::bound(Right::Import, &new.name)]]
                .concat()
        }
        Operation::Kdf { key, .. } => vec![Asked::of(Right::Kdf, &key.name)],
    }
}

fn to_use(key: &str, how: &Use) -> Vec<Asked> {
    let (mode, right) = needs(how);
    let (owner, amounts_to) = match how {
        Use::EnvelopeWrite(envelope) | Use::EnvelopeOpen { envelope, .. } => {
            (Some(envelope.owner.clone()), None)
        }
        Use::GcmEncrypt { nonce: Some(_), .. } | Use::CcmEncrypt { nonce: Some(_), .. } => {
            (None, Some(Right::Decrypt))
        }
        Use::Seal
        | Use::Open { .. }
        | Use::GcmEncrypt { nonce: None, .. }
        | Use::GcmDecrypt { .. }
        | Use::CtrEncrypt
        | Use::CtrDecrypt { .. }
        | Use::CbcEncrypt { .. }
        | Use::CbcDecrypt
        | Use::EcbEncrypt { .. }
        | Use::EcbDecrypt { .. }
        | Use::Cmac { .. }
        | Use::SealBound { .. }
        | Use::OpenBound { .. }
        | Use::CcmEncrypt { nonce: None, .. }
        | Use::CcmDecrypt { .. }
        | Use::SivEncrypt { .. }
        | Use::SivDecrypt { .. }
        | Use::Tokenize { .. } => (None, None),
    };
    let mode = Some(mode);
    let own = Asked { mode, owner, ..Asked::of(right, key) };
    let bound = amounts_to.map(|right| Asked { mode, ..Asked::bound(right, key) });
    [own].into_iter().chain(bound).collect()
}

/// A copy can be used by whoever the rules allow it under its own name, whenever and however much they allow there. So who makes one must be
/// allowed all that it is for under the name of the key, in each of its modes, at any time and without limits.
fn rights_to_copy(key: &str, new: &NewKey) -> Vec<Asked> {
    let mut asked = vec![Asked::of(Right::Generate, &new.name)];
    let is_for = |right: Right| right.usage().is_some_and(|usage| new.usage.contains(&usage));
    // Who encrypts under nonces of its own can decrypt.
    let decrypts =
        |mode: Mode| new.caller_nonces && is_for(Right::Encrypt) && matches!(mode, Mode::Gcm | Mode::Ccm);
    for right in ALL_RIGHTS {
        let always = |mode| Asked { mode, demand: Demand::Always, ..Asked::of(right, key) };
        match right {
            Right::Encrypt | Right::Decrypt | Right::Mac | Right::Tokenize => {
                let is_wanted = |mode: &&Mode| is_for(right) || right == Right::Decrypt && decrypts(**mode);
                asked.extend(new.modes.iter().filter(is_wanted).map(|mode| always(Some(*mode))));
            }
            _ if is_for(right) || right == Right::Wrap && new.wrappable => asked.push(always(None)),
            _ => {}
        }
    }
    asked
}

/// A right for two keys, or twice the same.
fn both(right: Right, first: &str, second: &str) -> Vec<Asked> {
    let mut both = vec![Asked::of(right, first), Asked::of(right, second)];
    both.dedup();
    both
}

#[cfg(test)]
mod tests;
