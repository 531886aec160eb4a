//! Sends every line also to a Unix datagram socket in syslog format, `/dev/log`. So the line can be on
//! another machine a moment later, where an attacker who controls this machine cannot change it.
//!
//! Nothing ever waits for the socket. A line that it does not accept at once is lost there, counted in
//! `polyclave_audit_unsent_total`, and is in the files. The receiver sees from the numbers of the lines which
//! are missing.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// Facility 13 (log audit), severity 6 (informational), by RFC 5424.
const PRIORITY: &str = "<110>polyclave-audit: ";

/// The socket that lines are sent to.
#[derive(Debug)]
pub(super) struct Syslog {
    path: PathBuf,
    socket: Option<UnixDatagram>,
    /// Whether the last line was not accepted; reported once.
    failing: bool,
}

impl Syslog {
    pub(super) fn new(path: PathBuf) -> Syslog {
        Syslog { path, socket: None, failing: false }
    }

    /// Sends a line, or loses it.
    pub(super) fn send(&mut self, line: &str) {
        let message = format!("{PRIORITY}{}", line.trim_end());
        match self.try_send(message.as_bytes()) {
            Ok(()) => self.failing = false,
            Err(e) => {
                // The receiver may have started again.
                self.socket = None;
                metrics::counter!("polyclave_audit_unsent_total").increment(1);
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(path = %self.path.display(), error = %e, "syslog refuses lines of the audit log; its files have them");
                }
            }
        }
    }

    fn try_send(&mut self, message: &[u8]) -> io::Result<()> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                let socket = UnixDatagram::unbound()?;
                socket.set_nonblocking(true)?;
                socket.connect(&self.path)?;
                socket
            }
        };
        self.socket.insert(socket).send(message).map(drop)
    }
}
