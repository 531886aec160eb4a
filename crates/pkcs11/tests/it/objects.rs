//! Keys as objects: made, found, described, changed, deleted.

use cryptoki_sys::*;

use crate::common::*;

#[test]
fn a_generated_key_tells_the_truth_about_itself() {
    let session = session();
    let template = vec![
        flag(CKA_TOKEN, true),
        number(CKA_VALUE_LEN, 32),
        text(CKA_LABEL, "truth"),
        (CKA_ID, vec![1, 2]),
    ];
    let key = session.generate(CKM_AES_KEY_GEN, template).expect("made");
    assert_eq!(session.attribute(key, CKA_VALUE), Err(CKR_ATTRIBUTE_SENSITIVE));
    assert_eq!(session.attribute(key, CKA_MODULUS), Err(CKR_ATTRIBUTE_TYPE_INVALID));
    assert_eq!(session.attribute(key, CKA_CHECK_VALUE), Err(CKR_ATTRIBUTE_TYPE_INVALID));
    for kind in
        [CKA_SENSITIVE, CKA_ALWAYS_SENSITIVE, CKA_NEVER_EXTRACTABLE, CKA_LOCAL, CKA_TOKEN, CKA_PRIVATE]
    {
        assert!(session.is(key, kind), "{kind:#x}");
    }
    for kind in [CKA_EXTRACTABLE, CKA_SIGN, CKA_VERIFY, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE] {
        assert!(!session.is(key, kind), "{kind:#x}");
    }
    assert!(session.is(key, CKA_ENCRYPT) && session.is(key, CKA_DECRYPT));
    assert_eq!(session.attribute(key, CKA_LABEL).expect("a label"), b"truth");
    assert_eq!(session.attribute(key, CKA_ID).expect("an id"), [1, 2]);
    assert_eq!(session.attribute(key, CKA_VALUE_LEN).expect("a length"), 32u64.to_ne_bytes());
    assert_eq!(session.attribute(key, CKA_KEY_TYPE).expect("a type"), CKK_AES.to_ne_bytes());
    assert_eq!(session.attribute(key, CKA_KEY_GEN_MECHANISM).expect("known"), CKM_AES_KEY_GEN.to_ne_bytes());
    let imported =
        session.import("imported", CKK_AES, &data(16), vec![flag(CKA_EXTRACTABLE, true)]).expect("made");
    for kind in [CKA_ALWAYS_SENSITIVE, CKA_NEVER_EXTRACTABLE, CKA_LOCAL] {
        assert!(!session.is(imported, kind), "{kind:#x}");
    }
    assert!(session.is(imported, CKA_EXTRACTABLE));
}

#[test]
fn templates_that_contradict_themselves_or_ask_too_much_make_no_key() {
    let session = session();
    let refused = |template: Vec<Attribute>, rv| {
        let message = session.generate(CKM_AES_KEY_GEN, template.clone());
        assert_eq!(message, Err(rv), "{template:?}");
    };
    let aes = || number(CKA_VALUE_LEN, 16);
    refused(vec![], CKR_TEMPLATE_INCOMPLETE);
    refused(vec![number(CKA_VALUE_LEN, 17)], CKR_KEY_SIZE_RANGE);
    refused(vec![aes(), flag(CKA_SENSITIVE, false)], CKR_TEMPLATE_INCONSISTENT);
    refused(vec![aes(), flag(CKA_PRIVATE, false)], CKR_TEMPLATE_INCONSISTENT);
    assert!(log_of(&shared().configuration).contains("is seen only after a login (CKA_PRIVATE)"));
    refused(vec![aes(), number(CKA_CLASS, CKO_PUBLIC_KEY)], CKR_TEMPLATE_INCONSISTENT);
    refused(vec![aes(), number(CKA_KEY_TYPE, CKK_DES3)], CKR_TEMPLATE_INCONSISTENT);
    refused(vec![aes(), number(CKA_VALUE_LEN, 32)], CKR_TEMPLATE_INCONSISTENT);
    refused(vec![aes(), (CKA_VALUE, data(16))], CKR_TEMPLATE_INCONSISTENT);
    refused(vec![aes(), (CKA_TOKEN, vec![2])], CKR_ATTRIBUTE_VALUE_INVALID);
    refused(vec![aes(), (CKA_TOKEN, vec![])], CKR_ATTRIBUTE_VALUE_INVALID);
    refused(vec![aes(), (CKA_MODULUS, vec![1])], CKR_ATTRIBUTE_TYPE_INVALID);
    refused(vec![aes(), (CKA_UNIQUE_ID, vec![1])], CKR_ATTRIBUTE_TYPE_INVALID);
    refused(vec![aes(), (CKA_START_DATE, b"tomorrow".to_vec())], CKR_ATTRIBUTE_VALUE_INVALID);
    refused(vec![aes(), (CKA_LABEL, vec![0; 5000])], CKR_ATTRIBUTE_VALUE_INVALID);
    refused(vec![aes(), number(CKA_ALLOWED_MECHANISMS, CKM_RSA_PKCS)], CKR_TEMPLATE_INCONSISTENT);
    assert_eq!(session.import("short", CKK_AES, &data(15), vec![]), Err(CKR_KEY_SIZE_RANGE));
    assert_eq!(session.import("other", CKK_RSA, &data(16), vec![]), Err(CKR_TEMPLATE_INCONSISTENT));
    assert!(session.find(vec![]).is_empty());
}

#[test]
fn keys_are_found_by_what_they_are_and_handles_stay() {
    let session = session();
    let label = |label: &str| vec![text(CKA_LABEL, label)];
    let one = session.import("one", CKK_AES, &data(16), vec![(CKA_ID, vec![1])]).expect("made");
    let two = session.import("two", CKK_AES, &data(32), vec![(CKA_ID, vec![2])]).expect("made");
    // A label that no name of the nodes can be.
    let odd = session.import("täst / 1", CKK_DES3, &data(24), vec![]).expect("made");
    let twice = session.import("one", CKK_AES, &data(16), vec![]).expect("the same label again");
    let mut all = session.find(vec![]);
    all.sort_unstable();
    assert_eq!(all, [one, two, odd, twice]);
    assert_eq!(session.find(label("two")), [two]);
    assert_eq!(session.find(label("täst / 1")), [odd]);
    assert_eq!(session.find(label("one")).len(), 2);
    assert_eq!(session.find(vec![(CKA_ID, vec![1])]), [one]);
    assert_eq!(session.find(vec![number(CKA_KEY_TYPE, CKK_DES3)]), [odd]);
    assert!(session.find(vec![number(CKA_CLASS, CKO_PUBLIC_KEY)]).is_empty());
    assert!(session.find(vec![flag(CKA_EXTRACTABLE, true)]).is_empty());
    assert!(session.find(vec![(CKA_VALUE, data(16))]).is_empty(), "no key tells its value");
    assert_eq!(session.destroy(one), CKR_OK);
    assert_eq!(session.destroy(one), CKR_OBJECT_HANDLE_INVALID);
    assert_eq!(session.attribute(one, CKA_LABEL), Err(CKR_OBJECT_HANDLE_INVALID));
    let again = session.import("one", CKK_AES, &data(16), vec![]).expect("the name is free again");
    assert!(![one, two, odd, twice].contains(&again), "no handle is used twice");
    // Another token of the same client has another prefix.
    let other = crate::common::session();
    assert!(other.find(vec![]).is_empty());
    assert_eq!(other.attribute(two, CKA_LABEL), Err(CKR_OBJECT_HANDLE_INVALID));
}

#[test]
fn labels_change_and_uses_are_turned_off_for_ever() {
    let session = session();
    let key = session.import("before", CKK_AES, &data(16), vec![]).expect("made");
    assert_eq!(session.set(key, vec![text(CKA_LABEL, "after"), (CKA_ID, vec![9])]), CKR_OK);
    assert_eq!(session.find(vec![text(CKA_LABEL, "after"), (CKA_ID, vec![9])]), [key]);
    assert_eq!(session.set(key, vec![flag(CKA_DECRYPT, false)]), CKR_OK);
    assert!(session.is(key, CKA_ENCRYPT) && !session.is(key, CKA_DECRYPT));
    assert_eq!(session.init(Does::Decrypt, &mut plain(CKM_AES_ECB), key), CKR_KEY_FUNCTION_NOT_PERMITTED);
    assert_eq!(session.set(key, vec![flag(CKA_DECRYPT, true)]), CKR_ATTRIBUTE_READ_ONLY);
    assert_eq!(session.set(key, vec![flag(CKA_SENSITIVE, false)]), CKR_ATTRIBUTE_READ_ONLY);
    assert_eq!(session.set(key, vec![(CKA_VALUE, data(16))]), CKR_ATTRIBUTE_READ_ONLY);
    assert_eq!(session.set(key, vec![(CKA_MODULUS, vec![1])]), CKR_ATTRIBUTE_TYPE_INVALID);
    assert_eq!(session.set(key, vec![(CKA_LABEL, vec![0; 5000])]), CKR_ATTRIBUTE_VALUE_INVALID);
    let fixed = session.import("fixed", CKK_AES, &data(16), vec![flag(CKA_MODIFIABLE, false)]).expect("made");
    assert_eq!(session.set(fixed, vec![text(CKA_LABEL, "x")]), CKR_ACTION_PROHIBITED);
}

#[test]
fn allowed_mechanisms_are_all_that_a_key_serves() {
    let session = session();
    let key = session
        .import("only", CKK_AES, &data(16), vec![number(CKA_ALLOWED_MECHANISMS, CKM_AES_GCM)])
        .expect("made");
    assert_eq!(session.attribute(key, CKA_ALLOWED_MECHANISMS).expect("kept"), CKM_AES_GCM.to_ne_bytes());
    assert!(session.run(Does::Encrypt, &mut gcm(&[1; 12], b"", 128), key, &data(5)).is_ok());
    assert_eq!(session.init(Does::Encrypt, &mut plain(CKM_AES_ECB), key), CKR_MECHANISM_INVALID);
}

#[test]
fn a_copy_is_the_same_key_for_no_more_and_outlives_it() {
    let session = session();
    let key = session
        .generate(CKM_AES_KEY_GEN, vec![number(CKA_VALUE_LEN, 16), text(CKA_LABEL, "first")])
        .expect("made");
    let copy = |more: Vec<Attribute>| {
        let (mut attributes, mut handle) = (more, 0);
        let mut template = template(&mut attributes);
        let (at, count) = (template.as_mut_ptr(), template.len() as CK_ULONG);
        match call!(session.module, C_CopyObject(session.handle, key, at, count, &mut handle)) {
            CKR_OK => Ok(handle),
            rv => Err(rv),
        }
    };
    let stays = vec![flag(CKA_TOKEN, true), text(CKA_LABEL, "second"), flag(CKA_DECRYPT, false)];
    let second = copy(stays).expect("copied");
    assert!(
        session.is(second, CKA_TOKEN) && !session.is(second, CKA_DECRYPT) && !session.is(second, CKA_LOCAL)
    );
    let encrypt =
        |key| session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(16)).expect("encrypted");
    let expected = encrypt(key);
    assert_eq!(encrypt(second), expected);
    assert_eq!(copy(vec![flag(CKA_SENSITIVE, false)]), Err(CKR_ATTRIBUTE_READ_ONLY));
    assert_eq!(copy(vec![flag(CKA_EXTRACTABLE, true)]), Err(CKR_ATTRIBUTE_READ_ONLY));
    assert_eq!(copy(vec![flag(CKA_PRIVATE, false)]), Err(CKR_TEMPLATE_INCONSISTENT));
    assert_eq!(session.destroy(key), CKR_OK);
    assert_eq!(encrypt(second), expected);
}

/// PKCS#11 has no rule that a key is for something. What such a key can do is to leave, wrapped.
#[test]
fn a_key_for_nothing_is_made_and_says_so() {
    let session = session();
    let uses = [CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE];
    let none = || uses.map(|kind| flag(kind, false)).to_vec();
    let made = session
        .generate(CKM_AES_KEY_GEN, [none(), vec![number(CKA_VALUE_LEN, 16), flag(CKA_TOKEN, true)]].concat())
        .expect("made");
    let of_des = session.generate(CKM_DES3_KEY_GEN, none()).expect("made");
    let imported = session.import("for-nothing", CKK_AES, &data(16), none()).expect("imported");
    let full = session.generate(CKM_AES_KEY_GEN, vec![number(CKA_VALUE_LEN, 16)]).expect("made");
    let copied = {
        let (mut attributes, mut handle) = (none(), 0);
        let mut template = template(&mut attributes);
        let (at, count) = (template.as_mut_ptr(), template.len() as CK_ULONG);
        let rv = call!(session.module, C_CopyObject(session.handle, full, at, count, &mut handle));
        assert_eq!(rv, CKR_OK);
        handle
    };
    for key in [made, of_des, imported, copied] {
        assert!(uses.iter().all(|kind| !session.is(key, *kind)));
        assert_eq!(session.attribute(key, CKA_ALLOWED_MECHANISMS), Ok(vec![]));
    }
    assert_eq!(session.init(Does::Encrypt, &mut plain(CKM_AES_ECB), made), CKR_KEY_FUNCTION_NOT_PERMITTED);
    assert_eq!(session.init(Does::Sign, &mut plain(CKM_AES_CMAC), made), CKR_KEY_FUNCTION_NOT_PERMITTED);
}

#[test]
fn templates_of_keys_that_others_could_see_make_keys_that_they_cannot_where_that_is_set() {
    let own = own("visible_templates = \"make-sensitive\"");
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let visible = vec![
        number(CKA_VALUE_LEN, 16),
        flag(CKA_TOKEN, true),
        flag(CKA_SENSITIVE, false),
        flag(CKA_PRIVATE, false),
    ];
    let key = session.generate(CKM_AES_KEY_GEN, visible).expect("made");
    assert!(session.is(key, CKA_SENSITIVE) && session.is(key, CKA_PRIVATE));
    assert!(session.find(vec![flag(CKA_PRIVATE, false)]).is_empty());
    assert_eq!(call!(module, C_Logout(session.handle)), CKR_OK);
    assert!(session.find(vec![]).is_empty(), "nobody sees it without a login");
}

#[test]
fn a_key_that_could_leave_once_never_says_that_it_could_not() {
    let session = session();
    let template = vec![number(CKA_VALUE_LEN, 16), flag(CKA_TOKEN, true), flag(CKA_EXTRACTABLE, true)];
    let key = session.generate(CKM_AES_KEY_GEN, template).expect("made");
    assert!(session.is(key, CKA_EXTRACTABLE) && !session.is(key, CKA_NEVER_EXTRACTABLE));
    assert_eq!(session.set(key, vec![flag(CKA_EXTRACTABLE, false), text(CKA_LABEL, "stays")]), CKR_OK);
    // Also as the nodes list it.
    for key in [key, session.find(vec![text(CKA_LABEL, "stays")])[0]] {
        assert!(session.is(key, CKA_LOCAL) && !session.is(key, CKA_EXTRACTABLE));
        assert!(!session.is(key, CKA_NEVER_EXTRACTABLE) && !session.is(key, CKA_ALWAYS_SENSITIVE));
    }
    assert_eq!(session.set(key, vec![flag(CKA_EXTRACTABLE, true)]), CKR_ATTRIBUTE_READ_ONLY);
}

#[test]
fn a_session_key_ends_with_its_session() {
    let session = session();
    let short = Session::open_with(session.module, slot_of(&session), CKF_SERIAL_SESSION).expect("opened");
    let key = short.generate(CKM_AES_KEY_GEN, vec![number(CKA_VALUE_LEN, 16)]).expect("made");
    assert!(!session.is(key, CKA_TOKEN));
    assert_eq!(session.find(vec![flag(CKA_TOKEN, false)]), [key]);
    assert!(session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(16)).is_ok());
    assert_eq!(short.close(), CKR_OK);
    assert!(session.find(vec![]).is_empty());
    assert_eq!(session.init(Does::Encrypt, &mut plain(CKM_AES_ECB), key), CKR_KEY_HANDLE_INVALID);
}

#[test]
fn a_session_key_is_seen_by_its_own_process_alone() {
    let session = session();
    let label = text(CKA_LABEL, "passing");
    let key =
        session.generate(CKM_AES_KEY_GEN, vec![number(CKA_VALUE_LEN, 16), label.clone()]).expect("made");
    let staying = vec![number(CKA_VALUE_LEN, 16), label.clone(), flag(CKA_TOKEN, true)];
    let staying = session.generate(CKM_AES_KEY_GEN, staying).expect("made");
    let mut found = session.find(vec![label.clone()]);
    found.sort_unstable();
    assert_eq!(found, [key, staying]);
    // A copy of the library has nothing in common with this one but the nodes, as in another process.
    let other = Module::with(&shared().configuration);
    let elsewhere = Session::open(&other, slot_of(&session));
    assert_eq!(elsewhere.login(CKU_USER, USER_PIN), CKR_OK);
    let found = elsewhere.find(vec![label]);
    assert_eq!(found.len(), 1);
    assert!(elsewhere.is(found[0], CKA_TOKEN));
}

#[test]
fn a_key_of_triple_des_with_every_use_wraps_nothing_and_says_so() {
    let session = session();
    let uses = [CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY, CKA_WRAP, CKA_UNWRAP];
    for kind in [CKM_DES2_KEY_GEN, CKM_DES3_KEY_GEN] {
        let key = session.generate(kind, uses.map(|kind| flag(kind, true)).to_vec()).expect("made");
        assert_eq!(uses.map(|kind| session.is(key, kind)), [true, true, true, true, false, false]);
    }
    let refused = session.generate(CKM_DES3_KEY_GEN, vec![flag(CKA_WRAP, true)]);
    assert_eq!(refused, Err(CKR_TEMPLATE_INCONSISTENT));
}

fn slot_of(session: &Session<'_>) -> CK_SLOT_ID {
    let mut info = CK_SESSION_INFO::default();
    assert_eq!(call!(session.module, C_GetSessionInfo(session.handle, &mut info)), CKR_OK);
    info.slotID
}
