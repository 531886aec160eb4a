//! The record of a key's properties and state, and the records of older versions.
//!
//! | version | in order, as postcard writes it |
//! |---|---|
//! | 1 | name, cipher, modes, budget, id, origin, made, check value, state |
//! | 4 | an empty name, the version (4), properties, state, the client that made it if it is a session key |
//!
//! Version 1 is the version of Polyclave 0.1. It begins with the key's name, which is never empty. Such a key
//! may be used for everything that its modes can do, is not wrappable, and has no attributes. It is the first
//! version of its name, active, and takes no nonces from clients. It is written in the newest version
//! whenever it changes. Development versions of 0.2.0 wrote versions 2 and 3. These are not read.

use std::collections::BTreeMap;
use std::fmt;

use polyclave_api::{KeyInfo, Mode, NewKey, Origin};
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use super::KeyState;

/// The version that is written.
const VERSION: u16 = 4;

/// Values of the longest version.
const MAX_VALUES: usize = 9;

/// Shares by the name of the secret that they belong to.
pub(super) type Shares = BTreeMap<String, Zeroizing<Vec<u8>>>;

/// The record under a name.
pub(super) struct Entry {
    pub(super) info: KeyInfo,
    pub(super) state: KeyState,
    pub(super) maker: Option<String>,
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut values = serializer.serialize_tuple(5)?;
        values.serialize_element("")?;
        values.serialize_element(&VERSION)?;
        values.serialize_element(&self.info)?;
        values.serialize_element(&self.state)?;
        values.serialize_element(&self.maker)?;
        values.end()
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(MAX_VALUES, Values)
    }
}

/// Reads the values of any version.
struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the record of a key")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Entry, A::Error> {
        let name: String = next(&mut from)?;
        if !name.is_empty() {
            return version_1(name, &mut from);
        }
        match next(&mut from)? {
            VERSION => Ok(Entry { info: next(&mut from)?, state: next(&mut from)?, maker: next(&mut from)? }),
            other => Err(Error::custom(format!(
                "the record of a key has version {other}, and this program reads versions 1 and {VERSION}; run the version that wrote it"
            ))),
        }
    }
}

fn version_1<'de, A: SeqAccess<'de>>(name: String, from: &mut A) -> Result<Entry, A::Error> {
    let cipher: String = next(from)?;
    let modes: Vec<Mode> = next(from)?;
    let properties = NewKey::for_modes(&name, &cipher, &modes, next(from)?);
    let id = next(from)?;
    let origin: Origin = next(from)?;
    let info = KeyInfo::first(properties, id, origin, next(from)?, next(from)?);
    Ok(Entry { info, state: next(from)?, maker: None })
}

fn next<'de, T: DeserializeOwned, A: SeqAccess<'de>>(from: &mut A) -> Result<T, A::Error> {
    from.next_element()?.ok_or_else(|| Error::custom("the record of a key ends too early"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use polyclave_api::Usage;
    use zeroize::Zeroizing;

    use super::super::engine::{Table, decode, encode};
    use super::super::keys::encode_shares;
    use super::super::testing::{in_memory, key, reopen};
    use super::*;

    /// Written by Polyclave 0.1: an announced key of AES-256 for gcm and cmac, and a pending one of Triple
    /// DES for ctr and cbc that was imported.
    const OLD: [&str; 2] = [
        "07706179726f6c6c076165732d323536020003808040070707070707070707070707070707070080f7c4d50605070707070701",
        "036f6c6409336465732d65646533020102808040eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee0180f7c4d50605eeeeeeeeee00",
    ];

    fn old(record: &str) -> Vec<u8> {
        hex::decode(record).expect("hexadecimal")
    }

    #[test]
    fn records_of_older_versions_are_read_and_written_anew() {
        let [payroll, imported] = OLD.map(|record| decode::<Entry>(Table::Keys, &old(record)).expect("read"));
        let (info, properties) = (&payroll.info, &payroll.info.properties);
        assert_eq!((properties.name.as_str(), properties.cipher.as_str()), ("payroll", "aes-256"));
        assert_eq!(properties.modes, [Mode::Gcm, Mode::Cmac]);
        assert_eq!(properties.usage, [Usage::Encrypt, Usage::Decrypt, Usage::Mac]);
        assert_eq!((properties.budget_blocks, info.id, info.made), (1 << 20, [7; 16], 1_790_000_000));
        assert_eq!((info.origin, info.check_value.as_slice()), (Origin::Generated, &[7; 5][..]));
        assert_eq!(payroll.state, KeyState::Announced);
        let properties = &imported.info.properties;
        assert_eq!(properties.usage, [Usage::Encrypt, Usage::Decrypt]);
        assert_eq!((imported.info.origin, imported.state), (Origin::Imported, KeyState::Pending));
        assert!(!properties.wrappable && properties.attributes.is_empty());
        for entry in [payroll, imported] {
            let again: Entry = decode(Table::Keys, &encode(&entry, 64).expect("small")).expect("read");
            assert_eq!((again.info, again.state), (entry.info, entry.state));
        }
    }

    #[test]
    fn a_record_of_another_version_and_a_cut_one_are_refused() {
        let entry = Entry { info: key("k", 1).info, state: KeyState::Pending, maker: Some("alice".into()) };
        let bytes = encode(&entry, 64).expect("small");
        for version in [2, 3, 5] {
            let mut other = bytes.to_vec();
            other[1] = version;
            assert!(decode::<Entry>(Table::Keys, &other).is_err(), "{version}");
        }
        for whole in [bytes.to_vec(), old(OLD[0])] {
            assert!((0..whole.len()).all(|len| decode::<Entry>(Table::Keys, &whole[..len]).is_err()));
        }
    }

    /// As the program before usages has left them, in a store that is opened now.
    #[test]
    fn keys_of_an_older_store_are_usable_and_change_their_state() {
        let (store, disk) = in_memory();
        let shares = || BTreeMap::from([("round keys".to_owned(), Zeroizing::new(vec![5; 40]))]);
        store
            .change(|changes| {
                for (name, record, id) in [("payroll", OLD[0], [7; 16]), ("old", OLD[1], [0xee; 16])] {
                    changes.put_bytes(Table::Keys, name.as_bytes(), Zeroizing::new(old(record)))?;
                    changes.put_bytes(Table::Shares, &id, encode_shares(&shares())?)?;
                }
                Ok(())
            })
            .expect("written");
        drop(store);
        let store = reopen(&disk);
        assert_eq!(store.key("payroll").expect("read").expect("announced").shares, shares());
        store.announce("old", [0xee; 16]).expect("announced");
        drop(store);
        let store = reopen(&disk);
        let names: Vec<String> =
            store.keys().expect("read").into_iter().map(|info| info.properties.name).collect();
        assert_eq!(names, ["old", "payroll"]);
        store.delete("payroll", [7; 16]).expect("deleted");
        assert!(store.key("payroll").expect("read").is_none());
    }
}
