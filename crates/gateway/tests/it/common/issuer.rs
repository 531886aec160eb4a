//! An issuer of identity tokens: it signs them, and serves its keys over HTTPS.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use getrandom::SysRng;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{self as of_ring, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};
use rsa::pkcs8::EncodePrivateKey;
use rsa::rand_core::UnwrapErr;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::PATIENCE;

/// Seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64
}

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A private key, with the name that its public key has.
pub struct Signer {
    pub kid: String,
    pair: Pair,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    /// RSA with a modulus of so many bits.
    pub fn rsa(kid: &str, bits: usize) -> Signer {
        let made = rsa::PrivateKey::new(&mut UnwrapErr(SysRng), bits).expect("a key");
        let der = made.to_pkcs8_der().expect("encoded");
        let pair = RsaKeyPair::from_pkcs8(der.as_bytes()).expect("a key");
        Signer { kid: kid.into(), pair: Pair::Rsa(Box::new(pair)) }
    }

    pub fn p256(kid: &str) -> Signer {
        Signer { kid: kid.into(), pair: Pair::P256(ecdsa(&of_ring::ECDSA_P256_SHA256_FIXED_SIGNING)) }
    }

    pub fn p384(kid: &str) -> Signer {
        Signer { kid: kid.into(), pair: Pair::P384(ecdsa(&of_ring::ECDSA_P384_SHA384_FIXED_SIGNING)) }
    }

    pub fn ed25519(kid: &str) -> Signer {
        let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).expect("a key");
        Signer { kid: kid.into(), pair: Pair::Ed25519(pair) }
    }

    /// The public key, as a JWKS has it.
    pub fn jwk(&self) -> Value {
        let point = |curve: &str, pair: &EcdsaKeyPair| {
            let xy = &pair.public_key().as_ref()[1..];
            let (x, y) = xy.split_at(xy.len() / 2);
            json!({ "kid": self.kid, "use": "sig", "kty": "EC", "crv": curve, "x": encode(x), "y": encode(y) })
        };
        match &self.pair {
            Pair::Rsa(pair) => {
                let PublicKeyComponents::<Vec<u8>> { n, e } = pair.public().into();
                json!({ "kid": self.kid, "use": "sig", "kty": "RSA", "n": encode(n), "e": encode(e) })
            }
            Pair::P256(pair) => point("P-256", pair),
            Pair::P384(pair) => point("P-384", pair),
            Pair::Ed25519(pair) => {
                let x = encode(pair.public_key().as_ref());
                json!({ "kid": self.kid, "use": "sig", "kty": "OKP", "crv": "Ed25519", "x": x })
            }
        }
    }

    /// The signature of some bytes with an algorithm that fits the key.
    pub fn sign(&self, algorithm: &str, bytes: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let padding: &dyn of_ring::RsaEncoding = match algorithm {
                    "RS256" => &of_ring::RSA_PKCS1_SHA256,
                    "RS384" => &of_ring::RSA_PKCS1_SHA384,
                    "RS512" => &of_ring::RSA_PKCS1_SHA512,
                    "PS256" => &of_ring::RSA_PSS_SHA256,
                    "PS384" => &of_ring::RSA_PSS_SHA384,
                    "PS512" => &of_ring::RSA_PSS_SHA512,
                    other => panic!("{other}"),
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, bytes, &mut signature).expect("signed");
                signature
            }
            Pair::P256(pair) | Pair::P384(pair) => pair.sign(&random, bytes).expect("signed").as_ref().into(),
            Pair::Ed25519(pair) => pair.sign(bytes).as_ref().into(),
        }
    }

    /// An algorithm that fits the key.
    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
            Pair::P384(_) => "ES384",
            Pair::Ed25519(_) => "EdDSA",
        }
    }

    /// A token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({ "alg": self.algorithm(), "kid": self.kid, "typ": "JWT" }), claims)
    }

    /// A token with this header, which names the algorithm.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let algorithm = header["alg"].as_str().expect("an algorithm");
        self.token_of(algorithm, header.to_string(), claims.to_string())
    }

    /// A token of these two texts.
    pub fn token_of(&self, algorithm: &str, header: impl AsRef<[u8]>, claims: impl AsRef<[u8]>) -> String {
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = encode(self.sign(algorithm, signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

fn ecdsa(algorithm: &'static of_ring::EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
    EcdsaKeyPair::from_pkcs8(algorithm, der.as_ref(), &random).expect("a key")
}

pub fn jwks(signers: &[&Signer]) -> String {
    json!({ "keys": signers.iter().map(|signer| signer.jwk()).collect::<Vec<_>>() }).to_string()
}

/// What a server does when it is asked.
#[derive(Clone, Default)]
pub struct Behaviour {
    /// By path: the bytes of an answer.
    pub answers: HashMap<String, Vec<u8>>,
    /// For how long it says nothing.
    pub silence: Duration,
}

impl Behaviour {
    /// Answers a path with a document.
    pub fn with(mut self, path: &str, document: &str) -> Behaviour {
        self.answers.insert(path.into(), answered("200 OK", document));
        self
    }
}

/// The bytes of an answer.
pub fn answered(status: &str, document: &str) -> Vec<u8> {
    let len = document.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n{document}").into()
}

/// A server of keys on the loopback interface.
pub struct KeyServer {
    pub address: SocketAddr,
    /// Its certificate in PEM, which is its own authority.
    pub certificate: String,
    pub behaviour: Arc<Mutex<Behaviour>>,
    /// The paths that it was asked for.
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl KeyServer {
    /// A server whose certificate is one for a name.
    pub fn start(name: &str) -> KeyServer {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .expect("they fit");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = KeyServer {
            address: listener.local_addr().expect("an address"),
            certificate: made.cert.pem(),
            behaviour: Arc::default(),
            asked: Arc::default(),
        };
        let (behaviour, asked, config) = (server.behaviour.clone(), server.asked.clone(), Arc::new(config));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                stream.set_read_timeout(Some(PATIENCE)).expect("set");
                let session = ServerConnection::new(config.clone()).expect("a session");
                let (behaviour, asked) = (behaviour.clone(), asked.clone());
                std::thread::spawn(move || serve(StreamOwned::new(session, stream), &behaviour, &asked));
            }
        });
        server
    }

    /// Its address with a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock() = behaviour;
    }

    pub fn times_asked(&self) -> usize {
        self.asked.lock().len()
    }
}

fn serve(mut stream: impl Read + Write, behaviour: &Mutex<Behaviour>, asked: &Mutex<Vec<String>>) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().push(path.clone());
    let Behaviour { answers, silence } = behaviour.lock().clone();
    std::thread::sleep(silence);
    let answer = answers.get(&path).cloned().unwrap_or_else(|| answered("404 Not Found", ""));
    let _ = stream.write_all(&answer).and_then(|()| stream.flush());
}
