//! HMAC with SHA-2 (RFC 2104). The nodes compute on shares of the messages and of the key, and reveal only
//! the codes. They see how many messages there are, and the length of each.

use std::collections::BTreeMap;

use polyclave_api::{End, MAX_CHAINED, MAX_CODES, Use, operations};
use polyclave_cipher::hmac::{KEY_BYTES, Sha2, cipher, code_bytes as allowed_bytes, hash_of};
use polyclave_cipher::modes::check_value_bytes;
use sha2::{Digest, Sha256, Sha384, Sha512};
use zeroize::{Zeroize, Zeroizing};

use crate::operations::encrypt::KeyHandle;
use crate::session::first::{First, Masked};
use crate::{Error, Result};

/// A key for HMAC of 16 to 256 bytes as the nodes keep it: one block, filled up with zeros. A longer key is
/// hashed first (FIPS 198-1, section 4).
pub fn key_block(hash: Sha2, key: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    if !KEY_BYTES.contains(&key.len()) {
        let (least, most) = (KEY_BYTES.start(), KEY_BYTES.end());
        return Err(Error::Misuse(format!("a key for hmac has {least} to {most} bytes, not {}", key.len())));
    }
    let mut block = Zeroizing::new(vec![0; hash.block_bytes()]);
    if key.len() <= hash.block_bytes() {
        block[..key.len()].copy_from_slice(key);
        return Ok(block);
    }
    let hashed = &mut block[..hash.hash_bytes()];
    match hash {
        Sha2::Sha256 => write_digest::<Sha256>(key, hashed),
        Sha2::Sha384 => write_digest::<Sha384>(key, hashed),
        Sha2::Sha512 => write_digest::<Sha512>(key, hashed),
    }
    Ok(block)
}

/// Somebody who has the hash of a long key can compute codes, so it is wiped as the key is.
fn write_digest<D: Digest>(key: &[u8], to: &mut [u8]) {
    let mut digest = D::digest(key);
    to.copy_from_slice(&digest[..]);
    digest[..].zeroize();
}

/// The check value that nodes compute of a key that is filled up to a block: the first bytes of the code of
/// zeros, as many as a code has. Only for somebody who has the key.
pub fn check_value(hash: Sha2, block: &[u8]) -> Vec<u8> {
    let (zeros, bytes) = (vec![0; hash.hash_bytes()], check_value_bytes(&cipher(hash)));
    let under = |algorithm| {
        let code = ring::hmac::sign(&ring::hmac::Key::new(algorithm, block), &zeros);
        code.as_ref()[..bytes].to_vec()
    };
    match hash {
        Sha2::Sha256 => under(ring::hmac::HMAC_SHA256),
        Sha2::Sha384 => under(ring::hmac::HMAC_SHA384),
        Sha2::Sha512 => under(ring::hmac::HMAC_SHA512),
    }
}

impl KeyHandle<'_> {
    /// The codes of some messages of at most 64 KiB each, in their order: the first `code_bytes` bytes of
    /// each, 16 or more. Messages of one length are computed together.
    pub fn hmac(&self, messages: &[&[u8]], code_bytes: usize) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let hash = self.hmac_hash()?;
        let allowed = allowed_bytes(hash);
        if !allowed.contains(&code_bytes) {
            let (least, most) = (allowed.start(), allowed.end());
            return Err(Error::Misuse(format!(
                "the key '{}' has codes of {least} to {most} bytes, not {code_bytes}",
                self.name()
            )));
        }
        if let Some(long) = messages.iter().map(|message| message.len()).find(|bytes| *bytes > MAX_CHAINED) {
            return Err(Error::Misuse(format!(
                "hmac takes messages of at most {MAX_CHAINED} bytes, because it is slow, not {long}"
            )));
        }
        let mut alike: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (i, message) in messages.iter().enumerate() {
            alike.entry(message.len()).or_default().push(i);
        }
        let mut codes = vec![Zeroizing::default(); messages.len()];
        for which in alike.values().flat_map(|which| which.chunks(MAX_CODES)) {
            let of_one_length: Vec<&[u8]> = which.iter().map(|i| messages[*i]).collect();
            let found = self.hmac_of_one_length(&of_one_length, hash.block_bytes(), code_bytes)?;
            which.iter().zip(found.chunks(code_bytes)).for_each(|(i, code)| codes[*i] = code.to_vec().into());
        }
        Ok(codes)
    }

    /// The hash of its codes of HMAC.
    pub fn hmac_hash(&self) -> Result<Sha2> {
        let cipher = &self.info()?.properties.cipher;
        let other = || Error::Misuse(format!("the key '{}' is of {cipher}, not for hmac", self.name()));
        hash_of(cipher).ok_or_else(other)
    }

    /// The codes, one after another.
    fn hmac_of_one_length(
        &self,
        messages: &[&[u8]],
        of_block: usize,
        code_bytes: usize,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let (bytes, count) = (messages[0].len(), messages.len());
        let asked =
            operations::Hmac { bytes: bytes as u32, messages: count as u32, code_bytes: code_bytes as u8 };
        let blocks = bytes.div_ceil(of_block).max(1);
        let next = |block: usize| if block + 1 == blocks { 0 } else { count * of_block };
        let expected = |block: usize| if block + 1 == blocks { count * code_bytes } else { 0 };
        let data = block_of_each(messages, of_block, 0);
        let first = First::Masked(Masked { data: &data, next: next(0), end: End::No });
        let (mut conversation, _) = self.begin(Use::Hmac(asked), first)?;
        for block in 0..blocks {
            let expected = Some(expected(block)).filter(|expected| *expected > 0);
            let (codes, mask) = conversation.bytes_and_mask(expected, next(block))?;
            if block + 1 == blocks {
                conversation.finish()?;
                return Ok(codes);
            }
            let data = block_of_each(messages, of_block, block + 1);
            let masked = Masked { data: &data, next: next(block + 1), end: End::No };
            conversation.step(&masked.under(&mask)?)?;
        }
        Err(Error::Misuse("a message without a block".into()))
    }
}

/// The block with this number of each message, filled up with zeros.
fn block_of_each(messages: &[&[u8]], of_block: usize, block: usize) -> Zeroizing<Vec<u8>> {
    let mut data = Zeroizing::new(vec![0; messages.len() * of_block]);
    for (message, place) in messages.iter().zip(data.chunks_mut(of_block)) {
        let rest = &message[(block * of_block).min(message.len())..];
        let bytes = rest.len().min(of_block);
        place[..bytes].copy_from_slice(&rest[..bytes]);
    }
    data
}
