//! Which start of a node this is, counted, and the latest that was seen of each peer.
//!
//! A node that runs on an old copy of its disk would use budgets, and whatever else is spent, again. It counts its starts
//! again, too, and draws other boot ids for them. So it claims a number that its peers have seen already, or, when it has been
//! started often enough to be past that, another boot id for the start that they saw last: both are noticed.

use polyclave_protocol::Party;
use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};

use super::engine::{Records, Table};
use super::{Result, Store, StoreError};

const OWN: &[u8] = b"incarnation";

/// Starts that a node can prove to be its own. A peer that has missed more of them refuses it until an operator has looked.
pub(super) const RECENT: usize = 128;

/// A number beyond this is not believed of a peer that was never seen: it could not come back itself.
const MOST_AT_FIRST: u64 = 1 << 32;

/// One start of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incarnation {
    /// Counted up durably, from 1.
    pub number: u64,
    /// Drawn at random at each start, the latest first: at most 129.
    pub boots: Vec<[u8; 16]>,
}

/// What is stored of this node's starts.
#[derive(Default, Serialize, Deserialize)]
struct Own {
    number: u64,
    boots: Vec<[u8; 16]>,
}

/// The latest start of a peer that was seen.
#[derive(Serialize, Deserialize)]
struct Seen {
    number: u64,
    boot: [u8; 16],
}

impl Store {
    /// Counts this start. Called once for each.
    pub fn begin_incarnation(&self) -> Result<Incarnation> {
        let mut boot = [0; 16];
        random_bytes(&mut boot)?;
        self.engine.write(|changes| {
            let mut own: Own = changes.get(Table::Meta, OWN)?.unwrap_or_default();
            own.number = own.number.saturating_add(1);
            own.boots.insert(0, boot);
            own.boots.truncate(1 + RECENT);
            changes.put(Table::Meta, OWN, &own)?;
            Ok(Incarnation { number: own.number, boots: own.boots })
        })
    }

    /// Compares what a peer says with the latest that was seen of it, and remembers it.
    pub fn peer_seen(&self, party: Party, claimed: &Incarnation) -> Result<()> {
        let boots = &claimed.boots[..claimed.boots.len().min(1 + RECENT)];
        let Some(boot) = boots.first().copied() else {
            return Err(StoreError::RolledBack { party, seen: 0, claimed: claimed.number });
        };
        let known: Option<Seen> = self.engine.read(|records| records.get(Table::Peers, &[party.0]))?;
        let goes_on = match &known {
            None => (1..=MOST_AT_FIRST).contains(&claimed.number),
            // The start that was seen last has to be among those that it remembers.
            Some(seen) => claimed
                .number
                .checked_sub(seen.number)
                .and_then(|later| usize::try_from(later).ok())
                .and_then(|later| boots.get(later))
                .is_some_and(|boot| *boot == seen.boot),
        };
        let seen = known.map_or(0, |seen| seen.number);
        if !goes_on {
            return Err(StoreError::RolledBack { party, seen, claimed: claimed.number });
        }
        if seen == claimed.number {
            return Ok(());
        }
        self.engine.write(|changes| {
            // Another greeting may have been faster; the latest stays.
            match changes.get::<Seen>(Table::Peers, &[party.0])? {
                Some(now) if now.number >= claimed.number => Ok(()),
                _ => changes.put(Table::Peers, &[party.0], &Seen { number: claimed.number, boot }),
            }
        })
    }

    /// Forgets what was seen of a peer, so that it can begin again from a backup. An operator's decision.
    pub fn readmit(&self, party: Party) -> Result<()> {
        self.engine.write(|changes| changes.remove(Table::Peers, &[party.0]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    /// The start of a number, after others of which each had its number as boot id but for what `other` says.
    fn start(number: u64, other: &[(u64, u8)]) -> Incarnation {
        let boot = |n: u64| [other.iter().find(|(m, _)| *m == n).map_or(n as u8, |(_, boot)| *boot); 16];
        Incarnation { number, boots: (1..=number).rev().take(1 + RECENT).map(boot).collect() }
    }

    #[test]
    fn every_start_has_a_higher_number_and_remembers_those_before() {
        let (store, disk) = in_memory();
        let first = store.begin_incarnation().expect("counted");
        let second = reopen(&disk.copy()).begin_incarnation().expect("counted");
        assert_eq!((first.number, second.number), (1, 2));
        assert_eq!(second.boots[1..], first.boots[..]);
        assert_ne!(second.boots[0], first.boots[0]);
    }

    #[test]
    fn a_peer_that_was_rolled_back_is_refused_however_often_it_starts() {
        let (store, disk) = in_memory();
        let peer = Party(1);
        store.peer_seen(peer, &start(7, &[])).expect("the first");
        store.peer_seen(peer, &start(7, &[])).expect("the same");
        store.peer_seen(peer, &start(9, &[])).expect("a newer one");
        let store = reopen(&disk.copy());
        // From a copy of start 6, which then had a 7, 8, 9 .. of its own.
        let copy = [(7, 100), (8, 101), (9, 102), (10, 103)];
        for number in 6..=12 {
            let refused = store.peer_seen(peer, &start(number, &copy));
            assert!(
                matches!(refused, Err(StoreError::RolledBack { party, .. }) if party == peer),
                "{number}"
            );
        }
        store.peer_seen(Party(2), &start(1, &[])).expect("another peer is not affected");
        store.peer_seen(peer, &start(10, &[])).expect("the real one goes on");
        store.readmit(peer).expect("forgotten");
        store.peer_seen(peer, &start(8, &copy)).expect("readmitted");
    }

    #[test]
    fn a_peer_that_started_too_often_meanwhile_waits_for_an_operator() {
        let (store, _) = in_memory();
        store.peer_seen(Party(1), &start(1, &[])).expect("the first");
        assert!(store.peer_seen(Party(1), &start(2 + RECENT as u64, &[])).is_err());
        store.peer_seen(Party(1), &start(1 + RECENT as u64, &[])).expect("just remembered");
    }

    #[test]
    fn a_claim_of_the_largest_number_is_refused_and_locks_nobody_out() {
        let (store, _) = in_memory();
        let largest = Incarnation { number: u64::MAX, boots: vec![[1; 16]; 1 + RECENT] };
        assert!(store.peer_seen(Party(0), &largest).is_err());
        assert!(store.peer_seen(Party(0), &Incarnation { number: 3, boots: Vec::new() }).is_err());
        store.peer_seen(Party(0), &start(5, &[])).expect("the first that is credible");
        assert!(store.peer_seen(Party(0), &largest).is_err());
        store.peer_seen(Party(0), &start(6, &[])).expect("nobody is locked out");
    }
}
