//! Length questions, buffers that are too small, and lengths that a mode does not have.

use cryptoki_sys::*;

use crate::common::*;

/// Asks for the length, tries a buffer that is smaller by one, and then one that fits: the operation goes on
/// until then.
fn in_three_calls<P>(
    session: &Session<'_>,
    does: Does,
    how: &mut Mechanism<P>,
    key: CK_OBJECT_HANDLE,
    text: &[u8],
) -> Vec<u8> {
    assert_eq!(session.init(does, how, key), CKR_OK);
    let (rv, message, _) = session.whole(does, text, None);
    assert_eq!(rv, CKR_OK);
    let (rv, exact, out) = session.whole(does, text, Some(message));
    assert_eq!(rv, CKR_OK);
    assert!(exact <= message);
    assert_eq!(session.whole(does, text, Some(message)).0, CKR_OPERATION_NOT_INITIALIZED);
    if exact > 0 {
        assert_eq!(session.init(does, how, key), CKR_OK);
        let (rv, told_again, untouched) = session.whole(does, text, Some(exact - 1));
        assert_eq!(rv, CKR_BUFFER_TOO_SMALL);
        assert!(told_again >= exact && untouched.iter().all(|byte| *byte == 0xee));
        let (rv, _, again) = session.whole(does, text, Some(exact));
        assert_eq!((rv, &again), (CKR_OK, &out));
    }
    out
}

#[test]
fn lengths_are_told_and_small_buffers_keep_the_operation() {
    let session = session();
    let more = vec![flag(CKA_SIGN, true), flag(CKA_ENCRYPT, true), flag(CKA_DECRYPT, true)];
    let key = session.import("lengths", CKK_AES, &data(16), more).expect("imported");
    for len in [0, 5, 16, 33] {
        let text = data(len);
        let mut how = gcm(&[len as u8; 12], b"", 128);
        let sealed = in_three_calls(&session, Does::Encrypt, &mut how, key, &text);
        assert_eq!(sealed.len(), len + 16);
        assert_eq!(in_three_calls(&session, Does::Decrypt, &mut how, key, &sealed), text);
        let mut how = with(CKM_AES_CBC_PAD, [1u8; 16]);
        let sealed = in_three_calls(&session, Does::Encrypt, &mut how, key, &text);
        assert_eq!(in_three_calls(&session, Does::Decrypt, &mut how, key, &sealed), text);
    }
    assert_eq!(in_three_calls(&session, Does::Sign, &mut plain(CKM_AES_CMAC), key, &data(20)).len(), 16);
    let once = in_three_calls(&session, Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(32));
    assert_eq!(in_three_calls(&session, Does::Decrypt, &mut plain(CKM_AES_ECB), key, &once), data(32));
}

#[test]
fn lengths_that_a_mode_does_not_have_end_the_operation() {
    let session = session();
    let key = session.import("ranges", CKK_AES, &data(16), vec![]).expect("imported");
    let initial = [1u8; 16];
    for does in [Does::Encrypt, Does::Decrypt] {
        let range = if does == Does::Encrypt { CKR_DATA_LEN_RANGE } else { CKR_ENCRYPTED_DATA_LEN_RANGE };
        assert_eq!(session.run(does, &mut plain(CKM_AES_ECB), key, &data(15)), Err(range));
        assert_eq!(session.whole(does, &data(16), Some(16)).0, CKR_OPERATION_NOT_INITIALIZED);
        assert_eq!(session.run(does, &mut with(CKM_AES_CBC, initial), key, &data(17)), Err(range));
        assert_eq!(session.in_parts(does, &mut plain(CKM_AES_ECB), key, &data(17), 5), Err(range));
    }
    let mut how = with(CKM_AES_CBC_PAD, initial);
    for len in [0, 15] {
        let message = session.run(Does::Decrypt, &mut how, key, &data(len));
        assert_eq!(message, Err(CKR_ENCRYPTED_DATA_LEN_RANGE));
    }
    assert_eq!(session.run(Does::Decrypt, &mut how, key, &data(32)), Err(CKR_ENCRYPTED_DATA_INVALID));
    let mut how = gcm(&[1; 12], b"", 128);
    assert_eq!(session.run(Does::Decrypt, &mut how, key, &data(15)), Err(CKR_ENCRYPTED_DATA_LEN_RANGE));
    let mut how = gcm(&[1; 16], b"", 128);
    assert_eq!(session.run(Does::Encrypt, &mut how, key, &data(70_000)), Err(CKR_DATA_LEN_RANGE));
}

#[test]
fn a_counter_that_would_pass_its_bits_is_refused() {
    let session = session();
    let key = session.import("counter", CKK_AES, &data(16), vec![]).expect("imported");
    let mut block = [0; 16];
    block[15] = 0xfe;
    let mut how = with(CKM_AES_CTR, CK_AES_CTR_PARAMS { ulCounterBits: 8, cb: block });
    assert!(session.run(Does::Encrypt, &mut how, key, &data(32)).is_ok());
    assert_eq!(session.run(Does::Encrypt, &mut how, key, &data(33)), Err(CKR_DATA_LEN_RANGE));
    block = [0xff; 16];
    block[15] = 0xfe;
    let mut how = with(CKM_AES_CTR, CK_AES_CTR_PARAMS { ulCounterBits: 128, cb: block });
    assert!(session.run(Does::Encrypt, &mut how, key, &data(16)).is_ok());
    assert_eq!(session.run(Does::Encrypt, &mut how, key, &data(17)), Err(CKR_DATA_LEN_RANGE));
}

#[test]
fn broken_parameters_of_mechanisms_are_called_that() {
    let session = session();
    let key = session.import("parameters", CKK_AES, &data(16), vec![]).expect("imported");
    let bad = |rv: CK_RV| assert_eq!(rv, CKR_MECHANISM_PARAM_INVALID);
    let encrypts = Does::Encrypt;
    bad(session.init(encrypts, &mut with(CKM_AES_CBC, [0u8; 15]), key));
    bad(session.init(encrypts, &mut plain(CKM_AES_CBC), key));
    bad(session.init(encrypts, &mut plain(CKM_AES_GCM), key));
    bad(session.init(encrypts, &mut gcm(&[0; 1025], b"", 128), key));
    bad(session.init(encrypts, &mut gcm(&[], b"", 128), key));
    for bits in [0, 64, 100, 129, u64::MAX] {
        bad(session.init(encrypts, &mut gcm(&[0; 12], b"", bits), key));
    }
    for bits in [0, 129] {
        bad(session.init(
            encrypts,
            &mut with(CKM_AES_CTR, CK_AES_CTR_PARAMS { ulCounterBits: bits, cb: [0; 16] }),
            key,
        ));
    }
    assert_eq!(session.init(encrypts, &mut plain(CKM_AES_CMAC), key), CKR_MECHANISM_INVALID);
    assert_eq!(session.init(encrypts, &mut plain(CKM_RSA_PKCS), key), CKR_MECHANISM_INVALID);
    assert_eq!(session.init(encrypts, &mut plain(CKM_DES3_ECB), key), CKR_KEY_TYPE_INCONSISTENT);
    assert_eq!(session.init(encrypts, &mut plain(CKM_AES_ECB), key + 1_000_000), CKR_KEY_HANDLE_INVALID);
    assert_eq!(session.init(Does::Sign, &mut plain(CKM_AES_CMAC), key), CKR_KEY_FUNCTION_NOT_PERMITTED);
}

#[test]
fn an_operation_of_several_parts_is_not_ended_by_a_single_one() {
    let session = session();
    let key = session.import("parts", CKK_AES, &data(16), vec![]).expect("imported");
    assert_eq!(session.init(Does::Encrypt, &mut plain(CKM_AES_ECB), key), CKR_OK);
    assert_eq!(session.init(Does::Encrypt, &mut plain(CKM_AES_ECB), key), CKR_OPERATION_ACTIVE);
    let (text, mut out, mut len) = (data(16), [0; 32], 32);
    let from = text.as_ptr().cast_mut();
    assert_eq!(
        call!(session.module, C_EncryptUpdate(session.handle, from, 16, out.as_mut_ptr(), &mut len)),
        CKR_OK
    );
    assert_eq!(session.whole(Does::Encrypt, &text, Some(16)).0, CKR_OPERATION_ACTIVE);
    len = 32;
    assert_eq!(call!(session.module, C_EncryptFinal(session.handle, out.as_mut_ptr(), &mut len)), CKR_OK);
    assert_eq!(len, 0);
    assert_eq!(session.init(Does::Encrypt, &mut plain(CKM_AES_ECB), key), CKR_OK);
    assert_eq!(call!(session.module, C_EncryptInit(session.handle, std::ptr::null_mut(), 0)), CKR_OK);
    assert_eq!(session.whole(Does::Encrypt, &text, Some(16)).0, CKR_OPERATION_NOT_INITIALIZED);
}

#[test]
fn every_kind_of_operation_is_begun_once_and_ended_without_a_mechanism() {
    let session = session();
    let uses = [CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY].map(|kind| flag(kind, true));
    let key = session.import("kinds", CKK_AES, &data(16), uses.to_vec()).expect("imported");
    let of = session.handle;
    let begin = |kind: usize, how: *mut CK_MECHANISM| match kind {
        0 => call!(session.module, C_EncryptInit(of, how, key)),
        1 => call!(session.module, C_DecryptInit(of, how, key)),
        2 => call!(session.module, C_SignInit(of, how, key)),
        3 => call!(session.module, C_VerifyInit(of, how, key)),
        _ => call!(session.module, C_DigestInit(of, how)),
    };
    let (mut text, mut out) = (data(16), [0; 64]);
    let (from, to) = (text.as_mut_ptr(), out.as_mut_ptr());
    let mut len = 64;
    let mut go_on = |kind: usize| match kind {
        0 => call!(session.module, C_EncryptUpdate(of, from, 16, to, &mut len)),
        1 => call!(session.module, C_DecryptUpdate(of, from, 16, to, &mut len)),
        2 => call!(session.module, C_SignUpdate(of, from, 16)),
        3 => call!(session.module, C_VerifyUpdate(of, from, 16)),
        _ => call!(session.module, C_DigestUpdate(of, from, 16)),
    };
    let kinds = [CKM_AES_ECB, CKM_AES_ECB, CKM_AES_CMAC, CKM_AES_CMAC, CKM_SHA384];
    for (kind, mechanism) in kinds.into_iter().enumerate() {
        assert_eq!(go_on(kind), CKR_OPERATION_NOT_INITIALIZED, "{kind}");
        assert_eq!(begin(kind, std::ptr::null_mut()), CKR_OK, "{kind}");
        let mut how = plain(mechanism).raw();
        assert_eq!(begin(kind, &mut how), CKR_OK, "{kind}");
    }
    // All five at once, in one session.
    for (kind, mechanism) in kinds.into_iter().enumerate() {
        let mut how = plain(mechanism).raw();
        assert_eq!(begin(kind, &mut how), CKR_OPERATION_ACTIVE, "{kind}");
        assert_eq!(go_on(kind), CKR_OK, "the second try has not ended it: {kind}");
        assert_eq!(begin(kind, std::ptr::null_mut()), CKR_OK, "{kind}");
        assert_eq!(go_on(kind), CKR_OPERATION_NOT_INITIALIZED, "{kind}");
    }
}

#[test]
fn a_length_is_told_without_asking_the_nodes() {
    let mut own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let signs = vec![flag(CKA_SIGN, true), flag(CKA_ENCRYPT, true)];
    let key = session.import("told", CKK_AES, &data(16), signs).expect("imported");
    own.cluster.nodes.iter_mut().for_each(|node| node.take().expect("it runs").stop());
    assert_eq!(session.init(Does::Encrypt, &mut gcm(&[1; 12], b"", 96), key), CKR_OK);
    assert_eq!(session.init(Does::Sign, &mut plain(CKM_AES_CMAC), key), CKR_OK);
    let message = session.whole(Does::Encrypt, &data(20), None);
    assert_eq!((message.0, message.1), (CKR_OK, 32));
    let message = session.whole(Does::Encrypt, &data(20), Some(31));
    assert_eq!((message.0, message.1), (CKR_BUFFER_TOO_SMALL, 32));
    let message = session.whole(Does::Sign, &data(20), Some(15));
    assert_eq!((message.0, message.1), (CKR_BUFFER_TOO_SMALL, 16));
    assert_eq!(session.whole(Does::Encrypt, &data(20), Some(32)).0, CKR_DEVICE_ERROR, "now they are asked");
    assert_eq!(session.whole(Does::Sign, &data(20), Some(16)).0, CKR_DEVICE_ERROR);
}

/// PKCS#11, each of these functions: an error other than `CKR_BUFFER_TOO_SMALL` ends the operation.
#[test]
fn a_length_without_a_place_ends_the_operation() {
    let session = session();
    let uses = [CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN].map(|kind| flag(kind, true));
    let key = session.import("no-place", CKK_AES, &data(16), uses.to_vec()).expect("imported");
    let (of, module) = (session.handle, session.module);
    let (mut text, mut out, none) = (data(16), [0; 64], std::ptr::null_mut());
    let (from, to) = (text.as_mut_ptr(), out.as_mut_ptr());
    let begin = |does: &str| {
        let kind = match does {
            "digest" => CKM_SHA256,
            "sign" => CKM_AES_CMAC,
            _ => CKM_AES_ECB,
        };
        let how = &mut plain(kind).raw();
        let rv = match does {
            "encrypt" => call!(module, C_EncryptInit(of, how, key)),
            "decrypt" => call!(module, C_DecryptInit(of, how, key)),
            "sign" => call!(module, C_SignInit(of, how, key)),
            _ => call!(module, C_DigestInit(of, how)),
        };
        assert_eq!(rv, CKR_OK, "{does}");
    };
    type Call<'c> = &'c dyn Fn(*mut CK_BYTE) -> CK_RV;
    let calls: [(&str, &str, Call<'_>); 10] = [
        ("encrypt", "C_Encrypt", &|to| call!(module, C_Encrypt(of, from, 16, to, none))),
        ("encrypt", "C_EncryptUpdate", &|to| call!(module, C_EncryptUpdate(of, from, 16, to, none))),
        ("encrypt", "C_EncryptFinal", &|to| call!(module, C_EncryptFinal(of, to, none))),
        ("decrypt", "C_Decrypt", &|to| call!(module, C_Decrypt(of, from, 16, to, none))),
        ("decrypt", "C_DecryptUpdate", &|to| call!(module, C_DecryptUpdate(of, from, 16, to, none))),
        ("decrypt", "C_DecryptFinal", &|to| call!(module, C_DecryptFinal(of, to, none))),
        ("sign", "C_Sign", &|to| call!(module, C_Sign(of, from, 16, to, none))),
        ("sign", "C_SignFinal", &|to| call!(module, C_SignFinal(of, to, none))),
        ("digest", "C_Digest", &|to| call!(module, C_Digest(of, from, 16, to, none))),
        ("digest", "C_DigestFinal", &|to| call!(module, C_DigestFinal(of, to, none))),
    ];
    for (does, name, call) in calls {
        for to in [to, none.cast()] {
            begin(does);
            assert_eq!(call(to), CKR_ARGUMENTS_BAD, "{name}");
            assert_eq!(call(to), CKR_OPERATION_NOT_INITIALIZED, "{name} has ended the operation");
        }
    }
}
