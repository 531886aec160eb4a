//! The entries of `op-lut` and `sp-lut` in the catalog.

use super::{LutConfig, Method};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::descriptor::{Descriptor, Parameters, Threshold};
use polyclave_protocol::protocol::Adversary;
use polyclave_protocol::{Result, ot};

/// Whole tables ahead.
pub static OP: Descriptor = Descriptor {
    name: "op-lut",
    summary: "lookups between two parties: whole tables by oblivious transfer ahead, few bits online",
    config: |parameters| config(Method::Op, parameters),
    ..BETWEEN_TWO
};

/// A table online for each lookup.
pub static SP: Descriptor = Descriptor {
    name: "sp-lut",
    summary: "lookups between two parties: random oblivious transfers ahead, each table sent once online",
    config: |parameters| config(Method::Sp, parameters),
    ..BETWEEN_TWO
};

const BETWEEN_TWO: Descriptor = Descriptor {
    name: "",
    summary: "",
    adversary: Adversary::Passive,
    parties: 2..=2,
    usual_parties: 2,
    threshold: Threshold::AllButOne,
    options: &[ot::EXPANSION_CHOICE],
    takes_gates: false,
    config: |parameters| config(Method::Op, parameters),
    serving: None,
};

fn config(method: Method, parameters: &Parameters) -> Result<AnyProtocolConfig> {
    let expansion = parameters.parsed(ot::EXPANSION_CHOICE.name)?;
    Ok(AnyProtocolConfig::new(LutConfig { method, expansion }))
}
