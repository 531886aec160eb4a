//! Codes (signatures, as the standard calls them) and digests.

use cryptoki_sys::*;

use super::memory::{bytes, give};
use super::parameters::mechanism;
use super::{entry, session};
use crate::digests::Digest;
use crate::rv::{NOT_BEGUN, Result, Rv};
use crate::session::macs::Mac;
use crate::session::{Output, known_length};

// SAFETY: of all functions here, as the module `ffi` says: the program vouches for its pointers.

unsafe fn begin(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
    does: (CK_FLAGS, CK_ATTRIBUTE_TYPE),
) -> CK_RV {
    super::begin(
        of,
        how,
        |operations| if does.0 == CKF_SIGN { &mut operations.sign } else { &mut operations.verify },
        |session| Mac::begin(session, &unsafe { mechanism(how) }?, key, does),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_SignInit(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unsafe { begin(of, how, key, (CKF_SIGN, CKA_SIGN)) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_VerifyInit(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
) -> CK_RV {
    unsafe { begin(of, how, key, (CKF_VERIFY, CKA_VERIFY)) }
}

/// Ends an operation whose result has no place for its length, as every error does that is not a buffer too
/// small.
fn end_without_length<T>(place: &mut Option<T>, len: *const CK_ULONG) -> Result<()> {
    if !len.is_null() {
        return Ok(());
    }
    place.take().map_or(Err(NOT_BEGUN), |_| Err(Rv(CKR_ARGUMENTS_BAD)))
}

/// Gives the code of what was gathered and more data.
unsafe fn code(
    of: CK_SESSION_HANDLE,
    data: Result<&[u8]>,
    is_whole: bool,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> Result<()> {
    let session = session(of)?;
    let mut operations = session.operations();
    let place = &mut operations.sign;
    end_without_length(place, len)?;
    let make = |room| {
        let mac = place.as_ref().ok_or(NOT_BEGUN)?;
        if is_whole && mac.is_multipart {
            return Err(Rv(CKR_OPERATION_ACTIVE));
        }
        if let Some(output) = known_length(mac.bytes, room) {
            return Ok(output);
        }
        place.take().ok_or(NOT_BEGUN)?.finish(data?).map(Output::Bytes)
    };
    unsafe { give(out, len, make) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_Sign(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| unsafe { code(of, bytes(from, count), true, out, len) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_SignFinal(
    of: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| unsafe { code(of, Ok(&[]), false, out, len) })
}

fn more(place: &mut Option<Mac>, data: Result<&[u8]>) -> Result<()> {
    let mac = place.as_mut().ok_or(NOT_BEGUN)?;
    let outcome = data.and_then(|data| mac.update(data));
    if outcome.is_err() {
        *place = None;
    }
    outcome
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_SignUpdate(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
) -> CK_RV {
    entry(|| more(&mut session(of)?.operations().sign, unsafe { bytes(from, count) }))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_VerifyUpdate(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
) -> CK_RV {
    entry(|| more(&mut session(of)?.operations().verify, unsafe { bytes(from, count) }))
}

fn compare(of: CK_SESSION_HANDLE, data: Result<&[u8]>, is_whole: bool, code: Result<&[u8]>) -> Result<()> {
    let session = session(of)?;
    let mut operations = session.operations();
    if is_whole && operations.verify.as_ref().is_some_and(|mac| mac.is_multipart) {
        return Err(Rv(CKR_OPERATION_ACTIVE));
    }
    operations.verify.take().ok_or(NOT_BEGUN)?.verify(data?, code?)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_Verify(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    code: *mut CK_BYTE,
    len: CK_ULONG,
) -> CK_RV {
    entry(|| compare(of, unsafe { bytes(from, count) }, true, unsafe { bytes(code, len) }))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_VerifyFinal(
    of: CK_SESSION_HANDLE,
    code: *mut CK_BYTE,
    len: CK_ULONG,
) -> CK_RV {
    entry(|| compare(of, Ok(&[]), false, unsafe { bytes(code, len) }))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_DigestInit(of: CK_SESSION_HANDLE, how: *mut CK_MECHANISM) -> CK_RV {
    super::begin(of, how, |operations| &mut operations.digest, |_| Digest::begin(&unsafe { mechanism(how) }?))
}

unsafe fn digested(
    of: CK_SESSION_HANDLE,
    data: Result<&[u8]>,
    is_whole: bool,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> Result<()> {
    let session = session(of)?;
    let mut operations = session.operations();
    let place = &mut operations.digest;
    end_without_length(place, len)?;
    let make = |room| {
        let digest = place.as_ref().ok_or(NOT_BEGUN)?;
        if is_whole && digest.is_multipart {
            return Err(Rv(CKR_OPERATION_ACTIVE));
        }
        if let Some(output) = known_length(digest.bytes(), room) {
            return Ok(output);
        }
        let mut digest = place.take().ok_or(NOT_BEGUN)?;
        digest.update(data?);
        Ok(Output::Bytes(digest.finish()))
    };
    unsafe { give(out, len, make) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_Digest(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| unsafe { digested(of, bytes(from, count), true, out, len) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_DigestFinal(
    of: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| unsafe { digested(of, Ok(&[]), false, out, len) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_DigestUpdate(
    of: CK_SESSION_HANDLE,
    from: *mut CK_BYTE,
    count: CK_ULONG,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let mut operations = session.operations();
        let digest = operations.digest.as_mut().ok_or(NOT_BEGUN)?;
        let Ok(data) = (unsafe { bytes(from, count) }) else {
            operations.digest = None;
            return Err(Rv(CKR_ARGUMENTS_BAD));
        };
        digest.is_multipart = true;
        digest.update(data);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_DigestKey(of: CK_SESSION_HANDLE, key: CK_OBJECT_HANDLE) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        session.operations().digest.take().ok_or(NOT_BEGUN)?;
        session.key(key)?;
        Err(Rv(CKR_KEY_INDIGESTIBLE))
    })
}
