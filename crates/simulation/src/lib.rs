//! A whole cluster in one process, under one seed: nodes and clients as they are shipped, on simulated
//! machines.
//!
//! Nothing in the product knows of this. The program that contains this crate has functions of its own in
//! place of those of the C library by which a program learns the time, draws random bytes, starts threads and
//! waits for them, and reaches network and disk. In threads of a simulation they are simulated; in all others
//! they do what they always do.
#![cfg(target_os = "linux")]

pub mod cluster;
pub mod life;
pub mod machines;
