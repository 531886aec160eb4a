//! The commands, one a file.

mod accept_join;
mod authenticate_sim;
mod change_pin;
mod change_pin_visa;
mod decrypt_data;
mod derive_session_keys;
mod encrypt_data;
mod generate_arqc;
mod generate_card_value;
mod generate_mac;
mod generate_pin;
mod generate_pin_reference;
mod generate_script_mac;
mod issue_card_key;
mod reencrypt_data;
mod resynchronize_sim;
mod translate_pin;
mod verify_arqc;
mod verify_card_value;
mod verify_join_request;
mod verify_mac;
mod verify_pin;
mod verify_script_mac;

use serde::{Deserialize, Serialize};

use crate::payment::Payment;

pub use accept_join::{AcceptJoin, JoinVersion};
pub use authenticate_sim::AuthenticateSim;
pub use change_pin::{ChangePin, ScriptPadding};
pub use change_pin_visa::ChangePinVisa;
pub use decrypt_data::DecryptData;
pub use derive_session_keys::{DeriveSessionKeys, SessionKeys};
pub use encrypt_data::EncryptData;
pub use generate_arqc::GenerateArqc;
pub use generate_card_value::GenerateCardValue;
pub use generate_mac::GenerateMac;
pub use generate_pin::{GeneratePin, PinMethod};
pub use generate_pin_reference::{GeneratePinReference, ReferenceMethod};
pub use generate_script_mac::GenerateScriptMac;
pub use issue_card_key::IssueCardKey;
pub use reencrypt_data::ReencryptData;
pub use resynchronize_sim::ResynchronizeSim;
pub use translate_pin::TranslatePin;
pub use verify_arqc::{Arpc, VerifyArqc};
pub use verify_card_value::VerifyCardValue;
pub use verify_join_request::VerifyJoinRequest;
pub use verify_mac::VerifyMac;
pub use verify_pin::VerifyPin;
pub use verify_script_mac::VerifyScriptMac;

/// A command on one card or message. Messages between programs number the variants: new ones go to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Whether the PIN of a block is that of a card.
    VerifyPin(VerifyPin),
    /// A PIN under another key.
    TranslatePin(TranslatePin),
    /// A card verification value.
    GenerateCardValue(GenerateCardValue),
    /// Whether a card verification value is right.
    VerifyCardValue(VerifyCardValue),
    /// A message authentication code.
    GenerateMac(GenerateMac),
    /// Whether a message authentication code is right.
    VerifyMac(VerifyMac),
    /// A PIN for a card.
    GeneratePin(GeneratePin),
    /// A PVV or an offset of a PIN.
    GeneratePinReference(GeneratePinReference),
    /// Encrypted data.
    EncryptData(EncryptData),
    /// Data in the clear.
    DecryptData(DecryptData),
    /// Data under another key.
    ReencryptData(ReencryptData),
    /// Whether a chip card's cryptogram is right.
    VerifyArqc(VerifyArqc),
    /// A cryptogram as a chip card makes it.
    GenerateArqc(GenerateArqc),
    /// A MAC of a command to a chip card.
    GenerateScriptMac(GenerateScriptMac),
    /// A new PIN for a chip card.
    ChangePin(ChangePin),
    /// A chip card's key for who personalizes it.
    IssueCardKey(IssueCardKey),
    /// An authentication vector for a SIM card.
    AuthenticateSim(AuthenticateSim),
    /// The sequence number of a SIM card.
    ResynchronizeSim(ResynchronizeSim),
    /// Whether a device of LoRaWAN has its key.
    VerifyJoinRequest(VerifyJoinRequest),
    /// A join-accept message of LoRaWAN.
    AcceptJoin(AcceptJoin),
    /// Session keys of LoRaWAN.
    DeriveSessionKeys(DeriveSessionKeys),
    /// A new PIN for a chip card of Visa.
    ChangePinVisa(ChangePinVisa),
    /// Whether the MAC of a command to a chip card is right.
    VerifyScriptMac(VerifyScriptMac),
}

impl Command {
    /// The command, as those see it who run it.
    pub fn payment(&self) -> &dyn Payment {
        match self {
            Command::VerifyPin(command) => command,
            Command::TranslatePin(command) => command,
            Command::GenerateCardValue(command) => command,
            Command::VerifyCardValue(command) => command,
            Command::GenerateMac(command) => command,
            Command::VerifyMac(command) => command,
            Command::GeneratePin(command) => command,
            Command::GeneratePinReference(command) => command,
            Command::EncryptData(command) => command,
            Command::DecryptData(command) => command,
            Command::ReencryptData(command) => command,
            Command::VerifyArqc(command) => command,
            Command::GenerateArqc(command) => command,
            Command::GenerateScriptMac(command) => command,
            Command::ChangePin(command) => command,
            Command::IssueCardKey(command) => command,
            Command::AuthenticateSim(command) => command,
            Command::ResynchronizeSim(command) => command,
            Command::VerifyJoinRequest(command) => command,
            Command::AcceptJoin(command) => command,
            Command::DeriveSessionKeys(command) => command,
            Command::ChangePinVisa(command) => command,
            Command::VerifyScriptMac(command) => command,
        }
    }
}
