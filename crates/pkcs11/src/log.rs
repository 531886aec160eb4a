//! Text for people: in the log of the system (syslog), or where `POLYCLAVE_PKCS11_LOG` says, which is a file,
//! or another socket of syslog. Not on standard error, which belongs to the program, and may be a file of its
//! data if the program has closed it.
//!
//! No line has a PIN, a key or data of the program. This code waits for no lock: in the child of a fork
//! nobody would release it. It does not wait for a log that takes nothing either.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;

/// The system's own log. On Linux journald, rsyslog and others read there.
const OF_SYSTEM: &str = "/dev/log";
/// What RFC 5424 calls a warning of a user's program: facility 1, severity 4.
const WARNING: u8 = 8 + 4;

static LOG: RwLock<Option<Log>> = RwLock::new(None);

enum Log {
    File(File),
    /// The address is looked up for each line, because the reader of the log may restart.
    Syslog(UnixDatagram, PathBuf),
}

impl Log {
    fn at(path: &Path) -> io::Result<Log> {
        if std::fs::metadata(path).is_ok_and(|there| there.file_type().is_socket()) {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            return Ok(Log::Syslog(socket, path.to_owned()));
        }
        // Others cannot read it.
        OpenOptions::new().append(true).create(true).mode(0o600).open(path).map(Log::File)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let process = std::process::id();
        match self {
            Log::File(file) => {
                let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                (&*file).write_all(format!("{seconds} {process} {text}\n").as_bytes())
            }
            Log::Syslog(socket, to) => {
                let line = format!("<{WARNING}>polyclave-pkcs11[{process}]: {text}");
                socket.send_to(line.as_bytes(), to).map(drop)
            }
        }
    }
}

/// Where the environment wants it, or else the log of the system: `None` if there is none, as in many
/// containers. Nothing is created in its place.
fn place(wanted: Option<OsString>, of_system: &Path) -> Option<PathBuf> {
    wanted.map(PathBuf::from).or_else(|| of_system.exists().then(|| of_system.to_owned()))
}

/// Opens it.
pub(crate) fn open() {
    let wanted = std::env::var_os("POLYCLAVE_PKCS11_LOG");
    let log = place(wanted, Path::new(OF_SYSTEM)).and_then(|path| Log::at(&path).ok());
    if let Some(mut place) = LOG.try_write() {
        *place = log;
    }
}

/// Closes it.
pub(crate) fn close() {
    if let Some(mut place) = LOG.try_write() {
        *place = None;
    }
}

/// Writes a line. Nobody is told if that fails.
pub(crate) fn line(text: &str) {
    let Some(log) = LOG.try_read() else { return };
    if let Some(log) = log.as_ref() {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = log.write(&text);
    }
}

/// The same, of what happens often and ends well. Only a file takes it.
pub(crate) fn detail(text: &str) {
    if LOG.try_read().is_some_and(|log| matches!(*log, Some(Log::File(_)))) {
        line(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_word_it_is_the_log_of_the_system_if_there_is_one() {
        assert_eq!(OF_SYSTEM, "/dev/log");
        let dir = tempfile::tempdir().expect("a directory");
        let (of_system, wanted) = (dir.path().join("log"), PathBuf::from("/tmp/a.log"));
        assert_eq!(place(None, &of_system), None);
        let _reader = UnixDatagram::bind(&of_system).expect("bound");
        assert_eq!(place(None, &of_system), Some(of_system.clone()));
        assert_eq!(place(Some(wanted.clone().into()), &of_system), Some(wanted));
    }
}
