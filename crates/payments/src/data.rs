//! Data of clients in whole blocks, encrypted under a key or under a transaction's key.

use polyclave_cipher::Direction;
use serde::{Deserialize, Serialize};

use crate::dukpt::DukptUsage;
use crate::key_source::KeySource;
use crate::payment::{KeyFacts, Role};
use crate::purpose::Purpose;
use crate::wiring::{Key, Value, Wiring};

/// Most bytes of data in a command.
const MOST_BYTES: usize = 4096;

/// A mode of operation (SP 800-38A).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DataMode {
    /// Blocks alone.
    Ecb,
    /// Chained blocks, after an initialization vector of one block.
    Cbc {
        /// The vector.
        iv: Vec<u8>,
    },
}

/// Under what data is encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataKey {
    /// How.
    pub mode: DataMode,
    /// The key.
    pub key: KeySource,
    /// Which key of a transaction, with DUKPT: one of the usages for data.
    pub usage: DukptUsage,
}

impl DataKey {
    pub(crate) fn role(&self, name: &'static str) -> Role {
        self.key.role(name, |purpose| *purpose == Purpose::DataEncryption)
    }

    pub(crate) fn check(&self, key: &KeyFacts<'_>, bytes: usize) -> Result<(), String> {
        self.key.check(key)?;
        let block = self.key.block_bytes(key);
        let usages = [DukptUsage::DataRequest, DukptUsage::DataResponse, DukptUsage::DataBoth];
        if !usages.contains(&self.usage) {
            return Err("the derived key has to be for data".into());
        }
        if bytes == 0 || bytes > MOST_BYTES || !bytes.is_multiple_of(block) {
            return Err(format!("data has whole blocks of {block} bytes, at most {MOST_BYTES} bytes"));
        }
        match &self.mode {
            DataMode::Cbc { iv } if iv.len() != block => {
                Err(format!("an initialization vector has {block} bytes"))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn name(&self) -> String {
        let mode = match self.mode {
            DataMode::Ecb => "ecb",
            DataMode::Cbc { .. } => "cbc",
        };
        let response = match (&self.key, self.usage) {
            (KeySource::Dukpt(_), DukptUsage::DataResponse) => "-response",
            _ => "",
        };
        format!("{mode}-{}{response}", self.key.name())
    }

    pub(crate) fn public(&self, key: &KeyFacts<'_>) -> Vec<u8> {
        let mut public = self.key.public(key, self.usage);
        if let DataMode::Cbc { iv } = &self.mode {
            public.extend(iv);
        }
        public
    }

    /// The data, encrypted or decrypted.
    pub(crate) fn crypt(&self, w: &mut Wiring, key: &Key, direction: Direction, data: &Value) -> Value {
        let key = self.key.derive(w, key, self.usage);
        let block = key.cipher.block_bytes;
        let mut chain = match &self.mode {
            DataMode::Ecb => None,
            DataMode::Cbc { .. } => Some(w.public(block)),
        };
        let mut out = Vec::new();
        for i in 0..data.bytes() / block {
            let mut part = data.part(block * i..block * (i + 1));
            let given = part.clone();
            if let (Direction::Encrypt, Some(chain)) = (direction, &chain) {
                part = w.xor(&part, chain);
            }
            let mut done = w.crypt(&key, direction, &part);
            if let (Direction::Decrypt, Some(chain)) = (direction, &chain) {
                done = w.xor(&done, chain);
            }
            chain = chain.map(|_| if direction == Direction::Encrypt { done.clone() } else { given });
            out.push(done);
        }
        w.concat(&out.iter().collect::<Vec<_>>())
    }

    pub(crate) fn blocks(&self, key: &KeyFacts<'_>, bytes: usize) -> u64 {
        self.key.blocks(key, self.usage) + (bytes / self.key.block_bytes(key)) as u64
    }
}
