//! The operator's view of a node: orders ([`admin`]), health and metrics ([`http`]), readiness, the audit log ([`audit`], [`logbook`]), and
//! faults of other nodes.

pub mod admin;
pub mod audit;
pub mod balance;
pub mod certificates;
pub(crate) mod clock;
pub(crate) mod faults;
pub(crate) mod files;
pub(crate) mod housekeeping;
pub(crate) mod http;
pub(crate) mod logbook;
pub(crate) mod metrics_help;
pub(crate) mod readiness;
pub(crate) mod report;
