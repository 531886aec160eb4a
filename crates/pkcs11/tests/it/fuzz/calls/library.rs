//! The library, slots and tokens, and what begins and ends it.

use std::ptr;

use cryptoki_sys::*;

use super::{Called, Sequence};
use crate::common::*;
use crate::fuzz::Kind;
use crate::fuzz::arguments::{Choice, Memory};

impl Sequence<'_> {
    pub(super) fn of_library(&mut self, choice: &mut Choice) -> Called {
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
}
