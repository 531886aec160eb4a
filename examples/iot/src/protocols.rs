//! From a protocol's name to its code: the one place that knows which protocol runs.

use anyhow::{Context, Result, ensure};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::catalog;

/// The protocols between two servers, by name.
pub const PROTOCOLS: [&str; 6] = [
    "tinytable-linear64",
    "spdz-lt",
    "tinytable",
    "garbled-half",
    "garbled-three-halves",
    "garbled-projection",
];

/// The protocol of this name. The servers make their material themselves, unless `insecure_dealer`, which
/// each of them could be, stands in.
pub fn config(protocol: &str, insecure_dealer: bool) -> Result<AnyProtocolConfig> {
    polyclave_protocol_lab::add_to_catalog();
    let known = catalog::find(protocol).filter(|_| PROTOCOLS.contains(&protocol));
    let descriptor = known.with_context(|| {
        format!("there is no protocol '{protocol}' here; choose one of {}", PROTOCOLS.join(", "))
    })?;
    ensure!(
        !insecure_dealer || descriptor.option("preprocessing").is_some(),
        "{protocol} has no material that a dealer could make; leave --preprocessing away"
    );
    let dealer = insecure_dealer.then_some(("preprocessing", "insecure_dealer"));
    // Triples of single bits: all tables are those of ANDs.
    let bits = descriptor.option("demux-field").map(|_| ("demux-field", "1"));
    let chosen: Vec<(&str, &str)> = dealer.into_iter().chain(bits).collect();
    Ok(descriptor.config(Some(2), None, &chosen)?)
}
