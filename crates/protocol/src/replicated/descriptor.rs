//! The entries of `replicated` and `replicated-active` in the catalog.

use super::config::{Named, ReplicatedActiveConfig, ReplicatedConfig};
use super::{Active, PARTIES, Passive};
use crate::any::AnyProtocolConfig;
use crate::descriptor::{Descriptor, Threshold};

/// Among three parties that follow the protocol.
pub static PASSIVE: Descriptor = Descriptor {
    name: Passive::NAME,
    summary: "replicated sharing of bits among three parties: the fewest bytes, AES by a tower of fields",
    adversary: Passive::ADVERSARY,
    config: |_| Ok(AnyProtocolConfig::new(ReplicatedConfig::<Passive>::default())),
    ..AMONG_THREE
};

/// Among three parties of which one may cheat.
pub static ACTIVE: Descriptor = Descriptor {
    name: Active::NAME,
    summary: "the same against a party that cheats: all products are proven before anything is opened",
    adversary: Active::ADVERSARY,
    config: |_| Ok(AnyProtocolConfig::new(ReplicatedActiveConfig::default())),
    ..AMONG_THREE
};

const AMONG_THREE: Descriptor = Descriptor {
    name: Passive::NAME,
    summary: "",
    adversary: Passive::ADVERSARY,
    parties: PARTIES..=PARTIES,
    usual_parties: PARTIES,
    threshold: Threshold::Minority,
    options: &[],
    takes_gates: false,
    config: |_| Ok(AnyProtocolConfig::new(ReplicatedConfig::<Passive>::default())),
    serving: None,
};
