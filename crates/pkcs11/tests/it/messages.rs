//! Messages of PKCS#11 3.0 that come in parts.

use std::ptr;

use cryptoki_sys::*;

use crate::common::*;

/// A parameter, and what it points to.
struct Parameter {
    iv: [u8; 12],
    tag: [u8; 16],
    generator: CK_GENERATOR_FUNCTION,
    fixed_bits: CK_ULONG,
    tag_bits: CK_ULONG,
}

impl Parameter {
    fn of(iv: [u8; 12], generator: CK_GENERATOR_FUNCTION) -> Parameter {
        Parameter { iv, tag: [0; 16], generator, fixed_bits: 0, tag_bits: 128 }
    }

    fn raw(&mut self) -> CK_GCM_MESSAGE_PARAMS {
        CK_GCM_MESSAGE_PARAMS {
            pIv: self.iv.as_mut_ptr(),
            ulIvLen: 12,
            ulIvFixedBits: self.fixed_bits,
            ivGenerator: self.generator,
            pTag: self.tag.as_mut_ptr(),
            ulTagBits: self.tag_bits,
        }
    }
}

const SIZE: CK_ULONG = size_of::<CK_GCM_MESSAGE_PARAMS>() as CK_ULONG;

fn begin(session: &Session<'_>, does: Does, parameter: &mut Parameter) -> CK_RV {
    let mut raw = parameter.raw();
    let (at, aad) = ((&raw mut raw).cast(), b"header".as_ptr().cast_mut());
    match does {
        Does::Encrypt => call!(session.module, C_EncryptMessageBegin(session.handle, at, SIZE, aad, 6)),
        _ => call!(session.module, C_DecryptMessageBegin(session.handle, at, SIZE, aad, 6)),
    }
}

/// One part, with a buffer of so many bytes; `None` for no buffer.
fn next(
    session: &Session<'_>,
    does: Does,
    parameter: &mut Parameter,
    part: &[u8],
    (room, flags): (Option<usize>, CK_FLAGS),
) -> (CK_RV, usize, Vec<u8>) {
    let mut raw = parameter.raw();
    let (mut out, mut len) = (vec![0xee; room.unwrap_or(0)], room.unwrap_or(0) as CK_ULONG);
    let to = if room.is_some() { out.as_mut_ptr() } else { ptr::null_mut() };
    let (at, of) = ((&raw mut raw).cast(), session.handle);
    let (from, count) = (part.as_ptr().cast_mut(), part.len() as CK_ULONG);
    let rv = match does {
        Does::Encrypt => {
            call!(session.module, C_EncryptMessageNext(of, at, SIZE, from, count, to, &mut len, flags))
        }
        _ => call!(session.module, C_DecryptMessageNext(of, at, SIZE, from, count, to, &mut len, flags)),
    };
    if rv == CKR_OK {
        out.truncate(len as usize);
    }
    (rv, len as usize, out)
}

/// All of a message in parts of 7 bytes; the last one with a length question and a buffer that is too small
/// by one.
fn in_parts(session: &Session<'_>, does: Does, parameter: &mut Parameter, message: &[u8]) -> Vec<u8> {
    let last = message.len() - message.len() % 7;
    for part in message[..last].chunks(7) {
        assert_eq!(next(session, does, parameter, part, (Some(64), 0)), (CKR_OK, 0, vec![]));
    }
    let end = &message[last..];
    let asked = next(session, does, parameter, end, (None, CKF_END_OF_MESSAGE));
    assert_eq!((asked.0, asked.1), (CKR_OK, message.len()));
    if let Some(less) = message.len().checked_sub(1) {
        let small = next(session, does, parameter, end, (Some(less), CKF_END_OF_MESSAGE));
        assert_eq!((small.0, small.1), (CKR_BUFFER_TOO_SMALL, message.len()));
    }
    let (rv, _, out) = next(session, does, parameter, end, (Some(message.len()), CKF_END_OF_MESSAGE));
    assert_eq!(rv, CKR_OK);
    out
}

fn inits(session: &Session<'_>, key: CK_OBJECT_HANDLE) {
    let mut how = plain(CKM_AES_GCM).raw();
    assert_eq!(call!(session.module, C_MessageEncryptInit(session.handle, &mut how, key)), CKR_OK);
    assert_eq!(call!(session.module, C_MessageDecryptInit(session.handle, &mut how, key)), CKR_OK);
}

#[test]
fn messages_in_parts_are_what_another_program_computes() {
    let session = session();
    let secret = data(16);
    let key = session.import("parts", CKK_AES, &secret, vec![]).expect("imported");
    inits(&session, key);
    for (n, len) in [0, 6, 7, 40].into_iter().enumerate() {
        for generator in [CKG_NO_GENERATE, CKG_GENERATE, CKG_GENERATE_COUNTER, CKG_GENERATE_RANDOM] {
            let given = [n as u8 + 1; 12];
            let mut parameter = Parameter::of(given, generator);
            assert_eq!(begin(&session, Does::Encrypt, &mut parameter), CKR_OK);
            let nonce = parameter.iv;
            assert_eq!(nonce == given, generator == CKG_NO_GENERATE, "written when the message begins");
            let sealed = in_parts(&session, Does::Encrypt, &mut parameter, &data(len));
            assert_eq!(
                [&sealed[..], &parameter.tag].concat(),
                sealed_by_another(&secret, &nonce, &data(len))
            );
            assert_eq!(parameter.iv, nonce, "and never later");
            assert_eq!(begin(&session, Does::Decrypt, &mut parameter), CKR_OK);
            assert_eq!(in_parts(&session, Does::Decrypt, &mut parameter, &sealed), data(len));
        }
    }
}

#[test]
fn a_message_that_is_not_authentic_ends_and_others_follow_it() {
    let session = session();
    let secret = data(16);
    let key = session.import("not-authentic", CKK_AES, &secret, vec![]).expect("imported");
    inits(&session, key);
    let sealed = sealed_by_another(&secret, &[1; 12], &data(20));
    for good in [false, true] {
        let mut parameter = Parameter::of([1; 12], CKG_NO_GENERATE);
        assert_eq!(begin(&session, Does::Decrypt, &mut parameter), CKR_OK);
        parameter.tag.copy_from_slice(&sealed[20..]);
        parameter.tag[0] ^= u8::from(!good);
        let (rv, _, out) =
            next(&session, Does::Decrypt, &mut parameter, &sealed[..20], (Some(20), CKF_END_OF_MESSAGE));
        match good {
            true => assert_eq!((rv, out), (CKR_OK, data(20))),
            false => {
                assert_eq!((rv, out), (CKR_AEAD_DECRYPT_FAILED, vec![0xee; 20]), "nothing of it is given")
            }
        }
        let over = next(&session, Does::Decrypt, &mut parameter, &[], (Some(20), CKF_END_OF_MESSAGE));
        assert_eq!(over.0, CKR_OPERATION_NOT_INITIALIZED);
    }
}

/// PKCS#11 3.0, `C_EncryptMessageNext` and `C_DecryptMessageNext`: an error other than `CKR_BUFFER_TOO_SMALL`
/// ends the message.
#[test]
fn an_error_in_a_part_ends_the_message_and_others_follow_it() {
    let session = session();
    let secret = data(16);
    let key = session.import("parts-ended", CKK_AES, &secret, vec![]).expect("imported");
    inits(&session, key);
    let of = session.handle;
    let sealed = sealed_by_another(&secret, &[1; 12], &data(20));
    let (ciphertext, tag) = sealed.split_at(20);
    for (does, text, made) in
        [(Does::Encrypt, &data(20)[..], ciphertext), (Does::Decrypt, ciphertext, &data(20))]
    {
        let begun = || {
            let mut parameter = Parameter::of([1; 12], CKG_NO_GENERATE);
            assert_eq!(begin(&session, does, &mut parameter), CKR_OK);
            if does == Does::Decrypt {
                parameter.tag.copy_from_slice(tag);
            }
            parameter
        };
        let is_over = |parameter: &mut Parameter, after: &str| {
            let message = next(&session, does, parameter, text, (Some(20), CKF_END_OF_MESSAGE));
            assert_eq!(message.0, CKR_OPERATION_NOT_INITIALIZED, "{does:?} after {after}");
        };
        // A tag of another length than the message began with.
        for tag_bits in [96, 120, 121, 127, 0] {
            let mut parameter = Parameter { tag_bits, ..begun() };
            let message = next(&session, does, &mut parameter, text, (Some(20), CKF_END_OF_MESSAGE));
            assert_eq!(message.0, CKR_MECHANISM_PARAM_INVALID, "{does:?} {tag_bits}");
            is_over(&mut Parameter { tag_bits: 128, ..parameter }, "a wrong tag");
        }
        // Flags that there are not, and no place for the length.
        let mut parameter = begun();
        assert_eq!(next(&session, does, &mut parameter, text, (Some(20), 2)).0, CKR_ARGUMENTS_BAD);
        is_over(&mut parameter, "strange flags");
        for flags in [0, CKF_END_OF_MESSAGE] {
            let mut parameter = begun();
            let (mut raw, mut from, mut to) = (parameter.raw(), text.to_vec(), [0; 20]);
            let (at, from, to, none) =
                ((&raw mut raw).cast(), from.as_mut_ptr(), to.as_mut_ptr(), ptr::null_mut());
            let rv = match does {
                Does::Encrypt => {
                    call!(session.module, C_EncryptMessageNext(of, at, SIZE, from, 20, to, none, flags))
                }
                _ => call!(session.module, C_DecryptMessageNext(of, at, SIZE, from, 20, to, none, flags)),
            };
            assert_eq!(rv, CKR_ARGUMENTS_BAD);
            is_over(&mut parameter, "no place for the length");
        }
        let mut parameter = begun();
        let message = next(&session, does, &mut parameter, text, (Some(20), CKF_END_OF_MESSAGE));
        assert_eq!((message.0, &message.2[..], &parameter.tag[..]), (CKR_OK, made, tag), "{does:?}");
    }
}

#[test]
fn calls_out_of_order_are_refused() {
    let session = session();
    let key = session.import("order", CKK_AES, &data(16), vec![]).expect("imported");
    let mut parameter = Parameter::of([3; 12], CKG_NO_GENERATE);
    let mut how = plain(CKM_AES_GCM).raw();
    assert_eq!(begin(&session, Does::Encrypt, &mut parameter), CKR_OPERATION_NOT_INITIALIZED);
    inits(&session, key);
    let again = call!(session.module, C_MessageEncryptInit(session.handle, &mut how, key));
    assert_eq!(again, CKR_OPERATION_ACTIVE);
    let early = next(&session, Does::Encrypt, &mut parameter, b"x", (Some(9), 0));
    assert_eq!(early.0, CKR_OPERATION_NOT_INITIALIZED);
    for (generator, fixed_bits) in [(CKG_GENERATE, 32), (CKG_GENERATE_COUNTER_XOR, 0), (99, 0)] {
        let mut other = Parameter { generator, fixed_bits, ..Parameter::of([3; 12], 0) };
        assert_eq!(begin(&session, Does::Encrypt, &mut other), CKR_MECHANISM_PARAM_INVALID);
    }
    assert_eq!(begin(&session, Does::Encrypt, &mut parameter), CKR_OK);
    assert_eq!(begin(&session, Does::Encrypt, &mut parameter), CKR_OPERATION_ACTIVE);
    let mut raw = parameter.raw();
    let (at, none, mut len) = ((&raw mut raw).cast(), ptr::null_mut(), 9);
    let (mut from, mut to) = ([1u8; 1], [0u8; 9]);
    let (from, to, of) = (from.as_mut_ptr(), to.as_mut_ptr(), session.handle);
    let whole = call!(session.module, C_EncryptMessage(of, at, SIZE, none, 0, from, 1, to, &mut len));
    assert_eq!(whole, CKR_OPERATION_ACTIVE);
    assert_eq!(in_parts(&session, Does::Encrypt, &mut parameter, &data(9)).len(), 9);
    // No mechanism ends all messages, and so does the function for that.
    assert_eq!(begin(&session, Does::Encrypt, &mut parameter), CKR_OK);
    assert_eq!(call!(session.module, C_MessageEncryptInit(of, ptr::null_mut(), key)), CKR_OK);
    assert_eq!(call!(session.module, C_MessageEncryptFinal(of)), CKR_OPERATION_NOT_INITIALIZED);
    assert_eq!(call!(session.module, C_MessageDecryptFinal(of)), CKR_OK);
}
