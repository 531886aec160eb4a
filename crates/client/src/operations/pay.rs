//! Payment commands: PINs, values of cards, codes and keys of cards (the crate `payments`). The nodes compute
//! each command as one circuit on shares. They learn whether it holds, and this client alone gets its answer.

use std::collections::BTreeMap;

use polyclave_api::operations::{MAX_PAYMENTS, Pay};
use polyclave_api::{KeyVersion, Operation, Step};
use polyclave_cipher::Cipher;
use polyclave_payments::{Command, KeyFacts, Purpose};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::operations::encrypt::cipher_of;
use crate::session::first::First;
use crate::{Error, Result};

/// The outcome of a payment command: its answer, which is empty if the command only verifies; `None` if it
/// does not hold. Nobody learns why it does not.
pub type Paid = Option<Zeroizing<Vec<u8>>>;

impl Client {
    /// Computes a payment command. `keys` are names of keys, in the order in which the command wants them.
    pub fn pay(&self, keys: &[&str], command: &Command) -> Result<Paid> {
        let mut paid = self.pay_all(keys, std::slice::from_ref(command))?;
        paid.pop().ok_or_else(|| Error::Answers("they contain no answer".into()))
    }

    /// Computes payment commands under the same keys. Those of one kind and form are computed together.
    /// Returns their outcomes in order.
    pub fn pay_all(&self, keys: &[&str], commands: &[Command]) -> Result<Vec<Paid>> {
        let of_keys: Vec<(KeyVersion, Cipher, Purpose)> =
            keys.iter().map(|key| self.of_payments(key)).collect::<Result<_>>()?;
        let facts: Vec<KeyFacts<'_>> =
            of_keys.iter().map(|(_, cipher, purpose)| KeyFacts { purpose: *purpose, cipher }).collect();
        let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, command) in commands.iter().enumerate() {
            command.payment().check(&facts).map_err(|e| Error::Misuse(of_command(i, commands.len(), e)))?;
            alike.entry(command.payment().circuit_name(&facts)).or_default().push(i);
        }
        let keys: Vec<KeyVersion> = of_keys.iter().map(|(key, ..)| key.clone()).collect();
        let mut paid = vec![None; commands.len()];
        for which in alike.values().flat_map(|which| which.chunks(MAX_PAYMENTS)) {
            let commands = which.iter().map(|i| commands[*i].clone()).collect();
            let outcomes = self.pay_together(Pay { keys: keys.clone(), commands })?;
            which.iter().zip(outcomes).for_each(|(i, outcome)| paid[*i] = outcome);
        }
        Ok(paid)
    }

    fn of_payments(&self, key: &str) -> Result<(KeyVersion, Cipher, Purpose)> {
        let handle = self.key(key)?;
        let info = handle.info()?;
        let purpose = info.properties.purpose();
        let purpose = purpose.ok_or_else(|| Error::Misuse(format!("the key '{key}' is not for payments")))?;
        Ok((info.into(), cipher_of(info)?, purpose))
    }

    fn pay_together(&self, pay: Pay) -> Result<Vec<Paid>> {
        let count = pay.commands.len();
        let (mut conversation, accepted) = self.begin(&Operation::Pay(pay), First::Step(&Step::Answers))?;
        let holds: Vec<bool> = match accepted.start.iter().all(|byte| *byte <= 1) {
            true if accepted.start.len() == count => accepted.start.iter().map(|byte| *byte == 1).collect(),
            _ => return Err(Error::Answers("they do not say which of the commands hold".into())),
        };
        let answers = conversation.bytes_of_any_length()?;
        conversation.finish()?;
        let held = holds.iter().filter(|holds| **holds).count();
        if !answers.len().is_multiple_of(held.max(1)) || (held == 0 && !answers.is_empty()) {
            return Err(Error::Answers(format!("{} bytes for {held} commands", answers.len())));
        }
        let each = answers.len() / held.max(1);
        let mut left = &answers[..];
        let take = |holds: bool| {
            holds.then(|| {
                let answer = left.split_off(..each).unwrap_or_default();
                Zeroizing::new(answer.to_vec())
            })
        };
        Ok(holds.into_iter().map(take).collect())
    }
}

/// An error about one of several commands, which are counted from 1.
fn of_command(i: usize, of: usize, error: String) -> String {
    if of == 1 { error } else { format!("command {}: {error}", i + 1) }
}
