//! Every mode of operation as a function of bytes.

use std::io::{Cursor, Write};

use polyclave_client::{Aead, Client, Padding, Result};

use super::nothing;

/// How a message of GCM or CCM is encrypted.
#[derive(Clone, Copy)]
pub struct AeadEncryption<'a> {
    pub additional: &'a [u8],
    pub nonce: Option<&'a [u8]>,
    pub tag_bytes: usize,
}

/// How it is decrypted.
#[derive(Clone, Copy)]
pub struct AeadDecryption<'a> {
    pub additional: &'a [u8],
    pub nonce_bytes: usize,
    pub tag_bytes: usize,
}

impl Default for AeadEncryption<'_> {
    fn default() -> Self {
        AeadEncryption { additional: &[], nonce: None, tag_bytes: 16 }
    }
}

impl Default for AeadDecryption<'_> {
    fn default() -> Self {
        AeadDecryption { additional: &[], nonce_bytes: 12, tag_bytes: 16 }
    }
}

impl<'a> AeadEncryption<'a> {
    fn of(&self, aead: Aead<'a>) -> Aead<'a> {
        aead.aad(self.additional).nonce(self.nonce).tag_bytes(self.tag_bytes)
    }
}

impl<'a> AeadDecryption<'a> {
    fn of(&self, aead: Aead<'a>) -> Aead<'a> {
        aead.aad(self.additional).nonce_bytes(self.nonce_bytes).tag_bytes(self.tag_bytes)
    }
}

/// From memory.
pub fn encrypt_gcm(client: &Client, key: &str, how: &AeadEncryption<'_>, message: &[u8]) -> Result<Vec<u8>> {
    how.of(client.key(key)?.gcm()).encrypt(message)
}

pub fn encrypt_ccm(client: &Client, key: &str, how: &AeadEncryption<'_>, message: &[u8]) -> Result<Vec<u8>> {
    how.of(client.key(key)?.ccm()).encrypt(message)
}

pub fn decrypt_ccm(client: &Client, key: &str, how: &AeadDecryption<'_>, message: &[u8]) -> Result<Vec<u8>> {
    Ok(how.of(client.key(key)?.ccm()).decrypt(message)?.to_vec())
}

pub fn encrypt_siv(client: &Client, key: &str, additional: &[Vec<u8>], message: &[u8]) -> Result<Vec<u8>> {
    client.key(key)?.siv().aads(additional).encrypt(message)
}

pub fn decrypt_siv(client: &Client, key: &str, additional: &[Vec<u8>], message: &[u8]) -> Result<Vec<u8>> {
    Ok(client.key(key)?.siv().aads(additional).decrypt(message)?.to_vec())
}

/// From the key `old` to the key `new`.
pub fn rewrap_gcm(
    client: &Client,
    (old, new): (&str, &str),
    additional: &[u8],
    message: &[u8],
) -> Result<Vec<u8>> {
    Ok(client.key(old)?.gcm().aad(additional).rewrap(new, message)?.0)
}

pub fn seal(client: &Client, key: &str, data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.seal(key, &mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

pub fn open(client: &Client, key: &str, sealed: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.open_sealed(key, &mut &sealed[..], &mut out, &mut nothing)?;
    Ok(out)
}

/// Nonce, ciphertext and tag.
pub fn gcm(client: &Client, key: &str, additional: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.key(key)?.gcm().aad(additional).encrypt_stream(&mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

pub fn ungcm(client: &Client, key: &str, additional: &[u8], message: &[u8]) -> Result<Vec<u8>> {
    ungcm_as(client, key, &AeadDecryption { additional, ..AeadDecryption::default() }, message)
}

pub fn ungcm_as(client: &Client, key: &str, how: &AeadDecryption<'_>, message: &[u8]) -> Result<Vec<u8>> {
    let (mut out, key) = (Vec::new(), client.key(key)?);
    let outcome = how.of(key.gcm()).decrypt_stream(&mut Cursor::new(message), &mut out, &mut nothing);
    assert!(outcome.is_ok() || out.is_empty(), "something was written that has not authenticated");
    outcome.map(|_| out)
}

/// First counter block and ciphertext.
pub fn ctr(client: &Client, key: &str, data: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut first, mut out) = (Vec::new(), Vec::new());
    let mut start = note(&mut first);
    client.key(key)?.ctr().on_start(&mut start).encrypt_stream(&mut &data[..], &mut out, &mut nothing)?;
    drop(start);
    Ok((first, out))
}

pub fn unctr(client: &Client, key: &str, counter: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.key(key)?.ctr().decrypt_stream(counter, &mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

/// Initial block and ciphertext.
pub fn cbc(client: &Client, key: &str, padding: Padding, data: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut first, mut out) = (Vec::new(), Vec::new());
    let mut start = note(&mut first);
    let key = client.key(key)?;
    let cbc = key.cbc().padding(padding).on_start(&mut start);
    cbc.encrypt_stream(&mut &data[..], &mut out, &mut nothing)?;
    drop(start);
    Ok((first, out))
}

pub fn uncbc(client: &Client, key: &str, padding: Padding, initial: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let key = client.key(key)?;
    key.cbc().padding(padding).initial(initial).decrypt_stream(&mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

pub fn ecb(client: &Client, key: &str, padding: Padding, data: &[u8]) -> Result<Vec<u8>> {
    client.key(key)?.ecb().padding(padding).encrypt(data)
}

pub fn unecb(client: &Client, key: &str, padding: Padding, data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.key(key)?.ecb().padding(padding).decrypt_stream(&mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

pub fn cmac(client: &Client, key: &str, data: &[u8]) -> Result<Vec<u8>> {
    Ok(client.key(key)?.cmac_stream(&mut &data[..], &mut nothing)?.to_vec())
}

fn note(first: &mut Vec<u8>) -> impl FnMut(&[u8], &mut dyn Write) -> std::io::Result<()> + '_ {
    |block, _| {
        first.extend(block);
        Ok(())
    }
}
