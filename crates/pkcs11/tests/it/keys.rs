//! Keys wrapped, unwrapped and derived.

use std::ptr;

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use cmac::{Cmac, Mac};
use cryptoki_sys::*;

use crate::common::*;

pub fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}

pub fn e_k(key: &[u8], block: &[u8]) -> Vec<u8> {
    let mut block = Array::try_from(block).expect("one block");
    match key.len() {
        16 => aes::Aes128::new_from_slice(key).expect("a key").encrypt_block(&mut block),
        _ => aes::Aes192::new_from_slice(key).expect("a key").encrypt_block(&mut block),
    }
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

pub fn wrap(
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
    unwrap_as(session, kind, kek, wrapped, for_blocks())
}

pub fn unwrap_as(
    session: &Session<'_>,
    kind: CK_MECHANISM_TYPE,
    kek: CK_OBJECT_HANDLE,
    wrapped: &[u8],
    mut attributes: Vec<Attribute>,
) -> Result<CK_OBJECT_HANDLE, CK_RV> {
    let (mut how, mut handle) = (plain(kind).raw(), 0);
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

/// RFC 3394, 4.6.
#[test]
fn a_long_key_under_a_long_key_is_that_of_the_rfc() {
    let session = session();
    let wraps = vec![flag(CKA_WRAP, true), flag(CKA_UNWRAP, true)];
    let counting: Vec<u8> = (0..32).collect();
    let kek = session.import("kek-256", CKK_AES, &counting, wraps).expect("imported");
    let secret = hex("00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f");
    let key = session.import("key-256", CKK_AES, &secret, vec![flag(CKA_EXTRACTABLE, true)]);
    let wrapped = wrap(&session, CKM_AES_KEY_WRAP, kek, key.expect("imported")).expect("wrapped");
    assert_eq!(
        wrapped,
        hex("28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21")
    );
}

fn derive<P>(
    session: &Session<'_>,
    how: &mut Mechanism<P>,
    base: CK_OBJECT_HANDLE,
) -> Result<CK_OBJECT_HANDLE, CK_RV> {
    derive_as(session, how, base, for_blocks())
}

pub fn derive_as<P>(
    session: &Session<'_>,
    how: &mut Mechanism<P>,
    base: CK_OBJECT_HANDLE,
    mut attributes: Vec<Attribute>,
) -> Result<CK_OBJECT_HANDLE, CK_RV> {
    let (mut how, mut handle) = (how.raw(), 0);
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

    // A base derives keys of one length.
    let other = |label: &str| {
        session.import(label, CKK_AES, &secret, vec![flag(CKA_DERIVE, true)]).expect("imported")
    };
    let of_length = |bytes: CK_ULONG| {
        let mut attributes = for_blocks();
        attributes.retain(|(kind, _)| *kind != CKA_VALUE_LEN);
        attributes.push(number(CKA_VALUE_LEN, bytes));
        attributes
    };
    let longer =
        derive_as(&session, &mut with(CKM_SP800_108_COUNTER_KDF, parameter(&mut parts)), base, of_length(24));
    assert_eq!(longer, Err(CKR_TEMPLATE_INCONSISTENT));
    let base_of_24 = other("base-of-24");

    // The length of the blocks that the key is taken from: of one, and of two for one and a half.
    let mut of_blocks =
        CK_SP800_108_DKM_LENGTH_FORMAT { dkmLengthMethod: CK_SP800_108_DKM_LENGTH_SUM_OF_SEGMENTS, ..length };
    parts[3].pValue = (&raw mut of_blocks).cast();
    for (bytes, base) in [(16, base), (24, base_of_24)] {
        let made = derive_as(
            &session,
            &mut with(CKM_SP800_108_COUNTER_KDF, parameter(&mut parts)),
            base,
            of_length(bytes),
        );
        let blocks = |counter: u8| {
            let mut oracle = Cmac::<aes::Aes128>::new_from_slice(&secret).expect("a key");
            oracle.update(&[0, 0, 0, counter]);
            oracle.update(b"label\0context");
            oracle.update(&[0, 0, if bytes == 16 { 0 } else { 1 }, if bytes == 16 { 128 } else { 0 }]);
            oracle.finalize().into_bytes()
        };
        let derived = [blocks(1), blocks(2)].concat();
        shows(&session, made.expect("derived"), &derived[..bytes as usize]);
    }

    // A length that does not fit into its place: of 256 bits in one byte. That of 128 does.
    for (bytes, expected) in [(32, Err(CKR_MECHANISM_PARAM_INVALID)), (16, Ok(()))] {
        for little_endian in [0, 1] {
            let mut short =
                CK_SP800_108_DKM_LENGTH_FORMAT { bLittleEndian: little_endian, ulWidthInBits: 8, ..length };
            parts[3].pValue = (&raw mut short).cast();
            let mut how = with(CKM_SP800_108_COUNTER_KDF, parameter(&mut parts));
            assert_eq!(derive_as(&session, &mut how, base, of_length(bytes)).map(drop), expected);
        }
    }

    // The standard allows one length at most ("If specified, only one instance of this type may be
    // specified").
    parts[3].pValue = (&raw mut length).cast();
    let mut twice = [parts[0], parts[3], parts[1], parts[3]];
    let message = derive(&session, &mut with(CKM_SP800_108_COUNTER_KDF, parameter(&mut twice)), base);
    assert_eq!(message, Err(CKR_MECHANISM_PARAM_INVALID));
    let once = derive(&session, &mut with(CKM_SP800_108_COUNTER_KDF, parameter(&mut twice[..3])), base);
    assert!(once.is_ok());

    // Without a counter; of another function; too little.
    let message = derive(&session, &mut with(CKM_SP800_108_COUNTER_KDF, parameter(&mut parts[1..])), base);
    assert_eq!(message, Err(CKR_MECHANISM_PARAM_INVALID));
    let other = CK_SP800_108_KDF_PARAMS { prfType: CKM_SHA256_HMAC, ..parameter(&mut parts) };
    assert_eq!(
        derive(&session, &mut with(CKM_SP800_108_COUNTER_KDF, other), base),
        Err(CKR_MECHANISM_PARAM_INVALID)
    );
    let parameter = CK_KEY_DERIVATION_STRING_DATA { pData: text.as_mut_ptr(), ulLen: 8 };
    let message = derive(&session, &mut with(CKM_AES_ECB_ENCRYPT_DATA, parameter), base);
    assert_eq!(message, Err(CKR_MECHANISM_PARAM_INVALID));
}

/// With `gcm_nonce = "caller"`, the default, whatever makes the key.
#[test]
fn keys_that_only_decrypt_are_made_and_decrypt() {
    let session = session();
    let secret = data(16);
    let only = || [flag(CKA_ENCRYPT, false), flag(CKA_DECRYPT, true)].to_vec();
    let mut how = gcm(&[1; 12], b"header", 128);
    let sealed = sealed_by_another(&secret, &[1; 12], b"text");
    let opens = |key: CK_OBJECT_HANDLE, how: &mut Mechanism<CK_GCM_PARAMS>| {
        assert!(session.is(key, CKA_DECRYPT) && !session.is(key, CKA_ENCRYPT));
        assert_eq!(session.init(Does::Encrypt, how, key), CKR_KEY_FUNCTION_NOT_PERMITTED);
        session.run(Does::Decrypt, how, key, &sealed)
    };
    let imported = session.import("opens", CKK_AES, &secret, only()).expect("imported");
    assert_eq!(opens(imported, &mut how), Ok(b"text".to_vec()));
    // In every mode of the token, and with a nonce of another length.
    let block = e_k(&secret, &[7; 16]);
    assert_eq!(session.run(Does::Decrypt, &mut plain(CKM_AES_ECB), imported, &block), Ok(vec![7; 16]));
    let mixed: Vec<u8> = [7u8 ^ 5; 16].to_vec();
    assert_eq!(session.run(Does::Decrypt, &mut with(CKM_AES_CBC, [5u8; 16]), imported, &block), Ok(mixed));
    let message = session.run(Does::Decrypt, &mut gcm(&[1; 16], b"header", 128), imported, &sealed);
    assert_eq!(
        message,
        Err(CKR_ENCRYPTED_DATA_INVALID),
        "the nonce is taken, and is not that of the message"
    );

    let generated = [only(), vec![number(CKA_VALUE_LEN, 16)]].concat();
    let generated = session.generate(CKM_AES_KEY_GEN, generated).expect("made");
    assert_eq!(opens(generated, &mut how), Err(CKR_ENCRYPTED_DATA_INVALID), "under another key");

    let leaves = vec![flag(CKA_EXTRACTABLE, true)];
    let full = session.import("opens-and-leaves", CKK_AES, &secret, leaves).expect("imported");
    let wraps = vec![flag(CKA_WRAP, true), flag(CKA_UNWRAP, true), flag(CKA_DERIVE, true)];
    let kek = session.import("opens-kek", CKK_AES, &secret, wraps).expect("imported");
    let wrapped = wrap(&session, CKM_AES_KEY_WRAP, kek, full).expect("wrapped");
    let of_secret = || [only(), for_blocks()].concat();
    let unwrapped = unwrap_as(&session, CKM_AES_KEY_WRAP, kek, &wrapped, of_secret()).expect("unwrapped");
    assert_eq!(opens(unwrapped, &mut how), Ok(b"text".to_vec()));

    let mut text = [0; 16];
    let parameter = CK_KEY_DERIVATION_STRING_DATA { pData: text.as_mut_ptr(), ulLen: 16 };
    let derived = derive_as(&session, &mut with(CKM_AES_ECB_ENCRYPT_DATA, parameter), kek, of_secret());
    assert_eq!(opens(derived.expect("derived"), &mut how), Err(CKR_ENCRYPTED_DATA_INVALID));

    let (mut attributes, mut copied) = (vec![flag(CKA_ENCRYPT, false)], 0);
    let mut template = template(&mut attributes);
    let at = template.as_mut_ptr();
    assert_eq!(call!(session.module, C_CopyObject(session.handle, full, at, 1, &mut copied)), CKR_OK);
    assert_eq!(opens(copied, &mut how), Ok(b"text".to_vec()));
}

/// A handle stands for a version, whatever operation it is used in, and stays one after a rotation.
#[test]
fn old_handles_stand_for_their_version_in_every_operation() {
    let own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let (secret, other) = (data(16), vec![0x2d; 16]);
    let wraps = vec![flag(CKA_WRAP, true), flag(CKA_UNWRAP, true)];
    let kek = session.import("old-kek", CKK_AES, &secret, wraps).expect("made");
    let leaves = vec![flag(CKA_EXTRACTABLE, true)];
    let key = session.import("old-key", CKK_AES, &other, leaves).expect("made");
    let base = session.import("old-base", CKK_AES, &secret, vec![flag(CKA_DERIVE, true)]).expect("made");
    let signs = vec![flag(CKA_SIGN, true), flag(CKA_VERIFY, true)];
    let mac = session.import("old-mac", CKK_AES, &secret, signs).expect("made");
    let sealed = session.run(Does::Encrypt, &mut gcm(&[1; 12], b"", 128), key, b"text").expect("encrypted");
    let code = session.run(Does::Sign, &mut plain(CKM_AES_CMAC), mac, b"text").expect("signed");
    let wrapped = wrap(&session, CKM_AES_KEY_WRAP, kek, key).expect("wrapped");
    let client = own.cluster.client();
    for name in ["old-kek", "old-key", "old-base", "old-mac"] {
        client.rotate(&format!("own0.{name}")).expect("rotated");
    }
    let newest = |label: &str| {
        let [new, old] = session.find(vec![text(CKA_LABEL, label)])[..] else { panic!("two versions") };
        (new, old)
    };
    for (label, handle) in [("old-kek", kek), ("old-key", key), ("old-base", base), ("old-mac", mac)] {
        assert_eq!(newest(label).1, handle);
    }
    // Encryption and decryption, also of what was encrypted before.
    shows(&session, key, &other);
    assert_eq!(session.run(Does::Decrypt, &mut gcm(&[1; 12], b"", 128), key, &sealed), Ok(b"text".to_vec()));
    let new = newest("old-key").0;
    let under_new = session.run(Does::Decrypt, &mut gcm(&[1; 12], b"", 128), new, &sealed);
    assert_eq!(under_new, Err(CKR_ENCRYPTED_DATA_INVALID));
    // Codes.
    let verify = |key| {
        let mut how = plain(CKM_AES_CMAC).raw();
        assert_eq!(call!(module, C_VerifyInit(session.handle, &mut how, key)), CKR_OK);
        let (from, at) = (b"text".as_ptr().cast_mut(), code.as_ptr().cast_mut());
        call!(module, C_Verify(session.handle, from, 4, at, 16))
    };
    assert_eq!((verify(mac), verify(newest("old-mac").0)), (CKR_OK, CKR_SIGNATURE_INVALID));
    // Wrapping and unwrapping.
    assert_eq!(wrap(&session, CKM_AES_KEY_WRAP, kek, key), Ok(wrapped.clone()));
    shows(&session, unwrap(&session, CKM_AES_KEY_WRAP, kek, &wrapped).expect("unwrapped"), &other);
    let new_kek = newest("old-kek").0;
    assert_eq!(unwrap(&session, CKM_AES_KEY_WRAP, new_kek, &wrapped), Err(CKR_WRAPPED_KEY_INVALID));
    assert_ne!(wrap(&session, CKM_AES_KEY_WRAP, kek, new), Ok(wrapped.clone()));
    // Derivation.
    let mut blocks = [7; 16];
    let parameter = CK_KEY_DERIVATION_STRING_DATA { pData: blocks.as_mut_ptr(), ulLen: 16 };
    let mut how = with(CKM_AES_ECB_ENCRYPT_DATA, parameter);
    shows(&session, derive(&session, &mut how, base).expect("derived"), &e_k(&secret, &[7; 16]));
    let of_new = derive(&session, &mut how, newest("old-base").0).expect("derived");
    let made = session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), of_new, &[7; 16]).expect("encrypted");
    assert_ne!(made, e_k(&e_k(&secret, &[7; 16]), &[7; 16]));
}

#[test]
fn every_version_that_could_leave_once_says_so_when_one_is_kept_from_leaving() {
    let own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let leaves = vec![
        number(CKA_VALUE_LEN, 16),
        flag(CKA_TOKEN, true),
        text(CKA_LABEL, "leaves"),
        flag(CKA_EXTRACTABLE, true),
    ];
    let old = session.generate(CKM_AES_KEY_GEN, leaves).expect("made");
    own.cluster.client().rotate("own0.leaves").expect("rotated");
    let versions = || session.find(vec![text(CKA_LABEL, "leaves")]);
    let [new, same] = versions()[..] else { panic!("two versions") };
    assert!(same == old && session.is(new, CKA_EXTRACTABLE));
    // Twice, as after a change that was interrupted.
    for _ in 0..2 {
        assert_eq!(session.set(old, vec![flag(CKA_EXTRACTABLE, false)]), CKR_OK);
        // By the handles that there are, and as the nodes list them.
        for key in [new, old].into_iter().chain(versions()) {
            assert!(session.is(key, CKA_LOCAL) && !session.is(key, CKA_EXTRACTABLE));
            assert!(!session.is(key, CKA_NEVER_EXTRACTABLE) && !session.is(key, CKA_ALWAYS_SENSITIVE));
        }
    }
    assert_eq!(versions(), [new, old]);
}

/// E_K of one block of Triple DES.
fn e_k_des(key: &[u8], block: &[u8]) -> Vec<u8> {
    let mut block = Array::try_from(block).expect("one block");
    match key.len() {
        16 => des::TdesEde2::new_from_slice(key).expect("a key").encrypt_block(&mut block),
        _ => des::TdesEde3::new_from_slice(key).expect("a key").encrypt_block(&mut block),
    }
    block.to_vec()
}

#[test]
fn keys_derived_from_triple_des_are_what_another_program_computes() {
    let session = session();
    let secret = data(24);
    let mut text = data(24);
    let ecb: Vec<u8> = text.chunks(8).flat_map(|block| e_k_des(&secret, block)).collect();
    let (mut cbc, mut chain) = (Vec::new(), vec![5; 8]);
    for block in text.chunks(8) {
        chain = e_k_des(&secret, &block.iter().zip(&chain).map(|(b, c)| b ^ c).collect::<Vec<u8>>());
        cbc.extend(&chain);
    }
    let string = CK_KEY_DERIVATION_STRING_DATA { pData: text.as_mut_ptr(), ulLen: 24 };
    let chained = CK_DES_CBC_ENCRYPT_DATA_PARAMS { iv: [5; 8], pData: text.as_mut_ptr(), length: 24 };
    for (label, kind, bytes) in [("des-base-2", CKK_DES2, 16), ("des-base-3", CKK_DES3, 24)] {
        let derives = vec![flag(CKA_DERIVE, true)];
        let base = session.import(label, CKK_DES3, &secret, derives).expect("imported");
        let (mut by_ecb, mut by_cbc) =
            (with(CKM_DES3_ECB_ENCRYPT_DATA, string), with(CKM_DES3_CBC_ENCRYPT_DATA, chained));
        for (mut how, expected) in [(by_ecb.raw(), &ecb), (by_cbc.raw(), &cbc)] {
            let mut attributes = vec![number(CKA_KEY_TYPE, kind), flag(CKA_TOKEN, true)];
            let (mut template, mut made) = (template(&mut attributes), 0);
            let at = template.as_mut_ptr();
            let rv = call!(session.module, C_DeriveKey(session.handle, &mut how, base, at, 2, &mut made));
            assert_eq!(rv, CKR_OK);
            let shown =
                session.run(Does::Encrypt, &mut plain(CKM_DES3_ECB), made, &[7; 8]).expect("encrypted");
            assert_eq!(shown, e_k_des(&expected[..bytes], &[7; 8]), "{kind:#x} by {:#x}", how.mechanism);
        }
    }
    let of_aes = session.import("not-des", CKK_AES, &data(16), vec![flag(CKA_DERIVE, true)]).expect("made");
    let mut attributes = vec![number(CKA_KEY_TYPE, CKK_DES2)];
    let (mut template, mut made, mut how) =
        (template(&mut attributes), 0, with(CKM_DES3_ECB_ENCRYPT_DATA, string));
    let at = template.as_mut_ptr();
    let rv = call!(session.module, C_DeriveKey(session.handle, &mut how.raw(), of_aes, at, 1, &mut made));
    assert_eq!(rv, CKR_KEY_TYPE_INCONSISTENT);
}
