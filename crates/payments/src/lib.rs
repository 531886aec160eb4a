#![doc = include_str!("../README.md")]

mod card;
pub mod commands;
mod decimalize;
mod dukpt;
mod key_source;
mod payment;
mod pin_block;
mod pin_reference;
mod purpose;
mod tables;
mod wiring;

pub use card::{Digits, Pan};
pub use commands::Command;
pub use dukpt::{Dukpt, DukptUsage, WorkingKey};
pub use key_source::KeySource;
pub use payment::{KeyFacts, Payment, Role};
pub use pin_block::{EncryptedPin, PinFormat};
pub use pin_reference::PinReference;
pub use purpose::{DecimalizationTable, Purpose, UnknownPurpose};
