//! A session: whether it may write, and the operations under way in it.

pub(crate) mod encryption;
mod gcm;
pub(crate) mod macs;
pub(crate) mod messages;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use cryptoki_sys::*;
use parking_lot::{Mutex, MutexGuard};

use crate::attributes::Object;
use crate::digests::Digest;
use crate::rv::{Result, Rv};
use crate::token::{Login, Token};
use encryption::Encryption;
use macs::Mac;
use messages::Messages;

/// A session of a program with a token.
pub(crate) struct Session {
    pub(crate) handle: CK_SESSION_HANDLE,
    pub(crate) token: Arc<Token>,
    pub(crate) is_writable: bool,
    /// Held while nodes are asked for this session, and by no other session.
    operations: Mutex<Operations>,
}

/// One operation of each kind at most.
#[derive(Default)]
pub(crate) struct Operations {
    /// How many had logged out of the token when the operations here began.
    pub(crate) logouts: u64,
    pub(crate) find: Option<Vec<CK_OBJECT_HANDLE>>,
    pub(crate) encrypt: Option<Encryption>,
    pub(crate) decrypt: Option<Encryption>,
    pub(crate) message_encrypt: Option<Messages>,
    pub(crate) message_decrypt: Option<Messages>,
    pub(crate) sign: Option<Mac>,
    pub(crate) verify: Option<Mac>,
    pub(crate) digest: Option<Digest>,
}

impl Operations {
    /// Ends what began before a logout. A digest needs no login and goes on.
    fn end_outlived(&mut self, token: &Token) {
        let logouts = token.logouts();
        if self.logouts != logouts {
            *self = Operations { logouts, digest: self.digest.take(), ..Operations::default() };
        }
    }
}

/// The operations of a session during a call.
pub(crate) struct Held<'s> {
    operations: MutexGuard<'s, Operations>,
    /// Dropped after the lock: either a logout finds the lock free, or this finds the logout.
    _after: Ends<'s>,
}

struct Ends<'s>(&'s Session);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end_outlived();
    }
}

impl Deref for Held<'_> {
    type Target = Operations;

    fn deref(&self) -> &Operations {
        &self.operations
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Operations {
        &mut self.operations
    }
}

impl Session {
    pub(crate) fn new(handle: CK_SESSION_HANDLE, token: Arc<Token>, is_writable: bool) -> Session {
        Session { handle, token, is_writable, operations: Mutex::default() }
    }

    /// The operations under way, for one call. Those that a logout has ended are not among them.
    pub(crate) fn operations(&self) -> Held<'_> {
        let mut operations = self.operations.lock();
        operations.end_outlived(&self.token);
        Held { operations, _after: Ends(self) }
    }

    /// Ends what began before a logout, except in the middle of a call, which does so itself at its end.
    pub(crate) fn end_outlived(&self) {
        if let Some(mut operations) = self.operations.try_lock() {
            operations.end_outlived(&self.token);
        }
    }

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
