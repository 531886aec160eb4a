//! Makes keys and bytes: generates, imports, combines components, derives and copies. All nodes take part.

use polyclave_api::{
    Derivation, End, KeyCheck, KeyInfo, KeyVersion, MAX_DERIVED, NewKey, Operation, Parity, SealedImport,
    Step, operations,
};
use polyclave_cipher::hmac::hash_of;
use polyclave_field::Gf128;
use polyclave_kernels::secret::ct_eq;
use polyclave_protocol::service::{ELEMENT_BYTES, Element};
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use crate::client::Client;
use crate::operations::hmac::key_block;
use crate::session::first::First;
use crate::{Error, Result};

impl Client {
    /// Generates a key that no one knows. All nodes take part.
    pub fn generate(&self, key: NewKey) -> Result<KeyInfo> {
        self.ask_all_for_key(&Operation::Generate(operations::Generate { new: key }))
    }

    /// Imports a key. All nodes take part.
    ///
    /// The nodes send shares of a random mask. The client checks it: a node whose share does not belong to
    /// the mask that the nodes hold goes unnoticed with probability at most 2^-127. Then the client sends the
    /// key under the mask, the same to all nodes.
    ///
    /// A key for HMAC has 16 to 256 bytes, and goes to the nodes as one [block](crate::hmac_key_block), which
    /// is a key, too.
    pub fn import(&self, new: NewKey, key: &[u8]) -> Result<KeyInfo> {
        let block;
        let key = match hash_of(&new.cipher) {
            Some(hash) => {
                block = key_block(hash, key)?;
                &block[..]
            }
            None => key,
        };
        self.send_key(&Operation::Import(operations::Import { new }), key)
    }

    /// Imports a component of a key: its number, from 1 on, and how many there are. All nodes take part, and
    /// keep it until the key is [combined](Client::combine). One with another check value than is expected is
    /// not kept. `new` is the key as it is to become.
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

    /// Makes a key of its components. All nodes take part. It is never assembled, and not made if its check
    /// value is another one than is expected.
    pub fn combine(&self, key: &str, expected: Option<KeyCheck>, parity: Parity) -> Result<KeyInfo> {
        let operation = Operation::Combine(operations::Combine { key: key.into(), expected, parity });
        self.ask_all_for_key(&operation)
    }

    /// Imports a key that was sealed to the nodes. All nodes take part, each with its part of the key. This
    /// client learns nothing of it.
    pub fn import_sealed(&self, sealed: SealedImport) -> Result<KeyInfo> {
        self.ask_all_for_key(&Operation::ImportSealed(Box::new(sealed)))
    }

    fn send_key(&self, operation: &Operation, key: &[u8]) -> Result<KeyInfo> {
        let (mut conversation, accepted) = self.begin(operation, First::Nothing)?;
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
        self.ask_all_for_key(&Operation::Derive(operations::Derive { base, new, how }))
    }

    /// Puts a version of a key under a second name and id. All nodes take part. Nothing is computed: they
    /// store their shares again. What the copy is for is at most what the key is for, and both pay from one
    /// account.
    pub fn copy(&self, key: &str, id: [u8; 16], new: NewKey) -> Result<KeyInfo> {
        self.ask_all_for_key(&Operation::Copy(operations::CopyKey { key: key.into(), id, new }))
    }

    /// Bytes derived from a key that is for it: SP 800-108 in counter mode ([`Derivation::Counter`]), or HKDF
    /// ([`Derivation::HkdfExpand`]). The nodes do not see them.
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
        let (mut conversation, _) = self.begin(&operation, First::Step(&Step::Derived))?;
        let derived = conversation.bytes(bytes)?;
        conversation.finish()?;
        Ok(derived)
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
