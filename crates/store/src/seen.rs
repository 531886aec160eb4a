//! The latest state that this node has seen of each peer, and whether what the peer says now continues it.
//!
//! A node that runs on an old copy of its disk, on a restored backup, or beside a copy of itself would spend
//! budgets twice and forget deletions. Its program is unaltered and reports honestly what its store remembers
//! ([`Past`]). So peers notice it by what that report lacks.

use polyclave_protocol::Party;
use serde::{Deserialize, Serialize};

use super::engine::head::RECENT;
use super::engine::{Records, Table};
use super::incarnation::EARLIER;
use super::own_records::of_all_workers;
use super::{Mark, Past, Result, Store, StoreError};

/// A larger jump of the number is not believed: a peer that reported one by mistake could never come back.
const MAX_JUMP: u64 = 1 << 32;

/// The latest change of a peer's store that was seen, and the start that it was in.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    mark: Mark,
    boot: [u8; 16],
}

impl Past {
    fn latest(&self) -> Option<Seen> {
        let value = *self.recent.first()?;
        Some(Seen { mark: Mark { number: self.number, value }, boot: self.starts.first()?.boot })
    }

    /// Whether this past contains what was seen: that change was made in the start in which it was seen, and
    /// with the value that was seen.
    fn goes_on_from(&self, seen: &Seen) -> bool {
        let starts = &self.starts[..self.starts.len().min(1 + EARLIER)];
        let recent = &self.recent[..self.recent.len().min(RECENT)];
        let Some(later) = self.number.checked_sub(seen.mark.number) else { return false };
        let start = starts.iter().find(|start| start.first <= seen.mark.number);
        let value = usize::try_from(later).ok().and_then(|later| recent.get(later));
        later <= MAX_JUMP
            && start.is_some_and(|start| start.boot == seen.boot)
            && value.is_none_or(|value| *value == seen.mark.value)
    }
}

impl Store {
    /// Compares what a peer says about its past with the latest that was seen of it, and remembers it.
    pub fn peer_seen(&self, party: Party, past: &Past) -> Result<()> {
        let seen = self.seen(party)?;
        let latest = compare(seen.as_ref(), past)?;
        self.remember(party, seen, latest)
    }

    /// The same for the stream on which the peer does not report its mark. That stream may be behind what was
    /// seen on the other one. Remembers nothing.
    pub fn peer_known(&self, party: Party, past: &Past) -> Result<()> {
        match self.seen(party)? {
            Some(seen) if past.latest().is_some_and(|latest| latest.boot == seen.boot) => Ok(()),
            seen => compare(seen.as_ref(), past).map(drop),
        }
    }

    /// Remembers how far a peer has come, as it says itself in the start in which it was last seen.
    pub fn peer_moved(&self, party: Party, boot: [u8; 16], mark: Mark) -> Result<()> {
        let seen = self.seen(party)?;
        if let Some(seen) = &seen {
            let moved = mark.number.checked_sub(seen.mark.number);
            let goes_on = seen.boot == boot
                && moved.is_some_and(|moved| moved <= MAX_JUMP && (moved > 0 || mark == seen.mark));
            if !goes_on {
                return Err(rolled_back(Some(seen), mark.number));
            }
        }
        self.remember(party, seen, Seen { mark, boot })
    }

    /// The number of the latest change of a peer's store that this node remembers durably; 0 if none was
    /// seen.
    pub fn held_of(&self, party: Party) -> Result<u64> {
        Ok(self.seen(party)?.map_or(0, |seen| seen.mark.number))
    }

    /// Forgets what was seen of a peer, so that it can begin again from a backup. Only an operator may decide
    /// this.
    pub fn readmit(&self, party: Party) -> Result<()> {
        self.change(|changes| {
            let of_party = of_all_workers(changes, Table::Peers, &[party.0])?;
            of_party.iter().try_for_each(|record| changes.remove(Table::Peers, record))
        })
    }

    fn seen(&self, party: Party) -> Result<Option<Seen>> {
        self.engine.read(|records| records.get(Table::Peers, &self.own(&[party.0])))
    }

    /// One synced write if something has changed, none otherwise.
    fn remember(&self, party: Party, before: Option<Seen>, latest: Seen) -> Result<()> {
        if before == Some(latest) {
            return Ok(());
        }
        self.engine.write(|changes| changes.put(Table::Peers, &self.own(&[party.0]), &latest))
    }
}

fn compare(seen: Option<&Seen>, past: &Past) -> Result<Seen> {
    let goes_on = match seen {
        None => (1..=MAX_JUMP).contains(&past.number),
        Some(seen) => past.goes_on_from(seen),
    };
    past.latest().filter(|_| goes_on).ok_or_else(|| rolled_back(seen, past.number))
}

fn rolled_back(seen: Option<&Seen>, claimed: u64) -> StoreError {
    StoreError::RolledBack { seen: seen.map_or(0, |seen| seen.mark.number), claimed }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const PEER: Party = Party(1);

    /// Another node's store, started, with a range of a budget on its disk.
    fn peer() -> (Store, Disk) {
        let (store, disk) = in_memory();
        store.begin_incarnation().expect("counted");
        store.spend(([1; 16], [1; 16]), 1, 6400).expect("in the budget");
        (store, disk)
    }

    fn started(disk: &Disk) -> Store {
        let store = reopen(disk);
        store.begin_incarnation().expect("counted");
        store
    }

    fn greets(store: &Store, peer: &Store) -> bool {
        let past = peer.past().expect("read");
        let outcome = store.peer_seen(PEER, &past);
        assert_eq!(outcome.is_ok(), store.peer_known(PEER, &past).is_ok());
        if let Err(e) = &outcome {
            assert!(matches!(e, StoreError::RolledBack { .. }), "{e}");
        }
        outcome.is_ok()
    }

    #[test]
    fn a_copy_made_within_the_start_that_was_seen_last_is_refused_until_it_is_readmitted() {
        let (store, disk) = in_memory();
        let (peer, its_disk) = peer();
        assert!(greets(&store, &peer));
        let copy = its_disk.copy();
        // Within the same start only the budget's range changes.
        peer.spend(([1; 16], [1; 16]), 150, 6400).expect("in the budget");
        let boot = peer.past().expect("read").starts[0].boot;
        store.peer_moved(PEER, boot, peer.mark().expect("read")).expect("it goes on");
        let store = reopen(&disk.copy());
        // However often it starts, and whatever it does.
        for _ in 0..5 {
            let back = started(&copy);
            assert!(!greets(&store, &back));
            back.spend(([2; 16], [2; 16]), 1, 64).expect("in the budget");
            assert!(!greets(&store, &back));
        }
        assert!(greets(&store, &started(&its_disk)), "the real one goes on");
        let back = started(&copy);
        assert!(!greets(&store, &back));
        store.readmit(PEER).expect("forgotten");
        assert!(greets(&store, &back));
        assert!(!greets(&store, &started(&its_disk)), "and now the other one is refused");
    }

    #[test]
    fn of_two_copies_of_one_state_that_both_start_one_is_refused() {
        let (store, _) = in_memory();
        let (peer, its_disk) = peer();
        assert!(greets(&store, &peer));
        let other = its_disk.copy();
        assert!(greets(&store, &started(&its_disk)));
        let second = started(&other);
        assert!(!greets(&store, &second));
        (10..30).for_each(|n| second.spend(([n; 16], [n; 16]), 1, 64).expect("in the budget"));
        assert!(!greets(&store, &second), "nor does it get past the other");
    }

    /// As images of a machine with its memory do: the same start continues twice.
    #[test]
    fn of_two_images_of_one_start_the_values_tell() {
        let (store, _) = in_memory();
        let (peer, its_disk) = peer();
        let boot = peer.past().expect("read").starts[0].boot;
        let image = reopen(&its_disk.copy());
        assert!(greets(&store, &peer));
        peer.spend(([3; 16], [3; 16]), 1, 64).expect("in the budget");
        image.spend(([4; 16], [4; 16]), 1, 64).expect("in the budget");
        store.peer_moved(PEER, boot, peer.mark().expect("read")).expect("it goes on");
        assert!(store.peer_moved(PEER, boot, image.mark().expect("read")).is_err(), "the same number");
        assert!(store.peer_seen(PEER, &image.past().expect("read")).is_err());
        image.spend(([5; 16], [5; 16]), 1, 64).expect("in the budget");
        assert!(store.peer_seen(PEER, &image.past().expect("read")).is_err(), "and when it is ahead");
    }

    #[test]
    fn a_peer_that_was_killed_at_any_sync_is_admitted() {
        let (peer, its_disk) = in_memory();
        its_disk.record();
        let mut message = Vec::new();
        let mut tell = |its_disk: &Disk| {
            message.push((its_disk.history().len(), peer.past().expect("read")));
        };
        peer.begin_incarnation().expect("counted");
        tell(&its_disk);
        for seed in 1..5 {
            peer.put_pending(&key(&format!("k{seed}"), seed)).expect("put");
            peer.spend(([seed; 16], [seed; 16]), 1, 64).expect("in the budget");
            tell(&its_disk);
        }
        let history = its_disk.history();
        assert!(history.len() > 10, "{}", history.len());
        for (sync, bytes) in history.into_iter().enumerate() {
            let (store, _) = in_memory();
            // What it had told its peers by then.
            for (_, past) in message.iter().filter(|(at, _)| *at <= sync + 1) {
                store.peer_seen(PEER, past).expect("it goes on");
            }
            assert!(greets(&store, &started(&Disk::from_bytes(bytes))), "after sync {sync}");
        }
    }

    #[test]
    fn a_stream_beside_may_be_behind_but_not_in_another_start() {
        let (store, _) = in_memory();
        let (peer, its_disk) = peer();
        let (copy, earlier) = (its_disk.copy(), peer.past().expect("read"));
        peer.spend(([3; 16], [3; 16]), 1, 64).expect("in the budget");
        store.peer_seen(PEER, &peer.past().expect("read")).expect("seen");
        store.peer_known(PEER, &earlier).expect("said a moment before");
        assert!(store.peer_seen(PEER, &earlier).is_err());
        assert!(store.peer_known(PEER, &started(&copy).past().expect("read")).is_err());
    }

    #[test]
    fn a_peer_that_started_too_often_meanwhile_waits_for_an_operator() {
        let (store, _) = in_memory();
        let (peer, its_disk) = peer();
        assert!(greets(&store, &peer));
        (0..EARLIER).for_each(|_| drop(started(&its_disk)));
        assert!(greets(&store, &reopen(&its_disk)), "just remembered");
        (0..=EARLIER).for_each(|_| drop(started(&its_disk)));
        assert!(!greets(&store, &reopen(&its_disk)));
    }

    #[test]
    fn a_claim_of_the_largest_number_is_refused_and_locks_nobody_out() {
        let (store, _) = in_memory();
        let (peer, its_disk) = peer();
        let past = peer.past().expect("read");
        let largest = Past { number: u64::MAX, ..past.clone() };
        let empty = Past { number: 3, recent: Vec::new(), starts: Vec::new() };
        assert!(store.peer_seen(PEER, &largest).is_err() && store.peer_seen(PEER, &empty).is_err());
        assert!(greets(&store, &peer), "the first that is credible");
        assert!(store.peer_seen(PEER, &largest).is_err() && store.peer_seen(PEER, &empty).is_err());
        let mark = Mark { number: u64::MAX, value: [0; 16] };
        assert!(store.peer_moved(PEER, past.starts[0].boot, mark).is_err());
        assert!(greets(&store, &started(&its_disk)), "nobody is locked out");
    }

    #[test]
    fn what_has_not_moved_is_not_written_again() {
        let (store, disk) = in_memory();
        let (peer, _) = peer();
        let past = peer.past().expect("read");
        store.peer_seen(PEER, &past).expect("seen");
        let before = disk.syncs();
        store.peer_seen(PEER, &past).expect("seen");
        store.peer_moved(PEER, past.starts[0].boot, peer.mark().expect("read")).expect("the same");
        assert_eq!(disk.syncs(), before);
        assert_eq!(store.held_of(PEER).expect("read"), past.number);
    }
}
