//! Mutual TLS 1.3 in which a party *is* its certificate.
//!
//! Every party makes a key pair and a self-signed certificate. All parties are given the exact certificates
//! of the others (those of a session's list, of a cluster's nodes, or of a policy's clients). There is no
//! certificate authority, and no name is checked. A certificate is accepted if it equals one of the list byte
//! for byte and is within its dates, and the handshake proves possession of its key. So a peer is identified
//! by what it can sign, never by what it claims. There is only one cipher suite (TLS_AES_128_GCM_SHA256,
//! X25519), no resumption and no early data.
//!
//! Clients of nodes are the exception: a node's policy can name authorities whose clients are known by an
//! identity in their certificates ([`crate::Anchors`]). Their keys can be of other kinds
//! ([`Identity::from_pem`]).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use polyclave_protocol::{Error, Result};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig, SignatureScheme, SupportedCipherSuite};
use time::{Duration, OffsetDateTime};
use x509_parser::parse_x509_certificate;
use zeroize::{Zeroize, Zeroizing};

use crate::pinned::{Admits, Pinned, listed};
use crate::validity;

/// How far in the past a new certificate's validity begins, for clocks that are slow.
const CLOCKS_DIFFER: Duration = Duration::HOUR;
/// The longest common name that X.509 allows.
const LONGEST_NAME: usize = 64;

/// A party's certificate and its private key. Copies share the key, which is wiped with the last of them.
#[derive(Clone)]
pub struct Identity {
    certified: Arc<CertifiedKey>,
    /// DER: PKCS#8, or as it was in PEM.
    key: Arc<Zeroizing<Vec<u8>>>,
    provider: Arc<CryptoProvider>,
}

impl Identity {
    /// A fresh key pair with its self-signed certificate, for a session that ends before any certificate
    /// does. The key is generated here and leaves the process only through
    /// [`reveal_private_key`](Self::reveal_private_key).
    pub fn generate() -> Result<Identity> {
        Self::self_signed(CertificateParams::new(["polyclave.invalid".to_owned()]).map_err(broken)?)
    }

    /// A fresh key pair for years: its certificate has a name, so that people recognise it, and is valid for
    /// this many days from now.
    pub fn generate_named(name: &str, valid_days: u32) -> Result<Identity> {
        if name.is_empty() || name.chars().count() > LONGEST_NAME {
            return Err(Error::misuse(format!("the name {name:?} has not 1 to {LONGEST_NAME} characters")));
        }
        let now = OffsetDateTime::now_utc();
        let not_after = now.checked_add(Duration::days(valid_days.into())).filter(|end| *end > now);
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.not_before = now - CLOCKS_DIFFER;
        parameters.not_after = not_after.ok_or_else(|| {
            Error::misuse(format!("a certificate cannot be valid for {valid_days} days; 365 is usual"))
        })?;
        Self::self_signed(parameters)
    }

    /// An identity from storage: an X.509 certificate and its Ed25519 key in PKCS#8, both in DER.
    pub fn from_der(certificate: &[u8], pkcs8_key: &[u8]) -> Result<Identity> {
        let certificate = CertificateDer::from(certificate.to_vec());
        validity::expiry(&certificate)?;
        Self::new(certificate, Zeroizing::new(pkcs8_key.to_vec()))
    }

    /// The identity of a client whose certificate an authority has signed, from PEM: its certificate, then
    /// those between it and the authority's, if there are any; and its key (PKCS#8, SEC1 or PKCS#1; Ed25519,
    /// ECDSA over P-256 or P-384, or RSA).
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Identity> {
        let chain = CertificateDer::pem_slice_iter(certificates).collect::<std::result::Result<Vec<_>, _>>();
        let chain = chain.map_err(|e| Error::misuse(format!("the certificate is no PEM: {e}")))?;
        let first = chain.first().ok_or_else(|| Error::misuse("there is no certificate in PEM"))?;
        validity::expiry(first)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|e| Error::misuse(format!("the key is no private key in PEM: {e}")))?;
        // The library wipes nothing by itself.
        let key = Zeroizing::new(key);
        let signing = ring::sign::any_supported_type(&key).map_err(|e| {
            Error::misuse(format!(
                "the private key is none that can be used (Ed25519, P-256, P-384, RSA): {e}"
            ))
        })?;
        Self::of_chain(chain, signing, Zeroizing::new(key.secret_der().to_vec()))
    }

    /// The certificate, to be given to every other party over a channel on which nobody can replace it.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.certified.cert[0].clone()
    }

    /// The private key in DER (PKCS#8, or as it was in PEM), to be kept where nobody else can read it.
    pub fn reveal_private_key(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::clone(&self.key)
    }

    /// Signs a message with Ed25519. Messages for different purposes begin differently, and none as TLS does,
    /// with spaces.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let signer = self.certified.key.choose_scheme(&[SignatureScheme::ED25519]);
        let signed = signer.and_then(|signer| signer.sign(message).ok());
        signed.ok_or_else(|| Error::System("the private key cannot sign".into()))
    }

    /// Refuses to start with a certificate that every peer will refuse.
    pub(crate) fn check_time(&self) -> Result<()> {
        validity::check(&self.certified.cert[0], UnixTime::now()).map_err(|e| {
            let message =
                validity::message_of(&e).unwrap_or_else(|| format!("certificate is of no use: {e}"));
            Error::misuse(format!("this party's {message}"))
        })
    }

    /// The same with another cipher suite.
    #[cfg(test)]
    pub(crate) fn with_suite(self, suite: SupportedCipherSuite) -> Self {
        Identity { provider: provider(suite), ..self }
    }

    /// The TLS configuration of the dialling side. It insists on one peer, with any of that peer's
    /// certificates.
    pub(crate) fn client_config(&self, peer: Vec<CertificateDer<'static>>) -> Result<Arc<ClientConfig>> {
        let pinned = Pinned::new(listed(peer), &self.provider, Arc::default());
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(pinned)
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(self.certified.clone())));
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(Arc::new(config))
    }

    /// The TLS configuration of the accepting side. Any admitted peer may call. `refused` counts the others.
    pub(crate) fn server_config(&self, admits: Admits, refused: Arc<AtomicU64>) -> Result<Arc<ServerConfig>> {
        let pinned = Pinned::new(admits, &self.provider, refused);
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(pinned)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(self.certified.clone())));
        // Tickets would never be used, and one unread at the end of a session turns its close into a reset.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    fn self_signed(parameters: CertificateParams) -> Result<Identity> {
        let mut pair = KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(broken)?;
        let certificate = parameters.self_signed(&pair).map_err(broken);
        let key = Zeroizing::new(pair.serialize_der());
        pair.zeroize();
        Self::new(certificate?.der().clone(), key)
    }

    fn new(certificate: CertificateDer<'static>, key: Zeroizing<Vec<u8>>) -> Result<Identity> {
        let signing = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(key.as_slice()));
        let signing =
            signing.map_err(|_| Error::misuse("the private key is not an Ed25519 key in PKCS#8 in DER"))?;
        Self::of_chain(vec![certificate], signing, key)
    }

    fn of_chain(
        chain: Vec<CertificateDer<'static>>,
        signing: Arc<dyn SigningKey>,
        key: Zeroizing<Vec<u8>>,
    ) -> Result<Identity> {
        let certified = CertifiedKey::new(chain, signing);
        certified.keys_match().map_err(|e| {
            Error::misuse(format!(
                "the private key does not belong to the certificate ({e}); give both of one pair"
            ))
        })?;
        let provider = provider(ring::cipher_suite::TLS13_AES_128_GCM_SHA256);
        Ok(Identity { certified: Arc::new(certified), key: Arc::new(key), provider })
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("certificate", &self.certified.cert[0]).finish_non_exhaustive()
    }
}

/// Checks an Ed25519 signature under the key of a certificate. The dates of the certificate do not count.
pub fn verify_signature(certificate: &CertificateDer<'_>, message: &[u8], signature: &[u8]) -> Result<()> {
    let wrong = || Error::misuse("the signature is not of this certificate's key");
    let (_, parsed) = parse_x509_certificate(certificate).map_err(|_| wrong())?;
    let key = &parsed.public_key().subject_public_key.data;
    let known = ring::default_provider().signature_verification_algorithms.mapping;
    let mut algorithms = known.iter().filter(|(scheme, _)| *scheme == SignatureScheme::ED25519);
    let verified = algorithms.any(|(_, algorithms)| {
        algorithms.iter().any(|algorithm| algorithm.verify_signature(key, message, signature).is_ok())
    });
    verified.then_some(()).ok_or_else(wrong)
}

/// rustls asks the dialling side for the name of the server. Nobody sees or checks this one.
pub(crate) fn no_name() -> ServerName<'static> {
    ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into())
}

fn broken(e: rcgen::Error) -> Error {
    Error::System(format!("cannot make a TLS certificate: {e}"))
}

fn unusable(e: rustls::Error) -> Error {
    Error::System(format!("cannot set up TLS: {e}"))
}

fn provider(suite: SupportedCipherSuite) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![suite],
        kx_groups: vec![ring::kx_group::X25519],
        ..ring::default_provider()
    })
}
