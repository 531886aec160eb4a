//! Keys of chip cards (EMV Book 2).

pub(crate) mod card_key;
pub(crate) mod script;
pub(crate) mod session_keys;

pub use card_key::{CardKeyMethod, EmvCard};
pub use script::ScriptPadding;
pub use session_keys::{Branches, SessionKey};
