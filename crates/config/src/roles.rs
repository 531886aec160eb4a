//! What the workers of the nodes do: some may only serve requests, and others only make the material that
//! these take.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What the workers of one number do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// They serve requests, and make material for themselves and for those that only serve.
    #[default]
    Both,
    /// They serve requests, with material that other workers of their nodes have made.
    Serve,
    /// They make material for others, and serve no requests.
    Make,
}

impl Role {
    /// Whether these workers serve requests.
    pub fn serves(self) -> bool {
        self != Role::Make
    }

    /// Whether these workers make material.
    pub fn makes(self) -> bool {
        self != Role::Serve
    }

    /// In words, as part of a sentence about workers.
    pub fn message(self) -> &'static str {
        match self {
            Role::Both => "serve and make material",
            Role::Serve => "serve only",
            Role::Make => "make material only",
        }
    }
}

/// The workers that do not do both, by their numbers, which count for all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roles {
    /// Those that only serve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub serve_only: Vec<u16>,
    /// Those that only make material.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub make_only: Vec<u16>,
}

impl Roles {
    /// Whether all workers do both.
    pub fn is_empty(&self) -> bool {
        self.serve_only.is_empty() && self.make_only.is_empty()
    }

    /// What the workers of a number do.
    pub fn of(&self, number: u16) -> Role {
        if self.serve_only.contains(&number) {
            Role::Serve
        } else if self.make_only.contains(&number) {
            Role::Make
        } else {
            Role::Both
        }
    }

    /// Checks that the roles fit nodes with this number of worker groups.
    pub fn check(&self, worker_groups: usize) -> Result<()> {
        let wrong = |message: String| Err(Error::Misuse(message));
        let named: Vec<u16> = self.serve_only.iter().chain(&self.make_only).copied().collect();
        if let Some(number) = named.iter().find(|number| usize::from(**number) >= worker_groups) {
            return wrong(format!(
                "worker {number} is told what to do, and not all nodes have one; they have workers 0 to {}",
                worker_groups - 1
            ));
        }
        if let Some((_, number)) = named.iter().enumerate().find(|(at, number)| named[..*at].contains(number))
        {
            return wrong(format!("worker {number} is told twice what to do"));
        }
        // It agrees with the other nodes on common secrets, and is asked for approvals.
        if self.make_only.contains(&0) {
            return wrong("worker 0 has to serve; let another one only make material".into());
        }
        let lacks_maker =
            (0..worker_groups).all(|number| u16::try_from(number).is_ok_and(|n| !self.of(n).makes()));
        if lacks_maker {
            return wrong("no worker makes material; leave one out of those that only serve".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(serve_only: &[u16], make_only: &[u16]) -> Roles {
        Roles { serve_only: serve_only.into(), make_only: make_only.into() }
    }

    #[test]
    fn every_worker_has_one_task() {
        let roles = roles(&[0, 2], &[3]);
        roles.check(4).expect("they fit");
        let all: Vec<Role> = (0..4).map(|number| roles.of(number)).collect();
        assert_eq!(all, [Role::Serve, Role::Both, Role::Serve, Role::Make]);
    }

    #[test]
    fn tasks_that_cannot_be_done_are_refused_with_the_reason() {
        for (roles, worker_groups, message) in [
            (roles(&[2], &[]), 2, "0 to 1"),
            (roles(&[1], &[1]), 3, "twice"),
            (roles(&[1, 1], &[]), 3, "twice"),
            (roles(&[], &[0]), 2, "has to serve"),
            (roles(&[0, 1], &[]), 2, "no worker makes"),
            (roles(&[0], &[]), 1, "no worker makes"),
        ] {
            let error = roles.check(worker_groups).expect_err("refused").to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
