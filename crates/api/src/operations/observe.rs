//! What every node answers for itself: its state, its keys, a report for operators, and random bytes.

use serde::{Deserialize, Serialize};

use super::{Describe, Detail};
use crate::{Permission, Right};

/// The state of the node.
#[derive(Clone, Copy, Debug)]
pub struct Status;

/// The keys that this client may see, a page at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The page begins after this name, or with the first key if the name is empty.
    pub after: String,
    /// And after this version of that name.
    pub version: u32,
}

/// The versions of one key that this client may use in some way, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Show {
    /// Its name.
    pub key: String,
}

/// Random bytes. Every node draws its own; the client adds them up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Random {
    /// How many, at most [`MAX_RANDOM`](crate::MAX_RANDOM).
    pub bytes: u32,
}

/// What concerns the operator of a node.
#[derive(Clone, Copy, Debug)]
pub struct Report;

impl Describe for Status {
    fn kind(&self) -> &'static str {
        "status"
    }

    fn permissions(&self) -> Vec<Permission> {
        Vec::new()
    }

    fn audit(&self) -> Detail<'_> {
        Detail::default()
    }
}

impl Describe for List {
    fn kind(&self) -> &'static str {
        "list"
    }

    fn permissions(&self) -> Vec<Permission> {
        Vec::new()
    }

    fn audit(&self) -> Detail<'_> {
        Detail::default()
    }
}

impl Describe for Show {
    fn kind(&self) -> &'static str {
        "show"
    }

    fn permissions(&self) -> Vec<Permission> {
        Vec::new()
    }

    fn audit(&self) -> Detail<'_> {
        Detail::of(&self.key)
    }
}

impl Describe for Random {
    fn kind(&self) -> &'static str {
        "random"
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Random, "")]
    }

    fn audit(&self) -> Detail<'_> {
        Detail { key: "", text: format!("bytes={}", self.bytes) }
    }
}

impl Describe for Report {
    fn kind(&self) -> &'static str {
        "report"
    }

    fn permissions(&self) -> Vec<Permission> {
        vec![Permission::of(Right::Observe, "")]
    }

    fn audit(&self) -> Detail<'_> {
        Detail::default()
    }
}
