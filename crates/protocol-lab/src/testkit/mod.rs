//! Tools for tests and measurements of protocols: networks that cheat, record or stand in for the other
//! party, and one conformance suite for every protocol.

pub mod alone;
pub mod conformance;
pub mod exchanging;
pub mod faults;
pub mod record;
pub mod sessions;
pub mod tamper;
