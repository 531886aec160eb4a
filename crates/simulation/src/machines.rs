//! The simulated machines: functions in place of those of the C library.
//!
//! What is simulated: clocks, sleeps, randomness, threads and locks (futexes), TCP and Unix sockets, `poll`,
//! and what a disk loses. What is not: names of hosts, `epoll` (so no HTTP server of a node, and no gateway),
//! processes, signals. A thread of the simulation that waits by something that is not simulated stops
//! everything; the process ends with a word then.
#![allow(unsafe_code, reason = "it takes the place of functions of the C library")]

pub mod clock;
pub mod disk;
pub mod net;
mod random;
mod real;
mod threads;
pub(crate) mod world;

pub use world::{DRIVER, Machine, crash, is_crashed, most_waits, simulate, spawn_on};
