//! Signatures of what a person approves, under the key of a certificate.
//!
//! The same key proves its owner's identity in TLS handshakes. What TLS 1.3 signs begins with 64 spaces (RFC 8446, section 4.4.3), and what
//! is signed here begins with [`CONTEXT`]. So neither signature can stand for the other.

use polyclave_protocol::Result;
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::identity::verify_signature;
use crate::{Identity, validity};

/// What stands before the digest that is signed.
const CONTEXT: &[u8] = b"polyclave signature of an approval\0";

fn message(digest: &[u8; 32]) -> Vec<u8> {
    [CONTEXT, digest].concat()
}

impl Identity {
    /// Signs the digest of what is approved with the private key of the certificate (Ed25519).
    pub(crate) fn sign_approval(&self, digest: &[u8; 32]) -> Result<Vec<u8>> {
        self.sign(&message(digest))
    }
}

/// Whether this is a signature of the digest of what is approved under the key of a certificate, and the certificate is within its dates now.
pub(crate) fn verify(certificate: &CertificateDer<'_>, digest: &[u8; 32], signature: &[u8]) -> bool {
    validity::check(certificate, UnixTime::now()).is_ok()
        && verify_signature(certificate, &message(digest), signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signed_digest_verifies_and_only_under_the_signers_certificate() {
        let signer = Identity::generate_named("ann", 1).expect("an identity");
        let other = Identity::generate_named("ann", 1).expect("an identity");
        let digest = [7; 32];
        let signature = signer.sign_approval(&digest).expect("signed");
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
