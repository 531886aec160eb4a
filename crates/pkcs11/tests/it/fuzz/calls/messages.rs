//! Messages of 3.0, whole and in parts.

use cryptoki_sys::*;

use super::{Called, Sequence};
use crate::common::*;
use crate::fuzz::Kind;
use crate::fuzz::arguments::{Choice, Memory, data, mechanism, message};
use crate::fuzz::memory::Place;

impl Sequence<'_> {
    pub(super) fn of_messages(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
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
}
