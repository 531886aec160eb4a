//! The keys that a node holds ([`held`]), what their versions may be used for ([`states`]), copies of keys
//! ([`key_copy`]), a lock on each name while a key is made or deleted ([`names`]), and the shares that
//! standby pairs have of them ([`standby`]).

pub(crate) mod held;
pub(crate) mod key_copy;
pub(crate) mod names;
pub(crate) mod standby;
pub(crate) mod states;
