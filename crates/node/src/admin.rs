//! What an operator asks of a node: its state, a backup, to readmit a peer, to have fresh common secrets.
//!
//! The store belongs to the running node alone, so a running node answers on a Unix socket in its directory: one line of JSON
//! for the order, one for the answer. Only the owner of the directory can reach it, and no order or answer holds a secret:
//! secrets are named by their files. If no node runs, [`order`] opens the store itself.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_config::NodeDir;
use polyclave_protocol::Error;
use polyclave_protocol::any::AnyServiceScheme;
use polyclave_protocol::catalog;
use polyclave_protocol::protocol::Scheme;
use polyclave_protocol::service::ServiceScheme;
use polyclave_transport::wire::StockLevel;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::audit::{AuditLog, BEGUN, Event, Gap};
use crate::core::{Core, system};
pub use crate::logbook::renew_audit;
use crate::logbook::{note_end, open_log};
use crate::quarantine::refuse_guessed;
use crate::rotation;
use crate::store::{Quarantine, Secret, Store};

const SOCKET: &str = "admin.sock";
/// The longest path of a socket on the systems that are supported, with the zero byte after it.
const LONGEST_PATH: usize = 104;
/// The longest order or answer.
const MOST_LINE: u64 = 64 << 10;
/// Who asks has to say it, and to listen, in this time.
const TALK: Duration = Duration::from_secs(5);
/// And waits so long for the answer: a backup reads the whole store.
const ANSWER: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// How the node is.
    Status,
    /// A backup, into a file that is not there yet, under the key in another.
    Backup {
        /// Where to; an absolute path.
        file: PathBuf,
        /// Where the key is; an absolute path.
        key_file: PathBuf,
    },
    /// To let a peer in again that was restored from a backup.
    Readmit {
        /// Its name.
        node: String,
    },
    /// To replace the nodes' common secrets by fresh ones, once the operators of all nodes have ordered it.
    Rotate,
    /// The same though so many checks have failed under the MAC key in use that a cheater may know it: the operator takes the risk.
    RotateDespiteFailures,
    /// Where the audit log ends, as the store has it.
    AuditHead,
}

impl Order {
    fn is_rotation(&self) -> bool {
        matches!(self, Order::Rotate | Order::RotateDespiteFailures)
    }
}

/// What the node answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// To `Status`.
    Status(Box<Status>),
    /// It is done.
    Done,
    /// To `AuditHead`.
    AuditHead {
        /// Number and hash; none if nothing was noted.
        head: Option<(u64, [u8; 32])>,
        /// The time in which no line could be written, if it is not over.
        gap: Option<Gap>,
    },
    /// It was not done.
    Failed {
        /// Why.
        error: String,
    },
}

/// How a running node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its number in the cluster, from 1.
    pub party: usize,
    /// Version of the program.
    pub version: String,
    /// The cluster's id, in hexadecimal.
    pub cluster: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Number of nodes.
    pub nodes: usize,
    /// So many nodes together learn nothing.
    pub threshold: usize,
    /// So many nodes serve a request.
    pub needed: usize,
    /// Whom the protocol protects against.
    pub adversary: String,
    /// Whether it can serve requests now.
    pub ready: bool,
    /// Why not.
    pub why_not_ready: Option<String>,
    /// What does not fit between its clock and the nodes' certificates.
    pub clock: Option<String>,
    /// Whether the nodes have agreed on their common secrets.
    pub set_up: bool,
    /// Names of the nodes that it can work with now, itself included.
    pub connected: Vec<String>,
    /// Names of the nodes that it cannot work with now.
    pub missing: Vec<String>,
    /// Number of keys.
    pub keys: u64,
    /// How often it was started.
    pub starts: u64,
    /// Whether what the nodes make afresh after each start of one of them is there, or not needed.
    pub prepared: bool,
    /// The material that the nodes keep in stock; none if the protocol needs none.
    pub stock: Vec<StockLevel>,
    /// Why this node serves nothing, if a check failed.
    pub quarantine: Option<Quarantine>,
    /// Checks that have failed under the MAC key in use, as this node has seen them.
    pub checks_failed: u32,
    /// Checks under it that a peer left without an answer.
    pub checks_unanswered: u32,
    /// Names of the nodes whose operators have ordered fresh common secrets.
    pub rotating: Vec<String>,
    /// Whether wrong shares are corrected while all nodes are there.
    pub corrects: bool,
    /// Names of nodes whose shares were wrong in some request since this node started, as this one saw it.
    pub outvoted: Vec<String>,
    /// Names of nodes that fell silent in the middle of some request since then.
    pub silent: Vec<String>,
    /// Names of keys of which a record here cannot be read.
    pub damaged: Vec<String>,
    /// How many keys fewer it has than other nodes.
    pub lacking: u64,
    /// Why the audit log cannot be written, if that is so.
    pub audit_failure: Option<String>,
    /// Whether requests are refused because of it.
    pub audit_refuses: bool,
}

/// Gives an order to the node of a directory: to the one that runs, or, where that makes sense, by opening its store. `None`
/// if no node runs and the order needs one.
pub fn order(dir: &NodeDir, order: &Order) -> Result<Option<Answer>> {
    if let Some(answer) = ask(dir.path(), order)? {
        return match answer {
            Answer::Failed { error } => Err(Error::System(error)),
            answer => Ok(Some(answer)),
        };
    }
    if *order == Order::Status {
        return Ok(None);
    }
    if order.is_rotation() {
        let cluster = dir.cluster().map_err(system)?;
        let cluster = cluster.ok_or_else(|| Error::misuse("this node belongs to no cluster yet"))?;
        refuse_without_renewal(&catalog::service(cluster.protocol(), cluster.nodes(), cluster.threshold())?)?;
    }
    let store =
        Store::open(&dir.store_path(), &Secret::from(dir.secret().map_err(system)?)).map_err(system)?;
    let party = |name: &str| {
        let cluster = dir.cluster().map_err(system)?;
        cluster.and_then(|cluster| cluster.party_named(name)).ok_or_else(|| unknown(name))
    };
    let Some(operation) = operation(order).filter(|_| dir.settings().audit.enabled) else {
        return carry_out(&store, dir, order, party).map(Some);
    };
    // Before anything is done, so that nothing is that could not be logged.
    let log = open_log(dir, &store)?;
    let done = carry_out(&store, dir, order, party)?;
    let detail = described(order);
    log.append(&Event { detail: &detail, ..Event::of_node(operation, "done") }).map_err(system)?;
    note_end(&log, &store)?;
    Ok(Some(done))
}

/// What an order is called in the audit log; none for what changes nothing.
fn operation(order: &Order) -> Option<&'static str> {
    match order {
        Order::Status | Order::AuditHead => None,
        Order::Backup { .. } => Some("backup"),
        Order::Readmit { .. } => Some("readmit"),
        Order::Rotate => Some("rotate"),
        Order::RotateDespiteFailures => Some("rotate-despite-failures"),
    }
}

/// What else there is to say of it.
fn described(order: &Order) -> String {
    if let Order::Readmit { node } = order { format!("node={node}") } else { String::new() }
}

fn unknown(name: &str) -> Error {
    Error::misuse(format!("the cluster has no node '{name}'"))
}

/// The orders that need only the store.
fn carry_out(
    store: &Store,
    dir: &NodeDir,
    order: &Order,
    party: impl Fn(&str) -> Result<polyclave_protocol::Party>,
) -> Result<Answer> {
    match order {
        Order::Status => return Err(Error::System("this node has no status".into())),
        Order::Backup { file, key_file } => {
            let key = Secret::load_file(key_file).map_err(system)?;
            store.backup(dir, file, &key).map_err(system)?;
        }
        Order::Readmit { node } => store.readmit(party(node)?).map_err(system)?,
        Order::Rotate => {
            refuse_guessed(store)?;
            store.want_rotation().map_err(system)?;
        }
        Order::RotateDespiteFailures => {
            store.accept_guesses().and_then(|()| store.want_rotation()).map_err(system)?;
        }
        Order::AuditHead => {
            let (head, gap) = (store.audit_head().map_err(system)?, store.audit_gap().map_err(system)?);
            return Ok(Answer::AuditHead { head, gap });
        }
    }
    Ok(Answer::Done)
}

/// An error if a scheme has nothing that a rotation replaces.
fn refuse_without_renewal(scheme: &AnyServiceScheme) -> Result<()> {
    if scheme.renews() {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "under {} there is no MAC key to replace; this is for protocols that have one",
        scheme.name()
    )))
}

/// Where the socket of a node's directory is.
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

/// Asks the node that runs in a directory; `None` if none does.
fn ask(dir: &Path, order: &Order) -> Result<Option<Answer>> {
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
    BufReader::new(Until { stream, until }.take(MOST_LINE)).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::Error::other("the other side ended in the middle of a line"));
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Reads until a moment, however the other side trickles.
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

/// The socket of a running node; it is gone when this is dropped.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Listens. Whoever calls this holds the store, so a socket that is there was left by a node that was killed.
    pub(crate) fn bind(dir: &Path) -> Result<Socket> {
        let path = socket_path(dir)?;
        let broken = |e: io::Error| Error::System(format!("cannot listen at {}: {e}", path.display()));
        match path.symlink_metadata() {
            Ok(left) if left.file_type().is_socket() => fs::remove_file(&path).map_err(broken)?,
            Ok(_) => return Err(broken(io::Error::other("there is a file of this name; move it away"))),
            Err(_) => {}
        }
        let listener = UnixListener::bind(&path).map_err(broken)?;
        // The directory is closed to others, too; so it does not matter that this comes a moment later.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(broken)?;
        listener.set_nonblocking(true).map_err(broken)?;
        Ok(Socket { listener, path: path.clone() })
    }

    /// Answers until the node stops.
    pub(crate) fn serve(&self, core: &Arc<Core>, dir: &Path) {
        while !core.is_stopping() {
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
        // If it stays, the next start replaces it.
        let _ = fs::remove_file(&self.path);
    }
}

fn answer(core: &Arc<Core>, dir: &Path, mut stream: UnixStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(TALK))?;
    let answer = match read_line::<Order>(&stream, TALK) {
        Ok(order) => obey(core, dir, &order),
        Err(e) => Err(Error::Misuse(format!("this is no order: {e}"))),
    };
    let answer = answer.unwrap_or_else(|e| Answer::Failed { error: core.told(e) });
    write_line(&mut stream, &answer)
}

fn obey(core: &Arc<Core>, dir: &Path, order: &Order) -> Result<Answer> {
    let logged = match order {
        Order::Status => return Ok(Answer::Status(Box::new(core.state()))),
        Order::AuditHead => {
            core.settle_audit(&mut None);
            None
        }
        order => operation(order),
    };
    if order.is_rotation() {
        refuse_without_renewal(&core.scheme)?;
    }
    let detail = described(order);
    let event = Event { detail: &detail, ..Event::of_node(logged.unwrap_or_default(), BEGUN) };
    // A backup may be what is wanted because the disk is full.
    if matches!(order, Order::Readmit { .. }) || order.is_rotation() {
        core.admit(&event).map_err(|refusal| Error::System(refusal.message))?;
    }
    let party = |name: &str| core.cluster.party_named(name).ok_or_else(|| unknown(name));
    let done = NodeDir::open(dir).map_err(system).and_then(|dir| carry_out(&core.store, &dir, order, party));
    if order.is_rotation() && done.is_ok() {
        rotation::load(core)?;
    }
    if let Some(operation) = logged {
        let outcome = if done.is_ok() { "done" } else { "failed" };
        tracing::info!(operation, outcome, "an order of the operator");
        core.note(&Event { outcome, ..event });
    }
    done
}

impl Core {
    /// How this node is, for its operator.
    fn state(&self) -> Status {
        let (status, guesses) = (self.status(), self.guesses());
        let names = |there: bool| {
            let cards = self.cluster.cards().iter().zip(polyclave_protocol::Party::all(self.nodes));
            let chosen = cards.filter(|(_, party)| status.connected.contains(*party) == there);
            chosen.map(|(card, _)| card.name.clone()).collect()
        };
        Status {
            name: self.cluster.cards()[self.me.index()].name.clone(),
            party: self.me.index() + 1,
            version: status.version.clone(),
            cluster: hex::encode(status.cluster),
            protocol: self.cluster.protocol().into(),
            nodes: self.nodes,
            threshold: self.cluster.threshold(),
            needed: self.scheme.quorum(),
            adversary: self.scheme.promise(),
            ready: self.is_ready(),
            why_not_ready: self.why_not_ready(),
            clock: self.dates.misfit(std::time::SystemTime::now()),
            set_up: status.set_up,
            connected: names(true),
            missing: names(false),
            keys: status.keys,
            starts: self.incarnation.number,
            prepared: status.prepared,
            stock: status.stock,
            quarantine: self.quarantined(),
            checks_failed: guesses.failed,
            checks_unanswered: guesses.unanswered,
            rotating: self.names_of(status.rotating),
            corrects: self.scheme.guarantees_output(),
            outvoted: self.names_of(status.outvoted),
            silent: self.names_of(status.silent),
            damaged: self.store.damaged(),
            lacking: status.lacking,
            audit_refuses: self.stopped_by_audit().is_some(),
            audit_failure: self.audit.as_ref().and_then(AuditLog::failure).map(|(why, _)| why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_lines_of_json_and_others_are_refused() {
        let order: Order = serde_json::from_str(r#"{"order":"readmit","node":"a"}"#).expect("an order");
        assert_eq!(order, Order::Readmit { node: "a".into() });
        let order: Order = serde_json::from_str(r#"{"order":"rotate"}"#).expect("an order");
        assert_eq!(order, Order::Rotate);
        for wrong in
            [r#"{"order":"readmit"}"#, r#"{"order":"stop"}"#, r#"{"order":"readmit","node":"a","x":1}"#]
        {
            assert!(serde_json::from_str::<Order>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_order_that_trickles_is_given_up_in_time() {
        let (mut one, other) = UnixStream::pair().expect("a pair");
        let writer = thread::spawn(move || {
            while one.write_all(b" ").is_ok() {
                thread::sleep(POLL_INTERVAL / 5)
            }
        });
        let heard = read_line::<Order>(&other, Duration::from_millis(300));
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
        assert_eq!(ask(dir.path(), &Order::Status), Ok(None), "nobody listens");
        let socket = Socket::bind(dir.path()).expect("replaced");
        let mode = fs::metadata(&socket.path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(socket);
        fs::write(dir.path().join(SOCKET), "mine").expect("written");
        assert!(Socket::bind(dir.path()).is_err());
    }
}
