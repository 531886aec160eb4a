//! Calls as no program should make them: everything null, handles of nothing, and any sequence of calls.

use std::ffi::c_void;
use std::ptr;

use cryptoki_sys::*;

use crate::common::*;

/// Every function with everything null and this handle, in the order of the list. What each answers.
fn all_null(module: &Module, handle: CK_ULONG) -> Vec<CK_RV> {
    // A function of PKCS#11 takes at most ten words. Null in all of those registers and places is null in all arguments.
    type Any = unsafe extern "C" fn(
        CK_ULONG,
        CK_ULONG,
        CK_ULONG,
        CK_ULONG,
        CK_ULONG,
        CK_ULONG,
        CK_ULONG,
        CK_ULONG,
        CK_ULONG,
        CK_ULONG,
    ) -> CK_RV;
    let first = (&raw const module.list.C_Initialize).cast::<Option<Any>>();
    let count = (size_of::<CK_FUNCTION_LIST_3_0>()
        - std::mem::offset_of!(CK_FUNCTION_LIST_3_0, C_Initialize))
        / size_of::<usize>();
    // Initialize and finalize are called elsewhere: they take null for a good argument.
    (2..count)
        .map(|at| unsafe {
            let function = (*first.add(at)).expect("every function is listed");
            let handle = if begins_with_pointer(at) { 0 } else { handle };
            function(handle, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        })
        .collect()
}

/// Whether the first argument of a function is a pointer.
fn begins_with_pointer(at: usize) -> bool {
    macro_rules! is_any_of {
        ($($name:ident),*) => {
            [$(std::mem::offset_of!(CK_FUNCTION_LIST_3_0, $name)),*]
        };
    }
    let offset = std::mem::offset_of!(CK_FUNCTION_LIST_3_0, C_Initialize) + at * size_of::<usize>();
    is_any_of!(C_GetInfo, C_GetFunctionList, C_GetInterfaceList, C_GetInterface).contains(&offset)
}

#[test]
fn every_function_refuses_null_and_bad_handles_before_and_after_initialization() {
    let own = own("");
    let module = Module::load();
    for rv in all_null(&module, 0) {
        assert!([CKR_CRYPTOKI_NOT_INITIALIZED, CKR_ARGUMENTS_BAD].contains(&rv), "{rv:#x}");
    }
    assert_eq!(module.initialize(&own.configuration), CKR_OK);
    let session = Session::open(&module, 0);
    for handle in [0, session.handle + 1, CK_ULONG::MAX, session.handle] {
        for (at, rv) in all_null(&module, handle).into_iter().enumerate() {
            assert_ne!(rv, CKR_GENERAL_ERROR, "function {at}: a panic\n{}", log_of(&own.configuration));
        }
    }
    assert!(!log_of(&own.configuration).contains("panicked"));
    // The last handle was a good one, and one of the functions closed it.
    assert_eq!(session.close(), CKR_SESSION_HANDLE_INVALID);
}

#[test]
fn the_lists_and_interfaces_are_those_of_the_standard() {
    let module = Module::load();
    assert_eq!((module.list.version.major, module.list.version.minor), (3, 0));
    let mut old: *mut CK_FUNCTION_LIST = ptr::null_mut();
    assert_eq!(call!(module, C_GetFunctionList(&mut old)), CKR_OK);
    assert_eq!(unsafe { ((*old).version.major, (*old).version.minor) }, (2, 40));
    assert_eq!(call!(module, C_GetFunctionList(ptr::null_mut())), CKR_ARGUMENTS_BAD);
    let mut count = 0;
    assert_eq!(call!(module, C_GetInterfaceList(ptr::null_mut(), &mut count)), CKR_OK);
    assert_eq!(count, 2);
    let get = |name: Option<&[u8]>, version: Option<CK_VERSION>, flags| {
        let (mut version, mut interface) = (version, ptr::null_mut::<CK_INTERFACE>());
        let name = name.map_or(ptr::null_mut(), |name| name.as_ptr().cast_mut());
        let version = version.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        let rv = call!(module, C_GetInterface(name, version, &mut interface, flags));
        (
            rv,
            unsafe { interface.as_ref() }
                .map(|interface| unsafe { *interface.pFunctionList.cast::<CK_VERSION>() }),
        )
    };
    let version = |major, minor| Some(CK_VERSION { major, minor });
    let told = |outcome: (CK_RV, Option<CK_VERSION>)| (outcome.0, outcome.1.map(|v| (v.major, v.minor)));
    assert_eq!(told(get(Some(b"PKCS 11\0"), None, 0)), (CKR_OK, Some((3, 0))));
    assert_eq!(told(get(None, version(2, 40), CKF_INTERFACE_FORK_SAFE)), (CKR_OK, Some((2, 40))));
    assert_eq!(told(get(None, version(3, 1), 0)), (CKR_FUNCTION_FAILED, None));
    assert_eq!(told(get(Some(b"Vendor\0"), None, 0)), (CKR_FUNCTION_FAILED, None));
    assert_eq!(told(get(None, None, 0x10)), (CKR_FUNCTION_FAILED, None));
}

/// Decisions from bytes; zero after their end.
struct Bytes<'b>(std::slice::Iter<'b, u8>);

impl Bytes<'_> {
    fn below(&mut self, end: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % end
    }

    fn is_over(&self) -> bool {
        self.0.as_slice().is_empty()
    }
}

/// Calls with good and bad arguments in any order. None of them asks the nodes: nobody is logged in.
fn sequence(module: &Module, bytes: &[u8]) {
    let mut choice = Bytes(bytes.iter());
    let mut sessions = [0, 77];
    let (mut data, mut out) = ([7u8; 64], [0u8; 256]);
    let mut length = 0;
    while !choice.is_over() {
        let session = sessions[choice.below(2)];
        let lengths = [0, 1, 15, 16, 17, 64];
        let count = lengths[choice.below(6)] as CK_ULONG;
        let from = if choice.below(8) == 0 { ptr::null_mut() } else { data.as_mut_ptr() };
        let to = if choice.below(4) == 0 { ptr::null_mut() } else { out.as_mut_ptr() };
        let room = [0, 1, 16, 64, 256][choice.below(5)];
        let len: *mut CK_ULONG = if choice.below(8) == 0 { ptr::null_mut() } else { &mut length };
        length = room;
        let kinds = [
            CKM_SHA256,
            CKM_SHA384,
            CKM_SHA512,
            CKM_AES_ECB,
            CKM_AES_GCM,
            CKM_AES_CBC,
            CKM_AES_CTR,
            CKM_AES_CMAC_GENERAL,
            0xdead,
        ];
        let mut mechanism = CK_MECHANISM {
            mechanism: kinds[choice.below(9)],
            pParameter: if choice.below(2) == 0 {
                ptr::null_mut()
            } else {
                data.as_mut_ptr().cast::<c_void>()
            },
            ulParameterLen: lengths[choice.below(6)] as CK_ULONG,
        };
        // No length is that of a structure with pointers: they would be followed, as the standard says.
        let how = if choice.below(8) == 0 { ptr::null_mut() } else { &mut mechanism };
        let kinds = [
            CKA_CLASS,
            CKA_TOKEN,
            CKA_VALUE,
            CKA_VALUE_LEN,
            CKA_KEY_TYPE,
            CKA_LABEL,
            CKA_ALLOWED_MECHANISMS,
            0xbeef,
        ];
        let mut attribute =
            CK_ATTRIBUTE { type_: kinds[choice.below(8)], pValue: from.cast(), ulValueLen: count };
        let template = if choice.below(8) == 0 { ptr::null_mut() } else { &mut attribute };
        let some = choice.below(2) as CK_ULONG;
        let key = choice.below(3) as CK_OBJECT_HANDLE;
        let mut handle = 0;
        let rv = match choice.below(34) {
            0 | 1 => call!(
                module,
                C_OpenSession(
                    0,
                    CKF_SERIAL_SESSION | (CKF_RW_SESSION * some),
                    ptr::null_mut(),
                    None,
                    &mut sessions[0]
                )
            ),
            2 => call!(module, C_CloseSession(session)),
            3 => call!(module, C_CloseAllSessions(some)),
            4 => call!(module, C_DigestInit(session, how)),
            5 => call!(module, C_Digest(session, from, count, to, len)),
            6 => call!(module, C_DigestUpdate(session, from, count)),
            7 => call!(module, C_DigestFinal(session, to, len)),
            8 => call!(module, C_DigestKey(session, key)),
            9 => call!(module, C_EncryptInit(session, how, key)),
            10 => call!(module, C_Encrypt(session, from, count, to, len)),
            11 => call!(module, C_EncryptUpdate(session, from, count, to, len)),
            12 => call!(module, C_EncryptFinal(session, to, len)),
            13 => call!(module, C_DecryptInit(session, how, key)),
            14 => call!(module, C_Decrypt(session, from, count, to, len)),
            15 => call!(module, C_DecryptFinal(session, to, len)),
            16 => call!(module, C_SignInit(session, how, key)),
            17 => call!(module, C_Sign(session, from, count, to, len)),
            18 => call!(module, C_VerifyInit(session, how, key)),
            19 => call!(module, C_Verify(session, from, count, from, count)),
            20 => call!(module, C_FindObjectsInit(session, template, some)),
            21 => call!(module, C_FindObjects(session, &mut handle, some, len)),
            22 => call!(module, C_FindObjectsFinal(session)),
            23 => call!(module, C_CreateObject(session, template, some, &mut handle)),
            24 => call!(module, C_GenerateKey(session, how, template, some, &mut handle)),
            25 => call!(module, C_GetAttributeValue(session, key, template, some)),
            26 => call!(module, C_SetAttributeValue(session, key, template, some)),
            27 => call!(module, C_DestroyObject(session, key)),
            28 => call!(module, C_WrapKey(session, how, key, key, to, len)),
            29 => call!(module, C_UnwrapKey(session, how, key, from, count, template, some, &mut handle)),
            30 => call!(module, C_DeriveKey(session, how, key, template, some, &mut handle)),
            31 => call!(module, C_GenerateRandom(session, to, count)),
            32 => call!(module, C_SessionCancel(session, CK_ULONG::MAX * some)),
            _ => call!(
                module,
                C_EncryptMessage(session, data.as_mut_ptr().cast(), count, from, count, from, count, to, len)
            ),
        };
        assert_ne!(rv, CKR_GENERAL_ERROR, "a panic");
    }
    call!(module, C_CloseAllSessions(0));
}

#[test]
fn no_sequence_of_calls_panics() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("pkcs11.toml");
    std::fs::write(&path, "[[token]]\nlabel = \"a\"\nclient = \"/nowhere\"\n").expect("written");
    let module = std::panic::AssertUnwindSafe(Module::with(&path));
    let begin = vec![0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0];
    let valid = vec![begin.repeat(20), (0..=255).collect(), (0..=255).rev().collect()];
    polyclave_harness::fuzz!("pkcs11-calls", &[], valid, |bytes: &[u8]| sequence(&module, bytes));
    assert!(!log_of(&path).contains("panicked"), "{}", log_of(&path));
}
