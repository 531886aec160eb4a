//! The permissions of a gateway's callers that sign their requests.

use std::path::{Path, PathBuf};

use polyclave_api::Right;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::token::{check_rights, listed};
use crate::policy::fits;
use crate::{Error, Result, private};

/// The rights that a caller can use that signs its requests.
pub const ACCESS_KEY_RIGHTS: [Right; 5] =
    [Right::Pay, Right::Issue, Right::Encrypt, Right::Decrypt, Right::List];

/// The shortest secret, in characters: as long as those of AWS.
const LEAST_SECRET: usize = 40;
/// The longest one.
const MOST_SECRET: usize = 256;
/// Characters of an id.
const ID: std::ops::RangeInclusive<usize> = 16..=128;

/// An access key, and what its holder may do (`[[access_key]]`). Its secret is in a file of its own, because
/// the gateway computes signatures with it: a hash would not do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayAccessKey {
    /// Its name, for people and for the audit logs of the nodes.
    pub name: String,
    /// The access key id, which every request shows.
    pub id: String,
    /// The file with the secret access key. Only its owner may be able to read it.
    pub secret: PathBuf,
    /// What it may do: `pay`, `issue`, `encrypt`, `decrypt`, `list`.
    pub rights: Vec<Right>,
    /// The keys that it may use: names, or patterns of names with `*` and `?`.
    pub keys: Vec<String>,
}

impl GatewayAccessKey {
    /// Whether it may do something with a key.
    pub fn allows(&self, right: Right, key: &str) -> bool {
        self.rights.contains(&right) && fits(&self.keys, key)
    }

    /// The entry, as a file has it.
    pub fn to_text(&self) -> String {
        format!(
            "[[access_key]]\nname = {:?}\nid = {:?}\nsecret = {:?}\nrights = [{}]\nkeys = [{}]\n",
            self.name,
            self.id,
            self.secret,
            listed(self.rights.iter().map(Right::to_string)),
            listed(self.keys.iter().cloned())
        )
    }

    /// The secret of its file.
    pub fn read_secret(&self) -> Result<Zeroizing<String>> {
        let bytes = private::read(&self.secret)?;
        let text = std::str::from_utf8(&bytes).unwrap_or_default().trim();
        let fits = (LEAST_SECRET..=MOST_SECRET).contains(&text.len());
        match fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Zeroizing::new(text.to_owned())),
            false => Err(Error::malformed(
                &self.secret,
                format!(
                    "is no secret access key of {LEAST_SECRET} to {MOST_SECRET} characters; `polyclave gateway \
                     access-key` makes one"
                ),
            )),
        }
    }

    /// Refuses what would be of no use.
    pub fn check(&self) -> Result<()> {
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !ID.contains(&self.id.len()) || !self.id.bytes().all(is_id) {
            let (least, most) = (ID.start(), ID.end());
            return Err(Error::misuse(format!("its id is not {least} to {most} letters, digits and _")));
        }
        check_rights(&self.rights, &self.keys, &ACCESS_KEY_RIGHTS)
    }

    pub(super) fn place_in(&mut self, dir: &Path) {
        self.secret = dir.join(&self.secret);
    }
}
