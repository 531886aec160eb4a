//! What all streams of one joined endpoint share.

use std::sync::Arc;
use std::thread;

use polyclave_protocol::{Error, Party, Result};

use crate::accept::Acceptor;
use crate::attempt::Attempt;
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
        let attempt = &Attempt::new(self.limits.connect);
        let results: Vec<Result<Option<Socket>>> = thread::scope(|scope| {
            let call =
                |dialer| thread::Builder::new().spawn_scoped(scope, move || dial(dialer, stream, attempt));
            let calls: Vec<_> = self.dialers.iter().map(call).collect();
            let callers = Party::all(self.me.index());
            let taken =
                callers.map(|caller| self.switchboard.take(caller, stream, attempt)).inspect(|taken| {
                    if taken.is_err() {
                        attempt.fail();
                    }
                });
            let taken: Vec<_> = taken.chain([Ok(None)]).collect();
            let dialled = calls.into_iter().map(|call| {
                let call =
                    call.map_err(|e| Error::System(format!("cannot start a thread to connect: {e}")))?;
                call.join().map_err(|_| Error::System("a connecting thread failed".into()))?
            });
            taken.into_iter().chain(dialled).collect()
        });
        // Where one failed the others gave up: without an error there is a connection to every peer.
        results.into_iter().collect()
    }
}

fn dial(dialer: &Dialer, stream: StreamId, attempt: &Attempt) -> Result<Option<Socket>> {
    dialer.dial(stream, attempt).inspect_err(|_| attempt.fail())
}
