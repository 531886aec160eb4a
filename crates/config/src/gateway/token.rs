//! The permissions of a gateway's callers.

use polyclave_api::Right;
use serde::{Deserialize, Deserializer, de};

use crate::policy::{check_pattern, fits};
use crate::{Error, Result};

/// The rights that a gateway can use.
pub const TOKEN_RIGHTS: [Right; 11] = [
    Right::Generate,
    Right::List,
    Right::Delete,
    Right::Encrypt,
    Right::Decrypt,
    Right::Random,
    Right::Configure,
    Right::Rewrap,
    Right::Mac,
    Right::Tokenize,
    Right::Observe,
];

/// A token, and what it may do (`[[token]]`). The file has its hash only.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayToken {
    /// Its name, for people and for the audit logs of the nodes.
    pub name: String,
    /// BLAKE3 of the token's text, as `blake3:` and hexadecimal digits.
    #[serde(deserialize_with = "hash")]
    pub hash: [u8; 32],
    /// What it may do.
    pub rights: Vec<Right>,
    /// The keys that it may use: names, or patterns of names with `*` and `?`.
    #[serde(default)]
    pub keys: Vec<String>,
}

/// What a token may do, whether it stands in the file or is from a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayGrant {
    /// The name of the token, or of the login's role.
    pub name: String,
    /// What it may do.
    pub rights: Vec<Right>,
    /// The keys that it may use: names, or patterns of names with `*` and `?`.
    pub keys: Vec<String>,
}

impl GatewayGrant {
    /// Whether it may do something with a key, or without one.
    pub fn allows(&self, right: Right, key: &str) -> bool {
        self.rights.contains(&right) && (!right.is_about_keys() || fits(&self.keys, key))
    }
}

impl GatewayToken {
    /// The hash by which a token is known. It takes no salt: a token is 32 random bytes, which nobody
    /// guesses.
    pub fn hash_of(token: &str) -> [u8; 32] {
        *blake3::hash(token.as_bytes()).as_bytes()
    }

    /// What it may do.
    pub fn grant(&self) -> GatewayGrant {
        GatewayGrant { name: self.name.clone(), rights: self.rights.clone(), keys: self.keys.clone() }
    }

    /// The entry, as a file has it.
    pub fn to_text(&self) -> String {
        format!(
            "[[token]]\nname = {:?}\nhash = \"blake3:{}\"\nrights = [{}]\nkeys = [{}]\n",
            self.name,
            hex::encode(self.hash),
            listed(self.rights.iter().map(Right::to_string)),
            listed(self.keys.iter().cloned())
        )
    }

    /// Refuses what would be of no use.
    pub fn check(&self) -> Result<()> {
        check_rights(&self.rights, &self.keys, &TOKEN_RIGHTS)
    }
}

/// Texts in quotes, with commas between them.
pub(super) fn listed(all: impl Iterator<Item = String>) -> String {
    all.map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ")
}

/// Refuses rights that are not among the known ones, none at all, and rights about keys without a key.
pub(super) fn check_rights(rights: &[Right], keys: &[String], all: &[Right]) -> Result<()> {
    let known = || all.iter().map(Right::to_string).collect::<Vec<_>>().join(", ");
    if let Some(other) = rights.iter().find(|right| !all.contains(right)) {
        return Err(Error::misuse(format!(
            "a gateway has no use for the right {other}; it knows {}",
            known()
        )));
    }
    if rights.is_empty() {
        return Err(Error::misuse(format!(
            "it has no rights; give it some of {}, or remove the entry",
            known()
        )));
    }
    keys.iter().try_for_each(|pattern| check_pattern(pattern))?;
    match keys.is_empty() && rights.iter().any(|right| right.is_about_keys()) {
        true => Err(Error::misuse("it has no keys; name some, or write keys = [\"*\"] for all")),
        false => Ok(()),
    }
}

fn hash<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<[u8; 32], D::Error> {
    let text = String::deserialize(deserializer)?;
    let mut hash = [0; 32];
    let digits = text.strip_prefix("blake3:").unwrap_or_default();
    match hex::decode_to_slice(digits, &mut hash) {
        Ok(()) => Ok(hash),
        Err(_) => Err(de::Error::custom(
            "this is no hash of a token; `polyclave gateway token` prints one, as blake3: and 64 hexadecimal digits",
        )),
    }
}
