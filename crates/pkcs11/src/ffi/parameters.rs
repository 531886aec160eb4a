//! Parameters of mechanisms, copied and checked.

use cryptoki_sys::*;

use super::memory::{bytes, copy, read};
use crate::mechanism::{Form, KdfPart, Mechanism, Parameter, entry};
use crate::rv::{Result, Rv, because};

/// The most bytes of additional data, and of what a key is derived from: more than nodes take.
const MAX: CK_ULONG = 1 << 20;
/// The most parts of what a key is derived from.
const MAX_PARTS: CK_ULONG = 64;

/// A parameter is not as the standard has it.
fn bad(why: &str) -> Rv {
    because(CKR_MECHANISM_PARAM_INVALID, why)
}

/// The kind of a mechanism alone, where the parameter comes later.
///
/// # Safety
///
/// `from` is null or points to a mechanism.
pub(super) unsafe fn kind(from: *const CK_MECHANISM) -> Result<Mechanism> {
    // SAFETY: the caller vouches for it.
    let kind = unsafe { read(from) }?.mechanism;
    Ok(Mechanism { kind, parameter: Parameter::None })
}

/// A mechanism.
///
/// # Safety
///
/// `from` is null or points to a mechanism whose parameter is as the standard says.
pub(super) unsafe fn mechanism(from: *const CK_MECHANISM) -> Result<Mechanism> {
    // SAFETY: the caller vouches for it.
    let given = unsafe { read(from) }?;
    let form = entry(given.mechanism)?.form;
    // SAFETY: as above.
    let parameter = unsafe { parameter(form, &given) }?;
    Ok(Mechanism { kind: given.mechanism, parameter })
}

/// Writes a nonce of the nodes where a mechanism of GCM has its IV of the same length.
///
/// # Safety
///
/// `from` points to a mechanism that [`mechanism`] has read in this call.
pub(super) unsafe fn write_nonce(from: *const CK_MECHANISM, nonce: &[u8]) -> Result<()> {
    // SAFETY: the caller vouches for it, and the program for its IV.
    let gcm: CK_GCM_PARAMS = unsafe { structure(&read(from)?) }?;
    if gcm.ulIvLen as usize != nonce.len() {
        return Err(bad("the IV has changed its length during the call"));
    }
    // SAFETY: it has the length of the nonce.
    unsafe { copy(gcm.pIv, nonce) }
}

unsafe fn parameter(form: Form, given: &CK_MECHANISM) -> Result<Parameter> {
    // SAFETY: of the functions below: the program vouches for the parameter and what it points to.
    match form {
        // Programs give all kinds of things here, and other modules ignore them.
        Form::None => Ok(Parameter::None),
        Form::Initial(block) => {
            let not_a_block = || bad("the parameter is an initial block, as long as a block of the cipher");
            let initial = unsafe { bytes(given.pParameter.cast(), given.ulParameterLen) };
            match initial.map_err(|_| not_a_block())? {
                initial if initial.len() == block => Ok(Parameter::Initial(initial.to_vec())),
                _ => Err(not_a_block()),
            }
        }
        Form::Counter => {
            let counter: CK_AES_CTR_PARAMS = unsafe { structure(given) }?;
            match counter.ulCounterBits {
                bits @ 1..=128 => Ok(Parameter::Counter { bits, block: counter.cb }),
                _ => Err(bad("ulCounterBits is 1 to 128")),
            }
        }
        Form::Gcm => {
            let gcm: CK_GCM_PARAMS = unsafe { structure(given) }?;
            let iv = unsafe { some_bytes(gcm.pIv, gcm.ulIvLen) }?;
            let additional = unsafe { some_bytes(gcm.pAAD, gcm.ulAADLen) }?;
            Ok(Parameter::Gcm { iv, additional, tag_bits: gcm.ulTagBits })
        }
        Form::Length => {
            let length: CK_ULONG = unsafe { structure(given) }?;
            usize::try_from(length).map(Parameter::Length).map_err(|_| bad("no code is that long"))
        }
        Form::Data => {
            let data: CK_KEY_DERIVATION_STRING_DATA = unsafe { structure(given) }?;
            Ok(Parameter::Data(unsafe { some_bytes(data.pData, data.ulLen) }?))
        }
        Form::Chained(16) => {
            let chained: CK_AES_CBC_ENCRYPT_DATA_PARAMS = unsafe { structure(given) }?;
            let data = unsafe { some_bytes(chained.pData, chained.length) }?;
            Ok(Parameter::Chained { initial: chained.iv.to_vec(), data })
        }
        Form::Chained(_) => {
            let chained: CK_DES_CBC_ENCRYPT_DATA_PARAMS = unsafe { structure(given) }?;
            let data = unsafe { some_bytes(chained.pData, chained.length) }?;
            Ok(Parameter::Chained { initial: chained.iv.to_vec(), data })
        }
        Form::CounterKdf => unsafe { counter_kdf(&structure(given)?) },
    }
}

unsafe fn counter_kdf(kdf: &CK_SP800_108_KDF_PARAMS) -> Result<Parameter> {
    if kdf.prfType != CKM_AES_CMAC || kdf.ulAdditionalDerivedKeys != 0 {
        return Err(bad("the nodes derive one key at a time, with CKM_AES_CMAC"));
    }
    if kdf.ulNumberOfDataParams > MAX_PARTS {
        return Err(bad("the data of a derivation have at most 64 parts"));
    }
    let (mut before, mut after, mut counter, mut has_length) = (Vec::new(), Vec::new(), None, false);
    for i in 0..kdf.ulNumberOfDataParams as usize {
        if kdf.pDataParams.is_null() {
            return Err(bad("pDataParams is null"));
        }
        // SAFETY: the program vouches for `ulNumberOfDataParams` parts, and for what they point to.
        let part = unsafe { read(kdf.pDataParams.add(i)) }?;
        let part = match part.type_ {
            CK_SP800_108_ITERATION_VARIABLE => {
                // SAFETY: as above.
                let format: CK_SP800_108_COUNTER_FORMAT = unsafe { sized(part.pValue, part.ulValueLen) }?;
                let bits = format.ulWidthInBits;
                if counter.is_some() || format.bLittleEndian != 0 || ![8, 16, 24, 32].contains(&bits) {
                    return Err(bad("there is one counter, of 8, 16, 24 or 32 bits, the highest first"));
                }
                counter = Some(bits as u8);
                continue;
            }
            // SAFETY: as above.
            CK_SP800_108_BYTE_ARRAY => {
                KdfPart::Bytes(unsafe { some_bytes(part.pValue.cast(), part.ulValueLen) }?)
            }
            CK_SP800_108_DKM_LENGTH => {
                // SAFETY: as above.
                let format: CK_SP800_108_DKM_LENGTH_FORMAT = unsafe { sized(part.pValue, part.ulValueLen) }?;
                let of_blocks = match format.dkmLengthMethod {
                    CK_SP800_108_DKM_LENGTH_SUM_OF_KEYS => false,
                    CK_SP800_108_DKM_LENGTH_SUM_OF_SEGMENTS => true,
                    _ => return Err(bad("dkmLengthMethod is the sum of keys or of segments")),
                };
                if has_length {
                    return Err(bad(
                        "the data of a derivation have one part CK_SP800_108_DKM_LENGTH at most",
                    ));
                }
                has_length = true;
                if ![8, 16, 24, 32, 40, 48, 56, 64].contains(&format.ulWidthInBits) {
                    return Err(bad("the length of the derived key is in whole bytes, 8 at most"));
                }
                let bytes = format.ulWidthInBits as usize / 8;
                KdfPart::Length { bytes, little_endian: format.bLittleEndian != 0, of_blocks }
            }
            _ => return Err(bad("the data of a derivation are a counter, a length and bytes")),
        };
        if counter.is_some() { after.push(part) } else { before.push(part) }
    }
    let counter_bits = counter.ok_or_else(|| bad("the data of a derivation have no counter"))?;
    Ok(Parameter::CounterKdf { before, counter_bits, after })
}

/// The parameter as a structure.
unsafe fn structure<T: Copy>(given: &CK_MECHANISM) -> Result<T> {
    // SAFETY: the caller vouches for it.
    unsafe { sized(given.pParameter, given.ulParameterLen) }
}

/// A structure of plain numbers and pointers, if it has the right size.
pub(super) unsafe fn sized<T: Copy>(from: *const std::ffi::c_void, len: CK_ULONG) -> Result<T> {
    if len as usize != size_of::<T>() || from.is_null() {
        return Err(bad("a structure of the parameter is null, or has another size"));
    }
    // SAFETY: the caller vouches for it.
    unsafe { read(from.cast()) }
}

/// Bytes that a parameter points to, copied.
pub(super) unsafe fn some_bytes(from: *const CK_BYTE, len: CK_ULONG) -> Result<Vec<u8>> {
    if len > MAX {
        return Err(bad("bytes of the parameter are more than nodes take"));
    }
    // SAFETY: the caller vouches for it.
    unsafe { bytes(from, len) }.map(<[u8]>::to_vec).map_err(|_| bad("bytes of the parameter are at null"))
}
