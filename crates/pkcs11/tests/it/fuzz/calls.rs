//! One call: a function of the lists, with arguments that an input's bytes decide.

use std::ptr;

use cryptoki_sys::*;

use super::arguments::{Choice, Memory, data, mechanism, message, template, ulong, yes};
use super::memory::{Output, Place, Told};
use super::{Kind, World};
use crate::common::*;

/// What one sequence of calls knows.
pub struct Sequence<'w> {
    pub world: &'w World,
    /// Handles of sessions: those of nobody, and those that the sequence opened.
    pub sessions: Vec<CK_SESSION_HANDLE>,
    /// Objects that the sequence made.
    pub made: Vec<CK_OBJECT_HANDLE>,
    /// Which kind of function was called last.
    group: usize,
    /// What the last call gave, and how many bytes it said there would be.
    last: Told,
}

const CIPHERS: [CK_MECHANISM_TYPE; 10] = [
    CKM_AES_ECB,
    CKM_AES_CBC_PAD,
    CKM_AES_GCM,
    CKM_AES_CTR,
    CKM_AES_CBC,
    CKM_DES3_ECB,
    CKM_DES3_CBC,
    CKM_DES3_CBC_PAD,
    CKM_AES_ECB,
    CKM_AES_GCM,
];
const CODES: [CK_MECHANISM_TYPE; 4] =
    [CKM_AES_CMAC, CKM_AES_CMAC_GENERAL, CKM_DES3_CMAC, CKM_DES3_CMAC_GENERAL];
const DIGESTS: [CK_MECHANISM_TYPE; 3] = [CKM_SHA256, CKM_SHA384, CKM_SHA512];
const GENERATORS: [CK_MECHANISM_TYPE; 3] = [CKM_AES_KEY_GEN, CKM_DES2_KEY_GEN, CKM_DES3_KEY_GEN];
const WRAPPERS: [CK_MECHANISM_TYPE; 2] = [CKM_AES_KEY_WRAP, CKM_AES_KEY_WRAP_KWP];
const DERIVERS: [CK_MECHANISM_TYPE; 5] = [
    CKM_AES_ECB_ENCRYPT_DATA,
    CKM_AES_CBC_ENCRYPT_DATA,
    CKM_SP800_108_COUNTER_KDF,
    CKM_DES3_ECB_ENCRYPT_DATA,
    CKM_DES3_CBC_ENCRYPT_DATA,
];
/// More bytes than any function gives for what is given to it here.
const ENOUGH: usize = 2048;

/// A call: the function's name, its kind, and what it answered.
type Called = (&'static str, Kind, CK_RV);

/// Calls a function and says its name.
macro_rules! called {
    ($self:expr, $kind:ident, $function:ident($($argument:expr),* $(,)?)) => {
        (stringify!($function), Kind::$kind, call!($self.world.module, $function($($argument),*)))
    };
}

impl<'w> Sequence<'w> {
    pub fn new(world: &'w World) -> Sequence<'w> {
        let last = Told { written: Vec::new(), needed: None };
        Sequence { world, sessions: vec![0, CK_ULONG::MAX], made: Vec::new(), group: 0, last }
    }

    fn session(&self, choice: &mut Choice) -> CK_SESSION_HANDLE {
        match choice.below(16) {
            0 => choice.of(&self.sessions),
            1 => choice.below(256) as CK_SESSION_HANDLE,
            _ => self.sessions.last().copied().unwrap_or(0),
        }
    }

    /// Mostly a key that stays, sometimes one that the sequence made, sometimes none.
    fn key(&self, choice: &mut Choice) -> CK_OBJECT_HANDLE {
        let keys = self.world.keys();
        match choice.below(16) {
            0 => choice.of(&[0, CK_ULONG::MAX, 1 << 40]),
            1 => choice.below(256) as CK_OBJECT_HANDLE,
            2..8 if !self.made.is_empty() => choice.of(&self.made),
            _ => choice.of(&keys),
        }
    }

    /// Mostly the key of AES for data and codes.
    fn data_key(&self, choice: &mut Choice) -> CK_OBJECT_HANDLE {
        if choice.below(3) == 0 { self.key(choice) } else { self.world.keys()[0] }
    }

    /// Mostly the key that wraps, unwraps and derives.
    fn kek(&self, choice: &mut Choice) -> CK_OBJECT_HANDLE {
        if choice.below(4) == 0 { self.key(choice) } else { self.world.keys()[1] }
    }

    /// What may be changed or deleted: seldom a key that stays, since then it has to be made again.
    fn victim(&self, choice: &mut Choice) -> CK_OBJECT_HANDLE {
        match self.made.is_empty() {
            _ if choice.rarely(128) => self.key(choice),
            true => choice.of(&[0, CK_ULONG::MAX]),
            false => choice.of(&self.made),
        }
    }

    fn output(&self, choice: &mut Choice, entry: usize) -> Output {
        let (gives_buffer, gives_length) = (choice.below(8) != 7, !choice.rarely(32));
        if choice.rarely(24) {
            let said = choice.of(&[CK_ULONG::MAX, 1 << 63, 1 << 32]);
            return Output::new(entry, ENOUGH, said, gives_buffer, gives_length);
        }
        let room = match self.last.needed {
            Some(needed) if choice.below(2) == 0 => (needed + choice.below(3)).saturating_sub(1),
            _ => choice.of(&[64, 128, 16, 32, 0, 1, 7, 8, 12, 15, 17, 28, 31, 33, 40, 80, 256, ENOUGH]),
        };
        Output::new(entry, room, room as CK_ULONG, gives_buffer, gives_length)
    }

    /// Calls what writes bytes, or entries of a list.
    fn giving(
        &mut self,
        choice: &mut Choice,
        entry: usize,
        function: impl FnOnce(&Self, &mut Output, &mut Choice) -> Called,
    ) -> Called {
        let mut output = self.output(choice, entry);
        let (name, kind, rv) = function(self, &mut output, choice);
        self.last = output.check(rv);
        (name, kind, rv)
    }

    /// Calls what writes a structure.
    fn filling<T>(
        &mut self,
        choice: &mut Choice,
        function: impl FnOnce(&Self, *mut T, &mut Choice) -> Called,
    ) -> Called {
        let mut place = Place::new(size_of::<T>());
        let at = if choice.rarely(16) { ptr::null_mut() } else { place.at() };
        let called = function(self, at, choice);
        place.written(if called.2 == CKR_OK { size_of::<T>() } else { 0 });
        called
    }

    /// Calls what makes an object, or opens a session.
    fn naming(
        &mut self,
        choice: &mut Choice,
        function: impl FnOnce(&Self, *mut CK_ULONG, &mut Choice) -> Called,
    ) -> (Called, Option<CK_ULONG>) {
        let mut place = Place::new(size_of::<CK_ULONG>());
        let at: *mut CK_ULONG = if choice.rarely(24) { ptr::null_mut() } else { place.at() };
        if !at.is_null() {
            unsafe { at.write_unaligned(0) };
        }
        let called = function(self, at, choice);
        let written = place.written(size_of::<CK_ULONG>());
        let handle = written.try_into().map_or(0, CK_ULONG::from_ne_bytes);
        if !at.is_null() {
            assert_eq!(handle != 0, called.2 == CKR_OK, "{}: {:#x}", called.0, called.2);
        }
        (called, (called.2 == CKR_OK).then_some(handle))
    }

    /// Calls one function.
    pub fn step(&mut self, choice: &mut Choice) -> Called {
        if choice.below(4) == 0 {
            self.group = choice.below(12);
        }
        let mut memory = Memory::default();
        match self.group {
            0 => self.of_library(choice),
            1 => self.of_session(choice, &mut memory),
            2 | 3 => self.of_cipher(choice, &mut memory, true),
            4 | 5 => self.of_cipher(choice, &mut memory, false),
            6 => self.of_code(choice, &mut memory),
            7 => self.of_digest(choice, &mut memory),
            8 => self.of_objects(choice, &mut memory),
            9 => self.of_keys(choice, &mut memory),
            10 => self.of_messages(choice, &mut memory),
            _ => self.of_rest(choice, &mut memory),
        }
    }

    fn of_library(&mut self, choice: &mut Choice) -> Called {
        let slot = choice.of(&[0, 0, 0, 1, 2, 3, CK_ULONG::MAX]);
        match choice.below(10) {
            0 => self.filling(choice, |of, to, _| called!(of, Library, C_GetInfo(to))),
            1 => self.filling(choice, |of, to, _| called!(of, Library, C_GetFunctionList(to))),
            2 => self.giving(choice, size_of::<CK_SLOT_ID>(), |of, out, choice| {
                called!(of, List, C_GetSlotList(choice.below(3) as CK_BBOOL, out.buffer(), out.length()))
            }),
            3 => self.filling(choice, |of, to, _| called!(of, Library, C_GetSlotInfo(slot, to))),
            4 => self.filling(choice, |of, to, _| called!(of, Library, C_GetTokenInfo(slot, to))),
            5 => self.giving(choice, size_of::<CK_MECHANISM_TYPE>(), |of, out, _| {
                called!(of, List, C_GetMechanismList(slot, out.buffer(), out.length()))
            }),
            6 => self.filling(choice, |of, to, choice| {
                let kind = choice.of(&[CKM_AES_GCM, CKM_DES3_CMAC, CKM_SHA256, CKM_RSA_PKCS, CK_ULONG::MAX]);
                called!(of, Library, C_GetMechanismInfo(slot, kind, to))
            }),
            7 => self.giving(choice, size_of::<CK_INTERFACE>(), |of, out, _| {
                called!(of, List, C_GetInterfaceList(out.buffer(), out.length()))
            }),
            8 => self.filling(choice, |of, to, choice| {
                let name: Option<&[u8]> =
                    choice.of(&[None, Some(b"PKCS 11\0"), Some(b"\0"), Some(b"Vendor\0")]);
                let mut version =
                    CK_VERSION { major: choice.of(&[3, 2, 0, 255]), minor: choice.of(&[0, 40, 255]) };
                let version = if choice.below(2) == 0 { ptr::null_mut() } else { &mut version };
                let flags = choice.of(&[0, 0, CKF_INTERFACE_FORK_SAFE, CK_ULONG::MAX]);
                let name = name.map_or(ptr::null_mut(), |name| name.as_ptr().cast_mut());
                called!(of, Library, C_GetInterface(name, version, to, flags))
            }),
            _ => self.of_life(choice),
        }
    }

    /// What ends or changes everything is seldom, since a login takes its time.
    fn of_life(&mut self, choice: &mut Choice) -> Called {
        let mut memory = Memory::default();
        if !choice.rarely(16) {
            let flags = choice.of(&[0, CKF_DONT_BLOCK]);
            return self.filling(choice, |of, to, _| {
                called!(of, Any, C_WaitForSlotEvent(flags, to, ptr::null_mut()))
            });
        }
        match choice.below(3) {
            0 => called!(self, Session, C_Finalize(memory.bytes(&[0]).cast())),
            1 => called!(self, Session, C_Finalize(ptr::null_mut())),
            _ => {
                unsafe extern "C" fn nothing(_: *mut std::ffi::c_void) -> CK_RV {
                    CKR_OK
                }
                let some = |choice: &mut Choice| if choice.below(2) == 0 { None } else { Some(nothing as _) };
                let given = CK_C_INITIALIZE_ARGS {
                    CreateMutex: None,
                    DestroyMutex: some(choice),
                    LockMutex: some(choice),
                    UnlockMutex: some(choice),
                    flags: choice.of(&[0, CKF_OS_LOCKING_OK, CK_ULONG::MAX]),
                    pReserved: if choice.rarely(4) { memory.bytes(&[0]).cast() } else { ptr::null_mut() },
                };
                let given = if choice.below(2) == 0 {
                    ptr::null_mut()
                } else {
                    memory.values(&[given]).cast::<std::ffi::c_void>()
                };
                ("C_Initialize", Kind::Session, self.world.initialize(given))
            }
        }
    }

    fn of_session(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
        let session = self.session(choice);
        match choice.below(8) {
            0 | 1 => {
                let slot = choice.of(&[0, 0, 0, 0, 1, 2, 3, CK_ULONG::MAX]);
                let flags = choice.of(&[
                    CKF_SERIAL_SESSION | CKF_RW_SESSION,
                    CKF_SERIAL_SESSION,
                    CKF_RW_SESSION,
                    0,
                    CK_ULONG::MAX,
                ]);
                let (called, handle) = self.naming(choice, |of, to, _| {
                    called!(of, Session, C_OpenSession(slot, flags, ptr::null_mut(), None, to))
                });
                self.sessions.extend(handle);
                called
            }
            2 => called!(self, Session, C_CloseSession(session)),
            3 => self.filling(choice, |of, to, _| called!(of, Session, C_GetSessionInfo(session, to))),
            4 => {
                let flags =
                    choice.of(&[0, CK_ULONG::MAX, CKF_ENCRYPT, CKF_SIGN | CKF_DIGEST, CKF_FIND_OBJECTS]);
                called!(self, Session, C_SessionCancel(session, flags))
            }
            5 => {
                let (from, len) = data(choice, memory, &[]);
                called!(self, Session, C_SeedRandom(session, from, len))
            }
            6 => {
                let (length, is_null) = (choice.of(&[0usize, 1, 16, 100, 5000]), choice.rarely(8));
                let mut place = Place::new(length);
                let to = if is_null { ptr::null_mut() } else { place.at() };
                let called = called!(self, Session, C_GenerateRandom(session, to, length as CK_ULONG));
                place.written(if called.2 == CKR_OK { length } else { 0 });
                called
            }
            _ if choice.rarely(16) => self.of_pins(choice, memory, session),
            _ => called!(self, Session, C_CloseSession(choice.of(&[0, CK_ULONG::MAX]))),
        }
    }

    fn of_pins(&mut self, choice: &mut Choice, memory: &mut Memory, session: CK_SESSION_HANDLE) -> Called {
        let pin = |choice: &mut Choice, memory: &mut Memory| {
            if choice.rarely(8) {
                return (ptr::null_mut(), choice.of(&[0, 4, CK_ULONG::MAX]));
            }
            let pin = match choice.below(6) {
                0 | 1 => USER_PIN.to_vec(),
                2 | 3 => SO_PIN.to_vec(),
                4 => vec![choice.below(256) as u8; choice.of(&[0, 1, 3, 4, 255, 256, 70_000])],
                _ => (0..=255).skip(choice.below(250)).collect(),
            };
            (memory.bytes(&pin), pin.len() as CK_ULONG)
        };
        let ((first, first_len), (second, second_len)) = (pin(choice, memory), pin(choice, memory));
        let who = choice.of(&[CKU_USER, CKU_USER, CKU_SO, CKU_CONTEXT_SPECIFIC, 3, CK_ULONG::MAX]);
        match choice.below(8) {
            0 => called!(self, Session, C_Logout(session)),
            1 => called!(self, Session, C_InitPIN(session, first, first_len)),
            2 => called!(self, Session, C_SetPIN(session, first, first_len, second, second_len)),
            3 => called!(self, Session, C_CloseAllSessions(choice.of(&[0, 1, 2, CK_ULONG::MAX]))),
            4 => {
                let label = choice.of(&[b"fuzz-0", b"fuzz-1", b"fuzz-2", b"\xff\xff\xff\xff\xff\xff"]);
                let mut all = [b' '; 32];
                all[..6].copy_from_slice(label);
                let label = if choice.rarely(8) { ptr::null_mut() } else { memory.bytes(&all) };
                let slot = choice.of(&[2, 0, 1, 3]);
                called!(self, Session, C_InitToken(slot, first, first_len, label))
            }
            5 => called!(self, Any, C_LoginUser(session, who, first, first_len, second, second_len)),
            _ => called!(self, Session, C_Login(session, who, first, first_len)),
        }
    }

    fn of_cipher(&mut self, choice: &mut Choice, memory: &mut Memory, encrypts: bool) -> Called {
        let session = self.session(choice);
        let (from, count) = data(choice, memory, &self.last.written);
        match choice.below(6) {
            0 | 1 => {
                let (how, key) = (mechanism(choice, memory, &CIPHERS), self.data_key(choice));
                match encrypts {
                    true => called!(self, Cipher, C_EncryptInit(session, how, key)),
                    false => called!(self, Cipher, C_DecryptInit(session, how, key)),
                }
            }
            2 | 3 => self.giving(choice, 1, |of, out, _| match encrypts {
                true => called!(of, Cipher, C_Encrypt(session, from, count, out.buffer(), out.length())),
                false => called!(of, Cipher, C_Decrypt(session, from, count, out.buffer(), out.length())),
            }),
            4 => self.giving(choice, 1, |of, out, _| match encrypts {
                true => {
                    called!(of, Cipher, C_EncryptUpdate(session, from, count, out.buffer(), out.length()))
                }
                false => {
                    called!(of, Cipher, C_DecryptUpdate(session, from, count, out.buffer(), out.length()))
                }
            }),
            _ => self.giving(choice, 1, |of, out, _| match encrypts {
                true => called!(of, Cipher, C_EncryptFinal(session, out.buffer(), out.length())),
                false => called!(of, Cipher, C_DecryptFinal(session, out.buffer(), out.length())),
            }),
        }
    }

    fn of_code(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
        let (session, key) = (self.session(choice), self.data_key(choice));
        let (from, count) = data(choice, memory, &[]);
        let (code, len) = data(choice, memory, &self.last.written);
        match choice.below(10) {
            0 | 1 => called!(self, Code, C_SignInit(session, mechanism(choice, memory, &CODES), key)),
            2 => self.giving(choice, 1, |of, out, _| {
                called!(of, Code, C_Sign(session, from, count, out.buffer(), out.length()))
            }),
            3 => called!(self, Code, C_SignUpdate(session, from, count)),
            4 => self.giving(choice, 1, |of, out, _| {
                called!(of, Code, C_SignFinal(session, out.buffer(), out.length()))
            }),
            5 | 6 => called!(self, Code, C_VerifyInit(session, mechanism(choice, memory, &CODES), key)),
            7 => called!(self, Code, C_Verify(session, from, count, code, len)),
            8 => called!(self, Code, C_VerifyUpdate(session, from, count)),
            _ => called!(self, Code, C_VerifyFinal(session, code, len)),
        }
    }

    fn of_digest(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
        let session = self.session(choice);
        let (from, count) = data(choice, memory, &[]);
        match choice.below(6) {
            0 | 1 => called!(self, Digest, C_DigestInit(session, mechanism(choice, memory, &DIGESTS))),
            2 => self.giving(choice, 1, |of, out, _| {
                called!(of, Digest, C_Digest(session, from, count, out.buffer(), out.length()))
            }),
            3 => called!(self, Digest, C_DigestUpdate(session, from, count)),
            4 => self.giving(choice, 1, |of, out, _| {
                called!(of, Digest, C_DigestFinal(session, out.buffer(), out.length()))
            }),
            _ => called!(self, Digest, C_DigestKey(session, self.key(choice))),
        }
    }

    fn of_objects(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
        let session = self.session(choice);
        match choice.below(12) {
            0 => {
                let good = if choice.below(2) == 0 { vec![] } else { vec![ulong(CKA_CLASS, CKO_SECRET_KEY)] };
                let (from, count) = template(choice, memory, good);
                called!(self, Object, C_FindObjectsInit(session, from, count))
            }
            1..4 => {
                let (most, gives) =
                    (choice.of(&[0usize, 1, 3, 100]), [!choice.rarely(16), !choice.rarely(16)]);
                let (mut handles, mut count) = (Place::new(8 * most), 0);
                let to = if gives[0] { handles.at() } else { ptr::null_mut() };
                let told: *mut CK_ULONG = if gives[1] { &mut count } else { ptr::null_mut() };
                let called = called!(self, Object, C_FindObjects(session, to, most as CK_ULONG, told));
                handles.written(8 * count as usize);
                called
            }
            4 => called!(self, Object, C_FindObjectsFinal(session)),
            5..9 => self.get_attributes(choice, session),
            9 => self.filling(choice, |of, to, choice| {
                called!(of, Any, C_GetObjectSize(session, of.key(choice), to))
            }),
            10 => {
                let (object, good) = (self.victim(choice), vec![(CKA_LABEL, b"another".to_vec())]);
                let (from, count) = template(choice, memory, good);
                called!(self, Object, C_SetAttributeValue(session, object, from, count))
            }
            _ => called!(self, Object, C_DestroyObject(session, self.victim(choice))),
        }
    }

    fn get_attributes(&mut self, choice: &mut Choice, session: CK_SESSION_HANDLE) -> Called {
        let object = self.key(choice);
        let count = choice.of(&[1usize, 2, 5, 0]);
        let mut places: Vec<(Place, usize, bool)> = (0..count)
            .map(|_| {
                let room = choice.of(&[8, 1, 0, 7, 9, 16, 32, 1000]);
                (Place::new(room), room, choice.below(4) == 0)
            })
            .collect();
        let mut asked: Vec<CK_ATTRIBUTE> = places
            .iter_mut()
            .map(|(place, room, is_null)| CK_ATTRIBUTE {
                type_: choice.of(&super::arguments::ATTRIBUTES),
                pValue: if *is_null { ptr::null_mut() } else { place.at() },
                ulValueLen: *room as CK_ULONG,
            })
            .collect();
        let at = if choice.rarely(24) { ptr::null_mut() } else { asked.as_mut_ptr() };
        // A count that no template has is refused before anything is read.
        let said = if choice.rarely(64) { CK_ULONG::MAX } else { count as CK_ULONG };
        let called = called!(self, Object, C_GetAttributeValue(session, object, at, said));
        for (attribute, (place, room, is_null)) in asked.iter().zip(&places) {
            let told = attribute.ulValueLen;
            let is_answered =
                [CKR_OK, CKR_ATTRIBUTE_SENSITIVE, CKR_ATTRIBUTE_TYPE_INVALID, CKR_BUFFER_TOO_SMALL]
                    .contains(&called.2);
            match told {
                _ if !is_answered => {
                    place.written(0);
                    assert_eq!(told, *room as CK_ULONG);
                }
                CK_UNAVAILABLE_INFORMATION => {
                    place.written(0);
                    assert_ne!(called.2, CKR_OK);
                }
                told if *is_null => assert!(told < 1 << 16),
                told => {
                    place.written(told as usize);
                }
            }
            assert!(
                attribute.type_ != CKA_VALUE || !is_answered || told == CK_UNAVAILABLE_INFORMATION,
                "a key was given away"
            );
        }
        called
    }

    fn of_keys(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
        let (session, key) = (self.session(choice), self.kek(choice));
        let aes = |bytes| {
            vec![ulong(CKA_CLASS, CKO_SECRET_KEY), ulong(CKA_KEY_TYPE, CKK_AES), ulong(CKA_VALUE_LEN, bytes)]
        };
        let (called, made) = match choice.below(8) {
            0 => {
                let good = vec![ulong(CKA_VALUE_LEN, choice.of(&[16, 24, 32])), yes(CKA_EXTRACTABLE)];
                let how = mechanism(choice, memory, &GENERATORS);
                let (from, count) = template(choice, memory, good);
                self.naming(choice, |of, to, _| {
                    called!(of, Object, C_GenerateKey(session, how, from, count, to))
                })
            }
            1 => {
                let mut good = aes(16);
                good.extend([yes(CKA_ENCRYPT), (CKA_VALUE, vec![5; 16]), (CKA_LABEL, b"imported".to_vec())]);
                let (from, count) = template(choice, memory, good);
                self.naming(choice, |of, to, _| called!(of, Object, C_CreateObject(session, from, count, to)))
            }
            2 => {
                let (from, count) = template(choice, memory, vec![(CKA_LABEL, b"a copy".to_vec())]);
                self.naming(choice, |of, to, _| {
                    called!(of, Object, C_CopyObject(session, key, from, count, to))
                })
            }
            3 | 4 => {
                let (how, other) = (mechanism(choice, memory, &WRAPPERS), self.key(choice));
                let called = self.giving(choice, 1, |of, out, _| {
                    called!(of, Object, C_WrapKey(session, how, key, other, out.buffer(), out.length()))
                });
                (called, None)
            }
            5 | 6 => {
                let how = mechanism(choice, memory, &WRAPPERS);
                let (from, count) = data(choice, memory, &self.last.written);
                let (attributes, many) = template(choice, memory, aes(16));
                self.naming(choice, |of, to, _| {
                    called!(of, Object, C_UnwrapKey(session, how, key, from, count, attributes, many, to))
                })
            }
            _ => {
                let how = mechanism(choice, memory, &DERIVERS);
                let bytes = choice.of(&[16, 24, 32]);
                let (from, count) = template(choice, memory, aes(bytes));
                self.naming(choice, |of, to, _| {
                    called!(of, Object, C_DeriveKey(session, how, key, from, count, to))
                })
            }
        };
        self.made.extend(made);
        called
    }

    fn of_messages(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
        let (session, key) = (self.session(choice), self.data_key(choice));
        let (from, count) = data(choice, memory, &self.last.written);
        let (additional, many) = data(choice, memory, &[]);
        let encrypts = choice.below(2) == 0;
        match choice.below(6) {
            0 | 1 => {
                let how = mechanism(choice, memory, &[CKM_AES_GCM]);
                match encrypts {
                    true => called!(self, Cipher, C_MessageEncryptInit(session, how, key)),
                    false => called!(self, Cipher, C_MessageDecryptInit(session, how, key)),
                }
            }
            2 => match encrypts {
                true => called!(self, Cipher, C_MessageEncryptFinal(session)),
                false => called!(self, Cipher, C_MessageDecryptFinal(session)),
            },
            3 => self.parts_of_messages(choice, memory, session),
            _ => {
                // Both have all the room that the parameter may say.
                let (mut iv, mut tag) = (Place::new(1024), Place::new(16));
                unsafe { iv.at::<[u8; 1024]>().write([9; 1024]) };
                unsafe { tag.at::<[u8; 16]>().write([9; 16]) };
                let (parameter, len) = message(choice, memory, iv.at(), tag.at());
                let called = self.giving(choice, 1, |of, out, _| {
                    let (to, room) = (out.buffer(), out.length());
                    match encrypts {
                        true => called!(
                            of,
                            Cipher,
                            C_EncryptMessage(
                                session, parameter, len, additional, many, from, count, to, room
                            )
                        ),
                        false => called!(
                            of,
                            Cipher,
                            C_DecryptMessage(
                                session, parameter, len, additional, many, from, count, to, room
                            )
                        ),
                    }
                });
                let is_written = encrypts && called.2 == CKR_OK;
                let (nonce, code) = (iv.written(1024), tag.written(16));
                assert!(nonce[12..].iter().all(|byte| *byte == 9), "more than a nonce was written");
                assert!(is_written || (nonce[..12] == [9; 12] && *code == [9; 16]), "{:#x}", called.2);
                called
            }
        }
    }

    fn parts_of_messages(
        &mut self,
        choice: &mut Choice,
        memory: &mut Memory,
        session: CK_SESSION_HANDLE,
    ) -> Called {
        let (mut iv, mut tag) = (Place::new(1024), Place::new(16));
        let (parameter, len) = message(choice, memory, iv.at(), tag.at());
        let (from, count) = data(choice, memory, &self.last.written);
        let flags = choice.of(&[0, CKF_END_OF_MESSAGE, CK_ULONG::MAX]);
        match choice.below(4) {
            0 => called!(self, Any, C_EncryptMessageBegin(session, parameter, len, from, count)),
            1 => called!(self, Any, C_DecryptMessageBegin(session, parameter, len, from, count)),
            2 => self.giving(choice, 1, |of, out, _| {
                let (to, room) = (out.buffer(), out.length());
                called!(of, Any, C_EncryptMessageNext(session, parameter, len, from, count, to, room, flags))
            }),
            _ => self.giving(choice, 1, |of, out, _| {
                let (to, room) = (out.buffer(), out.length());
                called!(of, Any, C_DecryptMessageNext(session, parameter, len, from, count, to, room, flags))
            }),
        }
    }

    /// Two things at once, states of operations, and what needs asymmetric keys.
    fn of_rest(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
        let (session, key) = (self.session(choice), self.key(choice));
        let (from, count) = data(choice, memory, &self.last.written);
        let how = mechanism(choice, memory, &CODES);
        let (attributes, many) = template(choice, memory, vec![]);
        match choice.below(23) {
            0 | 1 => self.giving(choice, 1, |of, out, _| {
                called!(of, Any, C_GetOperationState(session, out.buffer(), out.length()))
            }),
            2 | 3 => called!(self, Any, C_SetOperationState(session, from, count, key, choice.of(&[0, key]))),
            4 => self.giving(choice, 1, |of, out, _| {
                called!(of, Any, C_DigestEncryptUpdate(session, from, count, out.buffer(), out.length()))
            }),
            5 => self.giving(choice, 1, |of, out, _| {
                called!(of, Any, C_DecryptDigestUpdate(session, from, count, out.buffer(), out.length()))
            }),
            6 => self.giving(choice, 1, |of, out, _| {
                called!(of, Any, C_SignEncryptUpdate(session, from, count, out.buffer(), out.length()))
            }),
            7 => self.giving(choice, 1, |of, out, _| {
                called!(of, Any, C_DecryptVerifyUpdate(session, from, count, out.buffer(), out.length()))
            }),
            8 => called!(self, Any, C_SignRecoverInit(session, how, key)),
            9 => self.giving(choice, 1, |of, out, _| {
                called!(of, Any, C_SignRecover(session, from, count, out.buffer(), out.length()))
            }),
            10 => called!(self, Any, C_VerifyRecoverInit(session, how, key)),
            11 => self.giving(choice, 1, |of, out, _| {
                called!(of, Any, C_VerifyRecover(session, from, count, out.buffer(), out.length()))
            }),
            12 => {
                let (mut public, mut private) = (Place::new(8), Place::new(8));
                let (public, private) = (public.at(), private.at());
                called!(
                    self,
                    Any,
                    C_GenerateKeyPair(session, how, attributes, many, attributes, many, public, private)
                )
            }
            13 => called!(self, Any, C_GetFunctionStatus(session)),
            14 => called!(self, Any, C_CancelFunction(session)),
            15 => called!(self, Any, C_MessageSignInit(session, how, key)),
            16 => self.giving(choice, 1, |of, out, _| {
                let (to, room) = (out.buffer(), out.length());
                called!(of, Any, C_SignMessage(session, ptr::null_mut(), 0, from, count, to, room))
            }),
            17 => called!(self, Any, C_SignMessageBegin(session, ptr::null_mut(), 0)),
            18 => self.giving(choice, 1, |of, out, _| {
                let (to, room) = (out.buffer(), out.length());
                called!(of, Any, C_SignMessageNext(session, ptr::null_mut(), 0, from, count, to, room))
            }),
            19 => called!(self, Any, C_MessageSignFinal(session)),
            20 => called!(self, Any, C_MessageVerifyInit(session, how, key)),
            21 => match choice.below(3) {
                0 => {
                    called!(self, Any, C_VerifyMessage(session, ptr::null_mut(), 0, from, count, from, count))
                }
                1 => called!(self, Any, C_VerifyMessageBegin(session, ptr::null_mut(), 0)),
                _ => called!(
                    self,
                    Any,
                    C_VerifyMessageNext(session, ptr::null_mut(), 0, from, count, from, count)
                ),
            },
            _ => called!(self, Any, C_MessageVerifyFinal(session)),
        }
    }
}
