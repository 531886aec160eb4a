//! At a new node: keys that have arrived under masks, with everything that their modes need. What follows from the round keys is computed for
//! all keys of a cipher together, one key a lane: E(0), the subkeys of CMAC, and the powers of the hash key of GCM.

use std::collections::{BTreeMap, HashMap};

use polyclave_cipher::{Cells, Compiled, CompiledPort, compile_with_views, modes};
use polyclave_protocol::Error;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::ghash::GhashKey;
use polyclave_protocol::handover::{Arrived, Shape};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Session};
use polyclave_protocol::service::ServiceSession;
use polyclave_transport::wire::Mode;

use super::masks::Batch;
use super::offers::Common;
use crate::Result;
use crate::computation::circuits::{Circuits, Library};
use crate::computation::pieces::run;
use crate::keys::key::{ExpandedKey, RAW, ROUND_KEYS, SECOND, needs_subkeys, only_itself};
use crate::store::MovedKey;

/// By cipher: `zero` and `round_keys` to `hash_key`, `k1` and `k2`, one key a lane.
pub(super) type Subkeys = HashMap<String, Compiled>;

/// What has arrived of a key, and what was computed from it.
#[derive(Default)]
struct Parts {
    raw: Option<AnyShared>,
    round_keys: Option<AnyShared>,
    second: Option<AnyShared>,
    subkeys: Option<(AnyShared, AnyShared)>,
    hash_key: Option<GhashKey>,
}

/// The keys of a piece, as this node stores them.
pub(super) fn received(
    (piece, batches): (&[Common], &[Batch<'_>]),
    arrived: &Arrived,
    (library, known): (&Library, &mut Subkeys),
    session: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Vec<MovedKey>> {
    let mut all: BTreeMap<[u8; 16], Parts> = BTreeMap::new();
    for batch in batches {
        let cipher = batch.cipher();
        let unknown = || Error::System(format!("this version knows no cipher '{cipher}'"));
        let circuits = library.of(cipher, session).ok_or_else(unknown)?;
        let port: &CompiledPort =
            if batch.part == RAW { &circuits.key } else { &circuits.key_schedule.outputs()[0] };
        let shape = Shape { count: port.cells.len(), bits: port.bits, lanes: batch.keys.len() };
        let values = arrived.value(batch.at, shape, &port.views(), session, net)?;
        for (lane, key) in batch.keys.iter().enumerate() {
            let parts = all.entry(key.info.id).or_default();
            let part = match batch.part {
                ROUND_KEYS => &mut parts.round_keys,
                SECOND => &mut parts.second,
                _ => &mut parts.raw,
            };
            *part = Some(session.lanes(&values, lane..lane + 1));
        }
        if batch.part == ROUND_KEYS {
            complete((batch, &values), (&circuits, known), &mut all, session, net)?;
        }
    }
    let mut keys = Vec::with_capacity(piece.len());
    for key in piece {
        let Parts { raw, round_keys, second, subkeys, hash_key } =
            all.remove(&key.info.id).unwrap_or_default();
        let shares = match (round_keys, &raw) {
            (Some(round_keys), _) => {
                ExpandedKey { round_keys, second, subkeys, hash_key }.save(raw.as_ref(), session)
            }
            (None, Some(raw)) => only_itself(raw, session),
            (None, None) => {
                let name = &key.info.properties.name;
                return Err(Error::System(format!("nothing of the key {name} has arrived")));
            }
        };
        keys.push(MovedKey { info: key.info.clone(), spent: key.spent, shares });
    }
    session.check(net)?;
    Ok(keys)
}

/// What the modes and usages of some keys need besides their round keys.
fn complete(
    (batch, round_keys): (&Batch<'_>, &AnyShared),
    (circuits, known): (&Circuits, &mut Subkeys),
    all: &mut BTreeMap<[u8; 16], Parts>,
    session: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<()> {
    let hashes = |lane: usize| batch.keys[lane].info.properties.modes.contains(&Mode::Gcm);
    let computes_codes = |lane: usize| needs_subkeys(&batch.keys[lane].info.properties);
    let lanes: Vec<usize> =
        (0..batch.keys.len()).filter(|lane| hashes(*lane) || computes_codes(*lane)).collect();
    if lanes.is_empty() {
        return Ok(());
    }
    let circuit = match known.entry(batch.cipher().to_owned()) {
        std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::hash_map::Entry::Vacant(place) => {
            let of_one = &circuits.chained()?.subkeys;
            let (all, views) = (modes::subkeys_of_all(&circuits.cipher), of_one.outputs()[0].views());
            place.insert(compile_with_views(&all, session, |_| views.clone()))
        }
    };
    let zero = &circuit.inputs()[0];
    let zeros = Cells::zero(zero.cells.len(), zero.bits, lanes.len());
    let round_keys = session.select_lanes(round_keys, &lanes);
    let inputs = [Input::Public(&zeros), Input::Shared(&round_keys)];
    let values = run(session, net, circuit, lanes.len(), &inputs)?;
    let [h, k1, k2] = &values[..] else {
        return Err(Error::misuse("other values came out of a circuit than it has"));
    };
    let of_hashes: Vec<usize> = (0..lanes.len()).filter(|i| hashes(lanes[*i])).collect();
    if !of_hashes.is_empty() {
        let h = session.elements(&session.select_lanes(h, &of_hashes), net)?;
        let powers = GhashKey::derive_all(session.arithmetic(), &h, net)?;
        for (i, powers) in of_hashes.into_iter().zip(powers) {
            all.entry(batch.keys[lanes[i]].info.id).or_default().hash_key = Some(powers);
        }
    }
    for (i, lane) in lanes.into_iter().enumerate().filter(|(_, lane)| computes_codes(*lane)) {
        let [k1, k2] = [k1, k2].map(|k| session.lanes(k, i..i + 1));
        all.entry(batch.keys[lane].info.id).or_default().subkeys = Some((k1, k2));
    }
    Ok(())
}
