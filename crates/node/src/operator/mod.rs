//! What an operator sees of a node and asks of it: orders ([`admin`]), health and counts ([`http`]), readiness, the audit log ([`audit`],
//! [`logbook`]), and faults of others.

pub mod admin;
pub mod audit;
pub(crate) mod clock;
pub(crate) mod faults;
pub(crate) mod files;
pub(crate) mod housekeeping;
pub(crate) mod http;
pub(crate) mod logbook;
pub(crate) mod readiness;
