//! A key as a client uses it, by its name or one version of it, and the modes in which it encrypts.

pub(crate) mod aead;
pub(crate) mod blocks;
pub(crate) mod counter;
mod gcm;
pub(crate) mod padding;
pub(crate) mod pending;
pub(crate) mod pieces;
mod whole;

use std::sync::OnceLock;

use polyclave_api::{KeyInfo, KeyVersion, Mode, Operation, Use, operations};
use polyclave_cipher::{Cipher, keyed};

use crate::client::Client;
use crate::session::conversation::{Accepted, Conversation};
use crate::session::first::First;
use crate::{Error, Result};
use aead::Aead;
use blocks::{Blocks, Chain};
use counter::Counter;

/// A key with which a client computes. Making one asks the nodes nothing, except which id a version has that
/// is named by its number. The nodes are asked for the key's properties once, and only if a mode needs them.
pub struct KeyHandle<'c> {
    pub(crate) client: &'c Client,
    pub(crate) key: KeyVersion,
    info: OnceLock<KeyInfo>,
}

impl Client {
    /// The current version of a key, whichever that is when it is used; or a version by its number, as in
    /// `invoices@2`.
    pub fn key(&self, name: &str) -> Result<KeyHandle<'_>> {
        match name.split_once('@') {
            None => Ok(self.key_with_id(name.into())),
            Some((name, version)) => Ok(self.key_with_info(&self.version_numbered(name, version)?)),
        }
    }

    /// A version of a key whose properties the caller has: nothing is asked about it.
    pub fn key_with_info(&self, info: &KeyInfo) -> KeyHandle<'_> {
        KeyHandle { client: self, key: info.into(), info: info.clone().into() }
    }

    /// A version of a key whose id the caller has.
    pub fn key_with_id(&self, key: KeyVersion) -> KeyHandle<'_> {
        KeyHandle { client: self, key, info: OnceLock::new() }
    }
}

impl<'c> KeyHandle<'c> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.key.name
    }

    /// The properties of its version, or of the current one if none was named.
    pub fn info(&self) -> Result<&KeyInfo> {
        if let Some(info) = self.info.get() {
            return Ok(info);
        }
        let info = match self.key.id {
            Some(id) => self.client.version_with_id(&self.key.name, id)?,
            None => self.client.info(&self.key.name)?,
        };
        Ok(self.info.get_or_init(|| info))
    }

    /// Messages of GCM, for a key of this mode.
    pub fn gcm(&self) -> Aead<'_> {
        Aead::new(self, Mode::Gcm)
    }

    /// Short messages of CCM.
    pub fn ccm(&self) -> Aead<'_> {
        Aead::new(self, Mode::Ccm)
    }

    /// Short messages of SIV (RFC 5297), with any number of strings that are authenticated with them.
    pub fn siv(&self) -> Aead<'_> {
        Aead::new(self, Mode::Siv)
    }

    /// Messages of GCM-SIV (RFC 8452), of at most 1,024 bytes.
    pub fn gcm_siv(&self) -> Aead<'_> {
        Aead::new(self, Mode::GcmSiv)
    }

    /// Messages of XAES-256-GCM (C2SP): nonces of 24 bytes, so one key is good for 2^48 blocks.
    pub fn xaes(&self) -> Aead<'_> {
        Aead::new(self, Mode::Xaes)
    }

    /// Messages of any mode that has tags, in its plain format.
    pub fn aead(&self, mode: Mode) -> Result<Aead<'_>> {
        match mode.tag_bytes() {
            [] => Err(Error::Misuse(format!("messages of {mode} have no tags"))),
            _ => Ok(Aead::new(self, mode)),
        }
    }

    /// Counter mode. It authenticates nothing.
    pub fn ctr(&self) -> Counter<'_> {
        Counter { key: self, start: None }
    }

    /// CBC. It authenticates nothing. The nodes draw the initial block and encrypt one block after the other,
    /// which is slow.
    pub fn cbc(&self) -> Blocks<'_> {
        Blocks::new(self, Chain::Nodes)
    }

    /// CBC under a key for ECB, without padding: this client chains the blocks, from an [initial
    /// block](Blocks::initial) of the caller on.
    pub fn cbc_by_client(&self) -> Blocks<'_> {
        Blocks::new(self, Chain::Client)
    }

    /// Every block by itself.
    pub fn ecb(&self) -> Blocks<'_> {
        Blocks::new(self, Chain::None)
    }

    /// The key's cipher.
    pub(crate) fn cipher(&self) -> Result<Cipher> {
        cipher_of(self.info()?)
    }

    /// Begins a request for the use of the key.
    pub(crate) fn begin(&self, how: Use, first: First<'_>) -> Result<(Conversation<'c>, Accepted)> {
        let KeyVersion { name, id } = self.key.clone();
        self.client.begin(&Operation::Use(operations::UseKey { key: name, id, how }), first)
    }
}

/// The cipher of a key.
pub(crate) fn cipher_of(info: &KeyInfo) -> Result<Cipher> {
    let name = &info.properties.cipher;
    let unknown =
        || Error::Misuse(format!("the nodes know a cipher '{name}' that this program does not; update it"));
    keyed::find(name).ok_or_else(unknown)
}
