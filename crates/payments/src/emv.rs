//! Keys of chip cards (EMV Book 2).

pub(crate) mod card_key;
mod cryptogram;
pub(crate) mod script;
pub(crate) mod session_keys;

pub use card_key::{CardKeyMethod, EmvCard};
pub use cryptogram::CryptogramInput;
pub use script::ScriptPadding;
pub(crate) use script::integrity_role;
pub use session_keys::{Branches, SessionKey};
