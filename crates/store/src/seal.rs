//! Sealing of single values: format, nonce, ciphertext, tag.
//!
//! The format, the table and the key of the record are authenticated with each value, so a value can only be
//! opened in its own place. Nonces are random: with 192 bits a repetition is not to be expected.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use super::{Result, Secret, StoreError};

/// The nonce of a sealed value. It is drawn anew for each, so it distinguishes the value from all others that
/// were ever sealed.
pub(super) type Stamp = [u8; NONCE];

const FORMAT: u8 = 1;
const NONCE: usize = 24;
const TAG: usize = 16;

/// Seals under one secret.
pub(super) struct Seal {
    cipher: XChaCha20Poly1305,
    rows: Zeroizing<[u8; 32]>,
}

impl Seal {
    pub(super) fn new(secret: &Secret) -> Seal {
        let key = secret.derive("polyclave 2026 node store record");
        let rows = secret.derive("polyclave 2026 node store digest of rows");
        Seal { cipher: XChaCha20Poly1305::new((&*key).into()), rows }
    }

    /// A keyed hash of a row, for the digest of all rows.
    pub(super) fn hash_of_row(&self, table: &str, record: &[u8], stamp: &Stamp) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.rows);
        hasher.update(stamp).update(&place(table, record));
        *hasher.finalize().as_bytes()
    }

    pub(super) fn seal(&self, table: &str, record: &[u8], mut value: Zeroizing<Vec<u8>>) -> Result<Vec<u8>> {
        let mut sealed = vec![FORMAT; 1 + NONCE];
        random_bytes(&mut sealed[1..])?;
        let nonce = nonce(&sealed[1..]);
        let tag =
            self.cipher.encrypt_inout_detached(&nonce, &place(table, record), value.as_mut_slice().into());
        let tag = tag.map_err(|_| StoreError::Failed("a record is too long to be sealed".into()))?;
        sealed.reserve_exact(value.len() + TAG);
        sealed.extend_from_slice(&value);
        sealed.extend_from_slice(&tag);
        Ok(sealed)
    }

    pub(super) fn open(&self, table: &str, record: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let broken = || StoreError::corrupt(format!("the record {} of {table}", readable(record)));
        if sealed.len() < 1 + NONCE + TAG || sealed[0] != FORMAT {
            return Err(broken());
        }
        let (body, tag) = sealed[1 + NONCE..].split_at(sealed.len() - 1 - NONCE - TAG);
        let mut value = Zeroizing::new(body.to_vec());
        let nonce = nonce(&sealed[1..1 + NONCE]);
        let tag = tag.try_into().expect("16 bytes are left");
        self.cipher
            .decrypt_inout_detached(&nonce, &place(table, record), value.as_mut_slice().into(), tag)
            .map_err(|_| broken())?;
        Ok(value)
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

fn nonce(bytes: &[u8]) -> XNonce {
    XNonce::try_from(bytes).expect("24 bytes")
}

/// The stamp of a sealed value. It ends with zeros if the value is too short to have one; such a value does
/// not open.
pub(super) fn stamp_of(sealed: &[u8]) -> Stamp {
    let mut stamp = Stamp::default();
    sealed.iter().skip(1).zip(&mut stamp).for_each(|(byte, to)| *to = *byte);
    stamp
}

/// The place of a value.
fn place(table: &str, record: &[u8]) -> Vec<u8> {
    [&[FORMAT, table.len() as u8][..], table.as_bytes(), record].concat()
}

/// A record's key for people: names as they are, ids in hexadecimal.
pub(super) fn readable(record: &[u8]) -> String {
    match str::from_utf8(record) {
        Ok(name) if name.bytes().all(|b| b.is_ascii_graphic()) => name.into(),
        _ => hex::encode(record),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> (Seal, Vec<u8>) {
        let seal = Seal::new(&Secret::from_bytes([1; 32]));
        let sealed = seal.seal("keys", b"name", Zeroizing::new(b"value".to_vec())).expect("sealed");
        (seal, sealed)
    }

    #[test]
    fn a_value_opens_in_its_place_only() {
        let (seal, sealed) = sealed();
        assert_eq!(*seal.open("keys", b"name", &sealed).expect("opens"), b"value");
        assert!(seal.open("keys", b"nam", &sealed).is_err());
        assert!(seal.open("key", b"sname", &sealed).is_err());
        assert!(Seal::new(&Secret::from_bytes([2; 32])).open("keys", b"name", &sealed).is_err());
    }

    #[test]
    fn no_flipped_bit_and_no_cut_opens() {
        let (seal, sealed) = sealed();
        for bit in 0..8 * sealed.len() {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(seal.open("keys", b"name", &flipped), Err(StoreError::Corrupt { .. })), "{bit}");
        }
        for len in 0..sealed.len() {
            assert!(seal.open("keys", b"name", &sealed[..len]).is_err(), "{len}");
        }
    }
}
