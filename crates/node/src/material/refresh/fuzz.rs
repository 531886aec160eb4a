//! Fuzz targets: foreign bytes in place of what nodes tell each other in a refresh.

use polyclave_harness::fuzz;

use super::common::{ANNOUNCED, BEING_DELETED, DELETED, Ids, LISTED, Listed, PENDING, common};
use super::state::{NextStep, RefreshState, next_step};
use super::*;

/// The number of nodes, then where each stands.
#[test]
fn no_standing_of_a_peer_panics_and_nodes_conclude_something_or_refuse() {
    let refresh_state = |wants, in_use, prepared: Option<u8>| {
        RefreshState { wants, in_use: [in_use; 32], prepared: prepared.map(|id| [id; 32]) }.encode()
    };
    let all = |standings: &[[u8; 65]]| standings.concat();
    let valid = vec![
        all(&[refresh_state(true, 1, None), refresh_state(true, 1, None), refresh_state(true, 1, None)]),
        all(&[
            refresh_state(false, 1, Some(2)),
            refresh_state(false, 2, None),
            refresh_state(true, 1, Some(2)),
        ]),
        all(&[refresh_state(false, 1, None), refresh_state(false, 2, None)]),
    ];
    fuzz!("refreshes", &[], valid, |bytes: &[u8]| {
        let (standings, _) = bytes.as_chunks::<65>();
        let all: Vec<(Party, RefreshState)> = standings
            .iter()
            .zip(0..16)
            .map(|(bytes, party)| (Party(party), RefreshState::decode(bytes)))
            .collect();
        for (_, refresh_state) in &all {
            let again = RefreshState::decode(&refresh_state.encode());
            assert_eq!((again.wants, again.in_use), (refresh_state.wants, refresh_state.in_use));
            assert_eq!(again.prepared, refresh_state.prepared);
        }
        if all.is_empty() {
            return;
        }
        if let Ok(NextStep::Complete(id)) = next_step(&all) {
            assert!(
                all.iter().all(|(_, refresh_state)| refresh_state.stored(&id)),
                "one does not have what is taken"
            );
        }
    });
}

/// Lists of three nodes, beginning with this one's: each a number of keys and as many entries.
#[test]
fn no_list_of_keys_panics_and_what_is_common_is_at_all_nodes() {
    let entry = |id: u8, state: u8| -> Listed {
        let mut entry = [id; LISTED];
        entry[16] = state;
        entry
    };
    let list = |entries: &[Listed]| [&[entries.len() as u8][..], &entries.concat()].concat();
    let some = list(&[entry(1, ANNOUNCED), entry(2, PENDING), entry(3, DELETED)]);
    let others = list(&[entry(1, ANNOUNCED), entry(3, DELETED)]);
    let going = |state: u8| list(&[entry(1, state)]);
    let interrupted = [going(BEING_DELETED), going(DELETED), going(BEING_DELETED)].concat();
    let valid = vec![some.repeat(3), [some, others.clone(), others].concat(), interrupted];
    fuzz!("key-lists", &[], valid, |bytes: &[u8]| {
        let (mut lists, mut rest) = (Vec::new(), bytes);
        while let Some((count, behind)) = rest.split_first() {
            let len = (usize::from(*count) * LISTED).min(behind.len());
            let (entries, behind) = behind.split_at(len);
            lists.push(entries.as_chunks::<LISTED>().0.to_vec());
            rest = behind;
        }
        let [mine, theirs @ ..] = &lists[..] else { return };
        // A node's own list is in order and has each key once.
        let mut mine = mine.clone();
        mine.sort_unstable();
        mine.dedup_by(|a, b| a[..16] == b[..16]);
        if let Ok(Ids { common, deleted }) = common(&mine, theirs) {
            let has = |list: &[Listed], id: &[u8; 16]| list.iter().any(|key| key[..16] == *id);
            assert!(common.iter().all(|id| has(&mine, id) && theirs.iter().all(|list| has(list, id))));
            let keeps = |id: &[u8; 16]| mine.iter().any(|key| key[..16] == *id && key[16] == ANNOUNCED);
            assert!(!deleted.iter().any(keeps), "another node's word deletes nothing here");
        }
    });
}
