//! Measures one setting for another command: only the figures, nothing is printed.

use anyhow::{Context, Result};
pub use polyclave_protocol::ot::EXPANSION;

use super::launch::Launch;
use super::{BenchJob, measure};
use crate::circuits::Form;
use crate::options::ProtocolOptions;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The protocol by its name.
    pub protocol: &'static str,
    /// The cipher by its name.
    pub cipher: &'static str,
    /// How the cipher is evaluated.
    pub form: Form,
    /// Number of parties.
    pub parties: usize,
    /// Threads of each party.
    pub threads: usize,
    /// Options of the protocol, by name.
    pub options: Vec<(&'static str, &'static str)>,
    /// Blocks in each repeat.
    pub blocks: usize,
    /// Repeats.
    pub repeats: usize,
    /// How many single blocks to measure the latency of.
    pub latency_samples: usize,
}

/// The measurements: medians of the slowest party.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Blocks a second online: in the slowest repeat, the median and the quickest.
    pub online: [f64; 3],
    /// Blocks a second of preprocessing; `None` if nothing is made ahead.
    pub preprocessing: Option<[f64; 3]>,
    /// Milliseconds that one block takes online.
    pub latency_ms: Option<f64>,
}

/// Seconds to wait for a silent party.
pub(super) const PATIENCE: u64 = 120;

impl Setting {
    /// Measures it, with parties that are processes of their own on the loopback interface, over TLS.
    pub fn measure(&self) -> Result<Rates> {
        let own = ProtocolOptions::named(self.protocol, self.parties);
        let protocol = self.options.iter().fold(own, |options, (name, value)| options.with(name, value));
        protocol.check_parties()?;
        let job = BenchJob {
            cipher: self.cipher.into(),
            form: self.form,
            decrypt: false,
            key_schedule: false,
            threads: self.threads,
            sizes: vec![self.blocks],
            repeats: self.repeats,
            latency_samples: self.latency_samples,
        };
        let launched = Launch { protocol: &protocol, network: "loopback", timeout_s: PATIENCE, job };
        let measured = measure(&launched, |_| ())?;
        let summary = measured.first().context("one size was measured")?;
        Ok(Rates {
            online: summary.online_rates(),
            preprocessing: summary.preprocessing_rates(),
            latency_ms: summary.latency_ms(),
        })
    }
}
