//! Functions that the nodes cannot serve. The standard has every list name them.

use std::ffi::c_void;

use cryptoki_sys::*;

use super::{entry, process};
use crate::rv::Rv;

macro_rules! unsupported {
    ($($name:ident($($argument:ty),*) $rv:ident;)*) => {
        $(#[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name($(_: $argument),*) -> CK_RV {
            entry(|| {
                process::module()?;
                Err(Rv($rv))
            })
        })*
    };
}

unsupported! {
    C_GetOperationState(CK_SESSION_HANDLE, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_SetOperationState(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, CK_OBJECT_HANDLE, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    C_SignRecoverInit(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    C_SignRecover(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_VerifyRecoverInit(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    C_VerifyRecover(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_DigestEncryptUpdate(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_DecryptDigestUpdate(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_SignEncryptUpdate(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_DecryptVerifyUpdate(CK_SESSION_HANDLE, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_GenerateKeyPair(CK_SESSION_HANDLE, *mut CK_MECHANISM, *mut CK_ATTRIBUTE, CK_ULONG, *mut CK_ATTRIBUTE, CK_ULONG, *mut CK_OBJECT_HANDLE, *mut CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    C_GetFunctionStatus(CK_SESSION_HANDLE) CKR_FUNCTION_NOT_PARALLEL;
    C_CancelFunction(CK_SESSION_HANDLE) CKR_FUNCTION_NOT_PARALLEL;
    C_WaitForSlotEvent(CK_FLAGS, *mut CK_SLOT_ID, *mut c_void) CKR_FUNCTION_NOT_SUPPORTED;
    C_LoginUser(CK_SESSION_HANDLE, CK_USER_TYPE, *mut CK_UTF8CHAR, CK_ULONG, *mut CK_UTF8CHAR, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_MessageSignInit(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    C_SignMessage(CK_SESSION_HANDLE, *mut c_void, CK_ULONG, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_SignMessageBegin(CK_SESSION_HANDLE, *mut c_void, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_SignMessageNext(CK_SESSION_HANDLE, *mut c_void, CK_ULONG, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, *mut CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_MessageSignFinal(CK_SESSION_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    C_MessageVerifyInit(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
    C_VerifyMessage(CK_SESSION_HANDLE, *mut c_void, CK_ULONG, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_VerifyMessageBegin(CK_SESSION_HANDLE, *mut c_void, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_VerifyMessageNext(CK_SESSION_HANDLE, *mut c_void, CK_ULONG, *mut CK_BYTE, CK_ULONG, *mut CK_BYTE, CK_ULONG) CKR_FUNCTION_NOT_SUPPORTED;
    C_MessageVerifyFinal(CK_SESSION_HANDLE) CKR_FUNCTION_NOT_SUPPORTED;
}
