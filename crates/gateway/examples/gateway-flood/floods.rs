//! The floods over HTTP; those of other doors are in [`doors`](crate::doors).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::{Outcome, doors};

/// The most bytes of a request.
const MAX: usize = 32 << 20;

/// What is flooded.
pub(crate) struct Target {
    /// The name of the flood.
    pub(crate) what: String,
    pub(crate) plain: SocketAddr,
    pub(crate) tls: SocketAddr,
    /// Of a KMS.
    pub(crate) socket: PathBuf,
    /// A token that may encrypt and look at the page.
    pub(crate) token: String,
    pub(crate) stop: AtomicBool,
    /// How many whole answers the flood had.
    pub(crate) answers: AtomicUsize,
}

/// Floods until it is to stop.
type Run = fn(&Target);

/// A flood.
pub(crate) struct Flood {
    pub(crate) what: &'static str,
    pub(crate) run: Run,
    /// Whether it is against the listener with TLS: then that one is measured.
    pub(crate) is_of_tls: bool,
}

const fn flood(what: &'static str, run: Run) -> Flood {
    Flood { what, run, is_of_tls: false }
}

/// All floods.
pub(crate) const FLOODS: [Flood; 18] = [
    flood("none", |_| {}),
    flood("300 sockets that announce a body, without a token", announced_by_strangers),
    flood("300 sockets with half a head", |target| held(target, 300, b"POST /v1/transit/encrypt/be")),
    flood("new connections without a token, as many as it gets", new_connections),
    flood("a token that announces 32 MiB on 32 connections and sends nothing", announced_by_a_token),
    flood("a token that posts 32 MiB of nested JSON on 8 connections", |target| {
        let deep = MAX / 2 - 64;
        posted(target, 8, "encrypt/bench", &format!("{{\"a\": {}{}}}", "[".repeat(deep), "]".repeat(deep)));
    }),
    flood("a token that posts 32 MiB of small values on 8 connections", |target| {
        posted(target, 8, "encrypt/bench", &format!("{{\"a\": [{}0]}}", "0,".repeat(MAX / 2 - 64)));
    }),
    flood("a token that posts 32 MiB of escapes on 8 connections", |target| {
        posted(target, 8, "encrypt/bench", &format!("{{\"plaintext\": \"{}\"}}", "\\/".repeat(MAX / 2 - 64)));
    }),
    flood("a token that has 24 MiB hashed, on 8 connections", |target| {
        posted(target, 8, "hash", &format!("{{\"input\": {:?}}}", STANDARD.encode(vec![7; (24 << 20) - 64])));
    }),
    flood("a token that posts batches of 50,000 items on 8 connections", |target| {
        let items = "{\"plaintext\":\"\"},".repeat(49_999);
        posted(target, 8, "encrypt/bench", &format!("{{\"batch_input\": [{items}{{}}]}}"));
    }),
    flood("a token that has 1 MiB encrypted, on 8 connections", |target| {
        posted(target, 8, "encrypt/bench", &encryption(1 << 20));
    }),
    flood("a token that has 32 bytes encrypted, on 64 connections", |target| {
        posted(target, 64, "encrypt/bench", &encryption(32));
    }),
    flood("a KMS asked for 64 encryptions at once on each of 32 connections", doors::kms),
    Flood { what: "300 half-open handshakes of TLS", run: doors::half_open, is_of_tls: true },
    Flood {
        what: "handshakes of TLS on 4 threads, as many as it gets",
        run: doors::handshakes,
        is_of_tls: true,
    },
    flood("the page's files without a token, on 32 connections", doors::files_of_the_page),
    flood("a token that looks at the page on 32 connections", doors::streams_of_the_page),
    flood("a token that searches keys on 32 connections", doors::searches_of_the_page),
];

impl Target {
    /// What a file says, line by line.
    pub(crate) fn read(file: &Path) -> Outcome<Target> {
        let text = std::fs::read_to_string(file)?;
        let [what, plain, tls, socket, token] = text.lines().collect::<Vec<_>>()[..] else {
            return Err("the file of a flood has five lines".into());
        };
        let (what, socket, token) = (what.to_owned(), socket.into(), token.to_owned());
        let (stop, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
        Ok(Target { what, plain: plain.parse()?, tls: tls.parse()?, socket, token, stop, answers })
    }

    /// Notes answers.
    pub(crate) fn had(&self, answers: usize) {
        self.answers.fetch_add(answers, Relaxed);
    }

    fn head(&self, path: &str, token: &str, bytes: usize) -> String {
        let token = if token.is_empty() { String::new() } else { format!("x-vault-token: {token}\r\n") };
        format!(
            "POST /v1/transit/{path} HTTP/1.1\r\nhost: flood\r\n{token}connection: close\r\ncontent-length: {bytes}\r\n\r\n"
        )
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.load(Relaxed)
    }

    /// Does something again and again on so many threads.
    pub(crate) fn on_threads(&self, threads: usize, once: impl Fn() + Sync) {
        let work = || {
            while self.goes_on() {
                once();
            }
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    }
}

fn encryption(bytes: usize) -> String {
    format!("{{\"plaintext\": {:?}}}", STANDARD.encode(vec![7; bytes]))
}

fn announced_by_strangers(target: &Target) {
    held(target, 300, target.head("encrypt/bench", "", 1000).as_bytes());
}

fn announced_by_a_token(target: &Target) {
    // It takes no right to hash.
    held(target, 32, target.head("hash", &target.token, MAX).as_bytes());
}

fn held(target: &Target, count: usize, sent: &[u8]) {
    held_at(target, target.plain, count, sent);
}

/// Holds so many connections on which the same was sent; those that are closed are opened again.
pub(crate) fn held_at(target: &Target, address: SocketAddr, count: usize, sent: &[u8]) {
    let open = || {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.write_all(sent).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(stream)
    };
    let mut all: Vec<Option<TcpStream>> = (0..count).map(|_| open()).collect();
    while target.goes_on() {
        for one in &mut all {
            let is_closed = |stream: &mut TcpStream| match stream.read(&mut [0; 16 << 10]) {
                Ok(bytes) => bytes == 0,
                Err(e) => e.kind() != std::io::ErrorKind::WouldBlock,
            };
            if one.as_mut().is_none_or(is_closed) {
                *one = open();
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn new_connections(target: &Target) {
    let head = target.head("encrypt/bench", "", 1000);
    target.on_threads(4, || {
        let _ = TcpStream::connect(target.plain).and_then(|mut stream| stream.write_all(head.as_bytes()));
    });
}

/// Posts a body again and again.
fn posted(target: &Target, connections: usize, path: &str, body: &str) {
    let head = target.head(path, &target.token, body.len());
    let once = || {
        let mut stream = TcpStream::connect(target.plain)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        stream.read_to_end(&mut Vec::new())
    };
    target.on_threads(connections, || target.had(once().map_or(0, |bytes| bytes.min(1))));
}
