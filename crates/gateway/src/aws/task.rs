//! What an operation does: which keys a request names, what it asks of the nodes, and how the outcome is
//! told.

use polyclave_api::{KeyInfo, Right};
use polyclave_client::Client;
use polyclave_payments::Command;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::error::{Exception, Result};
use super::keys::{Key, KeyId};
use crate::failure::Failure;

/// What the nodes give: bytes for the caller.
pub(super) type Outcome = Zeroizing<Vec<u8>>;

/// A request that was read.
pub(super) trait Task: Send + Sync {
    /// Its keys, in the order in which the nodes are given them.
    fn keys(&self) -> Vec<KeyId>;

    /// What is asked of the nodes. Everything about the request that depends on the keys is checked here.
    fn work(&self, keys: &[Key]) -> Result<Work>;

    /// What was not right if the command does not hold.
    fn failure(&self) -> Exception;

    /// The members of the answer.
    fn answer(&self, outcome: &[u8], keys: &[Key]) -> Result<Map<String, Value>>;
}

/// What is asked of the nodes.
pub(super) enum Work {
    /// A payment command.
    Command(Box<Command>),
    /// Data, encrypted or decrypted under a key that is for that.
    #[allow(clippy::type_complexity, reason = "it is what the nodes are asked with")]
    Data(Right, Box<dyn Fn(&Client, &KeyInfo) -> polyclave_client::Result<Outcome> + Send + Sync>),
}

impl Work {
    /// A payment command.
    pub(super) fn pay(command: Command) -> Work {
        Work::Command(Box::new(command))
    }

    /// The right that it takes, with each of its keys.
    pub(super) fn right(&self) -> Right {
        match self {
            Work::Command(command) if command.payment().issues() => Right::Issue,
            Work::Command(_) => Right::Pay,
            Work::Data(right, _) => *right,
        }
    }

    /// Asks the nodes. `None` if the command does not hold.
    pub(super) fn ask(&self, client: &Client, keys: &[Key]) -> polyclave_client::Result<Option<Outcome>> {
        match self {
            Work::Command(command) => {
                let names: Vec<String> = keys.iter().map(Key::numbered).collect();
                client.pay(&names.iter().map(String::as_str).collect::<Vec<_>>(), command)
            }
            Work::Data(_, ask) => match keys.first() {
                Some(key) => ask(client, &key.info).map(Some),
                None => Err(polyclave_client::Error::Misuse("there is no key".into())),
            },
        }
    }
}

/// An outcome that does not have what was asked for.
pub(super) fn too_short() -> Exception {
    Exception::Failure(Failure::Internal("the nodes' answer is too short".into()))
}

/// The members of an answer that tell of a key.
pub(super) fn of_key(answer: &mut Map<String, Value>, prefix: &str, key: &Key) {
    answer.insert(format!("{prefix}KeyArn"), key.arn.clone().into());
    answer.insert(format!("{prefix}KeyCheckValue"), key.check_value.clone().into());
}
