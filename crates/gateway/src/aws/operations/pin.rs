//! Members of requests about PINs: formats of blocks, and keys of terminals.

use polyclave_payments::{Dukpt, EncryptedPin, KeySource, PinFormat, WorkingKey};
use serde::Deserialize;

use crate::aws::error::{Exception, Result};
use crate::aws::members::hex;

/// The format of a PIN block.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(clippy::enum_variant_names, reason = "as the API has them")]
pub(super) enum BlockFormat {
    #[serde(rename = "ISO_FORMAT_0")]
    IsoFormat0,
    #[serde(rename = "ISO_FORMAT_1")]
    IsoFormat1,
    #[serde(rename = "ISO_FORMAT_3")]
    IsoFormat3,
    #[serde(rename = "ISO_FORMAT_4")]
    IsoFormat4,
}

impl BlockFormat {
    pub(super) fn format(self) -> PinFormat {
        match self {
            BlockFormat::IsoFormat0 => PinFormat::Iso0,
            BlockFormat::IsoFormat1 => PinFormat::Iso1,
            BlockFormat::IsoFormat3 => PinFormat::Iso3,
            BlockFormat::IsoFormat4 => PinFormat::Iso4,
        }
    }
}

/// The algorithm of a key that DUKPT derives.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum DerivationType {
    #[serde(rename = "TDES_2KEY")]
    Tdes2,
    #[serde(rename = "TDES_3KEY")]
    Tdes3,
    #[serde(rename = "AES_128")]
    Aes128,
    #[serde(rename = "AES_192")]
    Aes192,
    #[serde(rename = "AES_256")]
    Aes256,
}

impl DerivationType {
    fn working(self) -> WorkingKey {
        match self {
            DerivationType::Tdes2 => WorkingKey::Tdes2,
            DerivationType::Tdes3 => WorkingKey::Tdes3,
            DerivationType::Aes128 => WorkingKey::Aes128,
            DerivationType::Aes192 => WorkingKey::Aes192,
            DerivationType::Aes256 => WorkingKey::Aes256,
        }
    }
}

/// In which direction a key of a terminal is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Variant {
    Bidirectional,
    Request,
    Response,
}

/// Bytes of a key serial number of Triple DES. Its terminals have keys of this algorithm only.
const KSN_OF_TDES: usize = 10;

/// The key of a transaction. Without an algorithm it is Triple DES, if the number is that of Triple DES.
pub(super) fn dukpt(ksn: &str, derivation: Option<DerivationType>) -> Result<KeySource> {
    let ksn = hex("KeySerialNumber", ksn, 8..=12)?;
    let working = match derivation {
        Some(derivation) => derivation.working(),
        None if ksn.len() == KSN_OF_TDES => WorkingKey::Tdes2,
        None => {
            let wrong = "with a key serial number of AES the type of the derived key is needed";
            return Err(Exception::Invalid("DukptKeyDerivationType", wrong.into()));
        }
    };
    Ok(KeySource::Dukpt(Dukpt { ksn, working }))
}

/// `DukptAttributes`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct DukptAttributes {
    key_serial_number: String,
    dukpt_derivation_type: DerivationType,
}

/// `DukptDerivationAttributes`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct DukptDerivationAttributes {
    key_serial_number: String,
    dukpt_key_derivation_type: Option<DerivationType>,
    dukpt_key_variant: Option<Variant>,
}

impl DukptAttributes {
    pub(super) fn source(attributes: Option<&DukptAttributes>) -> Result<KeySource> {
        match attributes {
            None => Ok(KeySource::Direct),
            Some(of) => dukpt(&of.key_serial_number, Some(of.dukpt_derivation_type)),
        }
    }
}

impl DukptDerivationAttributes {
    pub(super) fn source(attributes: Option<&DukptDerivationAttributes>) -> Result<KeySource> {
        let Some(of) = attributes else { return Ok(KeySource::Direct) };
        if of.dukpt_key_variant == Some(Variant::Response) {
            let wrong = "a terminal has one key for PINs, and not another one for responses";
            return Err(Exception::Invalid("DukptKeyVariant", wrong.into()));
        }
        dukpt(&of.key_serial_number, of.dukpt_key_derivation_type)
    }
}

/// A PIN block as it came.
pub(super) fn block(
    member: &'static str,
    text: &str,
    format: PinFormat,
    key: KeySource,
) -> Result<EncryptedPin> {
    let bytes = format.block_bytes();
    Ok(EncryptedPin { format, block: hex(member, text, bytes..=bytes)?, key })
}

/// What is told if a PIN block is not what it should be, where the PIN is not verified. Why it is not, is not
/// known.
pub(super) fn bad_block(member: &'static str) -> Exception {
    Exception::Invalid(member, "the PIN block is not one of this format, card and key".into())
}
