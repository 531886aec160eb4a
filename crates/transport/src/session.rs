//! What all streams of one joined endpoint share.

use std::sync::Arc;
use std::thread;

use polyclave_protocol::{Error, Party, Result};

use crate::accept::Acceptor;
use crate::dial::Dialer;
use crate::limits::Limits;
use crate::meter::WireMeter;
use crate::socket::Socket;
use crate::stream::StreamId;
use crate::switchboard::Switchboard;

/// A party's means to open streams. Lives as long as any stream; with it goes the listener.
pub(crate) struct Session {
    pub(crate) me: Party,
    /// How many, this one included.
    pub(crate) parties: usize,
    pub(crate) limits: Limits,
    /// For the peers that this party calls: those with higher numbers.
    pub(crate) dialers: Vec<Dialer>,
    pub(crate) switchboard: Arc<Switchboard>,
    pub(crate) meter: Arc<WireMeter>,
    /// Held for its `Drop`.
    #[expect(dead_code, reason = "ends the accepting thread when the session ends")]
    pub(crate) acceptor: Acceptor,
}

impl Session {
    /// Connections to all peers for one stream, by party. All at once, since each may take the whole time limit.
    pub(crate) fn open(&self, stream: StreamId) -> Result<Vec<Option<Socket>>> {
        let limit = self.limits.connect;
        thread::scope(|scope| {
            let mut calls = Vec::new();
            for dialer in &self.dialers {
                let call = thread::Builder::new().name(format!("dial {}", dialer.peer));
                let call = call.spawn_scoped(scope, move || dialer.dial(stream, limit));
                calls
                    .push(call.map_err(|e| Error::System(format!("cannot start a thread to connect: {e}")))?);
            }
            let mut sockets = Vec::with_capacity(self.parties);
            for caller in Party::all(self.me.index()) {
                sockets.push(Some(self.switchboard.take(caller, stream, limit)?));
            }
            sockets.push(None);
            for call in calls {
                let ended = call.join().map_err(|_| Error::System("a connecting thread failed".into()))?;
                sockets.push(Some(ended?));
            }
            Ok(sockets)
        })
    }
}
