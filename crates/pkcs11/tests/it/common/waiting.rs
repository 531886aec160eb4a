//! Waiting for nodes.

use std::time::{Duration, Instant};

use cryptoki_sys::*;

/// How long a test waits for what nodes do by themselves: much longer than it takes, since machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until something is the case.
pub fn wait_until(is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "it did not become so");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks again while nodes that have just started do not serve: the client leaves one that it did not reach
/// alone for a moment.
pub fn until_served<T>(ask: impl Fn() -> Result<T, CK_RV>) -> Result<T, CK_RV> {
    let until = Instant::now() + PATIENCE;
    loop {
        let message = ask();
        if message.is_ok() || Instant::now() >= until {
            return message;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
