//! The floods.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The most bytes of a request.
const MOST: usize = 32 << 20;

/// The gateway that is flooded.
pub(crate) struct Target<'t> {
    pub(crate) address: SocketAddr,
    /// A token that may encrypt.
    pub(crate) token: &'t str,
    pub(crate) stop: &'t AtomicBool,
}

/// Floods until the target says stop.
pub(crate) type Flood = fn(&Target<'_>);

/// All floods.
pub(crate) const FLOODS: [(&str, Flood); 7] = [
    ("none", |_| {}),
    ("300 sockets that announce a body, without a token", announced_by_strangers),
    ("300 sockets with half a head", |target| held(target, 300, b"POST /v1/transit/encrypt/be")),
    ("new connections without a token, as many as it gets", new_connections),
    ("a token that announces 32 MiB on 32 connections and sends nothing", announced_by_a_token),
    ("a token that posts 32 MiB of nested JSON on 8 connections", |target| {
        let deep = MOST / 2 - 64;
        posted(target, 8, format!("{{\"a\": {}{}}}", "[".repeat(deep), "]".repeat(deep)));
    }),
    ("a token that posts batches of 50,000 items on 8 connections", |target| {
        let items = "{\"plaintext\":\"\"},".repeat(49_999);
        posted(target, 8, format!("{{\"batch_input\": [{items}{{}}]}}"));
    }),
];

impl Target<'_> {
    fn head(&self, path: &str, token: &str, bytes: usize) -> String {
        let token = if token.is_empty() { String::new() } else { format!("x-vault-token: {token}\r\n") };
        format!(
            "POST {path} HTTP/1.1\r\nhost: flood\r\n{token}connection: close\r\ncontent-length: {bytes}\r\n\r\n"
        )
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Relaxed)
    }
}

fn announced_by_strangers(target: &Target<'_>) {
    held(target, 300, target.head("/v1/transit/encrypt/bench", "", 1000).as_bytes());
}

fn announced_by_a_token(target: &Target<'_>) {
    // To hash takes no right.
    held(target, 32, target.head("/v1/transit/hash", target.token, MOST).as_bytes());
}

/// Holds so many connections, on each of which the same was sent. Opens a connection again when it is closed.
fn held(target: &Target<'_>, count: usize, sent: &[u8]) {
    let open = || {
        let mut stream = TcpStream::connect(target.address).ok()?;
        stream.write_all(sent).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(stream)
    };
    let mut all: Vec<Option<TcpStream>> = (0..count).map(|_| open()).collect();
    while target.goes_on() {
        for one in &mut all {
            let is_closed = |stream: &mut TcpStream| match stream.read(&mut [0; 1024]) {
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

fn new_connections(target: &Target<'_>) {
    let head = target.head("/v1/transit/encrypt/bench", "", 1000);
    let work = || {
        while target.goes_on() {
            let _ =
                TcpStream::connect(target.address).and_then(|mut stream| stream.write_all(head.as_bytes()));
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
}

/// Posts a body again and again.
fn posted(target: &Target<'_>, connections: usize, body: String) {
    let head = target.head("/v1/transit/encrypt/bench", target.token, body.len());
    let once = || {
        let mut stream = TcpStream::connect(target.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        stream.read_to_end(&mut Vec::new())
    };
    let work = || {
        while target.goes_on() {
            let _ = once();
        }
    };
    std::thread::scope(|scope| (0..connections).for_each(|_| drop(scope.spawn(work))));
}
