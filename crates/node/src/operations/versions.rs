//! Requests about the versions of a key: the next one is made, or what an old one may be used for changes.
//!
//! **The next version** is made like a key: all nodes store it, then all announce it, then the client is
//! told. A node that is killed in between can leave the newest version pending, or not have it. So the nodes
//! first tell each other their newest versions, and compare what each has heard. If any has announced one,
//! all nodes had stored it, and those where it is pending announce it now. If all hold the same pending one,
//! it is announced, too. Any other pending one was not stored by all, and nobody has announced it: the new
//! version takes its number. So every number stands for one version, at all nodes.
//!
//! **A change** names the new state and not the difference, and only moves forward. Every node judges it for
//! itself, and the hello round then compares that all accept it. A node that was killed before it had written
//! the change makes it when the client repeats it.
//!
//! **A description** has a revision that goes up by one with each change, and a change names the revision
//! before it. The nodes tell each other their revisions and compare what each has heard. The latest at any
//! node counts. It has to be the revision that the client names, or the next one if the nodes that have it
//! hold this very change. So no client overwrites a revision that it has not read, and no number is left out.
//! A node that was killed during a change, or that was restored from a backup, catches up with the next
//! change.

use polyclave_api::{KeyInfo, NewKey, Origin, Reason, Refusal, Reply};

use crate::computation::modes::StepError;
use crate::keys::held::no_key;
use crate::peers::exchange::tell_all;
use crate::requests::agreement::agree;
use crate::requests::conversation::Serving;
use polyclave_protocol::Party;
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::net::Net;

/// The number and the id of a version.
type Named = (u32, [u8; 16]);

/// A node's newest versions: the announced one, and the pending one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Newest {
    announced: Option<Named>,
    pending: Option<Named>,
}

const NAMED: usize = 4 + 16;

impl Newest {
    fn of([announced, pending]: &[Option<KeyInfo>; 2]) -> Newest {
        let named = |info: &Option<KeyInfo>| info.as_ref().map(|info| (info.version, info.id));
        Newest { announced: named(announced), pending: named(pending) }
    }

    fn encode(&self) -> [u8; 2 * NAMED] {
        let mut bytes = [0; 2 * NAMED];
        for (named, bytes) in [self.announced, self.pending].iter().zip(bytes.as_chunks_mut::<NAMED>().0) {
            let (version, id) = named.unwrap_or_default();
            bytes[..4].copy_from_slice(&version.to_le_bytes());
            bytes[4..].copy_from_slice(&id);
        }
        bytes
    }

    fn decode(bytes: &[u8; 2 * NAMED]) -> Newest {
        let [announced, pending] = [0, 1].map(|i| {
            let (mut version, mut id) = ([0; 4], [0; 16]);
            version.copy_from_slice(&bytes[i * NAMED..][..4]);
            id.copy_from_slice(&bytes[i * NAMED + 4..][..16]);
            let version = u32::from_le_bytes(version);
            (version != 0).then_some((version, id))
        });
        Newest { announced, pending }
    }
}

/// The version that is current at all nodes once those that hold it pending have announced it. The error is
/// the node that lacks it.
fn current(all: &[(Party, Newest)]) -> Result<Option<Named>, Party> {
    let announced = all.iter().filter_map(|(_, newest)| newest.announced).max();
    let shared = all.first().and_then(|(_, newest)| newest.pending);
    let is_newer = |pending: &Named| announced.is_none_or(|announced| pending.0 > announced.0);
    let is_at_all = |named: Named| {
        let lacks = |newest: &Newest| newest.announced != Some(named) && newest.pending != Some(named);
        all.iter().find(|(_, newest)| lacks(newest)).map(|(party, _)| *party)
    };
    match shared.filter(is_newer) {
        Some(pending) if is_at_all(pending).is_none() => Ok(Some(pending)),
        _ => match announced {
            Some(announced) => is_at_all(announced).map_or(Ok(Some(announced)), Err),
            None => Ok(None),
        },
    }
}

impl Serving<'_, '_> {
    /// Makes the next version of a key.
    pub(super) fn rotate(&mut self, mut protocol: AnyServiceSession, name: &str) -> Result<(), StepError> {
        let before = self.settle_newest(name)?;
        self.service.keys.refuse_too_many().map_err(StepError::Refused)?;
        let circuits = self.circuits(&before.properties.cipher, &protocol)?;
        let keys = self.generate(&mut protocol, before.properties.parts(), &circuits)?;
        // It lives as long as its predecessor was to live.
        let lifetime = before.properties.expires.map(|expires| expires.saturating_sub(before.made));
        let expires = move |made: u64| lifetime.map(|lifetime| made.saturating_add(lifetime));
        let next = KeyInfo {
            version: before.version + 1,
            least_version: before.least_version,
            deletable: before.deletable,
            ..KeyInfo::first(before.properties, [0; 16], Origin::Generated, 0, Vec::new())
        };
        self.keep_version(protocol, &keys, (next, expires), &circuits)
    }

    /// Has all nodes come to the same current version, and returns it.
    fn settle_newest(&mut self, name: &str) -> Result<KeyInfo, StepError> {
        let found = self.service.keys.newest(name);
        let mine = found.as_ref().map_or(Newest { announced: None, pending: None }, Newest::of);
        let net = self.net()?;
        let me = net.me();
        let theirs = tell_all(&mine.encode(), net)?;
        let mut all: Vec<(Party, Newest)> =
            theirs.into_iter().map(|(party, bytes)| (party, Newest::decode(&bytes))).collect();
        all.push((me, mine));
        all.sort_by_key(|(party, _)| *party);
        let message: Vec<u8> = all.iter().flat_map(|(_, newest)| newest.encode()).collect();
        let digest = blake3::derive_key("polyclave 2026 newest versions of a key", &message);
        agree(found.as_ref().map(|_| digest).map_err(Clone::clone), net)?.map_err(StepError::Refused)?;
        let named = match current(&all) {
            Ok(Some(named)) => named,
            Ok(None) => return Err(StepError::Refused(no_key(name))),
            Err(lacking) => {
                let message = format!(
                    "{lacking} lacks the current version of the key '{name}': restore a backup of that node that has it"
                );
                return Err(StepError::Refused(Refusal::new(Reason::Disagreement, message)));
            }
        };
        let held = found.unwrap_or_default().into_iter().flatten().find(|info| info.id == named.1);
        let held = held.ok_or_else(|| StepError::Refused(no_key(name)))?;
        self.service.keys.announce(&held).map_err(StepError::Own)?;
        Ok(held)
    }

    /// Refuses a description unless its client has seen the latest revision at any node.
    pub(super) fn agree_on_revision(
        &mut self,
        name: &str,
        description: &Description,
    ) -> Result<(), StepError> {
        let found = self.service.keys.with_id(name, description.id).map(|(info, _)| info.revision);
        let mine = found.as_ref().copied().unwrap_or_default();
        let net = self.net()?;
        let me = net.me();
        let mut all: Vec<(Party, u64)> = tell_all(&mine.to_le_bytes(), net)?
            .into_iter()
            .map(|(party, message)| (party, u64::from_le_bytes(message)))
            .collect();
        all.push((me, mine));
        all.sort_by_key(|(party, _)| *party);
        let message: Vec<u8> = all.iter().flat_map(|(_, revision)| revision.to_le_bytes()).collect();
        let digest = blake3::derive_key("polyclave 2026 revisions of a key", &message);
        agree(found.map(|_| digest), net)?.map_err(StepError::Refused)?;
        let latest = all.iter().map(|(_, revision)| *revision).max().unwrap_or_default();
        description.refuse_other(name, latest).map_err(StepError::Refused)
    }

    /// Changes what may change of a key's versions, and returns what `shown` finds of it then.
    pub(super) fn change(
        &mut self,
        name: &str,
        change: impl Fn(&mut KeyInfo),
        shown: Option<[u8; 16]>,
    ) -> Result<(), StepError> {
        let serving = self.net()?.members();
        let changed = self.service.keys.amend(name, change);
        let changed = changed.and_then(|()| self.service.rollback_guard.protect(serving));
        let changed = changed.and_then(|()| match shown {
            Some(id) => self.service.keys.with_id(name, id),
            None => self.service.keys.get(name),
        });
        let outcome = changed.as_ref().map(|_| [0; 32]).map_err(Clone::clone);
        agree(outcome, self.net()?)?.map_err(StepError::Refused)?;
        let (info, _) = changed.map_err(StepError::Refused)?;
        self.connection.reply(&Reply::Done(Some(info.identity())));
        Ok(())
    }
}

/// The label and attributes of a version, and their revision.
pub(super) struct Description {
    pub(super) id: [u8; 16],
    pub(super) revision: u64,
    pub(super) label: String,
    pub(super) attributes: Vec<u8>,
}

impl Description {
    /// Refuses one whose client has not seen what is here. Repeating the latest change is no error. What
    /// other nodes have is compared later ([`Serving::agree_on_revision`]).
    pub(super) fn refuse_stale(&self, info: &KeyInfo) -> Result<(), Refusal> {
        let NewKey { name, label, attributes, .. } = &info.properties;
        let is_repeated = Some(info.revision) == self.revision.checked_add(1)
            && (label, attributes) == (&self.label, &self.attributes);
        match is_repeated || info.revision <= self.revision {
            true => Ok(()),
            false => Err(self.not_next_after(name, info.revision)),
        }
    }

    /// Refuses one that is not the next after the latest revision. One that is the latest is a repetition: a
    /// node that holds it has compared its content.
    fn refuse_other(&self, name: &str, latest: u64) -> Result<(), Refusal> {
        let next = self.revision.checked_add(1);
        match next.is_some() && (latest == self.revision || Some(latest) == next) {
            true => Ok(()),
            false => Err(self.not_next_after(name, latest)),
        }
    }

    fn not_next_after(&self, name: &str, latest: u64) -> Refusal {
        let message = format!(
            "the description of the key '{name}' is at revision {latest}, not {}: read it again, then repeat the change",
            self.revision
        );
        Refusal::new(Reason::Key, message)
    }

    pub(super) fn write(&self, info: &mut KeyInfo) {
        if info.id == self.id {
            info.revision = self.revision.saturating_add(1);
            info.properties.label.clone_from(&self.label);
            info.properties.attributes.clone_from(&self.attributes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(announced: u32, pending: Option<Named>) -> Newest {
        Newest { announced: Some((announced, [announced as u8; 16])), pending }
    }

    fn at(all: &[Newest]) -> Result<Option<Named>, Party> {
        let all: Vec<(Party, Newest)> = Party::all(all.len()).zip(all.iter().copied()).collect();
        current(&all)
    }

    #[test]
    fn a_version_that_one_node_has_announced_is_completed_and_one_that_a_node_lacks_is_not() {
        let (two, other) = ((2, [2; 16]), (2, [9; 16]));
        assert_eq!(at(&[newest(1, None); 3]), Ok(Some((1, [1; 16]))));
        assert_eq!(at(&[newest(2, None), newest(1, Some(two)), newest(1, Some(two))]), Ok(Some(two)));
        assert_eq!(at(&[newest(1, Some(two)); 3]), Ok(Some(two)), "all have stored it");
        assert_eq!(
            at(&[newest(1, Some(two)), newest(1, None), newest(1, Some(two))]),
            Ok(Some((1, [1; 16]))),
            "it was not stored by all"
        );
        assert_eq!(at(&[newest(1, Some(two)), newest(1, Some(other))]), Ok(Some((1, [1; 16]))));
        assert_eq!(at(&[newest(2, None), newest(1, None)]), Err(Party(1)), "it has lost a version");
        assert_eq!(at(&[newest(2, None), newest(1, Some(other))]), Err(Party(1)));
        let none = Newest { announced: None, pending: None };
        assert_eq!(at(&[none; 3]), Ok(None));
        assert_eq!(at(&[Newest { pending: Some((1, [1; 16])), ..none }; 3]), Ok(Some((1, [1; 16]))));
    }

    #[test]
    fn what_nodes_tell_of_their_newest_versions_comes_back() {
        for newest in
            [newest(7, None), newest(1, Some((2, [3; 16]))), Newest { announced: None, pending: None }]
        {
            assert_eq!(Newest::decode(&newest.encode()), newest);
        }
    }
}
