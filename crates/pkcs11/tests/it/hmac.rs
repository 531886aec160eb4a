//! HMAC: codes of published vectors, in one part and in several, whole and cut; and what keys for it are.

use cryptoki_sys::*;
use polyclave_api::{Mode, NewKey};

use super::keys::{derive_as, e_k, hex, unwrap_as, wrap};
use crate::common::*;

/// RFC 4231, and some of Wycheproof.
const VECTORS: &str = include_str!("../../../../vectors/hmac.json");

/// The type of keys of a hash, and its two mechanisms.
fn of_hash(cipher: &str) -> (CK_KEY_TYPE, CK_MECHANISM_TYPE, CK_MECHANISM_TYPE) {
    match cipher {
        "HMAC-SHA-256" => (CKK_SHA256_HMAC, CKM_SHA256_HMAC, CKM_SHA256_HMAC_GENERAL),
        "HMAC-SHA-384" => (CKK_SHA384_HMAC, CKM_SHA384_HMAC, CKM_SHA384_HMAC_GENERAL),
        _ => (CKK_SHA512_HMAC, CKM_SHA512_HMAC, CKM_SHA512_HMAC_GENERAL),
    }
}

fn allowed(mechanisms: &[CK_MECHANISM_TYPE]) -> Attribute {
    (CKA_ALLOWED_MECHANISMS, mechanisms.iter().flat_map(|kind| kind.to_ne_bytes()).collect())
}

fn told(session: &Session<'_>, key: CK_OBJECT_HANDLE, kind: CK_ATTRIBUTE_TYPE) -> CK_ULONG {
    let value = session.attribute(key, kind).expect("the key has it");
    CK_ULONG::from_ne_bytes(value.try_into().expect("a number"))
}

fn field<'v>(vector: &'v serde_json::Value, name: &str) -> &'v str {
    vector[name].as_str().expect("a text")
}

fn verified<P>(
    session: &Session<'_>,
    mechanism: &mut Mechanism<P>,
    key: CK_OBJECT_HANDLE,
    (data, code): (&[u8], &[u8]),
) -> CK_RV {
    assert_eq!(call!(session.module, C_VerifyInit(session.handle, &mut mechanism.raw(), key)), CKR_OK);
    let (from, count) = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
    let (code, bytes) = (code.as_ptr().cast_mut(), code.len() as CK_ULONG);
    call!(session.module, C_Verify(session.handle, from, count, code, bytes))
}

/// Of each hash the one that the RFC cuts, one under a key that is longer than a block, and the longest of
/// Wycheproof. The nodes compute them one after the other, so that is few of them.
#[test]
fn published_vectors_of_hmac_come_out() {
    let session = session();
    let all: Vec<serde_json::Value> = serde_json::from_str(VECTORS).expect("a list");
    let mut number = 0;
    for hash in ["HMAC-SHA-256", "HMAC-SHA-384", "HMAC-SHA-512"] {
        let (kind, whole, general) = of_hash(hash);
        let of_hash: Vec<_> = all.iter().filter(|v| v["cipher"] == hash).collect();
        let cut = of_hash.iter().find(|v| field(v, "ciphertext").len() == 32).expect("there is one");
        let long = of_hash.iter().find(|v| field(v, "key").len() > 256).expect("there is one");
        for v in [cut, long, of_hash.last().expect("there is one")] {
            number += 1;
            let [secret, message, code] = ["key", "plaintext", "ciphertext"].map(|name| hex(field(v, name)));
            let key = session.import(&format!("hmac-{number}"), kind, &secret, vec![]).expect("imported");
            assert_eq!(told(&session, key, CKA_VALUE_LEN), secret.len() as CK_ULONG);
            let found = match code.len() {
                16 => session.run(Does::Sign, &mut with(general, 16 as CK_ULONG), key, &message),
                _ => session.in_parts(Does::Sign, &mut plain(whole), key, &message, 50),
            };
            assert_eq!(found, Ok(code), "{v}");
        }
    }
}

#[test]
fn codes_are_verified_and_cut_as_the_mechanism_says() {
    let session = session();
    let key = session.import("hmac-cut", CKK_SHA256_HMAC, &data(40), vec![]).expect("imported");
    let message = data(20);
    let code = session.run(Does::Sign, &mut plain(CKM_SHA256_HMAC), key, &message).expect("a code");
    // Nodes give 16 bytes and more; the module cuts them.
    let mut general = with(CKM_SHA256_HMAC_GENERAL, 17 as CK_ULONG);
    assert_eq!(session.run(Does::Sign, &mut general, key, &message), Ok(code[..17].to_vec()));
    for (code, result) in [
        (code.clone(), CKR_OK),
        (code[..31].to_vec(), CKR_SIGNATURE_LEN_RANGE),
        ([&code[..31], &[code[31] ^ 1]].concat(), CKR_SIGNATURE_INVALID),
    ] {
        assert_eq!(verified(&session, &mut plain(CKM_SHA256_HMAC), key, (&message, &code)), result);
    }
    assert_eq!(verified(&session, &mut general, key, (&message, &code[..17])), CKR_OK);
    // The check value shows the beginning of one code.
    for bytes in [0, 4, 15, 33] {
        let mut other = with(CKM_SHA256_HMAC_GENERAL, bytes as CK_ULONG);
        assert_eq!(session.init(Does::Sign, &mut other, key), CKR_MECHANISM_PARAM_INVALID);
    }
    let long = vec![0; (64 << 10) + 1];
    assert_eq!(session.run(Does::Sign, &mut plain(CKM_SHA256_HMAC), key, &long), Err(CKR_DATA_LEN_RANGE));
    for other in [CKM_SHA512_HMAC, CKM_AES_CMAC] {
        assert_eq!(session.init(Does::Sign, &mut plain(other), key), CKR_KEY_TYPE_INCONSISTENT);
    }
}

#[test]
fn keys_say_what_they_were_made_as() {
    let session = session();
    let every_use = [CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE];
    let uses = |key| every_use.map(|kind| session.is(key, kind));
    let signs = [false, false, true, true, false, false, false];
    let generic = session.import("hmac-generic", CKK_GENERIC_SECRET, &data(40), vec![]).expect("imported");
    assert_eq!(told(&session, generic, CKA_KEY_TYPE), CKK_GENERIC_SECRET);
    assert_eq!(told(&session, generic, CKA_VALUE_LEN), 40);
    assert_eq!(told(&session, generic, CKA_KEY_GEN_MECHANISM), CK_UNAVAILABLE_INFORMATION);
    let list = session.attribute(generic, CKA_ALLOWED_MECHANISMS);
    assert_eq!(list, Ok(allowed(&[CKM_SHA256_HMAC, CKM_SHA256_HMAC_GENERAL]).1));
    assert_eq!((uses(generic), session.is(generic, CKA_LOCAL)), (signs, false));
    let looked_for = || vec![number(CKA_KEY_TYPE, CKK_GENERIC_SECRET), number(CKA_VALUE_LEN, 40)];
    assert_eq!(session.find(looked_for()), [generic]);

    // Its mechanisms decide the hash.
    let of_384 = vec![allowed(&[CKM_SHA384_HMAC_GENERAL]), flag(CKA_ENCRYPT, true), flag(CKA_SIGN, true)];
    let of_384 =
        session.import("hmac-generic-384", CKK_GENERIC_SECRET, &data(130), of_384).expect("imported");
    assert_eq!(told(&session, of_384, CKA_VALUE_LEN), 130);
    assert_eq!(uses(of_384), [false, false, true, false, false, false, false]);
    assert_eq!(session.init(Does::Sign, &mut plain(CKM_SHA384_HMAC), of_384), CKR_MECHANISM_INVALID);
    assert_eq!(session.init(Does::Sign, &mut with(CKM_SHA384_HMAC_GENERAL, 48 as CK_ULONG), of_384), CKR_OK);
    assert_eq!(call!(session.module, C_SignInit(session.handle, std::ptr::null_mut(), 0)), CKR_OK);

    let refused =
        |kind, bytes, more| session.import("hmac-not", kind, &data(bytes), more).expect_err("refused");
    for bytes in [15, 257] {
        assert_eq!(refused(CKK_GENERIC_SECRET, bytes, vec![]), CKR_KEY_SIZE_RANGE);
    }
    let several = allowed(&[CKM_SHA256_HMAC, CKM_SHA512_HMAC]);
    assert_eq!(refused(CKK_GENERIC_SECRET, 32, vec![several]), CKR_TEMPLATE_INCONSISTENT);
    let of_another = allowed(&[CKM_SHA512_HMAC]);
    assert_eq!(refused(CKK_SHA256_HMAC, 32, vec![of_another]), CKR_TEMPLATE_INCONSISTENT);
    assert_eq!(refused(CKK_SHA256_HMAC, 32, vec![flag(CKA_ENCRYPT, true)]), CKR_TEMPLATE_INCONSISTENT);
    let other_length = number(CKA_VALUE_LEN, 33);
    assert_eq!(refused(CKK_SHA256_HMAC, 32, vec![other_length]), CKR_TEMPLATE_INCONSISTENT);
}

/// Nodes generate whole blocks of a hash, so that is what a key is as long as.
#[test]
fn generated_keys_are_as_long_as_a_block() {
    let session = session();
    let length = |bytes| vec![number(CKA_VALUE_LEN, bytes)];
    let generic = CKM_GENERIC_SECRET_KEY_GEN;
    assert_eq!(session.generate(generic, vec![]), Err(CKR_TEMPLATE_INCOMPLETE));
    for bytes in [32, 128] {
        assert_eq!(session.generate(generic, length(bytes)), Err(CKR_KEY_SIZE_RANGE));
    }
    assert_eq!(session.generate(CKM_SHA512_KEY_GEN, length(64)), Err(CKR_KEY_SIZE_RANGE));
    let of_256 = vec![number(CKA_KEY_TYPE, CKK_SHA256_HMAC)];
    assert_eq!(session.generate(CKM_SHA384_KEY_GEN, of_256), Err(CKR_TEMPLATE_INCONSISTENT));

    let with_512 = [length(128), vec![allowed(&[CKM_SHA512_HMAC])]].concat();
    for (mechanism, attributes, kind, bytes) in [
        (generic, length(64), CKK_GENERIC_SECRET, 64),
        (generic, with_512, CKK_GENERIC_SECRET, 128),
        (CKM_SHA512_KEY_GEN, vec![], CKK_SHA512_HMAC, 128),
    ] {
        let key = session.generate(mechanism, attributes).expect("made");
        assert_eq!(told(&session, key, CKA_KEY_TYPE), kind);
        assert_eq!(told(&session, key, CKA_VALUE_LEN), bytes);
        assert_eq!(told(&session, key, CKA_KEY_GEN_MECHANISM), mechanism);
        assert!(session.is(key, CKA_LOCAL) && session.is(key, CKA_ALWAYS_SENSITIVE));
        let signs = if bytes == 64 { CKM_SHA256_HMAC } else { CKM_SHA512_HMAC };
        let code = session.run(Does::Sign, &mut plain(signs), key, b"a message").expect("a code");
        assert_eq!(code.len() as CK_ULONG, bytes / 2);
        assert_eq!(verified(&session, &mut plain(signs), key, (b"a message", &code)), CKR_OK);
    }
}

#[test]
fn mechanisms_say_how_long_keys_are() {
    let module = &shared().module;
    for (kind, sizes, flags) in [
        (CKM_GENERIC_SECRET_KEY_GEN, (64, 128), CKF_GENERATE),
        (CKM_SHA256_KEY_GEN, (64, 64), CKF_GENERATE),
        (CKM_SHA384_KEY_GEN, (128, 128), CKF_GENERATE),
        (CKM_SHA256_HMAC, (16, 256), CKF_SIGN | CKF_VERIFY),
        (CKM_SHA512_HMAC_GENERAL, (16, 256), CKF_SIGN | CKF_VERIFY),
    ] {
        let mut info = CK_MECHANISM_INFO::default();
        assert_eq!(call!(module, C_GetMechanismInfo(slot(), kind, &mut info)), CKR_OK);
        assert_eq!((info.ulMinKeySize, info.ulMaxKeySize), sizes, "{kind:#x}");
        assert_eq!(info.flags & (CKF_GENERATE | CKF_SIGN | CKF_VERIFY), flags, "{kind:#x}");
    }
}

/// A key of another client is a block, whatever it was before. So is one that was wrapped.
#[test]
fn keys_that_were_not_imported_here_are_as_long_as_a_block() {
    let own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let new = NewKey::for_modes("own0.webhooks", "hmac-sha-256", &[Mode::Hmac], 1 << 20);
    own.cluster.client().import(new, &data(30)).expect("imported");
    let found = session.find(vec![text(CKA_LABEL, "webhooks")]);
    let [key] = found[..] else { panic!("one key is found, not {found:?}") };
    assert_eq!(
        (told(&session, key, CKA_KEY_TYPE), told(&session, key, CKA_VALUE_LEN)),
        (CKK_SHA256_HMAC, 64)
    );
    let code = session.run(Does::Sign, &mut plain(CKM_SHA256_HMAC), key, b"a message").expect("a code");

    let wraps = vec![flag(CKA_WRAP, true), flag(CKA_UNWRAP, true)];
    let kek = session.import("hmac-kek", CKK_AES, &data(16), wraps).expect("imported");
    let leaves = vec![flag(CKA_EXTRACTABLE, true)];
    let same = session.import("hmac-leaves", CKK_GENERIC_SECRET, &data(30), leaves).expect("imported");
    let wrapped = wrap(&session, CKM_AES_KEY_WRAP, kek, same).expect("wrapped");
    assert_eq!(wrapped.len(), 64 + 8);
    let generic = vec![number(CKA_CLASS, CKO_SECRET_KEY), number(CKA_KEY_TYPE, CKK_GENERIC_SECRET)];
    let back = unwrap_as(&session, CKM_AES_KEY_WRAP, kek, &wrapped, generic.clone()).expect("unwrapped");
    assert_eq!(told(&session, back, CKA_VALUE_LEN), 64);
    assert_eq!(session.run(Does::Sign, &mut plain(CKM_SHA256_HMAC), back, b"a message"), Ok(code));
    let short = [generic, vec![number(CKA_VALUE_LEN, 30)]].concat();
    assert_eq!(unwrap_as(&session, CKM_AES_KEY_WRAP, kek, &wrapped, short), Err(CKR_KEY_SIZE_RANGE));
}

/// A derived key has as many bytes as a block, too: here four encrypted blocks of the data.
#[test]
fn keys_for_hmac_are_derived_as_others_are() {
    let session = session();
    let (secret, mut text) = (data(16), data(64));
    let base = session.import("hmac-base", CKK_AES, &secret, vec![flag(CKA_DERIVE, true)]).expect("imported");
    let parameter = CK_KEY_DERIVATION_STRING_DATA { pData: text.as_mut_ptr(), ulLen: 64 };
    let new = vec![number(CKA_CLASS, CKO_SECRET_KEY), number(CKA_KEY_TYPE, CKK_SHA256_HMAC)];
    let derived = derive_as(&session, &mut with(CKM_AES_ECB_ENCRYPT_DATA, parameter), base, new);
    let encrypted: Vec<u8> = text.chunks(16).flat_map(|block| e_k(&secret, block)).collect();
    let same = session.import("hmac-same", CKK_SHA256_HMAC, &encrypted, vec![]).expect("imported");
    let sign = |key| session.run(Does::Sign, &mut plain(CKM_SHA256_HMAC), key, b"a message").expect("a code");
    let derived = derived.expect("derived");
    assert_eq!((sign(derived), told(&session, derived, CKA_VALUE_LEN)), (sign(same), 64));
}
