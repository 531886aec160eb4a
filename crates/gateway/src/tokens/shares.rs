//! Which token makes room for another one. Counts are kept for each role and each identity, so nothing walks
//! over all tokens.
//!
//! The role that has most loses one, and in it the identity that has most: its oldest. A person may have any
//! number of identities, such as one for each branch of a project, but the file says which roles there are.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::moment::Moment;

/// A token by its hash, and a time of it.
pub(super) type Dated = (Moment, [u8; 32]);

/// The tokens by their roles.
#[derive(Default)]
pub(super) struct Shares(HashMap<Arc<str>, OfRole>);

#[derive(Default)]
struct OfRole {
    number: usize,
    by_subject: HashMap<String, BTreeSet<Dated>>,
    /// How many each subject has, with its oldest one. The subject that has most comes last; of several with
    /// as many, the one whose oldest is oldest.
    order: BTreeSet<(usize, Reverse<Dated>)>,
}

impl Shares {
    pub(super) fn add(&mut self, role: &Arc<str>, subject: &str, token: Dated) {
        let of_role = self.0.entry(role.clone()).or_default();
        of_role.change(subject, |tokens| tokens.insert(token));
    }

    pub(super) fn remove(&mut self, role: &str, subject: &str, token: Dated) {
        let Some(of_role) = self.0.get_mut(role) else { return };
        of_role.change(subject, |tokens| tokens.remove(&token));
        if of_role.number == 0 {
            self.0.remove(role);
        }
    }

    /// The token in whose place one of a role and a subject comes: their own, if no others have more.
    pub(super) fn next(&self, role: &str, subject: &str) -> Option<[u8; 32]> {
        let (_, most) = self.0.iter().max_by_key(|(name, of_role)| (of_role.number, ***name == *role))?;
        let (number, Reverse(oldest)) = most.order.last()?;
        let own = most.by_subject.get(subject).filter(|own| own.len() == *number);
        own.and_then(BTreeSet::first).or(Some(oldest)).map(|(_, hash)| *hash)
    }

    /// All tokens of a role.
    pub(super) fn of(&self, role: &str) -> Vec<[u8; 32]> {
        let tokens = self.0.get(role).into_iter().flat_map(|of_role| of_role.by_subject.values().flatten());
        tokens.map(|(_, hash)| *hash).collect()
    }
}

impl OfRole {
    /// Changes what a subject has.
    fn change(&mut self, subject: &str, change: impl FnOnce(&mut BTreeSet<Dated>) -> bool) {
        let place = |tokens: &BTreeSet<Dated>| tokens.first().map(|oldest| (tokens.len(), Reverse(*oldest)));
        if !self.by_subject.contains_key(subject) {
            self.by_subject.insert(subject.into(), BTreeSet::new());
        }
        let Some(tokens) = self.by_subject.get_mut(subject) else { return };
        if let Some(place) = place(tokens) {
            self.order.remove(&place);
        }
        self.number -= tokens.len();
        change(tokens);
        self.number += tokens.len();
        if let Some(place) = place(tokens) {
            self.order.insert(place);
        } else {
            self.by_subject.remove(subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A number that is random enough, from one before.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    /// What [`Shares::next`] says, found by counting all of them.
    fn counted(all: &[(&str, String, Dated)], role: &str, subject: &str) -> [u8; 32] {
        let of_role = |name: &str| all.iter().filter(|(of, ..)| *of == name).count();
        let most = all.iter().map(|(of, ..)| *of).max_by_key(|of| (of_role(of), *of == role)).expect("some");
        let in_it: Vec<_> = all.iter().filter(|(of, ..)| *of == most).collect();
        let of_subject = |name: &str| in_it.iter().filter(|(_, of, _)| of == name).count();
        let oldest = |name: &str| in_it.iter().filter(|(_, of, _)| of == name).map(|(.., age)| *age).min();
        let key = |of: &str| (of_subject(of), of == subject, Reverse(oldest(of)));
        let loser = in_it.iter().map(|(_, of, _)| of.as_str()).max_by_key(|of| key(of)).expect("some");
        oldest(loser).expect("it has some").1
    }

    #[test]
    fn who_makes_room_is_who_would_be_found_by_counting() {
        let (mut shares, mut all, mut state) = (Shares::default(), Vec::new(), 1);
        let began = Moment::now();
        for number in 0..3000_u64 {
            // Roles of different sizes, so that no two have as many.
            let role = ["ci", "ci", "ci", "ci", "shop"][next(&mut state) as usize % 5];
            let subject = (next(&mut state) % 20).pow(2).to_string();
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&next(&mut state).to_be_bytes());
            let age = (began + Duration::from_micros(number / 3), hash);
            if all.len() == 200 {
                let gone = shares.next(role, &subject).expect("some");
                let at = all.iter().position(|(.., (_, hash)): &(&str, String, Dated)| *hash == gone);
                let number_of = |name| all.iter().filter(|(of, ..)| *of == name).count();
                if number_of("ci") != number_of("shop") {
                    assert_eq!(gone, counted(&all, role, &subject));
                }
                let (role, subject, age) = all.swap_remove(at.expect("it is there"));
                shares.remove(role, &subject, age);
            }
            shares.add(&role.into(), &subject, age);
            all.push((role, subject, age));
            assert_eq!(shares.of("ci").len() + shares.of("shop").len(), all.len());
        }
        for (role, subject, age) in all {
            shares.remove(role, &subject, age);
        }
        assert!(shares.0.is_empty(), "nothing is left behind");
    }
}
