//! Arguments made of an input's bytes: mostly good ones, and every kind of bad one. Each pointer is null or
//! points to exactly as much memory as its length says, since that is what programs vouch for.

use std::ffi::c_void;
use std::ptr;

use cryptoki_sys::*;

/// Decisions: the bytes of an input, and then those of a generator that it seeds, so that every input goes on
/// for long.
pub struct Choice<'i> {
    input: std::slice::Iter<'i, u8>,
    state: u64,
}

impl<'i> Choice<'i> {
    pub fn new(input: &'i [u8]) -> Choice<'i> {
        // FNV-1a.
        let state = input.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Choice { input: input.iter(), state: state | 1 }
    }

    pub fn below(&mut self, end: usize) -> usize {
        let byte = self.input.next().copied().unwrap_or_else(|| {
            // Xorshift.
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            (self.state >> 24) as u8
        });
        usize::from(byte) % end
    }

    /// True once in so many times.
    pub fn rarely(&mut self, times: usize) -> bool {
        self.below(times) + 1 == times
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// What arguments point to, for as long as a call takes.
#[derive(Default)]
pub struct Memory(Vec<Box<[u8]>>);

impl Memory {
    pub fn bytes(&mut self, bytes: &[u8]) -> *mut CK_BYTE {
        self.0.push(bytes.into());
        self.0.last_mut().map_or(ptr::null_mut(), |kept| kept.as_mut_ptr())
    }

    /// Values of C, which lie anywhere.
    pub fn values<T: Copy>(&mut self, values: &[T]) -> *mut T {
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) };
        self.bytes(bytes).cast()
    }
}

/// Lengths of data: around blocks, and no block at all.
const LENGTHS: [usize; 14] = [16, 32, 0, 1, 7, 8, 15, 17, 24, 31, 33, 48, 64, 100];
/// What lengths and numbers are that nothing has.
const ABSURD: [CK_ULONG; 6] = [0, 1, 129, 1 << 20, 1 << 62, CK_ULONG::MAX];

/// Data with its length: some bytes, those that the module gave last, or null with any length.
pub fn data(choice: &mut Choice, memory: &mut Memory, last: &[u8]) -> (*mut CK_BYTE, CK_ULONG) {
    if choice.rarely(24) {
        return (ptr::null_mut(), choice.of(&ABSURD));
    }
    if !last.is_empty() && choice.below(3) == 0 {
        let cut = if choice.rarely(4) { choice.below(last.len()) } else { last.len() };
        return (memory.bytes(&last[..cut]), cut as CK_ULONG);
    }
    let length = choice.of(&LENGTHS);
    let first = choice.below(256) as u8;
    (memory.bytes(&vec![first; length]), length as CK_ULONG)
}

const KINDS: [CK_MECHANISM_TYPE; 31] = [
    CKM_AES_KEY_GEN,
    CKM_DES2_KEY_GEN,
    CKM_DES3_KEY_GEN,
    CKM_AES_ECB,
    CKM_AES_CBC,
    CKM_AES_CBC_PAD,
    CKM_AES_CTR,
    CKM_AES_GCM,
    CKM_DES3_ECB,
    CKM_DES3_CBC,
    CKM_DES3_CBC_PAD,
    CKM_AES_CMAC,
    CKM_AES_CMAC_GENERAL,
    CKM_DES3_CMAC,
    CKM_DES3_CMAC_GENERAL,
    CKM_AES_KEY_WRAP,
    CKM_AES_KEY_WRAP_KWP,
    CKM_AES_ECB_ENCRYPT_DATA,
    CKM_AES_CBC_ENCRYPT_DATA,
    CKM_DES3_ECB_ENCRYPT_DATA,
    CKM_DES3_CBC_ENCRYPT_DATA,
    CKM_SP800_108_COUNTER_KDF,
    CKM_SHA256,
    CKM_SHA384,
    CKM_SHA512,
    CKM_RSA_PKCS,
    CKM_SHA256_HMAC,
    CKM_SHA256_HMAC_GENERAL,
    CKM_SHA512_KEY_GEN,
    0xdead_beef,
    CK_ULONG::MAX,
];

/// A mechanism: mostly one that fits the function, mostly with a parameter as it should be.
pub fn mechanism(
    choice: &mut Choice,
    memory: &mut Memory,
    fitting: &[CK_MECHANISM_TYPE],
) -> *mut CK_MECHANISM {
    if choice.rarely(32) {
        return ptr::null_mut();
    }
    let kind = if choice.rarely(6) { choice.of(&KINDS) } else { choice.of(fitting) };
    let (at, len) = match choice.below(8) {
        0 => broken_parameter(choice, memory),
        _ => parameter(choice, memory, kind),
    };
    memory.values(&[CK_MECHANISM { mechanism: kind, pParameter: at, ulParameterLen: len }])
}

/// No parameter, one of nowhere, or one of a length that no structure with pointers has: those would be
/// followed.
fn broken_parameter(choice: &mut Choice, memory: &mut Memory) -> (*mut c_void, CK_ULONG) {
    if choice.below(2) == 0 {
        return (ptr::null_mut(), choice.of(&[0, 1, 8, 16, 24, 40, 48, CK_ULONG::MAX]));
    }
    let length = choice.of(&[0usize, 1, 7, 9, 15, 17, 23, 25, 33, 47, 49]);
    (memory.bytes(&vec![7; length]).cast(), length as CK_ULONG)
}

/// Bytes that a parameter points to.
fn part(choice: &mut Choice, memory: &mut Memory, lengths: &[usize]) -> (*mut CK_BYTE, CK_ULONG) {
    if choice.rarely(16) {
        return (ptr::null_mut(), choice.of(&ABSURD));
    }
    let length = choice.of(lengths);
    (memory.bytes(&vec![choice.below(4) as u8; length]), length as CK_ULONG)
}

fn parameter(choice: &mut Choice, memory: &mut Memory, kind: CK_MECHANISM_TYPE) -> (*mut c_void, CK_ULONG) {
    fn structure<T: Copy>(memory: &mut Memory, value: T) -> (*mut c_void, CK_ULONG) {
        (memory.values(&[value]).cast(), size_of::<T>() as CK_ULONG)
    }
    match kind {
        CKM_AES_CBC | CKM_AES_CBC_PAD => structure(memory, [choice.below(256) as u8; 16]),
        CKM_DES3_CBC | CKM_DES3_CBC_PAD => structure(memory, [choice.below(256) as u8; 8]),
        CKM_AES_CTR => {
            let bits = choice.of(&[128, 64, 32, 8, 1, 0, 127, 129, CK_ULONG::MAX]);
            let block = choice.of(&[0, 1, 0xff]);
            structure(memory, CK_AES_CTR_PARAMS { ulCounterBits: bits, cb: [block; 16] })
        }
        CKM_AES_GCM => {
            let (iv, iv_len) = part(choice, memory, &[12, 12, 12, 16, 0, 1, 255, 1024, 1025]);
            let (aad, aad_len) = part(choice, memory, &[0, 16, 1, 100]);
            let gcm = CK_GCM_PARAMS {
                pIv: iv,
                ulIvLen: iv_len,
                ulIvBits: choice.of(&ABSURD),
                pAAD: aad,
                ulAADLen: aad_len,
                ulTagBits: choice.of(&[128, 128, 120, 96, 0, 1, 8, 97, 129, 1 << 61, CK_ULONG::MAX]),
            };
            structure(memory, gcm)
        }
        CKM_AES_CMAC_GENERAL | CKM_DES3_CMAC_GENERAL | CKM_SHA256_HMAC_GENERAL => {
            structure(memory, choice.of(&[8, 4, 16, 1, 0, 9, 17, CK_ULONG::MAX]))
        }
        CKM_AES_ECB_ENCRYPT_DATA | CKM_DES3_ECB_ENCRYPT_DATA => {
            let (data, len) = part(choice, memory, &[32, 16, 24, 0, 1, 64]);
            structure(memory, CK_KEY_DERIVATION_STRING_DATA { pData: data, ulLen: len })
        }
        CKM_AES_CBC_ENCRYPT_DATA => {
            let (data, length) = part(choice, memory, &[32, 16, 24, 0, 1, 64]);
            structure(memory, CK_AES_CBC_ENCRYPT_DATA_PARAMS { iv: [3; 16], pData: data, length })
        }
        CKM_DES3_CBC_ENCRYPT_DATA => {
            let (data, length) = part(choice, memory, &[24, 16, 32, 0, 1, 64]);
            structure(memory, CK_DES_CBC_ENCRYPT_DATA_PARAMS { iv: [3; 8], pData: data, length })
        }
        CKM_SP800_108_COUNTER_KDF => {
            let kdf = counter_kdf(choice, memory);
            structure(memory, kdf)
        }
        _ => (ptr::null_mut(), 0),
    }
}

fn counter_kdf(choice: &mut Choice, memory: &mut Memory) -> CK_SP800_108_KDF_PARAMS {
    let mut parts = Vec::new();
    for first in [true, false, false, false].into_iter().take(1 + choice.below(4)) {
        let kind = if first && !choice.rarely(8) { 0 } else { choice.below(4) };
        let width = choice.of(&[32, 16, 8, 24, 0, 7, 64, 72, CK_ULONG::MAX]);
        let (type_, at, len) = match kind {
            0 => {
                let format = CK_SP800_108_COUNTER_FORMAT {
                    bLittleEndian: choice.rarely(8).into(),
                    ulWidthInBits: width,
                };
                let len = size_of_val(&format);
                (CK_SP800_108_ITERATION_VARIABLE, memory.values(&[format]).cast(), len as CK_ULONG)
            }
            1 => {
                let format = CK_SP800_108_DKM_LENGTH_FORMAT {
                    dkmLengthMethod: choice.of(&[CK_SP800_108_DKM_LENGTH_SUM_OF_KEYS, 2, 77]),
                    bLittleEndian: choice.below(2) as CK_BBOOL,
                    ulWidthInBits: width,
                };
                let len = size_of_val(&format);
                (CK_SP800_108_DKM_LENGTH, memory.values(&[format]).cast(), len as CK_ULONG)
            }
            2 => {
                let (at, len) = part(choice, memory, &[8, 0, 1, 100]);
                (CK_SP800_108_BYTE_ARRAY, at.cast(), len)
            }
            _ => {
                let (at, len) = broken_parameter(choice, memory);
                (choice.of(&[0, CK_SP800_108_ITERATION_VARIABLE, CK_SP800_108_COUNTER, 99]), at, len)
            }
        };
        parts.push(CK_PRF_DATA_PARAM { type_, pValue: at, ulValueLen: len });
    }
    let is_null = choice.rarely(16);
    CK_SP800_108_KDF_PARAMS {
        prfType: if choice.rarely(16) { CKM_SHA256_HMAC } else { CKM_AES_CMAC },
        ulNumberOfDataParams: if is_null {
            choice.of(&[0, 1, 65, CK_ULONG::MAX])
        } else {
            parts.len() as CK_ULONG
        },
        pDataParams: if is_null { ptr::null_mut() } else { memory.values(&parts) },
        ulAdditionalDerivedKeys: choice.rarely(16).into(),
        pAdditionalDerivedKeys: ptr::null_mut(),
    }
}

/// The parameter of a message, and where its nonce and tag are written: 1,024 and 16 bytes there.
pub fn message(
    choice: &mut Choice,
    memory: &mut Memory,
    iv: *mut CK_BYTE,
    tag: *mut CK_BYTE,
) -> (*mut c_void, CK_ULONG) {
    if choice.rarely(16) {
        return broken_parameter(choice, memory);
    }
    let is_null =
        |choice: &mut Choice, at: *mut CK_BYTE| if choice.rarely(16) { ptr::null_mut() } else { at };
    let message = CK_GCM_MESSAGE_PARAMS {
        pIv: is_null(choice, iv),
        ulIvLen: choice.of(&[12, 12, 12, 12, 0, 1, 16, 1024]),
        ulIvFixedBits: choice.of(&[0, 0, 0, 1, CK_ULONG::MAX]),
        ivGenerator: choice.of(&[
            CKG_GENERATE,
            CKG_NO_GENERATE,
            CKG_GENERATE_COUNTER,
            CKG_GENERATE_RANDOM,
            99,
        ]),
        pTag: is_null(choice, tag),
        ulTagBits: choice.of(&[128, 128, 96, 120, 0, 7, 127, 129, CK_ULONG::MAX]),
    };
    (memory.values(&[message]).cast(), size_of_val(&message) as CK_ULONG)
}

pub const ATTRIBUTES: [CK_ATTRIBUTE_TYPE; 37] = [
    CKA_CLASS,
    CKA_KEY_TYPE,
    CKA_VALUE,
    CKA_VALUE_LEN,
    CKA_TOKEN,
    CKA_PRIVATE,
    CKA_LABEL,
    CKA_ID,
    CKA_SENSITIVE,
    CKA_EXTRACTABLE,
    CKA_MODIFIABLE,
    CKA_COPYABLE,
    CKA_DESTROYABLE,
    CKA_ENCRYPT,
    CKA_DECRYPT,
    CKA_SIGN,
    CKA_VERIFY,
    CKA_WRAP,
    CKA_UNWRAP,
    CKA_DERIVE,
    CKA_START_DATE,
    CKA_END_DATE,
    CKA_ALLOWED_MECHANISMS,
    CKA_LOCAL,
    CKA_ALWAYS_SENSITIVE,
    CKA_NEVER_EXTRACTABLE,
    CKA_KEY_GEN_MECHANISM,
    CKA_CHECK_VALUE,
    CKA_UNIQUE_ID,
    CKA_TRUSTED,
    CKA_WRAP_WITH_TRUSTED,
    CKA_WRAP_TEMPLATE,
    CKA_UNWRAP_TEMPLATE,
    CKA_DERIVE_TEMPLATE,
    CKA_MODULUS,
    0xbeef,
    CK_ULONG::MAX,
];

/// Attributes with values.
pub type Attributes = Vec<(CK_ATTRIBUTE_TYPE, Vec<u8>)>;

pub fn yes(kind: CK_ATTRIBUTE_TYPE) -> (CK_ATTRIBUTE_TYPE, Vec<u8>) {
    (kind, vec![CK_TRUE])
}

pub fn ulong(kind: CK_ATTRIBUTE_TYPE, number: CK_ULONG) -> (CK_ATTRIBUTE_TYPE, Vec<u8>) {
    (kind, number.to_ne_bytes().to_vec())
}

/// A template: good attributes, mostly, and then any others, which may contradict them.
pub fn template(choice: &mut Choice, memory: &mut Memory, good: Attributes) -> (*mut CK_ATTRIBUTE, CK_ULONG) {
    if choice.rarely(24) {
        return (ptr::null_mut(), choice.of(&[0, 1, 257, CK_ULONG::MAX]));
    }
    let mut attributes = if choice.rarely(8) { Attributes::new() } else { good };
    if choice.rarely(8) && !attributes.is_empty() {
        attributes.remove(choice.below(attributes.len()));
    }
    for _ in 0..choice.of(&[0, 0, 0, 1, 2, 3]) {
        attributes.push((choice.of(&ATTRIBUTES), value(choice)));
    }
    let mut raw: Vec<CK_ATTRIBUTE> = attributes
        .iter()
        .map(|(kind, value)| CK_ATTRIBUTE {
            type_: *kind,
            pValue: memory.bytes(value).cast(),
            ulValueLen: value.len() as CK_ULONG,
        })
        .collect();
    if choice.rarely(16)
        && let Some(broken) = raw.last_mut()
    {
        broken.pValue = ptr::null_mut();
        broken.ulValueLen = choice.of(&ABSURD);
    }
    // A count that no template has is refused before anything is read.
    let count = if choice.rarely(64) { choice.of(&[257, CK_ULONG::MAX]) } else { raw.len() as CK_ULONG };
    (memory.values(&raw), count)
}

fn value(choice: &mut Choice) -> Vec<u8> {
    match choice.below(8) {
        0 => vec![],
        1 => vec![CK_FALSE],
        2 => vec![choice.below(256) as u8],
        3 => choice.of(&[0, 4, 16, 21, 24, 31, 32, CK_ULONG::MAX]).to_ne_bytes().to_vec(),
        4 => choice.of(&KINDS).to_ne_bytes().to_vec(),
        5 => vec![choice.below(256) as u8; choice.of(&LENGTHS)],
        6 => b"20261124".to_vec(),
        _ => vec![0xff; choice.of(&[300, 4096, 70_000])],
    }
}
