//! The operation that a request asks for, by its method and path, as the API's model has them.

use crate::signed::sigv4::decoded;

/// An operation of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    DecryptData,
    EncryptData,
    GenerateAs2805KekValidation,
    GenerateAuthRequestCryptogram,
    GenerateCardValidationData,
    GenerateMac,
    GenerateMacEmvPinChange,
    GeneratePinData,
    ReEncryptData,
    TranslateKeyMaterial,
    TranslatePinData,
    VerifyAuthRequestCryptogram,
    VerifyCardValidationData,
    VerifyMac,
    VerifyPinData,
}

/// Paths without a key in them.
const FIXED: [(&str, Operation); 12] = [
    ("/as2805kekvalidation/generate", Operation::GenerateAs2805KekValidation),
    ("/cardvalidationdata/generate", Operation::GenerateCardValidationData),
    ("/cardvalidationdata/verify", Operation::VerifyCardValidationData),
    ("/cryptogram/generate", Operation::GenerateAuthRequestCryptogram),
    ("/cryptogram/verify", Operation::VerifyAuthRequestCryptogram),
    ("/keymaterial/translate", Operation::TranslateKeyMaterial),
    ("/mac/generate", Operation::GenerateMac),
    ("/mac/verify", Operation::VerifyMac),
    ("/macemvpinchange/generate", Operation::GenerateMacEmvPinChange),
    ("/pindata/generate", Operation::GeneratePinData),
    ("/pindata/translate", Operation::TranslatePinData),
    ("/pindata/verify", Operation::VerifyPinData),
];

/// What stands after a key in a path.
const WITH_KEY: [(&str, Operation); 3] = [
    ("decrypt", Operation::DecryptData),
    ("encrypt", Operation::EncryptData),
    ("reencrypt", Operation::ReEncryptData),
];

/// The paths, for the router.
pub(super) fn paths() -> impl Iterator<Item = String> {
    let with_key = WITH_KEY.iter().map(|(name, _)| format!("/keys/{{key}}/{name}"));
    FIXED.iter().map(|(path, _)| (*path).to_owned()).chain(with_key)
}

impl Operation {
    /// The operation, and the key identifier of the path.
    pub(super) fn of(method: &str, path: &str) -> Option<(Operation, Option<String>)> {
        if method != "POST" {
            return None;
        }
        if let Some((_, operation)) = FIXED.iter().find(|(fixed, _)| *fixed == path) {
            return Some((*operation, None));
        }
        // A key is one segment: its slashes and colons are encoded.
        let (key, name) = path.strip_prefix("/keys/")?.split_once('/')?;
        let (_, operation) = WITH_KEY.iter().find(|(known, _)| *known == name)?;
        Some((*operation, Some(String::from_utf8(decoded(key)?).ok()?)))
    }

    /// A word for the log and the counts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Operation::DecryptData => "decrypt-data",
            Operation::EncryptData => "encrypt-data",
            Operation::GenerateAs2805KekValidation => "generate-as2805-kek-validation",
            Operation::GenerateAuthRequestCryptogram => "generate-auth-request-cryptogram",
            Operation::GenerateCardValidationData => "generate-card-validation-data",
            Operation::GenerateMac => "generate-mac",
            Operation::GenerateMacEmvPinChange => "generate-mac-emv-pin-change",
            Operation::GeneratePinData => "generate-pin-data",
            Operation::ReEncryptData => "re-encrypt-data",
            Operation::TranslateKeyMaterial => "translate-key-material",
            Operation::TranslatePinData => "translate-pin-data",
            Operation::VerifyAuthRequestCryptogram => "verify-auth-request-cryptogram",
            Operation::VerifyCardValidationData => "verify-card-validation-data",
            Operation::VerifyMac => "verify-mac",
            Operation::VerifyPinData => "verify-pin-data",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_by_method_and_path() {
        assert_eq!(Operation::of("POST", "/pindata/verify"), Some((Operation::VerifyPinData, None)));
        let encrypt = Operation::of("POST", "/keys/alias%2Fdata/encrypt");
        assert_eq!(encrypt, Some((Operation::EncryptData, Some("alias/data".into()))));
        for (method, path) in [
            ("GET", "/pindata/verify"),
            ("PUT", "/pindata/verify"),
            ("POST", "/pindata/verify/"),
            ("POST", "/PinData/verify"),
            ("POST", "/keys/alias/data/encrypt"),
            ("POST", "/keys/alias%2Fdata/sign"),
            ("POST", "/keys/alias%2fdata%/encrypt"),
            ("POST", "/keys/%ff/encrypt"),
            ("POST", "/keys/encrypt"),
            ("POST", "/"),
        ] {
            assert_eq!(Operation::of(method, path), None, "{method} {path}");
        }
    }
}
