//! The module between `C_Initialize` and `C_Finalize`: its tokens and sessions.

use std::collections::HashMap;
use std::sync::Arc;

use cryptoki_sys::*;
use parking_lot::Mutex;

use crate::configuration::Configuration;
use crate::rv::{Result, Rv};
use crate::session::Session;
use crate::token::{Login, Token};

/// All of it.
pub(crate) struct Module {
    pub(crate) tokens: Vec<Arc<Token>>,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    last: CK_SESSION_HANDLE,
    open: HashMap<CK_SESSION_HANDLE, Arc<Session>>,
    /// By slot. Counted along: to count them in `open` for each that is closed would take time quadratic in
    /// their number.
    counts: HashMap<CK_SLOT_ID, Count>,
}

/// The sessions of a token.
#[derive(Clone, Copy, Default)]
struct Count {
    all: usize,
    writable: usize,
}

impl Sessions {
    fn remove(&mut self, handle: CK_SESSION_HANDLE) -> Option<Arc<Session>> {
        let session = self.open.remove(&handle)?;
        let count = self.counts.entry(session.token.slot).or_default();
        count.all -= 1;
        count.writable -= usize::from(session.is_writable);
        Some(session)
    }
}

impl Module {
    pub(crate) fn new(configuration: Configuration) -> Module {
        let tokens = configuration.tokens.into_iter().enumerate();
        let tokens = tokens.map(|(slot, token)| Arc::new(Token::new(slot as CK_SLOT_ID, token)));
        Module { tokens: tokens.collect(), sessions: Mutex::default() }
    }

    pub(crate) fn token(&self, slot: CK_SLOT_ID) -> Result<&Arc<Token>> {
        usize::try_from(slot).ok().and_then(|slot| self.tokens.get(slot)).ok_or(Rv(CKR_SLOT_ID_INVALID))
    }

    pub(crate) fn session(&self, handle: CK_SESSION_HANDLE) -> Result<Arc<Session>> {
        self.sessions.lock().open.get(&handle).cloned().ok_or(Rv(CKR_SESSION_HANDLE_INVALID))
    }

    /// The sessions of a token: all, and those that may write.
    pub(crate) fn count(&self, slot: CK_SLOT_ID) -> (usize, usize) {
        let Count { all, writable } = self.sessions.lock().counts.get(&slot).copied().unwrap_or_default();
        (all, writable)
    }

    pub(crate) fn open(&self, slot: CK_SLOT_ID, flags: CK_FLAGS) -> Result<CK_SESSION_HANDLE> {
        if flags & CKF_SERIAL_SESSION == 0 {
            return Err(Rv(CKR_SESSION_PARALLEL_NOT_SUPPORTED));
        }
        let token = self.token(slot)?.clone();
        let is_writable = flags & CKF_RW_SESSION != 0;
        if !is_writable && matches!(token.login(), Login::SecurityOfficer(_)) {
            return Err(Rv(CKR_SESSION_READ_WRITE_SO_EXISTS));
        }
        let mut sessions = self.sessions.lock();
        sessions.last += 1;
        let handle = sessions.last;
        let count = sessions.counts.entry(slot).or_default();
        count.all += 1;
        count.writable += usize::from(is_writable);
        sessions.open.insert(handle, Arc::new(Session::new(handle, token, is_writable)));
        Ok(handle)
    }

    /// Logs out, in all sessions of a token. Their session objects and operations end.
    pub(crate) fn log_out(&self, token: &Token) -> Result<()> {
        crate::objects::end_session_objects(token, None);
        token.log_out()?;
        let of_token = |session: &&Arc<Session>| session.token.slot == token.slot;
        let sessions: Vec<_> = self.sessions.lock().open.values().filter(of_token).cloned().collect();
        sessions.iter().for_each(|session| session.end_outlived());
        Ok(())
    }

    /// Closes a session. The last one of a token logs out.
    pub(crate) fn close(&self, handle: CK_SESSION_HANDLE) -> Result<()> {
        let (session, is_last) = {
            let mut sessions = self.sessions.lock();
            let session = sessions.remove(handle).ok_or(Rv(CKR_SESSION_HANDLE_INVALID))?;
            let left = sessions.counts.get(&session.token.slot).map_or(0, |count| count.all);
            (session, left == 0)
        };
        crate::objects::end_session_objects(&session.token, Some(handle));
        if is_last {
            let _ = session.token.log_out();
        }
        Ok(())
    }

    /// Closes all sessions of a token.
    pub(crate) fn close_all(&self, slot: CK_SLOT_ID) -> Result<()> {
        let token = self.token(slot)?;
        {
            let mut sessions = self.sessions.lock();
            sessions.open.retain(|_, session| session.token.slot != slot);
            sessions.counts.remove(&slot);
        }
        crate::objects::end_session_objects(token, None);
        let _ = token.log_out();
        Ok(())
    }

    /// Ends everything.
    pub(crate) fn end(&self) {
        for token in &self.tokens {
            let _ = self.close_all(token.slot);
        }
    }
}
