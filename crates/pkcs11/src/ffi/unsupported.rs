//! Functions that the nodes cannot serve. The standard has every list name them.

use std::ffi::c_void;

use cryptoki_sys::*;

use super::{entry, process};
use crate::rv::Rv;

macro_rules! unsupported {
    ($($name:ident($($argument:ty),*) $rv:ident;)*) => {
        $(pub(super) unsafe extern "C" fn $name($(_: $argument),*) -> CK_RV {
            entry(|| {
                process::module()?;
                Err(Rv($rv))
            })
        })*
    };
}

unsupported! {
    get_operation_state(CK_SESSION_HANDLE, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    set_operation_state(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, CK_OBJECT_HANDLE, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    sign_recover_init(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    sign_recover(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    verify_recover_init(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    verify_recover(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    digest_encrypt_update(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    decrypt_digest_update(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    sign_encrypt_update(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    decrypt_verify_update(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    generate_key_pair(CK_SESSION_HANDLE, *mut CK_MECHANISM, *mut CK_ATTRIBUTE, CK_ULONG, *mut CK_ATTRIBUTE, CK_ULONG, *mut CK_OBJECT_HANDLE, *mut CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    get_function_status(CK_SESSION_HANDLE) CKR_FUNCTION_NOT_PARALLEL;
    cancel_function(CK_SESSION_HANDLE) CKR_FUNCTION_NOT_PARALLEL;
    wait_for_slot_event(CK_FLAGS, *mut CK_SLOT_ID, *mut c_void) CKR_FUNCTION_NOT_SUPPORTED;
    login_user(CK_SESSION_HANDLE, CK_USER_TYPE, *mut CK_UTF8CHAR, CK_ULONG, *mut CK_UTF8CHAR, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    message_sign_init(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    sign_message(CK_SESSION_HANDLE, *mut c_void, CK_ULONG, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    sign_message_begin(CK_SESSION_HANDLE, *mut c_void, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    sign_message_next(CK_SESSION_HANDLE, *mut c_void, CK_ULONG, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    message_sign_final(CK_SESSION_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    message_verify_init(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    verify_message(CK_SESSION_HANDLE, *mut c_void, CK_ULONG, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    verify_message_begin(CK_SESSION_HANDLE, *mut c_void, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    verify_message_next(CK_SESSION_HANDLE, *mut c_void, CK_ULONG, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    message_verify_final(CK_SESSION_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
}
