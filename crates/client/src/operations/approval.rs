//! Operations that need the approval of several people: a draft for them to sign, and the request with their
//! signatures.

use std::sync::Arc;

use polyclave_api::{About, Approval, KeyRef, NamedKey, Operation, Statement, Subject, version_of_files};
use polyclave_protocol::session::random_bytes;

use crate::client::Client;
use crate::session::approvals::{Approvals, Draft};
use crate::{Error, Result};

impl Client {
    /// Sends an approval with every request from now on.
    pub fn with_approval(mut self, approval: Approval) -> Client {
        self.caller.approvals = Approvals::With(approval);
        self
    }

    /// Asks nothing of the nodes from now on except which keys there are. The first operation that would need
    /// a right goes to `take` as a statement to be approved, and ends with [`Error::Drafted`]. It may be done
    /// until `not_after` (seconds since 1970).
    pub fn drafting(
        mut self,
        not_after: u64,
        purpose: &str,
        take: impl Fn(Statement) -> Result<()> + Send + Sync + 'static,
    ) -> Client {
        let draft = Draft { not_after, purpose: purpose.into(), take: Arc::new(take) };
        self.caller.approvals = Approvals::Draft(draft);
        self
    }

    /// Writes an operation down in the place of asking for it, if that is wanted.
    pub(crate) fn draft(&self, operation: &Operation) -> Result<()> {
        let Approvals::Draft(draft) = &self.caller.approvals else { return Ok(()) };
        let mut keys = Vec::new();
        for KeyRef { name, about } in operation.describe().keys() {
            let info = match about {
                About::Current => self.info(name).or_else(|e| match operation {
                    // A deletion that was interrupted is to be finished, and some nodes do not have the key
                    // any more.
                    Operation::Delete(_) => self.newest(name).ok_or(e),
                    _ => Err(e),
                })?,
                About::Version(version) => self.version(name, version)?,
                About::Id(id) => self.version_with_id(name, id)?,
            };
            keys.push(NamedKey { name: name.into(), version: info.version, id: info.id });
        }
        let mut nonce = [0; 32];
        random_bytes(&mut nonce)?;
        (draft.take)(Statement {
            version: version_of_files(),
            cluster: self.cluster().id(),
            subject: Subject::Operation {
                requester: self.caller.identity.bound(),
                operation: Box::new(operation.clone()),
            },
            keys,
            not_after: draft.not_after,
            nonce,
            purpose: draft.purpose.clone(),
        })?;
        Err(Error::Drafted)
    }
}
