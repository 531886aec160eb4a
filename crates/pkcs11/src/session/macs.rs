//! CMAC and HMAC: the message is gathered, the nodes compute the code, and the module compares it.

use std::sync::Arc;

use cryptoki_sys::*;
use polyclave_api::MAX_CHAINED;
use polyclave_cipher::hmac::LEAST_CODE;
use polyclave_client::Client;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use crate::attributes::Object;
use crate::gathered::Gathered;
use crate::mechanism::{Family, Mechanism, Parameter, block_of, entry};
use crate::rv::{Doing, Result, Rv, because};
use crate::session::Session;
use crate::session::encryption::{MAX_GATHERED, usable};
use crate::token::Token;

/// A code under way.
pub(crate) struct Mac {
    token: Arc<Token>,
    client: Arc<Client>,
    key: Arc<Object>,
    /// Bytes of the code.
    pub(crate) bytes: usize,
    is_hmac: bool,
    gathered: Gathered,
    pub(crate) is_multipart: bool,
}

impl Mac {
    /// `flag` and `usage`: of signing, or of verifying.
    pub(crate) fn begin(
        session: &Session,
        mechanism: &Mechanism,
        key: CK_OBJECT_HANDLE,
        (flag, usage): (CK_FLAGS, CK_ATTRIBUTE_TYPE),
    ) -> Result<Mac> {
        let key = usable(session, mechanism, key, flag, usage)?;
        let block = block_of(&key.info.properties.cipher);
        let is_hmac = matches!(entry(mechanism.kind)?.family, Family::Hmac(_));
        // Nodes give so many bytes at least. Everybody who may list keys sees the first bytes of one code:
        // the check value.
        let least = if is_hmac { LEAST_CODE } else { 1 };
        let bytes = match mechanism.parameter {
            Parameter::Length(bytes) if (least..=block).contains(&bytes) => bytes,
            Parameter::None => block,
            _ => {
                let why = format!("a code has {least} to {block} bytes");
                return Err(because(CKR_MECHANISM_PARAM_INVALID, why));
            }
        };
        let (token, client) = (session.token.clone(), session.token.client()?);
        Ok(Mac { token, client, key, bytes, is_hmac, gathered: Gathered::default(), is_multipart: false })
    }

    pub(crate) fn update(&mut self, data: &[u8]) -> Result<()> {
        self.is_multipart = true;
        let most = if self.is_hmac { MAX_CHAINED } else { MAX_GATHERED };
        if self.gathered.len() + data.len() > most {
            return Err(Rv(CKR_DATA_LEN_RANGE));
        }
        self.gathered.extend(data);
        Ok(())
    }

    /// The code of what was gathered and of more data.
    pub(crate) fn finish(mut self, data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        self.update(data)?;
        let work = || {
            let key = self.client.key_with_info(&self.key.info);
            match self.is_hmac {
                false => key.cmac(&self.gathered),
                true => Ok(key.hmac(&[&self.gathered], self.bytes)?.pop().unwrap_or_default()),
            }
        };
        let mut code = self.token.ask(&self.client, Doing::Using, work)?;
        code.truncate(self.bytes);
        Ok(code)
    }

    /// Whether that is the code.
    pub(crate) fn verify(self, data: &[u8], code: &[u8]) -> Result<()> {
        if code.len() != self.bytes {
            return Err(Rv(CKR_SIGNATURE_LEN_RANGE));
        }
        // The return value says whether all of it is right, and nothing else about the right code.
        match ct_eq(&self.finish(data)?, code) {
            true => Ok(()),
            false => Err(Rv(CKR_SIGNATURE_INVALID)),
        }
    }
}
