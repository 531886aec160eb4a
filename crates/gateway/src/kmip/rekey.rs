//! Re-key: the next version of a key. It takes over the name, and what the key is for. The version of before
//! stays, and is retired with Revoke.

use polyclave_api::{KeyVersion, Right};

use super::call::{Call, Done, key};
use super::codes::{V2, Version, tag};
use super::fields::Fields;
use super::object::{Object, identifier};
use super::refused::{Reason, Result};
use super::ttlv::{Value, put};

/// Bytes of a response's payload beside the identifier.
const AROUND: usize = 64;

/// A key that is to have a next version.
pub(super) struct Rekey(KeyVersion);

impl Rekey {
    pub(super) fn read(
        payload: &mut Fields<'_>,
        version: Version,
        placeholder: Option<&str>,
    ) -> Result<Rekey> {
        let key = key(payload, placeholder)?;
        // A version has the attributes of the key. None can be given here, nor an offset of its activation.
        let of = if version >= V2 { tag::ATTRIBUTES } else { tag::TEMPLATE_ATTRIBUTE };
        payload.structure(of)?.map_or(Ok(()), Fields::end)?;
        Ok(Rekey(key))
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::Generate, &self.0.name)?;
        call.change(move |client| {
            if !Object::find(client, &self.0)?.is_current {
                let why = "this version was replaced: name the current one, or the name of the key alone";
                return Err(Reason::InvalidField.because(why).into());
            }
            let info = client.rotate(&self.0.name)?;
            Ok(Done::to(identifier(&(&info).into()), AROUND, |payload, identifier| {
                put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
            }))
        })
        .await
    }
}
