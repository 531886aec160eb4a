//! Tests of the commands as their users see them, in one binary: it is linked once.

mod runner;
mod verify_pin;
