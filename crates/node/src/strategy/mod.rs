//! The ways to serve, and which of them a protocol takes.
//!
//! | the protocol's adversary | requests | what the nodes make ahead |
//! |---|---|---|
//! | passive | [`Abort`]: all serving nodes agree on every step, and any failure ends the request | [nothing](Unchecked) |
//! | active, with abort | the same | [`Checked`]: epochs; a failed check ends all service until a refresh |
//! | active, with guaranteed output | [`Guaranteed`]: a quorum agrees, and the client goes on without the others | [`Standing`]: a stock that no cheater can end |

mod abort;
pub(crate) mod guaranteed;
mod passive;

use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::service::ServiceConfig;

use crate::material::strategy::MaterialStrategy;
use crate::requests::strategy::RequestStrategy;
use abort::{Abort, Checked};
use guaranteed::{Guaranteed, Standing};
use passive::Unchecked;

/// How a node serves.
pub(crate) struct Strategy {
    /// How requests of clients are served.
    pub(crate) requests: Box<dyn RequestStrategy>,
    /// How material is made ahead of them.
    pub(crate) material: Box<dyn MaterialStrategy>,
}

impl Strategy {
    /// The strategy for a protocol. This is the only place that distinguishes protocols.
    pub(crate) fn of(config: &AnyServiceConfig) -> Strategy {
        match config.adversary() {
            Adversary::Passive => {
                Strategy { requests: Box::new(Abort { is_checked: false }), material: Box::new(Unchecked) }
            }
            Adversary::Abort => Strategy {
                requests: Box::new(Abort { is_checked: true }),
                material: Box::new(Checked { has_mac_key: config.has_mac_key() }),
            },
            Adversary::GuaranteedOutput => Strategy {
                requests: Box::new(Guaranteed { quorum: config.quorum() }),
                material: Box::new(Standing { quorum: config.quorum() }),
            },
        }
    }
}
