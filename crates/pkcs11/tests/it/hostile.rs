//! Calls as no program should make them: everything null, and handles of nothing. `fuzz` makes any sequence
//! of calls.

use std::ptr;

use cryptoki_sys::*;

use crate::common::*;

/// Every function with everything null and this handle, in the order of the list. What each answers.
fn all_null(module: &Module, handle: CK_ULONG) -> Vec<CK_RV> {
    // A function of PKCS#11 takes at most ten words. Null in all of those registers and places is null in all
    // arguments.
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
    let message = |outcome: (CK_RV, Option<CK_VERSION>)| (outcome.0, outcome.1.map(|v| (v.major, v.minor)));
    assert_eq!(message(get(Some(b"PKCS 11\0"), None, 0)), (CKR_OK, Some((3, 0))));
    assert_eq!(message(get(None, version(2, 40), CKF_INTERFACE_FORK_SAFE)), (CKR_OK, Some((2, 40))));
    assert_eq!(message(get(None, version(3, 1), 0)), (CKR_FUNCTION_FAILED, None));
    assert_eq!(message(get(Some(b"Vendor\0"), None, 0)), (CKR_FUNCTION_FAILED, None));
    assert_eq!(message(get(None, None, 0x10)), (CKR_FUNCTION_FAILED, None));
}
