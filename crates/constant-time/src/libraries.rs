//! Ciphers and hashes of libraries, as clients and nodes use them around the protocols. Whether a tag fits is
//! public, and the libraries branch on it where they open: `tags.supp` names these places, and nothing else
//! of what runs there.

use std::hint::black_box;

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use polyclave_kernels::secret::{is_secret, public};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::{Subject, secrets};

/// No whole number of blocks, and more than any loop works on at once.
const LEN: usize = 1003;

pub const SUBJECTS: &[Subject] = &[
    ("library: AES-256-GCM, for files in envelopes", aes_gcm),
    ("library: BLAKE3, for their commitments", blake3),
    ("library: XChaCha20-Poly1305, for the stores of nodes and keys under PINs", xchacha),
];

fn blake3() {
    let mut hasher = blake3::Hasher::new_derive_key("constant time");
    hasher.update(&secrets::bytes(9 * LEN)).update(b"a head").update(&secrets::bytes(32));
    black_box(*hasher.finalize().as_bytes());
}

fn aes_gcm() {
    let key =
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secrets::bytes(32)).expect("a key has 32 bytes"));
    let mut data = secrets::bytes(LEN);
    let nonce = Nonce::assume_unique_for_key([7; NONCE_LEN]);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(b"a head"), &mut data).expect("it is short");
    data.extend_from_slice(tag.as_ref());
    let nonce = Nonce::assume_unique_for_key([7; NONCE_LEN]);
    let opened = key.open_in_place(nonce, Aad::from(b"a head"), &mut data).expect("the tag fits");
    assert!(opened.len() == LEN && is_secret(opened), "what is opened is secret to memcheck");
}

fn xchacha() {
    let key: [u8; 32] = *secrets::bytes(32).first_chunk().expect("32 bytes");
    let mut data = secrets::bytes(LEN);
    let cipher = XChaCha20Poly1305::new(&key.into());
    let tag = cipher.encrypt_inout_detached(&[7; 24].into(), b"a place", data.as_mut_slice().into());
    let tag = tag.expect("it is short");
    let opened = cipher.decrypt_inout_detached(&[7; 24].into(), b"a place", data.as_mut_slice().into(), &tag);
    // The compiler may move the library's branch on this to here.
    assert!(public(opened.is_ok()), "the tag fits");
    assert!(is_secret(&data), "what is opened is secret to memcheck");
}
