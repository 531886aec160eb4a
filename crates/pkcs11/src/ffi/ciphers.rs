//! Encryption and decryption.

use cryptoki_sys::*;

use super::memory::{bytes, give};
use super::parameters::{mechanism, write_nonce};
use super::{entry, session};
use crate::rv::{NOT_BEGUN, Result, Rv};
use crate::session::encryption::{Direction, Encryption};
use crate::session::{Operations, Output};

// SAFETY: of all functions here, as the module `ffi` says: the program vouches for its pointers.

/// The place of an operation in a session.
type Place = fn(&mut Operations) -> &mut Option<Encryption>;

fn place(direction: Direction) -> Place {
    match direction {
        Direction::Encrypt => |operations| &mut operations.encrypt,
        Direction::Decrypt => |operations| &mut operations.decrypt,
    }
}

unsafe fn begin(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
    direction: Direction,
) -> CK_RV {
    super::begin(of, how, place(direction), |session| {
        let begun = Encryption::begin(session, &unsafe { mechanism(how) }?, key, direction)?;
        if let Some(nonce) = begun.drawn_nonce() {
            unsafe { write_nonce(how, nonce) }?;
        }
        Ok(begun)
    })
}

/// Goes on. An error ends it, also that of a length without a place; so does the last part, if its bytes were
/// given.
unsafe fn go_on(
    of: CK_SESSION_HANDLE,
    direction: Direction,
    (out, len): (*mut CK_BYTE, *mut CK_ULONG),
    is_last: bool,
    work: impl FnOnce(&mut Encryption, Option<usize>) -> Result<Output>,
) -> Result<()> {
    let session = session(of)?;
    let mut operations = session.operations();
    let place = place(direction)(&mut operations);
    let operation = place.as_mut().ok_or(NOT_BEGUN)?;
    let mut ends = len.is_null();
    let outcome = unsafe {
        give(out, len, |room| {
            let made = work(operation, room);
            ends = match &made {
                Ok(Output::Bytes(_)) => is_last,
                Ok(Output::Length(_) | Output::TooSmall(_)) => false,
                Err(rv) => *rv != Rv(CKR_OPERATION_ACTIVE),
            };
            made
        })
    };
    if ends {
        *place = None;
    }
    outcome
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_EncryptInit(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unsafe { begin(of, how, key, Direction::Encrypt) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_DecryptInit(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unsafe { begin(of, how, key, Direction::Decrypt) }
}

unsafe fn whole(
    of: CK_SESSION_HANDLE,
    (from, count): (*mut CK_BYTE, CK_ULONG),
    out: (*mut CK_BYTE, *mut CK_ULONG),
    direction: Direction,
) -> CK_RV {
    entry(|| {
        let data = unsafe { bytes(from, count) };
        unsafe { go_on(of, direction, out, true, |operation, room| operation.whole(data?, room)) }
    })
}

unsafe fn part(
    of: CK_SESSION_HANDLE,
    (from, count): (*mut CK_BYTE, CK_ULONG),
    out: (*mut CK_BYTE, *mut CK_ULONG),
    direction: Direction,
) -> CK_RV {
    entry(|| {
        let data = unsafe { bytes(from, count) };
        unsafe { go_on(of, direction, out, false, |operation, room| operation.part(data?, room)) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_Encrypt(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    unsafe { whole(of, (from, count), (out, len), Direction::Encrypt) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_Decrypt(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    unsafe { whole(of, (from, count), (out, len), Direction::Decrypt) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_EncryptUpdate(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    unsafe { part(of, (from, count), (out, len), Direction::Encrypt) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_DecryptUpdate(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    unsafe { part(of, (from, count), (out, len), Direction::Decrypt) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_EncryptFinal(
    of: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| unsafe {
        go_on(of, Direction::Encrypt, (out, len), true, |operation, room| operation.end(room))
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_DecryptFinal(
    of: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| unsafe {
        go_on(of, Direction::Decrypt, (out, len), true, |operation, room| operation.end(room))
    })
}
