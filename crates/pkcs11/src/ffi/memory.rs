//! Memory of the program: read into values of our own, and written.

use std::slice;

use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::rv::{Result, Rv, because};
use crate::session::Output;
use crate::template::Template;

/// The most attributes of a template, and the most bytes of one.
const MAX_ATTRIBUTES: CK_ULONG = 256;
const MAX_VALUE: CK_ULONG = 1 << 20;

/// Bytes of the program. None are null.
///
/// # Safety
///
/// `from` is null or points to `len` bytes, which nobody changes while the result lives.
pub(super) unsafe fn bytes<'a>(from: *const CK_BYTE, len: CK_ULONG) -> Result<&'a [u8]> {
    match usize::try_from(len) {
        Ok(0) => Ok(&[]),
        Ok(len) if !from.is_null() && len <= isize::MAX as usize => {
            // SAFETY: not null, and the caller vouches for the rest.
            Ok(unsafe { slice::from_raw_parts(from, len) })
        }
        _ => Err(Rv(CKR_ARGUMENTS_BAD)),
    }
}

/// Reads a value that may lie anywhere.
///
/// # Safety
///
/// `from` is null or points to a `T`. Every bit pattern is a valid `T`.
pub(super) unsafe fn read<T: Copy>(from: *const T) -> Result<T> {
    if from.is_null() {
        return Err(Rv(CKR_ARGUMENTS_BAD));
    }
    // SAFETY: not null, and the caller vouches for the rest.
    Ok(unsafe { from.read_unaligned() })
}

/// Writes a value.
///
/// # Safety
///
/// `to` is null or points to memory for a `T`.
pub(super) unsafe fn write<T>(to: *mut T, value: T) -> Result<()> {
    if to.is_null() {
        return Err(Rv(CKR_ARGUMENTS_BAD));
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes bytes that are known to fit.
///
/// # Safety
///
/// `to` points to memory for them.
pub(super) unsafe fn copy(to: *mut CK_BYTE, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    if to.is_null() {
        return Err(Rv(CKR_ARGUMENTS_BAD));
    }
    // SAFETY: not null, the caller vouches for the room, and our own bytes overlap with nothing of the
    // program.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    Ok(())
}

/// Has bytes made for a buffer of the program, and writes them or their length.
///
/// # Safety
///
/// `len` is null or points to a length; `out` is null or points to that number of bytes.
pub(super) unsafe fn give(
    out: *mut CK_BYTE,
    len: *mut CK_ULONG,
    make: impl FnOnce(Option<usize>) -> Result<Output>,
) -> Result<()> {
    // SAFETY: the caller vouches for it.
    let room = unsafe { read(len) }?;
    let room = (!out.is_null()).then_some(usize::try_from(room).unwrap_or(usize::MAX));
    let (message, outcome) = match make(room)? {
        Output::Length(bytes) => (bytes, Ok(())),
        Output::TooSmall(bytes) => (bytes, Err(Rv(CKR_BUFFER_TOO_SMALL))),
        Output::Bytes(bytes) if room.unwrap_or(0) >= bytes.len() => {
            // SAFETY: it fits, and the caller vouches for the room.
            unsafe { copy(out, &bytes) }?;
            (bytes.len(), Ok(()))
        }
        Output::Bytes(_) => return Err(Rv(CKR_GENERAL_ERROR)),
    };
    // SAFETY: it was read above.
    unsafe { write(len, message as CK_ULONG) }?;
    outcome
}

/// A template, copied.
///
/// # Safety
///
/// `from` is null or points to `count` attributes, each of which points to its value.
pub(super) unsafe fn template(from: *const CK_ATTRIBUTE, count: CK_ULONG) -> Result<Template> {
    let mut attributes = Vec::new();
    // SAFETY: the caller vouches for it.
    for attribute in unsafe { self::attributes(from, count) }? {
        let refused = |why| {
            because(
                CKR_ATTRIBUTE_VALUE_INVALID,
                format!("the value of attribute {:#x} {why}", attribute.type_),
            )
        };
        if attribute.ulValueLen > MAX_VALUE {
            return Err(refused("is longer than a mebibyte"));
        }
        // SAFETY: as above.
        let value = unsafe { bytes(attribute.pValue.cast(), attribute.ulValueLen) };
        let value = value.map_err(|_| refused("is at null"))?;
        attributes.push((attribute.type_, Zeroizing::new(value.to_vec())));
    }
    Ok(Template(attributes))
}

/// The attributes of a template.
///
/// # Safety
///
/// `from` is null or points to `count` attributes.
pub(super) unsafe fn attributes(from: *const CK_ATTRIBUTE, count: CK_ULONG) -> Result<Vec<CK_ATTRIBUTE>> {
    if count > MAX_ATTRIBUTES || (from.is_null() && count > 0) {
        return Err(Rv(CKR_ARGUMENTS_BAD));
    }
    // SAFETY: not null, and the caller vouches for `count` of them.
    (0..count as usize).map(|i| unsafe { read(from.add(i)) }).collect()
}
