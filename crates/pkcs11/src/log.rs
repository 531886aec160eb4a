//! Text for people, in the file that `POLYCLAVE_PKCS11_LOG` names. There is none without it: standard error belongs to the program.
//!
//! No line has a PIN, a key or data of the program. Nobody waits for a lock here: in the child of a fork nobody would open it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;

static FILE: RwLock<Option<File>> = RwLock::new(None);

/// Opens the file that the environment names. Others cannot read it.
pub(crate) fn open() {
    let Some(path) = std::env::var_os("POLYCLAVE_PKCS11_LOG") else { return };
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).ok();
    if let Some(mut place) = FILE.try_write() {
        *place = file;
    }
}

/// Closes it.
pub(crate) fn close() {
    if let Some(mut place) = FILE.try_write() {
        *place = None;
    }
}

/// Writes a line. Nobody is told if that fails.
pub(crate) fn line(text: &str) {
    let Some(file) = FILE.try_read() else { return };
    if let Some(mut file) = file.as_ref() {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = file.write_all(format!("{seconds} {} {text}\n", std::process::id()).as_bytes());
    }
}
