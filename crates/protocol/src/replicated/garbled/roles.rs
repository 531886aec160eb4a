//! Who garbles, who evaluates, and which two parties know a component of a sharing.
//!
//! Roles go round the ring: the second garbler is the party behind the first, and the evaluator the party
//! behind the second. A party's first share is the component with the number of its role, and its second
//! share is the next component. So each component has two parties that know it, whoever evaluates.

use super::super::ring::{next, previous};
use crate::Party;

/// What a party does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Garbles, sends the circuit, and verifies what the evaluator says of outputs. Paper: P1.
    First,
    /// Garbles the same, and sends digests of it. Paper: P2.
    Second,
    /// Evaluates. Paper: P3.
    Evaluator,
}

/// The component that the first garbler and the evaluator know: the first garbler opens its labels.
pub(super) const BY_FIRST: usize = 0;
/// The component that the evaluator lacks.
pub(super) const HIDDEN: usize = 1;
/// The component that the second garbler and the evaluator know.
pub(super) const BY_SECOND: usize = 2;
/// How many components a value has.
pub(super) const COMPONENTS: usize = 3;

/// Which party has which role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seats {
    pub(super) first: Party,
    pub(super) second: Party,
    pub(super) evaluator: Party,
}

impl Seats {
    /// With this party as the evaluator.
    pub(super) fn with(evaluator: Party) -> Seats {
        Seats { first: next(evaluator), second: previous(evaluator), evaluator }
    }

    /// The role of a party.
    pub(super) fn role(&self, party: Party) -> Role {
        match party {
            party if party == self.first => Role::First,
            party if party == self.second => Role::Second,
            _ => Role::Evaluator,
        }
    }
}

impl Role {
    /// Which of a party's two shares is this component, if it has it.
    pub(super) fn share_of(self, component: usize) -> Option<usize> {
        let first = self as usize;
        [first, (first + 1) % COMPONENTS].into_iter().position(|own| own == component)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_component_is_known_to_the_two_parties_that_open_and_verify_it() {
        let knows = |component| {
            let all = [Role::First, Role::Second, Role::Evaluator];
            all.map(|role: Role| role.share_of(component))
        };
        assert_eq!(knows(BY_FIRST), [Some(0), None, Some(1)]);
        assert_eq!(knows(HIDDEN), [Some(1), Some(0), None]);
        assert_eq!(knows(BY_SECOND), [None, Some(1), Some(0)]);
        for evaluator in Party::all(COMPONENTS) {
            let seats = Seats::with(evaluator);
            assert_eq!((next(seats.first), next(seats.second)), (seats.second, evaluator));
            assert_eq!(seats.role(evaluator), Role::Evaluator);
        }
    }
}
