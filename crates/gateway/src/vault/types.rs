//! Types of keys, and how messages under a key are encrypted. Which it is follows from the modes of the key,
//! which the nodes keep, never change, and hold the key to: nothing of it is kept here.
//!
//! | key | mode | additional data of the mode |
//! |---|---|---|
//! | not derived | `gcm` | the associated data |
//! | derived | `xaes` | context and associated data, each behind its length |
//! | derived and convergent | `siv` | the same |
//!
//! `docs/security/programs.md` says what that gives of what Vault's derived keys give, and what not.

use polyclave_api::{KeyInfo, MAX_ADDITIONAL_DATA, Mode, NewKey};
use polyclave_cipher::hmac::{self, Sha2};
use polyclave_client::{Aead, KeyHandle};

use crate::bound::{Part, bound};
use crate::failure::Failure;

/// A type of keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) name: &'static str,
    /// What the nodes call it.
    pub(super) cipher: &'static str,
    pub(super) mode: Mode,
}

/// The type of a key that is made without naming one.
pub(super) const DEFAULT: &str = TYPES[0].name;

const TYPES: [Type; 8] = [
    Type { name: "aes256-gcm96", cipher: "aes-256", mode: Mode::Gcm },
    Type { name: "aes256-gcm96", cipher: "aes-256", mode: Mode::Xaes },
    Type { name: "aes256-gcm96", cipher: "aes-256", mode: Mode::Siv },
    Type { name: "aes128-gcm96", cipher: "aes-128", mode: Mode::Gcm },
    Type { name: "aes128-gcm96", cipher: "aes-128", mode: Mode::Siv },
    // Vault has one type, whose keys serve every hash. At the nodes a key serves one.
    Type { name: "hmac", cipher: hmac::name(Sha2::Sha256), mode: Mode::Hmac },
    Type { name: "hmac-sha2-384", cipher: hmac::name(Sha2::Sha384), mode: Mode::Hmac },
    Type { name: "hmac-sha2-512", cipher: hmac::name(Sha2::Sha512), mode: Mode::Hmac },
];

impl Type {
    /// The type with a name, for keys that are derived or convergent, or neither.
    pub(super) fn named(name: &str, (derived, convergent): (bool, bool)) -> Result<&'static Type, Failure> {
        let computes_codes = TYPES.iter().any(|one| (one.name, one.mode) == (name, Mode::Hmac));
        let mode = match (name, derived, convergent) {
            (_, false, false) if computes_codes => Mode::Hmac,
            _ if computes_codes => {
                return Err(bad(&format!(
                    "key derivation and convergent encryption not supported for keys of type {name}"
                )));
            }
            (_, false, true) => {
                return Err(bad("convergent encryption requires derivation to be enabled"));
            }
            ("aes128-gcm96", true, false) => {
                return Err(bad(
                    "a derived key of type aes128-gcm96 has to be convergent here; take aes256-gcm96",
                ));
            }
            (_, false, false) => Mode::Gcm,
            (_, true, false) => Mode::Xaes,
            (_, true, true) => Mode::Siv,
        };
        TYPES.iter().find(|one| (one.name, one.mode) == (name, mode)).ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            let mut names: Vec<&str> = TYPES.iter().map(|one| one.name).collect();
            names.dedup();
            bad(&format!("unknown key type {shown}; this gateway has {}", names.join(", ")))
        })
    }

    /// The type of a key; `None` if it is not one of the API.
    pub(super) fn of(info: &KeyInfo) -> Option<&'static Type> {
        let NewKey { cipher, modes, .. } = &info.properties;
        let one = TYPES.iter().find(|one| one.cipher == cipher && modes.contains(&one.mode))?;
        info.component.is_none().then_some(one)
    }

    pub(super) fn form(&self) -> Option<Form> {
        Form::of(&[self.mode])
    }
}

/// How messages under a key are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A context is ignored, as in Vault.
    Plain,
    /// Messages belong to a context.
    Derived,
    /// The same, and equal messages of a context have equal ciphertexts.
    Convergent,
}

impl Form {
    /// That of a key with these modes.
    pub(super) fn of(modes: &[Mode]) -> Option<Form> {
        let forms = [(Mode::Gcm, Form::Plain), (Mode::Xaes, Form::Derived), (Mode::Siv, Form::Convergent)];
        forms.into_iter().find(|(mode, _)| modes.contains(mode)).map(|(_, form)| form)
    }

    pub(super) fn is_derived(self) -> bool {
        self != Form::Plain
    }

    /// Messages of the key, in its mode.
    pub(super) fn messages<'k>(self, key: &'k KeyHandle<'k>) -> Aead<'k> {
        match self {
            Form::Plain => key.gcm(),
            Form::Derived => key.xaes(),
            Form::Convergent => key.siv(),
        }
    }

    /// Bytes of nonce and tag.
    pub(super) fn around(self) -> usize {
        match self {
            Form::Plain => 12 + 16,
            Form::Derived => 24 + 16,
            Form::Convergent => 16,
        }
    }

    /// The additional data of the mode: what a message is bound to.
    pub(super) fn bind(self, context: &[u8], associated: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let most = |what: &str| bad(&format!("{what} more than {MAX_ADDITIONAL_DATA} bytes"));
        if self == Form::Plain {
            return match associated.len() > MAX_ADDITIONAL_DATA {
                true => Err(most("associated_data has")),
                false => Ok(associated),
            };
        }
        if context.is_empty() {
            return Err(bad(NO_CONTEXT));
        }
        if context.len() + associated.len() + LENGTHS > MAX_ADDITIONAL_DATA {
            return Err(most("context and associated_data, with their lengths, have"));
        }
        Ok(bound([Part::Long(context), Part::Long(&associated)]))
    }
}

/// Bytes of the lengths of context and associated data.
const LENGTHS: usize = 4;

/// As Vault says it.
const NO_CONTEXT: &str = "missing 'context' for key derivation; the key was created using a derived key, which means additional, \
     per-request information must be included in order to perform operations with the key";

fn bad(message: &str) -> Failure {
    Failure::Bad(message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_bound_to_context_and_associated_data_and_to_which_is_which() {
        for form in [Form::Derived, Form::Convergent] {
            let bound = |context: &[u8], associated: &[u8]| form.bind(context, associated.to_vec());
            assert_eq!(bound(b"ab", b"c"), Ok(b"\0\x02ab\0\x01c".to_vec()));
            assert_ne!(bound(b"ab", b"c"), bound(b"a", b"bc"));
            assert_ne!(bound(b"ab", b""), bound(b"a", b"b"));
            assert_eq!(bound(b"", b"abc"), Err(bad(NO_CONTEXT)));
            let longest = vec![7; MAX_ADDITIONAL_DATA - LENGTHS - 1];
            assert_eq!(bound(b"a", &longest).map(|all| all.len()), Ok(MAX_ADDITIONAL_DATA));
            assert!(bound(b"ab", &longest).is_err() && bound(&longest, b"ab").is_err());
        }
        assert_eq!(Form::Plain.bind(b"ab", b"c".to_vec()), Ok(b"c".to_vec()), "the context is ignored");
        assert!(Form::Plain.bind(b"", vec![7; MAX_ADDITIONAL_DATA + 1]).is_err());
    }

    #[test]
    fn each_type_can_be_made_and_is_found_again_by_its_cipher_and_mode() {
        for one in &TYPES {
            let key = NewKey::for_modes("k", one.cipher, &[one.mode], 1);
            let cipher = polyclave_cipher::keyed::find(one.cipher).expect("there is one");
            assert_eq!(polyclave_api::check_new_key(&key, &cipher), Ok(()), "{one:?}");
            let derived = matches!(one.mode, Mode::Xaes | Mode::Siv);
            assert_eq!(Type::named(one.name, (derived, one.mode == Mode::Siv)), Ok(one));
            assert_eq!(one.form().is_some_and(Form::is_derived), derived);
            let info = KeyInfo::first(key, [0; 16], polyclave_api::Origin::Generated, 0, Vec::new());
            assert_eq!(Type::of(&info), Some(one));
        }
    }
}
