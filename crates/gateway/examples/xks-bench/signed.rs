//! A client that signs its requests as KMS does, on one connection of TLS, which stays open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::sign::{authorization, time_of};
use crate::{Outcome, tls};

const SCOPE: (&str, &str) = ("eu-central-1", "kms-xks-proxy");

/// A connection.
pub(crate) struct Connection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    id: String,
    secret: String,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, (id, secret): (&str, &str)) -> Outcome<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let stream = BufReader::new(tls::over(stream)?);
        Ok(Connection { stream, id: id.into(), secret: secret.into() })
    }

    /// Has a data key encrypted, with its value of integrity if KMS asks for one.
    pub(crate) fn encrypt(&mut self, integrity: bool) -> Outcome<Value> {
        let mut body = json!({
            "plaintext": STANDARD.encode([7; 32]),
            "additionalAuthenticatedData": STANDARD.encode([9; 100]),
        });
        if integrity {
            body["ciphertextDataIntegrityValueAlgorithm"] = "SHA_256".into();
        }
        self.post("encrypt", body)
    }

    pub(crate) fn decrypt(&mut self, sealed: &Value) -> Outcome<()> {
        let mut body = sealed.clone();
        body["additionalAuthenticatedData"] = STANDARD.encode([9; 100]).into();
        self.post("decrypt", body).map(drop)
    }

    fn post(&mut self, operation: &str, mut body: Value) -> Outcome<Value> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        body["encryptionAlgorithm"] = "AES_GCM".into();
        body["requestMetadata"] = json!({
            "awsPrincipalArn": "arn:aws:iam::123456789012:user/Alice",
            "kmsKeyArn": "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
            "kmsOperation": "GenerateDataKey",
            "kmsRequestId": format!("request-{}", NEXT.fetch_add(1, Relaxed)),
        });
        let (body, time) = (body.to_string(), time_of(OffsetDateTime::now_utc()));
        let path = format!("/kms/xks/v1/keys/orders/{operation}");
        let headers = vec![("host", "localhost".to_owned()), ("x-amz-date", time.clone())];
        let signed = authorization((&self.id, &self.secret), SCOPE, (&path, &time), headers, body.as_bytes());
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nx-amz-date: {time}\r\n\
             authorization: {signed}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
        stream.flush()?;
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
