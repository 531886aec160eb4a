//! Message authentication codes over public messages.

use serde::{Deserialize, Serialize};

use crate::dukpt::DukptUsage;
use crate::key_source::KeySource;
use crate::payment::{KeyFacts, Role};
use crate::purpose::Purpose;
use crate::wiring::{Key, Value, Wiring};

/// Most bytes of a message: each block waits for the one before.
pub(crate) const MOST_BYTES: usize = 4096;

/// How a message is filled up to whole blocks (ISO 9797-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessagePadding {
    /// Zeros, where the last block is not full (method 1).
    Zeros,
    /// Always a bit, then zeros (method 2).
    BitAndZeros,
}

impl MessagePadding {
    /// The message in whole blocks, at least one.
    pub(crate) fn padded(self, message: &[u8], block: usize) -> Vec<u8> {
        let mut padded = message.to_vec();
        if self == MessagePadding::BitAndZeros {
            padded.push(0x80);
        }
        padded.resize(padded.len().next_multiple_of(block).max(block), 0);
        padded
    }
}

/// A way to authenticate a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MacMethod {
    /// The retail MAC: ISO 9797-1, algorithm 3, with DES (ANSI X9.19).
    Retail {
        /// How messages are filled up.
        padding: MessagePadding,
    },
    /// CMAC (SP 800-38B).
    Cmac,
    /// CBC-MAC: ISO 9797-1, algorithm 1. For messages of one length: from MACs of short messages others can
    /// be put together for longer ones.
    Cbc {
        /// How messages are filled up.
        padding: MessagePadding,
    },
}

/// What is authenticated, and how.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MacInput {
    /// The way.
    pub method: MacMethod,
    /// Under what.
    pub key: KeySource,
    /// Which key of a transaction, with DUKPT: one of the usages for MACs.
    pub usage: DukptUsage,
    /// The message: 1 to 4096 bytes.
    #[serde(with = "crate::hexadecimal")]
    pub message: Vec<u8>,
}

impl std::fmt::Debug for MacInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MacInput({:?}, {:?}, {} bytes)", self.method, self.key, self.message.len())
    }
}

impl MacInput {
    pub(crate) fn role(&self) -> Role {
        let direct = match self.method {
            MacMethod::Retail { .. } => |purpose: &Purpose| *purpose == Purpose::MacRetail,
            MacMethod::Cmac => |purpose: &Purpose| *purpose == Purpose::MacCmac,
            MacMethod::Cbc { .. } => |purpose: &Purpose| *purpose == Purpose::MacCbc,
        };
        self.key.role("MAC key", direct)
    }

    pub(crate) fn check(&self, key: &KeyFacts<'_>) -> Result<(), String> {
        self.key.check(key)?;
        if !(1..=MOST_BYTES).contains(&self.message.len()) {
            return Err(format!("a message has 1 to {MOST_BYTES} bytes"));
        }
        let usages = [DukptUsage::MacRequest, DukptUsage::MacResponse, DukptUsage::MacBoth];
        if !usages.contains(&self.usage) {
            return Err("the derived key has to be for MACs".into());
        }
        match self.method {
            MacMethod::Retail { .. } if self.key.cipher(key) != "3des-ede2" => {
                Err("a retail MAC takes a key of Triple DES with two keys".into())
            }
            MacMethod::Retail { .. } | MacMethod::Cbc { .. } if self.is_one_block_of_zeros(key) => {
                Err("the MAC of one block of zeros is the check value of the key, which is no secret".into())
            }
            _ => Ok(()),
        }
    }

    fn is_one_block_of_zeros(&self, key: &KeyFacts<'_>) -> bool {
        self.padded(key) == vec![0; self.block(key)]
    }

    /// Whether a MAC can have so many bytes. Fewer than four are guessed.
    pub(crate) fn check_length(&self, key: &KeyFacts<'_>, bytes: usize) -> Result<(), String> {
        let most = self.key.block_bytes(key);
        match (4..=most).contains(&bytes) {
            true => Ok(()),
            false => Err(format!("a MAC has 4 to {most} bytes")),
        }
    }

    fn block(&self, key: &KeyFacts<'_>) -> usize {
        self.key.block_bytes(key)
    }

    /// Whether the last block is filled up, which CMAC treats in another way.
    fn is_padded(&self, key: &KeyFacts<'_>) -> bool {
        !self.message.len().is_multiple_of(self.block(key))
    }

    fn padded(&self, key: &KeyFacts<'_>) -> Vec<u8> {
        let block = self.block(key);
        match self.method {
            MacMethod::Retail { padding } | MacMethod::Cbc { padding } => {
                padding.padded(&self.message, block)
            }
            MacMethod::Cmac if self.is_padded(key) => {
                MessagePadding::BitAndZeros.padded(&self.message, block)
            }
            MacMethod::Cmac => self.message.clone(),
        }
    }

    pub(crate) fn name(&self, key: &KeyFacts<'_>) -> String {
        let blocks = self.padded(key).len() / self.block(key);
        let method = match self.method {
            MacMethod::Retail { .. } => "retail",
            MacMethod::Cmac if self.is_padded(key) => "cmac-padded",
            MacMethod::Cmac => "cmac",
            MacMethod::Cbc { .. } => "cbc",
        };
        format!("{method}-{blocks}-{}{}", self.key.name(), self.encrypted_usage())
    }

    /// Variants of Triple DES are constants of the circuit.
    fn encrypted_usage(&self) -> String {
        match (&self.key, self.usage) {
            (KeySource::Dukpt(_), DukptUsage::MacResponse) => "-response".into(),
            _ => String::new(),
        }
    }

    pub(crate) fn public(&self, key: &KeyFacts<'_>) -> Vec<u8> {
        [self.key.public(key, self.usage), self.padded(key)].concat()
    }

    /// The MAC, a whole block.
    pub(crate) fn mac(&self, w: &mut Wiring, facts: &KeyFacts<'_>, key: &Key) -> Value {
        let key = self.key.derive(w, key, self.usage);
        let message = w.public(self.padded(facts).len());
        match self.method {
            MacMethod::Retail { .. } => retail(w, &key, &message),
            MacMethod::Cmac => cmac(w, &key, &message, self.is_padded(facts)),
            MacMethod::Cbc { .. } => cbc(w, &key, &message),
        }
    }

    pub(crate) fn blocks(&self, key: &KeyFacts<'_>) -> u64 {
        let blocks = (self.padded(key).len() / self.block(key)) as u64;
        let more = match self.method {
            // The last block takes three of DES.
            MacMethod::Retail { .. } => 2,
            MacMethod::Cmac => 1,
            MacMethod::Cbc { .. } => 0,
        };
        self.key.blocks(key, self.usage) + blocks + more
    }
}

/// CBC-MAC with single DES under the left half, and Triple DES for the last block.
pub(crate) fn retail(w: &mut Wiring, key: &Key, message: &Value) -> Value {
    let left = w.single(key, 0);
    let sum = chained(w, &left, message);
    w.encrypt(key, &sum)
}

/// CBC-MAC with one cipher for all blocks.
fn cbc(w: &mut Wiring, key: &Key, message: &Value) -> Value {
    let sum = chained(w, key, message);
    w.encrypt(key, &sum)
}

/// CMAC of whole blocks; `is_padded` if the last one was filled up.
pub(crate) fn cmac(w: &mut Wiring, key: &Key, message: &Value, is_padded: bool) -> Value {
    let [k1, k2] = w.subkeys(key);
    let sum = chained(w, key, message);
    let sum = w.xor(&sum, if is_padded { &k2 } else { &k1 });
    w.encrypt(key, &sum)
}

/// What the last encryption of a CBC-MAC takes.
fn chained(w: &mut Wiring, key: &Key, message: &Value) -> Value {
    let block = key.cipher.block_bytes;
    let mut sum = message.part(0..block);
    for i in 1..message.bytes() / block {
        let chain = w.encrypt(key, &sum);
        sum = w.xor(&chain, &message.part(block * i..block * (i + 1)));
    }
    sum
}
