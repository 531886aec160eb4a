//! What is drawn in a life, and what a person is told of it.

use std::time::Duration;

use crate::machines::clock::elapsed;
use crate::machines::world;

/// A number below `bound`, which must not be 0.
pub(super) fn random(bound: u64) -> u64 {
    world::with(|world| world.random.below(bound))
}

/// Whether something happens that happens once in so many times.
pub(super) fn once_in(times: u64) -> bool {
    random(times) == 0
}

/// A time that is often short and seldom long.
pub(super) fn random_time(longest: Duration) -> Duration {
    let longest = longest.as_nanos() as u64 >> random(8);
    Duration::from_nanos(random(longest.max(1)))
}

/// Says what happens, if a person wants to know.
pub(super) fn log(line: &str) {
    if std::env::var_os("SIMULATION_LOG").is_some() {
        eprintln!("{:>12.3?} {line}", elapsed());
    }
}
