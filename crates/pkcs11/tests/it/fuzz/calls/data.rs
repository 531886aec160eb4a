//! Encryption, codes and digests.

use cryptoki_sys::*;

use super::{Called, Sequence};
use crate::common::*;
use crate::fuzz::Kind;
use crate::fuzz::arguments::{Choice, Memory, data, mechanism};

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
pub(super) const CODES: [CK_MECHANISM_TYPE; 4] =
    [CKM_AES_CMAC, CKM_AES_CMAC_GENERAL, CKM_DES3_CMAC, CKM_DES3_CMAC_GENERAL];
const DIGESTS: [CK_MECHANISM_TYPE; 3] = [CKM_SHA256, CKM_SHA384, CKM_SHA512];

impl Sequence<'_> {
    pub(super) fn of_cipher(&mut self, choice: &mut Choice, memory: &mut Memory, encrypts: bool) -> Called {
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

    pub(super) fn of_code(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
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

    pub(super) fn of_digest(&mut self, choice: &mut Choice, memory: &mut Memory) -> Called {
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
}
