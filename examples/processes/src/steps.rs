//! What each part of a run took, read from the clock and the network's counters.

use std::time::Instant;

use polyclave_protocol::metered::{Meter, Traffic};
use serde::{Deserialize, Serialize};

/// A part of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Step {
    /// What was done.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// Exchanges among all, one after another. An owner's input is none.
    pub exchanges: u64,
    /// What this node sent, without TLS.
    pub payload_bytes: u64,
}

/// Read between steps.
pub struct Steps<'a> {
    /// So far.
    pub done: Vec<Step>,
    meter: &'a Meter,
    began: Instant,
    before: Traffic,
}

impl<'a> Steps<'a> {
    /// Begins the first step.
    pub fn new(meter: &'a Meter) -> Self {
        Steps { done: Vec::new(), meter, began: Instant::now(), before: meter.snapshot() }
    }

    /// Ends a step and begins the next one.
    pub fn done(&mut self, name: &str) {
        let (now, traffic) = (Instant::now(), self.meter.snapshot());
        self.done.push(Step {
            name: name.into(),
            seconds: (now - self.began).as_secs_f64(),
            exchanges: traffic.exchanges - self.before.exchanges,
            payload_bytes: traffic.payload_sent - self.before.payload_sent,
        });
        (self.began, self.before) = (now, traffic);
    }
}
