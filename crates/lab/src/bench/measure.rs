//! What one party measures, and the summary of several values.

use serde::{Deserialize, Serialize};

/// One repeat of one or several batches. Times in seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Repeat {
    /// Making material.
    pub preprocessing: f64,
    /// Evaluating.
    pub online: f64,
    /// Rounds of both, in the thread that had the most.
    pub rounds: u64,
}

/// What one party measured for one number of blocks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// The number of blocks.
    pub blocks: usize,
    /// The repeats, as many as asked for.
    pub repeats: Vec<Repeat>,
    /// Online seconds of single blocks.
    pub latencies: Vec<f64>,
    /// Rounds of one batch without preprocessing.
    pub rounds: u64,
    /// Rounds of preprocessing for one batch.
    pub preprocessing_rounds: u64,
    /// Elementary operations online that were counted, per block.
    pub operations_per_block: f64,
    /// Elementary operations in preprocessing, per block.
    pub preprocessing_operations_per_block: f64,
    /// Bytes sent at the sockets online, per block, TLS included.
    pub bytes_per_block: f64,
    /// Bytes sent by the protocol online, per block.
    pub payload_per_block: f64,
    /// Bytes sent by the protocol in preprocessing, per block.
    pub preprocessing_payload_per_block: f64,
    /// Bytes sent at the sockets in preprocessing, per block.
    pub preprocessing_bytes_per_block: f64,
    /// Bytes of material kept from preprocessing for use, per block.
    pub material_per_block: usize,
    /// Seconds to wipe all memory of shares and material at the end of the session.
    pub wiping: f64,
    /// The most memory the process has used.
    pub peak_memory_bytes: Option<u64>,
}

/// Minimum, median and maximum of several values.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// The minimum.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// The spread of at least one value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        Some(Spread { min, median: middle, max })
    }
    /// The spread of an increasing function of the values.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Spread {
        Spread { min: f(self.min), median: f(self.median), max: f(self.max) }
    }
}
