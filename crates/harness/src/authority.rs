//! An authority that signs certificates of clients.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use time::{Duration, OffsetDateTime};

/// An authority with a key over P-256, as SPIRE's.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
    /// PEM of the certificates between it and one above it.
    above: String,
}

/// A certificate that an authority has signed.
pub struct Signed {
    /// In DER.
    pub certificate: Vec<u8>,
    /// In PEM, and after it those between it and the authority at the top.
    pub chain: String,
    /// The key in PEM (PKCS#8).
    pub key: String,
}

impl Authority {
    /// One that signs its own certificate, which is valid for a day.
    pub fn new(name: &str) -> Authority {
        let (params, key) = (Authority::params(name), key());
        let certificate = params.self_signed(&key).expect("a certificate");
        Authority { certificate, issuer: Issuer::new(params, key), above: String::new() }
    }

    /// One below this one.
    pub fn below(&self, params: CertificateParams) -> Authority {
        let key = key();
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let above = certificate.pem() + &self.above;
        Authority { certificate, issuer: Issuer::new(params, key), above }
    }

    /// The same one, with another certificate for its key.
    pub fn renewed(self, params: CertificateParams) -> Authority {
        let certificate = params.self_signed(self.issuer.key()).expect("a certificate");
        Authority { certificate, ..self }
    }

    /// What the certificate of an authority says, to be changed by tests.
    pub fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        within(&mut params, -3600, 24 * 3600);
        params
    }

    /// Its certificate in PEM.
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// Signs a certificate with a fresh key.
    pub fn sign(&self, params: &CertificateParams) -> Signed {
        let key = key();
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let chain = signed.pem() + &self.above;
        Signed { certificate: signed.der().to_vec(), chain, key: key.serialize_pem() }
    }
}

/// What the certificate of a client says: it is valid since a minute, for an hour.
pub fn svid(id: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.subject_alt_names = vec![uri(id)];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    within(&mut params, -60, 3600);
    params
}

/// A URI among alternative names.
pub fn uri(uri: &str) -> SanType {
    SanType::URI(uri.try_into().expect("ASCII"))
}

/// Sets from when and until when a certificate is valid, in seconds from now.
pub fn within(params: &mut CertificateParams, from: i64, to: i64) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now + Duration::seconds(from);
    params.not_after = now + Duration::seconds(to);
}

fn key() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key")
}
