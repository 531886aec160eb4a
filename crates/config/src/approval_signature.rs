//! Signatures of what a person approves, under the key of a certificate.
//!
//! The same key proves its owner's identity in TLS handshakes. What TLS 1.3 signs begins with 64 spaces (RFC
//! 8446, section 4.4.3), and what is signed here begins with [`CONTEXT`]. So neither signature can stand for
//! the other.

use std::time::SystemTime;

use polyclave_api::{Approval, ApprovalSignature};
use polyclave_transport::{CertificateDer, Identity, expiry, verify_signature};

use crate::{Error, Result};

/// What stands before the digest that is signed.
const CONTEXT: &[u8] = b"polyclave signature of an approval\0";

/// Adds an approver's signature (Ed25519) to an approval. An older one under the same certificate is
/// replaced.
pub fn sign_approval(approval: &mut Approval, approver: &Identity) -> Result<()> {
    let misuse = |e: polyclave_protocol::Error| Error::misuse(e.to_string());
    let signature = approver.sign(&message(&approval.digest())).map_err(misuse)?;
    let certificate = approver.certificate().to_vec();
    approval.add(ApprovalSignature { certificate, signature }).map_err(misuse)
}

/// Whether an approval has a signature that verifies under a certificate, and the certificate is within its
/// dates now.
pub fn is_signed_by(approval: &Approval, certificate: &CertificateDer<'_>) -> bool {
    let now = SystemTime::now();
    let is_in_time = expiry(certificate).is_ok_and(|(first, last)| first <= now && now <= last);
    let verifies = |s: &ApprovalSignature| {
        verify_signature(certificate, &message(&approval.digest()), &s.signature).is_ok()
    };
    is_in_time && approval.signature_under(certificate).is_some_and(verifies)
}

fn message(digest: &[u8; 32]) -> Vec<u8> {
    [CONTEXT, digest].concat()
}

#[cfg(test)]
mod tests {
    use polyclave_api::{Statement, Subject, VERSION};

    use super::*;

    fn approval() -> Approval {
        let statement = Statement {
            version: VERSION,
            cluster: [1; 16],
            subject: Subject::Policy { digest: [4; 32] },
            keys: Vec::new(),
            not_after: 1_800_000_000,
            nonce: [3; 32],
            purpose: "the year is over".into(),
        };
        Approval::new(&statement).expect("encoded")
    }

    #[test]
    fn only_the_signed_statement_verifies_and_only_under_the_signers_certificate() {
        let [ann, ben] = ["ann", "ben"].map(|name| Identity::generate_named(name, 1).expect("an identity"));
        let mut approval = approval();
        sign_approval(&mut approval, &ann).expect("signed");
        assert!(!is_signed_by(&approval, &ben.certificate()));
        sign_approval(&mut approval, &ann).expect("signed");
        sign_approval(&mut approval, &ben).expect("signed");
        assert_eq!(approval.signatures.len(), 2, "one for each certificate");
        let signed = |approval: &Approval| [&ann, &ben].map(|who| is_signed_by(approval, &who.certificate()));
        assert_eq!(signed(&approval), [true, true]);
        let mut swapped = approval.clone();
        swapped.signatures[0].signature = approval.signatures[1].signature.clone();
        assert_eq!(signed(&swapped), [false, true]);
        for byte in 0..approval.statement.len() {
            let mut altered = approval.clone();
            altered.statement[byte] ^= 1;
            assert_eq!(signed(&altered), [false, false], "byte {byte} of the statement");
        }
        for byte in 0..64 {
            let mut altered = approval.clone();
            altered.signatures[0].signature[byte] ^= 1;
            assert_eq!(signed(&altered), [false, true], "byte {byte} of the signature");
        }
        for len in [0, 63] {
            let mut cut = approval.clone();
            cut.signatures[0].signature.truncate(len);
            assert_eq!(signed(&cut), [false, true], "{len} bytes");
        }
        assert!(!is_signed_by(&approval, &CertificateDer::from(vec![0x30, 0])));
    }
}
