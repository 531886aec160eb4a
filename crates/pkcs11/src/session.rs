//! A session: whether it may write, and the operations under way in it.

use std::sync::Arc;

use cryptoki_sys::*;
use parking_lot::Mutex;

use crate::attributes::Object;
use crate::digests::Digest;
use crate::encryption::Encryption;
use crate::macs::Mac;
use crate::messages::Messages;
use crate::rv::{Result, Rv};
use crate::token::{Login, Token};

/// A session of a program with a token.
pub(crate) struct Session {
    pub(crate) handle: CK_SESSION_HANDLE,
    pub(crate) token: Arc<Token>,
    pub(crate) is_writable: bool,
    /// Held while nodes are asked for this session, and by no other session.
    pub(crate) operations: Mutex<Operations>,
}

/// One operation of each kind at most.
#[derive(Default)]
pub(crate) struct Operations {
    pub(crate) find: Option<Vec<CK_OBJECT_HANDLE>>,
    pub(crate) encrypt: Option<Encryption>,
    pub(crate) decrypt: Option<Encryption>,
    pub(crate) message_encrypt: Option<Messages>,
    pub(crate) message_decrypt: Option<Messages>,
    pub(crate) sign: Option<Mac>,
    pub(crate) verify: Option<Mac>,
    pub(crate) digest: Option<Digest>,
}

impl Session {
    /// As the standard numbers the states.
    pub(crate) fn state(&self) -> CK_STATE {
        match (self.token.login(), self.is_writable) {
            (Login::Nobody, false) => CKS_RO_PUBLIC_SESSION,
            (Login::Nobody, true) => CKS_RW_PUBLIC_SESSION,
            (Login::User(_), false) => CKS_RO_USER_FUNCTIONS,
            (Login::User(_), true) => CKS_RW_USER_FUNCTIONS,
            (Login::SecurityOfficer(_), _) => CKS_RW_SO_FUNCTIONS,
        }
    }

    /// An object that this session sees.
    pub(crate) fn object(&self, handle: CK_OBJECT_HANDLE) -> Result<Arc<Object>> {
        self.token.client().map_err(|_| Rv(CKR_OBJECT_HANDLE_INVALID))?;
        self.token.object(handle).ok_or(Rv(CKR_OBJECT_HANDLE_INVALID))
    }

    /// A key for an operation.
    pub(crate) fn key(&self, handle: CK_OBJECT_HANDLE) -> Result<Arc<Object>> {
        self.token.client()?;
        self.token.object(handle).ok_or(Rv(CKR_KEY_HANDLE_INVALID))
    }

    /// Refuses to make or change objects of the token in a session that only reads.
    pub(crate) fn refuse_read_only(&self) -> Result<()> {
        if self.is_writable { Ok(()) } else { Err(Rv(CKR_SESSION_READ_ONLY)) }
    }
}

/// What a function gives that writes into a program's buffer.
pub(crate) enum Output {
    /// Bytes that fit.
    Bytes(zeroize::Zeroizing<Vec<u8>>),
    /// The program asked for the length alone.
    Length(usize),
    /// The buffer is smaller than this; nothing has happened.
    TooSmall(usize),
}

/// Decides about a length that is known beforehand: `None` if the bytes are to be made now.
pub(crate) fn known_length(bytes: usize, room: Option<usize>) -> Option<Output> {
    match room {
        None => Some(Output::Length(bytes)),
        Some(room) if room < bytes => Some(Output::TooSmall(bytes)),
        Some(_) => None,
    }
}
