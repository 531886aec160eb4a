//! Tools for tests and measurements of protocols: networks that cheat, record or stand in for the other party, and one conformance suite
//! for every protocol.

pub mod additive;
pub mod alone;
pub mod conformance;
pub mod exchanging;
pub mod faults;
pub mod insecure_committed_tables;
pub mod insecure_dealer;
pub mod insecure_dealer_bits;
pub mod insecure_minimac;
pub mod insecure_tables;
pub mod record;
pub mod tamper;
