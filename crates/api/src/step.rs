//! What a client sends after its request.

use serde::{Deserialize, Serialize};

/// What a client sends after its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Asks for the next bytes of keystream, at most [`CHUNK`](super::CHUNK). All parts of a message except
    /// the last are whole blocks.
    Keystream {
        /// How many.
        bytes: u32,
    },
    /// The ciphertext of the oldest chunk whose keystream was given, for its tag. In GCM the rest of the
    /// ciphertext of the message.
    Seal {
        /// As long as that keystream.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
        /// Whether the file ends here; a message of GCM does.
        last: bool,
    },
    /// The next chunk: its keystream, if the tag fits. In GCM a whole message.
    Open {
        /// The ciphertext of the chunk; of a message of GCM at most [`OPENED`](super::OPENED) bytes.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
        /// The tag of the chunk.
        tag: [u8; 16],
        /// Whether the file ends here.
        last: bool,
    },
    /// The next piece of a message's ciphertext. All but the last are whole blocks.
    Absorb {
        /// At most [`CHUNK`](super::CHUNK) bytes; where blocks are chained at most
        /// [`CHAINED`](super::CHAINED).
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
    },
    /// The tag of the message.
    Tag,
    /// Compare the tag of the message.
    Check {
        /// As the client has it: its first bytes, if it was cut. For GCM 12 to 16.
        #[serde(with = "serde_bytes")]
        tag: Vec<u8>,
    },
    /// A client's secret under the mask it was given.
    Masked {
        /// Whole blocks, as long as the mask.
        #[serde(with = "serde_bytes")]
        data: Vec<u8>,
        /// Bytes of the next mask; 0 if there will be no more.
        next: u32,
        /// For CMAC: how the message ends.
        end: End,
    },
    /// A whole short message of GCM, or a whole short file to seal, under a mask that the client deals
    /// ([`Request::dealt`](super::Request::dealt)): for its ciphertext and tag.
    Message {
        /// At most [`MESSAGE`](super::MESSAGE) bytes.
        #[serde(with = "serde_bytes")]
        masked: Vec<u8>,
    },
    /// Blocks to decrypt.
    Blocks {
        /// Whole blocks, at most [`CHUNK`](super::CHUNK) bytes.
        #[serde(with = "serde_bytes")]
        ciphertext: Vec<u8>,
    },
    /// The client's coefficient for the check of its mask.
    Chi {
        /// Drawn at random.
        chi: [u8; 16],
    },
    /// The client has what it wanted.
    Finish,
    /// Asks for the wrapped key.
    Wrapped,
    /// Asks for the key of a file ([`FILE_KEY`](super::FILE_KEY) bytes).
    FileKey,
    /// Asks for the derived bytes.
    Derived,
    /// Asks for what was rewrapped: a wrapped key; of a message what has to be added to its ciphertext.
    Rewrapped,
    /// Asks for the answers of the payment commands that hold.
    Answers,
}

/// How a message for CMAC goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// More is to come.
    No,
    /// Here, with a whole block.
    Whole,
    /// Here, with a block that the client has filled up.
    Filled,
}
