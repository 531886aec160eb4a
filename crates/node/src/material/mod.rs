//! What the nodes make together ahead of requests: common secrets ([`setup`]), epochs ([`epoch`]), material
//! in stock ([`stock`]), and fresh common secrets that replace the old ones ([`refresh`]) and end a
//! [`quarantine`].

pub(crate) mod delivery;
pub(crate) mod epoch;
mod filling_order;
mod guard;
pub(crate) mod preparation;
pub(crate) mod quarantine;
pub(crate) mod refresh;
pub(crate) mod setup;
pub(crate) mod state;
pub(crate) mod stock;
pub(crate) mod strategy;
pub(crate) mod target;
pub(crate) mod under_way;
pub(crate) mod workers;
