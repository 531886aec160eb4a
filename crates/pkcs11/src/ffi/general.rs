//! The library, slots, tokens, sessions, logins and random bytes.

use std::ffi::c_void;

use cryptoki_sys::*;
use polyclave_config::{MAX_PIN, PinOwner};
use sha2::{Digest, Sha256};

use super::memory::{bytes, read, write};
use super::{entry, process, session};
use crate::mechanism::{TABLE, entry as entry_of};
use crate::module::Module;
use crate::rv::{Result, Rv, because};
use crate::session::Operations;
use crate::{configuration, log};

const MAKER: &str = "Polyclave";

/// The version of this library.
fn version() -> CK_VERSION {
    let number = |text: &str| text.parse().unwrap_or(0);
    CK_VERSION {
        major: number(env!("CARGO_PKG_VERSION_MAJOR")),
        minor: number(env!("CARGO_PKG_VERSION_MINOR")),
    }
}

/// Text filled up with blanks.
fn blank<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    let len = text.len().min(N);
    field[..len].copy_from_slice(&text.as_bytes()[..len]);
    field
}

// SAFETY: of all functions here, as the module `ffi` says: the program vouches for its pointers.

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_Initialize(arguments: *mut c_void) -> CK_RV {
    entry(|| {
        if !arguments.is_null() {
            let given: CK_C_INITIALIZE_ARGS = unsafe { read(arguments.cast()) }?;
            let functions = [
                given.CreateMutex.is_some(),
                given.DestroyMutex.is_some(),
                given.LockMutex.is_some(),
                given.UnlockMutex.is_some(),
            ];
            let has_some = functions.contains(&true);
            if !given.pReserved.is_null() || (has_some && functions.contains(&false)) {
                return Err(Rv(CKR_ARGUMENTS_BAD));
            }
            if has_some && given.flags & CKF_OS_LOCKING_OK == 0 {
                return Err(Rv(CKR_CANT_LOCK));
            }
        }
        process::begin(|| {
            log::open();
            // This library's own runtime: a panic is told in the log, and the program's standard error is
            // left alone.
            std::panic::set_hook(Box::new(|panic| log::line(&format!("{panic}"))));
            let configuration =
                configuration::load().map_err(|message| because(CKR_GENERAL_ERROR, message))?;
            Ok(Module::new(configuration))
        })
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_Finalize(reserved: *mut c_void) -> CK_RV {
    entry(|| {
        if !reserved.is_null() {
            return Err(Rv(CKR_ARGUMENTS_BAD));
        }
        process::end()?.end();
        log::close();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GetInfo(to: *mut CK_INFO) -> CK_RV {
    entry(|| {
        process::module()?;
        let info = CK_INFO {
            cryptokiVersion: CK_VERSION { major: 3, minor: 0 },
            manufacturerID: blank(MAKER),
            flags: 0,
            libraryDescription: blank("Keys that nobody holds"),
            libraryVersion: version(),
        };
        unsafe { write(to, info) }
    })
}

/// Writes a list, or its length.
unsafe fn list<T: Copy>(all: &[T], to: *mut T, count: *mut CK_ULONG) -> Result<()> {
    let room = unsafe { read(count) }?;
    unsafe { write(count, all.len() as CK_ULONG) }?;
    if to.is_null() {
        return Ok(());
    }
    if (room as usize) < all.len() {
        return Err(Rv(CKR_BUFFER_TOO_SMALL));
    }
    all.iter().enumerate().try_for_each(|(i, one)| unsafe { write(to.add(i), *one) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GetSlotList(
    _: CK_BBOOL,
    to: *mut CK_SLOT_ID,
    count: *mut CK_ULONG,
) -> CK_RV {
    entry(|| {
        let slots: Vec<CK_SLOT_ID> = process::module()?.tokens.iter().map(|token| token.slot).collect();
        unsafe { list(&slots, to, count) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GetSlotInfo(slot: CK_SLOT_ID, to: *mut CK_SLOT_INFO) -> CK_RV {
    entry(|| {
        let module = process::module()?;
        let token = module.token(slot)?;
        let info = CK_SLOT_INFO {
            slotDescription: blank(&format!("Polyclave {}", token.settings.label)),
            manufacturerID: blank(MAKER),
            flags: CKF_TOKEN_PRESENT,
            hardwareVersion: version(),
            firmwareVersion: version(),
        };
        unsafe { write(to, info) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GetTokenInfo(slot: CK_SLOT_ID, to: *mut CK_TOKEN_INFO) -> CK_RV {
    entry(|| {
        let module = process::module()?;
        let token = module.token(slot)?;
        let (all, writable) = module.count(slot);
        let of = format!("{}\n{}", token.settings.client.display(), token.settings.prefix);
        let serial = hex::encode(&Sha256::digest(of)[..8]);
        let info = CK_TOKEN_INFO {
            label: blank(&token.settings.label),
            manufacturerID: blank(MAKER),
            model: blank("nodes"),
            serialNumber: blank(&serial),
            flags: token.flags(),
            ulMaxSessionCount: CK_EFFECTIVELY_INFINITE,
            ulSessionCount: all as CK_ULONG,
            ulMaxRwSessionCount: CK_EFFECTIVELY_INFINITE,
            ulRwSessionCount: writable as CK_ULONG,
            ulMaxPinLen: MAX_PIN as CK_ULONG,
            ulMinPinLen: token.least_pin() as CK_ULONG,
            ulTotalPublicMemory: CK_UNAVAILABLE_INFORMATION,
            ulFreePublicMemory: CK_UNAVAILABLE_INFORMATION,
            ulTotalPrivateMemory: CK_UNAVAILABLE_INFORMATION,
            ulFreePrivateMemory: CK_UNAVAILABLE_INFORMATION,
            hardwareVersion: version(),
            firmwareVersion: version(),
            utcTime: blank(""),
        };
        unsafe { write(to, info) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GetMechanismList(
    slot: CK_SLOT_ID,
    to: *mut CK_MECHANISM_TYPE,
    count: *mut CK_ULONG,
) -> CK_RV {
    entry(|| {
        process::module()?.token(slot)?;
        unsafe { list(&TABLE.each_ref().map(|entry| entry.kind), to, count) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GetMechanismInfo(
    slot: CK_SLOT_ID,
    kind: CK_MECHANISM_TYPE,
    to: *mut CK_MECHANISM_INFO,
) -> CK_RV {
    entry(|| {
        process::module()?.token(slot)?;
        let entry = entry_of(kind)?;
        let (least, most) = entry.sizes;
        // Keys of DES are counted in nothing but their type.
        let info = CK_MECHANISM_INFO { ulMinKeySize: least, ulMaxKeySize: most, flags: entry.flags };
        unsafe { write(to, info) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_InitToken(
    slot: CK_SLOT_ID,
    pin: *mut CK_UTF8CHAR,
    len: CK_ULONG,
    label: *mut CK_UTF8CHAR,
) -> CK_RV {
    entry(|| {
        let module = process::module()?;
        let token = module.token(slot)?;
        let label: [u8; 32] = unsafe { read(label.cast()) }?;
        let pin = unsafe { self::pin(pin, len) }?;
        if module.count(slot).0 > 0 {
            return Err(Rv(CKR_SESSION_EXISTS));
        }
        token.init(pin, &label)
    })
}

/// A PIN of any bytes.
unsafe fn pin<'p>(from: *const CK_UTF8CHAR, len: CK_ULONG) -> Result<&'p [u8]> {
    if from.is_null() {
        return Err(Rv(CKR_ARGUMENTS_BAD));
    }
    match unsafe { bytes(from, len) }? {
        pin if pin.len() <= MAX_PIN => Ok(pin),
        _ => Err(Rv(CKR_PIN_LEN_RANGE)),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_InitPIN(
    of: CK_SESSION_HANDLE,
    pin: *mut CK_UTF8CHAR,
    len: CK_ULONG,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        session.token.init_pin(unsafe { self::pin(pin, len) }?)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_SetPIN(
    of: CK_SESSION_HANDLE,
    old: *mut CK_UTF8CHAR,
    old_len: CK_ULONG,
    new: *mut CK_UTF8CHAR,
    new_len: CK_ULONG,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        session.refuse_read_only()?;
        session.token.set_pin(unsafe { pin(old, old_len) }?, unsafe { pin(new, new_len) }?)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_OpenSession(
    slot: CK_SLOT_ID,
    flags: CK_FLAGS,
    _: *mut c_void,
    _: CK_NOTIFY,
    to: *mut CK_SESSION_HANDLE,
) -> CK_RV {
    entry(|| {
        let module = process::module()?;
        // Before a session is open that nobody could close.
        unsafe { write(to, CK_INVALID_HANDLE) }?;
        let handle = module.open(slot, flags)?;
        unsafe { write(to, handle) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_CloseSession(of: CK_SESSION_HANDLE) -> CK_RV {
    entry(|| process::module()?.close(of))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_CloseAllSessions(slot: CK_SLOT_ID) -> CK_RV {
    entry(|| process::module()?.close_all(slot))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GetSessionInfo(of: CK_SESSION_HANDLE, to: *mut CK_SESSION_INFO) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let writes = if session.is_writable { CKF_RW_SESSION } else { 0 };
        let info = CK_SESSION_INFO {
            slotID: session.token.slot,
            state: session.state(),
            flags: CKF_SERIAL_SESSION | writes,
            ulDeviceError: 0,
        };
        unsafe { write(to, info) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_Login(
    of: CK_SESSION_HANDLE,
    who: CK_USER_TYPE,
    pin: *mut CK_UTF8CHAR,
    len: CK_ULONG,
) -> CK_RV {
    entry(|| {
        let module = process::module()?;
        let session = module.session(of)?;
        let owner = match who {
            CKU_USER => PinOwner::User,
            CKU_SO => PinOwner::SecurityOfficer,
            CKU_CONTEXT_SPECIFIC => return Err(Rv(CKR_OPERATION_NOT_INITIALIZED)),
            _ => return Err(Rv(CKR_USER_TYPE_INVALID)),
        };
        let (all, writable) = module.count(session.token.slot);
        session.token.log_in(owner, unsafe { self::pin(pin, len) }?, all > writable)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_Logout(of: CK_SESSION_HANDLE) -> CK_RV {
    entry(|| {
        let module = process::module()?;
        module.log_out(&module.session(of)?.token)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_SessionCancel(of: CK_SESSION_HANDLE, flags: CK_FLAGS) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let mut operations = session.operations();
        let Operations {
            logouts: _,
            find,
            encrypt,
            decrypt,
            message_encrypt,
            message_decrypt,
            sign,
            verify,
            digest,
        } = &mut *operations;
        let ends = |flag: CK_FLAGS| flags & flag != 0;
        if ends(CKF_FIND_OBJECTS) {
            *find = None;
        }
        if ends(CKF_ENCRYPT) {
            *encrypt = None;
        }
        if ends(CKF_DECRYPT) {
            *decrypt = None;
        }
        if ends(CKF_MESSAGE_ENCRYPT) {
            *message_encrypt = None;
        }
        if ends(CKF_MESSAGE_DECRYPT) {
            *message_decrypt = None;
        }
        if ends(CKF_SIGN) {
            *sign = None;
        }
        if ends(CKF_VERIFY) {
            *verify = None;
        }
        if ends(CKF_DIGEST) {
            *digest = None;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_SeedRandom(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    len: CK_ULONG,
) -> CK_RV {
    entry(|| {
        session(of)?;
        unsafe { bytes(from, len) }.map(drop)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GenerateRandom(
    of: CK_SESSION_HANDLE,
    to: *mut CK_BYTE,
    len: CK_ULONG,
) -> CK_RV {
    entry(|| {
        session(of)?;
        if to.is_null() && len > 0 {
            return Err(Rv(CKR_ARGUMENTS_BAD));
        }
        // In pieces, so that no length a program gives makes the library allocate as much.
        let mut piece = zeroize::Zeroizing::new([0; 4096]);
        let mut done = 0;
        while done < len as usize {
            let now = piece.len().min(len as usize - done);
            getrandom::fill(&mut piece[..now]).map_err(|_| Rv(CKR_FUNCTION_FAILED))?;
            unsafe { super::memory::copy(to.add(done), &piece[..now]) }?;
            done += now;
        }
        Ok(())
    })
}
