//! Tests of the laboratory's protocols, and of all protocols of the catalog, in one binary: it is linked
//! once.

// What several of them share.
mod committed;
#[path = "../../../protocol/tests/it/lookups.rs"]
#[allow(dead_code, reason = "the other crate needs more of it")]
mod lookups;

mod conformance;
mod documents;
mod garbled;
mod garbled_faults;
mod garbled_projection;
mod lanes;
mod lut;
mod lut_faults;
mod minimac_faults;
mod retirement;
mod tinytable_minimac;
mod tinytable_minimac_faults;
