//! Every mode, in one part and in several, is what another program computes.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes_gcm::AesGcm;
use aes_gcm::aead::consts::U16;
use aes_gcm::aead::{Aead, Payload};
use cmac::{Cmac, Mac};
use cryptoki_sys::*;

use crate::common::*;

const DES3: [u8; 24] = *b"\x01#Eg\x89\xab\xcd\xef\xfe\xdc\xba\x98vT2\x10\x02\x46\x8a\xce\x13\x57\x9b\xdf";

fn aes_key(bytes: usize) -> Vec<u8> {
    data(bytes + 5)[5..].to_vec()
}

/// E_K of one block.
fn block(key: &[u8], block: &[u8]) -> Vec<u8> {
    fn of<C: KeyInit + BlockCipherEncrypt>(key: &[u8], block: &[u8]) -> Vec<u8> {
        let mut block = Array::try_from(block).expect("one block");
        C::new_from_slice(key).expect("a key").encrypt_block(&mut block);
        block.to_vec()
    }
    match (key.len(), block.len()) {
        (16, 16) => of::<aes::Aes128>(key, block),
        (24, 16) => of::<aes::Aes192>(key, block),
        (32, 16) => of::<aes::Aes256>(key, block),
        (16, 8) => of::<des::TdesEde2>(key, block),
        _ => of::<des::TdesEde3>(key, block),
    }
}

fn ecb(key: &[u8], size: usize, data: &[u8]) -> Vec<u8> {
    data.chunks(size).flat_map(|piece| block(key, piece)).collect()
}

fn cbc(key: &[u8], initial: &[u8], data: &[u8]) -> Vec<u8> {
    let (mut chain, mut out) = (initial.to_vec(), Vec::new());
    for piece in data.chunks(initial.len()) {
        chain = block(key, &piece.iter().zip(&chain).map(|(p, c)| p ^ c).collect::<Vec<u8>>());
        out.extend(&chain);
    }
    out
}

fn ctr(key: &[u8], counter: [u8; 16], data: &[u8]) -> Vec<u8> {
    let first = u128::from_be_bytes(counter);
    let stream = (0..).flat_map(|i| block(key, &first.wrapping_add(i).to_be_bytes()));
    data.iter().zip(stream).map(|(d, k)| d ^ k).collect()
}

fn padded(data: &[u8], size: usize) -> Vec<u8> {
    let count = size - data.len() % size;
    [data, &vec![count as u8; count]].concat()
}

/// Encrypts and decrypts at once and in parts, and compares all with what is expected.
fn both_ways<P>(
    session: &Session<'_>,
    key: CK_OBJECT_HANDLE,
    mut mechanism: Mechanism<P>,
    data: &[u8],
    expected: &[u8],
) {
    let message = format!("{} bytes", data.len());
    assert_eq!(
        session.run(Does::Encrypt, &mut mechanism, key, data).expect("encrypted"),
        expected,
        "{message}"
    );
    assert_eq!(
        session.run(Does::Decrypt, &mut mechanism, key, expected).expect("decrypted"),
        data,
        "{message}"
    );
    for part in [1, 16, 23] {
        // Every part is a request.
        if data.len() / part > 8 {
            continue;
        }
        assert_eq!(
            session.in_parts(Does::Encrypt, &mut mechanism, key, data, part).expect("encrypted"),
            expected
        );
        assert_eq!(
            session.in_parts(Does::Decrypt, &mut mechanism, key, expected, part).expect("decrypted"),
            data
        );
    }
}

#[test]
fn ecb_cbc_and_ctr_of_aes_are_what_another_program_computes() {
    let session = session();
    for bytes in [16, 24, 32] {
        let secret = aes_key(bytes);
        let key = session.import(&format!("aes-{bytes}"), CKK_AES, &secret, vec![]).expect("imported");
        let (initial, counter) = ([7; 16], [0xfe; 16]);
        for len in [0, 16, 64, 160] {
            both_ways(&session, key, plain(CKM_AES_ECB), &data(len), &ecb(&secret, 16, &data(len)));
            both_ways(
                &session,
                key,
                with(CKM_AES_CBC, initial),
                &data(len),
                &cbc(&secret, &initial, &data(len)),
            );
        }
        for len in [0, 1, 15, 16, 17, 50] {
            let expected = cbc(&secret, &initial, &padded(&data(len), 16));
            both_ways(&session, key, with(CKM_AES_CBC_PAD, initial), &data(len), &expected);
            let parameter = CK_AES_CTR_PARAMS { ulCounterBits: 128, cb: counter };
            both_ways(
                &session,
                key,
                with(CKM_AES_CTR, parameter),
                &data(len),
                &ctr(&secret, counter, &data(len)),
            );
        }
    }
}

#[test]
fn long_data_are_what_another_program_computes() {
    let session = session();
    let secret = aes_key(16);
    let key = session.import("long", CKK_AES, &secret, vec![]).expect("imported");
    let long = data(300_000);
    let whole = &long[..299_984];
    let counter = CK_AES_CTR_PARAMS { ulCounterBits: 32, cb: [3; 16] };
    let run = |does, data: &[u8]| session.run(does, &mut plain(CKM_AES_ECB), key, data).expect("done");
    let sealed = run(Does::Encrypt, whole);
    assert!(sealed == ecb(&secret, 16, whole) && run(Does::Decrypt, &sealed) == whole);
    let mut how = with(CKM_AES_CTR, counter);
    assert!(session.run(Does::Encrypt, &mut how, key, &long).expect("done") == ctr(&secret, [3; 16], &long));
    let mut how = gcm(&[5; 12], b"more", 128);
    let cipher = aes_gcm::Aes128Gcm::new_from_slice(&secret).expect("a key");
    let nonce = Array::from([5; 12]);
    let expected = cipher.encrypt(&nonce, Payload { msg: &long, aad: b"more" }).expect("encrypted");
    assert!(session.run(Does::Encrypt, &mut how, key, &long).expect("done") == expected);
    assert!(session.in_parts(Does::Encrypt, &mut how, key, &long, 100_000).expect("done") == expected);
    assert!(session.run(Does::Decrypt, &mut how, key, &expected).expect("done") == long);
}

#[test]
fn ecb_and_cbc_of_triple_des_are_what_another_program_computes() {
    let session = session();
    for (kind, secret) in [(CKK_DES3, &DES3[..]), (CKK_DES2, &DES3[..16])] {
        let key = session.import(&format!("des-{kind}"), kind, secret, vec![]).expect("imported");
        let initial = [9; 8];
        let text = data(24);
        let ecb = ecb(secret, 8, &text);
        let run =
            |how: &mut Mechanism<u8>, does, data: &[u8]| session.run(does, how, key, data).expect("done");
        assert_eq!(run(&mut plain(CKM_DES3_ECB), Does::Encrypt, &text), ecb);
        assert_eq!(run(&mut plain(CKM_DES3_ECB), Does::Decrypt, &ecb), text);
        for (kind, text, expected) in [
            (CKM_DES3_CBC, data(24), cbc(secret, &initial, &data(24))),
            (CKM_DES3_CBC_PAD, data(21), cbc(secret, &initial, &padded(&data(21), 8))),
        ] {
            let mut how = with(kind, initial);
            assert_eq!(session.run(Does::Encrypt, &mut how, key, &text).expect("encrypted"), expected);
            assert_eq!(session.run(Does::Decrypt, &mut how, key, &expected).expect("decrypted"), text);
        }
    }
}

#[test]
fn gcm_is_what_another_program_computes_with_tags_of_all_lengths() {
    let session = session();
    let secret = aes_key(32);
    let key = session.import("gcm", CKK_AES, &secret, vec![]).expect("imported");
    let cipher = aes_gcm::Aes256Gcm::new_from_slice(&secret).expect("a key");
    for (i, len) in [0, 1, 16, 100].into_iter().enumerate() {
        let nonce = [i as u8; 12];
        let text = data(len);
        let of = Array::from(nonce);
        let sealed = cipher.encrypt(&of, Payload { msg: &text, aad: b"header" }).expect("encrypted");
        for tag_bits in [128, 120, 112, 104, 96] {
            let expected = &sealed[..len + tag_bits / 8];
            let mut how = gcm(&nonce, b"header", tag_bits as u64);
            assert_eq!(session.run(Does::Encrypt, &mut how, key, &text).expect("encrypted"), expected);
            assert_eq!(session.run(Does::Decrypt, &mut how, key, expected).expect("decrypted"), text);
            for at in [0, expected.len() - 1] {
                let mut changed = expected.to_vec();
                changed[at] ^= 1;
                let message = session.run(Does::Decrypt, &mut how, key, &changed);
                assert_eq!(message, Err(CKR_ENCRYPTED_DATA_INVALID), "{len} {tag_bits} {at}");
            }
        }
    }
}

#[test]
fn gcm_takes_initial_vectors_of_other_lengths() {
    let session = session();
    let secret = aes_key(16);
    let key = session.import("gcm-iv", CKK_AES, &secret, vec![]).expect("imported");
    let cipher = AesGcm::<aes::Aes128, U16>::new_from_slice(&secret).expect("a key");
    let text = data(50);
    let of = Array::from([6; 16]);
    let expected = cipher.encrypt(&of, Payload { msg: &text, aad: b"header" }).expect("encrypted");
    let mut how = gcm(&[6; 16], b"header", 128);
    assert_eq!(session.run(Does::Encrypt, &mut how, key, &text), Ok(expected.clone()));
    assert_eq!(session.run(Does::Decrypt, &mut how, key, &expected), Ok(text));
}

#[test]
fn messages_of_3_0_have_nonces_of_the_nodes_or_of_the_program() {
    let session = session();
    let secret = aes_key(16);
    let key = session.import("messages", CKK_AES, &secret, vec![]).expect("imported");
    let cipher = aes_gcm::Aes128Gcm::new_from_slice(&secret).expect("a key");
    let mut how = plain(CKM_AES_GCM).raw();
    assert_eq!(call!(session.module, C_MessageEncryptInit(session.handle, &mut how, key)), CKR_OK);
    assert_eq!(call!(session.module, C_MessageDecryptInit(session.handle, &mut how, key)), CKR_OK);
    let mut seen = Vec::new();
    for generator in [CKG_NO_GENERATE, CKG_GENERATE, CKG_GENERATE_RANDOM] {
        let (mut iv, mut tag, text, aad) = ([1; 12], [0; 16], data(40), *b"header");
        let mut parameter = CK_GCM_MESSAGE_PARAMS {
            pIv: iv.as_mut_ptr(),
            ulIvLen: 12,
            ulIvFixedBits: 0,
            ivGenerator: generator,
            pTag: tag.as_mut_ptr(),
            ulTagBits: 128,
        };
        let (size, at) = (size_of_val(&parameter) as CK_ULONG, (&raw mut parameter).cast());
        let (mut out, mut len) = (vec![0; 40], 40);
        let of_aad = aad.as_ptr().cast_mut();
        let from = text.as_ptr().cast_mut();
        let handle = session.handle;
        let to = out.as_mut_ptr();
        assert_eq!(
            call!(session.module, C_EncryptMessage(handle, at, size, of_aad, 6, from, 40, to, &mut len)),
            CKR_OK
        );
        let nonce = Array::from(iv);
        let expected = cipher.encrypt(&nonce, Payload { msg: &text, aad: &aad }).expect("encrypted");
        assert_eq!([&out[..], &tag].concat(), expected);
        assert_eq!(generator == CKG_NO_GENERATE, iv == [1; 12]);
        assert!(!seen.contains(&iv));
        seen.push(iv);
        let mut back = vec![0; 40];
        let (from, to) = (out.as_mut_ptr(), back.as_mut_ptr());
        assert_eq!(
            call!(session.module, C_DecryptMessage(handle, at, size, of_aad, 6, from, 40, to, &mut len)),
            CKR_OK
        );
        assert_eq!(back, text);
        unsafe { *parameter.pTag.add(3) ^= 1 };
        let message =
            call!(session.module, C_DecryptMessage(handle, at, size, of_aad, 6, from, 40, to, &mut len));
        assert_eq!(message, CKR_AEAD_DECRYPT_FAILED);
    }
    assert_eq!(call!(session.module, C_MessageEncryptFinal(session.handle)), CKR_OK);
    assert_eq!(call!(session.module, C_MessageEncryptFinal(session.handle)), CKR_OPERATION_NOT_INITIALIZED);
}

#[test]
fn cmac_signs_and_verifies_as_another_program_does() {
    let session = session();
    let secret = aes_key(16);
    let signs = || vec![flag(CKA_SIGN, true), flag(CKA_VERIFY, true)];
    let key = session.import("cmac", CKK_AES, &secret, signs()).expect("imported");
    for len in [0, 1, 16, 40] {
        let mut oracle = Cmac::<aes::Aes128>::new_from_slice(&secret).expect("a key");
        oracle.update(&data(len));
        let expected = oracle.finalize().into_bytes().to_vec();
        assert_eq!(session.run(Does::Sign, &mut plain(CKM_AES_CMAC), key, &data(len)), Ok(expected.clone()));
        assert_eq!(
            session.in_parts(Does::Sign, &mut plain(CKM_AES_CMAC), key, &data(len), 7),
            Ok(expected.clone())
        );
        let short = session.run(Does::Sign, &mut with(CKM_AES_CMAC_GENERAL, 5 as CK_ULONG), key, &data(len));
        assert_eq!(short, Ok(expected[..5].to_vec()));
        for (code, message) in [
            (expected.clone(), CKR_OK),
            (expected[..15].to_vec(), CKR_SIGNATURE_LEN_RANGE),
            ([&expected[..15], &[expected[15] ^ 1]].concat(), CKR_SIGNATURE_INVALID),
        ] {
            let mut how = plain(CKM_AES_CMAC).raw();
            assert_eq!(call!(session.module, C_VerifyInit(session.handle, &mut how, key)), CKR_OK);
            let (text, from) = (data(len), code.as_ptr().cast_mut());
            let (at, count) = (text.as_ptr().cast_mut(), len as CK_ULONG);
            let rv = call!(session.module, C_Verify(session.handle, at, count, from, code.len() as CK_ULONG));
            assert_eq!(rv, message);
        }
    }
    let des = session.import("des-cmac", CKK_DES3, &DES3, signs()).expect("imported");
    let mut oracle = Cmac::<des::TdesEde3>::new_from_slice(&DES3).expect("a key");
    oracle.update(&data(20));
    let expected = oracle.finalize().into_bytes().to_vec();
    assert_eq!(session.run(Does::Sign, &mut plain(CKM_DES3_CMAC), des, &data(20)), Ok(expected));
}

#[test]
fn digests_are_those_of_the_standard() {
    let session = session();
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let mut how = plain(CKM_SHA256).raw();
    assert_eq!(call!(session.module, C_DigestInit(session.handle, &mut how)), CKR_OK);
    let (mut out, mut len) = ([0; 32], 32);
    let text = *b"abc";
    let from = text.as_ptr().cast_mut();
    assert_eq!(call!(session.module, C_DigestUpdate(session.handle, from, 3)), CKR_OK);
    assert_eq!(call!(session.module, C_DigestFinal(session.handle, out.as_mut_ptr(), &mut len)), CKR_OK);
    assert_eq!(out.iter().map(|b| format!("{b:02x}")).collect::<String>(), expected);
}
