//! Signatures of what a person approves, under the key of a certificate.
//!
//! The same key proves its owner's identity in TLS handshakes. What TLS 1.3 signs begins with 64 spaces (RFC 8446, section 4.4.3), and what
//! is signed here begins with [`CONTEXT`]. So neither signature can stand for the other.

use polyclave_protocol::{Error, Result};
use rustls::SignatureScheme;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use x509_parser::parse_x509_certificate;

use crate::{Identity, validity};

/// What stands before the digest that is signed.
const CONTEXT: &[u8] = b"polyclave signature of an approval\0";

fn message(digest: &[u8; 32]) -> Vec<u8> {
    [CONTEXT, digest].concat()
}

impl Identity {
    /// Signs a digest with the private key of the certificate (Ed25519).
    pub fn sign(&self, digest: &[u8; 32]) -> Result<Vec<u8>> {
        let signer = self.signing_key().choose_scheme(&[SignatureScheme::ED25519]);
        let signer = signer.ok_or_else(|| Error::misuse("the private key is not an Ed25519 key"))?;
        signer.sign(&message(digest)).map_err(|e| Error::System(format!("cannot sign: {e}")))
    }
}

/// Whether this is a signature of a digest under the key of a certificate, and the certificate is within its dates now.
pub fn verify(certificate: &CertificateDer<'_>, digest: &[u8; 32], signature: &[u8]) -> bool {
    let Ok((rest, parsed)) = parse_x509_certificate(certificate) else { return false };
    if !rest.is_empty() || validity::check(certificate, UnixTime::now()).is_err() {
        return false;
    }
    let key = &parsed.public_key().subject_public_key.data;
    let algorithms = ring::default_provider().signature_verification_algorithms;
    let ed25519 = algorithms.mapping.iter().find(|(scheme, _)| *scheme == SignatureScheme::ED25519);
    // A key of another kind has another length, and is no point of the curve.
    ed25519.is_some_and(|(_, verifiers)| {
        verifiers.iter().any(|verifier| verifier.verify_signature(key, &message(digest), signature).is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signed_digest_verifies_and_only_under_the_signers_certificate() {
        let signer = Identity::generate_named("ann", 1).expect("an identity");
        let other = Identity::generate_named("ann", 1).expect("an identity");
        let digest = [7; 32];
        let signature = signer.sign(&digest).expect("signed");
        assert!(verify(&signer.certificate(), &digest, &signature));
        assert!(!verify(&other.certificate(), &digest, &signature));
        assert!(!verify(&signer.certificate(), &[8; 32], &signature));
        for byte in 0..signature.len() {
            let mut altered = signature.clone();
            altered[byte] ^= 1;
            assert!(!verify(&signer.certificate(), &digest, &altered), "byte {byte}");
        }
        for len in [0, 63] {
            assert!(!verify(&signer.certificate(), &digest, &signature[..len]));
        }
        assert!(!verify(&CertificateDer::from(vec![0x30, 0]), &digest, &signature));
    }
}
