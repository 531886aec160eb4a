//! MAC Verify. The nodes compute the code again, and the gateway compares it with the one that was given.

use polyclave_api::Right;
use polyclave_kernels::secret::ct_eq;

use super::call::{Call, Done, now};
use super::codes::{self, tag};
use super::crypt::Mac;
use super::fields::Fields;
use super::refused::{Reason, Result, missing};
use super::ttlv::{Value, put};

/// Bytes of a response's payload beside the identifier.
const AROUND: usize = 64;

/// A code that is to be verified.
pub(super) struct MacVerify {
    /// What it is of.
    of: Mac,
    code: Vec<u8>,
}

impl MacVerify {
    pub(super) fn read(payload: &mut Fields<'_>, placeholder: Option<&str>) -> Result<MacVerify> {
        let of = Mac::read(payload, placeholder)?;
        let code = payload.bytes(tag::MAC_DATA)?.ok_or_else(|| missing("MAC data"))?.to_vec();
        Ok(MacVerify { of, code })
    }

    /// A code of other length than the key's is not valid: a short one could be guessed.
    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::Mac, self.of.key_name())?;
        let saves = call.may(Right::Configure, self.of.key_name()).is_ok();
        call.ask(move |client| {
            let object = self.of.object(client)?;
            // The nodes allow it to the gateway, which may configure keys. So it is judged here for whom.
            if object.state(now()) != codes::ACTIVE && !saves {
                let why =
                    "the key is not active, and verifies old codes for clients with the right configure only";
                return Err(Reason::WrongState.because(why).into());
            }
            let code = self.of.code(client, &object)?;
            let is_valid = code.len() == self.code.len() && ct_eq(&code, &self.code);
            let validity = if is_valid { codes::VALID } else { codes::NOT_VALID };
            Ok(Done::to(object.identifier(), AROUND, |payload, identifier| {
                put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
                put(payload, tag::VALIDITY_INDICATOR, Value::Enumeration(validity));
            }))
        })
        .await
    }
}
