//! Has nodes answer vector sets in the JSON form of NIST's Automated Cryptographic Validation Protocol
//! (ACVP), as a validation server sends them, and compares the answers with the expected ones. It is no
//! validation.
//!
//! ```text
//! set.rs     the JSON: what is asked, what is answered, what was expected
//!     |
//! job.rs     what a test asks of the nodes, or why they do not do it
//!     |
//! ask.rs     the nodes' answers, through the client library; monte_carlo.rs: of the tests of this name
//!     |
//! judge.rs   an answer beside the expected one; what nodes chose themselves is computed again
//!     |
//! run.rs     all tests of a set, several at once; report.rs: what became of them, group by group
//! ```
//!
//! Keys of tests are public. Each is imported as a session key, and deleted when its test is over.

pub mod ask;
#[cfg(test)]
mod fuzz;
pub mod job;
pub mod judge;
mod monte_carlo;
pub mod report;
pub mod run;
pub mod set;
