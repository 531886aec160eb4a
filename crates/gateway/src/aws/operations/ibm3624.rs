//! Members of requests by the method of IBM 3624.

use polyclave_payments::Purpose;

use crate::aws::error::{Exception, Result};
use crate::aws::keys::Key;

/// Hexadecimal digits of validation data.
const DIGITS: usize = 16;

/// The decimalization table, the validation data and its fill, as every request has them.
pub(super) struct Data<'r> {
    pub(super) table: &'r str,
    pub(super) pad: &'r str,
    pub(super) validation: &'r str,
}

/// What is encrypted: the validation data, filled up from the right.
pub(super) fn validation_data(data: &Data<'_>) -> Result<[u8; 8]> {
    let member = "PinValidationData";
    let is_pad = |c: u8| c.is_ascii_digit() || (b'A'..=b'F').contains(&c);
    if data.pad.len() != 1 || !data.pad.bytes().all(is_pad) {
        let wrong = "one of 0 to 9 and A to F is expected";
        return Err(Exception::Invalid("PinValidationDataPadCharacter", wrong.into()));
    }
    let given = data.validation;
    if !(4..=DIGITS).contains(&given.len()) || !given.bytes().all(|c| c.is_ascii_digit()) {
        return Err(Exception::Invalid(member, "4 to 16 digits are expected".into()));
    }
    let whole = format!("{given}{}", data.pad.repeat(DIGITS - given.len()));
    let mut bytes = [0; 8];
    hex::decode_to_slice(whole, &mut bytes).map_err(|e| Exception::Invalid(member, e.to_string()))?;
    Ok(bytes)
}

/// Whether the table is that of the key. Who could choose it, could find PINs with a few requests.
pub(super) fn check_table(data: &Data<'_>, key: &Key) -> Result<()> {
    let member = "DecimalizationTable";
    if data.table.len() != DIGITS || !data.table.bytes().all(|c| c.is_ascii_digit()) {
        return Err(Exception::Invalid(member, "16 digits are expected".into()));
    }
    match key.info.properties.purpose() {
        Some(Purpose::PinVerificationIbm3624 { table }) if table.to_string() != data.table => {
            Err(Exception::Invalid(member, "the key belongs to another table, which never changes".into()))
        }
        // Other purposes are refused as such.
        _ => Ok(()),
    }
}
