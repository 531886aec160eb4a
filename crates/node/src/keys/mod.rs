//! Keys: those that a node holds ([`held`]), how they are made ([`make`]), what a node stores of one ([`key`]), and one request at a time for each name ([`names`]).

pub(crate) mod held;
pub(crate) mod key;
pub(crate) mod make;
pub(crate) mod names;
