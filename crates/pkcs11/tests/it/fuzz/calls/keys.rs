//! Keys that are made, copied, wrapped, unwrapped and derived.

use cryptoki_sys::*;

use super::{Called, Sequence};
use crate::common::*;
use crate::fuzz::Kind;
use crate::fuzz::arguments::{Choice, Memory, data, mechanism, template, ulong, yes};

const GENERATORS: [CK_MECHANISM_TYPE; 3] = [CKM_AES_KEY_GEN, CKM_DES2_KEY_GEN, CKM_DES3_KEY_GEN];
const WRAPPERS: [CK_MECHANISM_TYPE; 2] = [CKM_AES_KEY_WRAP, CKM_AES_KEY_WRAP_KWP];
const DERIVERS: [CK_MECHANISM_TYPE; 5] = [
    CKM_AES_ECB_ENCRYPT_DATA,
    CKM_AES_CBC_ENCRYPT_DATA,
    CKM_SP800_108_COUNTER_KDF,
    CKM_DES3_ECB_ENCRYPT_DATA,
    CKM_DES3_CBC_ENCRYPT_DATA,
];

impl Sequence<'_> {
    pub(super) fn of_keys(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
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
}
