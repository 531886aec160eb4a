//! Ciphertexts: what they consist of, and what they are bound to.
//!
//! The nodes derive the initialization vector of each message from the id of a session that no client
//! chooses, and the key's budget bounds how many there are (`docs/security/service.md`). The
//! `ciphertextMetadata` has the id of the version of the key, and is bound as the specification says
//! ("Encrypt", `ciphertextMetadata`): the additional data of GCM are
//!
//! ```text
//! length of AAD (2 bytes, big-endian) || AAD || length of metadata (1 byte) || metadata
//! ```
//!
//! With the lengths no two pairs of AAD and metadata give the same text. Nothing else is bound: what KMS says
//! of the one who asked may differ when it decrypts.

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::{KeyInfo, KeyVersion};
use polyclave_client::{Client, Error, Result};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::requests::{Decrypt, Encrypt};
use crate::bound::{Part, bound};

/// The first byte of metadata: what follows is the id of a version.
const FORM: u8 = 1;
/// Bytes of an initialization vector of the nodes, and of a tag.
const IV: usize = 12;
const TAG: usize = 16;

/// A ciphertext, with the members of the answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sealed {
    ciphertext: Encoded<Vec<u8>>,
    ciphertext_metadata: Encoded<Vec<u8>>,
    initialization_vector: Encoded<Vec<u8>>,
    authentication_tag: Encoded<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ciphertext_data_integrity_value: Option<Encoded<[u8; 32]>>,
}

/// A plaintext, as the answer has it.
#[derive(Serialize)]
pub(super) struct Opened {
    pub(super) plaintext: Encoded<Zeroizing<Vec<u8>>>,
}

/// Bytes that are written in Base64, without a text of their own in between.
pub(super) struct Encoded<B>(pub(super) B);

impl<B: AsRef<[u8]>> Serialize for Encoded<B> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(&Base64Display::new(self.0.as_ref(), &STANDARD))
    }
}

/// Has the nodes encrypt a plaintext under a version of a key.
pub(super) fn seal(client: &Client, info: &KeyInfo, asked: &Encrypt) -> Result<Sealed> {
    let metadata = metadata_of(&info.id);
    let bound = additional_of(&asked.additional, &metadata);
    let key = client.key_with_info(info);
    let message = key.gcm().aad(&bound).encrypt(&asked.plaintext)?;
    let of_nodes = || Error::Answers("their ciphertext has another length than the plaintext".into());
    let (iv, rest) = message.split_at_checked(IV).ok_or_else(of_nodes)?;
    let (ciphertext, tag) = rest.split_at_checked(asked.plaintext.len()).ok_or_else(of_nodes)?;
    if tag.len() != TAG {
        return Err(of_nodes());
    }
    // The value is computed before the check, from the bytes that are sent: so a bit that flips after it is
    // found by KMS ("Appendix C").
    let integrity = asked.integrity.then(|| integrity_of(&asked.additional, &metadata, &message));
    let sealed = Sealed {
        ciphertext: Encoded(ciphertext.to_vec()),
        ciphertext_metadata: Encoded(metadata),
        initialization_vector: Encoded(iv.to_vec()),
        authentication_tag: Encoded(tag.to_vec()),
        ciphertext_data_integrity_value: integrity.map(Encoded),
    };
    if asked.integrity {
        let parts = [&sealed.initialization_vector.0, &sealed.ciphertext.0, &sealed.authentication_tag.0];
        let again = key.gcm().aad(&bound).decrypt(&parts.map(Vec::as_slice).concat())?;
        // How long it takes tells the caller at most where its own plaintext came back changed.
        if again != asked.plaintext {
            return Err(Error::Answers("their ciphertext does not decrypt to the plaintext".into()));
        }
    }
    Ok(sealed)
}

/// Has the nodes decrypt a message under the version of a key that its metadata names.
pub(super) fn open(client: &Client, version: &KeyVersion, asked: &Decrypt) -> Result<Zeroizing<Vec<u8>>> {
    let bound = additional_of(&asked.additional, &asked.metadata);
    let key = client.key_with_id(version.clone());
    key.gcm().nonce_bytes(asked.iv).aad(&bound).decrypt(&asked.message)
}

/// The id of the version that metadata names; `None` if no gateway has made it.
pub(super) fn version_of(metadata: &[u8]) -> Option<[u8; 16]> {
    match metadata.split_first() {
        Some((&FORM, id)) => id.try_into().ok(),
        _ => None,
    }
}

fn metadata_of(id: &[u8; 16]) -> Vec<u8> {
    [&[FORM], &id[..]].concat()
}

/// The additional data of GCM. Both lengths fit: `requests.rs` has the limits.
fn additional_of(additional: &[u8], metadata: &[u8]) -> Vec<u8> {
    bound([Part::Long(additional), Part::Short(metadata)])
}

/// The `ciphertextDataIntegrityValue`: SHA-256 of additional data, metadata, initialization vector,
/// ciphertext and tag ("Appendix C").
fn integrity_of(additional: &[u8], metadata: &[u8], message: &[u8]) -> [u8; 32] {
    let hash = Sha256::new().chain_update(additional).chain_update(metadata).chain_update(message);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification ("Appendix C").
    #[test]
    fn the_value_of_integrity_is_that_of_the_specification() {
        let message = "1ccae5470f39700254779031821c642b5b71783367deaf18bc1c4dda7707d6812447c5955e99b261";
        let message = hex::decode(message).expect("hex");
        let value = integrity_of(b"project=nile,department=marketing", b"key_version=1", &message);
        assert_eq!(hex::encode(value), "a8703f2260bd8791ec2d15ea0b23e65a0631eedcf2a13a65cc82db3f47cf5ec7");
    }

    #[test]
    fn what_is_bound_has_lengths_so_that_metadata_is_no_additional_data() {
        assert_eq!(additional_of(b"ab", b"c"), b"\0\x02ab\x01c");
        assert_eq!(additional_of(&[7; 8192], b"")[..2], [0x20, 0]);
        assert_ne!(additional_of(b"", b"abc"), additional_of(b"abc", b""));
    }

    #[test]
    fn metadata_names_a_version() {
        let metadata = metadata_of(&[7; 16]);
        assert!(metadata.len() <= 20);
        assert_eq!(version_of(&metadata), Some([7; 16]));
        for other in [&b""[..], &[1], &[1; 16], &[1; 18], &[2; 17]] {
            assert_eq!(version_of(other), None, "{other:?}");
        }
    }
}
