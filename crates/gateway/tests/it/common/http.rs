//! HTTP as a small program speaks it: one request on one connection.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::Value;

use super::PATIENCE;

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub text: String,
    /// Its lines before the text.
    pub head: String,
    /// Null if it is no JSON.
    pub json: Value,
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The errors that it tells.
    pub fn errors(&self) -> String {
        let errors = self.json["errors"].as_array().unwrap_or_else(|| panic!("no errors: {self:?}"));
        errors.iter().map(|error| error.as_str().expect("text")).collect::<Vec<_>>().join("; ")
    }

    pub fn data(&self, name: &str) -> &str {
        self.json["data"][name].as_str().unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }
}

/// What is asked.
pub struct Ask {
    line: String,
    host: String,
    headers: String,
    body: Vec<u8>,
}

impl Ask {
    pub fn new(method: &str, path: &str) -> Ask {
        let line = format!("{method} {path} HTTP/1.1");
        Ask { line, host: "gateway".into(), headers: String::new(), body: Vec::new() }
    }

    /// By which name the other side is asked, for those that care.
    pub fn host(self, host: &str) -> Ask {
        Ask { host: host.into(), ..self }
    }

    pub fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers += &format!("{name}: {value}\r\n");
        self
    }

    pub fn token(self, token: &str) -> Ask {
        self.header("X-Vault-Token", token)
    }

    pub fn body(mut self, body: &[u8]) -> Ask {
        self.body = body.to_vec();
        self
    }

    /// The bytes of the head.
    pub fn head(&self) -> Vec<u8> {
        let len = self.body.len();
        let Ask { line, host, headers, .. } = self;
        format!("{line}\r\nhost: {host}\r\nconnection: close\r\n{headers}content-length: {len}\r\n\r\n")
            .into()
    }

    /// Asks.
    pub fn of(&self, address: SocketAddr) -> Answer {
        let stream = TcpStream::connect(address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.set_nodelay(true).expect("set");
        self.on(stream)
    }

    /// Asks from another address of the loopback interface: a caller beside those at 127.0.0.1.
    pub fn from(&self, own: Ipv4Addr, address: SocketAddr) -> Answer {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&socket, &SocketAddrV4::new(own, 0)).expect("bound");
        connect(&socket, &address).expect("connected");
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        self.on(stream)
    }

    /// Asks on a connection.
    pub fn on(&self, mut stream: impl Read + Write) -> Answer {
        stream.write_all(&self.head()).expect("asked");
        // The answer may come before all of it was sent.
        let _ = stream.write_all(&self.body).and_then(|()| stream.flush());
        answer(stream)
    }
}

/// Reads an answer to the end of the connection.
pub fn answer(mut stream: impl Read) -> Answer {
    let mut bytes = Vec::new();
    // TLS may end without saying so.
    let _ = stream.read_to_end(&mut bytes);
    let whole = String::from_utf8(bytes).expect("text");
    let (head, text) = whole.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {whole:?}"));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let json = serde_json::from_str(text).unwrap_or_default();
    Answer { status, text: text.into(), head: head.into(), json }
}
