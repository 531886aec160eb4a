//! Broadcast among liars.

use super::agreement::Broadcast;
use crate::mesh::run_parties;
use crate::{Party, PartySet};

#[test]
fn what_an_honest_party_says_is_heard_by_all() {
    for len in [1, 5, 320] {
        let outcomes = run_parties(4, |net| {
            let lens = vec![len; 4];
            let broadcast = Broadcast { members: PartySet::all(4), threshold: 1, lens: &lens, patience: 1 };
            Ok(broadcast.run(&vec![net.me().0 + 1; len], net)?.messages)
        });
        for outcome in outcomes {
            let expected: Vec<_> = Party::all(4).map(|p| Some(vec![p.0 + 1; len])).collect();
            assert_eq!(outcome, Ok(expected), "{len}");
        }
    }
}
