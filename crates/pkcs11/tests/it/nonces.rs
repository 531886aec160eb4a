//! Nonces of the nodes where a program has room for them.

use std::ptr;
use std::time::Duration;

use cryptoki_sys::*;

use crate::common::*;

/// More than the 20 s for which nodes wait.
const TOO_LONG: Duration = Duration::from_secs(30);

/// The IV of a parameter now.
fn iv(how: &Mechanism<CK_GCM_PARAMS>) -> Vec<u8> {
    let parameter = how.parameter.as_ref().expect("GCM has one");
    unsafe { std::slice::from_raw_parts(parameter.pIv, parameter.ulIvLen as usize) }.to_vec()
}

#[test]
fn zeros_are_overwritten_when_the_operation_begins_and_never_later() {
    let own = own("gcm_nonce = \"nodes\"");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let secret = data(16);
    let key = session.import("zeros", CKK_AES, &secret, vec![]).expect("made");
    let refused = session.init(Does::Encrypt, &mut gcm(&[1; 12], b"header", 128), key);
    assert_eq!(refused, CKR_MECHANISM_PARAM_INVALID);
    let mut seen = vec![vec![0; 12]];
    for (len, tag_bits) in [(0, 128), (20, 96), (300_000, 128)] {
        let mut how = gcm(&[0; 12], b"header", tag_bits);
        assert_eq!(session.init(Does::Encrypt, &mut how, key), CKR_OK);
        let nonce = iv(&how);
        assert!(!seen.contains(&nonce), "no nonce comes twice");
        seen.push(nonce.clone());
        let total = len + tag_bits as usize / 8;
        assert_eq!(session.whole(Does::Encrypt, &data(len), None).1, total, "no nonce follows the tag");
        assert_eq!(session.whole(Does::Encrypt, &data(len), Some(total - 1)).0, CKR_BUFFER_TOO_SMALL);
        let (rv, _, sealed) = session.whole(Does::Encrypt, &data(len), Some(total));
        assert_eq!(rv, CKR_OK);
        assert!(sealed == sealed_by_another(&secret, &nonce, &data(len))[..total]);
        assert_eq!(iv(&how), nonce, "written once");
        let again = session.whole(Does::Encrypt, &data(len), Some(total)).0;
        assert_eq!(again, CKR_OPERATION_NOT_INITIALIZED, "one message for a nonce");
        // The program has the nonce where it had zeros, and gives it to decrypt.
        assert!(session.run(Does::Decrypt, &mut how, key, &sealed) == Ok(data(len)));
    }
    let mut how = gcm(&[0; 12], b"header", 128);
    let sealed = session.in_parts(Does::Encrypt, &mut how, key, &data(50), 7).expect("encrypted");
    assert_eq!(sealed, sealed_by_another(&secret, &iv(&how), &data(50)));
}

#[test]
fn an_operation_that_is_given_up_takes_its_nonce_with_it() {
    let own = own("gcm_nonce = \"nodes\"");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = session.import("given-up", CKK_AES, &data(16), vec![]).expect("made");
    let mut how = gcm(&[0; 12], b"header", 128);
    assert_eq!(session.init(Does::Encrypt, &mut how, key), CKR_OK);
    let first = iv(&how);
    assert_eq!(session.init(Does::Encrypt, &mut gcm(&[0; 12], b"", 128), key), CKR_OPERATION_ACTIVE);
    assert_eq!(call!(module, C_EncryptInit(session.handle, ptr::null_mut(), key)), CKR_OK);
    assert_eq!(session.whole(Does::Encrypt, b"x", Some(64)).0, CKR_OPERATION_NOT_INITIALIZED);
    let mut how = gcm(&[0; 12], b"header", 128);
    let sealed = session.run(Does::Encrypt, &mut how, key, b"x").expect("encrypted");
    assert_ne!(iv(&how), first);
    assert_eq!(sealed, sealed_by_another(&data(16), &iv(&how), b"x"));
    // One that waits while everything ends.
    assert_eq!(session.init(Does::Encrypt, &mut gcm(&[0; 12], b"", 128), key), CKR_OK);
    assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_OK);
}

#[test]
fn any_twelve_bytes_are_overwritten_where_the_configuration_says_so() {
    let own = own("gcm_nonce = \"overwrite\"");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let secret = data(16);
    let key = session.import("any", CKK_AES, &secret, vec![]).expect("made");
    let mut how = gcm(&[7; 12], b"header", 128);
    let sealed = session.run(Does::Encrypt, &mut how, key, &data(30)).expect("encrypted");
    assert_ne!(iv(&how), [7; 12]);
    assert_eq!(sealed, sealed_by_another(&secret, &iv(&how), &data(30)));
    assert_eq!(session.run(Does::Decrypt, &mut how, key, &sealed), Ok(data(30)));
    for len in [11, 13, 16] {
        let message = session.init(Does::Encrypt, &mut gcm(&vec![7; len], b"", 128), key);
        assert_eq!(message, CKR_MECHANISM_PARAM_INVALID, "{len}");
    }
    let appended = session.run(Does::Encrypt, &mut gcm(&[], b"header", 128), key, &data(30));
    assert_eq!(appended.expect("encrypted").len(), 30 + 16 + 12);
}

/// The nonce was given away, so the message is not asked for again under another.
#[test]
fn a_program_that_pauses_longer_than_nodes_wait_gets_an_error() {
    let own = own("gcm_nonce = \"nodes\"");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = session.import("pauses", CKK_AES, &data(16), vec![]).expect("made");
    let mut how = gcm(&[0; 12], b"header", 128);
    assert_eq!(session.init(Does::Encrypt, &mut how, key), CKR_OK);
    let nonce = iv(&how);
    std::thread::sleep(TOO_LONG);
    assert_eq!(session.whole(Does::Encrypt, b"late", Some(64)).0, CKR_DEVICE_ERROR);
    assert_eq!(iv(&how), nonce);
    assert_eq!(session.whole(Does::Encrypt, b"late", Some(64)).0, CKR_OPERATION_NOT_INITIALIZED);
    let mut how = gcm(&[0; 12], b"header", 128);
    let sealed = session.run(Does::Encrypt, &mut how, key, b"in time").expect("the session goes on");
    assert_eq!(sealed, sealed_by_another(&data(16), &iv(&how), b"in time"));
}
