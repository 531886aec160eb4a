//! Templates, mechanisms and data, as programs give them.

use std::ffi::c_void;
use std::ptr;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes128Gcm, KeyInit};
use cryptoki_sys::*;

/// An attribute of a template.
pub type Attribute = (CK_ATTRIBUTE_TYPE, Vec<u8>);

pub fn flag(kind: CK_ATTRIBUTE_TYPE, is: bool) -> Attribute {
    (kind, vec![is.into()])
}

pub fn number(kind: CK_ATTRIBUTE_TYPE, n: CK_ULONG) -> Attribute {
    (kind, n.to_ne_bytes().to_vec())
}

pub fn text(kind: CK_ATTRIBUTE_TYPE, text: &str) -> Attribute {
    (kind, text.into())
}

/// A template in C, which points into the attributes.
pub fn template(attributes: &mut [Attribute]) -> Vec<CK_ATTRIBUTE> {
    let of = |(kind, value): &mut Attribute| CK_ATTRIBUTE {
        type_: *kind,
        pValue: value.as_mut_ptr().cast(),
        ulValueLen: value.len() as CK_ULONG,
    };
    attributes.iter_mut().map(of).collect()
}

/// A mechanism with a parameter in memory.
pub struct Mechanism<P> {
    kind: CK_MECHANISM_TYPE,
    pub parameter: Option<P>,
}

pub fn plain(kind: CK_MECHANISM_TYPE) -> Mechanism<u8> {
    Mechanism { kind, parameter: None }
}

pub fn with<P>(kind: CK_MECHANISM_TYPE, parameter: P) -> Mechanism<P> {
    Mechanism { kind, parameter: Some(parameter) }
}

/// GCM with a nonce. All of it lives as long as the test.
pub fn gcm(iv: &[u8], additional: &[u8], tag_bits: u64) -> Mechanism<CK_GCM_PARAMS> {
    let (iv, additional) = (iv.to_vec().leak(), additional.to_vec().leak());
    let parameter = CK_GCM_PARAMS {
        pIv: if iv.is_empty() { ptr::null_mut() } else { iv.as_mut_ptr() },
        ulIvLen: iv.len() as CK_ULONG,
        ulIvBits: 8 * iv.len() as CK_ULONG,
        pAAD: additional.as_mut_ptr(),
        ulAADLen: additional.len() as CK_ULONG,
        ulTagBits: tag_bits,
    };
    with(CKM_AES_GCM, parameter)
}

impl<P> Mechanism<P> {
    pub fn raw(&mut self) -> CK_MECHANISM {
        let (at, len) = match &mut self.parameter {
            Some(parameter) => (ptr::from_mut(parameter).cast::<c_void>(), size_of::<P>()),
            None => (ptr::null_mut(), 0),
        };
        CK_MECHANISM { mechanism: self.kind, pParameter: at, ulParameterLen: len as CK_ULONG }
    }
}

/// So many bytes, not all the same.
pub fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// What another program makes of a message in AES-128-GCM with the additional data "header": ciphertext and
/// tag.
pub fn sealed_by_another(secret: &[u8], nonce: &[u8], message: &[u8]) -> Vec<u8> {
    let cipher = Aes128Gcm::new_from_slice(secret).expect("a key");
    let nonce = nonce.try_into().expect("12 bytes");
    cipher.encrypt(&nonce, Payload { msg: message, aad: b"header" }).expect("encrypted")
}
