//! What an operation asks of the rules for clients: one place for all operations, so that none can forget a key.

use polyclave_config::Asked;
use polyclave_transport::wire::{NewKey, Operation, Right, Use};

use crate::computation::modes::needs;
use crate::local::ALL_RIGHTS;

/// The rights that an operation needs, all of them. The first is for the key whose blocks it computes.
///
/// There are none for `Status` and `Show`, which look at the rules themselves, and for `List`, which shows only the keys that the rules allow.
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
        Operation::Use { key, how, .. } => {
            let (mode, right) = needs(how);
            let owner = match how {
                Use::EnvelopeWrite(envelope) | Use::EnvelopeOpen { envelope, .. } => {
                    Some(envelope.owner.clone())
                }
                _ => None,
            };
            vec![Asked { mode: Some(mode), owner, ..Asked::of(right, key) }]
        }
        Operation::Random { .. } => vec![Asked::of(Right::Random, "")],
        Operation::Report => vec![Asked::of(Right::Observe, "")],
        Operation::Derive { base, new, .. } => both(Right::Derive, &base.name, &new.name),
        Operation::Rewrap { key, old, .. } => both(Right::Rewrap, key, old),
        Operation::Copy { key, new, .. } => rights_to_copy(key, new),
        Operation::Wrap { wrapping, key, .. } | Operation::WrapBlock { wrapping, key, .. } => {
            both(Right::Wrap, &wrapping.name, &key.name)
        }
        Operation::Unwrap { unwrapping, new, .. } | Operation::UnwrapBlock { unwrapping, new, .. } => {
            both(Right::Unwrap, &unwrapping.name, &new.name)
        }
        Operation::Kdf { key, .. } => vec![Asked::of(Right::Kdf, &key.name)],
    }
}

/// A copy can be used by whoever the rules allow it under its own name. So who makes one must be allowed all that it is for under the name of
/// the key, in each of its modes.
fn rights_to_copy(key: &str, new: &NewKey) -> Vec<Asked> {
    let mut asked = vec![Asked::of(Right::Generate, &new.name)];
    let rights = ALL_RIGHTS.into_iter().filter(|right| {
        let is_usage = right.usage().is_some_and(|usage| new.usage.contains(&usage));
        is_usage || *right == Right::Wrap && new.wrappable
    });
    for right in rights {
        let by_mode = matches!(right, Right::Encrypt | Right::Decrypt | Right::Mac | Right::Tokenize);
        match new.modes.as_slice() {
            modes if by_mode => {
                asked.extend(modes.iter().map(|mode| Asked { mode: Some(*mode), ..Asked::of(right, key) }));
            }
            _ => asked.push(Asked::of(right, key)),
        }
    }
    asked
}

fn both(right: Right, first: &str, second: &str) -> Vec<Asked> {
    vec![Asked::of(right, first), Asked::of(right, second)]
}
