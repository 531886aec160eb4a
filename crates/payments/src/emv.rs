//! Keys of chip cards (EMV Book 2).

pub(crate) mod card_key;
pub(crate) mod session_keys;

pub use card_key::{CardKeyMethod, EmvCard};
pub use session_keys::{Branches, SessionKey};
