//! The protocol, its entry in the catalog, and its setup.

use super::super::Setup;
use super::super::config::common_key;
use super::{PARTIES, ReplicatedFour, structure};
use crate::interface::any::{AnyProtocolConfig, AnyServiceConfig};
use crate::interface::descriptor::{Descriptor, Serving, Threshold};
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::stock::Levels;
use crate::retirement::Retirement;
use crate::{Error, PartySet, Result, shamir};

/// Replicated sharing among four parties. One may cheat, or be gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicatedFourConfig;

const NAME: &str = "replicated-four";

/// Among four parties. One may cheat, or be gone.
pub static FOUR: Descriptor = Descriptor {
    name: NAME,
    summary: "replicated sharing of bits among four parties; one may cheat or be gone, and cannot stop it",
    adversary: Adversary::GuaranteedOutput,
    parties: PARTIES..=PARTIES,
    usual_parties: PARTIES,
    threshold: Threshold::FewerThanAThird,
    options: &[],
    takes_gates: false,
    config: |_| Ok(AnyProtocolConfig::new(ReplicatedFourConfig)),
    serving: Some(Serving {
        advice: "one of the four nodes may cheat, or be gone, and answers come all the same and are right. Nothing is made ahead",
        stock: Levels::FEW,
        stream_bytes_a_second: None,
        standby: None,
        with_transfers: None,
        config: |nodes, threshold| match (nodes, threshold) {
            (PARTIES, 1) => Ok(AnyServiceConfig::new(ReplicatedFourConfig)),
            _ => Err(Error::Misuse(format!(
                "{NAME} runs among {PARTIES} nodes with threshold 1, not among {nodes} with threshold {threshold}"
            ))),
        },
    }),
};

impl ProtocolConfig for ReplicatedFourConfig {
    type Setup = Setup;
    type Session = ReplicatedFour;

    fn name(&self) -> &'static str {
        NAME
    }

    fn parties(&self) -> usize {
        PARTIES
    }

    fn adversary(&self) -> Adversary {
        Adversary::GuaranteedOutput
    }

    fn promise(&self) -> String {
        "active, at most 1 of 4 parties, in a synchronous network: it learns nothing, and can neither make an output wrong nor stop it"
            .into()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters.with("protocol", NAME.as_bytes())
    }

    /// The holders of each key compare it. To the common key all contribute, by commitments that they
    /// compare.
    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        let keys = shamir::Setup::agree_and_compare(structure(), net)?;
        let common = common_key("common key of replicated sharing among four", net)?;
        Ok(Setup { keys, common, retirement: Retirement::default() })
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<ReplicatedFour> {
        if stream.serving() != serving || !serving.contains(setup.keys.me()) {
            let (me, agreed) = (setup.keys.me(), stream.serving());
            return Err(Error::Misuse(format!("{me} joins with {serving}, but the session is of {agreed}")));
        }
        if serving.len() + 1 < PARTIES || !serving.without(PartySet::all(PARTIES)).is_empty() {
            let fault = format!("{serving} cannot serve: {NAME} takes all four parties, or three of them");
            return Err(Error::misuse(fault));
        }
        Ok(ReplicatedFour::new(setup, stream, serving))
    }
}
