//! What objects there are, and what they say about themselves.

use std::ptr;

use cryptoki_sys::*;

use super::{Called, Sequence};
use crate::common::*;
use crate::fuzz::Kind;
use crate::fuzz::arguments::{ATTRIBUTES, Choice, Memory, template, ulong};
use crate::fuzz::memory::Place;

impl Sequence<'_> {
    pub(super) fn of_objects(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
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
                let message: *mut CK_ULONG = if gives[1] { &mut count } else { ptr::null_mut() };
                let called = called!(self, Object, C_FindObjects(session, to, most as CK_ULONG, message));
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
                type_: choice.of(&ATTRIBUTES),
                pValue: if *is_null { ptr::null_mut() } else { place.at() },
                ulValueLen: *room as CK_ULONG,
            })
            .collect();
        let at = if choice.rarely(24) { ptr::null_mut() } else { asked.as_mut_ptr() };
        // A count that no template has is refused before anything is read.
        let said = if choice.rarely(64) { CK_ULONG::MAX } else { count as CK_ULONG };
        let called = called!(self, Object, C_GetAttributeValue(session, object, at, said));
        for (attribute, (place, room, is_null)) in asked.iter().zip(&places) {
            let message = attribute.ulValueLen;
            let is_answered =
                [CKR_OK, CKR_ATTRIBUTE_SENSITIVE, CKR_ATTRIBUTE_TYPE_INVALID, CKR_BUFFER_TOO_SMALL]
                    .contains(&called.2);
            match message {
                _ if !is_answered => {
                    place.written(0);
                    assert_eq!(message, *room as CK_ULONG);
                }
                CK_UNAVAILABLE_INFORMATION => {
                    place.written(0);
                    assert_ne!(called.2, CKR_OK);
                }
                message if *is_null => assert!(message < 1 << 16),
                message => {
                    place.written(message as usize);
                }
            }
            assert!(
                attribute.type_ != CKA_VALUE || !is_answered || message == CK_UNAVAILABLE_INFORMATION,
                "a key was given away"
            );
        }
        called
    }
}
