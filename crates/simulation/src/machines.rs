//! The simulated machines: functions in place of those of the C library.
//!
//! What is simulated: clocks, sleeps, randomness, threads and locks (futexes), TCP and Unix sockets, `poll`,
//! and what a disk loses. What is not: names of hosts, `epoll` (so no HTTP server of a node, and no gateway),
//! processes, signals. A thread of the simulation that waits by something that is not simulated stops
//! everything; the process ends with a word then.
#![allow(unsafe_code, reason = "it takes the place of functions of the C library")]

/// Functions that take the place of those of the C library with the same names.
macro_rules! replace {
    ($(fn $name:ident($($arg:ident: $kind:ty),*) -> $result:ty $body:block)*) => { $(
        /// The function of this name of the C library, for simulated sockets and disks.
        ///
        /// # Safety
        ///
        /// As the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> $result $body
    )* };
}

pub mod clock;
pub mod disk;
pub mod net;
mod random;
mod real;
mod threads;
pub(crate) mod world;

pub use world::{DRIVER, Machine, crash, crashes, is_crashed, most_waits, simulate, spawn_on};
