//! What an object says about itself: the table of the truth about keys of the nodes.

use cryptoki_sys::*;
use polyclave_api::{KeyInfo, Mode, Origin};
use polyclave_cipher::hmac::{Sha2, hash_of};

use crate::hmac;
use crate::mechanism::{Family, TABLE, family_of, key_bytes};
use crate::rv::{Result, Rv};
use crate::stored::Stored;
use crate::template::USES;

/// A version of a key, as an object of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) info: KeyInfo,
    pub(crate) stored: Stored,
    /// The session with which it ends.
    pub(crate) session: Option<CK_SESSION_HANDLE>,
}

impl Object {
    /// A key that the nodes list; `None` for one that PKCS#11 has no type for.
    pub(crate) fn of(info: KeyInfo, prefix: &str) -> Option<Object> {
        if info.component.is_some() || family_of(&info.properties.cipher).is_none() {
            return None;
        }
        let name = info.properties.name.strip_prefix(prefix)?;
        let stored = Stored::from_bytes(&info.properties.attributes).unwrap_or_else(|| {
            // A key of the command line: people know it by its label, or else by its name.
            let label = if info.properties.label.is_empty() { name } else { &info.properties.label };
            Stored { label: label.into(), id: name.into(), ..Stored::default() }
        });
        Some(Object { info, stored, session: None })
    }

    /// Whether it may be used so: `CKA_ENCRYPT` and others.
    pub(crate) fn is_for(&self, kind: CK_ATTRIBUTE_TYPE) -> bool {
        let usage = USES.iter().find(|(of, _)| *of == kind).map(|(_, usage)| *usage);
        usage.is_some_and(|usage| self.info.properties.usage.contains(&usage))
            && !self.stored.off.contains(&kind)
    }

    /// The mechanisms that it serves.
    pub(crate) fn mechanisms(&self) -> Vec<CK_MECHANISM_TYPE> {
        match &self.stored.mechanisms {
            Some(list) => list.clone(),
            None => TABLE.iter().filter(|entry| entry.serves(&self.info)).map(|entry| entry.kind).collect(),
        }
    }

    /// The value of an attribute.
    pub(crate) fn value(&self, kind: CK_ATTRIBUTE_TYPE) -> Result<Vec<u8>> {
        let flag = |is: bool| Ok(vec![CK_BBOOL::from(is)]);
        let number = |n: CK_ULONG| Ok(n.to_ne_bytes().to_vec());
        let properties = &self.info.properties;
        let is_generated = self.info.origin == Origin::Generated;
        let could_leave = properties.wrappable || self.stored.off.contains(&CKA_NEVER_EXTRACTABLE);
        let was_never_outside = is_generated && !could_leave;
        match kind {
            CKA_VALUE => Err(Rv(CKR_ATTRIBUTE_SENSITIVE)),
            CKA_CLASS => number(CKO_SECRET_KEY),
            CKA_KEY_TYPE => number(self.key_type()),
            CKA_VALUE_LEN => match family_of(&properties.cipher) {
                Some(Family::Aes) => number(key_bytes(&properties.cipher) as CK_ULONG),
                Some(Family::Hmac(hash)) => {
                    // A version that the nodes made has the notes of the imported one before it.
                    let noted = self.stored.of_hmac.filter(|_| !is_generated);
                    let noted = noted.map(|noted| CK_ULONG::from(noted.bytes));
                    number(noted.unwrap_or(hash.block_bytes() as CK_ULONG))
                }
                _ => Err(Rv(CKR_ATTRIBUTE_TYPE_INVALID)),
            },
            CKA_TOKEN => flag(!self.info.is_of_session()),
            // Nothing is asked of the nodes without a login.
            CKA_PRIVATE => flag(true),
            CKA_MODIFIABLE => flag(!self.stored.is_fixed),
            CKA_COPYABLE => flag(true),
            CKA_DESTROYABLE => flag(self.info.deletable),
            CKA_SENSITIVE => flag(true),
            CKA_ALWAYS_SENSITIVE | CKA_NEVER_EXTRACTABLE => flag(was_never_outside),
            CKA_EXTRACTABLE => flag(properties.wrappable),
            CKA_LOCAL => flag(is_generated),
            CKA_KEY_GEN_MECHANISM if !is_generated => number(CK_UNAVAILABLE_INFORMATION),
            CKA_KEY_GEN_MECHANISM => number(self.generation()),
            CKA_ENCRYPT | CKA_DECRYPT | CKA_SIGN | CKA_VERIFY | CKA_WRAP | CKA_UNWRAP | CKA_DERIVE => {
                flag(self.is_for(kind))
            }
            CKA_TRUSTED | CKA_WRAP_WITH_TRUSTED => flag(false),
            CKA_ALLOWED_MECHANISMS => {
                Ok(self.mechanisms().iter().flat_map(|kind| kind.to_ne_bytes()).collect())
            }
            CKA_LABEL => Ok(self.stored.label.clone()),
            CKA_ID => Ok(self.stored.id.clone()),
            CKA_START_DATE => Ok(self.stored.start_date.clone()),
            CKA_END_DATE => Ok(self.stored.end_date.clone()),
            CKA_UNIQUE_ID => Ok(hex::encode(self.info.id).into_bytes()),
            _ => Err(Rv(CKR_ATTRIBUTE_TYPE_INVALID)),
        }
    }

    fn key_type(&self) -> CK_KEY_TYPE {
        match (self.info.properties.cipher.as_str(), self.hash()) {
            ("3des-ede2", _) => CKK_DES2,
            ("3des-ede3", _) => CKK_DES3,
            (_, None) => CKK_AES,
            (_, Some(_)) if self.is_generic_secret() => CKK_GENERIC_SECRET,
            (_, Some(hash)) => hmac::key_type(hash),
        }
    }

    /// The mechanism that generates such a key.
    fn generation(&self) -> CK_MECHANISM_TYPE {
        match (self.info.properties.cipher.as_str(), self.hash()) {
            ("3des-ede2", _) => CKM_DES2_KEY_GEN,
            ("3des-ede3", _) => CKM_DES3_KEY_GEN,
            (_, None) => CKM_AES_KEY_GEN,
            (_, Some(_)) if self.is_generic_secret() => CKM_GENERIC_SECRET_KEY_GEN,
            (_, Some(hash)) => hmac::generation(hash),
        }
    }

    /// The hash of a key for HMAC.
    fn hash(&self) -> Option<Sha2> {
        hash_of(&self.info.properties.cipher)
    }

    fn is_generic_secret(&self) -> bool {
        self.stored.of_hmac.is_some_and(|noted| noted.is_generic)
    }

    /// Whether the nodes let a program choose the nonces of GCM under it.
    pub(crate) fn takes_nonces(&self) -> bool {
        self.info.properties.caller_nonces
    }

    /// Whether CBC encryption with a program's initial block is possible.
    pub(crate) fn takes_initial_blocks(&self) -> bool {
        let properties = &self.info.properties;
        let chains = properties.modes.contains(&Mode::Cbc) && properties.caller_nonces;
        chains || properties.modes.contains(&Mode::Ecb)
    }
}
