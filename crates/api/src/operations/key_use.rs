//! How a key is used: the modes, with what a client says about each message.

use serde::{Deserialize, Serialize};

use super::{Hmac, Tokenize};
use crate::{Mode, Wrapping};

/// How a key is used. The steps that follow are in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Use {
    /// Chunks of a sealed file (`Keystream`, then `Seal`, for each chunk).
    Seal {
        /// Digest of the additional data, if the file is bound to some.
        additional: Option<[u8; 32]>,
    },
    /// Chunks of a sealed file (`Open`).
    Open {
        /// From the file's head.
        file: [u8; 32],
        /// Digest of the additional data, if the file is bound to some.
        additional: Option<[u8; 32]>,
    },
    /// One GCM message (`Keystream` and `Absorb` for each piece, then `Tag`).
    GcmEncrypt {
        /// Authenticated with it.
        additional: Vec<u8>,
        /// The client's nonce, 1 to [`MAX_NONCE`](crate::MAX_NONCE) bytes, for a key that takes one; `None`
        /// for a nonce of the nodes.
        nonce: Option<Vec<u8>>,
    },
    /// One GCM message (`Absorb` for each piece, then `Check`, then `Keystream` for each piece).
    GcmDecrypt {
        /// 1 to [`MAX_NONCE`](crate::MAX_NONCE) bytes. A message whose nonce has not 12 bytes has at most
        /// [`MAX_CHAINED`](crate::MAX_CHAINED) bytes.
        nonce: Vec<u8>,
        /// Authenticated with it.
        additional: Vec<u8>,
    },
    /// Counter mode (`Keystream`).
    CtrEncrypt,
    /// Counter mode (`Keystream`).
    CtrDecrypt {
        /// The first counter block; for a cipher that takes a tweak the first tweak and the block that is
        /// encrypted under each.
        counter: Vec<u8>,
    },
    /// Cipher block chaining (`Masked`). The initial block comes with the first answer, and the last block of
    /// a step with the answer to the next one: the nodes reveal what is chained to a block only once that
    /// block is fixed.
    CbcEncrypt {
        /// Bytes of the first step's mask.
        mask: u32,
        /// The client's initial block, for a key that takes one; `None` for one of the nodes.
        initial: Option<Vec<u8>>,
    },
    /// Cipher block chaining (`Blocks`); the client adds the chain.
    CbcDecrypt,
    /// Single blocks (`Masked`).
    EcbEncrypt {
        /// Bytes of the first step's mask.
        mask: u32,
        /// The tweak of the first block, big-endian; every block after it has the next number. Empty if the
        /// cipher takes none.
        tweak: Vec<u8>,
    },
    /// Single blocks (`Blocks`).
    EcbDecrypt {
        /// As for encryption.
        tweak: Vec<u8>,
    },
    /// A message authentication code (`Masked`).
    Cmac {
        /// Bytes of the first step's mask.
        mask: u32,
    },
    /// The key of a file that is to be written (`FileKey`). The nodes draw the file's id, so this never gives
    /// the key of a file that is there already.
    EnvelopeWrite(Envelope),
    /// The key of a file that was written (`FileKey`).
    EnvelopeOpen {
        /// From the file's head.
        envelope: Envelope,
        /// The file's id, from there, too.
        file: [u8; 32],
    },
    /// One message that the nodes take whole (`Masked` for each piece, and for a block of zeros if the
    /// message is empty; the answer to the last is the tag; then `Keystream` for each piece).
    MessageEncrypt {
        /// Without a nonce for one of the nodes.
        message: Message,
        /// Bytes of the tag.
        tag_bytes: u8,
        /// Bytes of the first step's mask.
        mask: u32,
    },
    /// One message that the nodes take whole (`Absorb` for each piece, then `Check`, then `Keystream` for
    /// each piece).
    MessageDecrypt {
        /// With the nonce, in a mode that has one.
        message: Message,
        /// In some modes the keystream depends on it: it is needed before it is compared.
        tag: Vec<u8>,
    },
    /// The rounds of FF1 on values of one length (ten steps `Masked`, one for each round, of which each has
    /// the number that the round takes of every value; the answer is the sum that the round adds to the other
    /// half).
    Tokenize(Tokenize),
    /// One message of XAES-256-GCM, as [`GcmEncrypt`](Use::GcmEncrypt).
    XaesEncrypt {
        /// Authenticated with it.
        additional: Vec<u8>,
        /// The client's nonce, for a key that takes one; `None` for a nonce of the nodes.
        nonce: Option<[u8; 24]>,
    },
    /// One message of XAES-256-GCM, as [`GcmDecrypt`](Use::GcmDecrypt).
    XaesDecrypt {
        /// Of the message.
        nonce: [u8; 24],
        /// Authenticated with it.
        additional: Vec<u8>,
    },
    /// Codes of HMAC of messages of one length (`Masked` for each block, which has that block of every
    /// message, filled up with zeros; of empty messages one of zeros. The answer to the last has the codes,
    /// one after another).
    Hmac(Hmac),
}

/// What nodes know of a message that they take whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// [`Mode::most_whole`] is not `None`.
    pub mode: Mode,
    /// The nonce of a mode that has one.
    pub nonce: Option<Vec<u8>>,
    /// Strings that are authenticated with it, in their order.
    pub additional: Vec<Vec<u8>>,
    /// Its length.
    pub bytes: u32,
}

/// What the key of a file in an envelope depends on, besides the file's id. None of it is secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The client that writes the file, by its name in the rules of the nodes.
    pub owner: String,
    /// What it says about the file; at most [`MAX_HEADER`](crate::MAX_HEADER) bytes.
    #[serde(with = "serde_bytes")]
    pub header: Vec<u8>,
    /// The client's commitment to header and file.
    pub commitment: [u8; 32],
}

/// What is rewrapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rewrapped {
    /// A message of GCM. The new one has a nonce of the nodes and the same additional data.
    Gcm {
        /// 12 bytes.
        nonce: Vec<u8>,
        /// Authenticated with it.
        additional: Vec<u8>,
        /// At most [`MAX_REWRAPPED`](crate::MAX_REWRAPPED) bytes.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
        /// 12 to 16 bytes.
        tag: Vec<u8>,
    },
    /// A sealed file of one chunk.
    Sealed {
        /// From the file's head.
        file: [u8; 32],
        /// Digest of the additional data, if it is bound to some.
        additional: Option<[u8; 32]>,
        /// At most [`MAX_REWRAPPED`](crate::MAX_REWRAPPED) bytes.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
        /// The tag of the chunk.
        tag: [u8; 16],
    },
    /// A wrapped key of 16, 24 or 32 bytes.
    Key {
        /// The wrapped key.
        #[serde(with = "serde_bytes")]
        wrapped: Vec<u8>,
        /// How it was wrapped, and is again.
        how: Wrapping,
    },
}
