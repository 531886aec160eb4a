//! KMIP over TLS, as a client sends it, to a gateway and real nodes.

mod crypt;
mod keys;
mod pykmip;
mod refused;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use polyclave_api::{Mode, NewKey};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::common::World;

const SETTINGS: &str = r#"
[[kmip]]
address = "127.0.0.1:0"
certificate = "tls.crt"
key = "tls.key"
client_authorities = "callers.pem"
client = [
    { name = "database", certificate_name = "db.test", rights = ["encrypt", "decrypt", "mac", "list"], keys = ["db-*"] },
    { name = "reader", certificate_name = "reader.test", rights = ["decrypt"], keys = ["db-gcm"] },
    { name = "maker", certificate_name = "maker.test", rights = ["generate", "list", "delete", "encrypt", "decrypt", "configure", "mac"], keys = ["m-*"] },
    { name = "watcher", certificate_name = "watcher.test", rights = ["list"], keys = ["m-*"] },
]
"#;

/// A world, and what signs certificates of clients.
struct Kmip {
    world: World,
    authority: Issuer<'static, KeyPair>,
    server: CertificateDer<'static>,
}

impl Kmip {
    fn start() -> Kmip {
        let mut world = World::define();
        world.root = world.write_settings(SETTINGS);
        let file = |name: &str| world.dir.path().join(name);
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        std::fs::write(file("tls.crt"), made.cert.pem()).expect("written");
        std::fs::write(file("tls.key"), made.signing_key.serialize_pem()).expect("written");
        std::fs::set_permissions(file("tls.key"), std::fs::Permissions::from_mode(0o600)).expect("set");
        let (authority, certificate) = authority();
        std::fs::write(file("callers.pem"), certificate).expect("written");
        world.start_nodes();
        world.start_gateway();
        let server = made.cert.der().clone();
        Kmip { world, authority, server }
    }

    /// Makes a key for one mode.
    fn generate(&self, name: &str, cipher: &str, mode: Mode) {
        self.world.client().generate(new(name, cipher, mode)).expect("a key");
    }

    /// A session of a client whose certificate has these names.
    fn session(&self, names: &[&str]) -> Session {
        self.session_of(Some((&self.authority, names)))
    }

    fn session_of(&self, certificate: Option<(&Issuer<'static, KeyPair>, &[&str])>) -> Session {
        let mut roots = RootCertStore::empty();
        roots.add(self.server.clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder =
            builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
        let config = match certificate {
            None => builder.with_no_client_auth(),
            Some((authority, names)) => {
                let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
                let key = KeyPair::generate().expect("a key");
                let params = CertificateParams::new(names).expect("names");
                let certificate = params.signed_by(&key, authority).expect("signed").der().clone();
                let key = PrivatePkcs8KeyDer::from(key.serialize_der());
                builder.with_client_auth_cert(vec![certificate], key.into()).expect("it fits")
            }
        };
        let address = self.world.gateway.as_ref().expect("it runs").kmip_addresses()[0];
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        Session(StreamOwned::new(session, TcpStream::connect(address).expect("connected")))
    }
}

fn new(name: &str, cipher: &str, mode: Mode) -> NewKey {
    NewKey::for_modes(name, cipher, &[mode], 1 << 20)
}

/// An authority, and its certificate in PEM.
fn authority() -> (Issuer<'static, KeyPair>, String) {
    let mut params = CertificateParams::new([]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    (Issuer::new(params, key), certificate)
}

struct Session(StreamOwned<ClientConnection, TcpStream>);

impl Session {
    /// Sends a message. Returns the response, or `None` if the gateway closes the connection.
    fn send(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let mut head = vec![0; 8];
        self.0.write_all(message).ok()?;
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[4..].try_into().expect("4 bytes")) as usize;
        head.resize(8 + length, 0);
        self.0.read_exact(&mut head[8..]).expect("the rest of a response");
        Some(head)
    }

    /// Asks for one operation in a version.
    fn ask(&mut self, version: (i32, i32), operation: u32, payload: &[u8]) -> Vec<u8> {
        self.send(&request(version, &[(operation, payload)])).expect("a response")
    }

    /// The same for something that has to succeed, in 1.4.
    fn done(&mut self, operation: u32, payload: &[u8]) -> Vec<u8> {
        self.done_in((1, 4), operation, payload)
    }

    fn done_in(&mut self, version: (i32, i32), operation: u32, payload: &[u8]) -> Vec<u8> {
        let answer = self.ask(version, operation, payload);
        assert_eq!(results(&answer), [0], "{}", String::from_utf8_lossy(&answer));
        answer
    }

    /// The same for something that has to be refused, for this reason.
    fn refused(&mut self, version: (i32, i32), operation: u32, payload: &[u8], reason: u32) {
        let answer = self.ask(version, operation, payload);
        assert_eq!(results(&answer), [reason], "{}", String::from_utf8_lossy(&answer));
    }
}

/// An item of TTLV.
fn item(tag: u32, kind: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = tag.to_be_bytes()[1..].to_vec();
    bytes.push(kind);
    bytes.extend((value.len() as u32).to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn structure(tag: u32, items: &[Vec<u8>]) -> Vec<u8> {
    item(tag, 1, &items.concat())
}

fn integer(tag: u32, value: i32) -> Vec<u8> {
    item(tag, 2, &value.to_be_bytes())
}

fn enumeration(tag: u32, value: u32) -> Vec<u8> {
    item(tag, 5, &value.to_be_bytes())
}

fn of_key(identifier: &str) -> Vec<u8> {
    item(0x42_0094, 7, identifier.as_bytes())
}

fn data(data: &[u8]) -> Vec<u8> {
    item(0x42_00c2, 8, data)
}

/// A request with a batch of operations and their payloads.
fn request(version: (i32, i32), batch: &[(u32, &[u8])]) -> Vec<u8> {
    request_with(version, &[], batch)
}

/// The same with more items in its header.
fn request_with((major, minor): (i32, i32), more: &[Vec<u8>], batch: &[(u32, &[u8])]) -> Vec<u8> {
    let version = structure(0x42_0069, &[integer(0x42_006a, major), integer(0x42_006b, minor)]);
    let count = integer(0x42_000d, batch.len() as i32);
    let header = structure(0x42_0077, &[vec![version], more.to_vec(), vec![count]].concat());
    let items = batch.iter().map(|(operation, payload)| {
        structure(0x42_000f, &[enumeration(0x42_005c, *operation), item(0x42_0079, 1, payload)])
    });
    structure(0x42_0078, &[vec![header], items.collect()].concat())
}

fn text(tag: u32, text: &str) -> Vec<u8> {
    item(tag, 7, text.as_bytes())
}

/// The cryptographic parameters with a mode.
fn mode(mode: u32) -> Vec<u8> {
    structure(0x42_002b, &[enumeration(0x42_0011, mode)])
}

/// The identifier that a response has.
fn identifier(message: &[u8]) -> String {
    String::from_utf8(value(message, 0x42_0094)).expect("text")
}

/// The values of all items with a tag, at any depth.
fn values(message: &[u8], tag: u32) -> Vec<Vec<u8>> {
    let (mut rest, mut found) = (message, Vec::new());
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[4..8].try_into().expect("4 bytes")) as usize;
        let value = &rest[8..8 + length];
        if rest[..3] == tag.to_be_bytes()[1..] {
            found.push(value.to_vec());
        }
        if rest[3] == 1 {
            found.extend(values(value, tag));
        }
        rest = &rest[8 + length.next_multiple_of(8)..];
    }
    found
}

fn value(message: &[u8], tag: u32) -> Vec<u8> {
    values(message, tag).into_iter().next().unwrap_or_else(|| panic!("no {tag:x}"))
}

/// The reasons of the results of a batch; 0 for success.
fn results(message: &[u8]) -> Vec<u32> {
    let number = |value: Vec<u8>| u32::from_be_bytes(value.try_into().expect("4 bytes"));
    let of_item = |item: Vec<u8>| match number(value(&item, 0x42_007f)) {
        0 => 0,
        _ => number(value(&item, 0x42_007e)),
    };
    values(message, 0x42_000f).into_iter().map(of_item).collect()
}

const CREATE: u32 = 0x01;
const REGISTER: u32 = 0x03;
const REKEY: u32 = 0x04;
const LOCATE: u32 = 0x08;
const GET: u32 = 0x0a;
const GET_ATTRIBUTES: u32 = 0x0b;
const GET_ATTRIBUTE_LIST: u32 = 0x0c;
const ACTIVATE: u32 = 0x12;
const REVOKE: u32 = 0x13;
const DESTROY: u32 = 0x14;
const QUERY: u32 = 0x18;
const DISCOVER: u32 = 0x1e;
const ENCRYPT: u32 = 0x1f;
const DECRYPT: u32 = 0x20;
const MAC: u32 = 0x23;
const MAC_VERIFY: u32 = 0x24;
const IMPORT: u32 = 0x2a;
const EXPORT: u32 = 0x2b;

const DENIED: u32 = 0x0c;
const NOT_EXTRACTABLE: u32 = 0x17;
const WRONG_STATE: u32 = 0x43;

/// The payload of a decryption of what an encryption has answered.
fn decryption(identifier: &str, encrypted: &[u8], additional: &[u8]) -> Vec<u8> {
    [
        of_key(identifier),
        data(&value(encrypted, 0x42_00c2)),
        item(0x42_003d, 8, &value(encrypted, 0x42_003d)),
        item(0x42_00fe, 8, additional),
        item(0x42_00ff, 8, &value(encrypted, 0x42_00ff)),
    ]
    .concat()
}
