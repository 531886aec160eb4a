//! How the API server names a version of the key: `NAME/VERSION/ID`, with the 16 bytes of the id in
//! hexadecimal.

use std::fmt;

use polyclave_api::{KeyInfo, KeyVersion};
use polyclave_config::check_name;

/// A version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyId {
    pub(super) name: String,
    version: u32,
    id: [u8; 16],
}

impl KeyId {
    pub(super) fn of(info: &KeyInfo) -> KeyId {
        KeyId { name: info.properties.name.clone(), version: info.version, id: info.id }
    }

    /// Reads what [`KeyId`] writes, in this form only.
    pub(super) fn parse(text: &str) -> Option<KeyId> {
        let mut parts = text.split('/');
        let (name, version, id) = (parts.next()?, parts.next()?, parts.next()?);
        check_name("key", name).ok()?;
        let mut bytes = [0; 16];
        hex::decode_to_slice(id, &mut bytes).ok()?;
        let read = KeyId { name: name.into(), version: version.parse().ok()?, id: bytes };
        (read.to_string() == text).then_some(read)
    }

    pub(super) fn to_version(&self) -> KeyVersion {
        KeyVersion { name: self.name.clone(), id: Some(self.id) }
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.name, self.version, hex::encode(self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_id_comes_back_and_nothing_else_is_read() {
        let id = KeyId { name: "kubernetes".into(), version: 12, id: [0xab; 16] };
        let text = id.to_string();
        assert_eq!(text, format!("kubernetes/12/{}", "ab".repeat(16)));
        assert_eq!(KeyId::parse(&text), Some(id));
        let hex = "ab".repeat(16);
        for other in [
            String::new(),
            "kubernetes".into(),
            "kubernetes/12".into(),
            format!("kubernetes/12/{hex}/"),
            format!("kubernetes/012/{hex}"),
            format!("kubernetes/+12/{hex}"),
            format!("kubernetes/-1/{hex}"),
            format!("kubernetes/12/{}", hex.to_uppercase()),
            format!("kubernetes/12/{}", &hex[2..]),
            format!("a b/12/{hex}"),
            format!("/12/{hex}"),
        ] {
            assert_eq!(KeyId::parse(&other), None, "{other}");
        }
    }
}
