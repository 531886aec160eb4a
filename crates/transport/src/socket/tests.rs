//! Tests on pairs of connected sockets.

use std::net::TcpListener;

use rustls::crypto::ring;
use rustls::{CipherSuiteCommon, SupportedCipherSuite, Tls13CipherSuite};

use super::*;
use crate::identity::Identity;
use crate::pinned::listed;

/// Two sockets that have shaken hands, the dialling one first.
pub(crate) fn pair() -> (Socket, Socket) {
    pair_of([(); 2].map(|()| Identity::generate().expect("identity")))
}

fn pair_of(identities: [Identity; 2]) -> (Socket, Socket) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let dialled = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (accepted, _) = listener.accept().expect("accept");
    let config = identities[0].client_config(vec![identities[1].certificate()]).expect("config");
    let mut a = Socket::new(dialled, Tls::client(config).expect("TLS"), Arc::default()).expect("socket");
    let config = identities[1]
        .server_config(listed(vec![identities[0].certificate()]), Arc::default())
        .expect("config");
    let mut b = Socket::new(accepted, Tls::server(config).expect("TLS"), Arc::default()).expect("socket");
    while !(a.handshake().expect("handshake") & b.handshake().expect("handshake")) {}
    (a, b)
}

/// As if these bytes had come, and been decrypted, and nothing before them.
pub(crate) fn preloaded(socket: &mut Socket, bytes: &[u8]) {
    socket.early = Buffer::default();
    socket.early.append(bytes);
}

/// How many of them nobody has asked for yet.
pub(crate) fn not_read(socket: &Socket) -> usize {
    socket.early.len()
}

/// Sends through one and receives from the other until all is there.
pub(crate) fn pass(from: &mut Socket, to: &mut Socket, bytes: &[u8]) -> Result<Vec<u8>, Broken> {
    let mut into = vec![0; bytes.len()];
    let (mut sent, mut received) = (0, 0);
    while received < bytes.len() {
        sent += from.write(&bytes[sent..], &[])?;
        received += to.read(&mut into[received..], &mut [])?;
    }
    Ok(into)
}

#[test]
fn each_learns_the_certificate_of_the_other() {
    let (a, b) = pair();
    let (of_b, of_a) = (a.peer_certificate().expect("shown"), b.peer_certificate().expect("shown"));
    assert_ne!(of_a, of_b);
}

#[test]
fn head_and_body_are_one_stream_of_bytes() {
    let (mut a, mut b) = pair();
    assert_eq!(a.write(b"he", b"adbody"), Ok(8));
    let (mut head, mut body, mut rest) = ([0; 4], [0; 2], [0; 2]);
    assert_eq!(b.read(&mut head, &mut body), Ok(6));
    assert_eq!(b.read(&mut [], &mut rest), Ok(2));
    assert_eq!((&head, &body, &rest), (b"head", b"bo", b"dy"));
}

#[test]
fn garbage_after_the_handshake_is_an_error_and_not_the_peers_fault() {
    let (a, mut b) = pair();
    (&a.tcp).write_all(&[0x17, 3, 3, 0, 32]).and_then(|()| (&a.tcp).write_all(&[7; 32])).expect("write");
    let mut read = Ok(0);
    while read == Ok(0) {
        read = b.read(&mut [0; 1], &mut []);
    }
    assert_eq!(read, Err(Broken::Closed("a TLS record failed its authentication".into())));
}

/// A long session needs fresh keys, after 2^24 records with AES-GCM; here after 8.
#[test]
fn keys_are_renewed_in_passing() {
    let usual = ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().expect("a TLS 1.3 suite");
    let (suite, hash_provider) = (usual.common.suite, usual.common.hash_provider);
    let common = CipherSuiteCommon { suite, hash_provider, confidentiality_limit: 8 };
    let (hkdf_provider, aead_alg) = (usual.hkdf_provider, usual.aead_alg);
    let short_lived = Box::leak(Box::new(Tls13CipherSuite { common, hkdf_provider, aead_alg, quic: None }));
    let suite = SupportedCipherSuite::Tls13(short_lived);
    let (mut a, mut b) = pair_of([(); 2].map(|()| Identity::generate().expect("identity").with_suite(suite)));
    for round in 0..100 {
        let bytes = vec![round; usize::from(round) * 1000];
        assert_eq!(pass(&mut a, &mut b, &bytes).as_ref(), Ok(&bytes));
        assert_eq!(pass(&mut b, &mut a, &bytes).as_ref(), Ok(&bytes));
    }
}
