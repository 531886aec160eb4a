//! One setting measured for another command: the figures alone, nothing printed.

use anyhow::{Context, Result};
pub use polyclave_protocol::ot::EXPANSION;

use super::summary::Summary;
use super::{Arguments, measure};
use crate::circuits::{CircuitChoice, Form};
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
    /// Threads in each.
    pub threads: usize,
    /// Where the material comes from, if there is any.
    pub preprocessing: Option<&'static str>,
    /// Bytes of a label, of garbled circuits by projections.
    pub label_bytes: usize,
    /// Entries of an index that are multiplied at once.
    pub demux_field: usize,
    /// Blocks in each repeat.
    pub blocks: usize,
    /// Repeats.
    pub repeats: usize,
    /// Single blocks to take the latency of.
    pub latency_samples: usize,
}

/// What came of it: medians of the slowest party.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Blocks a second online: in the slowest repeat, the median and the quickest.
    pub online: [f64; 3],
    /// Blocks a second of preprocessing, likewise; none if nothing is made ahead.
    pub preprocessing: Option<[f64; 3]>,
    /// Milliseconds that one block takes online.
    pub latency_ms: Option<f64>,
}

/// Seconds that a silent party is waited for.
const PATIENCE: u64 = 120;

impl Setting {
    /// Measures it, with parties that are processes of their own on the loopback interface, over TLS.
    pub fn measure(&self) -> Result<Rates> {
        let protocol = ProtocolOptions {
            protocol: self.protocol.into(),
            parties: Some(self.parties),
            threshold: None,
            inversion: None,
            tables: "masked".into(),
            preprocessing: self.preprocessing.map(Into::into),
            expansion: EXPANSION.to_string(),
            kappa: "64".into(),
            label_bytes: self.label_bytes.to_string(),
            demux_field: self.demux_field,
        };
        protocol.check_parties()?;
        let arguments = Arguments {
            circuit: Some(CircuitChoice::Cipher(self.form)),
            protocol: protocol.clone(),
            cipher: self.cipher.into(),
            blocks: self.blocks,
            threads: self.threads,
            network: "loopback".into(),
            key_schedule: false,
            decrypt: false,
            repeats: self.repeats,
            plot: None,
            timeout: PATIENCE,
            json: true,
        };
        let measured = measure(&arguments, &protocol, &[self.blocks], self.latency_samples)?;
        let summary = Summary::new(&arguments, measured.first().context("one size was measured")?);
        Ok(Rates {
            online: summary.online_rates(),
            preprocessing: summary.preprocessing_rates(),
            latency_ms: summary.latency_ms(),
        })
    }
}
