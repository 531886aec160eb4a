//! How an operation reaches workers that can serve it: those of another group if those of the first cannot.

use polyclave_api::{KeyInfo, Operation, operations};

use crate::client::Client;
use crate::session::conversation::{Accepted, Conversation};
use crate::session::first::First;
use crate::session::group::Workers;
use crate::{Error, Result};

impl Client {
    /// Begins a request. Nothing has happened before nodes have accepted it.
    pub(crate) fn begin(
        &self,
        operation: &Operation,
        first: First<'_>,
    ) -> Result<(Conversation<'_>, Accepted)> {
        self.draft(operation)?;
        let begin = |operation: &Operation| {
            let work = |workers| Conversation::begin(workers, operation, first);
            match operation.describe().only_uses() {
                true => self.in_one_group_or_pair(work),
                false => self.in_one_group(work),
            }
        };
        let begun = match (begin(operation), operation) {
            (Err(e), Operation::Use(used)) if e.is_disagreement() && self.may_name_the_newest(used) => {
                match self.newest(&used.key) {
                    Some(newest) => {
                        begin(&Operation::Use(operations::UseKey { id: Some(newest.id), ..used.clone() }))
                    }
                    None => Err(e),
                }
            }
            (begun, _) => begun,
        };
        let (mut conversation, accepted) = begun?;
        // Not tried again with others: these nodes have begun.
        conversation.send_first(first, &accepted)?;
        Ok((conversation, accepted))
    }

    /// A node that was killed while a version was made can have it pending where others announced it. Then
    /// the nodes disagree about which version is current, until a request names its id. An approval is for
    /// one request.
    fn may_name_the_newest(&self, used: &operations::UseKey) -> bool {
        used.id.is_none() && self.caller.approvals.given().is_none()
    }

    /// Asks all nodes for something that they confirm when it is done. Returns the properties of the key that
    /// they made, changed or deleted.
    pub(crate) fn ask_all(&self, operation: &Operation) -> Result<Option<KeyInfo>> {
        self.draft(operation)?;
        // Another group only before it is sent: the nodes may have done what they have not confirmed.
        let mut conversation = self.in_one_group(Conversation::call_all)?;
        conversation.tell(operation)?;
        conversation.done()
    }

    /// The same for what leaves a key.
    pub(crate) fn ask_all_for_key(&self, operation: &Operation) -> Result<KeyInfo> {
        self.ask_all(operation)?
            .ok_or_else(|| Error::Answers("they made or changed a key and did not say which".into()))
    }

    /// Begins the use of a key with the first worker group or standby pair that can. A node that is blamed
    /// for a failure is suspected, so that the two others are asked next.
    fn in_one_group_or_pair<'c, T>(&'c self, work: impl Fn(Workers<'c>) -> Result<T>) -> Result<T> {
        let (mut failed, mut tried) = (None, Vec::new());
        while let Some(workers) = self.next_for_use(&tried) {
            tried.push(std::ptr::from_ref(workers.group));
            match work(workers) {
                Err(e) if e.others_might() => {
                    if let Some(node) = e.blamed().filter(|_| workers.group.has_standby) {
                        workers.suspect(node);
                    }
                    // What all nodes say comes first if two of them cannot help either.
                    failed = Some(match (failed, workers.group.cluster.pair()) {
                        (Some(of_all), Some(_)) => Error::and_two_nodes(of_all, &workers.names(), &e),
                        _ => e,
                    });
                }
                done => return done.map_err(|e| self.caller.unless_halted(e)),
            }
        }
        let none = || Error::Misuse("the cluster has no workers".into());
        Err(self.caller.unless_halted(failed.unwrap_or_else(none)))
    }

    /// Does something in the first worker group that can.
    fn in_one_group<'c, T>(&'c self, work: impl Fn(Workers<'c>) -> Result<T>) -> Result<T> {
        let mut failed = None;
        for workers in self.by_preference() {
            match work(workers) {
                Err(e) if e.others_might() => failed = Some(e),
                done => return done.map_err(|e| self.caller.unless_halted(e)),
            }
        }
        let none = || Error::Misuse("the cluster has no workers".into());
        Err(self.caller.unless_halted(failed.unwrap_or_else(none)))
    }
}
