//! Objects and keys.

use cryptoki_sys::*;

use super::memory::{attributes, bytes, give, template, write};
use super::parameters::mechanism;
use super::{entry, session};
use crate::rv::{NOT_BEGUN, Result, Rv};
use crate::session::{Output, known_length};
use crate::{from_keys, objects};

// SAFETY: of all functions here, as the module `ffi` says: the program vouches for its pointers.

/// Writes a handle. The place is tried before anything is made that nobody could name.
unsafe fn handle(to: *mut CK_OBJECT_HANDLE, make: impl FnOnce() -> Result<CK_OBJECT_HANDLE>) -> Result<()> {
    unsafe { write(to, CK_INVALID_HANDLE) }?;
    let handle = make()?;
    unsafe { write(to, handle) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_CreateObject(
    of: CK_SESSION_HANDLE,
    from: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
    to: *mut CK_OBJECT_HANDLE,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let template = unsafe { template(from, count) }?;
        unsafe { handle(to, || objects::create(&session, &template)) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_CopyObject(
    of: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    from: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
    to: *mut CK_OBJECT_HANDLE,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let template = unsafe { template(from, count) }?;
        unsafe { handle(to, || objects::copy(&session, object, &template)) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_DestroyObject(of: CK_SESSION_HANDLE, object: CK_OBJECT_HANDLE) -> CK_RV {
    entry(|| objects::destroy(&*session(of)?, object))
}

/// The nodes do not say how much memory a key takes, and neither does SoftHSM.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GetObjectSize(
    of: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    to: *mut CK_ULONG,
) -> CK_RV {
    entry(|| {
        session(of)?.object(object)?;
        unsafe { write(to, CK_UNAVAILABLE_INFORMATION) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GetAttributeValue(
    of: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    to: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
) -> CK_RV {
    entry(|| {
        let object = session(of)?.object(object)?;
        let mut outcome = Ok(());
        for (i, attribute) in unsafe { attributes(to, count) }?.into_iter().enumerate() {
            let (len, rv) = match object.value(attribute.type_) {
                Err(rv) => (CK_UNAVAILABLE_INFORMATION, Err(rv)),
                Ok(value) if attribute.pValue.is_null() => (value.len() as CK_ULONG, Ok(())),
                Ok(value) if (attribute.ulValueLen as usize) < value.len() => {
                    (CK_UNAVAILABLE_INFORMATION, Err(Rv(CKR_BUFFER_TOO_SMALL)))
                }
                Ok(value) => {
                    unsafe { super::memory::copy(attribute.pValue.cast(), &value) }?;
                    (value.len() as CK_ULONG, Ok(()))
                }
            };
            outcome = outcome.and(rv);
            unsafe { write(to.add(i), CK_ATTRIBUTE { ulValueLen: len, ..attribute }) }?;
        }
        outcome
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_SetAttributeValue(
    of: CK_SESSION_HANDLE,
    object: CK_OBJECT_HANDLE,
    from: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        objects::set(&session, object, &unsafe { template(from, count) }?)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_FindObjectsInit(
    of: CK_SESSION_HANDLE,
    from: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let template = unsafe { template(from, count) }?;
        let mut operations = session.operations();
        if operations.find.is_some() {
            return Err(Rv(CKR_OPERATION_ACTIVE));
        }
        let mut found = objects::find(&session, &template)?;
        // They are taken from the end.
        found.reverse();
        operations.find = Some(found);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_FindObjects(
    of: CK_SESSION_HANDLE,
    to: *mut CK_OBJECT_HANDLE,
    most: CK_ULONG,
    count: *mut CK_ULONG,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let mut operations = session.operations();
        let found = operations.find.as_mut().ok_or(NOT_BEGUN)?;
        if (to.is_null() && most > 0) || count.is_null() {
            return Err(Rv(CKR_ARGUMENTS_BAD));
        }
        let given = found.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        for (i, handle) in found.drain(found.len() - given..).rev().enumerate() {
            unsafe { write(to.add(i), handle) }?;
        }
        unsafe { write(count, given as CK_ULONG) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_FindObjectsFinal(of: CK_SESSION_HANDLE) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let found = session.operations().find.take();
        found.map(drop).ok_or(NOT_BEGUN)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_GenerateKey(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    from: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
    to: *mut CK_OBJECT_HANDLE,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let (mechanism, template) = (unsafe { mechanism(how) }?, unsafe { template(from, count) }?);
        unsafe { handle(to, || objects::generate(&session, &mechanism, &template)) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_WrapKey(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    wrapping: CK_OBJECT_HANDLE,
    key: CK_OBJECT_HANDLE,
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let wrap = from_keys::wrap(&session, &unsafe { mechanism(how) }?, wrapping, key)?;
        let make = |room| match known_length(wrap.bytes(), room) {
            Some(output) => Ok(output),
            None => wrap.run(&session).map(|wrapped| Output::Bytes(wrapped.into())),
        };
        unsafe { give(out, len, make) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_UnwrapKey(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    unwrapping: CK_OBJECT_HANDLE,
    wrapped: *mut CK_BYTE,
    len: CK_ULONG,
    from: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
    to: *mut CK_OBJECT_HANDLE,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let (mechanism, template) = (unsafe { mechanism(how) }?, unsafe { template(from, count) }?);
        let wrapped = unsafe { bytes(wrapped, len) }?;
        unsafe { handle(to, || from_keys::unwrap(&session, &mechanism, unwrapping, wrapped, &template)) }
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn C_DeriveKey(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    base: CK_OBJECT_HANDLE,
    from: *mut CK_ATTRIBUTE,
    count: CK_ULONG,
    to: *mut CK_OBJECT_HANDLE,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let (mechanism, template) = (unsafe { mechanism(how) }?, unsafe { template(from, count) }?);
        unsafe { handle(to, || from_keys::derive(&session, &mechanism, base, &template)) }
    })
}
