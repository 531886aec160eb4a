//! Which keys the old nodes hold, as they tell all others: properties, what is public of the stored shares,
//! and what each has spent of the budgets.
//!
//! **What may change in a key's life**: its label and attributes, its state, the least version, whether it
//! may be deleted, and what was withdrawn of its uses. Some nodes may not know of an interrupted change. The
//! key moves with what most old nodes have, and in a tie with the stricter or newer. So where honest nodes
//! agree and are a majority, the others cannot change it.
//!
//! **Budgets.** Under a budget of B blocks each of n nodes pays for at most B q / n, where q is the quorum,
//! and every block is paid for at q nodes at least. So if l nodes are lost, the others together have paid q -
//! l times for each of the T blocks that were computed: T is at most the sum of what they spent, divided by
//! q - l. Each of the n' new nodes then begins with T q' / n' spent, and the new nodes together compute at
//! most B - T blocks. A node that cheats can understate its own part of the sum. A key and its copies pay
//! from one account, and each tells what that has spent: the new nodes begin with the largest.
//!
//! **Ciphers of derived keys.** Each old node tells the ciphers of the keys that were derived from a key. The
//! new nodes remember every cipher that any old node tells, so no node can make them forget one. A node that
//! cheats can add a false cipher. Then nothing more is derived from that key, as if the node had refused to.

use std::collections::BTreeMap;

use polyclave_api::{KeyInfo, NewKey};
use polyclave_protocol::net::Net;
use polyclave_protocol::service::{ServiceConfig, Stored};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_store::{Ciphers, KeyState, MovedKey, Store};
use serde::{Deserialize, Serialize};

use super::plan::{Plan, Way};
use crate::Result;
use crate::computation::key::{HASH_KEY, RAW, ROUND_KEYS, SECOND, Shares};
use crate::error::system;
use crate::peers::exchange::tell_all;

/// The most bytes of what one node tells.
const MAX_BYTES: u64 = 256 << 20;

/// What moves under masks. The other parts follow from these.
pub(super) const MASKED: [&str; 3] = [RAW, ROUND_KEYS, SECOND];

/// A key as an old node tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) id: [u8; 16],
    state: State,
    /// Its properties; none for a deleted key.
    info: Option<KeyInfo>,
    /// What is public of each stored part, by its name.
    pub(crate) parts: BTreeMap<String, Vec<u8>>,
    spent: u64,
    /// The ciphers of the keys that were derived from it.
    children: Ciphers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Pending,
    Announced,
    Deleted,
    /// Announced, and about to be deleted: all nodes had accepted that (`store/src/deletions.rs`).
    BeingDeleted,
}

/// A key that all old nodes that take part hold.
pub(crate) struct Common {
    pub(crate) info: KeyInfo,
    pub(crate) parts: BTreeMap<String, Vec<u8>>,
    /// How many blocks count as spent at each new node.
    spent: u64,
    children: Ciphers,
}

/// What all nodes conclude from what the old ones hold.
pub(crate) struct CommonKeys {
    /// In the order of their ids.
    pub(crate) keys: Vec<Common>,
    pub(crate) deleted: Vec<[u8; 16]>,
    /// How many components of keys stay behind, because not all old nodes have them. They are among the
    /// deleted.
    pub(crate) left_behind: usize,
}

impl Common {
    /// A key that goes to some of the nodes that hold it, which go on counting what it has spent. `parts` are
    /// the names of what is stored of it.
    pub(crate) fn stays<'p>(info: KeyInfo, parts: impl Iterator<Item = &'p String>) -> Common {
        let masked = parts.filter(|part| MASKED.contains(&part.as_str()));
        let parts = masked.map(|part| (part.clone(), Vec::new())).collect();
        Common { info, parts, spent: 0, children: Ciphers::default() }
    }

    /// The key with a new node's shares.
    pub(crate) fn moved(&self, shares: Shares) -> MovedKey {
        MovedKey { info: self.info.clone(), spent: self.spent, children: self.children.clone(), shares }
    }

    /// The public parts, in order.
    pub(crate) fn public(&self) -> impl Iterator<Item = Stored<'_>> {
        self.parts.iter().map(|(part, bytes)| stored(part, bytes))
    }
}

/// Whether what is stored under a name are cells or elements.
pub(crate) fn stored<'a>(part: &str, bytes: &'a [u8]) -> Stored<'a> {
    if part == HASH_KEY { Stored::Elements(bytes) } else { Stored::Value(bytes) }
}

/// What a node that takes part as an old one holds, as it tells the others.
pub(crate) fn of(store: &Store, plan: &Plan, me: Party) -> Result<Vec<u8>> {
    let mut offers = Vec::new();
    for held in store.held_keys().map_err(system)? {
        // A session key ends with the nodes that have it.
        if held.info.as_ref().is_some_and(KeyInfo::is_of_session) {
            continue;
        }
        let state = match held.state {
            KeyState::Pending => State::Pending,
            KeyState::Announced if held.deletion_begun => State::BeingDeleted,
            KeyState::Announced => State::Announced,
            KeyState::Deleted => State::Deleted,
        };
        let (info, parts) = (held.info.clone(), BTreeMap::new());
        let mut offer = Offer { id: held.id, state, info, parts, spent: 0, children: Ciphers::default() };
        if held.state != KeyState::Deleted {
            let account = held.info.as_ref().map_or(held.id, |info| info.account);
            offer.spent = store.spent(account).map_err(system)?;
            offer.children = store.children(account).map_err(system)?;
            for (part, bytes) in store.shares_of(held.id).map_err(system)? {
                match &plan.way {
                    Way::Shares(sharing, _) => {
                        let public = sharing.public_part(me, stored(&part, &bytes))?;
                        offer.parts.insert(part, public);
                    }
                    Way::Masks if MASKED.contains(&part.as_str()) => {
                        offer.parts.insert(part, Vec::new());
                    }
                    // It is computed anew.
                    Way::Masks => {}
                }
            }
        }
        offers.push(offer);
    }
    postcard::to_stdvec(&offers).map_err(system)
}

/// What each old node holds, by its number in the old cluster; and all of it as it was told, for comparison.
pub(crate) type Heard = (Vec<(Party, Vec<Offer>)>, Vec<u8>);

/// All old nodes tell all others what they hold.
pub(crate) fn exchange(mine: Option<&[u8]>, plan: &Plan, net: &mut dyn Net) -> Result<Heard> {
    let (me, mine) = (net.me(), mine.unwrap_or_default());
    let mut buffers: Vec<Vec<u8>> = vec![Vec::new(); net.parties()];
    for (peer, len) in tell_all(&(mine.len() as u64).to_le_bytes(), net)? {
        let len = u64::from_le_bytes(len);
        if len > MAX_BYTES {
            return Err(Error::System(format!("{peer} tells of more keys than a node can hold")));
        }
        buffers[peer.index()] = vec![0; len as usize];
    }
    let out: Vec<&[u8]> = Party::all(net.parties()).map(|p| if p == me { &[][..] } else { mine }).collect();
    net.exchange(&out, &mut buffers.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    buffers[me.index()] = mine.to_vec();
    let mut offers = Vec::new();
    for (place, role) in plan.roles() {
        let message = &buffers[place.index()];
        match role.old {
            Some(old) => {
                offers.push((old, decode(message).map_err(|why| Error::System(format!("{place} {why}")))?))
            }
            None if message.is_empty() => {}
            None => return Err(Error::System(format!("{place} tells of keys, and is no old node"))),
        }
    }
    Ok((offers, buffers.concat()))
}

/// What a node tells, read. The error goes on after the node's name.
pub(super) fn decode(message: &[u8]) -> Result<Vec<Offer>, String> {
    let (offers, rest): (Vec<Offer>, &[u8]) = postcard::take_from_bytes(message)
        .map_err(|_| "tells of keys in a form that this version does not know".to_owned())?;
    if !rest.is_empty() || !offers.is_sorted_by(|a, b| a.id < b.id) {
        return Err("lists a key twice, or sends more than a list".into());
    }
    Ok(offers)
}

/// The keys that all old nodes hold, and the deleted ones. The same at all nodes, since all have heard the
/// same. No node's word deletes a key, except one that every node which holds it is about to delete itself. A
/// component of a key stays behind if not all have it, so one node's word does end that: it can be given
/// again.
pub(crate) fn common(offers: &[(Party, Vec<Offer>)], plan: &Plan) -> Result<CommonKeys> {
    let mut entries: BTreeMap<[u8; 16], Vec<(Party, &Offer)>> = BTreeMap::new();
    for (party, offer) in offers.iter().flat_map(|(party, offers)| offers.iter().map(|offer| (*party, offer)))
    {
        entries.entry(offer.id).or_default().push((party, offer));
    }
    let mut common = CommonKeys { keys: Vec::new(), deleted: Vec::new(), left_behind: 0 };
    for (id, entries) in entries {
        let is = |state: State| entries.iter().any(|(_, offer)| offer.state == state);
        let (_, first) = entries[0];
        let identity = |offer: &Offer| offer.info.as_ref().map(KeyInfo::identity);
        let alike =
            |(_, offer): &(Party, &Offer)| identity(offer) == identity(first) && offer.parts == first.parts;
        match () {
            () if entries.len() == offers.len() && entries.iter().all(alike) && !is(State::Deleted) => {
                common.keys.push(key(first, &entries, plan)?);
            }
            // Its time has ended at some of them, or a crash has left it at some.
            () if entries.iter().all(|(_, offer)| offer.state == State::Deleted || is_component(offer)) => {
                common.left_behind += usize::from(is(State::Announced));
                common.deleted.push(id);
            }
            // Every old node that holds it had accepted the deletion, which another one has completed.
            () if is(State::Deleted) && is(State::BeingDeleted) && !is(State::Announced) => {
                common.deleted.push(id);
            }
            () if is(State::Announced) || is(State::BeingDeleted) => {
                let holders: PartySet = entries
                    .iter()
                    .filter(|(_, offer)| offer.state != State::Deleted)
                    .map(|(p, _)| *p)
                    .collect();
                return Err(Error::System(format!(
                    "not all old nodes hold the key with the id {}, but {} does. Restore the backups of the others, or leave them out \
                     (--lost) if enough remain",
                    hex::encode(id),
                    plan.old_names(holders)
                )));
            }
            () if is(State::Deleted) => common.deleted.push(id),
            // Its making was never completed.
            () => {}
        }
    }
    Ok(common)
}

fn is_component(offer: &Offer) -> bool {
    offer.info.as_ref().is_some_and(|info| info.component.is_some())
}

fn key(offer: &Offer, entries: &[(Party, &Offer)], plan: &Plan) -> Result<Common> {
    let senseless = || {
        Error::System(format!(
            "the properties of the key with the id {} make no sense",
            hex::encode(offer.id)
        ))
    };
    let infos: Vec<&KeyInfo> = entries.iter().filter_map(|(_, offer)| offer.info.as_ref()).collect();
    let info = usual(&infos).filter(|info| info.id == offer.id).cloned().ok_or_else(senseless)?;
    let claims: Vec<u64> = entries.iter().map(|(_, offer)| offer.spent).collect();
    let old = (plan.from.quorum(), plan.old.nodes() - entries.len());
    let new = (plan.to.quorum(), plan.new.nodes());
    let spent = refreshed_spent(&claims, old, new, info.properties.budget_blocks);
    let children = entries.iter().flat_map(|(_, offer)| offer.children.iter().cloned()).collect();
    Ok(Common { info, parts: offer.parts.clone(), spent, children })
}

/// What most nodes have of one key, see the head of this file.
fn usual<'i>(infos: &[&'i KeyInfo]) -> Option<&'i KeyInfo> {
    let rank = |info: &&&KeyInfo| {
        let same = infos.iter().filter(|other| other == info).count();
        let NewKey { label, attributes, wrappable, usage, .. } = &info.properties;
        let strict =
            (info.state, info.least_version, !info.deletable, !wrappable, std::cmp::Reverse(usage.len()));
        (same, strict, info.revision, label.clone(), attributes.clone())
    };
    infos.iter().max_by_key(rank).copied()
}

/// What counts as spent at each new node: see the head of this file.
fn refreshed_spent(
    claims: &[u64],
    (quorum, lost): (usize, usize),
    (new_quorum, new_nodes): (usize, usize),
    budget: u64,
) -> u64 {
    let sum: u128 = claims.iter().map(|claim| u128::from(*claim)).sum();
    let computed = sum.div_ceil(quorum.saturating_sub(lost).max(1) as u128).min(u128::from(budget));
    (computed * new_quorum as u128).div_ceil(new_nodes.max(1) as u128) as u64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn offer(id: u8) -> Offer {
        Offer {
            id: [id; 16],
            state: State::Announced,
            info: None,
            parts: [("round keys".to_owned(), vec![2; 20])].into_iter().collect(),
            spent: 3,
            children: Ciphers::default(),
        }
    }

    #[test]
    fn budgets_are_not_exceeded_by_the_old_and_the_new_nodes_together() {
        // Three nodes that all serve; one is lost; five new ones, of which three serve.
        assert_eq!(refreshed_spent(&[100, 100], (3, 1), (3, 3), 1000), 100);
        assert_eq!(refreshed_spent(&[100, 100, 100], (3, 0), (3, 5), 1000), 60);
        // Of five old nodes any three served, so all of the budget can have been spent.
        let each = 1000 * 3 / 5;
        assert_eq!(refreshed_spent(&[each; 5], (3, 0), (3, 3), 1000), 1000);
        assert_eq!(refreshed_spent(&[u64::MAX; 9], (3, 2), (9, 9), 1000), 1000, "never more than all");
        assert_eq!(refreshed_spent(&[0, 0], (3, 1), (3, 3), 1000), 0);
        for (claims, old, new) in
            [([7, 9], (3, 1), (3, 5)), ([1, 0], (3, 1), (5, 9)), ([599, 600], (3, 1), (3, 7))]
        {
            let budget = 1000;
            let computed = (claims.iter().sum::<u64>()).div_ceil((old.0 - old.1) as u64);
            let spent = refreshed_spent(&claims, old, new, budget);
            let left = budget * new.0 as u64 / new.1 as u64 - spent;
            assert!(left * new.1 as u64 / new.0 as u64 + computed <= budget, "{claims:?}");
        }
    }

    #[test]
    fn a_label_or_state_that_changed_at_some_nodes_only_is_what_most_have_and_then_the_stricter() {
        use polyclave_api::{Mode, Origin, VersionState};
        let key = |label: &str, revision, state| {
            let mut new = NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 1 << 20);
            new.label = label.into();
            KeyInfo { revision, state, ..KeyInfo::first(new, [7; 16], Origin::Generated, 1, vec![1; 5]) }
        };
        let before = key("before", 0, VersionState::Active);
        let after = key("after", 1, VersionState::Active);
        let retired = key("before", 0, VersionState::Deactivated);
        assert_eq!(usual(&[&before, &before, &after]), Some(&before));
        assert_eq!(usual(&[&after, &before, &after]), Some(&after));
        assert_eq!(usual(&[&before, &after]), Some(&after));
        assert_eq!(usual(&[&before, &retired, &after]), Some(&retired));
        let mut withdrawn = before.clone();
        withdrawn.properties.usage.pop();
        assert_eq!(usual(&[&withdrawn, &before]), Some(&withdrawn));
        assert_eq!(usual(&[&withdrawn, &before, &before]), Some(&before));
        assert_eq!(usual(&[]), None);
        assert!([&after, &retired, &withdrawn].iter().all(|other| other.identity() == before.identity()));
    }

    #[test]
    fn a_component_that_not_all_nodes_have_stays_behind_and_a_key_does_not_unless_they_say_that_it_is_none() {
        use polyclave_api::{Component, Mode, Origin};
        use polyclave_config::Change;

        use crate::reshare::tests::{card, old, plan};
        let info = |component: Option<Component>| {
            let new = NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 1 << 20);
            KeyInfo { component, ..KeyInfo::first(new, [1; 16], Origin::Imported, 1, vec![1; 5]) }
        };
        let part = Component { number: 1, of: 2, giver: [1; 32] };
        let message = |info: Option<KeyInfo>, state| Offer { info, state, ..offer(1) };
        let change = Change { added: vec![card("n9", 9)], removed: vec!["n1".into()], ..Change::default() };
        let plan = plan(&old("shamir", 3, 1), &change).expect("it can be done");
        let of = |offers: [Option<Offer>; 3]| {
            let lists = offers.into_iter().zip(0..).map(|(offer, p)| (Party(p), offer.into_iter().collect()));
            common(&lists.collect::<Vec<_>>(), &plan)
                .map(|common| (common.keys.len(), common.deleted, common.left_behind))
        };
        let has = |component| Some(message(Some(info(component)), State::Announced));
        let one = || has(Some(part.clone()));
        let deleted = || Some(message(None, State::Deleted));
        assert_eq!(of([one(), one(), one()]), Ok((1, vec![], 0)));
        let gone = Ok((0, vec![[1; 16]], 1));
        assert_eq!(of([one(), None, one()]), gone);
        assert_eq!(of([one(), deleted(), one()]), gone);
        assert_eq!(of([deleted(), deleted(), deleted()]), Ok((0, vec![[1; 16]], 0)), "nobody misses it");
        assert!(of([has(None), None, has(None)]).is_err(), "a key is not lost");
        assert!(of([has(None), None, one()]).is_err(), "nor because one node says that it is a component");
    }

    #[test]
    fn an_old_node_tells_of_each_key_what_was_derived_from_it() {
        use polyclave_config::Change;
        use polyclave_store::testing::{in_memory, key};

        use crate::reshare::tests::{card, old, plan};
        let (store, _disk) = in_memory();
        for (name, seed) in [("base", 1), ("other", 2)] {
            store.put_pending(&key(name, seed)).expect("put");
            store.announce(name, [seed; 16]).expect("announced");
        }
        store.note_child(([1; 16], [1; 16]), "des").expect("noted");
        let change = Change {
            removed: vec!["n1".into(), "n2".into(), "n3".into()],
            added: vec![card("m1", 51), card("m2", 52)],
            protocol: Some("spdz-lt".into()),
            ..Change::default()
        };
        let plan = plan(&old("shamir", 3, 1), &change).expect("it can be done");
        let message: Vec<Offer> =
            postcard::from_bytes(&of(&store, &plan, Party(0)).expect("told")).expect("read");
        let children = |id: u8| {
            let of_key = message.iter().find(|offer| offer.id == [id; 16]).expect("it has it");
            of_key.children.iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(children(1), ["des"]);
        assert_eq!(children(2), [""; 0]);
    }

    #[test]
    fn a_deletion_that_was_interrupted_is_completed_if_every_old_node_had_accepted_it_and_given_up_if_none_has_deleted()
     {
        use polyclave_api::{Mode, Origin};
        use polyclave_config::Change;

        use crate::reshare::tests::{card, old, plan};
        let change = Change { added: vec![card("n9", 9)], removed: vec!["n1".into()], ..Change::default() };
        let plan = plan(&old("shamir", 3, 1), &change).expect("it can be done");
        let new = NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 1 << 20);
        let info = KeyInfo::first(new, [1; 16], Origin::Generated, 1, vec![1; 5]);
        let of = |states: [State; 3]| {
            let message =
                |state| Offer { info: (state != State::Deleted).then(|| info.clone()), state, ..offer(1) };
            let lists = states.into_iter().zip(0..).map(|(state, p)| (Party(p), vec![message(state)]));
            let found = common(&lists.collect::<Vec<_>>(), &plan);
            found.map(|common| (common.keys.len(), common.deleted))
        };
        let (held, going, gone) = (State::Announced, State::BeingDeleted, State::Deleted);
        assert_eq!(of([going, gone, going]), Ok((0, vec![[1; 16]])));
        assert_eq!(of([going, gone, State::Pending]), Ok((0, vec![[1; 16]])), "it was never announced there");
        assert_eq!(of([going, held, going]), Ok((1, vec![])), "nobody has deleted it");
        assert!(of([going, gone, held]).is_err(), "one of them had not accepted the deletion");
    }

    #[test]
    fn new_nodes_know_every_cipher_of_derived_keys_that_any_old_node_tells() {
        use polyclave_api::{Origin, Usage};
        use polyclave_config::Change;

        use crate::reshare::tests::{card, old, plan};
        let base = NewKey { usage: vec![Usage::Derive], ..NewKey::for_modes("k", "aes-128", &[], 1 << 20) };
        let info = KeyInfo::first(base, [1; 16], Origin::Generated, 1, vec![1; 5]);
        let message = |ciphers: &[&str]| Offer {
            info: Some(info.clone()),
            children: ciphers.iter().map(|cipher| (*cipher).to_owned()).collect(),
            ..offer(1)
        };
        let change = Change { added: vec![card("n9", 9)], removed: vec!["n1".into()], ..Change::default() };
        let plan = plan(&old("shamir", 3, 1), &change).expect("it can be done");
        let of = |offers: [Offer; 3]| {
            let lists: Vec<_> =
                offers.into_iter().zip(0..).map(|(offer, p)| (Party(p), vec![offer])).collect();
            let mut keys = common(&lists, &plan).expect("all have it").keys;
            keys.pop().expect("one key").children.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of([message(&[]), message(&[]), message(&[])]), [""; 0]);
        assert_eq!(of([message(&[]), message(&["des"]), message(&[])]), ["des"]);
        assert_eq!(of([message(&["des"]), message(&["des"]), message(&["aes-128"])]), ["aes-128", "des"]);
    }

    #[test]
    fn a_list_that_is_cut_or_names_a_key_twice_is_refused() {
        let encode = |offers: &[Offer]| postcard::to_stdvec(offers).expect("encoded");
        let good = encode(&[offer(1), offer(2)]);
        assert_eq!(decode(&good).expect("read").len(), 2);
        for bad in [
            &encode(&[offer(1), offer(1)]),
            &encode(&[offer(2), offer(1)]),
            &[good.clone(), vec![0]].concat(),
        ] {
            assert!(decode(bad).is_err());
        }
        assert!((0..good.len()).all(|len| decode(&good[..len]).is_err()));
    }
}
