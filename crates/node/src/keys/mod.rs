//! Keys: those that a node holds ([`held`]), how they are made ([`make`]), from others too ([`derive`], [`unwrap`], [`key_copy`]), what a node stores of
//! one ([`key`]), and a lock on each name while a key is made or deleted ([`names`]).

pub(crate) mod derive;
pub(crate) mod held;
pub(crate) mod key;
pub(crate) mod key_block;
pub(crate) mod key_copy;
pub(crate) mod make;
pub(crate) mod names;
pub(crate) mod states;
pub(crate) mod unwrap;
