//! Every mode of operation as a function of bytes.

use std::io::{Cursor, Write};

use polyclave_client::{AeadDecryption, AeadEncryption, Client, Padding, Result};

use super::nothing;

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
    let how = AeadEncryption { additional, ..AeadEncryption::default() };
    client.encrypt_gcm(key, &how, &mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

pub fn ungcm(client: &Client, key: &str, additional: &[u8], message: &[u8]) -> Result<Vec<u8>> {
    ungcm_as(client, key, &AeadDecryption { additional, ..AeadDecryption::default() }, message)
}

pub fn ungcm_as(client: &Client, key: &str, how: &AeadDecryption<'_>, message: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let outcome = client.decrypt_gcm(key, how, &mut Cursor::new(message), &mut out, &mut nothing);
    assert!(outcome.is_ok() || out.is_empty(), "something was written that has not authenticated");
    outcome.map(|_| out)
}

/// First counter block and ciphertext.
pub fn ctr(client: &Client, key: &str, data: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut first, mut out) = (Vec::new(), Vec::new());
    let mut start = note(&mut first);
    client.encrypt_ctr(key, &mut &data[..], &mut out, &mut start, &mut nothing)?;
    drop(start);
    Ok((first, out))
}

pub fn unctr(client: &Client, key: &str, counter: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.decrypt_ctr(key, counter, &mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

/// Initial block and ciphertext.
pub fn cbc(client: &Client, key: &str, padding: Padding, data: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut first, mut out) = (Vec::new(), Vec::new());
    let mut start = note(&mut first);
    client.encrypt_cbc(key, padding, &mut &data[..], &mut out, &mut start, &mut nothing)?;
    drop(start);
    Ok((first, out))
}

pub fn uncbc(client: &Client, key: &str, padding: Padding, initial: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.decrypt_cbc(key, padding, initial, &mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

pub fn ecb(client: &Client, key: &str, padding: Padding, data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.encrypt_ecb(key, &[], padding, &mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

pub fn unecb(client: &Client, key: &str, padding: Padding, data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    client.decrypt_ecb(key, &[], padding, &mut &data[..], &mut out, &mut nothing)?;
    Ok(out)
}

pub fn cmac(client: &Client, key: &str, data: &[u8]) -> Result<Vec<u8>> {
    client.cmac(key, &mut &data[..], &mut nothing)
}

fn note(first: &mut Vec<u8>) -> impl FnMut(&[u8], &mut dyn Write) -> std::io::Result<()> + '_ {
    |block, _| {
        first.extend(block);
        Ok(())
    }
}
