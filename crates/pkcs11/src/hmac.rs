//! Keys for HMAC: their types, hashes and lengths.
//!
//! PKCS#11 has generic secrets, which all mechanisms of HMAC take, and keys of one hash. A key of the nodes
//! has one hash in any case. So a generic secret has that of its `CKA_ALLOWED_MECHANISMS`, or SHA-256.
//!
//! Nodes keep a key as one block of its hash. They generate whole blocks. A shorter key that is imported is
//! filled up with zeros and a longer one is hashed, which changes no code. So the module notes how long it
//! was.

use cryptoki_sys::*;
use polyclave_cipher::hmac::{KEY_BYTES, Sha2, name};
use serde::{Deserialize, Serialize};

use crate::mechanism::{Family, entry};
use crate::rv::{Result, because};

/// What the module notes of a key for HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    /// `CKA_VALUE_LEN`.
    pub(crate) bytes: u32,
    /// Whether it is a `CKK_GENERIC_SECRET`.
    pub(crate) is_generic: bool,
}

/// The type of keys of a hash.
pub(crate) fn key_type(hash: Sha2) -> CK_KEY_TYPE {
    match hash {
        Sha2::Sha256 => CKK_SHA256_HMAC,
        Sha2::Sha384 => CKK_SHA384_HMAC,
        Sha2::Sha512 => CKK_SHA512_HMAC,
    }
}

/// The mechanism that generates keys of a hash.
pub(crate) fn generation(hash: Sha2) -> CK_MECHANISM_TYPE {
    match hash {
        Sha2::Sha256 => CKM_SHA256_KEY_GEN,
        Sha2::Sha384 => CKM_SHA384_KEY_GEN,
        Sha2::Sha512 => CKM_SHA512_KEY_GEN,
    }
}

/// Whether keys of this type are for HMAC.
pub(crate) fn is_type(kind: CK_KEY_TYPE) -> bool {
    kind == CKK_GENERIC_SECRET || Sha2::ALL.into_iter().any(|hash| key_type(hash) == kind)
}

/// The cipher of a key of this type that is to serve these mechanisms, if its length is one that such a key
/// has. The length may be missing where nodes decide it.
pub(crate) fn cipher(
    kind: CK_KEY_TYPE,
    mechanisms: &[CK_MECHANISM_TYPE],
    (is_imported, bytes): (bool, Option<CK_ULONG>),
) -> Result<&'static str> {
    let of_type = Sha2::ALL.into_iter().find(|hash| key_type(*hash) == kind);
    let hash = of_type.unwrap_or_else(|| of_generic(mechanisms));
    let (name, block) = (name(hash), hash.block_bytes() as CK_ULONG);
    match (is_imported, bytes) {
        (true, Some(bytes)) if KEY_BYTES.contains(&(bytes as usize)) => Ok(name),
        (true, None) => Err(because(CKR_TEMPLATE_INCOMPLETE, "CKA_VALUE is missing")),
        (true, Some(given)) => {
            let (least, most) = (KEY_BYTES.start(), KEY_BYTES.end());
            Err(because(
                CKR_KEY_SIZE_RANGE,
                format!("a key of HMAC has {least} to {most} bytes, not {given}"),
            ))
        }
        (_, None) => Ok(name),
        (_, Some(bytes)) if bytes == block => Ok(name),
        (_, Some(bytes)) => {
            let why = format!(
                "the nodes make keys of {name} of {block} bytes, one block of the hash, not of {bytes}: ask for \
                 CKA_VALUE_LEN = {block}"
            );
            Err(because(CKR_KEY_SIZE_RANGE, why))
        }
    }
}

/// The hash of a generic secret: that of the first mechanism of HMAC that it is to serve, or SHA-256. Whether
/// it can serve the others is seen where the mechanisms of every key are.
fn of_generic(mechanisms: &[CK_MECHANISM_TYPE]) -> Sha2 {
    let mut hashes = mechanisms.iter().filter_map(|kind| match entry(*kind).ok()?.family {
        Family::Hmac(hash) => Some(hash),
        _ => None,
    });
    hashes.next().unwrap_or(Sha2::Sha256)
}
