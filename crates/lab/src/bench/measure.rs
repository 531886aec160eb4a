//! What one party measures, and how several values are summed up.

use serde::{Deserialize, Serialize};

/// One repeat of a batch or several. Times in seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Repeat {
    /// Making material.
    pub preprocessing: f64,
    /// Evaluating.
    pub online: f64,
    /// Rounds of both, of the thread that had the most.
    pub rounds: u64,
}

/// What one party measured for one number of blocks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// The number.
    pub blocks: usize,
    /// As often as asked for.
    pub repeats: Vec<Repeat>,
    /// Online seconds of single blocks.
    pub latencies: Vec<f64>,
    /// Rounds of one batch, preprocessing apart.
    pub rounds: u64,
    /// Rounds of preprocessing for one batch.
    pub preprocessing_rounds: u64,
    /// Elementary operations online that were counted, per block.
    pub operations_per_block: f64,
    /// Likewise in preprocessing.
    pub preprocessing_operations_per_block: f64,
    /// Sent at the sockets online, per block, TLS included.
    pub bytes_per_block: f64,
    /// Sent by the protocol online, per block.
    pub payload_per_block: f64,
    /// Likewise in preprocessing.
    pub preprocessing_payload_per_block: f64,
    /// Sent at the sockets in preprocessing, per block.
    pub preprocessing_bytes_per_block: f64,
    /// Kept from preprocessing to use, per block.
    pub material_per_block: usize,
    /// Seconds to wipe all memory of shares and material at the end of the session.
    pub wiping: f64,
    /// The most memory the process has used.
    pub peak_memory_bytes: Option<u64>,
}

/// Of several values.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The middle.
    pub median: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Of at least one value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        Some(Spread { min, median: middle, max })
    }
    /// Of a function of the values that grows with them.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Spread {
        Spread { min: f(self.min), median: f(self.median), max: f(self.max) }
    }
}
