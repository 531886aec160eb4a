//! The protocol, and its entry in the catalog.

use super::super::config::{ReplicatedActiveConfig, Setup};
use super::super::ring::{Purpose, keys};
use super::roles::{Role, Seats};
use super::{GarbledThree, Keys};
use crate::interface::any::AnyProtocolConfig;
use crate::interface::descriptor::{Choice, Descriptor, Threshold};
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::replicated::PARTIES;
use crate::{Error, Party, PartySet, Result};

const NAME: &str = "garbled-three";

/// Garbled circuits among three parties. One may cheat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GarbledThreeConfig {
    evaluator: Party,
}

/// Among three parties in a constant number of rounds. One may cheat.
pub static GARBLED: Descriptor = Descriptor {
    name: NAME,
    summary: "garbled circuits among three parties, one of which may cheat: two garble the same, and two messages are sent online",
    adversary: Adversary::Abort,
    parties: PARTIES..=PARTIES,
    usual_parties: PARTIES,
    threshold: Threshold::Minority,
    options: &[Choice {
        name: "evaluator",
        summary: "the party that evaluates; the two others garble",
        values: || vec!["1", "2", "3"],
        default: Some("3"),
    }],
    takes_gates: true,
    config: |chosen| {
        let number: u8 = chosen.parsed("evaluator")?;
        Ok(AnyProtocolConfig::new(GarbledThreeConfig::with_evaluator(Party(number.wrapping_sub(1)))?))
    },
    serving: None,
};

impl GarbledThreeConfig {
    /// With this party as the evaluator. Parties that compute much can change the roles from stream to
    /// stream, each with a configuration of its own.
    pub fn with_evaluator(evaluator: Party) -> Result<GarbledThreeConfig> {
        match evaluator.index() < PARTIES {
            true => Ok(GarbledThreeConfig { evaluator }),
            false => Err(Error::Misuse(format!("{evaluator} is none of {PARTIES} parties"))),
        }
    }

    /// What a party does.
    pub(super) fn role(&self, party: Party) -> Role {
        self.seats().role(party)
    }

    pub(super) fn seats(&self) -> Seats {
        Seats::with(self.evaluator)
    }

    /// What a party has of the setup for its role in one stream.
    pub(super) fn keys(&self, setup: &Setup, stream: &Stream) -> Keys {
        let [garbling_before, garbling_behind] = keys(&setup.keys, stream, Purpose::Garbling);
        let [masking_before, masking_behind] = keys(&setup.keys, stream, Purpose::OutputMask);
        match self.role(setup.keys.me()) {
            Role::First => Keys::First { garbling: garbling_behind },
            Role::Second => Keys::Second { garbling: garbling_before, masking: masking_behind },
            Role::Evaluator => Keys::Evaluator { masking: masking_before },
        }
    }
}

/// The last party evaluates.
impl Default for GarbledThreeConfig {
    fn default() -> Self {
        GarbledThreeConfig { evaluator: Party(PARTIES as u8 - 1) }
    }
}

/// The setup is that of `replicated-active`, and so are shared values.
impl ProtocolConfig for GarbledThreeConfig {
    type Setup = Setup;
    type Session = GarbledThree;

    fn name(&self) -> &'static str {
        NAME
    }

    fn parties(&self) -> usize {
        PARTIES
    }

    fn adversary(&self) -> Adversary {
        Adversary::Abort
    }

    fn promise(&self) -> String {
        "active with abort, at most 1 of 3 parties: it learns nothing, and results are right or refused"
            .into()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters.with("protocol", NAME.as_bytes()).with("evaluator", &[self.evaluator.0])
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        ReplicatedActiveConfig::default().setup(net)
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<GarbledThree> {
        let (keys, label) = (self.keys(setup, &stream), stream.label());
        let under = ReplicatedActiveConfig::default().join(setup, stream, serving)?;
        Ok(GarbledThree::new(under, self.seats(), keys, label))
    }
}
