//! Logins, PINs, and what each state of a session allows.

use cryptoki_sys::*;

use crate::common::*;

#[test]
fn a_login_is_one_of_all_sessions_of_a_token_and_ends_with_the_last() {
    let module = &shared().module;
    let slot = slot();
    let (writes, reads) =
        (Session::open(module, slot), Session::open_with(module, slot, CKF_SERIAL_SESSION).expect("opened"));
    assert_eq!((writes.state(), reads.state()), (CKS_RW_PUBLIC_SESSION, CKS_RO_PUBLIC_SESSION));
    assert_eq!(call!(module, C_Logout(writes.handle)), CKR_USER_NOT_LOGGED_IN);
    assert_eq!(reads.login(CKU_SO, SO_PIN), CKR_SESSION_READ_ONLY_EXISTS);
    assert_eq!(reads.login(CKU_USER, USER_PIN), CKR_OK);
    assert_eq!((writes.state(), reads.state()), (CKS_RW_USER_FUNCTIONS, CKS_RO_USER_FUNCTIONS));
    assert_eq!(writes.login(CKU_USER, USER_PIN), CKR_USER_ALREADY_LOGGED_IN);
    assert_eq!(writes.login(CKU_SO, SO_PIN), CKR_USER_ANOTHER_ALREADY_LOGGED_IN);
    assert_eq!(writes.login(CKU_CONTEXT_SPECIFIC, USER_PIN), CKR_OPERATION_NOT_INITIALIZED);
    assert_eq!(writes.login(99, USER_PIN), CKR_USER_TYPE_INVALID);
    let token_key = vec![flag(CKA_TOKEN, true), number(CKA_VALUE_LEN, 16)];
    assert_eq!(reads.generate(CKM_AES_KEY_GEN, token_key.clone()), Err(CKR_SESSION_READ_ONLY));
    let of_no_kind = reads.import("read", CKK_RSA, &data(16), vec![(CKA_MODULUS, data(16))]);
    assert_eq!(of_no_kind, Err(CKR_SESSION_READ_ONLY));
    let key = writes.generate(CKM_AES_KEY_GEN, token_key).expect("made");
    assert_eq!(reads.destroy(key), CKR_SESSION_READ_ONLY);
    assert_eq!(reads.set(key, vec![text(CKA_LABEL, "other")]), CKR_SESSION_READ_ONLY);
    assert_eq!((writes.close(), reads.close()), (CKR_OK, CKR_OK));
    assert_eq!(reads.close(), CKR_SESSION_HANDLE_INVALID);
    let again = Session::open(module, slot);
    assert_eq!(again.state(), CKS_RW_PUBLIC_SESSION);
    assert!(again.find(vec![]).is_empty());
    assert_eq!(
        again.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(16)),
        Err(CKR_USER_NOT_LOGGED_IN)
    );
    assert_eq!(again.generate(CKM_AES_KEY_GEN, vec![number(CKA_VALUE_LEN, 16)]), Err(CKR_USER_NOT_LOGGED_IN));
}

#[test]
fn the_security_officer_sets_pins_and_uses_no_keys() {
    let own = own("");
    let module = Module::with(&own.configuration);
    let officer = Session::open(&module, 0);
    assert_eq!(officer.login(CKU_SO, b"wrong"), CKR_PIN_INCORRECT);
    assert_eq!(officer.login(CKU_SO, SO_PIN), CKR_OK);
    assert_eq!(officer.state(), CKS_RW_SO_FUNCTIONS);
    assert_eq!(
        Session::open_with(&module, 0, CKF_SERIAL_SESSION).err(),
        Some(CKR_SESSION_READ_WRITE_SO_EXISTS)
    );
    assert!(officer.find(vec![]).is_empty());
    let pin =
        |pin: &[u8]| call!(module, C_InitPIN(officer.handle, pin.as_ptr().cast_mut(), pin.len() as CK_ULONG));
    assert_eq!(pin(b"123"), CKR_PIN_LEN_RANGE);
    assert!(log_of(&own.configuration).contains("the PIN of the user has 4 to 255 bytes here"));
    assert_eq!(pin(b"a new pin"), CKR_OK);
    assert_eq!(call!(module, C_Logout(officer.handle)), CKR_OK);
    assert_eq!(pin(b"a new pin"), CKR_USER_NOT_LOGGED_IN);
    let user = officer;
    assert_eq!(user.login(CKU_USER, USER_PIN), CKR_PIN_INCORRECT);
    assert_eq!(user.login(CKU_USER, b"a new pin"), CKR_OK);
    let change = |old: &[u8], new: &[u8]| {
        let (from, to) = (old.as_ptr().cast_mut(), new.as_ptr().cast_mut());
        call!(module, C_SetPIN(user.handle, from, old.len() as CK_ULONG, to, new.len() as CK_ULONG))
    };
    assert_eq!(change(b"not it", b"abcd"), CKR_PIN_INCORRECT);
    assert_eq!(change(b"a new pin", b"123"), CKR_PIN_LEN_RANGE);
    assert_eq!(change(b"a new pin", &[0xff, 0, 1, 2]), CKR_OK);
    assert_eq!(call!(module, C_Logout(user.handle)), CKR_OK);
    assert_eq!(user.login(CKU_USER, &[0xff, 0, 1, 2]), CKR_OK);
    assert_eq!(call!(module, C_Logout(user.handle)), CKR_OK);
    for _ in 0..10 {
        assert_eq!(user.login(CKU_USER, b"wrong"), CKR_PIN_INCORRECT);
    }
    assert_eq!(user.login(CKU_USER, &[0xff, 0, 1, 2]), CKR_PIN_LOCKED);
    let mut info = CK_TOKEN_INFO::default();
    assert_eq!(call!(module, C_GetTokenInfo(0, &mut info)), CKR_OK);
    assert_ne!(info.flags & CKF_USER_PIN_LOCKED, 0);
}

#[test]
fn a_token_is_only_begun_anew_where_the_configuration_allows_it() {
    let own = own("allow_init = true");
    let refused = Module::with(&own.cluster.configuration("refused", 1, ""));
    let allowed = Module::with(&own.configuration);
    let init = |module: &Module, label: &str, pin: &[u8]| {
        let mut field = [b' '; 32];
        field[..label.len()].copy_from_slice(label.as_bytes());
        let from = pin.as_ptr().cast_mut();
        call!(module, C_InitToken(0, from, pin.len() as CK_ULONG, field.as_mut_ptr()))
    };
    assert_eq!(init(&refused, "refused-0", SO_PIN), CKR_TOKEN_WRITE_PROTECTED);
    let user = logged_in(&allowed);
    user.import("gone", CKK_AES, &data(16), vec![]).expect("imported");
    assert_eq!(init(&allowed, "own-0", SO_PIN), CKR_SESSION_EXISTS);
    assert_eq!(user.close(), CKR_OK);
    assert_eq!(init(&allowed, "own-0", b"wrong"), CKR_PIN_INCORRECT);
    assert_eq!(init(&allowed, "another", SO_PIN), CKR_ARGUMENTS_BAD);
    assert_eq!(init(&allowed, "own-0", SO_PIN), CKR_OK);
    let session = Session::open(&allowed, 0);
    assert_eq!(session.login(CKU_USER, USER_PIN), CKR_USER_PIN_NOT_INITIALIZED);
    assert_eq!(session.login(CKU_SO, SO_PIN), CKR_OK);
    let pin = |pin: &[u8]| {
        call!(allowed, C_InitPIN(session.handle, pin.as_ptr().cast_mut(), pin.len() as CK_ULONG))
    };
    assert_eq!(pin(USER_PIN), CKR_OK);
    assert_eq!(call!(allowed, C_Logout(session.handle)), CKR_OK);
    assert_eq!(session.login(CKU_USER, USER_PIN), CKR_OK);
    assert!(session.find(vec![]).is_empty(), "its keys are deleted");
}
