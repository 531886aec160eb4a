//! The functions as symbols of the library: programs that are linked with it, or look them up one by one,
//! have no list.

use std::ffi::c_void;
use std::mem::{offset_of, size_of};
use std::ptr;

use cryptoki_sys::*;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

use crate::common::*;

/// The 68 functions of PKCS#11 2.40, in the order of its list (`pkcs11f.h`).
const FUNCTIONS: &str = "
    C_Initialize C_Finalize C_GetInfo C_GetFunctionList C_GetSlotList C_GetSlotInfo C_GetTokenInfo
    C_GetMechanismList C_GetMechanismInfo C_InitToken C_InitPIN C_SetPIN C_OpenSession C_CloseSession
    C_CloseAllSessions C_GetSessionInfo C_GetOperationState C_SetOperationState C_Login C_Logout
    C_CreateObject C_CopyObject C_DestroyObject C_GetObjectSize C_GetAttributeValue C_SetAttributeValue
    C_FindObjectsInit C_FindObjects C_FindObjectsFinal C_EncryptInit C_Encrypt C_EncryptUpdate
    C_EncryptFinal C_DecryptInit C_Decrypt C_DecryptUpdate C_DecryptFinal C_DigestInit C_Digest
    C_DigestUpdate C_DigestKey C_DigestFinal C_SignInit C_Sign C_SignUpdate C_SignFinal
    C_SignRecoverInit C_SignRecover C_VerifyInit C_Verify C_VerifyUpdate C_VerifyFinal
    C_VerifyRecoverInit C_VerifyRecover C_DigestEncryptUpdate C_DecryptDigestUpdate C_SignEncryptUpdate
    C_DecryptVerifyUpdate C_GenerateKey C_GenerateKeyPair C_WrapKey C_UnwrapKey C_DeriveKey C_SeedRandom
    C_GenerateRandom C_GetFunctionStatus C_CancelFunction C_WaitForSlotEvent";

/// Those that 3.0 adds.
const OF_3_0: &str = "
    C_GetInterfaceList C_GetInterface C_LoginUser C_SessionCancel C_MessageEncryptInit C_EncryptMessage
    C_EncryptMessageBegin C_EncryptMessageNext C_MessageEncryptFinal C_MessageDecryptInit
    C_DecryptMessage C_DecryptMessageBegin C_DecryptMessageNext C_MessageDecryptFinal C_MessageSignInit
    C_SignMessage C_SignMessageBegin C_SignMessageNext C_MessageSignFinal C_MessageVerifyInit
    C_VerifyMessage C_VerifyMessageBegin C_VerifyMessageNext C_MessageVerifyFinal";

/// The addresses of the functions, by name.
fn symbols(library: &Library, names: &[&str]) -> Vec<*const c_void> {
    let find = |name: &&str| {
        let symbol = unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) };
        *symbol.unwrap_or_else(|e| panic!("{name}: {e}")) as *const c_void
    };
    names.iter().map(find).collect()
}

/// The functions of a list that begins with `first`.
fn listed(first: *const *const c_void, count: usize) -> Vec<*const c_void> {
    (0..count).map(|at| unsafe { *first.add(at) }).collect()
}

#[test]
fn all_functions_are_symbols_and_the_lists_have_the_same() {
    let module = Module::load();
    let [mut names, of_3_0] = [FUNCTIONS, OF_3_0].map(|names| names.split_whitespace().collect::<Vec<_>>());
    assert_eq!((names.len(), of_3_0.len()), (68, 24));
    let library = unsafe { Library::open(Some(module.path()), RTLD_NOW | RTLD_LOCAL) }.expect("it loads");
    let mut list: *mut CK_FUNCTION_LIST = ptr::null_mut();
    assert_eq!(call!(module, C_GetFunctionList(&mut list)), CKR_OK);
    let first = unsafe { list.byte_add(offset_of!(CK_FUNCTION_LIST, C_Initialize)) };
    assert_eq!(symbols(&library, &names), listed(first.cast(), 68), "of 2.40");
    names.extend(of_3_0);
    assert_eq!(
        offset_of!(CK_FUNCTION_LIST_3_0, C_Initialize) + 92 * size_of::<usize>(),
        size_of::<CK_FUNCTION_LIST_3_0>()
    );
    let first = &raw const module.list.C_Initialize;
    assert_eq!(symbols(&library, &names), listed(first.cast(), 92), "of 3.0");
}

/// All modules of PKCS#11 export the same names, and the loader takes the first that it finds in a program.
#[test]
fn lists_name_their_own_functions_beside_another_module() {
    let dir = tempfile::tempdir().expect("a directory");
    let other = copied_to(dir.path());
    let other = unsafe { Library::open(Some(&other), RTLD_NOW | RTLD_GLOBAL) }.expect("it loads");
    let module = Module::load();
    let own = unsafe { Library::open(Some(module.path()), RTLD_NOW | RTLD_LOCAL) }.expect("it loads");
    let names: Vec<_> = FUNCTIONS.split_whitespace().collect();
    let listed = listed((&raw const module.list.C_Initialize).cast(), 68);
    assert_ne!(symbols(&other, &names), listed);
    assert_eq!(symbols(&own, &names), listed);
}
