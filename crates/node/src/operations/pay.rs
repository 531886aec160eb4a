//! Payment commands.

use std::collections::BTreeSet;
use std::sync::Arc;

use polyclave_api::operations::{MAX_PAYMENTS, Pay};
use polyclave_api::{Describe, KeyVersion, Refusal, Right};
use polyclave_cipher::Cipher;
use polyclave_payments::{Payment, Purpose};
use polyclave_store::StoredKey;

use super::refusals::{key_for, key_refusal, malformed, not_for_this};
use super::use_key::{Other, Used};
use crate::computation::modes;
use crate::computation::payment_circuits::facts;
use crate::requests::plan::{Draft, Operation, Planned};

impl Operation for Pay {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let service = draft.service;
        let Some(first) = self.commands.first().filter(|_| self.commands.len() <= MAX_PAYMENTS) else {
            let count = self.commands.len();
            return Err(malformed(format!(
                "{count} payment commands; 1 to {MAX_PAYMENTS} are computed together"
            )));
        };
        let right = self.permissions().first().map_or(Right::Pay, |asked| asked.right);
        let keys =
            self.keys.iter().map(|key| of_payments(draft, right, key)).collect::<Result<Vec<_>, _>>()?;
        let ciphers: Vec<Cipher> = keys
            .iter()
            .map(|(key, _)| service.library.cipher(&key.info.properties.cipher))
            .collect::<Result<_, _>>()?;
        let purposes: Vec<Purpose> = keys.iter().map(|(_, purpose)| *purpose).collect();
        let facts = facts(&purposes, &ciphers.iter().collect::<Vec<_>>());
        for command in &self.commands {
            command.payment().check(&facts).map_err(key_refusal)?;
        }
        let name = |command: &dyn Payment| command.circuit_name(&facts);
        if self.commands.iter().any(|command| name(command.payment()) != name(first.payment())) {
            return Err(malformed(
                "the payment commands of one request are of one kind, with data of the same form and length"
                    .into(),
            ));
        }

        let mut blocks = vec![0; keys.len()];
        for command in &self.commands {
            let of_command = command.payment().blocks(&facts);
            blocks.iter_mut().zip(of_command).for_each(|(sum, more)| *sum += more);
        }
        let mut keys = keys.into_iter().map(|(key, _)| key).zip(blocks);
        let Some((key, of_key)) = keys.next() else {
            return Err(malformed("a payment command without a key".into()));
        };
        let others: Vec<Other> = keys.map(|(key, blocks)| Other { key, blocks, computes: true }).collect();
        let mut accounts = BTreeSet::new();
        let counted = first.payment().counted().into_iter().filter_map(|place| match place {
            0 => Some(&key),
            place => others.get(place - 1).map(|other| &other.key),
        });
        let attempt = |key: &Arc<StoredKey>| service.attempt(&key.info, self.commands.len() as u64);
        let attempted = counted.filter(|key| accounts.insert(key.info.account)).map(attempt);
        let attempted = attempted.collect::<Result<_, _>>()?;
        let mode = modes::pay::Commands::new(self.commands.clone(), purposes, of_key, attempted);
        Ok(Box::new(Used::with(key, Box::new(mode), others)))
    }
}

/// A key, and what it is for.
fn of_payments(
    draft: &Draft<'_>,
    right: Right,
    key: &KeyVersion,
) -> Result<(Arc<StoredKey>, Purpose), Refusal> {
    let stored = key_for(draft.by(), right, key)?;
    let purpose = stored.info.properties.purpose();
    let purpose =
        purpose.ok_or_else(|| not_for_this(format!("the key '{}' is not for payments", key.name)))?;
    Ok((stored, purpose))
}
