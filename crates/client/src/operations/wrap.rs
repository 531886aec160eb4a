//! Wraps keys under others, and unwraps them.

use polyclave_api::key_block::{Version, algorithm};
use polyclave_api::{BlockHeader, KeyInfo, KeyVersion, NewKey, Operation, Step, Wrapping, operations};
use polyclave_cipher::{key_block, key_wrap};

use crate::client::Client;
use crate::operations::encrypt::cipher_of;
use crate::session::first::First;
use crate::{Error, Result};

impl Client {
    /// A key wrapped under another, if it may be wrapped. The nodes see neither of them, nor the wrapped key.
    pub fn wrap(
        &self,
        wrapping: impl Into<KeyVersion>,
        key: impl Into<KeyVersion>,
        how: Wrapping,
    ) -> Result<Vec<u8>> {
        let (wrapping, key) = (self.resolved(wrapping.into())?, self.resolved(key.into())?);
        let cipher = cipher_of(&self.info(&key.name)?)?;
        let operation = Operation::Wrap(operations::Wrap { wrapping, key, how });
        let (mut conversation, _) = self.begin(&operation, First::Step(&Step::Wrapped))?;
        let wrapped = conversation.bytes(key_wrap::wrapped_bytes(cipher.key_bytes))?;
        conversation.finish()?;
        Ok(wrapped.to_vec())
    }

    /// A key wrapped in a key block of TR-31 under another key, if it may be wrapped. The nodes see neither
    /// of them, nor what is encrypted.
    pub fn wrap_block(
        &self,
        wrapping: impl Into<KeyVersion>,
        key: impl Into<KeyVersion>,
        header: BlockHeader,
    ) -> Result<Vec<u8>> {
        let (wrapping, key) = (self.resolved(wrapping.into())?, self.resolved(key.into())?);
        let (kek, cipher) = (cipher_of(&self.info(&wrapping.name)?)?, cipher_of(&self.info(&key.name)?)?);
        let fits = Version::under(&kek.name).zip(algorithm(&cipher.name));
        let (version, algorithm) = fits.ok_or_else(|| {
            Error::Misuse(format!("no key block holds a key of {} under one of {}", cipher.name, kek.name))
        })?;
        let encrypted = key_block::plaintext_bytes(&cipher, kek.block_bytes);
        let head = header.text(version, algorithm, encrypted);
        let operation = Operation::WrapBlock(operations::WrapBlock { wrapping, key, header });
        let (mut conversation, _) = self.begin(&operation, First::Step(&Step::Wrapped))?;
        let message = conversation.bytes(version.block_bytes() + encrypted)?;
        conversation.finish()?;
        let (mac, encrypted) = message.split_at(version.block_bytes());
        let digits = [encrypted, mac].concat().iter().map(|byte| format!("{byte:02X}")).collect::<String>();
        Ok([head, digits.into_bytes()].concat())
    }

    /// Unwraps a key block of TR-31 into a key of the nodes. All nodes take part. The key is never assembled.
    /// A block that does not authenticate is [`Error::Unauthentic`].
    pub fn unwrap_block(
        &self,
        unwrapping: impl Into<KeyVersion>,
        block: &[u8],
        new: NewKey,
    ) -> Result<KeyInfo> {
        let unwrapping = self.resolved(unwrapping.into())?;
        let operation =
            Operation::UnwrapBlock(operations::UnwrapBlock { unwrapping, block: block.to_vec(), new });
        self.ask_all_for_key(&operation)
    }

    /// Unwraps a key into a key of the nodes. All nodes take part. It is never assembled. A wrapped key that
    /// does not authenticate is [`Error::Unauthentic`], whatever is wrong with it.
    pub fn unwrap(
        &self,
        unwrapping: impl Into<KeyVersion>,
        wrapped: &[u8],
        how: Wrapping,
        new: NewKey,
    ) -> Result<KeyInfo> {
        let unwrapping = self.resolved(unwrapping.into())?;
        let operation =
            Operation::Unwrap(operations::Unwrap { unwrapping, wrapped: wrapped.to_vec(), how, new });
        self.ask_all_for_key(&operation)
    }
}
