//! Keys that are made of other keys: wrapped, unwrapped and derived.

use std::sync::Arc;

use cryptoki_sys::*;
use polyclave_api::{Derivation, Wrapping};

use crate::attributes::Object;
use crate::mechanism::{Family, KdfPart, Mechanism, Parameter, block_of, entry_for, family_of, key_bytes};
use crate::objects::{make, make_as};
use crate::rv::{Doing, Result, Rv, because};
use crate::session::Session;
use crate::session::encryption::refuse_other_use;
use crate::template::{Making, Template};

/// A key, wrapped under another.
pub(crate) fn wrap(
    session: &Session,
    mechanism: &Mechanism,
    wrapping: CK_OBJECT_HANDLE,
    key: CK_OBJECT_HANDLE,
) -> Result<Wrap> {
    let how = wrapping_of(mechanism, CKF_WRAP)?;
    let kek = session.token.object(wrapping).ok_or(Rv(CKR_WRAPPING_KEY_HANDLE_INVALID))?;
    let key = session.key(key)?;
    if family_of(&kek.info.properties.cipher) != Some(Family::Aes) {
        return Err(Rv(CKR_WRAPPING_KEY_TYPE_INCONSISTENT));
    }
    refuse_other_use(&kek, CKA_WRAP)?;
    if !key.info.properties.wrappable {
        return Err(because(
            CKR_KEY_UNEXTRACTABLE,
            "the key was made to stay at the nodes (CKA_EXTRACTABLE)",
        ));
    }
    Ok(Wrap { kek, key, how })
}

/// What is wrapped under what.
pub(crate) struct Wrap {
    kek: Arc<Object>,
    key: Arc<Object>,
    how: Wrapping,
}

impl Wrap {
    /// Bytes of the wrapped key.
    pub(crate) fn bytes(&self) -> usize {
        key_bytes(&self.key.info.properties.cipher).next_multiple_of(8) + 8
    }

    pub(crate) fn run(&self, session: &Session) -> Result<Vec<u8>> {
        let client = session.token.client()?;
        let (kek, key) = (&self.kek.info, &self.key.info);
        session.token.ask(&client, Doing::Using, || client.wrap(kek, key, self.how))
    }
}

/// Unwraps a key into a key of the nodes.
pub(crate) fn unwrap(
    session: &Session,
    mechanism: &Mechanism,
    unwrapping: CK_OBJECT_HANDLE,
    wrapped: &[u8],
    template: &Template,
) -> Result<CK_OBJECT_HANDLE> {
    let how = wrapping_of(mechanism, CKF_UNWRAP)?;
    session.token.client()?;
    let kek = session.token.object(unwrapping).ok_or(Rv(CKR_UNWRAPPING_KEY_HANDLE_INVALID))?;
    if family_of(&kek.info.properties.cipher) != Some(Family::Aes) {
        return Err(Rv(CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT));
    }
    refuse_other_use(&kek, CKA_UNWRAP)?;
    if wrapped.len() < 16 || wrapped.len() > 256 || !wrapped.len().is_multiple_of(8) {
        return Err(Rv(CKR_WRAPPED_KEY_LEN_RANGE));
    }
    template.refuse_value()?;
    // Without a length the wrapped key's own is taken: all keys here are whole halves of blocks.
    let fixed = match (template.number(CKA_KEY_TYPE)?, template.number(CKA_VALUE_LEN)?) {
        (Some(CKK_AES) | None, None) => match wrapped.len() - 8 {
            16 => Some(("aes-128", CKK_AES)),
            24 => Some(("aes-192", CKK_AES)),
            32 => Some(("aes-256", CKK_AES)),
            _ => return Err(Rv(CKR_WRAPPED_KEY_LEN_RANGE)),
        },
        _ => None,
    };
    let described = template.describe(&session.token.settings, Making::Unwrapped, fixed)?;
    if key_bytes(&described.new.cipher) + 8 != wrapped.len() {
        return Err(Rv(CKR_WRAPPED_KEY_LEN_RANGE));
    }
    if !described.is_session {
        session.refuse_read_only()?;
    }
    make_as(session, described, Doing::Unwrapping, |client, new| client.unwrap(&kek.info, wrapped, how, new))
}

fn wrapping_of(mechanism: &Mechanism, flag: CK_FLAGS) -> Result<Wrapping> {
    entry_for(mechanism.kind, flag)?;
    match mechanism.kind {
        CKM_AES_KEY_WRAP => Ok(Wrapping::Kw),
        CKM_AES_KEY_WRAP_KWP => Ok(Wrapping::Kwp),
        _ => Err(Rv(CKR_MECHANISM_INVALID)),
    }
}

/// Derives a key from another.
pub(crate) fn derive(
    session: &Session,
    mechanism: &Mechanism,
    base: CK_OBJECT_HANDLE,
    template: &Template,
) -> Result<CK_OBJECT_HANDLE> {
    let entry = entry_for(mechanism.kind, CKF_DERIVE)?;
    let base = session.key(base)?;
    if family_of(&base.info.properties.cipher) != Some(entry.family) {
        return Err(Rv(CKR_KEY_TYPE_INCONSISTENT));
    }
    refuse_other_use(&base, CKA_DERIVE)?;
    template.refuse_value()?;
    let described = template.describe(&session.token.settings, Making::Derived, None)?;
    let bits = 8 * key_bytes(&described.new.cipher) as u64;
    let how = match &mechanism.parameter {
        Parameter::Data(data) => Derivation::EcbData { data: data.clone() },
        Parameter::Chained { initial, data } => {
            Derivation::CbcData { iv: initial.clone(), data: data.clone() }
        }
        Parameter::CounterKdf { before, counter_bits, after } => Derivation::Counter {
            before: joined(before, bits)?,
            counter_bits: *counter_bits,
            after: joined(after, bits)?,
        },
        _ => return Err(Rv(CKR_MECHANISM_PARAM_INVALID)),
    };
    if let Derivation::EcbData { data } | Derivation::CbcData { data, .. } = &how
        && ((data.len() as u64) * 8 < bits
            || !data.len().is_multiple_of(block_of(&base.info.properties.cipher)))
    {
        return Err(because(
            CKR_MECHANISM_PARAM_INVALID,
            "the data are whole blocks, at least as long as the derived key",
        ));
    }
    make(session, described, |client, new| client.derive(&base.info, new, how.clone()))
}

fn joined(parts: &[KdfPart], bits: u64) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for part in parts {
        match *part {
            KdfPart::Bytes(ref bytes) => all.extend_from_slice(bytes),
            KdfPart::Length { bytes, little_endian, of_blocks } => {
                // The PRF is CMAC of AES.
                let length = if of_blocks { bits.next_multiple_of(128) } else { bits };
                if bytes < 8 && length >> (8 * bytes) != 0 {
                    return Err(because(
                        CKR_MECHANISM_PARAM_INVALID,
                        format!("the length of {length} bits does not fit into {bytes} bytes"),
                    ));
                }
                match little_endian {
                    false => all.extend_from_slice(&length.to_be_bytes()[8 - bytes..]),
                    true => all.extend_from_slice(&length.to_le_bytes()[..bytes]),
                }
            }
        }
    }
    Ok(all)
}
