//! Messages of 3.0: encrypted and decrypted one after the other under one key.

use std::ffi::c_void;

use cryptoki_sys::*;

use super::memory::{bytes, copy, give};
use super::parameters::{kind, sized, some_bytes};
use super::{entry, session};
use crate::rv::{NOT_BEGUN, Result, Rv};
use crate::session::encryption::Direction;
use crate::session::messages::{MessageParameter, Messages};
use crate::session::{Operations, Output, known_length};

// SAFETY: of all functions here, as the module `ffi` says: the program vouches for its pointers.

/// Begins messages.
unsafe fn begin_messages(
    of: CK_SESSION_HANDLE,
    how: *mut CK_MECHANISM,
    key: CK_OBJECT_HANDLE,
    direction: Direction,
) -> CK_RV {
    super::begin(
        of,
        how,
        |operations| messages(operations, direction),
        |session| Messages::begin(session, &unsafe { kind(how) }?, key, direction),
    )
}

fn messages(operations: &mut Operations, direction: Direction) -> &mut Option<Messages> {
    match direction {
        Direction::Encrypt => &mut operations.message_encrypt,
        Direction::Decrypt => &mut operations.message_decrypt,
    }
}

fn end_messages(of: CK_SESSION_HANDLE, direction: Direction) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let ended = messages(&mut session.operations(), direction).take();
        ended.map(drop).ok_or(NOT_BEGUN)
    })
}

/// What happens to the tag of a message's parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    /// It is read.
    Given,
    /// It is written.
    Made,
    /// Nothing, in this call.
    Later,
}

/// The parameter of a message.
unsafe fn message_parameter(
    from: *const c_void,
    len: CK_ULONG,
    tag: Tag,
) -> Result<(MessageParameter, CK_GCM_MESSAGE_PARAMS)> {
    let given: CK_GCM_MESSAGE_PARAMS = unsafe { sized(from, len) }?;
    let bad = Rv(CKR_MECHANISM_PARAM_INVALID);
    if given.pIv.is_null() || (given.pTag.is_null() && tag != Tag::Later) || given.ulTagBits > 128 {
        return Err(bad);
    }
    let read = match tag {
        Tag::Given => unsafe { some_bytes(given.pTag, given.ulTagBits.div_ceil(8)) }?,
        Tag::Made | Tag::Later => Vec::new(),
    };
    let parameter = MessageParameter {
        iv: unsafe { some_bytes(given.pIv, given.ulIvLen) }?,
        fixed_bits: given.ulIvFixedBits,
        generator: given.ivGenerator,
        tag: read,
        tag_bits: given.ulTagBits,
    };
    Ok((parameter, given))
}

/// One message in one part.
unsafe fn one_message(
    of: CK_SESSION_HANDLE,
    (parameter, parameter_len): (*mut c_void, CK_ULONG),
    (additional, additional_len): (*mut CK_BYTE, CK_ULONG),
    (from, count): (*mut CK_BYTE, CK_ULONG),
    (out, len): (*mut CK_BYTE, *mut CK_ULONG),
    direction: Direction,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let mut operations = session.operations();
        let messages = messages(&mut operations, direction).as_ref().ok_or(NOT_BEGUN)?;
        messages.refuse_under_way()?;
        let tag = match direction {
            Direction::Encrypt => Tag::Made,
            Direction::Decrypt => Tag::Given,
        };
        let (parameter, places) = unsafe { message_parameter(parameter, parameter_len, tag) }?;
        let (additional, data) = unsafe { (bytes(additional, additional_len)?, bytes(from, count)?) };
        let make = |room| {
            if let Some(output) = known_length(data.len(), room) {
                return Ok(output);
            }
            let (made, nonce_and_tag) = messages.whole(&parameter, additional, data)?;
            if let Some((nonce, tag)) = nonce_and_tag {
                unsafe { copy(places.pIv, &nonce) }?;
                unsafe { copy(places.pTag, &tag) }?;
            }
            Ok(Output::Bytes(made))
        };
        unsafe { give(out, len, make) }
    })
}

/// Begins a message that comes in parts. A nonce of the nodes is written here.
unsafe fn begin_parts(
    of: CK_SESSION_HANDLE,
    (parameter, parameter_len): (*mut c_void, CK_ULONG),
    (additional, additional_len): (*mut CK_BYTE, CK_ULONG),
    direction: Direction,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let mut operations = session.operations();
        let messages = messages(&mut operations, direction).as_mut().ok_or(NOT_BEGUN)?;
        let (parameter, places) = unsafe { message_parameter(parameter, parameter_len, Tag::Later) }?;
        let additional = unsafe { bytes(additional, additional_len) }?;
        match messages.begin_parts(&parameter, additional)? {
            Some(nonce) => unsafe { copy(places.pIv, &nonce) },
            None => Ok(()),
        }
    })
}

/// Takes a part of a message. As the standard has it, an error ends the message, except that of a buffer that
/// is too small; the messages after it go on.
unsafe fn next_part(
    of: CK_SESSION_HANDLE,
    parameter: (*mut c_void, CK_ULONG),
    part: (*mut CK_BYTE, CK_ULONG),
    out: (*mut CK_BYTE, *mut CK_ULONG),
    flags: CK_FLAGS,
    direction: Direction,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let mut operations = session.operations();
        let messages = messages(&mut operations, direction).as_mut().ok_or(NOT_BEGUN)?;
        let outcome = unsafe { take_part(messages, parameter, part, out, flags, direction) };
        if outcome.is_err_and(|rv| rv != Rv(CKR_BUFFER_TOO_SMALL)) {
            messages.end_parts();
        }
        outcome
    })
}

unsafe fn take_part(
    messages: &mut Messages,
    (parameter, parameter_len): (*mut c_void, CK_ULONG),
    (from, count): (*mut CK_BYTE, CK_ULONG),
    (out, len): (*mut CK_BYTE, *mut CK_ULONG),
    flags: CK_FLAGS,
    direction: Direction,
) -> Result<()> {
    messages.refuse_none_under_way()?;
    if flags & !CKF_END_OF_MESSAGE != 0 {
        return Err(Rv(CKR_ARGUMENTS_BAD));
    }
    let is_last = flags != 0;
    let tag = match direction {
        _ if !is_last => Tag::Later,
        Direction::Encrypt => Tag::Made,
        Direction::Decrypt => Tag::Given,
    };
    let (parameter, places) = unsafe { message_parameter(parameter, parameter_len, tag) }?;
    let data = unsafe { bytes(from, count) }?;
    let make = |room| {
        let (output, made) = messages.part(&parameter, data, (is_last, room))?;
        if let Some(tag) = made {
            // As many bytes as its place has: the message has compared that.
            unsafe { copy(places.pTag, &tag) }?;
        }
        Ok(output)
    };
    unsafe { give(out, len, make) }
}

/// The functions of one direction.
macro_rules! of_direction {
    ($direction:expr, $init:ident, $whole:ident, $begin:ident, $next:ident, $end:ident) => {
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $init(
            of: CK_SESSION_HANDLE,
            how: *mut CK_MECHANISM,
            key: CK_OBJECT_HANDLE,
        ) -> CK_RV {
            unsafe { begin_messages(of, how, key, $direction) }
        }

        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $whole(
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
            let (parameter, additional) = ((parameter, parameter_len), (additional, additional_len));
            unsafe { one_message(of, parameter, additional, (from, count), (out, len), $direction) }
        }

        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $begin(
            of: CK_SESSION_HANDLE,
            parameter: *mut c_void,
            parameter_len: CK_ULONG,
            additional: *mut CK_BYTE,
            additional_len: CK_ULONG,
        ) -> CK_RV {
            unsafe { begin_parts(of, (parameter, parameter_len), (additional, additional_len), $direction) }
        }

        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $next(
            of: CK_SESSION_HANDLE,
            parameter: *mut c_void,
            parameter_len: CK_ULONG,
            from: *mut CK_BYTE,
            count: CK_ULONG,
            out: *mut CK_BYTE,
            len: *mut CK_ULONG,
            flags: CK_FLAGS,
        ) -> CK_RV {
            unsafe { next_part(of, (parameter, parameter_len), (from, count), (out, len), flags, $direction) }
        }

        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $end(of: CK_SESSION_HANDLE) -> CK_RV {
            end_messages(of, $direction)
        }
    };
}

of_direction!(
    Direction::Encrypt,
    C_MessageEncryptInit,
    C_EncryptMessage,
    C_EncryptMessageBegin,
    C_EncryptMessageNext,
    C_MessageEncryptFinal
);

of_direction!(
    Direction::Decrypt,
    C_MessageDecryptInit,
    C_DecryptMessage,
    C_DecryptMessageBegin,
    C_DecryptMessageNext,
    C_MessageDecryptFinal
);
