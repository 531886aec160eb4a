//! What the rules for clients have to allow for each operation. All operations stand in one place, so that none forgets a key, or another operation
//! that it amounts to.
//!
//! An operation needs a right of its own, for each of its keys. Some operations amount to others. Then the rules for the others bind them as well
//! ([`Demand::Bound`]): rules that deny the others, the times and limits of rules that allow them, and approvals. The other right itself is not
//! needed: a client with the right `rewrap` and without `decrypt` may rewrap.
//!
//! | operation | amounts to |
//! |---|---|
//! | rewrap a message | decrypt under the old key, encrypt under the new one |
//! | rewrap a wrapped key | unwrap under the old key, wrap under the new one |
//! | encrypt in gcm or ccm under a nonce of the client | decrypt: under an old nonce it gives an old message's keystream |
//! | derive | generate the new key |
//! | unwrap | import the new key: the one who wrapped it may know it |
//! | copy | each use of the copy, with the key: [`Demand::Always`], because the copy has rules of its own afterwards |
//!
//! Two operations are not in the table. To wrap: nodes have no say about a key that has left. To decrypt in ctr or with `envelope`: this lets a
//! client make ciphertexts, too, but neither mode promises that this takes the right to encrypt.

use polyclave_api::{Choice, Mode, NewKey, Operation, Rewrapped, Right, Use};
use polyclave_config::{Asked, Demand};

/// Everything that the rules have to allow for an operation. The first is the operation's own right, for its main key.
///
/// The list is empty for `Status` and `Show`, which look at the rules themselves, and for `List`, which shows only the keys that the rules allow.
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
    let (mode, right) = how.needs();
    let owner = match how {
        Use::EnvelopeWrite(envelope) | Use::EnvelopeOpen { envelope, .. } => Some(envelope.owner.clone()),
        _ => None,
    };
    let amounts_to = (how.chosen() == Choice::Nonce).then_some(Right::Decrypt);
    let mode = Some(mode);
    let own = Asked { mode, owner, ..Asked::of(right, key) };
    let bound = amounts_to.map(|right| Asked { mode, ..Asked::bound(right, key) });
    [own].into_iter().chain(bound).collect()
}

/// What making a copy of a key needs. The rules for the copy's own name decide who uses it, when and how much. So the client that makes it must be
/// allowed each of its uses under the name of the key, in each of its modes, at all times and without limits.
fn rights_to_copy(key: &str, new: &NewKey) -> Vec<Asked> {
    let mut asked = vec![Asked::of(Right::Generate, &new.name)];
    let is_for = |right: Right| right.usage().is_some_and(|usage| new.usage.contains(&usage));
    // A client that encrypts under nonces of its own can decrypt.
    let decrypts = |mode: Mode| new.caller_nonces && is_for(Right::Encrypt) && mode.choice() == Choice::Nonce;
    for right in Right::ALL {
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

/// A right for two keys. If both are the same key, it is asked for once.
fn both(right: Right, first: &str, second: &str) -> Vec<Asked> {
    let mut both = vec![Asked::of(right, first), Asked::of(right, second)];
    both.dedup();
    both
}

#[cfg(test)]
mod tests;
