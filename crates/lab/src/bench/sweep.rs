//! Measures AES-128 with its key expansion for another command: several numbers of blocks with one start of
//! the parties.

use anyhow::Result;
use serde::Serialize;

use super::launch::Launch;
use super::rates::PATIENCE;
use super::summary::Summary;
use super::{BenchJob, Spread, measure};
use crate::circuits::Form;
use crate::options::ProtocolOptions;

/// What is measured, on one thread for each party: all blocks of a batch advance in step.
pub struct Sweep {
    /// The protocol and its parties.
    pub protocol: ProtocolOptions,
    /// The network to imitate.
    pub network: String,
    /// Numbers of blocks, measured one after another.
    pub sizes: Vec<usize>,
    /// Repeats of each.
    pub repeats: usize,
}

/// The measurements for one number of blocks: times of the slowest party; the total includes preprocessing.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The number of blocks.
    pub blocks: usize,
    /// Milliseconds of the batch divided by its blocks.
    pub total_ms_per_block: Spread,
    /// The same without preprocessing.
    pub online_ms_per_block: Spread,
    /// Rounds of a batch, including preprocessing; they differ between repeats if a protocol retries.
    pub rounds: Spread,
    /// Elementary operations, including preprocessing.
    pub operations_per_block: f64,
    /// Bytes that a party sends to all others, without headers.
    pub payload_bytes_per_block: f64,
}

impl Sweep {
    /// The number of steps for the progress bar.
    pub fn steps(&self) -> u64 {
        self.job().steps()
    }

    /// Starts the parties, as processes of their own over TLS, and measures.
    pub fn measure(&self, progress: impl FnMut(u64)) -> Result<Vec<Point>> {
        let (protocol, network) = (&self.protocol, &self.network[..]);
        let launched = Launch { protocol, network, timeout_s: PATIENCE, job: self.job() };
        Ok(measure(&launched, progress)?.iter().map(Point::of).collect())
    }

    fn job(&self) -> BenchJob {
        BenchJob {
            cipher: "aes-128".into(),
            form: Form::Tables,
            decrypt: false,
            key_schedule: true,
            threads: 1,
            sizes: self.sizes.clone(),
            repeats: self.repeats,
            latency_samples: 0,
        }
    }
}

impl Point {
    fn of(summary: &Summary) -> Point {
        let (most, (online, total)) = (summary.most(), summary.seconds());
        let ms_per_block = |seconds: Spread| seconds.map(|s| 1e3 * s / most.blocks as f64);
        let rounds = most.repeats.iter().map(|repeat| repeat.rounds as f64);
        Point {
            blocks: most.blocks,
            total_ms_per_block: ms_per_block(total),
            online_ms_per_block: ms_per_block(online),
            rounds: Spread::of(rounds).expect("there is a repeat"),
            operations_per_block: most.operations_per_block + most.preprocessing_operations_per_block,
            payload_bytes_per_block: most.payload_per_block + most.preprocessing_payload_per_block,
        }
    }
}
