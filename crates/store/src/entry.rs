//! The record of a key's properties and state, and the records of older versions.
//!
//! | version | in order, as postcard writes it |
//! |---|---|
//! | 1 | name, cipher, modes, budget, id, origin, made, check value, state |
//! | 2 | an empty name, the version (2), properties as they were then ([`Info2`]), state |
//! | 3 | an empty name, the version (3), properties as they were then ([`Info3`]), state |
//! | 4 | an empty name, the version (4), properties, state, the client that made it if it is a session key |
//!
//! Version 1 is that of Polyclave 0.1 and of stores before usages. It begins with the key's name, which is never empty. Such a key is for
//! everything that its modes can do, is not wrappable, and has no attributes. Version 2 is that of stores before keys had versions. A key
//! of either is the first version of its name, active, and takes no nonces from clients. Version 3 is that of stores before session keys and
//! copies: a key of it is stored, and pays from an account of its own. Each is written in the newest version whenever it changes.

use std::fmt;

use polyclave_api::{Component, KeyInfo, Mode, NewKey, Origin, Usage, VersionState};
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::KeyState;

/// The version that is written.
const VERSION: u16 = 4;

/// Values of the longest version.
const MOST_VALUES: usize = 9;

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
        deserializer.deserialize_tuple(MOST_VALUES, Values)
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
            2 => {
                Ok(Entry { info: next::<Info2, A>(&mut from)?.into(), state: next(&mut from)?, maker: None })
            }
            3 => {
                Ok(Entry { info: next::<Info3, A>(&mut from)?.into(), state: next(&mut from)?, maker: None })
            }
            VERSION => Ok(Entry { info: next(&mut from)?, state: next(&mut from)?, maker: next(&mut from)? }),
            other => Err(Error::custom(format!(
                "the record of a key has version {other}, and this program reads versions 1 to {VERSION}; run the version that wrote it"
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

/// A key's properties in records of version 3.
#[derive(Deserialize)]
struct Info3 {
    properties: NewKey3,
    id: [u8; 16],
    origin: Origin,
    made: u64,
    check_value: Vec<u8>,
    version: u32,
    state: VersionState,
    least_version: u32,
    deletable: bool,
    revision: u64,
    component: Option<Component>,
}

#[derive(Deserialize)]
struct NewKey3 {
    name: String,
    cipher: String,
    modes: Vec<Mode>,
    budget_blocks: u64,
    usage: Vec<Usage>,
    wrappable: bool,
    attributes: Vec<u8>,
    caller_nonces: bool,
    label: String,
    expires: Option<u64>,
}

impl From<Info3> for KeyInfo {
    fn from(info: Info3) -> KeyInfo {
        let Info3 { properties, id, origin, made, check_value, .. } = info;
        let NewKey3 { name, cipher, modes, budget_blocks, usage, wrappable, attributes, .. } = properties;
        let NewKey3 { caller_nonces, label, expires, .. } = properties;
        let new = NewKey::for_modes(&name, &cipher, &modes, budget_blocks);
        let new = NewKey { usage, wrappable, attributes, caller_nonces, label, expires, ..new };
        let Info3 { version, state, least_version, deletable, revision, component, .. } = info;
        let first = KeyInfo::first(new, id, origin, made, check_value);
        KeyInfo { version, state, least_version, deletable, revision, component, ..first }
    }
}

/// A key's properties in records of version 2.
#[derive(Deserialize)]
struct Info2 {
    properties: NewKey2,
    id: [u8; 16],
    origin: Origin,
    made: u64,
    check_value: Vec<u8>,
}

#[derive(Deserialize)]
struct NewKey2 {
    name: String,
    cipher: String,
    modes: Vec<Mode>,
    budget_blocks: u64,
    usage: Vec<Usage>,
    wrappable: bool,
    attributes: Vec<u8>,
}

impl From<Info2> for KeyInfo {
    fn from(info: Info2) -> KeyInfo {
        let Info2 { properties, id, origin, made, check_value } = info;
        let NewKey2 { name, cipher, modes, budget_blocks, usage, wrappable, attributes } = properties;
        let new = NewKey::for_modes(&name, &cipher, &modes, budget_blocks);
        KeyInfo::first(NewKey { usage, wrappable, attributes, ..new }, id, origin, made, check_value)
    }
}

fn next<'de, T: DeserializeOwned, A: SeqAccess<'de>>(from: &mut A) -> Result<T, A::Error> {
    from.next_element()?.ok_or_else(|| Error::custom("the record of a key ends too early"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use polyclave_api::VersionState;
    use zeroize::Zeroizing;

    use super::super::engine::{Table, decode, encode};
    use super::super::keys::encode_shares;
    use super::super::testing::{in_memory, key, reopen};
    use super::*;

    /// Written by the program before usages: an announced key of AES-256 for gcm and cmac, and a pending one of Triple DES for ctr and cbc
    /// that was imported.
    const OLD: [&str; 2] = [
        "07706179726f6c6c076165732d323536020003808040070707070707070707070707070707070080f7c4d50605070707070701",
        "036f6c6409336465732d65646533020102808040eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee0180f7c4d50605eeeeeeeeee00",
    ];

    /// Written by the program before keys had versions: an announced key of AES-256 that wraps and derives, is wrappable, has attributes and
    /// was unwrapped; and a pending one of Triple DES for ctr and cmac that was derived.
    const VERSION_2: [&str; 2] = [
        "0002097472616e73706f7274076165732d323536008080400203050104010203ff070707070707070707070707070707070280f7c4d50605070707070701",
        "000207706179726f6c6c09336465732d65646533020103808040030001020000eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee03c08df6d70605eeeeeeeeee00",
    ];

    /// Written by the program before session keys: the third version of an announced key of AES-256 for gcm and ccm, which also wraps, takes
    /// nonces of clients, expires, is deactivated, may not be deleted, and was described six times.
    const VERSION_3: &str = "0003097472616e73706f7274076165732d323536020008808040030001030104010203ff010b746f207468652062616e6b0180e6fe8907070707070707070707070707070707070280f7c4d50605070707070703010200060001";

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
    fn records_of_version_2_are_read_as_first_versions_and_written_in_the_newest_version() {
        let read = |record: &str| decode::<Entry>(Table::Keys, &old(record)).expect("a record of version 2");
        let [transport, payroll] = VERSION_2.map(read);
        let wrapping = NewKey {
            usage: vec![Usage::Wrap, Usage::Derive],
            wrappable: true,
            attributes: vec![1, 2, 3, 0xff],
            ..NewKey::for_modes("transport", "aes-256", &[], 1 << 20)
        };
        let expected = KeyInfo::first(wrapping, [7; 16], Origin::Unwrapped, 1_790_000_000, vec![7; 5]);
        assert_eq!((&transport.info, transport.state), (&expected, KeyState::Announced));
        let counting = NewKey::for_modes("payroll", "3des-ede3", &[Mode::Ctr, Mode::Cmac], 1 << 20);
        let expected = KeyInfo::first(counting, [0xee; 16], Origin::Derived, 1_795_000_000, vec![0xee; 5]);
        assert_eq!((&payroll.info, payroll.state), (&expected, KeyState::Pending));
        assert_eq!((payroll.info.version, payroll.info.state), (1, VersionState::Active));
        for entry in [transport, payroll] {
            let written = encode(&entry, 64).expect("small");
            assert_eq!(written[1], 4);
            let again: Entry = decode(Table::Keys, &written).expect("read");
            assert_eq!((again.info, again.state), (entry.info, entry.state));
        }
    }

    #[test]
    fn records_of_version_3_are_read_as_stored_keys_with_accounts_of_their_own() {
        let entry = decode::<Entry>(Table::Keys, &old(VERSION_3)).expect("a record of version 3");
        let properties = NewKey {
            usage: vec![Usage::Encrypt, Usage::Decrypt, Usage::Wrap],
            wrappable: true,
            attributes: vec![1, 2, 3, 0xff],
            caller_nonces: true,
            label: "to the bank".into(),
            expires: Some(1_900_000_000),
            ..NewKey::for_modes("transport", "aes-256", &[Mode::Gcm, Mode::Ccm], 1 << 20)
        };
        let first = KeyInfo::first(properties, [7; 16], Origin::Unwrapped, 1_790_000_000, vec![7; 5]);
        let (version, least_version, deletable, revision) = (3, 2, false, 6);
        let state = VersionState::Deactivated;
        let expected = KeyInfo { version, state, least_version, deletable, revision, ..first };
        assert_eq!((&entry.info, entry.state, &entry.maker), (&expected, KeyState::Announced, &None));
        assert_eq!(entry.info.account, [7; 16]);
        let again: Entry = decode(Table::Keys, &encode(&entry, 64).expect("small")).expect("read");
        assert_eq!((again.info, again.state), (entry.info, entry.state));
    }

    #[test]
    fn a_record_of_a_later_version_and_a_cut_one_are_refused() {
        let entry = Entry { info: key("k", 1).info, state: KeyState::Pending, maker: Some("alice".into()) };
        let bytes = encode(&entry, 64).expect("small");
        let mut later = bytes.to_vec();
        later[1] = 5;
        let error = postcard::from_bytes::<Entry>(&later).err().expect("refused");
        assert!(decode::<Entry>(Table::Keys, &later).is_err(), "{error}");
        for whole in [bytes.to_vec(), old(OLD[0]), old(VERSION_2[0]), old(VERSION_3)] {
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
