//! Every line also goes to a Unix datagram socket as syslog has it, `/dev/log`: so it can be on another machine a moment later, where
//! who controls this one cannot change it.
//!
//! Nobody ever waits for it: what the socket does not take at once is lost there, counted in `polyclave_audit_unsent_total`,
//! and is in the files. Who receives the lines sees from their numbers which are missing.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// Facility 13 (log audit), severity 6 (informational), by RFC 5424.
const PRIORITY: &str = "<110>polyclave-audit: ";

/// Where lines go.
#[derive(Debug)]
pub(super) struct Syslog {
    path: PathBuf,
    socket: Option<UnixDatagram>,
    /// The last line was not taken; said once.
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
                // The receiver may have begun anew.
                self.socket = None;
                metrics::counter!("polyclave_audit_unsent_total").increment(1);
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(path = %self.path.display(), error = %e, "lines of the audit log are not taken; they are in its files");
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
