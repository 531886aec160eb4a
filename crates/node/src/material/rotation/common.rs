//! The keys that all nodes hold. A rotation carries them over.

use std::collections::BTreeMap;

use polyclave_api as api;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party};
use polyclave_transport::TlsNet;

use super::compare;
use crate::Result;
use crate::error::system;
use crate::peers::exchange::tell_all;
use polyclave_store::{HeldKey, KeyState, Store};

/// The most keys that a node accepts in another node's list.
const MOST_KEYS: usize = 1 << 20;
/// Bytes of a key in a list: its id, its state, and a digest of its properties.
pub(super) const LISTED: usize = 16 + 1 + 32;

/// The keys that all nodes hold, in the same order at all of them.
pub(super) fn common_keys(store: &Store, net: &mut TlsNet) -> Result<Vec<HeldKey>> {
    let held = store.held_keys().map_err(system)?;
    let mine = held.iter().map(listed).collect::<Result<Vec<_>>>()?;
    let lists = tell_lists(&mine, net)?;
    let mut heard: Vec<&[Listed]> = lists.iter().map(Vec::as_slice).collect();
    heard.insert(net.me().index(), &mine);
    compare("keys", &heard.concat().concat(), net)?;
    let common = common(&mine, &lists)?;
    let (carried, ending): (Vec<_>, Vec<_>) =
        held.into_iter().partition(|key| common.binary_search(&key.id).is_ok());
    let components = components(&ending);
    if components > 0 {
        tracing::warn!(
            components,
            "components of keys end with this refresh, because not all nodes have them: they have to be given again"
        );
    }
    Ok(carried)
}

/// How many components of keys there are among some that end.
fn components(ending: &[HeldKey]) -> usize {
    let is_component = |key: &&HeldKey| {
        key.state == KeyState::Announced && key.info.as_ref().is_some_and(|info| info.component.is_some())
    };
    ending.iter().filter(is_component).count()
}

pub(super) type Listed = [u8; LISTED];

pub(super) const PENDING: u8 = 1;
pub(super) const ANNOUNCED: u8 = 2;
pub(super) const DELETED: u8 = 3;
/// An announced session key or component of a key. It is carried over if all nodes have it, and ends with the old common secrets otherwise: by
/// some clocks its time may have ended, and a crash can have left it at some nodes. So a cheating node can end them.
pub(super) const TEMPORARY: u8 = 4;

fn listed(key: &HeldKey) -> Result<Listed> {
    let mut bytes = [0; LISTED];
    bytes[..16].copy_from_slice(&key.id);
    bytes[16] = match key.state {
        KeyState::Pending => PENDING,
        KeyState::Announced if key.info.as_ref().is_some_and(|info| info.ends().is_some()) => TEMPORARY,
        KeyState::Announced => ANNOUNCED,
        KeyState::Deleted => DELETED,
    };
    if let Some(info) = &key.info {
        let digest =
            blake3::derive_key("polyclave 2026 properties of a key", &api::encode(&info.identity())?);
        bytes[17..].copy_from_slice(&digest);
    }
    Ok(bytes)
}

/// The ids of the keys that all nodes hold, in order. They follow from all lists, so they are the same at all nodes. No other node's word
/// deletes a key here, except a session key or a component of a key ([`TEMPORARY`]).
pub(super) fn common(mine: &[Listed], theirs: &[Vec<Listed>]) -> Result<Vec<[u8; 16]>> {
    let nodes = 1 + theirs.len();
    let mut entries: BTreeMap<[u8; 16], Vec<&Listed>> = BTreeMap::new();
    for list in [mine].into_iter().chain(theirs.iter().map(Vec::as_slice)) {
        let mut ids: Vec<[u8; 16]> = list.iter().map(id_of).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::System("a node lists a key twice".into()));
        }
        list.iter().for_each(|key| entries.entry(id_of(key)).or_default().push(key));
    }
    let mut common = Vec::new();
    for (id, entries) in entries {
        let is = |state: u8| entries.iter().any(|key| key[16] == state);
        let alike = entries.iter().all(|key| key[17..] == entries[0][17..]);
        match () {
            () if entries.len() == nodes && alike && !is(DELETED) => common.push(id),
            () if is(ANNOUNCED) => {
                return Err(Error::System(format!(
                    "not all nodes hold the key with the id {}: restore the backup of the node that lacks it, or delete it at \
                     all of them, and order the rotation again",
                    hex::encode(id)
                )));
            }
            // Its making was never completed, or it is deleted at all nodes.
            () => {}
        }
    }
    Ok(common)
}

fn id_of(key: &Listed) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&key[..16]);
    id
}

/// Sends a list to every other node, and returns what each has sent.
fn tell_lists(mine: &[Listed], net: &mut TlsNet) -> Result<Vec<Vec<Listed>>> {
    let me = net.me();
    let bytes = mine.concat();
    let mut lens = vec![0; net.parties()];
    for (party, len) in tell_all(&(mine.len() as u64).to_le_bytes(), net)? {
        lens[party.index()] = usize::try_from(u64::from_le_bytes(len)).unwrap_or(usize::MAX);
        if lens[party.index()] > MOST_KEYS {
            return Err(Error::System(format!(
                "{party} lists more keys, deleted ones included, than {MOST_KEYS}"
            )));
        }
    }
    let mut buffers: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; len * LISTED]).collect();
    let out: Vec<&[u8]> =
        Party::all(net.parties()).map(|p| if p == me { &[][..] } else { &bytes[..] }).collect();
    net.exchange(&out, &mut buffers.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    let others = Party::all(net.parties()).zip(buffers).filter(|(p, _)| *p != me);
    Ok(others.map(|(_, list)| list.as_chunks().0.to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_store::StoredKey;
    use polyclave_store::testing::{component, key};

    fn entry(id: u8, state: u8) -> Listed {
        let mut bytes = [9; LISTED];
        bytes[..16].fill(id);
        bytes[16] = state;
        bytes
    }

    #[test]
    fn keys_that_all_hold_are_carried_over() {
        let mine = [entry(1, ANNOUNCED), entry(2, PENDING), entry(3, PENDING), entry(5, DELETED)];
        let theirs = vec![entry(1, PENDING), entry(2, PENDING), entry(5, DELETED), entry(7, PENDING)];
        assert_eq!(common(&mine, &[theirs]), Ok(vec![[1; 16], [2; 16]]));
        assert!(common(&[entry(1, ANNOUNCED)], &[vec![]]).is_err(), "a backup could save it");
        let ended = common(&[entry(1, TEMPORARY), entry(2, TEMPORARY)], &[vec![entry(1, PENDING)]]);
        assert_eq!(ended, Ok(vec![[1; 16]]), "the time of a session key has ended at one of them");
        let deleted = common(&[entry(1, ANNOUNCED)], &[vec![entry(1, DELETED)]]);
        assert!(deleted.is_err(), "one node's word deletes nothing");
        for of_other in [vec![entry(3, DELETED)], vec![entry(3, PENDING)], vec![]] {
            let lists = [vec![entry(3, DELETED)], of_other];
            assert_eq!(common(&[entry(3, TEMPORARY)], &lists), Ok(vec![]), "it ends, and stops nothing");
        }
        let mut other = entry(1, ANNOUNCED);
        other[40] ^= 1;
        assert!(common(&[entry(1, ANNOUNCED)], &[vec![other]]).is_err(), "another key under the same id");
        other[16] = TEMPORARY;
        assert_eq!(
            common(&[entry(1, TEMPORARY)], &[vec![other]]),
            Ok(vec![]),
            "neither of the two is carried over"
        );
        assert!(common(&[entry(1, ANNOUNCED)], &[vec![other]]).is_err(), "who holds a key is told of it");
        assert!(common(&[], &[vec![entry(1, ANNOUNCED); 2]]).is_err(), "one node speaks once for a key");
    }

    #[test]
    fn components_that_end_with_a_refresh_are_counted_and_deleted_or_unfinished_ones_are_not() {
        let held = |stored: StoredKey, state| HeldKey { id: stored.info.id, state, info: Some(stored.info) };
        let gone = HeldKey { id: [4; 16], state: KeyState::Deleted, info: None };
        let part = |seed| component("zone", seed, seed);
        let ending = [
            held(part(1), KeyState::Announced),
            held(part(2), KeyState::Pending),
            held(key("zone", 3), KeyState::Announced),
            gone,
        ];
        assert_eq!((components(&ending), components(&ending[1..])), (1, 0));
    }
}
