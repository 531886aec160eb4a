//! Sealing to a certificate: only the holder of its private key can open the result. HPKE (RFC 9180) in base
//! mode, with the suite DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305, by the crate `hpke`.
//!
//! A certificate has an Ed25519 key. The X25519 key is the same point on the Montgomery curve (RFC 7748,
//! section 4.1), and the private key is the scalar that Ed25519 signs with (RFC 8032, section 5.1.5). So
//! nothing new has to be published, and the cluster file that people have compared names the recipients.
//!
//! **One key for both**: E. Thormarker, "On using the same key pair for Ed25519 and an X25519 based KEM"
//! (IACR ePrint 2021/509) proves that signatures and this KEM (HPKE's) stay secure together, in the random
//! oracle model under gap-DH. A decapsulation hashes what it computes, a signature hashes with SHA-512 over
//! other inputs, and neither gives the other's answers away.
//!
//! **What it does not give**: it does not authenticate the sender, and it has no forward secrecy: an attacker
//! that gets the private key later opens what was sealed before.

use curve25519_dalek::edwards::CompressedEdwardsY;
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256 as Kem;
use hpke::{Deserializable, Kem as _, OpModeR, OpModeS, Serializable};
use polyclave_protocol::{Error, Result};
use sha2::{Digest, Sha512};
use x509_parser::parse_x509_certificate;
use zeroize::Zeroizing;

use crate::{CertificateDer, Identity};

/// Bytes of what is sent of the ephemeral key.
pub const ENCAPSULATED: usize = 32;
/// How many bytes longer a ciphertext is than what it holds.
pub const SEALING_TAG: usize = 16;

/// What stands before the seed of an Ed25519 key in PKCS#8 (RFC 8410, section 7): the algorithm, and two
/// octet strings around 32 bytes.
const BEFORE_SEED: [u8; 11] = [0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Something sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The encapsulated key.
    pub encapsulated: [u8; ENCAPSULATED],
    /// The ciphertext with its tag.
    pub ciphertext: Vec<u8>,
}

/// Seals to a certificate. `info` says for what (one text for each purpose), `associated` is authenticated
/// with it.
pub fn seal_to(
    certificate: &CertificateDer<'_>,
    info: &[u8],
    associated: &[u8],
    plaintext: &[u8],
) -> Result<Sealed> {
    let recipient = <Kem as hpke::Kem>::PublicKey::from_bytes(&public_key(certificate)?).map_err(failed)?;
    let (encapsulated, ciphertext) = hpke::single_shot_seal::<ChaCha20Poly1305, HkdfSha256, Kem>(
        &OpModeS::Base,
        &recipient,
        info,
        plaintext,
        associated,
    )
    .map_err(failed)?;
    Ok(Sealed { encapsulated: encapsulated.to_bytes().into(), ciphertext })
}

impl Identity {
    /// Opens what was sealed to the certificate of this identity. The error does not say what is wrong:
    /// another key, or anything altered.
    pub fn open_sealed(&self, info: &[u8], associated: &[u8], sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>> {
        let key = private_key(&self.reveal_private_key())?;
        let key = <Kem as hpke::Kem>::PrivateKey::from_bytes(&*key).map_err(failed)?;
        // An identity whose certificate is of another key would open nothing; this says why.
        if Kem::sk_to_pk(&key).to_bytes()[..] != public_key(&self.certificate())? {
            return Err(Error::System("the private key does not belong to the certificate".into()));
        }
        let encapsulated =
            <Kem as hpke::Kem>::EncappedKey::from_bytes(&sealed.encapsulated).map_err(failed)?;
        let opened = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, Kem>(
            &OpModeR::Base,
            &key,
            &encapsulated,
            info,
            &sealed.ciphertext,
            associated,
        );
        opened.map(Zeroizing::new).map_err(failed)
    }
}

/// The X25519 key of a certificate.
fn public_key(certificate: &CertificateDer<'_>) -> Result<[u8; 32]> {
    let wrong = || Error::misuse("the certificate has no Ed25519 key");
    let (_, parsed) = parse_x509_certificate(certificate).map_err(|_| wrong())?;
    let key = CompressedEdwardsY::from_slice(&parsed.public_key().subject_public_key.data);
    let point = key.ok().and_then(|key| key.decompress()).ok_or_else(wrong)?;
    Ok(point.to_montgomery().to_bytes())
}

/// The X25519 private key of an Ed25519 key in PKCS#8. X25519 clears and sets the bits of the scalar that
/// Ed25519 does.
fn private_key(pkcs8: &[u8]) -> Result<Zeroizing<[u8; 32]>> {
    let wrong = || Error::misuse("the private key is not an Ed25519 key in PKCS#8 in DER");
    let at = pkcs8.windows(BEFORE_SEED.len()).position(|window| window == BEFORE_SEED).ok_or_else(wrong)?;
    let seed = pkcs8.get(at + BEFORE_SEED.len()..at + BEFORE_SEED.len() + 32).ok_or_else(wrong)?;
    let hash = Zeroizing::new(<[u8; 64]>::from(Sha512::digest(seed)));
    let mut scalar = Zeroizing::new([0; 32]);
    scalar.copy_from_slice(&hash[..32]);
    Ok(scalar)
}

fn failed(_: hpke::HpkeError) -> Error {
    Error::misuse("what was sealed does not open: it was sealed to another certificate, or altered")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_of_the_certificate_opens_and_only_what_was_sealed_with_what_it_was_sealed() {
        let [ours, other] = ["a", "b"].map(|name| Identity::generate_named(name, 1).expect("an identity"));
        let sealed = seal_to(&ours.certificate(), b"purpose", b"head", b"a secret").expect("sealed");
        assert_eq!(sealed.ciphertext.len(), 8 + SEALING_TAG);
        let open = |by: &Identity, info: &[u8], head: &[u8], sealed: &Sealed| {
            by.open_sealed(info, head, sealed).map(|opened| opened.to_vec())
        };
        assert_eq!(open(&ours, b"purpose", b"head", &sealed).expect("opened"), b"a secret");
        assert!(open(&other, b"purpose", b"head", &sealed).is_err());
        assert!(open(&ours, b"another", b"head", &sealed).is_err());
        assert!(open(&ours, b"purpose", b"heads", &sealed).is_err());
        for byte in 0..sealed.ciphertext.len() + ENCAPSULATED {
            let mut altered = sealed.clone();
            match byte.checked_sub(ENCAPSULATED) {
                None => altered.encapsulated[byte] ^= 1,
                Some(byte) => altered.ciphertext[byte] ^= 1,
            }
            assert!(open(&ours, b"purpose", b"head", &altered).is_err(), "byte {byte}");
        }
        let mut cut = sealed.clone();
        cut.ciphertext.truncate(3);
        assert!(open(&ours, b"purpose", b"head", &cut).is_err());
        // The point of order 1 would give everybody the same secret.
        let weak = Sealed { encapsulated: [0; 32], ..sealed.clone() };
        assert!(open(&ours, b"purpose", b"head", &weak).is_err());
        let again = seal_to(&ours.certificate(), b"purpose", b"head", b"a secret").expect("sealed");
        assert_ne!((again.encapsulated, &again.ciphertext), (sealed.encapsulated, &sealed.ciphertext));
        assert!(seal_to(&CertificateDer::from(vec![0x30, 0]), b"", b"", b"").is_err());
    }

    #[test]
    fn keys_are_the_same_point_on_both_curves() {
        for _ in 0..20 {
            let identity = Identity::generate().expect("an identity");
            let scalar = private_key(&identity.reveal_private_key()).expect("a key");
            let key = <Kem as hpke::Kem>::PrivateKey::from_bytes(&*scalar).expect("a key");
            let public = public_key(&identity.certificate()).expect("a key");
            assert_eq!(Kem::sk_to_pk(&key).to_bytes()[..], public);
        }
    }
}
