//! A listener with TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use polyclave_gateway::Running as Gateway;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedKey, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::client::WantsClientCert;
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ConfigBuilder, HandshakeKind, RootCertStore, StreamOwned};

use crate::common::{Ask, World};

/// Writes a certificate for `localhost` and its key beside the gateway's file.
fn certify(world: &World) -> CertifiedKey<KeyPair> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(world.dir.path().join("tls.crt"), made.cert.pem()).expect("written");
    let key = world.dir.path().join("tls.key");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("set");
    made
}

fn define() -> (World, CertifiedKey<KeyPair>) {
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
    let stream = connected(address, trusting(&made).with_no_client_auth());
    let answered = Ask::new("POST", "/v1/transit/random/8").token(&world.root).on(stream);
    assert_eq!(answered.status, 200, "{answered:?}");
}

/// What trusts a listener's certificate.
fn trusting(made: &CertifiedKey<KeyPair>) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots)
}

fn connected(
    address: SocketAddr,
    config: impl Into<Arc<ClientConfig>>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(config.into(), name).expect("a session");
    StreamOwned::new(session, TcpStream::connect(address).expect("connected"))
}

/// Whether a caller is answered, whatever the answer is: there need not be nodes.
fn is_served(address: SocketAddr, config: ClientConfig) -> bool {
    let mut stream = connected(address, config);
    let mut version = [0; 8];
    // A certificate is refused after the handshake has ended at this side: then nothing can be read.
    let asked = stream.write_all(b"GET /v1/sys/health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    asked.and_then(|()| stream.read_exact(&mut version)).is_ok() && version == *b"HTTP/1.1"
}

#[test]
fn callers_need_a_certificate_with_the_name_and_of_the_authority_that_the_listener_wants() {
    let mut world = World::define();
    let made = certify(&world);
    let mut of_authority = CertificateParams::new([]).expect("no names");
    of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = |file: &str| {
        let key = KeyPair::generate().expect("a key");
        let certificate = of_authority.self_signed(&key).expect("a certificate");
        std::fs::write(world.dir.path().join(file), certificate.pem()).expect("written");
        Issuer::new(of_authority.clone(), key)
    };
    let (ours, other) = (authority("callers.pem"), authority("others.pem"));
    let listener = "[[listener]]\naddress = \"127.0.0.1:0\"\ncertificate = \"tls.crt\"\nkey = \"tls.key\"\n\
                    client_authorities = \"callers.pem\"\n";
    world.root =
        world.write_settings(&format!("{listener}client_names = [\"kms.test\", \"cks.test\"]\n{listener}"));
    world.start_gateway();
    let all: Vec<SocketAddr> = world.gateway.as_ref().expect("it runs").addresses().to_vec();
    let served_with = |of: &Issuer<'_, KeyPair>, params: &CertificateParams| {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, of).expect("signed").der().clone();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = trusting(&made).with_client_auth_cert(vec![certificate], key.into()).expect("it fits");
        [all[0], all[1]].map(|address| is_served(address, config.clone()))
    };
    let named = |name: &str| CertificateParams::new([name.to_owned()]).expect("a name");
    let served = |of: &Issuer<'_, KeyPair>, name: &str| served_with(of, &named(name));
    assert_eq!(served(&ours, "cks.test"), [true, true]);
    assert_eq!(served(&ours, "x.cks.test"), [false, true], "the second listener takes all names");
    assert_eq!(served(&other, "kms.test"), [false, false]);
    let mut ended = named("cks.test");
    (ended.not_before, ended.not_after) =
        (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
    assert_eq!(served_with(&ours, &ended), [false, false]);
    let mut of_a_server = named("cks.test");
    of_a_server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    assert_eq!(served_with(&ours, &of_a_server), [false, false]);
    // A session is not resumed: its certificate would not be asked for again.
    let key = KeyPair::generate().expect("a key");
    let certificate = named("cks.test").signed_by(&key, &ours).expect("signed").der().clone();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = trusting(&made).with_client_auth_cert(vec![certificate], key.into()).expect("it fits");
    let config = Arc::new(config);
    for _ in 0..2 {
        let mut stream = connected(all[0], config.clone());
        let asked = stream.write_all(b"GET /v1/sys/health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        asked.and_then(|()| stream.read_exact(&mut [0; 12])).expect("answered");
        assert_eq!(stream.conn.handshake_kind(), Some(HandshakeKind::Full));
    }
    assert!(all.iter().all(|address| !is_served(*address, trusting(&made).with_no_client_auth())));
    std::fs::write(world.dir.path().join("callers.pem"), "nothing").expect("written");
    let refused = Gateway::start(&world.file()).err().expect("refused").to_string();
    assert!(refused.contains("callers.pem") && refused.contains("no certificate in PEM"), "{refused}");
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
