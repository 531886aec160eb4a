//! A key that was sealed to the nodes on a machine without a network, and that anybody may carry to them.
//!
//! The key is the sum (XOR) of one part for each node. All parts but the last are drawn at random, so any
//! incomplete set of parts says nothing of the key. Each is sealed to its node's certificate together with
//! everything else that the file says: the cluster file by its fingerprint, the key with its properties, its
//! check value, until when it may be imported, and the node's number. So nothing of it can be changed, moved
//! to another key or cluster, or put together with parts of another file.
//!
//! It does not authenticate its maker: a client that may import can also make such a file, of a key that it
//! knows.

use polyclave_protocol::{Error, Party, Result};
use serde::{Deserialize, Serialize};

use super::{NewKey, codec};

/// The most bytes of a file. A part of 32 bytes for each of 16 nodes takes 1.5 KiB.
const MAX_BYTES: usize = 16 << 10;
/// The most bytes of a key.
const MAX_KEY: usize = 256;
/// Bytes of the encapsulated key of HPKE with X25519.
const ENCAPSULATED: usize = 32;
/// Bytes of the tag behind a sealed part.
const SEALING_TAG: usize = 16;

/// A key that was sealed to the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedImport {
    /// [`version_of_files`](super::version_of_files): with another one the same bytes could mean another key.
    pub version: u16,
    /// The fingerprint of the cluster file.
    pub cluster: [u8; 32],
    /// The key, as it is to become.
    pub new: NewKey,
    /// Its check value by CMAC.
    pub check: Vec<u8>,
    /// The last second, since 1970, in which it may be imported.
    pub not_after: u64,
    /// Drawn at random: nodes import a file once.
    pub nonce: [u8; 32],
    /// By node.
    pub parts: Vec<SealedPart>,
}

/// One node's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedPart {
    /// The encapsulated key of HPKE.
    pub encapsulated: [u8; ENCAPSULATED],
    /// The part and its tag.
    #[serde(with = "serde_bytes")]
    pub ciphertext: Vec<u8>,
}

impl SealedImport {
    /// Everything besides the parts, and for which node a part is.
    pub fn said_to(&self, node: Party) -> Result<Vec<u8>> {
        let bare = SealedImport { parts: Vec::new(), ..self.clone() };
        let mut said = codec::encode(&bare)?.split_off(4);
        said.push(node.0);
        Ok(said)
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let bytes = codec::encode(self)?.split_off(4);
        check(&bytes, self)?;
        Ok(bytes)
    }

    /// Reads a file. Bytes that would not be written again in the same way are refused.
    pub fn decode(bytes: &[u8]) -> Result<SealedImport> {
        super::check_file(bytes, "this sealed key", "seal it anew")?;
        let wrong = |_| Error::misuse("this is no sealed key, or it was cut or altered");
        let file: SealedImport = codec::decode(bytes, Party(0)).map_err(wrong)?;
        check(bytes, &file)?;
        match codec::encode(&file)?.get(4..) == Some(bytes) {
            true => Ok(file),
            false => Err(Error::misuse("this sealed key has another encoding than it must have")),
        }
    }

    /// Whether it has no more bytes than it may have.
    pub fn check_size(&self) -> Result<()> {
        self.encode().map(drop)
    }
}

fn check(bytes: &[u8], file: &SealedImport) -> Result<()> {
    let fits = |part: &SealedPart| part.ciphertext.len() <= MAX_KEY + SEALING_TAG;
    match bytes.len() <= MAX_BYTES && file.parts.iter().all(fits) {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "a sealed key of {} bytes; at most {MAX_BYTES} are allowed, and {MAX_KEY} for a part",
            bytes.len()
        ))),
    }
}
