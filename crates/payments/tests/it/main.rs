//! Tests of the commands as their users see them, in one binary: it is linked once.

mod cards_and_devices;
mod conditions;
mod fuzz;
mod refusals;
mod runner;
mod structure;
mod vectors;
