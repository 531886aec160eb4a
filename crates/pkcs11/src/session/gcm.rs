//! Messages of GCM, and the choice of their nonces.
//!
//! | `gcm_nonce` | the program gives an IV of 12 bytes to encrypt | it gives none |
//! |---|---|---|
//! | `caller` | it is taken, zeros too; refused for a key that takes none | refused; for a key that takes none: the nodes' nonce follows the tag |
//! | `nodes` | zeros are overwritten by the nodes' nonce; others are refused | the nodes' nonce follows the tag |
//! | `overwrite` | whatever it is, it is overwritten by the nodes' nonce | the nodes' nonce follows the tag |
//!
//! A nonce is written when the operation begins, and never later: a program may read it from then on. So the
//! conversation with the nodes begins there, too, and a program that does not give the message while the
//! nodes wait gets an error. They wait 20 s, and 5 s if a client with fewer requests under way waits, because
//! each message that has begun holds one of the channels of the nodes. The message is not asked for again:
//! that would take another nonce.

use std::sync::Arc;

use cryptoki_sys::*;
use polyclave_api::{KeyInfo, MAX_NONCE};
use polyclave_client::{Aead, Client, Pending};
use zeroize::Zeroizing;

use crate::attributes::Object;
use crate::configuration::GcmNonce;
use crate::rv::{Doing, NOT_BEGUN, Result, because, of_client};
use crate::session::encryption::Direction;
use crate::token::Token;

/// Bytes of a nonce of the nodes.
pub(crate) const NONCE: usize = 12;

/// Where the nonce of a message comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// From the program.
    Given(Vec<u8>),
    /// From the nodes, and it follows the tag.
    Appended,
    /// From the nodes, before they see the message.
    Drawn,
}

/// The nonce of a message under way.
pub(crate) enum Nonce {
    Given(Vec<u8>),
    Appended,
    /// The nodes have drawn it and wait for the message, which comes once.
    Begun(Option<Box<Pending>>),
}

/// Decides whose nonce a message has.
pub(crate) fn choose(token: &Token, key: &Object, iv: &[u8], direction: Direction) -> Result<Chosen> {
    let setting = token.settings.gcm_nonce;
    let by_nodes = setting != GcmNonce::Caller || !key.takes_nonces();
    let is_overwritten = match setting {
        GcmNonce::Overwrite => true,
        GcmNonce::Nodes => iv.iter().all(|byte| *byte == 0),
        GcmNonce::Caller => false,
    };
    match iv.len() {
        0 if by_nodes => Ok(Chosen::Appended),
        1..=MAX_NONCE if direction == Direction::Decrypt || !by_nodes => Ok(Chosen::Given(iv.to_vec())),
        NONCE if is_overwritten => Ok(Chosen::Drawn),
        NONCE => Err(because(
            CKR_MECHANISM_PARAM_INVALID,
            "the nodes draw the nonces of this key: give no IV, and it follows the tag; or, with gcm_nonce = \"nodes\", 12 zero \
             bytes, which are overwritten",
        )),
        other => Err(because(CKR_MECHANISM_PARAM_INVALID, format!("GCM takes no IV of {other} bytes here"))),
    }
}

impl Nonce {
    /// Begins a message whose nonce the nodes draw first. `message`: the additional data, and the bytes of
    /// the tag.
    pub(crate) fn of(
        chosen: Chosen,
        (token, client): (&Token, &Arc<Client>),
        key: &KeyInfo,
        message: (&[u8], usize),
    ) -> Result<Nonce> {
        match chosen {
            Chosen::Given(nonce) => Ok(Nonce::Given(nonce)),
            Chosen::Appended => Ok(Nonce::Appended),
            Chosen::Drawn => begin(token, client, key, message),
        }
    }

    /// The nonce, if the nodes have drawn it and wait.
    pub(crate) fn drawn(&self) -> Option<&[u8]> {
        match self {
            Nonce::Begun(Some(begun)) => Some(begun.nonce()),
            Nonce::Given(_) | Nonce::Appended | Nonce::Begun(None) => None,
        }
    }
}

/// Has the nodes draw a nonce and wait.
pub(crate) fn begin(
    token: &Token,
    client: &Arc<Client>,
    key: &KeyInfo,
    (additional, tag_bytes): (&[u8], usize),
) -> Result<Nonce> {
    let work = || client.key_with_info(key).gcm().aad(additional).tag_bytes(tag_bytes).begin();
    token.ask(client, Doing::Using, work).map(|begun| Nonce::Begun(Some(Box::new(begun))))
}

/// Gives the nodes the message for which they wait: ciphertext and tag.
pub(crate) fn begun_message(begun: &mut Option<Box<Pending>>, message: &[u8]) -> Result<Vec<u8>> {
    let begun = begun.take().ok_or(NOT_BEGUN)?;
    begun.encrypt(message).map_err(|e| of_client(&e, Doing::Using))
}

/// The bytes of a tag.
pub(crate) fn tag_bytes(bits: u64) -> Result<usize> {
    match bits {
        96 | 104 | 112 | 120 | 128 => Ok(bits as usize / 8),
        _ => Err(because(CKR_MECHANISM_PARAM_INVALID, "tags of GCM have 96 to 128 bits, in whole bytes")),
    }
}

/// One message with GCM.
pub(crate) struct Gcm<'g> {
    pub(crate) token: &'g Token,
    pub(crate) client: &'g Client,
    pub(crate) key: &'g KeyInfo,
    pub(crate) additional: &'g [u8],
    pub(crate) tag_bytes: usize,
}

impl Gcm<'_> {
    /// Nonce, ciphertext, tag.
    pub(crate) fn encrypt(&self, nonce: Option<&[u8]>, data: &[u8]) -> Result<Vec<u8>> {
        self.ask(Doing::Using, |gcm| gcm.nonce(nonce).encrypt(data))
    }

    pub(crate) fn decrypt(&self, nonce: &[u8], sealed: &[u8], doing: Doing) -> Result<Zeroizing<Vec<u8>>> {
        let message = [nonce, sealed].concat();
        self.ask(doing, |gcm| gcm.nonce_bytes(nonce.len()).decrypt(&message))
    }

    fn ask<T>(&self, doing: Doing, work: impl Fn(Aead<'_>) -> polyclave_client::Result<T>) -> Result<T> {
        let key = self.client.key_with_info(self.key);
        let gcm = key.gcm().aad(self.additional).tag_bytes(self.tag_bytes);
        self.token.ask(self.client, doing, || work(gcm.clone()))
    }
}
