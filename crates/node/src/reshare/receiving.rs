//! At a new node: keys that have arrived under masks, with everything that their modes need. What follows
//! from the round keys is computed for all keys of a cipher together, one key a lane: E(0), the subkeys of
//! CMAC, the powers of the hash key of GCM, and the check value, which is compared with the one that was
//! stored.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use polyclave_api::NewKey;
use polyclave_cipher::{Compiled, CompiledPort, Matrix, compile, compile_with_views, modes};
use polyclave_protocol::Error;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::ghash::GhashKey;
use polyclave_protocol::handover::{Arrived, Shape, Sums};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Session;
use polyclave_protocol::service::ServiceSession;
use polyclave_store::MovedKey;

use super::masks::KeyGroup;
use super::moving::{evaluated_on_zeros, opened_check_values, refuse_wrong_check_value};
use super::offers::Common;
use crate::Result;
use crate::computation::circuits::{Circuits, Library, Own};
use crate::computation::hmac_circuits::{Hashing, HmacCircuits};
use crate::computation::key::{ExpandedKey, RAW, ROUND_KEYS, SECOND, kept, only_itself, put_kept};

/// Circuits that were compiled for keys before.
#[derive(Default)]
pub(crate) struct Completions {
    /// By cipher: `zero` and `round_keys` to `hash_key`, `k1`, `k2` and `check_value`, one key a lane. A
    /// cipher that takes a tweak has the last one only.
    by_cipher: HashMap<String, Compiled>,
    hmac: Arc<HmacCircuits>,
    sums: Sums,
}

/// The circuits that keys are for, and those that are evaluated here.
pub(crate) struct Known<'k> {
    pub(crate) library: &'k Library,
    /// A session of the kind that will use the keys: which views of their cells are stored follows from it.
    pub(crate) stored: &'k AnyServiceSession,
    pub(crate) completions: &'k mut Completions,
    /// Whether round keys are stored by those of their bits from which the others follow.
    pub(crate) by_bits: bool,
}

/// What has arrived of a key, and what was computed from it.
#[derive(Default)]
struct Parts {
    raw: Option<AnyShared>,
    round_keys: Option<AnyShared>,
    second: Option<AnyShared>,
    /// Bits that are stored in the place of a part.
    bits: Vec<(&'static str, AnyShared)>,
    subkeys: Option<(AnyShared, AnyShared)>,
    hash_key: Option<GhashKey>,
    /// The check value; of both keys, for a mode that takes two.
    check_value: Vec<u8>,
}

/// The keys of a piece, as this node stores them.
pub(crate) fn received(
    (piece, batches): (&[Common], &[KeyGroup<'_>]),
    arrived: &Arrived,
    Known { library, stored, completions, by_bits }: Known<'_>,
    session: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Vec<MovedKey>> {
    let Completions { by_cipher, hmac, sums } = completions;
    let mut all: BTreeMap<[u8; 16], Parts> = BTreeMap::new();
    for batch in batches {
        let cipher = batch.cipher();
        let unknown = || Error::System(format!("this version knows no cipher '{cipher}'"));
        let circuits = library.of(cipher, stored).ok_or_else(unknown)?;
        let port: &CompiledPort = if batch.part == RAW { &circuits.key } else { &circuits.round_keys };
        let shape = Shape { count: port.cells.len(), bits: port.bits, lanes: batch.keys.len() };
        let stored_views = port.views();
        let values = arrived.value((batch.at, shape), &stored_views, sums, session, net)?;
        for (lane, key) in batch.keys.iter().enumerate() {
            let parts = all.entry(key.info.id).or_default();
            let part = match batch.part {
                ROUND_KEYS => &mut parts.round_keys,
                SECOND => &mut parts.second,
                _ => &mut parts.raw,
            };
            *part = Some(session.lanes(&values, lane..lane + 1));
        }
        if batch.part != RAW && by_bits {
            let bits = Shape { count: shape.count * usize::from(shape.bits), bits: 1, ..shape };
            let bits = arrived.value((batch.at, bits), &[Matrix::identity(1)], sums, session, net)?;
            if let Some(kept) = kept(&bits, shape.lanes, &circuits, session, net)? {
                for (lane, key) in batch.keys.iter().enumerate() {
                    let bits = session.lanes(&kept, lane..lane + 1);
                    all.entry(key.info.id).or_default().bits.push((batch.part, bits));
                }
            }
        }
        if batch.part != RAW {
            let completion = match circuits.own() {
                Own::Cipher(_) => Completion::Cipher(completion(&circuits, by_cipher, session)?),
                Own::Hmac(own) => Completion::Hmac(Hashing::new(own.hash, hmac)),
            };
            let views = completion.views();
            // The check value is computed from the shares that are stored. Another form of the protocol may
            // need other views of them, and bits may be stored in their place: these are linear images of the
            // same masks and the same public bytes, which every node computes alone, so no party can make
            // them differ.
            let of_other_views;
            let round_keys = if views == stored_views {
                &values
            } else {
                of_other_views = arrived.value((batch.at, shape), &views, sums, session, net)?;
                &of_other_views
            };
            complete((batch, round_keys), &completion, &mut all, session, net)?;
        }
    }
    let mut keys = Vec::with_capacity(piece.len());
    for key in piece {
        let Parts { raw, round_keys, second, bits, subkeys, hash_key, check_value } =
            all.remove(&key.info.id).unwrap_or_default();
        // A component of a key has no round keys before it is combined. Only the check of what was dealt
        // speaks for it.
        if round_keys.is_some() {
            refuse_wrong_check_value(&key.info, &check_value)?;
        }
        let mut shares = match (round_keys, &raw) {
            (Some(round_keys), _) => {
                ExpandedKey { round_keys, second, subkeys, hash_key }.save(raw.as_ref(), session)
            }
            (None, Some(raw)) => only_itself(raw, session),
            (None, None) => {
                let name = &key.info.properties.name;
                return Err(Error::System(format!("nothing of the key {name} has arrived")));
            }
        };
        bits.iter().for_each(|(part, bits)| put_kept(&mut shares, part, bits, session));
        keys.push(key.moved(shares));
    }
    session.check(net)?;
    Ok(keys)
}

/// What computes the check values of keys, and what else follows from their round keys.
enum Completion<'c> {
    Cipher(&'c Compiled),
    Hmac(Hashing),
}

impl Completion<'_> {
    /// The views of round keys from which it starts.
    fn views(&self) -> Vec<Matrix> {
        match self {
            Completion::Cipher(circuit) => circuit.inputs()[1].views(),
            Completion::Hmac(_) => vec![Matrix::identity(1)],
        }
    }
}

/// What the modes and usages of some keys need besides their round keys, and their check values. For second
/// keys, only their check values.
fn complete(
    (batch, round_keys): (&KeyGroup<'_>, &AnyShared),
    completion: &Completion<'_>,
    all: &mut BTreeMap<[u8; 16], Parts>,
    session: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<()> {
    let mut values = match completion {
        Completion::Cipher(circuit) => {
            evaluated_on_zeros(circuit, round_keys, batch.keys.len(), session, net)?
        }
        Completion::Hmac(hashing) => {
            vec![hashing.check_values((round_keys, batch.keys.len()), session, net)?]
        }
    };
    let check_values = values.pop().ok_or_else(|| Error::misuse("no check value came out of a circuit"))?;
    let check_values = opened_check_values(&check_values, batch.keys.len(), session, net)?;
    for (key, check_value) in batch.keys.iter().zip(check_values) {
        all.entry(key.info.id).or_default().check_value.extend(check_value);
    }
    let lanes = |is_wanted: &dyn Fn(&NewKey) -> bool| -> Vec<usize> {
        let is_wanted =
            |lane: &usize| batch.part == ROUND_KEYS && is_wanted(&batch.keys[*lane].info.properties);
        (0..batch.keys.len()).filter(is_wanted).collect()
    };
    let hashes = lanes(&NewKey::needs_hash_key);
    let compute_codes = lanes(&NewKey::needs_subkeys);
    if hashes.is_empty() && compute_codes.is_empty() {
        return Ok(());
    }
    let [h, k1, k2] = &values[..] else {
        return Err(Error::misuse("a cipher that takes a tweak has no subkeys"));
    };
    if !hashes.is_empty() {
        let h = session.elements(&session.select_lanes(h, &hashes), net)?;
        let powers = GhashKey::derive_all(session.arithmetic(), &h, net)?;
        for (lane, powers) in hashes.into_iter().zip(powers) {
            all.entry(batch.keys[lane].info.id).or_default().hash_key = Some(powers);
        }
    }
    for lane in compute_codes {
        let [k1, k2] = [k1, k2].map(|k| session.lanes(k, lane..lane + 1));
        all.entry(batch.keys[lane].info.id).or_default().subkeys = Some((k1, k2));
    }
    Ok(())
}

fn completion<'k>(
    circuits: &Circuits,
    known: &'k mut HashMap<String, Compiled>,
    session: &AnyServiceSession,
) -> Result<&'k Compiled> {
    match known.entry(circuits.cipher.name.clone()) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(place) => Ok(place.insert(compiled(circuits, session)?)),
    }
}

fn compiled(circuits: &Circuits, session: &AnyServiceSession) -> Result<Compiled> {
    if !circuits.chains_blocks() {
        return Ok(compile(&modes::check_values(&circuits.cipher), session));
    }
    let subkeys = circuits.chained()?.subkeys.outputs()[0].views();
    Ok(compile_with_views(&modes::subkeys_and_check_values(&circuits.cipher), session, |port| {
        match port.name == "check_value" {
            true => vec![Matrix::identity(port.bits)],
            false => subkeys.clone(),
        }
    }))
}
