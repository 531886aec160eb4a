//! Which start of a node this is, counted, and the highest that was seen of each peer.
//!
//! A node that runs on an old copy of its disk would use randomness and budgets again. It counts its starts again, too, and
//! its peers notice.

use polyclave_protocol::Party;
use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};

use super::engine::{Records, Table};
use super::{Result, Store, StoreError};

const OWN: &[u8] = b"incarnation";

/// The most by which a peer may be ahead of what was last seen of it. Nobody starts so often; and who claims the largest
/// number could otherwise never be seen to be rolled back, nor come back itself.
const MOST_AHEAD: u64 = 1 << 32;

/// One start of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incarnation {
    /// Counted up durably, from 1.
    pub number: u64,
    /// Drawn at random: tells two starts from the same copy of a disk.
    pub boot: [u8; 16],
}

impl Store {
    /// Counts this start. Called once for each.
    pub fn begin_incarnation(&self) -> Result<Incarnation> {
        let mut boot = [0; 16];
        random_bytes(&mut boot)?;
        let number = self.engine.write(|changes| {
            let number = changes.get::<u64>(Table::Meta, OWN)?.unwrap_or(0).saturating_add(1);
            changes.put(Table::Meta, OWN, &number)?;
            Ok(number)
        })?;
        Ok(Incarnation { number, boot })
    }

    /// Compares what a peer says with the highest that was seen of it, and remembers it.
    pub fn peer_seen(&self, party: Party, claimed: Incarnation) -> Result<()> {
        let known = self.engine.read(|records| records.get::<Incarnation>(Table::Peers, &[party.0]))?;
        if known == Some(claimed) {
            return Ok(());
        }
        self.engine.write(|changes| {
            let never = Incarnation { number: 0, boot: [0; 16] };
            let seen: Incarnation = changes.get(Table::Peers, &[party.0])?.unwrap_or(never);
            if seen == claimed && seen != never {
                return Ok(());
            }
            let newer = claimed.number > seen.number && claimed.number - seen.number <= MOST_AHEAD;
            if !newer {
                return Err(StoreError::RolledBack { party, seen, claimed });
            }
            changes.put(Table::Peers, &[party.0], &claimed)
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

    fn start(number: u64, boot: u8) -> Incarnation {
        Incarnation { number, boot: [boot; 16] }
    }

    #[test]
    fn every_start_has_a_higher_number_and_a_fresh_boot_id() {
        let (store, disk) = in_memory();
        let first = store.begin_incarnation().expect("counted");
        let second = reopen(&disk.copy()).begin_incarnation().expect("counted");
        assert_eq!((first.number, second.number), (1, 2));
        assert_ne!(first.boot, second.boot);
    }

    #[test]
    fn a_peer_that_was_rolled_back_is_refused_until_it_is_readmitted() {
        let (store, disk) = in_memory();
        let peer = Party(1);
        store.peer_seen(peer, start(7, 1)).expect("the first");
        store.peer_seen(peer, start(7, 1)).expect("the same");
        store.peer_seen(peer, start(9, 2)).expect("a newer one");
        let store = reopen(&disk.copy());
        for stale in [start(8, 3), start(7, 1), start(9, 3), start(0, 0)] {
            let refused = store.peer_seen(peer, stale);
            assert!(
                matches!(refused, Err(StoreError::RolledBack { party, .. }) if party == peer),
                "{stale:?}"
            );
        }
        store.peer_seen(Party(2), start(1, 1)).expect("another peer is not affected");
        store.readmit(peer).expect("forgotten");
        store.peer_seen(peer, start(3, 4)).expect("readmitted");
    }

    #[test]
    fn a_claim_of_the_largest_number_is_refused_and_locks_nobody_out() {
        let (store, _) = in_memory();
        let peer = Party(0);
        assert!(store.peer_seen(peer, start(u64::MAX, 1)).is_err());
        store.peer_seen(peer, start(5, 1)).expect("the first that is credible");
        assert!(store.peer_seen(peer, start(u64::MAX, 1)).is_err());
        assert!(store.peer_seen(peer, start(6 + MOST_AHEAD, 1)).is_err());
        store.peer_seen(peer, start(5 + MOST_AHEAD, 1)).expect("just credible");
    }
}
