//! The tables of functions that programs get: 2.40, and 3.0.

use std::ptr;

use cryptoki_sys::*;

use super::ciphers::*;
use super::entry;
use super::general::*;
use super::memory::{bytes, read, write};
use super::messages::*;
use super::objects::*;
use super::signing::*;
use super::unsupported::*;
use crate::rv::{Result, Rv};

/// A list of functions: those of 2.40, and more. Each is a symbol of the library, too, for programs that are
/// linked with it or look it up.
macro_rules! list {
    ($list:ident, $major:literal, $minor:literal, [$($more:ident)*]) => {
        list!(@ $list, $major, $minor, [
            C_Initialize C_Finalize C_GetInfo C_GetFunctionList C_GetSlotList C_GetSlotInfo C_GetTokenInfo
            C_GetMechanismList C_GetMechanismInfo C_InitToken C_InitPIN C_SetPIN C_OpenSession
            C_CloseSession C_CloseAllSessions C_GetSessionInfo C_GetOperationState C_SetOperationState
            C_Login C_Logout C_CreateObject C_CopyObject C_DestroyObject C_GetObjectSize C_GetAttributeValue
            C_SetAttributeValue C_FindObjectsInit C_FindObjects C_FindObjectsFinal C_EncryptInit C_Encrypt
            C_EncryptUpdate C_EncryptFinal C_DecryptInit C_Decrypt C_DecryptUpdate C_DecryptFinal
            C_DigestInit C_Digest C_DigestUpdate C_DigestKey C_DigestFinal C_SignInit C_Sign C_SignUpdate
            C_SignFinal C_SignRecoverInit C_SignRecover C_VerifyInit C_Verify C_VerifyUpdate C_VerifyFinal
            C_VerifyRecoverInit C_VerifyRecover C_DigestEncryptUpdate C_DecryptDigestUpdate
            C_SignEncryptUpdate C_DecryptVerifyUpdate C_GenerateKey C_GenerateKeyPair C_WrapKey C_UnwrapKey
            C_DeriveKey C_SeedRandom C_GenerateRandom C_GetFunctionStatus C_CancelFunction
            C_WaitForSlotEvent
            $($more)*
        ])
    };
    (@ $list:ident, $major:literal, $minor:literal, [$($name:ident)*]) => {
        $list { version: CK_VERSION { major: $major, minor: $minor }, $($name: Some($name),)* }
    };
}

static LIST: CK_FUNCTION_LIST = list!(CK_FUNCTION_LIST, 2, 40, []);

static LIST_3_0: CK_FUNCTION_LIST_3_0 = list!(CK_FUNCTION_LIST_3_0, 3, 0, [
    C_GetInterfaceList C_GetInterface C_LoginUser C_SessionCancel C_MessageEncryptInit C_EncryptMessage
    C_EncryptMessageBegin C_EncryptMessageNext C_MessageEncryptFinal C_MessageDecryptInit C_DecryptMessage
    C_DecryptMessageBegin C_DecryptMessageNext C_MessageDecryptFinal C_MessageSignInit C_SignMessage
    C_SignMessageBegin C_SignMessageNext C_MessageSignFinal C_MessageVerifyInit C_VerifyMessage
    C_VerifyMessageBegin C_VerifyMessageNext C_MessageVerifyFinal
]);

/// Interfaces, which are pointers to what never changes.
struct Interfaces([CK_INTERFACE; 2]);

// SAFETY: they point to statics, and nothing writes there.
unsafe impl Sync for Interfaces {}

const NAME: &std::ffi::CStr = c"PKCS 11";

/// The default one first.
static INTERFACES: Interfaces = Interfaces([
    CK_INTERFACE {
        pInterfaceName: NAME.as_ptr() as *mut CK_UTF8CHAR,
        pFunctionList: (&raw const LIST_3_0) as *mut std::ffi::c_void,
        flags: CKF_INTERFACE_FORK_SAFE,
    },
    CK_INTERFACE {
        pInterfaceName: NAME.as_ptr() as *mut CK_UTF8CHAR,
        pFunctionList: (&raw const LIST) as *mut std::ffi::c_void,
        flags: CKF_INTERFACE_FORK_SAFE,
    },
]);

/// Gives the functions of PKCS#11 2.40.
///
/// # Safety
///
/// `to` is null or points to memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GetFunctionList(to: *mut *mut CK_FUNCTION_LIST) -> CK_RV {
    // SAFETY: the program vouches for it.
    entry(|| unsafe { write(to, (&raw const LIST).cast_mut()) })
}

/// Gives the interfaces: 3.0, which is the default, and 2.40.
///
/// # Safety
///
/// `count` is null or points to a number; `to` is null or points to memory for that number of interfaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GetInterfaceList(to: *mut CK_INTERFACE, count: *mut CK_ULONG) -> CK_RV {
    entry(|| {
        let all = &INTERFACES.0;
        // SAFETY: the program vouches for it, here and below.
        let room = unsafe { read(count) }?;
        unsafe { write(count, all.len() as CK_ULONG) }?;
        if to.is_null() {
            return Ok(());
        }
        if (room as usize) < all.len() {
            return Err(Rv(CKR_BUFFER_TOO_SMALL));
        }
        all.iter().enumerate().try_for_each(|(i, interface)| unsafe { write(to.add(i), *interface) })
    })
}

/// Gives one interface: of a name, of a version, or the default one.
///
/// # Safety
///
/// `name` is null or a string that ends with a zero byte; `version` is null or points to a version; `to` is
/// null or points to memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GetInterface(
    name: *mut CK_UTF8CHAR,
    version: *mut CK_VERSION,
    to: *mut *mut CK_INTERFACE,
    flags: CK_FLAGS,
) -> CK_RV {
    entry(|| {
        // SAFETY: the program vouches for it, here and below.
        let is_named = name.is_null() || unsafe { is_our_name(name) }?;
        let version = if version.is_null() { None } else { Some(unsafe { read(version) }?) };
        let fits = |at: &usize| {
            let has = if *at == 0 { LIST_3_0.version } else { LIST.version };
            version.is_none_or(|wanted| (wanted.major, wanted.minor) == (has.major, has.minor))
        };
        let offered = flags & !CKF_INTERFACE_FORK_SAFE == 0;
        let at =
            [0, 1].into_iter().find(fits).filter(|_| is_named && offered).ok_or(Rv(CKR_FUNCTION_FAILED))?;
        unsafe { write(to, ptr::from_ref(&INTERFACES.0[at]).cast_mut()) }
    })
}

/// Whether a string is the name of the standard's interface. No more of it is read than that needs.
unsafe fn is_our_name(name: *const CK_UTF8CHAR) -> Result<bool> {
    for (i, byte) in NAME.to_bytes_with_nul().iter().enumerate() {
        // SAFETY: the string goes on, since all bytes before were not its end.
        if unsafe { bytes(name.add(i), 1) }? != [*byte] {
            return Ok(false);
        }
    }
    Ok(true)
}
