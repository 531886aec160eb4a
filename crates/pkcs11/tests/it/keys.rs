//! Keys wrapped, unwrapped and derived.

use std::ptr;

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use cmac::{Cmac, Mac};
use cryptoki_sys::*;

use crate::common::*;

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}

fn e_k(key: &[u8], block: &[u8]) -> Vec<u8> {
    let mut block = Array::try_from(block).expect("one block");
    aes::Aes128::new_from_slice(key).expect("a key").encrypt_block(&mut block);
    block.to_vec()
}

/// A key that encrypts single blocks, to see which key was made.
fn for_blocks() -> Vec<Attribute> {
    vec![
        number(CKA_CLASS, CKO_SECRET_KEY),
        number(CKA_KEY_TYPE, CKK_AES),
        number(CKA_VALUE_LEN, 16),
        flag(CKA_TOKEN, true),
    ]
}

fn shows(session: &Session<'_>, key: CK_OBJECT_HANDLE, secret: &[u8]) {
    let made = session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &[7; 16]).expect("encrypted");
    assert_eq!(made, e_k(secret, &[7; 16]));
}

fn wrap(
    session: &Session<'_>,
    kind: CK_MECHANISM_TYPE,
    kek: CK_OBJECT_HANDLE,
    key: CK_OBJECT_HANDLE,
) -> Result<Vec<u8>, CK_RV> {
    let (mut how, mut len) = (plain(kind).raw(), 0);
    match call!(session.module, C_WrapKey(session.handle, &mut how, kek, key, ptr::null_mut(), &mut len)) {
        CKR_OK => {}
        rv => return Err(rv),
    }
    let mut out = vec![0; len as usize];
    let to = out.as_mut_ptr();
    let rv = call!(session.module, C_WrapKey(session.handle, &mut how, kek, key, to, &mut len));
    out.truncate(len as usize);
    if rv == CKR_OK { Ok(out) } else { Err(rv) }
}

fn unwrap(
    session: &Session<'_>,
    kind: CK_MECHANISM_TYPE,
    kek: CK_OBJECT_HANDLE,
    wrapped: &[u8],
) -> Result<CK_OBJECT_HANDLE, CK_RV> {
    let (mut how, mut handle, mut attributes) = (plain(kind).raw(), 0, for_blocks());
    let mut template = template(&mut attributes);
    let (from, len) = (wrapped.as_ptr().cast_mut(), wrapped.len() as CK_ULONG);
    let (at, count) = (template.as_mut_ptr(), template.len() as CK_ULONG);
    match call!(session.module, C_UnwrapKey(session.handle, &mut how, kek, from, len, at, count, &mut handle))
    {
        CKR_OK => Ok(handle),
        rv => Err(rv),
    }
}

#[test]
fn wrapped_keys_are_those_of_the_rfc_and_come_back() {
    let session = session();
    let wraps = || vec![flag(CKA_WRAP, true), flag(CKA_UNWRAP, true)];
    // RFC 3394, 4.1.
    let secret = hex("00112233445566778899aabbccddeeff");
    let kek =
        session.import("kek", CKK_AES, &hex("000102030405060708090a0b0c0d0e0f"), wraps()).expect("imported");
    let key = session.import("key", CKK_AES, &secret, vec![flag(CKA_EXTRACTABLE, true)]).expect("imported");
    let stays = session.import("stays", CKK_AES, &secret, vec![]).expect("imported");
    let wrapped = wrap(&session, CKM_AES_KEY_WRAP, kek, key).expect("wrapped");
    assert_eq!(wrapped, hex("1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"));
    assert_eq!(wrap(&session, CKM_AES_KEY_WRAP, kek, stays), Err(CKR_KEY_UNEXTRACTABLE));
    assert_eq!(wrap(&session, CKM_AES_KEY_WRAP, key, key), Err(CKR_KEY_FUNCTION_NOT_PERMITTED));
    let back = unwrap(&session, CKM_AES_KEY_WRAP, kek, &wrapped).expect("unwrapped");
    shows(&session, back, &secret);
    assert!(!session.is(back, CKA_LOCAL) && !session.is(back, CKA_ALWAYS_SENSITIVE));
    let padded = wrap(&session, CKM_AES_KEY_WRAP_KWP, kek, key).expect("wrapped");
    shows(&session, unwrap(&session, CKM_AES_KEY_WRAP_KWP, kek, &padded).expect("unwrapped"), &secret);
    let mut changed = wrapped.clone();
    changed[20] ^= 1;
    assert_eq!(unwrap(&session, CKM_AES_KEY_WRAP, kek, &changed), Err(CKR_WRAPPED_KEY_INVALID));
    assert_eq!(unwrap(&session, CKM_AES_KEY_WRAP, kek, &wrapped[..16]), Err(CKR_WRAPPED_KEY_LEN_RANGE));
    assert_eq!(
        unwrap(&session, CKM_AES_KEY_WRAP, kek + 1_000_000, &wrapped),
        Err(CKR_UNWRAPPING_KEY_HANDLE_INVALID)
    );
}

fn derive<P>(
    session: &Session<'_>,
    how: &mut Mechanism<P>,
    base: CK_OBJECT_HANDLE,
) -> Result<CK_OBJECT_HANDLE, CK_RV> {
    let (mut how, mut handle, mut attributes) = (how.raw(), 0, for_blocks());
    let mut template = template(&mut attributes);
    let (at, count) = (template.as_mut_ptr(), template.len() as CK_ULONG);
    match call!(session.module, C_DeriveKey(session.handle, &mut how, base, at, count, &mut handle)) {
        CKR_OK => Ok(handle),
        rv => Err(rv),
    }
}

#[test]
fn derived_keys_are_those_that_the_standard_says() {
    let session = session();
    let secret = data(16);
    let base = session.import("base", CKK_AES, &secret, vec![flag(CKA_DERIVE, true)]).expect("imported");
    let mut text = data(32);
    let parameter = CK_KEY_DERIVATION_STRING_DATA { pData: text.as_mut_ptr(), ulLen: 32 };
    let made = derive(&session, &mut with(CKM_AES_ECB_ENCRYPT_DATA, parameter), base).expect("derived");
    shows(&session, made, &e_k(&secret, &text[..16]));
    let parameter = CK_AES_CBC_ENCRYPT_DATA_PARAMS { iv: [5; 16], pData: text.as_mut_ptr(), length: 16 };
    let made = derive(&session, &mut with(CKM_AES_CBC_ENCRYPT_DATA, parameter), base).expect("derived");
    let mixed: Vec<u8> = text[..16].iter().map(|byte| byte ^ 5).collect();
    shows(&session, made, &e_k(&secret, &mixed));

    let (mut label, mut context) = (*b"label\0", *b"context");
    let mut counter = CK_SP800_108_COUNTER_FORMAT { bLittleEndian: 0, ulWidthInBits: 32 };
    let mut length = CK_SP800_108_DKM_LENGTH_FORMAT {
        dkmLengthMethod: CK_SP800_108_DKM_LENGTH_SUM_OF_KEYS,
        bLittleEndian: 0,
        ulWidthInBits: 32,
    };
    let mut parts = [
        CK_PRF_DATA_PARAM {
            type_: CK_SP800_108_ITERATION_VARIABLE,
            pValue: (&raw mut counter).cast(),
            ulValueLen: size_of_val(&counter) as CK_ULONG,
        },
        CK_PRF_DATA_PARAM {
            type_: CK_SP800_108_BYTE_ARRAY,
            pValue: label.as_mut_ptr().cast(),
            ulValueLen: 6,
        },
        CK_PRF_DATA_PARAM {
            type_: CK_SP800_108_BYTE_ARRAY,
            pValue: context.as_mut_ptr().cast(),
            ulValueLen: 7,
        },
        CK_PRF_DATA_PARAM {
            type_: CK_SP800_108_DKM_LENGTH,
            pValue: (&raw mut length).cast(),
            ulValueLen: size_of_val(&length) as CK_ULONG,
        },
    ];
    let parameter = |parts: &mut [CK_PRF_DATA_PARAM]| CK_SP800_108_KDF_PARAMS {
        prfType: CKM_AES_CMAC,
        ulNumberOfDataParams: parts.len() as CK_ULONG,
        pDataParams: parts.as_mut_ptr(),
        ulAdditionalDerivedKeys: 0,
        pAdditionalDerivedKeys: ptr::null_mut(),
    };
    let made =
        derive(&session, &mut with(CKM_SP800_108_COUNTER_KDF, parameter(&mut parts)), base).expect("derived");
    let mut oracle = Cmac::<aes::Aes128>::new_from_slice(&secret).expect("a key");
    oracle.update(&[0, 0, 0, 1]);
    oracle.update(b"label\0context");
    oracle.update(&[0, 0, 0, 128]);
    shows(&session, made, &oracle.finalize().into_bytes());

    // Without a counter; of another function; too little.
    let told = derive(&session, &mut with(CKM_SP800_108_COUNTER_KDF, parameter(&mut parts[1..])), base);
    assert_eq!(told, Err(CKR_MECHANISM_PARAM_INVALID));
    let other = CK_SP800_108_KDF_PARAMS { prfType: CKM_SHA256_HMAC, ..parameter(&mut parts) };
    assert_eq!(
        derive(&session, &mut with(CKM_SP800_108_COUNTER_KDF, other), base),
        Err(CKR_MECHANISM_PARAM_INVALID)
    );
    let parameter = CK_KEY_DERIVATION_STRING_DATA { pData: text.as_mut_ptr(), ulLen: 8 };
    let told = derive(&session, &mut with(CKM_AES_ECB_ENCRYPT_DATA, parameter), base);
    assert_eq!(told, Err(CKR_MECHANISM_PARAM_INVALID));
}
