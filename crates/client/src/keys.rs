//! Generating, importing, deriving (keys and bytes), wrapping, unwrapping, showing and deleting keys.

use polyclave_api::key_block::{Version, algorithm};
use polyclave_api::{
    BlockHeader, CheckKind, Derivation, End, KeyCheck, KeyInfo, KeyVersion, MAX_DERIVED, NewKey, Operation,
    Parity, SealedImport, Step, Wrapping, operations,
};
use polyclave_cipher::{key_block, key_wrap};
use polyclave_field::Gf128;
use polyclave_kernels::secret::ct_eq;
use polyclave_protocol::service::{ELEMENT_BYTES, Element};
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use crate::client::Client;
use crate::conversation::Conversation;
use crate::versions::name_of;
use crate::{Error, Result};

impl Client {
    /// Generates a key that no one knows. All nodes take part.
    pub fn generate(&self, key: NewKey) -> Result<KeyInfo> {
        let conversation =
            Conversation::ask_all(self, &Operation::Generate(operations::Generate { new: key }))?;
        conversation.done()?.ok_or_else(|| Error::Answers("they made a key and did not say which".into()))
    }

    /// Imports a key. All nodes take part.
    ///
    /// The nodes send shares of a random mask. The client checks it: a node whose share does not belong to the mask that the nodes hold
    /// goes unnoticed with probability at most 2^-127. Then the client sends the key under the mask, the same to all nodes.
    pub fn import(&self, new: NewKey, key: &[u8]) -> Result<KeyInfo> {
        self.send_key(&Operation::Import(operations::Import { new }), key)
    }

    /// Imports a component of a key: its number, from 1 on, and how many there are. All nodes take part, and keep it until the key is
    /// [combined](Client::combine). One with another check value than is expected is not kept. `new` is the key as it is to become.
    pub fn import_component(
        &self,
        new: NewKey,
        (number, of): (u8, u8),
        expected: Option<KeyCheck>,
        component: &[u8],
    ) -> Result<KeyInfo> {
        self.send_key(
            &Operation::ImportComponent(operations::ImportComponent { new, number, of, expected }),
            component,
        )
    }

    /// Makes a key of its components. All nodes take part. It is never assembled, and not made if its check value is another one than is
    /// expected.
    pub fn combine(&self, key: &str, expected: Option<KeyCheck>, parity: Parity) -> Result<KeyInfo> {
        let operation = Operation::Combine(operations::Combine { key: key.into(), expected, parity });
        let conversation = Conversation::ask_all(self, &operation)?;
        conversation.done()?.ok_or_else(|| Error::Answers("they made a key and did not say which".into()))
    }

    /// Imports a key that was sealed to the nodes. All nodes take part, each with its part of the key. This client learns nothing of it.
    pub fn import_sealed(&self, sealed: SealedImport) -> Result<KeyInfo> {
        let conversation = Conversation::ask_all(self, &Operation::ImportSealed(Box::new(sealed)))?;
        conversation.done()?.ok_or_else(|| Error::Answers("they made a key and did not say which".into()))
    }

    fn send_key(&self, operation: &Operation, key: &[u8]) -> Result<KeyInfo> {
        let (mut conversation, accepted) = Conversation::begin(self, operation, None)?;
        let mask = accepted.mask;
        if mask.len() != key.len() {
            let (given, taken) = (key.len(), mask.len());
            return Err(Error::Misuse(format!("a key of {given} bytes, where the cipher takes {taken}")));
        }
        let blind = accepted
            .blind
            .ok_or_else(|| Error::Answers("they sent no blinding of the mask's check".into()))?;
        let mut chi = [0; ELEMENT_BYTES];
        random_bytes(&mut chi)?;
        conversation.step(&Step::Chi { chi })?;
        let opened = conversation.opened()?;
        if !ct_eq(&opened, &combination(&mask, blind, chi)) {
            return Err(Error::Answers(
                "a node sent a share that does not belong to the mask; the key was not sent. See each node's log".into(),
            ));
        }
        let data = key.iter().zip(mask.iter()).map(|(k, m)| k ^ m).collect();
        conversation.step(&Step::Masked { data, next: 0, end: End::No })?;
        conversation.done()?.ok_or_else(|| Error::Answers("they took a key and did not say which".into()))
    }

    /// Derives a key from another, which must be for it. All nodes take part. The new key is never assembled.
    pub fn derive(&self, base: impl Into<KeyVersion>, new: NewKey, how: Derivation) -> Result<KeyInfo> {
        let base = self.resolved(base.into())?;
        let conversation =
            Conversation::ask_all(self, &Operation::Derive(operations::Derive { base, new, how }))?;
        conversation.done()?.ok_or_else(|| Error::Answers("they derived a key and did not say which".into()))
    }

    /// Puts a version of a key under a second name and id. All nodes take part. Nothing is computed: they store their shares again. What the
    /// copy is for is at most what the key is for, and both pay from one account.
    pub fn copy(&self, key: &str, id: [u8; 16], new: NewKey) -> Result<KeyInfo> {
        let conversation =
            Conversation::ask_all(self, &Operation::Copy(operations::CopyKey { key: key.into(), id, new }))?;
        conversation.done()?.ok_or_else(|| Error::Answers("they copied a key and did not say which".into()))
    }

    /// Bytes derived from a key that is for it: SP 800-108 in counter mode with CMAC ([`Derivation::CmacCounter`]). The nodes do not see
    /// them.
    pub fn kdf(
        &self,
        key: impl Into<KeyVersion>,
        how: Derivation,
        bytes: usize,
    ) -> Result<Zeroizing<Vec<u8>>> {
        if bytes > MAX_DERIVED {
            return Err(Error::Misuse(format!(
                "at most {MAX_DERIVED} bytes are derived at once, not {bytes}"
            )));
        }
        let operation =
            Operation::Kdf(operations::Kdf { key: self.resolved(key.into())?, how, bytes: bytes as u32 });
        let (mut conversation, _) = Conversation::begin(self, &operation, Some(&Step::Derived))?;
        let derived = conversation.bytes(bytes)?;
        conversation.finish()?;
        Ok(derived)
    }

    /// The check value of a version of a key, which the nodes compute from their shares. An error if it is not the one that they recorded
    /// when the key was made.
    pub fn check(&self, key: &KeyInfo, kind: CheckKind) -> Result<Vec<u8>> {
        let operation = Operation::Check(operations::Check { key: key.into(), kind });
        let (conversation, accepted) = Conversation::begin(self, &operation, None)?;
        conversation.finish()?;
        if kind == CheckKind::Cmac && accepted.start != key.check_value {
            return Err(Error::Answers(format!(
                "the check value is {}, and {} was recorded when the key was made: the shares of some node are not those of the key",
                hex::encode(&accepted.start),
                hex::encode(&key.check_value)
            )));
        }
        Ok(accepted.start)
    }

    /// A key wrapped under another, if it may be wrapped. The nodes see neither of them, nor the wrapped key.
    pub fn wrap(
        &self,
        wrapping: impl Into<KeyVersion>,
        key: impl Into<KeyVersion>,
        how: Wrapping,
    ) -> Result<Vec<u8>> {
        let (wrapping, key) = (self.resolved(wrapping.into())?, self.resolved(key.into())?);
        let cipher = self.cipher(&key.name)?;
        let operation = Operation::Wrap(operations::Wrap { wrapping, key, how });
        let (mut conversation, _) = Conversation::begin(self, &operation, Some(&Step::Wrapped))?;
        let wrapped = conversation.bytes(key_wrap::wrapped_bytes(cipher.key_bytes))?;
        conversation.finish()?;
        Ok(wrapped.to_vec())
    }

    /// A key wrapped in a key block of TR-31 under another key, if it may be wrapped. The nodes see neither of them, nor what is encrypted.
    pub fn wrap_block(
        &self,
        wrapping: impl Into<KeyVersion>,
        key: impl Into<KeyVersion>,
        header: BlockHeader,
    ) -> Result<Vec<u8>> {
        let (wrapping, key) = (self.resolved(wrapping.into())?, self.resolved(key.into())?);
        let (kek, cipher) = (self.cipher(&wrapping.name)?, self.cipher(&key.name)?);
        let fits = Version::under(&kek.name).zip(algorithm(&cipher.name));
        let (version, algorithm) = fits.ok_or_else(|| {
            Error::Misuse(format!("no key block holds a key of {} under one of {}", cipher.name, kek.name))
        })?;
        let encrypted = key_block::plaintext_bytes(&cipher, kek.block_bytes);
        let head = header.text(version, algorithm, encrypted);
        let operation = Operation::WrapBlock(operations::WrapBlock { wrapping, key, header });
        let (mut conversation, _) = Conversation::begin(self, &operation, Some(&Step::Wrapped))?;
        let message = conversation.bytes(version.block_bytes() + encrypted)?;
        conversation.finish()?;
        let (mac, encrypted) = message.split_at(version.block_bytes());
        let digits = [encrypted, mac].concat().iter().map(|byte| format!("{byte:02X}")).collect::<String>();
        Ok([head, digits.into_bytes()].concat())
    }

    /// Unwraps a key block of TR-31 into a key of the nodes. All nodes take part. The key is never assembled. A block that does not
    /// authenticate is [`Error::Unauthentic`].
    pub fn unwrap_block(
        &self,
        unwrapping: impl Into<KeyVersion>,
        block: &[u8],
        new: NewKey,
    ) -> Result<KeyInfo> {
        let unwrapping = self.resolved(unwrapping.into())?;
        let operation =
            Operation::UnwrapBlock(operations::UnwrapBlock { unwrapping, block: block.to_vec(), new });
        let conversation = Conversation::ask_all(self, &operation)?;
        conversation
            .done()?
            .ok_or_else(|| Error::Answers("they unwrapped a key and did not say which".into()))
    }

    /// Unwraps a key into a key of the nodes. All nodes take part. It is never assembled. A wrapped key that does not authenticate is
    /// [`Error::Unauthentic`], whatever is wrong with it.
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
        let conversation = Conversation::ask_all(self, &operation)?;
        conversation
            .done()?
            .ok_or_else(|| Error::Answers("they unwrapped a key and did not say which".into()))
    }

    /// Deletes all versions of a key at all nodes. Returns the properties of the newest; `None` if there was no such key.
    pub fn delete(&self, key: &str) -> Result<Option<KeyInfo>> {
        Conversation::ask_all(
            self,
            &Operation::Delete(operations::Delete { key: key.into(), version: None }),
        )?
        .done()
    }

    /// Deletes a version of a key that is not the current one. Returns its properties; `None` if there was no such version.
    pub fn delete_version(&self, key: &str, version: u32) -> Result<Option<KeyInfo>> {
        Conversation::ask_all(
            self,
            &Operation::Delete(operations::Delete { key: key.into(), version: Some(version) }),
        )?
        .done()
    }

    /// The properties of the current version of a key. Where nodes correct each other: those that more nodes report than may lie. Otherwise: those of the first
    /// node that does not refuse. A refusal, if more nodes refuse than the request can do without.
    pub fn info(&self, key: &str) -> Result<KeyInfo> {
        self.strategy.info(self, name_of(key)).map_err(|e| self.unless_halted(e))
    }
}

/// r_0 + sum of chi^j r_j, where r_1, r_2 .. are the mask's bytes cut into elements.
fn combination(mask: &Zeroizing<Vec<u8>>, blind: Element, chi: Element) -> Element {
    let chi = Gf128::from_bytes(chi);
    let (mut power, mut sum) = (chi, Gf128::from_bytes(blind));
    for chunk in mask.chunks(ELEMENT_BYTES) {
        let mut element = Zeroizing::new([0; ELEMENT_BYTES]);
        element[..chunk.len()].copy_from_slice(chunk);
        sum += power * Gf128::from_bytes(*element);
        power *= chi;
    }
    sum.to_bytes()
}
