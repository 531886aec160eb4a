//! The operations, a family a file. Each reads its request and says what to ask the nodes.

mod card_value;
mod change_pin;
mod cryptogram;
mod data;
mod emv;
mod generate_pin;
mod ibm3624;
mod mac;
mod pin;
mod translate_pin;
mod verify_pin;

use super::error::{Exception, Result};
use super::route::Operation;
use super::task::Task;

/// Reads a request. `key` is the key identifier of its path, for operations that have it there.
pub(super) fn read(operation: Operation, key: Option<&str>, body: &[u8]) -> Result<Box<dyn Task>> {
    let key = key.unwrap_or_default();
    match operation {
        Operation::DecryptData => data::read_decrypt(key, body),
        Operation::EncryptData => data::read_encrypt(key, body),
        Operation::GenerateAuthRequestCryptogram => cryptogram::read_generate(body),
        Operation::GenerateCardValidationData => card_value::read_generate(body),
        Operation::GenerateMac => mac::read_generate(body),
        Operation::GenerateMacEmvPinChange => change_pin::read(body),
        Operation::GeneratePinData => generate_pin::read(body),
        Operation::ReEncryptData => data::read_reencrypt(key, body),
        Operation::TranslatePinData => translate_pin::read(body),
        Operation::VerifyAuthRequestCryptogram => cryptogram::read_verify(body),
        Operation::VerifyCardValidationData => card_value::read_verify(body),
        Operation::VerifyMac => mac::read_verify(body),
        Operation::VerifyPinData => verify_pin::read(body),
        Operation::TranslateKeyMaterial | Operation::GenerateAs2805KekValidation => {
            Err(Exception::Malformed(format!("{} is not served here", operation.name())))
        }
    }
}
