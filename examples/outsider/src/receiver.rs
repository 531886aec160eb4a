//! The receiver's RSA key: the public one as nodes read it, and a pair made for a demonstration.

use anyhow::{Context, Result, ensure};
use getrandom::SysRng;
use rsa::pkcs1::EncodeRsaPublicKey;
use rsa::pkcs8::{DecodePublicKey, EncodePrivateKey, EncodePublicKey, LineEnding};
use rsa::rand_core::UnwrapErr;
use rsa::traits::PublicKeyParts;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The public exponent that nodes can encrypt with.
const EXPONENT: u32 = 65537;
/// Bytes of a name for a key.
pub const KEY_ID_BYTES: usize = 20;

/// An RSA public key with the exponent 65537.
pub struct PublicKey {
    modulus: Vec<u8>,
    der: Vec<u8>,
}

impl PublicKey {
    /// From PEM, `BEGIN PUBLIC KEY`. That it is the receiver's, somebody else has to make sure: a
    /// certificate, a telephone.
    pub fn from_pem(pem: &str) -> Result<PublicKey> {
        let key = rsa::PublicKey::from_public_key_pem(pem)
            .context("the receiver's key is no RSA public key in PEM ('openssl pkey -pubout' writes one)")?;
        ensure!(
            key.e_bytes()[..] == EXPONENT.to_be_bytes()[1..],
            "the receiver's key has another public exponent than {EXPONENT}"
        );
        Ok(PublicKey { modulus: key.n_bytes().into_vec(), der: key.to_pkcs1_der()?.into_vec() })
    }

    /// N, the most significant byte first.
    pub fn modulus(&self) -> &[u8] {
        &self.modulus
    }

    /// As in PKCS#1: the same bytes for the same key.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// A name for it (RFC 7093, section 2, method 1): 160 bits of a hash of the key.
    pub fn id(&self) -> [u8; KEY_ID_BYTES] {
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&Sha256::digest(&self.der)[..KEY_ID_BYTES]);
        id
    }
}

/// A fresh pair in PEM: private and public.
pub fn generate(bits: usize) -> Result<(Zeroizing<String>, String)> {
    let private = rsa::PrivateKey::new(&mut UnwrapErr(SysRng), bits).context("no RSA key could be made")?;
    let public = private.to_public_key().to_public_key_pem(LineEnding::LF).context("cannot write a key")?;
    Ok((private.to_pkcs8_pem(LineEnding::LF).context("cannot write a key")?, public))
}
