//! Ciphers of libraries, as clients and nodes use them around the protocols. Whether a tag fits is public, and the libraries branch on it where they
//! open; the same cipher runs there, so they are watched while they seal.

use std::hint::black_box;

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::{Subject, secrets};

/// No whole number of blocks, and more than any loop works on at once.
const LEN: usize = 1003;

pub const SUBJECTS: &[Subject] = &[
    ("library: AES-256-GCM, for files in envelopes", aes_gcm),
    ("library: XChaCha20-Poly1305, for the stores of nodes", xchacha),
];

fn aes_gcm() {
    let key =
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secrets::bytes(32)).expect("a key has 32 bytes"));
    let mut data = secrets::bytes(LEN);
    let nonce = Nonce::assume_unique_for_key([7; NONCE_LEN]);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(b"a head"), &mut data).expect("it is short");
    black_box((data, tag.as_ref().to_vec()));
}

fn xchacha() {
    let key: [u8; 32] = *secrets::bytes(32).first_chunk().expect("32 bytes");
    let mut data = secrets::bytes(LEN);
    let cipher = XChaCha20Poly1305::new(&key.into());
    let tag = cipher.encrypt_inout_detached(&[7; 24].into(), b"a place", data.as_mut_slice().into());
    black_box((data, tag.expect("it is short")));
}
