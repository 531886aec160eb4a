//! A program that asks Vault's API on one connection, which stays open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::Outcome;

/// A connection.
pub(crate) struct Connection<S: Read + Write> {
    stream: BufReader<S>,
    token: String,
}

impl Connection<TcpStream> {
    pub(crate) fn open(address: SocketAddr, token: &str) -> Outcome<Connection<TcpStream>> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Connection::over(stream, token))
    }
}

impl<S: Read + Write> Connection<S> {
    pub(crate) fn over(stream: S, token: &str) -> Connection<S> {
        Connection { stream: BufReader::new(stream), token: token.into() }
    }

    pub(crate) fn encrypt(&mut self, bytes: usize) -> Outcome<String> {
        let body = json!({ "plaintext": STANDARD.encode(vec![7; bytes]) }).to_string();
        let answer = self.post("/v1/transit/encrypt/bench", &body)?;
        Ok(answer["data"]["ciphertext"].as_str().ok_or("no ciphertext")?.into())
    }

    pub(crate) fn decrypt(&mut self, ciphertext: &str) -> Outcome<()> {
        let body = json!({ "ciphertext": ciphertext }).to_string();
        self.post("/v1/transit/decrypt/bench", &body).map(drop)
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Outcome<Value> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\nx-vault-token: {}\r\ncontent-length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
        let (mut first, mut length) = (String::new(), 0);
        self.stream.read_line(&mut first)?;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            match line.trim().split_once(": ") {
                Some(("content-length", bytes)) => length = bytes.parse()?,
                Some(_) => {}
                None => break,
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        match first.contains(" 200 ") {
            true => Ok(serde_json::from_slice(&answer)?),
            false => Err(format!("{first}: {}", String::from_utf8_lossy(&answer)).into()),
        }
    }
}
