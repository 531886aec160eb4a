//! What PKCS#11 knows of a key and nodes do not: it is kept with the key, in the attributes that nodes store
//! without reading them.

use polyclave_api::MAX_ATTRIBUTES;
use serde::{Deserialize, Serialize};

use crate::hmac::Noted;

/// With which the bytes begin, so that those of other programs are not taken for these.
const MAGIC: &[u8] = b"p11\x01";

/// The attributes of a key that programs set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) label: Vec<u8>,
    pub(crate) id: Vec<u8>,
    pub(crate) start_date: Vec<u8>,
    pub(crate) end_date: Vec<u8>,
    /// Older programs wrote down here that `CKA_PRIVATE` = FALSE was asked for. No key is seen without a
    /// login, so it says nothing.
    pub(crate) asked_public: bool,
    /// Uses that a program has turned off (`CKA_SIGN` and so on), and `CKA_NEVER_EXTRACTABLE` if it has
    /// turned `CKA_EXTRACTABLE` off. Nodes do not know of that.
    pub(crate) off: Vec<u64>,
    /// `CKA_ALLOWED_MECHANISMS`, if a program gave them.
    pub(crate) mechanisms: Option<Vec<u64>>,
    /// Whether a program may change it.
    pub(crate) is_fixed: bool,
    /// Of a key for HMAC. It is written behind all that is above, where older programs do not look.
    #[serde(skip)]
    pub(crate) of_hmac: Option<Noted>,
}

impl Stored {
    /// Notes that something is off. Returns whether it was not noted before.
    pub(crate) fn turn_off(&mut self, kind: u64) -> bool {
        let is_new = !self.off.contains(&kind);
        if is_new {
            self.off.push(kind);
        }
        is_new
    }

    /// As nodes keep it; `None` if it is too long for them.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let encoded = postcard::to_stdvec(self).ok()?;
        let of_hmac = self.of_hmac.map(|noted| postcard::to_stdvec(&noted)).transpose().ok()?;
        let bytes = [MAGIC, &encoded, &of_hmac.unwrap_or_default()].concat();
        (bytes.len() <= MAX_ATTRIBUTES).then_some(bytes)
    }

    /// From what nodes keep; `None` if another program wrote it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Stored> {
        let encoded = bytes.strip_prefix(MAGIC)?;
        let (stored, rest): (Stored, &[u8]) = postcard::take_from_bytes(encoded).ok()?;
        Some(Stored { of_hmac: postcard::from_bytes(rest).ok(), ..stored })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Stored {
        Stored {
            label: b"a label".to_vec(),
            id: vec![1, 2, 3],
            start_date: b"20260101".to_vec(),
            off: vec![0x108],
            mechanisms: Some(vec![0x1087]),
            ..Stored::default()
        }
    }

    #[test]
    fn what_is_stored_comes_back_and_what_others_store_is_not_taken_for_it() {
        let bytes = full().to_bytes().expect("it fits");
        assert_eq!(Stored::from_bytes(&bytes), Some(full()));
        let of_hmac = Stored { of_hmac: Some(Noted { bytes: 40, is_generic: true }), ..full() };
        let with_more = of_hmac.to_bytes().expect("it fits");
        assert!(with_more.starts_with(&bytes), "older programs find the same");
        assert_eq!(Stored::from_bytes(&with_more), Some(of_hmac));
        assert_eq!(Stored::from_bytes(b"an attribute"), None);
        assert_eq!(Stored::from_bytes(b""), None);
        let long = Stored { label: vec![0; MAX_ATTRIBUTES], ..full() };
        assert_eq!(long.to_bytes(), None);
    }

    #[test]
    fn what_is_turned_off_twice_is_noted_once() {
        let mut stored = Stored::default();
        assert_eq!([0x108, 0x104, 0x108].map(|kind| stored.turn_off(kind)), [true, true, false]);
        assert_eq!(stored.off, [0x108, 0x104]);
    }

    #[test]
    fn foreign_attributes_do_not_panic() {
        let valid = vec![full().to_bytes().expect("it fits"), Stored::default().to_bytes().expect("it fits")];
        polyclave_harness::fuzz!("pkcs11-attributes", &["p11\u{1}"], valid, |bytes: &[u8]| {
            if let Some(stored) = Stored::from_bytes(bytes) {
                assert!(stored.label.len() <= bytes.len() && stored.off.len() <= bytes.len());
            }
        });
    }
}
