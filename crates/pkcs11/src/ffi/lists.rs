//! The tables of functions that programs get: 2.40, and 3.0.

use std::ptr;

use cryptoki_sys::*;

use super::memory::{bytes, read, write};
use super::{ciphers, entry, general, messages, objects, signing, unsupported};
use crate::rv::{Result, Rv};

/// A list of functions: those of 2.40, and more.
macro_rules! list {
    ($list:ident, $major:literal, $minor:literal, { $($more:tt)* }) => {
        $list {
            version: CK_VERSION { major: $major, minor: $minor },
            C_Initialize: Some(general::initialize),
            C_Finalize: Some(general::finalize),
            C_GetInfo: Some(general::get_info),
            C_GetFunctionList: Some(C_GetFunctionList),
            C_GetSlotList: Some(general::get_slot_list),
            C_GetSlotInfo: Some(general::get_slot_info),
            C_GetTokenInfo: Some(general::get_token_info),
            C_GetMechanismList: Some(general::get_mechanism_list),
            C_GetMechanismInfo: Some(general::get_mechanism_info),
            C_InitToken: Some(general::init_token),
            C_InitPIN: Some(general::init_pin),
            C_SetPIN: Some(general::set_pin),
            C_OpenSession: Some(general::open_session),
            C_CloseSession: Some(general::close_session),
            C_CloseAllSessions: Some(general::close_all_sessions),
            C_GetSessionInfo: Some(general::get_session_info),
            C_GetOperationState: Some(unsupported::get_operation_state),
            C_SetOperationState: Some(unsupported::set_operation_state),
            C_Login: Some(general::login),
            C_Logout: Some(general::logout),
            C_CreateObject: Some(objects::create_object),
            C_CopyObject: Some(objects::copy_object),
            C_DestroyObject: Some(objects::destroy_object),
            C_GetObjectSize: Some(objects::get_object_size),
            C_GetAttributeValue: Some(objects::get_attribute_value),
            C_SetAttributeValue: Some(objects::set_attribute_value),
            C_FindObjectsInit: Some(objects::find_objects_init),
            C_FindObjects: Some(objects::find_objects),
            C_FindObjectsFinal: Some(objects::find_objects_final),
            C_EncryptInit: Some(ciphers::encrypt_init),
            C_Encrypt: Some(ciphers::encrypt),
            C_EncryptUpdate: Some(ciphers::encrypt_update),
            C_EncryptFinal: Some(ciphers::encrypt_final),
            C_DecryptInit: Some(ciphers::decrypt_init),
            C_Decrypt: Some(ciphers::decrypt),
            C_DecryptUpdate: Some(ciphers::decrypt_update),
            C_DecryptFinal: Some(ciphers::decrypt_final),
            C_DigestInit: Some(signing::digest_init),
            C_Digest: Some(signing::digest),
            C_DigestUpdate: Some(signing::digest_update),
            C_DigestKey: Some(signing::digest_key),
            C_DigestFinal: Some(signing::digest_final),
            C_SignInit: Some(signing::sign_init),
            C_Sign: Some(signing::sign),
            C_SignUpdate: Some(signing::sign_update),
            C_SignFinal: Some(signing::sign_final),
            C_SignRecoverInit: Some(unsupported::sign_recover_init),
            C_SignRecover: Some(unsupported::sign_recover),
            C_VerifyInit: Some(signing::verify_init),
            C_Verify: Some(signing::verify),
            C_VerifyUpdate: Some(signing::verify_update),
            C_VerifyFinal: Some(signing::verify_final),
            C_VerifyRecoverInit: Some(unsupported::verify_recover_init),
            C_VerifyRecover: Some(unsupported::verify_recover),
            C_DigestEncryptUpdate: Some(unsupported::digest_encrypt_update),
            C_DecryptDigestUpdate: Some(unsupported::decrypt_digest_update),
            C_SignEncryptUpdate: Some(unsupported::sign_encrypt_update),
            C_DecryptVerifyUpdate: Some(unsupported::decrypt_verify_update),
            C_GenerateKey: Some(objects::generate_key),
            C_GenerateKeyPair: Some(unsupported::generate_key_pair),
            C_WrapKey: Some(objects::wrap_key),
            C_UnwrapKey: Some(objects::unwrap_key),
            C_DeriveKey: Some(objects::derive_key),
            C_SeedRandom: Some(general::seed_random),
            C_GenerateRandom: Some(general::generate_random),
            C_GetFunctionStatus: Some(unsupported::get_function_status),
            C_CancelFunction: Some(unsupported::cancel_function),
            C_WaitForSlotEvent: Some(unsupported::wait_for_slot_event),
            $($more)*
        }
    };
}

static LIST: CK_FUNCTION_LIST = list!(CK_FUNCTION_LIST, 2, 40, {});

static LIST_3_0: CK_FUNCTION_LIST_3_0 = list!(CK_FUNCTION_LIST_3_0, 3, 0, {
    C_GetInterfaceList: Some(C_GetInterfaceList),
    C_GetInterface: Some(C_GetInterface),
    C_LoginUser: Some(unsupported::login_user),
    C_SessionCancel: Some(general::session_cancel),
    C_MessageEncryptInit: Some(messages::message_encrypt_init),
    C_EncryptMessage: Some(messages::whole::<true>),
    C_EncryptMessageBegin: Some(messages::begin::<true>),
    C_EncryptMessageNext: Some(messages::next::<true>),
    C_MessageEncryptFinal: Some(messages::message_encrypt_final),
    C_MessageDecryptInit: Some(messages::message_decrypt_init),
    C_DecryptMessage: Some(messages::whole::<false>),
    C_DecryptMessageBegin: Some(messages::begin::<false>),
    C_DecryptMessageNext: Some(messages::next::<false>),
    C_MessageDecryptFinal: Some(messages::message_decrypt_final),
    C_MessageSignInit: Some(unsupported::message_sign_init),
    C_SignMessage: Some(unsupported::sign_message),
    C_SignMessageBegin: Some(unsupported::sign_message_begin),
    C_SignMessageNext: Some(unsupported::sign_message_next),
    C_MessageSignFinal: Some(unsupported::message_sign_final),
    C_MessageVerifyInit: Some(unsupported::message_verify_init),
    C_VerifyMessage: Some(unsupported::verify_message),
    C_VerifyMessageBegin: Some(unsupported::verify_message_begin),
    C_VerifyMessageNext: Some(unsupported::verify_message_next),
    C_MessageVerifyFinal: Some(unsupported::message_verify_final),
});

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
/// `count` is null or points to a number; `to` is null or points to memory for so many interfaces.
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
/// `name` is null or a string that ends with a zero byte; `version` is null or points to a version; `to` is null or points to memory for a
/// pointer.
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
