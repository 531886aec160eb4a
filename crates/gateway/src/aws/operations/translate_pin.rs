//! `TranslatePinData`.

use polyclave_payments::commands::TranslatePin;
use polyclave_payments::{Command, OutgoingPin, Pan, PinFormat};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::pin::{DukptDerivationAttributes, bad_block, block};
use crate::aws::error::{Exception, Result, not_served};
use crate::aws::keys::{Key, KeyId};
use crate::aws::members::{self, WRAPPED_KEY, absent};
use crate::aws::task::{Task, Work, of_key};

const BLOCK: &str = "EncryptedPinBlock";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Request {
    incoming_key_identifier: String,
    outgoing_key_identifier: String,
    incoming_translation_attributes: Format,
    outgoing_translation_attributes: Format,
    encrypted_pin_block: String,
    incoming_dukpt_attributes: Option<DukptDerivationAttributes>,
    outgoing_dukpt_attributes: Option<DukptDerivationAttributes>,
    incoming_wrapped_key: Option<IgnoredAny>,
    outgoing_wrapped_key: Option<IgnoredAny>,
    incoming_as2805_attributes: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[allow(clippy::enum_variant_names, reason = "as the API has them")]
enum Format {
    IsoFormat0(Bound),
    IsoFormat1(Unbound),
    IsoFormat3(Bound),
    IsoFormat4(Bound),
    As2805Format0(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Bound {
    primary_account_number: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unbound {}

impl Format {
    fn read(&self, member: &'static str) -> Result<(PinFormat, Option<Pan>)> {
        let bound = |format, of: &Bound| Ok((format, Some(members::pan(&of.primary_account_number)?)));
        match self {
            Format::IsoFormat0(of) => bound(PinFormat::Iso0, of),
            Format::IsoFormat1(Unbound {}) => Ok((PinFormat::Iso1, None)),
            Format::IsoFormat3(of) => bound(PinFormat::Iso3, of),
            Format::IsoFormat4(of) => bound(PinFormat::Iso4, of),
            Format::As2805Format0(_) => Err(not_served(member, "As2805Format0")),
        }
    }
}

struct Translate {
    keys: Vec<KeyId>,
    command: TranslatePin,
}

/// Reads a request.
pub(super) fn read(body: &[u8]) -> Result<Box<dyn Task>> {
    let request: Request = members::read(body)?;
    absent("IncomingWrappedKey", &request.incoming_wrapped_key, WRAPPED_KEY)?;
    absent("OutgoingWrappedKey", &request.outgoing_wrapped_key, WRAPPED_KEY)?;
    absent("IncomingAs2805Attributes", &request.incoming_as2805_attributes, "AS 2805")?;
    let keys = vec![
        members::key("IncomingKeyIdentifier", &request.incoming_key_identifier)?,
        members::key("OutgoingKeyIdentifier", &request.outgoing_key_identifier)?,
    ];
    let (from, pan) = request.incoming_translation_attributes.read("IncomingTranslationAttributes")?;
    let (to, of_outgoing) = request.outgoing_translation_attributes.read("OutgoingTranslationAttributes")?;
    if pan.is_some() && of_outgoing.is_some() && pan != of_outgoing {
        // Who could change the number of the card could find PINs.
        let wrong = "the card stays the same: both PrimaryAccountNumber have to be equal";
        return Err(Exception::Invalid("OutgoingTranslationAttributes", wrong.into()));
    }
    let incoming = DukptDerivationAttributes::source(request.incoming_dukpt_attributes.as_ref())?;
    let outgoing = DukptDerivationAttributes::source(request.outgoing_dukpt_attributes.as_ref())?;
    let command = TranslatePin {
        incoming: block(BLOCK, &request.encrypted_pin_block, from, incoming)?,
        pan: pan.or(of_outgoing),
        outgoing: OutgoingPin { format: to, key: outgoing },
    };
    Ok(Box::new(Translate { keys, command }))
}

impl Task for Translate {
    fn keys(&self) -> Vec<KeyId> {
        self.keys.clone()
    }

    fn work(&self, _: &[Key]) -> Result<Work> {
        Ok(Work::pay(Command::TranslatePin(self.command.clone())))
    }

    fn failure(&self) -> Exception {
        bad_block(BLOCK)
    }

    fn answer(&self, outcome: &[u8], keys: &[Key]) -> Result<Map<String, Value>> {
        let mut answer = Map::from_iter([("PinBlock".to_owned(), hex::encode_upper(outcome).into())]);
        keys.iter().skip(1).for_each(|key| of_key(&mut answer, "", key));
        Ok(answer)
    }
}
