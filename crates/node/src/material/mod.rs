//! What the nodes make together ahead of requests: common secrets ([`set_up`]), what is made afresh after a start ([`epoch`]), material
//! in [`stock`], and fresh common secrets for old ones ([`rotation`]), which end a [`quarantine`].

pub(crate) mod epoch;
pub(crate) mod preparation;
pub(crate) mod quarantine;
pub(crate) mod rotation;
pub(crate) mod set_up;
pub(crate) mod state;
pub(crate) mod stock;
pub(crate) mod strategy;
pub(crate) mod target;
