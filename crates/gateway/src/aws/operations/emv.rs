//! Members of requests about chip cards.

use polyclave_payments::{CardKeyMethod, EmvCard};
use serde::Deserialize;

use crate::aws::error::Result;
use crate::aws::members::{self, digits, hex};

/// How the key of a card is made.
#[derive(Clone, Copy, Deserialize)]
pub(super) enum MajorKeyMode {
    #[serde(rename = "EMV_OPTION_A")]
    OptionA,
    #[serde(rename = "EMV_OPTION_B")]
    OptionB,
}

/// A card.
pub(super) fn card(mode: MajorKeyMode, pan: &str, sequence: &str) -> Result<EmvCard> {
    Ok(EmvCard {
        pan: members::pan(pan)?,
        sequence: digits("PanSequenceNumber", sequence, 2..=2)?,
        method: match mode {
            MajorKeyMode::OptionA => CardKeyMethod::OptionA,
            MajorKeyMode::OptionB => CardKeyMethod::OptionB,
        },
    })
}

/// So many bytes.
pub(super) fn bytes<const N: usize>(member: &'static str, text: &str) -> Result<[u8; N]> {
    let read = hex(member, text, N..=N)?;
    let mut bytes = [0; N];
    bytes.copy_from_slice(&read);
    Ok(bytes)
}

/// The application transaction counter.
pub(super) fn counter(text: &str) -> Result<[u8; 2]> {
    bytes("ApplicationTransactionCounter", text)
}
