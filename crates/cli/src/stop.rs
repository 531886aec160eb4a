//! Ends the process in order: the first signal asks for it, the second one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Becomes true when this process is asked to end.
pub fn on_signals() -> Result<Arc<AtomicBool>> {
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag down and raises it; the second finds it raised.
        flag::register_conditional_shutdown(signal, 1, stopping.clone())
            .and_then(|_| flag::register(signal, stopping.clone()))
            .context("cannot prepare for signals")?;
    }
    Ok(stopping)
}
