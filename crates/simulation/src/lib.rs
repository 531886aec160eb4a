//! A whole cluster in one process, under one seed: nodes and clients as they are shipped, on simulated
//! machines.
//!
//! Nothing in the product knows of this. The program that contains this crate has functions of its own in place
//! of those of the C library by which a program learns the time, draws random bytes, starts threads and waits
//! for them, and reaches network and disk. In threads of a simulation they are simulated; in all others they do
//! what they always do.
//!
//! What is simulated: clocks, sleeps, randomness, threads and locks (futexes), TCP and Unix sockets, `poll`, and
//! what a disk loses. What is not: names of hosts, `epoll` (so no HTTP server of a node, and no gateway),
//! processes, signals. A thread of the simulation that waits by something that is not simulated stops
//! everything; the process ends with a word then.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "it takes the place of functions of the C library")]

pub mod clock;
pub mod cluster;
pub mod disk;
pub mod life;
pub mod net;
mod random;
mod real;
mod threads;
mod world;

pub use world::{DRIVER, Machine, crash, is_crashed, most_waits, simulate, spawn_on};
