//! What a program is told of what happens at the nodes.

use std::ptr;

use cryptoki_sys::*;
use polyclave_api::{Mode, NewKey, Usage};
use polyclave_client::Withdrawal;
use polyclave_config::NodeDir;

use crate::common::*;

fn ecb(session: &Session<'_>, key: CK_OBJECT_HANDLE, blocks: usize) -> Result<Vec<u8>, CK_RV> {
    session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(16 * blocks))
}

#[test]
fn keys_that_another_program_deletes_or_restricts_answer_so() {
    let own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let other = own.cluster.client();
    let both = || vec![flag(CKA_SIGN, true), flag(CKA_ENCRYPT, true), flag(CKA_DERIVE, true)];
    let key = session.import("changes", CKK_AES, &data(16), both()).expect("made");
    assert!(ecb(&session, key, 1).is_ok());
    let what = Withdrawal { usage: vec![Usage::Encrypt], ..Withdrawal::default() };
    other.withdraw("own0.changes", (1, true), &what).expect("withdrawn");
    assert_eq!(ecb(&session, key, 1), Err(CKR_KEY_FUNCTION_NOT_PERMITTED));
    assert!(session.run(Does::Sign, &mut plain(CKM_AES_CMAC), key, b"x").is_ok(), "the rest remains");
    other.delete("own0.changes").expect("deleted");
    assert_eq!(ecb(&session, key, 1), Err(CKR_KEY_HANDLE_INVALID));
    assert_eq!(session.run(Does::Sign, &mut plain(CKM_AES_CMAC), key, b"x"), Err(CKR_KEY_HANDLE_INVALID));
    assert_eq!(session.set(key, vec![text(CKA_LABEL, "new")]), CKR_OBJECT_HANDLE_INVALID);
    let mut blocks = data(16);
    let parameter = CK_KEY_DERIVATION_STRING_DATA { pData: blocks.as_mut_ptr(), ulLen: 16 };
    let mut attributes = vec![number(CKA_KEY_TYPE, CKK_AES), number(CKA_VALUE_LEN, 16)];
    let (mut template, mut made) = (template(&mut attributes), 0);
    let (mut how, at) = (with(CKM_AES_ECB_ENCRYPT_DATA, parameter), template.as_mut_ptr());
    let derived = call!(module, C_DeriveKey(session.handle, &mut how.raw(), key, at, 2, &mut made));
    assert_eq!((derived, made), (CKR_KEY_HANDLE_INVALID, CK_INVALID_HANDLE));
    // Another key of its name is another object.
    let again = session.import("changes", CKK_AES, &data(16), both()).expect("made");
    assert_ne!(again, key);
    assert_eq!(ecb(&session, key, 1), Err(CKR_KEY_HANDLE_INVALID));
    assert!(ecb(&session, again, 1).is_ok());
}

#[test]
fn a_spent_budget_is_an_exhausted_key() {
    let own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let small =
        NewKey { caller_nonces: false, ..NewKey::for_modes("own0.small", "aes-128", &[Mode::Ecb], 8) };
    own.cluster.client().generate(small).expect("made");
    let [key] = session.find(vec![text(CKA_LABEL, "small")])[..] else { panic!("one key") };
    assert!(ecb(&session, key, 8).is_ok());
    assert_eq!(ecb(&session, key, 1), Err(CKR_KEY_EXHAUSTED));
}

#[test]
fn what_the_rules_forbid_is_a_prohibited_action() {
    let mut own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = session.import("forbidden", CKK_AES, &data(16), vec![]).expect("made");
    for node in 0..3 {
        own.cluster.nodes[node].take().expect("it runs").stop();
        let dir = NodeDir::open(&own.cluster.local.nodes[node]).expect("its directory");
        let path = dir.path().join("clients.toml");
        let rules = std::fs::read_to_string(&path).expect("rules");
        let narrow = rules.replace("\"encrypt\",", "").replace("\"encrypt\"", "");
        assert_ne!(narrow, rules, "{rules}");
        std::fs::write(&path, narrow).expect("written");
        own.cluster.restart(node);
    }
    own.cluster.wait_until_ready();
    // The client leaves nodes that it did not reach alone for a moment.
    let mut message = ecb(&session, key, 1);
    for _ in 0..100 {
        if message != Err(CKR_DEVICE_ERROR) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
        message = ecb(&session, key, 1);
    }
    assert_eq!(message, Err(CKR_ACTION_PROHIBITED));
    assert!(session.run(Does::Decrypt, &mut plain(CKM_AES_ECB), key, &data(16)).is_ok());
}

#[test]
fn the_size_of_an_object_is_not_known() {
    let session = session();
    let key = session.import("size", CKK_AES, &data(16), vec![]).expect("made");
    let mut size = 0;
    assert_eq!(call!(session.module, C_GetObjectSize(session.handle, key, &mut size)), CKR_OK);
    assert_eq!(size, CK_UNAVAILABLE_INFORMATION);
    let nowhere = call!(session.module, C_GetObjectSize(session.handle, key, ptr::null_mut()));
    assert_eq!(nowhere, CKR_ARGUMENTS_BAD);
    let other = call!(session.module, C_GetObjectSize(session.handle, key + 1_000_000, &mut size));
    assert_eq!(other, CKR_OBJECT_HANDLE_INVALID);
}
