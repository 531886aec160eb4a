//! The keys that all nodes hold. A refresh carries them over.
//!
//! **Deletions that were interrupted.** Before any node deletes a key, all of them have noted durably that
//! they are about to (`store/src/deletions.rs`). So a key that is deleted at some nodes is deleted at the
//! others, too, if each of those has this note: every one of them had accepted the client's request.
//! Otherwise no node's word deletes a key at another, and the refresh stops. If no node says that the key is
//! deleted, it stays, and the notes end. All nodes have heard the same lists, so they conclude the same. A
//! deleted key does not come back: a node that has deleted it says so, and then it is never refreshed.

use std::collections::BTreeMap;

use polyclave_api as api;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party};
use polyclave_store::{HeldKey, KeyState, Store};
use polyclave_transport::TlsNet;

use super::compare;
use crate::Result;
use crate::error::system;
use crate::peers::exchange::tell_all;

/// The most keys that a node accepts in another node's list.
const MAX_KEYS: usize = 1 << 20;
/// Bytes of a key in a list: its id, its state, and a digest of its properties.
pub(super) const LISTED: usize = 16 + 1 + 32;

/// The keys of a node, as all nodes have them.
pub(super) struct Held {
    /// Those that all nodes hold, in the same order at all of them.
    pub(super) common: Vec<HeldKey>,
    /// Those whose deletion other nodes have completed.
    pub(super) deleted: Vec<HeldKey>,
}

/// What all nodes conclude from what each of them holds.
pub(super) fn common_keys(store: &Store, net: &mut TlsNet) -> Result<Held> {
    let held = store.held_keys().map_err(system)?;
    let mine = held.iter().map(listed).collect::<Result<Vec<_>>>()?;
    let lists = tell_lists(&mine, net)?;
    let mut heard: Vec<&[Listed]> = lists.iter().map(Vec::as_slice).collect();
    heard.insert(net.me().index(), &mine);
    compare("keys", &heard.concat().concat(), net)?;
    let Ids { common, deleted } = common(&mine, &lists)?;
    let is_among = |ids: &[[u8; 16]]| {
        let ids = ids.to_vec();
        move |key: &HeldKey| ids.binary_search(&key.id).is_ok()
    };
    let (common, ending): (Vec<_>, Vec<_>) = held.into_iter().partition(is_among(&common));
    let (mut deleted, ending): (Vec<_>, Vec<_>) = ending.into_iter().partition(is_among(&deleted));
    deleted.retain(|key| key.state != KeyState::Deleted);
    let components = components(&ending);
    if components > 0 {
        tracing::warn!(
            components,
            "components of keys end with this refresh, because not all nodes have them: they have to be given again"
        );
    }
    Ok(Held { common, deleted })
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
/// An announced session key or component of a key. It is refreshed if all nodes have it, and ends with the
/// old common secrets otherwise: by some clocks its time may have ended, and a crash can have left it at some
/// nodes. So a cheating node can end them.
pub(super) const TEMPORARY: u8 = 4;
/// An announced key that this node is about to delete, because a client asked all nodes for it.
pub(super) const BEING_DELETED: u8 = 5;

fn listed(key: &HeldKey) -> Result<Listed> {
    let mut bytes = [0; LISTED];
    bytes[..16].copy_from_slice(&key.id);
    bytes[16] = match key.state {
        KeyState::Pending => PENDING,
        KeyState::Announced if key.info.as_ref().is_some_and(|info| info.ends().is_some()) => TEMPORARY,
        KeyState::Announced if key.deletion_begun => BEING_DELETED,
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

/// The ids of keys, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ids {
    /// All nodes hold them.
    pub(super) common: Vec<[u8; 16]>,
    /// Some nodes have deleted them, and all others are about to.
    pub(super) deleted: Vec<[u8; 16]>,
}

/// The result is computed from all lists, so it is the same at all nodes. No other node's word deletes a key
/// here, except a session key or a component of a key ([`TEMPORARY`]), and one that this node is about to
/// delete itself ([`BEING_DELETED`]).
pub(super) fn common(mine: &[Listed], theirs: &[Vec<Listed>]) -> Result<Ids> {
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
    let mut ids = Ids::default();
    for (id, entries) in entries {
        let is = |state: u8| entries.iter().any(|key| key[16] == state);
        let alike = entries.iter().all(|key| key[17..] == entries[0][17..]);
        match () {
            () if entries.len() == nodes && alike && !is(DELETED) => ids.common.push(id),
            () if is(DELETED) && is(BEING_DELETED) && !is(ANNOUNCED) => ids.deleted.push(id),
            () if is(ANNOUNCED) || is(BEING_DELETED) => {
                return Err(Error::System(format!(
                    "not all nodes hold the key with the id {}: restore the backup of the node that lacks it, or delete it at \
                     all of them, and order the refresh again",
                    hex::encode(id)
                )));
            }
            // Its making was never completed, or it is deleted at all nodes.
            () => {}
        }
    }
    Ok(ids)
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
        if lens[party.index()] > MAX_KEYS {
            return Err(Error::System(format!(
                "{party} lists more keys, deleted ones included, than {MAX_KEYS}"
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

    fn kept(ids: &[u8]) -> Result<Ids> {
        Ok(Ids { common: ids.iter().map(|id| [*id; 16]).collect(), deleted: Vec::new() })
    }

    fn entry(id: u8, state: u8) -> Listed {
        let mut bytes = [9; LISTED];
        bytes[..16].fill(id);
        bytes[16] = state;
        bytes
    }

    #[test]
    fn keys_that_all_hold_are_refreshed() {
        let mine = [entry(1, ANNOUNCED), entry(2, PENDING), entry(3, PENDING), entry(5, DELETED)];
        let theirs = vec![entry(1, PENDING), entry(2, PENDING), entry(5, DELETED), entry(7, PENDING)];
        assert_eq!(common(&mine, &[theirs]), kept(&[1, 2]));
        assert!(common(&[entry(1, ANNOUNCED)], &[vec![]]).is_err(), "a backup could save it");
        let ended = common(&[entry(1, TEMPORARY), entry(2, TEMPORARY)], &[vec![entry(1, PENDING)]]);
        assert_eq!(ended, kept(&[1]), "the time of a session key has ended at one of them");
        let deleted = common(&[entry(1, ANNOUNCED)], &[vec![entry(1, DELETED)]]);
        assert!(deleted.is_err(), "one node's word deletes nothing");
        for of_other in [vec![entry(3, DELETED)], vec![entry(3, PENDING)], vec![]] {
            let lists = [vec![entry(3, DELETED)], of_other];
            assert_eq!(common(&[entry(3, TEMPORARY)], &lists), kept(&[]), "it ends, and stops nothing");
        }
        let mut other = entry(1, ANNOUNCED);
        other[40] ^= 1;
        assert!(common(&[entry(1, ANNOUNCED)], &[vec![other]]).is_err(), "another key under the same id");
        other[16] = TEMPORARY;
        assert_eq!(
            common(&[entry(1, TEMPORARY)], &[vec![other]]),
            kept(&[]),
            "neither of the two is refreshed"
        );
        assert!(common(&[entry(1, ANNOUNCED)], &[vec![other]]).is_err(), "who holds a key is told of it");
        assert!(common(&[], &[vec![entry(1, ANNOUNCED); 2]]).is_err(), "one node speaks once for a key");
    }

    #[test]
    fn a_deletion_that_was_interrupted_is_completed_if_every_holder_had_accepted_it_and_given_up_if_nobody_has_deleted()
     {
        let (here, gone) = (entry(1, BEING_DELETED), entry(1, DELETED));
        let others = |others: &[Listed]| others.iter().map(|key| vec![*key]).collect::<Vec<_>>();
        let deleted = Ok(Ids { common: Vec::new(), deleted: vec![[1; 16]] });
        assert_eq!(common(&[here], &others(&[gone, here])), deleted);
        assert_eq!(common(&[gone], &others(&[gone, here])), deleted, "the same at all nodes");
        assert_eq!(
            common(&[here], &others(&[gone, entry(1, PENDING)])),
            deleted,
            "it was never announced there"
        );
        assert_eq!(common(&[here], &[vec![gone], vec![]]), deleted, "it was never stored there");
        assert_eq!(
            common(&[here], &others(&[here, entry(1, ANNOUNCED)])),
            kept(&[1]),
            "nobody has deleted it"
        );
        let held = entry(1, ANNOUNCED);
        for lists in [others(&[gone, held]), others(&[held, gone])] {
            assert!(common(&[here], &lists).is_err(), "one node had not accepted the deletion");
        }
        assert!(common(&[held], &others(&[gone, here])).is_err(), "nor this one");
        assert!(common(&[here], &[vec![here], vec![]]).is_err(), "a backup could save it");
    }

    #[test]
    fn components_that_end_with_a_refresh_are_counted_and_deleted_or_unfinished_ones_are_not() {
        let held = |stored: StoredKey, state| {
            let (id, deletion_begun) = (stored.info.id, false);
            HeldKey { id, state, info: Some(stored.info), deletion_begun }
        };
        let gone = HeldKey { id: [4; 16], state: KeyState::Deleted, info: None, deletion_begun: false };
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
