//! Two things at once, states of operations, and what needs asymmetric keys.

use std::ptr;

use super::data::CODES;
use super::{Called, Sequence};
use crate::common::*;
use crate::fuzz::Kind;
use crate::fuzz::arguments::{Choice, Memory, data, mechanism, template};
use crate::fuzz::memory::Place;

impl Sequence<'_> {
    /// Two things at once, states of operations, and what needs asymmetric keys.
    pub(super) fn of_rest(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
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
