#![doc = include_str!("../README.md")]

mod card;
mod card_value;
pub mod commands;
mod data;
mod decimal;
mod decimalize;
mod dukpt;
mod emv;
mod hexadecimal;
mod key_source;
mod lorawan;
mod mac;
mod milenage;
mod payment;
mod pin_block;
mod pin_reference;
#[cfg(test)]
mod probe;
mod purpose;
mod random_digits;
mod tables;
mod wiring;

pub use card::{Digits, Pan};
pub use card_value::CardData;
pub use commands::Command;
pub use data::{DataKey, DataMode};
pub use dukpt::{Dukpt, DukptUsage, WorkingKey};
pub use emv::{Branches, CardKeyMethod, CryptogramInput, EmvCard, SessionKey};
pub use key_source::KeySource;
pub use mac::{MacInput, MacMethod, MessagePadding};
pub use milenage::OperatorValue;
pub use payment::{KeyFacts, Payment, Role};
pub use pin_block::{EncryptedPin, OutgoingPin, PinFormat};
pub use pin_reference::PinReference;
pub use purpose::{DecimalizationTable, Purpose, UnknownPurpose};
