//! The values to which every hash between two parties is bound: the session, the sender and the receiver.

use crate::{Error, Party};

/// One direction between two parties of a session.
pub struct Binding {
    key: [u8; 32],
    peer: Party,
}

impl Binding {
    /// The binding of transfers from `sender` to `receiver` under a label of the session; the other end is
    /// `peer`.
    pub fn new(label: &[u8], sender: Party, receiver: Party, peer: Party) -> Binding {
        let mut hasher =
            blake3::Hasher::new_derive_key("polyclave 2026 oblivious transfer between two parties");
        hasher.update(&(label.len() as u64).to_le_bytes()).update(label).update(&[sender.0, receiver.0]);
        Binding { key: *hasher.finalize().as_bytes(), peer }
    }

    /// A hash for one purpose; no purpose is the beginning of another.
    pub fn hasher(&self, purpose: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(purpose.as_bytes()).update(&[0]);
        hasher
    }

    /// The other end did what the protocol does not allow.
    pub(super) fn fault(&self, detail: &str) -> Error {
        Error::Peer { peer: self.peer, detail: detail.into() }
    }
}
