//! The entries of the garbled-circuit protocols in the catalog.

use super::projection::{Labels, ProjectionConfig};
use super::{GarbledConfig, Gates};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::descriptor::{Choice, Descriptor, Parameters, Threshold};
use polyclave_protocol::protocol::Adversary;
use polyclave_protocol::{Result, ot};

/// ANDs by half gates.
pub static HALF: Descriptor = Descriptor {
    summary: "garbled circuits between two parties, ANDs by half gates",
    takes_gates: true,
    ..descriptor("garbled-half", |chosen| gates(Gates::Half, chosen))
};

/// ANDs by three halves.
pub static THREE_HALVES: Descriptor = Descriptor {
    summary: "garbled circuits between two parties, ANDs by three halves: fewer bytes, more hashes",
    takes_gates: true,
    ..descriptor("garbled-three-halves", |chosen| gates(Gates::ThreeHalves, chosen))
};

/// Tables by projection gates.
pub static PROJECTION: Descriptor = Descriptor {
    summary: "garbled circuits between two parties, wires of several bits and projection gates",
    options: &[
        ot::EXPANSION_CHOICE,
        Choice {
            name: "label-bytes",
            summary: "bytes of a label: 17 (128 bits and the colour) or 16 (120 bits and the colour, as in the poster)",
            values: || vec!["17", "16"],
            default: Some("17"),
        },
    ],
    ..descriptor(ProjectionConfig::NAME, |chosen| {
        let labels = if chosen.value("label-bytes") == "16" { Labels::Short } else { Labels::Long };
        Ok(AnyProtocolConfig::new(ProjectionConfig { labels, expansion: chosen.parsed("expansion")? }))
    })
};

const fn descriptor(name: &'static str, config: fn(&Parameters) -> Result<AnyProtocolConfig>) -> Descriptor {
    Descriptor {
        name,
        summary: "",
        adversary: Adversary::Passive,
        parties: 2..=2,
        usual_parties: 2,
        threshold: Threshold::AllButOne,
        options: &[ot::EXPANSION_CHOICE],
        takes_gates: false,
        config,
        serving: None,
    }
}

fn gates(gates: Gates, chosen: &Parameters) -> Result<AnyProtocolConfig> {
    Ok(AnyProtocolConfig::new(GarbledConfig { gates, expansion: chosen.parsed("expansion")? }))
}
