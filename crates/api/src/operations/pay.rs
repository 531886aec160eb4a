//! Payment commands: PINs, values of cards, codes and keys of cards (the crate `payments`). All commands of
//! one request are of one kind and shape, under the same keys, and are computed together.
//!
//! The nodes answer in two parts. They all say of each command whether it holds (`start` of
//! [`Reply::Accepted`](crate::Reply::Accepted), one byte for each: 1 or 0). And they give the client alone
//! the answers of those that hold, one after another.

use polyclave_payments::Command;
use serde::{Deserialize, Serialize};

use super::{Describe, Detail, KeyRef, KeyVersion};
use crate::{Permission, Right};

/// The most payment commands of one request.
pub const MAX_PAYMENTS: usize = 256;

/// Compute payment commands (`Answers`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pay {
    /// The keys, in the order in which the commands want them.
    pub keys: Vec<KeyVersion>,
    /// 1 to [`MAX_PAYMENTS`].
    pub commands: Vec<Command>,
}

impl Pay {
    /// The kind of its commands.
    fn command(&self) -> &'static str {
        self.commands.first().map_or("none", |command| command.payment().kind())
    }

    /// Whether something is made for a card or its holder, and not checked or passed on.
    fn issues(&self) -> bool {
        self.commands.iter().any(|command| command.payment().issues())
    }
}

impl Describe for Pay {
    fn kind(&self) -> &'static str {
        "pay"
    }

    fn keys(&self) -> Vec<KeyRef<'_>> {
        self.keys.iter().map(KeyVersion::about).collect()
    }

    /// For each key, once.
    fn permissions(&self) -> Vec<Permission> {
        let right = if self.issues() { Right::Issue } else { Right::Pay };
        let mut asked: Vec<Permission> = Vec::new();
        for key in &self.keys {
            let permission = Permission::of(right, &key.name);
            if !asked.contains(&permission) {
                asked.push(permission);
            }
        }
        asked
    }

    /// Nothing of what the commands say: account numbers do not belong into a log.
    fn audit(&self) -> Detail<'_> {
        let others = self.keys.iter().skip(1).map(|key| key.audit("with", "with_id"));
        let text: Vec<String> = [format!("command={} count={}", self.command(), self.commands.len())]
            .into_iter()
            .chain(others)
            .collect();
        Detail { key: self.keys.first().map_or("", |key| &key.name), text: text.join(" ") }
    }

    fn only_uses(&self) -> bool {
        true
    }

    fn in_words(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(KeyVersion::in_words).collect();
        format!(
            "{} payment commands ({}) under the keys {}",
            self.commands.len(),
            self.command(),
            keys.join(", ")
        )
    }
}
