//! A TLS identity on disk: one private PEM file with the key, followed by the certificate.
//!
//! Both are in one file so that a rename replaces both or none. The certificate is also written beside it,
//! for people.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_transport::CertificateDer;
use zeroize::Zeroizing;

use crate::text::{certificate_from_text, certificate_to_text};
use crate::{Error, Result, private};

const KEY: &str = "PRIVATE KEY";
const CERTIFICATE: &str = "CERTIFICATE";

/// A certificate and its private key, as they are stored.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredIdentity {
    /// DER of the certificate.
    pub certificate: CertificateDer<'static>,
    /// DER (PKCS #8) of the key.
    pub key: Zeroizing<Vec<u8>>,
}

impl StoredIdentity {
    /// From DER. The content is not checked here.
    pub fn new(certificate: &[u8], key: &[u8]) -> Result<StoredIdentity> {
        if certificate.first() != Some(&0x30) || key.first() != Some(&0x30) {
            return Err(Error::misuse("an identity is a certificate and a key, both in DER"));
        }
        let certificate = CertificateDer::from(certificate.to_vec());
        Ok(StoredIdentity { certificate, key: Zeroizing::new(key.to_vec()) })
    }

    /// Reads a private file, unless others could have read it.
    pub fn load(path: &Path) -> Result<StoredIdentity> {
        let bytes = private::read(path)?;
        StoredIdentity::from_pem(&bytes)
            .map_err(|what| Error::malformed(path, format!("{what}; restore it from a backup")))
    }

    /// Says what is wrong, if the file is not what [`to_pem`](StoredIdentity::to_pem) writes.
    pub(crate) fn from_pem(bytes: &[u8]) -> std::result::Result<StoredIdentity, String> {
        let text = str::from_utf8(bytes).map_err(|_| "is not text")?;
        let key = section(text, KEY).ok_or("holds no private key")?;
        let key = Zeroizing::new(STANDARD.decode(key.as_bytes()).map_err(|_| "the key is not base64")?);
        let certificate = section(text, CERTIFICATE).ok_or("holds no certificate")?;
        let certificate = certificate_from_text(&certificate)?;
        Ok(StoredIdentity { certificate, key })
    }

    /// The key, followed by the certificate.
    pub(crate) fn to_pem(&self) -> Zeroizing<String> {
        let key = Zeroizing::new(STANDARD.encode(&*self.key));
        let both = armour(KEY, &key);
        let certificate = armour(CERTIFICATE, &certificate_to_text(&self.certificate));
        let mut text = Zeroizing::new(String::with_capacity(both.len() + certificate.len()));
        text.push_str(&both);
        text.push_str(&certificate);
        text
    }

    /// Writes the private file, which holds both.
    pub fn save_private(&self, path: &Path) -> Result<()> {
        private::write(path, self.to_pem().as_bytes())
    }

    /// Writes the private file, then the public one.
    pub(crate) fn save(&self, key_path: &Path, certificate_path: &Path) -> Result<()> {
        self.save_private(key_path)?;
        self.save_certificate(certificate_path)
    }

    pub(crate) fn save_certificate(&self, path: &Path) -> Result<()> {
        private::write_public(path, self.certificate_pem().as_bytes())
    }

    pub(crate) fn certificate_pem(&self) -> String {
        armour(CERTIFICATE, &certificate_to_text(&self.certificate)).to_string()
    }
}

impl std::fmt::Debug for StoredIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredIdentity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// PEM of base64.
fn armour(label: &str, base64: &str) -> Zeroizing<String> {
    // Room for all, so that no copy stays behind when it grows.
    let mut text =
        Zeroizing::new(String::with_capacity(base64.len() + base64.len() / 64 + 2 * label.len() + 64));
    text.push_str(&format!("-----BEGIN {label}-----\n"));
    let mut rest = base64;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

/// The base64 of a section of PEM.
fn section(text: &str, label: &str) -> Option<Zeroizing<String>> {
    let (_, after) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (inside, _) = after.split_once(&format!("-----END {label}-----"))?;
    let mut base64 = Zeroizing::new(String::with_capacity(inside.len()));
    inside.split_ascii_whitespace().for_each(|line| base64.push_str(line));
    Some(base64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn identity(seed: u8) -> StoredIdentity {
        let der = [&[0x30, 0x81, 97][..], &[seed; 97]].concat();
        let key = [&[0x30, 46][..], &[seed ^ 0xff; 46]].concat();
        StoredIdentity::new(&der, &key).expect("it looks like DER")
    }

    #[test]
    fn an_identity_comes_back_and_shows_no_key() {
        let dir = tempfile::tempdir().expect("a directory");
        let (key, certificate) = (dir.path().join("i.key"), dir.path().join("i.crt"));
        let identity = identity(7);
        identity.save(&key, &certificate).expect("saved");
        assert_eq!(StoredIdentity::load(&key).expect("loaded"), identity);
        let public = std::fs::read_to_string(&certificate).expect("read");
        assert!(public.contains("BEGIN CERTIFICATE") && !public.contains("PRIVATE"));
        assert!(!format!("{identity:?}").contains("key"));
    }

    #[test]
    fn a_damaged_identity_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let (key, certificate) = (dir.path().join("i.key"), dir.path().join("i.crt"));
        identity(7).save(&key, &certificate).expect("saved");
        let text = std::fs::read_to_string(&key).expect("read");
        for broken in
            [text.replace("END PRIVATE", "END PUBLIC"), text[..text.len() / 2].into(), String::new()]
        {
            private::write(&key, broken.as_bytes()).expect("written");
            assert!(StoredIdentity::load(&key).is_err(), "{broken}");
        }
        assert!(StoredIdentity::new(b"certificate", &[0x30]).is_err());
    }
}
