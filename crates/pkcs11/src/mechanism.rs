//! The table of mechanisms: the keys that each takes, what it does, and the purposes that the nodes must have
//! made a key for.

use cryptoki_sys::*;
use polyclave_api::{KeyInfo, Mode, Usage};
use polyclave_cipher::hmac::{KEY_BYTES, Sha2, hash_of};

use crate::rv::{Result, Rv};

/// A mechanism as a program gave it, with its parameter copied.
#[derive(Clone, Debug)]
pub(crate) struct Mechanism {
    pub(crate) kind: CK_MECHANISM_TYPE,
    pub(crate) parameter: Parameter,
}

/// A parameter, as its mechanism has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    None,
    /// An initial block.
    Initial(Vec<u8>),
    /// A counter block, and how many of its last bits count.
    Counter {
        bits: u64,
        block: [u8; 16],
    },
    /// GCM.
    Gcm {
        iv: Vec<u8>,
        additional: Vec<u8>,
        tag_bits: u64,
    },
    /// The bytes of a code.
    Length(usize),
    /// What a key is derived from.
    Data(Vec<u8>),
    /// The same, with an initial block.
    Chained {
        initial: Vec<u8>,
        data: Vec<u8>,
    },
    /// SP 800-108 in counter mode.
    CounterKdf {
        before: Vec<KdfPart>,
        counter_bits: u8,
        after: Vec<KdfPart>,
    },
}

/// What stands before or after the counter of SP 800-108.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KdfPart {
    Bytes(Vec<u8>),
    /// The length of the derived key in bits, or of the whole blocks that it is taken from. It has `bytes`
    /// bytes, perhaps the lowest first.
    Length {
        bytes: usize,
        little_endian: bool,
        of_blocks: bool,
    },
}

/// The form of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    None,
    Initial(usize),
    Counter,
    Gcm,
    Length,
    Data,
    Chained(usize),
    CounterKdf,
}

/// The keys that a mechanism takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    None,
    Aes,
    Des,
    /// Keys for HMAC with a hash.
    Hmac(Sha2),
}

/// A line of the table.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: CK_MECHANISM_TYPE,
    pub(crate) family: Family,
    pub(crate) form: Form,
    pub(crate) flags: CK_FLAGS,
    /// Bytes of a key: least and most.
    pub(crate) sizes: (CK_ULONG, CK_ULONG),
    /// A key must have one of these modes at the nodes. Empty if only a usage is needed.
    pub(crate) modes: &'static [Mode],
}

const BOTH: CK_FLAGS = CKF_ENCRYPT | CKF_DECRYPT;
const SIGNS: CK_FLAGS = CKF_SIGN | CKF_VERIFY;
const WRAPS: CK_FLAGS = CKF_WRAP | CKF_UNWRAP;
const MESSAGES: CK_FLAGS = CKF_MESSAGE_ENCRYPT | CKF_MESSAGE_DECRYPT;
const AES: (CK_ULONG, CK_ULONG) = (16, 32);
const DES: (CK_ULONG, CK_ULONG) = (16, 24);

const fn aes(kind: CK_MECHANISM_TYPE, form: Form, flags: CK_FLAGS, modes: &'static [Mode]) -> Entry {
    Entry { kind, family: Family::Aes, form, flags, sizes: AES, modes }
}

const fn des(kind: CK_MECHANISM_TYPE, form: Form, flags: CK_FLAGS, modes: &'static [Mode]) -> Entry {
    Entry { kind, family: Family::Des, form, flags, sizes: DES, modes }
}

/// A mechanism of HMAC.
const fn hmac(hash: Sha2, kind: CK_MECHANISM_TYPE, form: Form) -> Entry {
    let sizes = (*KEY_BYTES.start() as CK_ULONG, *KEY_BYTES.end() as CK_ULONG);
    Entry { kind, family: Family::Hmac(hash), form, flags: SIGNS, sizes, modes: &[Mode::Hmac] }
}

/// A mechanism that generates keys for HMAC, which have a block of their hash.
const fn hmac_generation(hash: Sha2, kind: CK_MECHANISM_TYPE) -> Entry {
    let block = hash.block_bytes() as CK_ULONG;
    let (family, form) = (Family::Hmac(hash), Form::None);
    Entry { kind, family, form, flags: CKF_GENERATE, sizes: (block, block), modes: &[] }
}

/// The mechanism that generates keys for HMAC with any hash.
const GENERIC: Entry = Entry {
    kind: CKM_GENERIC_SECRET_KEY_GEN,
    family: Family::None,
    form: Form::None,
    flags: CKF_GENERATE,
    sizes: (Sha2::Sha256.block_bytes() as CK_ULONG, Sha2::Sha512.block_bytes() as CK_ULONG),
    modes: &[],
};

const fn digest(kind: CK_MECHANISM_TYPE) -> Entry {
    Entry { kind, family: Family::None, form: Form::None, flags: CKF_DIGEST, sizes: (0, 0), modes: &[] }
}

/// All of them.
pub(crate) const TABLE: [Entry; 35] = [
    aes(CKM_AES_KEY_GEN, Form::None, CKF_GENERATE, &[]),
    des(CKM_DES2_KEY_GEN, Form::None, CKF_GENERATE, &[]),
    des(CKM_DES3_KEY_GEN, Form::None, CKF_GENERATE, &[]),
    aes(CKM_AES_ECB, Form::None, BOTH, &[Mode::Ecb]),
    // A key for single blocks serves it, too: the module chains them.
    aes(CKM_AES_CBC, Form::Initial(16), BOTH, &[Mode::Cbc, Mode::Ecb]),
    aes(CKM_AES_CBC_PAD, Form::Initial(16), BOTH, &[Mode::Cbc, Mode::Ecb]),
    aes(CKM_AES_CTR, Form::Counter, BOTH, &[Mode::Ctr]),
    aes(CKM_AES_GCM, Form::Gcm, BOTH | MESSAGES, &[Mode::Gcm]),
    des(CKM_DES3_ECB, Form::None, BOTH, &[Mode::Ecb]),
    des(CKM_DES3_CBC, Form::Initial(8), BOTH, &[Mode::Cbc, Mode::Ecb]),
    des(CKM_DES3_CBC_PAD, Form::Initial(8), BOTH, &[Mode::Cbc, Mode::Ecb]),
    aes(CKM_AES_CMAC, Form::None, SIGNS, &[Mode::Cmac]),
    aes(CKM_AES_CMAC_GENERAL, Form::Length, SIGNS, &[Mode::Cmac]),
    des(CKM_DES3_CMAC, Form::None, SIGNS, &[Mode::Cmac]),
    des(CKM_DES3_CMAC_GENERAL, Form::Length, SIGNS, &[Mode::Cmac]),
    aes(CKM_AES_KEY_WRAP, Form::None, WRAPS, &[]),
    aes(CKM_AES_KEY_WRAP_KWP, Form::None, WRAPS, &[]),
    aes(CKM_AES_ECB_ENCRYPT_DATA, Form::Data, CKF_DERIVE, &[]),
    aes(CKM_AES_CBC_ENCRYPT_DATA, Form::Chained(16), CKF_DERIVE, &[]),
    des(CKM_DES3_ECB_ENCRYPT_DATA, Form::Data, CKF_DERIVE, &[]),
    des(CKM_DES3_CBC_ENCRYPT_DATA, Form::Chained(8), CKF_DERIVE, &[]),
    aes(CKM_SP800_108_COUNTER_KDF, Form::CounterKdf, CKF_DERIVE, &[]),
    GENERIC,
    hmac_generation(Sha2::Sha256, CKM_SHA256_KEY_GEN),
    hmac_generation(Sha2::Sha384, CKM_SHA384_KEY_GEN),
    hmac_generation(Sha2::Sha512, CKM_SHA512_KEY_GEN),
    hmac(Sha2::Sha256, CKM_SHA256_HMAC, Form::None),
    hmac(Sha2::Sha256, CKM_SHA256_HMAC_GENERAL, Form::Length),
    hmac(Sha2::Sha384, CKM_SHA384_HMAC, Form::None),
    hmac(Sha2::Sha384, CKM_SHA384_HMAC_GENERAL, Form::Length),
    hmac(Sha2::Sha512, CKM_SHA512_HMAC, Form::None),
    hmac(Sha2::Sha512, CKM_SHA512_HMAC_GENERAL, Form::Length),
    digest(CKM_SHA256),
    digest(CKM_SHA384),
    digest(CKM_SHA512),
];

/// The line of a mechanism.
pub(crate) fn entry(kind: CK_MECHANISM_TYPE) -> Result<&'static Entry> {
    TABLE.iter().find(|entry| entry.kind == kind).ok_or(Rv(CKR_MECHANISM_INVALID))
}

/// The line of a mechanism that does this.
pub(crate) fn entry_for(kind: CK_MECHANISM_TYPE, flag: CK_FLAGS) -> Result<&'static Entry> {
    entry(kind).and_then(|entry| match entry.flags & flag {
        0 => Err(Rv(CKR_MECHANISM_INVALID)),
        _ => Ok(entry),
    })
}

/// The family of a key of the nodes, if PKCS#11 has it.
pub(crate) fn family_of(cipher: &str) -> Option<Family> {
    match cipher {
        "aes-128" | "aes-192" | "aes-256" => Some(Family::Aes),
        "3des-ede2" | "3des-ede3" => Some(Family::Des),
        _ => hash_of(cipher).map(Family::Hmac),
    }
}

/// Bytes of a block, or of a code of HMAC.
pub(crate) fn block_of(cipher: &str) -> usize {
    match family_of(cipher) {
        Some(Family::Des) => 8,
        Some(Family::Hmac(hash)) => hash.hash_bytes(),
        _ => 16,
    }
}

/// Bytes of a key as nodes keep it.
pub(crate) fn key_bytes(cipher: &str) -> usize {
    match cipher {
        "aes-128" | "3des-ede2" => 16,
        "aes-192" | "3des-ede3" => 24,
        _ => hash_of(cipher).map_or(32, Sha2::block_bytes),
    }
}

impl Entry {
    /// Whether a key of the nodes serves this mechanism.
    pub(crate) fn serves(&self, key: &KeyInfo) -> bool {
        let properties = &key.properties;
        let has = |usage: &[Usage]| usage.iter().any(|usage| properties.usage.contains(usage));
        let fits = family_of(&properties.cipher) == Some(self.family);
        let by_mode = self.modes.iter().any(|mode| properties.modes.contains(mode));
        let wraps = self.flags & WRAPS != 0 && has(&[Usage::Wrap, Usage::Unwrap]);
        let derives = self.flags & CKF_DERIVE != 0 && has(&[Usage::Derive]);
        fits && (by_mode || wraps || derives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mechanism_is_in_the_table_twice() {
        for (i, entry) in TABLE.iter().enumerate() {
            assert!(TABLE[..i].iter().all(|other| other.kind != entry.kind), "{:#x}", entry.kind);
            assert!(entry.flags != 0);
        }
    }
}
