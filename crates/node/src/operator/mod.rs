//! The operator's view of a node: orders ([`admin`]), health and metrics ([`http`]), readiness, and changed
//! rules for clients ([`reload`]).

pub mod admin;
pub mod balance;
pub mod certificates;
pub(crate) mod files;
pub(crate) mod housekeeping;
pub(crate) mod http;
pub(crate) mod metrics_help;
pub(crate) mod readiness;
pub(crate) mod reload;
pub(crate) mod report;
mod soon;
