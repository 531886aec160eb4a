//! Messages of PKCS#11 3.0 with GCM: one after the other under one key, each with a nonce of its own, in one
//! part or in several.

use std::sync::Arc;

use cryptoki_sys::*;
use polyclave_client::Client;
use zeroize::Zeroizing;

use crate::attributes::Object;
use crate::configuration::GcmNonce;
use crate::gathered::Gathered;
use crate::mechanism::Mechanism;
use crate::rv::{Doing, NOT_BEGUN, Result, Rv, because};
use crate::session::encryption::{Direction, MAX_GATHERED, usable};
use crate::session::gcm::{Gcm, NONCE, Nonce, begin, begun_message, tag_bytes};
use crate::session::{Output, Session, known_length};
use crate::token::Token;

/// Messages of GCM, each with a nonce of its own.
pub(crate) struct Messages {
    token: Arc<Token>,
    client: Arc<Client>,
    key: Arc<Object>,
    direction: Direction,
    /// The one that comes in parts.
    parts: Option<Parts>,
}

/// A message that comes in parts. It is gathered: nothing is given before the tag was compared.
struct Parts {
    nonce: Nonce,
    additional: Vec<u8>,
    tag_bytes: usize,
    gathered: Gathered,
}

/// The parameter of one message.
pub(crate) struct MessageParameter {
    pub(crate) iv: Vec<u8>,
    pub(crate) fixed_bits: u64,
    pub(crate) generator: CK_GENERATOR_FUNCTION,
    /// To decrypt; empty where it comes later.
    pub(crate) tag: Vec<u8>,
    pub(crate) tag_bits: u64,
}

/// An encrypted message.
struct Sealed {
    nonce: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Vec<u8>,
}

/// What encrypting a message gives besides the ciphertext.
pub(crate) type NonceAndTag = (Vec<u8>, Vec<u8>);

impl Messages {
    pub(crate) fn begin(
        session: &Session,
        mechanism: &Mechanism,
        key: CK_OBJECT_HANDLE,
        direction: Direction,
    ) -> Result<Messages> {
        let (flag, usage) = match direction {
            Direction::Encrypt => (CKF_MESSAGE_ENCRYPT, CKA_ENCRYPT),
            Direction::Decrypt => (CKF_MESSAGE_DECRYPT, CKA_DECRYPT),
        };
        let key = usable(session, mechanism, key, flag, usage)?;
        let (token, client) = (session.token.clone(), session.token.client()?);
        Ok(Messages { token, client, key, direction, parts: None })
    }

    /// Refuses a part of a message if none has begun.
    pub(crate) fn refuse_none_under_way(&self) -> Result<()> {
        if self.parts.is_some() { Ok(()) } else { Err(NOT_BEGUN) }
    }

    /// Ends the message that comes in parts.
    pub(crate) fn end_parts(&mut self) {
        self.parts = None;
    }

    /// Refuses another message while one comes in parts.
    pub(crate) fn refuse_under_way(&self) -> Result<()> {
        if self.parts.is_none() { Ok(()) } else { Err(Rv(CKR_OPERATION_ACTIVE)) }
    }

    /// One message in one part. To encrypt, the nonce that was used and the tag are given, too.
    pub(crate) fn whole(
        &self,
        parameter: &MessageParameter,
        additional: &[u8],
        data: &[u8],
    ) -> Result<(Zeroizing<Vec<u8>>, Option<NonceAndTag>)> {
        match self.direction {
            Direction::Encrypt => {
                let Sealed { nonce, ciphertext, tag } = self.encrypt(parameter, additional, data)?;
                Ok((ciphertext.into(), Some((nonce, tag))))
            }
            Direction::Decrypt => Ok((self.decrypt(parameter, additional, data)?, None)),
        }
    }

    fn encrypt(&self, parameter: &MessageParameter, additional: &[u8], data: &[u8]) -> Result<Sealed> {
        let tag_bytes = tag_bytes(parameter.tag_bits)?;
        if data.len() > MAX_GATHERED {
            return Err(Rv(CKR_DATA_LEN_RANGE));
        }
        let nonce = self.given_nonce(parameter)?;
        let gcm = self.gcm(additional, tag_bytes);
        Ok(cut(gcm.encrypt(nonce, data)?, NONCE, data.len()))
    }

    fn decrypt(
        &self,
        parameter: &MessageParameter,
        additional: &[u8],
        data: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let tag_bytes = tag_bytes(parameter.tag_bits)?;
        if parameter.iv.len() != NONCE || parameter.tag.len() != tag_bytes {
            return Err(Rv(CKR_MECHANISM_PARAM_INVALID));
        }
        if data.len() > MAX_GATHERED {
            return Err(Rv(CKR_ENCRYPTED_DATA_LEN_RANGE));
        }
        let sealed = [data, &parameter.tag].concat();
        self.gcm(additional, tag_bytes).decrypt(&parameter.iv, &sealed, Doing::Message)
    }

    /// Begins a message that comes in parts. Returns the nonce, if the nodes drew it.
    pub(crate) fn begin_parts(
        &mut self,
        parameter: &MessageParameter,
        additional: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        self.refuse_under_way()?;
        let tag_bytes = tag_bytes(parameter.tag_bits)?;
        let nonce = match self.direction {
            Direction::Decrypt if parameter.iv.len() == NONCE => Nonce::Given(parameter.iv.clone()),
            Direction::Decrypt => return Err(Rv(CKR_MECHANISM_PARAM_INVALID)),
            Direction::Encrypt => match self.given_nonce(parameter)? {
                Some(nonce) => Nonce::Given(nonce.to_vec()),
                None => begin(&self.token, &self.client, &self.key.info, (additional, tag_bytes))?,
            },
        };
        let drawn = nonce.drawn().map(<[u8]>::to_vec);
        let (additional, gathered) = (additional.to_vec(), Gathered::default());
        self.parts = Some(Parts { nonce, additional, tag_bytes, gathered });
        Ok(drawn)
    }

    /// Takes a part. The last gives the whole message, and of an encryption the tag.
    pub(crate) fn part(
        &mut self,
        parameter: &MessageParameter,
        data: &[u8],
        (is_last, room): (bool, Option<usize>),
    ) -> Result<(Output, Option<Vec<u8>>)> {
        let parts = self.parts.as_ref().ok_or(NOT_BEGUN)?;
        if is_last && parameter.tag_bits != 8 * parts.tag_bytes as u64 {
            return Err(because(
                CKR_MECHANISM_PARAM_INVALID,
                "the message began with a tag of another length",
            ));
        }
        let total = parts.gathered.len().saturating_add(data.len());
        if total <= MAX_GATHERED
            && let Some(output) = known_length(if is_last { total } else { 0 }, room)
        {
            return Ok((output, None));
        }
        let mut parts = self.parts.take().ok_or(NOT_BEGUN)?;
        if total > MAX_GATHERED {
            return Err(Rv(match self.direction {
                Direction::Encrypt => CKR_DATA_LEN_RANGE,
                Direction::Decrypt => CKR_ENCRYPTED_DATA_LEN_RANGE,
            }));
        }
        parts.gathered.extend(data);
        if !is_last {
            self.parts = Some(parts);
            return Ok((Output::Bytes(Zeroizing::default()), None));
        }
        let gcm = self.gcm(&parts.additional, parts.tag_bytes);
        let (nonce, gathered) = (&mut parts.nonce, &parts.gathered);
        match (nonce, self.direction) {
            (Nonce::Given(nonce), Direction::Decrypt) => {
                let sealed = [&gathered[..], &parameter.tag].concat();
                Ok((Output::Bytes(gcm.decrypt(nonce, &sealed, Doing::Message)?), None))
            }
            (Nonce::Given(nonce), Direction::Encrypt) => {
                let sealed = cut(gcm.encrypt(Some(&nonce[..]), gathered)?, NONCE, gathered.len());
                Ok((Output::Bytes(sealed.ciphertext.into()), Some(sealed.tag)))
            }
            (Nonce::Begun(begun), Direction::Encrypt) => {
                let sealed = cut(begun_message(begun, gathered)?, 0, gathered.len());
                Ok((Output::Bytes(sealed.ciphertext.into()), Some(sealed.tag)))
            }
            (Nonce::Begun(_) | Nonce::Appended, _) => Err(NOT_BEGUN),
        }
    }

    /// The nonce that the program gives; `None` if the nodes draw it.
    fn given_nonce<'p>(&self, parameter: &'p MessageParameter) -> Result<Option<&'p [u8]>> {
        if parameter.iv.len() != NONCE {
            return Err(Rv(CKR_MECHANISM_PARAM_INVALID));
        }
        match parameter.generator {
            CKG_NO_GENERATE => {
                if self.key.takes_nonces() && self.token.settings.gcm_nonce == GcmNonce::Caller {
                    return Ok(Some(&parameter.iv));
                }
                Err(because(CKR_MECHANISM_PARAM_INVALID, "the nodes draw the nonces of this key"))
            }
            CKG_GENERATE | CKG_GENERATE_COUNTER | CKG_GENERATE_RANDOM if parameter.fixed_bits == 0 => {
                Ok(None)
            }
            _ => Err(because(CKR_MECHANISM_PARAM_INVALID, "no part of a nonce of the nodes is fixed")),
        }
    }

    fn gcm<'g>(&'g self, additional: &'g [u8], tag_bytes: usize) -> Gcm<'g> {
        Gcm { token: &self.token, client: &self.client, key: &self.key.info, additional, tag_bytes }
    }
}

/// Nonce, ciphertext and tag, which follow each other.
fn cut(mut all: Vec<u8>, nonce: usize, message: usize) -> Sealed {
    let mut ciphertext = all.split_off(nonce);
    let tag = ciphertext.split_off(message);
    Sealed { nonce: all, ciphertext, tag }
}
