//! A key as one node holds it: its shares of the round keys, of the secrets that the key's modes derive, and,
//! of a key that may be wrapped, of the key itself. In standby pairs, whose shares are large, it holds those
//! bits of the round keys from which all others follow.

use std::collections::BTreeMap;

use polyclave_api::{KeyInfo, NewKey, Reason, Refusal};

use crate::Result;
use crate::computation::circuits::Circuits;
use crate::computation::key_circuits::KeptBits;
use crate::computation::pieces::run;
use polyclave_protocol::Error;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::ghash::GhashKey;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceSession;
use zeroize::Zeroizing;

/// Shares by name, as they are stored.
pub(crate) type Shares = BTreeMap<String, Zeroizing<Vec<u8>>>;

pub(crate) const ROUND_KEYS: &str = "round keys";
pub(crate) const SECOND: &str = "second round keys";
/// Behind the name of one of these two, for those of its bits that are stored in its place.
const BITS: &str = ", bits";
const SUBKEYS: [&str; 2] = ["cmac k1", "cmac k2"];
pub(crate) const RAW: &str = "key";
pub(crate) const HASH_KEY: &str = "powers of the hash key";

/// Shares ready for computing.
pub(crate) struct ExpandedKey {
    pub(crate) round_keys: AnyShared,
    /// The round keys of the second key, for a mode that takes two.
    pub(crate) second: Option<AnyShared>,
    /// For keys made for a mode with CMAC, `envelope` and key blocks among them, or to derive others or
    /// bytes.
    pub(crate) subkeys: Option<(AnyShared, AnyShared)>,
    /// For keys made for GCM.
    pub(crate) hash_key: Option<GhashKey>,
}

/// A key as it was read.
pub(crate) struct StoredShares {
    /// The round keys of the key, and of a second one.
    round_keys: Vec<StoredRoundKeys>,
    subkeys: Option<(AnyShared, AnyShared)>,
    hash_key: Option<GhashKey>,
}

enum StoredRoundKeys {
    Whole(AnyShared),
    Kept(AnyShared),
}

impl StoredShares {
    /// Reads stored shares. An error if something is missing that the key's modes need, or is damaged: no
    /// other node has to do with it.
    pub(crate) fn restore(info: &KeyInfo, shares: &Shares, protocol: &AnyServiceSession) -> Result<Self> {
        let name = &info.properties.name;
        let part = |part: &str| protocol.restore(stored(name, shares, part)?);
        let round_keys = |name: &&str| match shares.get(&bits_of(name)) {
            Some(bits) => Ok(StoredRoundKeys::Kept(protocol.restore(bits)?)),
            None => Ok(StoredRoundKeys::Whole(part(name)?)),
        };
        Ok(StoredShares {
            round_keys: [ROUND_KEYS, SECOND]
                .iter()
                .take(info.properties.parts())
                .map(round_keys)
                .collect::<Result<_>>()?,
            subkeys: match info.properties.needs_subkeys() {
                true => Some((part(SUBKEYS[0])?, part(SUBKEYS[1])?)),
                false => None,
            },
            hash_key: match info.properties.needs_hash_key() {
                true => Some(GhashKey::restore(protocol, stored(name, shares, HASH_KEY)?)?),
                false => None,
            },
        })
    }

    /// The key with its round keys computed from their kept bits. No message.
    pub(crate) fn expand(
        self,
        circuits: &Circuits,
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<ExpandedKey> {
        let mut round_keys = self.round_keys.into_iter().map(|stored| match stored {
            StoredRoundKeys::Whole(round_keys) => Ok(round_keys),
            StoredRoundKeys::Kept(bits) => from_kept(&bits, circuits, protocol, net),
        });
        let none = || Error::misuse("a key has no round keys");
        Ok(ExpandedKey {
            round_keys: round_keys.next().ok_or_else(none)??,
            second: round_keys.next().transpose()?,
            subkeys: self.subkeys,
            hash_key: self.hash_key,
        })
    }
}

impl ExpandedKey {
    /// The shares as they are stored, with those of the key itself if it may be wrapped.
    pub(crate) fn save(&self, raw: Option<&AnyShared>, protocol: &AnyServiceSession) -> Shares {
        let mut shares = Shares::new();
        if let Some(key) = raw {
            shares.insert(RAW.into(), protocol.save(key));
        }
        shares.insert(ROUND_KEYS.into(), protocol.save(&self.round_keys));
        if let Some(second) = &self.second {
            shares.insert(SECOND.into(), protocol.save(second));
        }
        if let Some((k1, k2)) = &self.subkeys {
            shares.insert(SUBKEYS[0].into(), protocol.save(k1));
            shares.insert(SUBKEYS[1].into(), protocol.save(k2));
        }
        if let Some(powers) = &self.hash_key {
            shares.insert(HASH_KEY.into(), powers.save(protocol));
        }
        shares
    }
}

/// Of all bits of some round keys, one key a lane, those that are stored; `None` if round keys of this cipher
/// are stored as they are. No message.
pub(crate) fn kept(
    bits: &AnyShared,
    lanes: usize,
    circuits: &Circuits,
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Option<AnyShared>> {
    let Some(KeptBits { keep, .. }) = &*circuits.keys.kept_bits(circuits, protocol)? else { return Ok(None) };
    Ok(Some(run(protocol, net, keep, lanes, &[Input::Shared(bits)])?.remove(0)))
}

/// Round keys from the bits of them that are stored.
fn from_kept(
    bits: &AnyShared,
    circuits: &Circuits,
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<AnyShared> {
    match &*circuits.keys.kept_bits(circuits, protocol)? {
        Some(KeptBits { whole, .. }) => Ok(run(protocol, net, whole, 1, &[Input::Shared(bits)])?.remove(0)),
        None => Err(Error::System("a key is stored by bits that its cipher does not have".into())),
    }
}

/// Stores these bits of a part in its place.
pub(crate) fn put_kept(shares: &mut Shares, part: &str, bits: &AnyShared, protocol: &AnyServiceSession) {
    shares.remove(part);
    shares.insert(bits_of(part), protocol.save(bits));
}

fn bits_of(part: &str) -> String {
    [part, BITS].concat()
}

/// A key that is kept as itself alone, and cannot be used.
pub(crate) fn only_itself(key: &AnyShared, protocol: &AnyServiceSession) -> Shares {
    Shares::from([(RAW.into(), protocol.save(key))])
}

/// A key itself. A node has shares of it if the key may be wrapped.
pub(crate) fn raw_key(name: &str, shares: &Shares, protocol: &AnyServiceSession) -> Result<AnyShared> {
    protocol.restore(stored(name, shares, RAW)?)
}

/// The parts that a node stores of a key.
pub(crate) fn shares_for(key: &NewKey) -> Vec<&'static str> {
    let parts = [
        (key.wrappable, RAW),
        (true, ROUND_KEYS),
        (key.parts() > 1, SECOND),
        (key.needs_subkeys(), SUBKEYS[0]),
        (key.needs_subkeys(), SUBKEYS[1]),
        (key.needs_hash_key(), HASH_KEY),
    ];
    parts.into_iter().filter_map(|(is_there, part)| is_there.then_some(part)).collect()
}

fn stored<'s>(name: &str, shares: &'s Shares, part: &str) -> Result<&'s Zeroizing<Vec<u8>>> {
    let missing =
        || Error::System(format!("the stored key {name} lacks its {part}; restore a backup of this node"));
    shares.get(part).ok_or_else(missing)
}

/// The refusal of a use of a key whose share is damaged here.
pub(crate) fn unreadable(name: &str) -> Refusal {
    let message = format!(
        "its share of the key '{name}' is damaged and cannot be read; its operator can restore a backup, and until then others serve"
    );
    Refusal::new(Reason::Internal, message)
}
