//! The socket on which a running node takes orders: one line of JSON for the order, one for the answer.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_protocol::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Answer, Instruction, obey};
use crate::Result;
use crate::core::Core;

const SOCKET: &str = "admin.sock";
/// The longest path of a socket on the supported systems, including the zero byte at the end.
const LONGEST_PATH: usize = 104;
/// The most bytes of an order or answer. An approval with all the signatures that it can have takes most.
const MAX_LINE: u64 = 256 << 10;
/// The time limit for the caller to send its order, and to receive the answer.
const TALK: Duration = Duration::from_secs(5);
/// How long the caller waits for the answer: a backup reads the whole store.
const ANSWER: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The path of the socket of a node's directory.
fn socket_path(dir: &Path) -> Result<PathBuf> {
    let path = dir.join(SOCKET);
    let len = path.as_os_str().len();
    if len >= LONGEST_PATH {
        return Err(Error::misuse(format!(
            "the path {} has {len} bytes; a socket's may have {}. Put the node's directory higher up, or start from within \
             the directory above it and give a relative path",
            path.display(),
            LONGEST_PATH - 1
        )));
    }
    Ok(path)
}

/// Sends an order to the node that runs in a directory; `None` if none does.
pub(super) fn ask(dir: &Path, order: &Instruction) -> Result<Option<Answer>> {
    let path = socket_path(dir)?;
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
        Err(e) => return Err(Error::System(format!("cannot reach the node at {}: {e}", path.display()))),
    };
    let talk = |e: io::Error| Error::System(format!("the running node did not answer: {e}; see its log"));
    stream.set_write_timeout(Some(TALK)).map_err(talk)?;
    write_line(&mut stream, order).map_err(talk)?;
    Ok(Some(read_line(&stream, ANSWER).map_err(talk)?))
}

fn write_line<T: Serialize>(stream: &mut UnixStream, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn read_line<T: DeserializeOwned>(stream: &UnixStream, within: Duration) -> io::Result<T> {
    let mut line = Vec::new();
    let until = Instant::now() + within;
    BufReader::new(Until { stream, until }.take(MAX_LINE)).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::Error::other("the other side ended in the middle of a line"));
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Reads until a deadline, however slowly the bytes arrive.
struct Until<'s> {
    stream: &'s UnixStream,
    until: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

/// The socket of a running node. It is removed when this is dropped.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Listens. The caller holds the store, so an existing socket was left by a node that was killed.
    pub(crate) fn bind(dir: &Path) -> Result<Socket> {
        let path = socket_path(dir)?;
        let broken = |e: io::Error| Error::System(format!("cannot listen at {}: {e}", path.display()));
        match path.symlink_metadata() {
            Ok(left) if left.file_type().is_socket() => fs::remove_file(&path).map_err(broken)?,
            Ok(_) => return Err(broken(io::Error::other("there is a file of this name; move it away"))),
            Err(_) => {}
        }
        let listener = UnixListener::bind(&path).map_err(broken)?;
        // Other users cannot enter the directory either, so it does not matter that this happens a moment
        // later.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(broken)?;
        listener.set_nonblocking(true).map_err(broken)?;
        Ok(Socket { listener, path: path.clone() })
    }

    /// Answers until the node stops.
    pub(crate) fn serve(&self, core: &Arc<Core>, dir: &Path) {
        while !core.threads.is_stopping() {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if let Err(e) = answer(core, dir, stream) {
                        tracing::debug!(error = %e, "an order of the operator was not answered");
                    }
                }
                Err(_) => thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If the socket remains, the next start replaces it.
        let _ = fs::remove_file(&self.path);
    }
}

fn answer(core: &Arc<Core>, dir: &Path, mut stream: UnixStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(TALK))?;
    let answer = match read_line::<Instruction>(&stream, TALK) {
        Ok(order) => obey(core, dir, &order),
        Err(e) => Err(Error::Misuse(format!("this is not an order: {e}"))),
    };
    let answer = answer.unwrap_or_else(|e| Answer::Failed { error: core.members.message(e) });
    write_line(&mut stream, &answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_trickles_is_given_up_in_time() {
        let (mut one, other) = UnixStream::pair().expect("a pair");
        let writer = thread::spawn(move || {
            while one.write_all(b" ").is_ok() {
                thread::sleep(POLL_INTERVAL / 5)
            }
        });
        let heard = read_line::<Instruction>(&other, Duration::from_millis(300));
        assert!(heard.is_err_and(|e| matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)));
        drop(other);
        writer.join().expect("no panic");
    }

    #[test]
    fn a_path_that_is_too_long_is_said() {
        let error = socket_path(Path::new(&"d".repeat(100))).expect_err("too long").to_string();
        assert!(error.contains("111 bytes") && error.contains("103"), "{error}");
    }

    #[test]
    fn a_socket_that_was_left_is_replaced_and_a_file_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let left = UnixListener::bind(dir.path().join(SOCKET)).expect("bound");
        drop(left);
        assert_eq!(ask(dir.path(), &Instruction::Status), Ok(None), "nobody listens");
        let socket = Socket::bind(dir.path()).expect("replaced");
        let mode = fs::metadata(&socket.path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(socket);
        fs::write(dir.path().join(SOCKET), "mine").expect("written");
        assert!(Socket::bind(dir.path()).is_err());
    }
}
