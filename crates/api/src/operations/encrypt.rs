//! Data are encrypted, decrypted or authenticated under a key, in one of its modes.

use serde::{Deserialize, Serialize};

use super::{Describe, Detail, Envelope, KeyRef, Use};
use crate::{Choice, Permission, Right};

/// Use a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseKey {
    /// Its name.
    pub key: String,
    /// The key's id, if the client knows it from the data that it wants decrypted.
    pub id: Option<[u8; 16]>,
    /// How.
    pub how: Use,
}

impl Describe for UseKey {
    fn kind(&self) -> &'static str {
        self.how.needs().1.name()
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        vec![KeyRef::with_id(&self.key, self.id)]
    }

    fn permissions(&self) -> Vec<Permission> {
        let (mode, right) = self.how.needs();
        let mode = Some(mode);
        let owner = self.how.envelope().map(|envelope| envelope.owner.clone());
        let own = Permission { mode, owner, ..Permission::of(right, &self.key) };
        // Under an old nonce the nodes give the keystream of an old message, or confirm a guess of it.
        let amounts_to = (self.how.chosen() == Choice::Nonce)
            .then(|| Permission { mode, ..Permission::bound(Right::Decrypt, &self.key) });
        [own].into_iter().chain(amounts_to).collect()
    }

    fn audit(&self) -> Detail<'_> {
        let text = match &self.how {
            Use::Tokenize(values) => values.audit(),
            Use::Hmac(messages) => messages.audit(),
            how => how.envelope().map_or(String::new(), Envelope::audit),
        };
        Detail { key: &self.key, text }
    }

    fn only_uses(&self) -> bool {
        true
    }

    fn in_words(&self) -> String {
        let debug = format!("{:?}", self.how);
        let name: String = debug.chars().take_while(char::is_ascii_alphanumeric).collect();
        let mode = self.how.needs().0;
        format!("use the key {:?} once: {name} in {mode} (of data that the approval does not fix)", self.key)
    }
}

impl Use {
    /// What it says of the file of an envelope, if it is about one.
    fn envelope(&self) -> Option<&Envelope> {
        match self {
            Use::EnvelopeWrite(envelope) | Use::EnvelopeOpen { envelope, .. } => Some(envelope),
            _ => None,
        }
    }
}

impl Envelope {
    /// For the audit log.
    fn audit(&self) -> String {
        let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex();
        let (header, commitment) = (hash(&self.header), hex::encode(self.commitment));
        // In an opening the client can give any text here.
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
        let owner = Some(&self.owner).filter(|owner| owner.chars().all(is_name));
        let owner = owner.map_or("?", String::as_str);
        format!("owner={owner} header=blake3:{header} commitment={commitment}")
    }
}
