//! The entries of `replicated` and `replicated-active` in the catalog.

use super::config::{Named, ReplicatedActiveConfig, ReplicatedConfig};
use super::{Active, FewRoundsConfig, PARTIES, Passive};
use crate::interface::any::{AnyProtocolConfig, AnyServiceConfig};
use crate::interface::descriptor::{Descriptor, Serving, Threshold};
use crate::interface::stock::Levels;
use crate::{Error, Result};

/// Among three parties that follow the protocol.
pub static PASSIVE: Descriptor = Descriptor {
    name: Passive::NAME,
    summary: "replicated sharing of bits among three parties: the fewest bytes, AES by a tower of fields",
    adversary: Passive::ADVERSARY,
    config: |_| Ok(AnyProtocolConfig::new(ReplicatedConfig::<Passive>::default())),
    serving: Some(Serving {
        advice: "all three nodes serve, with the fewest bytes; a node that runs altered code can get at keys",
        stock: Levels::FEW,
        stream_bytes_a_second: Some(10_000_000),
        standby: None,
        with_transfers: None,
        config: |nodes, threshold| {
            check(Passive::NAME, nodes, threshold)?;
            Ok(AnyServiceConfig::new(ReplicatedConfig::<Passive>::default()))
        },
    }),
    ..AMONG_THREE
};

/// Among three parties. One may cheat.
pub static ACTIVE: Descriptor = Descriptor {
    name: Active::NAME,
    summary: "the same against a party that cheats: all products are proven before anything is opened",
    adversary: Active::ADVERSARY,
    config: |_| Ok(AnyProtocolConfig::new(ReplicatedActiveConfig::default())),
    serving: Some(Serving {
        advice: "all three nodes serve, and one of them may cheat: answers are right or refused. Two go on while the third one is \
                 away. After a failed check the nodes stop, and cannot tell which of them cheats",
        stock: Levels { circuits: 32, ..Levels::FEW },
        stream_bytes_a_second: Some(1_200_000),
        standby: Some("spdz-tower"),
        with_transfers: None,
        config: |nodes, threshold| {
            check(Active::NAME, nodes, threshold)?;
            Ok(AnyServiceConfig::new(FewRoundsConfig::default()))
        },
    }),
    ..AMONG_THREE
};

/// Refuses anything but three nodes, one of which may be corrupt.
fn check(name: &str, nodes: usize, threshold: usize) -> Result<()> {
    match (nodes, threshold) {
        (PARTIES, 1) => Ok(()),
        _ => Err(Error::Misuse(format!(
            "{name} runs among {PARTIES} nodes with threshold 1, not among {nodes} with threshold {threshold}"
        ))),
    }
}

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
