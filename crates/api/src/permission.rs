//! What an operation asks of the rules for clients.

use super::{Mode, Right};

/// Something that the rules have to allow for an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The right that the client needs.
    pub right: Right,
    /// The mode in which the client uses the key, if it does.
    pub mode: Option<Mode>,
    /// The name of the key; empty if the operation has none.
    pub key: String,
    /// The client that wrote it, if it is about a file in an envelope.
    pub owner: Option<String>,
    /// How the rules have to allow it.
    pub demand: Demand,
}

/// How the rules have to allow something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// A rule allows it now, within its limits.
    Now,
    /// A rule allows it at all times and without limits, and no rule denies it at any time. For what lasts:
    /// the rules do not see its later use.
    Always,
    /// The operation has a right of its own, and amounts to this. No rule needs to allow this. But rules that
    /// deny it, the times and limits of rules that allow it, and approvals for it bind the operation.
    Bound,
}

impl Permission {
    /// For an operation that has no mode.
    pub fn of(right: Right, key: &str) -> Permission {
        Permission { right, mode: None, key: key.into(), owner: None, demand: Demand::Now }
    }

    /// For what an operation amounts to, if the operation has a right of its own.
    pub fn bound(right: Right, key: &str) -> Permission {
        Permission { demand: Demand::Bound, ..Permission::of(right, key) }
    }

    /// A right for two keys. If both are the same key, it is asked for once.
    pub(crate) fn both(right: Right, first: &str, second: &str) -> Vec<Permission> {
        let mut both = vec![Permission::of(right, first), Permission::of(right, second)];
        both.dedup();
        both
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.right)?;
        if self.right.is_about_keys() {
            write!(f, " with the key '{}'", self.key)?;
        }
        self.mode.map_or(Ok(()), |mode| write!(f, " in {mode}"))?;
        self.owner.as_ref().map_or(Ok(()), |owner| write!(f, ", of {owner:?}"))
    }
}
