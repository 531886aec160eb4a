//! The module over time: initialized and finalized, in several threads, after a fork, while nodes come and
//! go.

use std::ptr;

use cryptoki_sys::*;

use crate::common::*;

#[test]
fn a_configuration_that_does_not_fit_is_said_in_the_log_and_can_be_mended() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("pkcs11.toml");
    std::fs::write(&path, "[[token]]\nlabel = \"a\"\nclient = \"/nowhere\"\ncolour = 1\n").expect("written");
    let module = Module::load();
    assert_eq!(module.initialize(&path), CKR_GENERAL_ERROR);
    assert!(log_of(&path).contains("colour"), "{}", log_of(&path));
    assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_CRYPTOKI_NOT_INITIALIZED);
    std::fs::write(&path, "[[token]]\nlabel = \"a\"\nclient = \"/nowhere\"\n").expect("written");
    assert_eq!(module.initialize(&path), CKR_OK);
    // A client that is not there: only who logs in is told.
    let session = Session::open(&module, 0);
    assert_eq!(session.login(CKU_USER, USER_PIN), CKR_USER_PIN_NOT_INITIALIZED);
}

#[test]
fn it_is_initialized_once_at_a_time_and_again_after_its_end() {
    let own = own("");
    let module = Module::load();
    let mut info = CK_INFO::default();
    assert_eq!(call!(module, C_GetInfo(&mut info)), CKR_CRYPTOKI_NOT_INITIALIZED);
    for _ in 0..3 {
        assert_eq!(module.initialize(&own.configuration), CKR_OK);
        assert_eq!(module.initialize(&own.configuration), CKR_CRYPTOKI_ALREADY_INITIALIZED);
        assert_eq!(call!(module, C_GetInfo(&mut info)), CKR_OK);
        assert_eq!((info.cryptokiVersion.major, info.cryptokiVersion.minor), (3, 0));
        let session = logged_in(&module);
        let key = session.generate(CKM_AES_KEY_GEN, vec![number(CKA_VALUE_LEN, 16)]).expect("made");
        assert!(session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(16)).is_ok());
        let mut reserved = 0u8;
        assert_eq!(call!(module, C_Finalize((&raw mut reserved).cast())), CKR_ARGUMENTS_BAD);
        assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_OK);
        assert_eq!(session.close(), CKR_CRYPTOKI_NOT_INITIALIZED);
    }
}

#[test]
fn initialization_takes_the_locks_of_the_system_only() {
    unsafe extern "C" fn create(_: *mut *mut std::ffi::c_void) -> CK_RV {
        CKR_OK
    }
    unsafe extern "C" fn other(_: *mut std::ffi::c_void) -> CK_RV {
        CKR_OK
    }
    let module = Module::load();
    let mut arguments = CK_C_INITIALIZE_ARGS {
        CreateMutex: Some(create),
        DestroyMutex: Some(other),
        LockMutex: Some(other),
        UnlockMutex: Some(other),
        flags: 0,
        pReserved: ptr::null_mut(),
    };
    let message =
        |arguments: &mut CK_C_INITIALIZE_ARGS| call!(module, C_Initialize(ptr::from_mut(arguments).cast()));
    assert_eq!(message(&mut arguments), CKR_CANT_LOCK);
    arguments.LockMutex = None;
    assert_eq!(message(&mut arguments), CKR_ARGUMENTS_BAD);
    let mut something = 0u8;
    arguments = CK_C_INITIALIZE_ARGS {
        CreateMutex: None,
        DestroyMutex: None,
        LockMutex: None,
        UnlockMutex: None,
        flags: CKF_OS_LOCKING_OK,
        pReserved: (&raw mut something).cast(),
    };
    assert_eq!(message(&mut arguments), CKR_ARGUMENTS_BAD);
}

#[test]
fn eight_threads_use_one_token_at_once() {
    let session = session();
    let key = session.import("threads", CKK_AES, &data(16), vec![]).expect("made");
    let expected = session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(16)).expect("encrypted");
    let mut info = CK_SESSION_INFO::default();
    assert_eq!(call!(session.module, C_GetSessionInfo(session.handle, &mut info)), CKR_OK);
    std::thread::scope(|scope| {
        for n in 0..8u8 {
            let expected = &expected;
            scope.spawn(move || {
                let session = Session::open(&shared().module, info.slotID);
                for round in 0..5 {
                    let run = |does, data: &[u8]| session.run(does, &mut plain(CKM_AES_ECB), key, data);
                    assert_eq!(run(Does::Encrypt, &data(16)).as_ref(), Ok(expected));
                    let nonce = [n, round, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                    let sealed =
                        session.run(Does::Encrypt, &mut gcm(&nonce, b"", 128), key, &[n; 30]).expect("done");
                    let opened = session.run(Does::Decrypt, &mut gcm(&nonce, b"", 128), key, &sealed);
                    assert_eq!(opened, Ok(vec![n; 30]));
                }
                assert_eq!(session.close(), CKR_OK);
            });
        }
    });
}

/// The child runs nothing but the module.
#[test]
fn the_child_of_a_fork_begins_anew_and_leaves_the_parent_alone() {
    let own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = session.import("parent", CKK_AES, &data(16), vec![]).expect("made");
    let encrypt = || session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &[1; 16]);
    let expected = encrypt().expect("encrypted");
    let mut info = CK_INFO::default();
    let child = || {
        if call!(module, C_GetInfo(&mut info)) != CKR_CRYPTOKI_NOT_INITIALIZED {
            return 1;
        }
        if encrypt() != Err(CKR_CRYPTOKI_NOT_INITIALIZED) {
            return 2;
        }
        if call!(module, C_Initialize(ptr::null_mut())) != CKR_OK {
            return 3;
        }
        let session = Session::open(&module, 0);
        if session.login(CKU_USER, USER_PIN) != CKR_OK {
            return 4;
        }
        let found = session.find(vec![text(CKA_LABEL, "parent")]);
        let [key] = found[..] else { return 5 };
        match session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &[1; 16]) {
            Ok(made) if made == expected => 0,
            _ => 6,
        }
    };
    // The child reads the environment of this moment.
    assert_eq!(in_environment(&own.configuration, || in_child(child)), 0);
    assert_eq!(encrypt(), Ok(expected));
}

#[test]
fn a_node_that_stops_or_starts_again_costs_no_session_and_changes_no_result() {
    let mut own = own("");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = session.import("stays", CKK_AES, &data(16), vec![]).expect("made");
    let encrypt = || session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &[1; 16]);
    let expected = encrypt();
    assert!(expected.is_ok());
    own.cluster.nodes[1].take().expect("it runs").stop();
    // All three are needed: the others say that one is missing.
    assert_eq!(encrypt(), Err(CKR_DEVICE_ERROR));
    own.cluster.restart(1);
    own.cluster.wait_until_ready();
    assert_eq!(until_served(encrypt), expected);
}

#[test]
fn nonces_of_the_nodes_follow_the_tag_where_the_program_gives_none() {
    let own = own("gcm_nonce = \"nodes\"");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = session.import("nodes", CKK_AES, &data(16), vec![]).expect("made");
    let refused = session.init(Does::Encrypt, &mut gcm(&[1; 12], b"", 128), key);
    assert_eq!(refused, CKR_MECHANISM_PARAM_INVALID);
    let mut how = gcm(&[], b"header", 128);
    let [one, two] =
        [(); 2].map(|()| session.run(Does::Encrypt, &mut how, key, &data(20)).expect("encrypted"));
    assert_eq!((one.len(), two.len()), (20 + 16 + 12, 48));
    assert_ne!(one[36..], two[36..], "no nonce comes twice");
    assert_eq!(session.run(Does::Decrypt, &mut how, key, &one), Ok(data(20)));
    let nonce = &one[36..];
    assert_eq!(session.run(Does::Decrypt, &mut gcm(nonce, b"header", 128), key, &one[..36]), Ok(data(20)));
}

#[test]
fn templates_of_visible_keys_make_sensitive_ones_where_the_configuration_says_so() {
    let own = own("visible_templates = \"make-sensitive\"");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = session.import("visible", CKK_AES, &data(16), vec![flag(CKA_SENSITIVE, false)]).expect("made");
    assert!(session.is(key, CKA_SENSITIVE));
    assert_eq!(session.attribute(key, CKA_VALUE), Err(CKR_ATTRIBUTE_SENSITIVE));
}

#[test]
fn ten_thousand_sessions_are_open_at_once_and_the_last_one_logs_out() {
    let first = session();
    let mut info = CK_SESSION_INFO::default();
    assert_eq!(call!(first.module, C_GetSessionInfo(first.handle, &mut info)), CKR_OK);
    let counted = || {
        let mut info_of_token = CK_TOKEN_INFO::default();
        assert_eq!(call!(first.module, C_GetTokenInfo(info.slotID, &mut info_of_token)), CKR_OK);
        (info_of_token.ulSessionCount, info_of_token.ulRwSessionCount)
    };
    let open = |n: usize| {
        let writes = if n.is_multiple_of(4) { CKF_RW_SESSION } else { 0 };
        Session::open_with(first.module, info.slotID, CKF_SERIAL_SESSION | writes).expect("opened")
    };
    let others: Vec<Session<'_>> = (0..10_000).map(open).collect();
    assert_eq!(counted(), (10_001, 2_501));
    assert!(others.iter().all(|other| other.state() != CKS_RO_PUBLIC_SESSION));
    assert_eq!(first.close(), CKR_OK);
    assert_eq!(first.close(), CKR_SESSION_HANDLE_INVALID);
    let (last, others) = others.split_last().expect("thousands");
    assert!(others.iter().all(|other| other.close() == CKR_OK));
    assert_eq!(counted(), (1, 0));
    assert_eq!(last.state(), CKS_RO_USER_FUNCTIONS);
    assert_eq!(last.close(), CKR_OK);
    assert_eq!(counted(), (0, 0));
    assert_eq!(open(0).state(), CKS_RW_PUBLIC_SESSION);
}

#[test]
fn operations_of_a_login_end_with_it_in_all_sessions() {
    let session = session();
    let mut info = CK_SESSION_INFO::default();
    assert_eq!(call!(session.module, C_GetSessionInfo(session.handle, &mut info)), CKR_OK);
    let other = Session::open(session.module, info.slotID);
    let key = session.import("ends", CKK_AES, &data(16), vec![]).expect("made");
    let signs = vec![flag(CKA_SIGN, true)];
    let mac = session.import("ends-mac", CKK_AES, &data(16), signs).expect("made");
    let sealed = session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(16)).expect("encrypted");
    for session in [session, other] {
        assert_eq!(session.init(Does::Decrypt, &mut plain(CKM_AES_ECB), key), CKR_OK);
        assert_eq!(session.init(Does::Encrypt, &mut gcm(&[1; 12], b"", 128), key), CKR_OK);
        assert_eq!(session.init(Does::Sign, &mut plain(CKM_AES_CMAC), mac), CKR_OK);
        let mut how = plain(CKM_AES_GCM).raw();
        assert_eq!(call!(session.module, C_MessageDecryptInit(session.handle, &mut how, key)), CKR_OK);
        let mut how = plain(CKM_SHA256).raw();
        assert_eq!(call!(session.module, C_DigestInit(session.handle, &mut how)), CKR_OK);
    }
    assert_eq!(call!(session.module, C_Logout(other.handle)), CKR_OK);
    let all_have_ended = |session: Session<'_>| {
        for does in [Does::Decrypt, Does::Encrypt, Does::Sign] {
            let message = session.whole(does, &sealed, Some(64)).0;
            assert_eq!(message, CKR_OPERATION_NOT_INITIALIZED, "{does:?}");
        }
        let message = call!(session.module, C_MessageDecryptFinal(session.handle));
        assert_eq!(message, CKR_OPERATION_NOT_INITIALIZED);
    };
    all_have_ended(session);
    // Another login brings none of them back.
    assert_eq!(session.login(CKU_USER, USER_PIN), CKR_OK);
    all_have_ended(other);
    for session in [session, other] {
        let opened = session.run(Does::Decrypt, &mut plain(CKM_AES_ECB), key, &sealed);
        assert_eq!(opened, Ok(data(16)), "a new operation works");
        let (mut digest, mut len, mut text) = ([0; 32], 32, data(16));
        let (from, to) = (text.as_mut_ptr(), digest.as_mut_ptr());
        let message = call!(session.module, C_Digest(session.handle, from, 16, to, &mut len));
        assert_eq!(message, CKR_OK, "a digest needs no login");
    }
}
