//! `transform/encode/ROLE` and `transform/decode/ROLE`: values for tokens of the same format, and back, by
//! FF1.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::Right;
use polyclave_client::Tweaked;
use zeroize::Zeroizing;

use super::answer::Answer;
use super::data::{Datum, Outcome};
use super::fields::Fields;
use super::messages::{Result, batch_answer};
use super::{Caller, Vault};
use crate::failure::Failure;
use crate::transform::{Parts, Transformation};

/// What is made of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Tokens.
    Encode,
    /// The values that tokens are for.
    Decode,
}

/// A value that is on its way: where in the batch it is, and what becomes of it.
struct Under {
    at: usize,
    parts: Parts,
    tweak: Vec<u8>,
}

/// The transformation of a request and a value, or a batch of them. All values under one key are one request
/// to the nodes. What is wrong with one of a batch is told of that one.
pub(super) async fn transform(
    vault: &Vault,
    caller: &Caller,
    (direction, role): (Direction, &str),
    fields: &Fields,
) -> Result<Answer> {
    let batch = fields.batch()?;
    let is_batch = batch.is_some();
    // What stands beside a batch is ignored, as in Vault.
    let items = batch.unwrap_or_else(|| vec![fields.clone()]);
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(items.len());
    // Values of the same transformation together; there are as many groups as a batch has transformations.
    let mut groups: Vec<(Arc<Transformation>, Vec<Under>)> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let reference = item.text("reference")?.filter(|text| !text.is_empty()).map(str::to_owned);
        let read = read(vault, role, item);
        let failed = read.as_ref().err().cloned().unwrap_or_else(|| bad("it was not transformed"));
        outcomes.push((reference, Err(failed)));
        let Ok((transformation, parts, tweak)) = read else { continue };
        caller.allow_key(vault, Right::Tokenize, &transformation.key)?;
        let under = Under { at, parts, tweak };
        match groups.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &transformation)) {
            Some((_, group)) => group.push(under),
            None => groups.push((transformation, vec![under])),
        }
    }
    for (transformation, group) in groups {
        let group = Arc::new(group);
        let exchanged = ask(vault, caller, direction, &transformation, &group).await;
        // What was computed for a token that was revoked meanwhile is not given away.
        caller.allow_key(vault, Right::Tokenize, &transformation.key)?;
        match exchanged {
            Err(failure) if failure.is_of_all() => return Err(failure),
            Err(failure) => group.iter().for_each(|under| outcomes[under.at].1 = Err(failure.clone())),
            Ok(exchanged) => {
                for (under, free) in group.iter().zip(exchanged) {
                    let whole = transformation.put_together(&under.parts, &free);
                    let name = match direction {
                        Direction::Encode => "encoded_value",
                        Direction::Decode => "decoded_value",
                    };
                    outcomes[under.at].1 = whole.map(|text| vec![(name, Datum::Text(text))]);
                }
            }
        }
    }
    if is_batch {
        return batch_answer(fields, outcomes);
    }
    let (_, only) = outcomes.pop().ok_or_else(|| bad("missing value"))?;
    only.map(Answer::data)
}

/// What an item asks for: the transformation, the value taken apart, and its tweak.
fn read(vault: &Vault, role: &str, item: &Fields) -> Result<(Arc<Transformation>, Parts, Vec<u8>)> {
    let transformation = vault.transformations.find(role, item.text("transformation")?)?;
    let value = item.text("value")?.ok_or_else(|| bad("missing value"))?;
    let given = item.text("tweak")?.filter(|text| !text.is_empty());
    let tweak = match (&transformation.tweak, given) {
        (None, Some(text)) => STANDARD.decode(text).map_err(|_| bad("failed to base64-decode tweak"))?,
        (None, None) => return Err(bad("missing tweak: the transformation takes one with each value")),
        (Some(internal), None) => internal.clone(),
        (Some(_), Some(_)) => return Err(bad("the transformation has a tweak of its own; leave tweak out")),
    };
    let parts = transformation.take_apart(value)?;
    let tweak = parts.tweak(&tweak);
    transformation.how().check(&Tweaked { value: parts.free(), tweak: &tweak })?;
    Ok((transformation, parts, tweak))
}

async fn ask(
    vault: &Vault,
    caller: &Caller,
    direction: Direction,
    transformation: &Arc<Transformation>,
    group: &Arc<Vec<Under>>,
) -> Result<Vec<Zeroizing<String>>> {
    let (transformation, group) = (transformation.clone(), group.clone());
    let asked = caller.asker.ask(&vault.queue, move |client| {
        let values: Vec<Tweaked<'_>> =
            group.iter().map(|one| Tweaked { value: one.parts.free(), tweak: &one.tweak }).collect();
        match direction {
            Direction::Encode => {
                client.tokenize(&transformation.version_of_key, transformation.how(), &values)
            }
            Direction::Decode => {
                client.detokenize(&transformation.version_of_key, transformation.how(), &values)
            }
        }
    });
    asked.await
}

fn bad(message: &str) -> Failure {
    Failure::Bad(message.into())
}
