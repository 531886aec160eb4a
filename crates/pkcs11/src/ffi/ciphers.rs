//! Encryption, decryption, and messages of 3.0.

use std::ffi::c_void;

use cryptoki_sys::*;
use zeroize::Zeroizing;

use super::memory::{bytes, copy, give};
use super::parameters::{kind, mechanism, sized, some_bytes};
use super::{entry, session};
use crate::encryption::{Direction, Encryption, MessageParameter, Messages};
use crate::rv::{Result, Rv};
use crate::session::{Operations, Output, known_length};

// SAFETY: of all functions here, as the module `ffi` says: the program vouches for its pointers.

/// The place of an operation in a session.
type Place = fn(&mut Operations) -> &mut Option<Encryption>;

fn place(direction: Direction) -> Place {
    match direction {
        Direction::Encrypt => |operations| &mut operations.encrypt,
        Direction::Decrypt => |operations| &mut operations.decrypt,
    }
}

/// Begins; no mechanism ends what there is.
unsafe fn begin(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
    direction: Direction,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let mut operations = session.operations.lock();
        let place = place(direction)(&mut operations);
        if how.is_null() {
            *place = None;
            return Ok(());
        }
        if place.is_some() {
            return Err(Rv(CKR_OPERATION_ACTIVE));
        }
        *place = Some(Encryption::begin(&session, &unsafe { mechanism(how) }?, key, direction)?);
        Ok(())
    })
}

/// Goes on. An error ends it; so does the last part, if its bytes were given.
unsafe fn go_on(
    of: CK_SESSION_HANDLE,
    direction: Direction,
    (out, len): (*mut CK_BYTE, *mut CK_ULONG),
    is_last: bool,
    work: impl FnOnce(&mut Encryption, Option<usize>) -> Result<Output>,
) -> Result<()> {
    let session = session(of)?;
    let mut operations = session.operations.lock();
    let place = place(direction)(&mut operations);
    let operation = place.as_mut().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
    let mut ends = false;
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

pub(super) unsafe extern "C" fn encrypt_init(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unsafe { begin(of, how, key, Direction::Encrypt) }
}

pub(super) unsafe extern "C" fn decrypt_init(
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

pub(super) unsafe extern "C" fn encrypt(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    unsafe { whole(of, (from, count), (out, len), Direction::Encrypt) }
}

pub(super) unsafe extern "C" fn decrypt(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    unsafe { whole(of, (from, count), (out, len), Direction::Decrypt) }
}

pub(super) unsafe extern "C" fn encrypt_update(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    unsafe { part(of, (from, count), (out, len), Direction::Encrypt) }
}

pub(super) unsafe extern "C" fn decrypt_update(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    unsafe { part(of, (from, count), (out, len), Direction::Decrypt) }
}

pub(super) unsafe extern "C" fn encrypt_final(
    of: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| unsafe {
        go_on(of, Direction::Encrypt, (out, len), true, |operation, room| operation.end(room))
    })
}

pub(super) unsafe extern "C" fn decrypt_final(
    of: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| unsafe {
        go_on(of, Direction::Decrypt, (out, len), true, |operation, room| operation.end(room))
    })
}

/// Begins messages; no mechanism ends them.
unsafe fn begin_messages(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
    direction: Direction,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let mut operations = session.operations.lock();
        let place = messages(&mut operations, direction);
        if how.is_null() {
            *place = None;
            return Ok(());
        }
        if place.is_some() {
            return Err(Rv(CKR_OPERATION_ACTIVE));
        }
        *place = Some(Messages::begin(&session, &unsafe { kind(how) }?, key, direction)?);
        Ok(())
    })
}

fn messages(operations: &mut Operations, direction: Direction) -> &mut Option<Messages> {
    match direction {
        Direction::Encrypt => &mut operations.message_encrypt,
        Direction::Decrypt => &mut operations.message_decrypt,
    }
}

pub(super) unsafe extern "C" fn message_encrypt_init(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unsafe { begin_messages(of, how, key, Direction::Encrypt) }
}

pub(super) unsafe extern "C" fn message_decrypt_init(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unsafe { begin_messages(of, how, key, Direction::Decrypt) }
}

fn end_messages(of: CK_SESSION_HANDLE, direction: Direction) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let ended = messages(&mut session.operations.lock(), direction).take();
        ended.map(drop).ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))
    })
}

pub(super) unsafe extern "C" fn message_encrypt_final(of: CK_SESSION_HANDLE) -> CK_RV {
    end_messages(of, Direction::Encrypt)
}

pub(super) unsafe extern "C" fn message_decrypt_final(of: CK_SESSION_HANDLE) -> CK_RV {
    end_messages(of, Direction::Decrypt)
}

/// The parameter of a message. The tag is read for decryption only.
unsafe fn message_parameter(
    from: *const c_void,
    len: CK_ULONG,
    direction: Direction,
) -> Result<(MessageParameter, CK_GCM_MESSAGE_PARAMS)> {
    let given: CK_GCM_MESSAGE_PARAMS = unsafe { sized(from, len) }?;
    let bad = Rv(CKR_MECHANISM_PARAM_INVALID);
    if given.pIv.is_null() || given.pTag.is_null() || given.ulTagBits > 128 {
        return Err(bad);
    }
    let tag = match direction {
        Direction::Encrypt => Vec::new(),
        Direction::Decrypt => unsafe { some_bytes(given.pTag, given.ulTagBits.div_ceil(8)) }?,
    };
    let parameter = MessageParameter {
        iv: unsafe { some_bytes(given.pIv, given.ulIvLen) }?,
        fixed_bits: given.ulIvFixedBits,
        generator: given.ivGenerator,
        tag,
        tag_bits: given.ulTagBits,
    };
    Ok((parameter, given))
}

pub(super) unsafe extern "C" fn encrypt_message(
    of: CK_SESSION_HANDLE,
    parameter: *mut c_void,
    parameter_len: CK_ULONG,
    additional: *mut CK_BYTE,
    additional_len: CK_ULONG,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let operations = session.operations.lock();
        let messages = operations.message_encrypt.as_ref().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
        let (parameter, places) = unsafe { message_parameter(parameter, parameter_len, Direction::Encrypt) }?;
        let (additional, data) = unsafe { (bytes(additional, additional_len)?, bytes(from, count)?) };
        let make = |room| {
            if let Some(output) = known_length(data.len(), room) {
                return Ok(output);
            }
            let sealed = messages.encrypt(&parameter, additional, data)?;
            unsafe { copy(places.pIv, &sealed.nonce) }?;
            unsafe { copy(places.pTag, &sealed.tag) }?;
            Ok(Output::Bytes(Zeroizing::new(sealed.ciphertext)))
        };
        unsafe { give(out, len, make) }
    })
}

pub(super) unsafe extern "C" fn decrypt_message(
    of: CK_SESSION_HANDLE,
    parameter: *mut c_void,
    parameter_len: CK_ULONG,
    additional: *mut CK_BYTE,
    additional_len: CK_ULONG,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let operations = session.operations.lock();
        let messages = operations.message_decrypt.as_ref().ok_or(Rv(CKR_OPERATION_NOT_INITIALIZED))?;
        let (parameter, _) = unsafe { message_parameter(parameter, parameter_len, Direction::Decrypt) }?;
        let (additional, data) = unsafe { (bytes(additional, additional_len)?, bytes(from, count)?) };
        let make = |room| match known_length(data.len(), room) {
            Some(output) => Ok(output),
            None => messages.decrypt(&parameter, additional, data).map(Output::Bytes),
        };
        unsafe { give(out, len, make) }
    })
}
