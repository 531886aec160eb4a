//! A listener with TLS.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use polyclave_gateway::Running as Gateway;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::common::{Ask, World};

/// Writes a certificate for `localhost` and its key beside the gateway's file.
fn certify(world: &World) -> rcgen::CertifiedKey<rcgen::KeyPair> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(world.dir.path().join("tls.crt"), made.cert.pem()).expect("written");
    let key = world.dir.path().join("tls.key");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("set");
    made
}

fn define() -> (World, rcgen::CertifiedKey<rcgen::KeyPair>) {
    let mut world = World::define();
    let listener = "[[listener]]\naddress = \"127.0.0.1:0\"\ncertificate = \"tls.crt\"\nkey = \"tls.key\"\n";
    world.root = world.write_settings(listener);
    let made = certify(&world);
    (world, made)
}

#[test]
fn a_listener_with_tls_shows_its_certificate_and_serves() {
    let (mut world, made) = define();
    world.start_gateway();
    let address = world.address();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    let stream = StreamOwned::new(session, TcpStream::connect(address).expect("connected"));
    let answered = Ask::new("POST", "/v1/transit/random/8").token(&world.root).on(stream);
    assert_eq!(answered.status, 200, "{answered:?}");
}

#[test]
fn files_for_tls_that_do_not_fit_or_are_exposed_are_named() {
    let (world, _) = define();
    let refused = || Gateway::start(&world.file()).err().expect("refused").to_string();
    let (certificate, key) = (world.dir.path().join("tls.crt"), world.dir.path().join("tls.key"));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("set");
    assert!(refused().contains("chmod 600"));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("set");
    let text = std::fs::read(&certificate).expect("read");
    certify(&world);
    std::fs::write(&certificate, &text).expect("written");
    assert!(refused().contains("does not fit the key"), "{}", refused());
    std::fs::write(&certificate, "nothing").expect("written");
    assert!(refused().contains("has no certificate in PEM"), "{}", refused());
    std::fs::remove_file(&certificate).expect("removed");
    assert!(refused().contains("tls.crt: cannot be read"), "{}", refused());
}
