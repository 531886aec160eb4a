//! DUKPT: a key for each transaction of a terminal, derived from a base derivation key and the key serial
//! number (KSN) that the terminal sends. ANSI X9.24-1 with Triple DES, X9.24-3 with AES.
//!
//! Nothing is stored for a terminal: each command derives the key anew. How long that takes depends on how
//! many bits of the counter are set. The number is part of the circuit's name; the KSN is public.

mod aes;
mod tdes;

use polyclave_cipher::Cipher;
use serde::{Deserialize, Serialize};

use crate::wiring::{Key, Wiring};

/// Which key of a transaction is used.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dukpt {
    /// The key serial number: 10 bytes for Triple DES, 12 for AES.
    #[serde(with = "crate::hexadecimal")]
    pub ksn: Vec<u8>,
    /// Which key the terminal used. X9.24-1 has [`WorkingKey::Tdes2`] only.
    pub working: WorkingKey,
}

impl std::fmt::Debug for Dukpt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of ", self.working)?;
        self.ksn.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The algorithm of a key that DUKPT derives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkingKey {
    /// Triple DES with two keys.
    Tdes2,
    /// Triple DES with three keys.
    Tdes3,
    /// AES-128.
    Aes128,
    /// AES-192.
    Aes192,
    /// AES-256.
    Aes256,
}

impl WorkingKey {
    /// The cipher's name in the catalog.
    pub fn cipher(self) -> &'static str {
        match self {
            WorkingKey::Tdes2 => "3des-ede2",
            WorkingKey::Tdes3 => "3des-ede3",
            WorkingKey::Aes128 => "aes-128",
            WorkingKey::Aes192 => "aes-192",
            WorkingKey::Aes256 => "aes-256",
        }
    }

    /// Bytes of the key.
    fn bytes(self) -> usize {
        match self {
            WorkingKey::Tdes2 | WorkingKey::Aes128 => 16,
            WorkingKey::Tdes3 | WorkingKey::Aes192 => 24,
            WorkingKey::Aes256 => 32,
        }
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(self) -> usize {
        if self <= WorkingKey::Tdes3 { 8 } else { 16 }
    }
}

/// What the derived key is for. Each purpose has a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DukptUsage {
    /// PINs.
    Pin,
    /// MACs of what the terminal sends.
    MacRequest,
    /// MACs of what it gets.
    MacResponse,
    /// MACs of both. With Triple DES the same key as for requests.
    MacBoth,
    /// Data that the terminal sends.
    DataRequest,
    /// Data that it gets.
    DataResponse,
    /// Both. With Triple DES the same key as for requests.
    DataBoth,
}

impl Dukpt {
    /// Whether it is X9.24-1.
    fn is_tdes(&self) -> bool {
        self.ksn.len() == tdes::KSN_BYTES
    }

    pub(crate) fn check(&self, base: &Cipher) -> Result<(), String> {
        match (base.name.starts_with("aes-"), self.ksn.len()) {
            (false, tdes::KSN_BYTES) => tdes::check(&self.ksn, self.working),
            (true, aes::KSN_BYTES) => aes::check(&self.ksn, self.working, base.key_bytes),
            (false, _) => Err(format!("a KSN for Triple DES has {} bytes", tdes::KSN_BYTES)),
            (true, _) => Err(format!("a KSN for AES has {} bytes", aes::KSN_BYTES)),
        }
    }

    /// A part of the name of a circuit.
    pub(crate) fn name(&self) -> String {
        match self.is_tdes() {
            true => format!("dukpt-tdes-{}", tdes::registers(&self.ksn).len()),
            false => format!("dukpt-{}-{}", self.working.cipher(), aes::counters(&self.ksn).len()),
        }
    }

    pub(crate) fn public(&self, base: &Cipher, usage: DukptUsage) -> Vec<u8> {
        match self.is_tdes() {
            true => tdes::public(&self.ksn),
            false => aes::public(&self.ksn, self.working, base.key_bytes, usage),
        }
    }

    /// The key of the transaction for a usage.
    pub(crate) fn derive(&self, w: &mut Wiring, base: &Key, usage: DukptUsage) -> Key {
        match self.is_tdes() {
            true => tdes::working_key(w, base, tdes::registers(&self.ksn).len(), usage),
            false => aes::working_key(w, base, aes::counters(&self.ksn).len(), self.working),
        }
    }

    /// Blocks that the derivation takes.
    pub(crate) fn blocks(&self, base: &Cipher, usage: DukptUsage) -> u64 {
        match self.is_tdes() {
            true => tdes::blocks(&self.ksn, usage),
            false => aes::blocks(&self.ksn, self.working, base.key_bytes),
        }
    }
}
