//! The commands, one a file.

mod verify_pin;

use serde::{Deserialize, Serialize};

use crate::payment::Payment;

pub use verify_pin::VerifyPin;

/// A command on one card or message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Whether the PIN of a block is that of a card.
    VerifyPin(VerifyPin),
}

impl Command {
    /// The command, as those see it who run it.
    pub fn payment(&self) -> &dyn Payment {
        match self {
            Command::VerifyPin(command) => command,
        }
    }
}
