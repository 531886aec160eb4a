//! Keys: how they are made, what becomes of them, and what nodes say of them.

pub(crate) mod life;
mod make;

use polyclave_api::{CheckKind, KeyInfo, Operation, Reply, operations};
use polyclave_protocol::{Party, PartySet};

use crate::client::Client;
use crate::session::first::First;
use crate::session::strategy::Outcome;
use crate::{Error, Result};

impl Client {
    /// The properties of the current version of a key. Where nodes correct each other: those that more nodes
    /// report than may lie. Otherwise: those of the first node that does not refuse. A refusal, if more nodes
    /// refuse than the request can do without.
    pub fn info(&self, key: &str) -> Result<KeyInfo> {
        let (name, workers, strategy) = (name_of(key), self.first(), &self.groups[0].strategy);
        let show = Operation::Show(operations::Show { key: name.into() });
        let mut answers: Vec<(Party, Result<KeyInfo>)> = Vec::new();
        for which in strategy.asked_for_key(PartySet::all(self.cluster().nodes()), workers.group.suspects()) {
            answers.retain(|(party, _)| !which.contains(*party));
            let is_alone = which.len() == 1;
            answers.extend(self.ask(which, &show, first_key, |new| match is_alone {
                true => !new.is_empty(),
                false => strategy.outcome(new).is_some(),
            }));
            let Some(Outcome { at, left_out }) = strategy.outcome(&answers) else { continue };
            for (party, answer) in &answers {
                if let Err(e @ Error::Refused { refusal, .. }) = answer
                    && left_out.contains(*party)
                {
                    workers.suspect(*party);
                    let one = [*party].into_iter().collect();
                    self.caller.remark_left_out(one, refusal.reason, &e.to_string());
                }
            }
            return answers.swap_remove(at).1;
        }
        Err(self.caller.unless_halted(strategy.no_outcome(name, answers)))
    }

    /// The check value of a version of a key, which the nodes compute from their shares. An error if it is
    /// not the one that they recorded when the key was made.
    pub fn check(&self, key: &KeyInfo, kind: CheckKind) -> Result<Vec<u8>> {
        let operation = Operation::Check(operations::Check { key: key.into(), kind });
        let (conversation, accepted) = self.begin(&operation, First::Nothing)?;
        conversation.finish()?;
        if kind == CheckKind::Cmac && accepted.start != key.check_value {
            return Err(Error::Answers(format!(
                "the check value is {}, and {} was recorded when the key was made: the shares of some node \
                 are not those of the key",
                hex::encode(&accepted.start),
                hex::encode(&key.check_value)
            )));
        }
        Ok(accepted.start)
    }
}

/// The name of a key without a version.
fn name_of(key: &str) -> &str {
    key.split_once('@').map_or(key, |(name, _)| name)
}

fn first_key(reply: Reply) -> Option<KeyInfo> {
    match reply {
        Reply::Keys { keys, .. } => keys.into_iter().next(),
        _ => None,
    }
}
