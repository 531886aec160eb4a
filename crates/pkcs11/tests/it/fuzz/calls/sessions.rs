//! Sessions, logins and PINs, and random bytes.

use std::ptr;

use cryptoki_sys::*;

use super::{Called, Sequence};
use crate::common::*;
use crate::fuzz::Kind;
use crate::fuzz::arguments::{Choice, Memory, data};
use crate::fuzz::memory::Place;

impl Sequence<'_> {
    pub(super) fn of_session(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
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
}
