//! What a guess at a PIN costs, and which PINs a seal takes.

use super::{PinError, PinOwner};
use crate::passphrase_key::Cost;

/// What a guess costs, by the strength of the seal.
pub(super) const FULL: Cost = Cost { memory_kib: 64 << 10, passes: 3, lanes: 4 };
/// The least that OWASP recommends, with lanes.
const QUICK: Cost = Cost { memory_kib: 19 << 10, passes: 2, lanes: 4 };
/// The fewest bytes of a PIN, by strength.
const MIN_PIN: usize = 4;
const MIN_PIN_IF_QUICK: usize = 20;
/// The most bytes of a PIN.
pub const MAX_PIN: usize = 255;

/// What a guess at a PIN costs, which is also what a login takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strength {
    /// 64 MiB, three passes.
    #[default]
    Full,
    /// 19 MiB, two passes, for PINs that nobody guesses: of 20 bytes or more.
    Quick,
}

impl Strength {
    pub(super) fn cost(self) -> Cost {
        match self {
            Strength::Full => FULL,
            Strength::Quick => QUICK,
        }
    }

    /// The fewest bytes of a PIN.
    pub fn least_pin(self) -> usize {
        self.cost().least_pin()
    }

    /// Refuses a PIN that a seal of this strength does not take. Sealing does so by itself.
    pub fn refuse_length(self, owner: PinOwner, pin: &[u8]) -> Result<(), PinError> {
        self.cost().refuse_length(owner, pin)
    }
}

impl Cost {
    /// A seal that costs less than the full one takes long PINs only.
    pub(super) fn least_pin(self) -> usize {
        let is_full = self.memory_kib >= FULL.memory_kib && self.passes >= FULL.passes;
        if is_full { MIN_PIN } else { MIN_PIN_IF_QUICK }
    }

    pub(super) fn refuse_length(self, owner: PinOwner, pin: &[u8]) -> Result<(), PinError> {
        let least = self.least_pin();
        if (least..=MAX_PIN).contains(&pin.len()) { Ok(()) } else { Err(PinError::Length { owner, least }) }
    }
}
