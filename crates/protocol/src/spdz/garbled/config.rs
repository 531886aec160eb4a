//! The protocol, and its entry in the catalog.

use polyclave_field::Gf2_64;

use super::super::{LookupMethod, Packing, Preprocessing, Setup, SpdzConfig};
use super::GarbledAuthenticated;
use crate::interface::any::AnyProtocolConfig;
use crate::interface::descriptor::{Choice, Descriptor, Threshold};
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::ot::{self, EXPANSION};
use crate::tinyot::{Kappa, TinyOt};
use crate::{Error, Party, PartySet, Result};

const NAME: &str = "garbled-authenticated";
const PARTIES: usize = 2;

/// Garbled circuits between two parties, each of which may cheat.
pub struct GarbledAuthenticatedConfig {
    /// Of `spdz-tower`, whose values these are.
    under: SpdzConfig<Gf2_64>,
    evaluator: Party,
}

/// Between two parties in a constant number of rounds. Each may cheat.
pub static GARBLED: Descriptor = Descriptor {
    name: NAME,
    summary: "garbled circuits between two parties, each of which may cheat: one garbles ahead, and two messages are sent online",
    adversary: Adversary::Abort,
    parties: PARTIES..=PARTIES,
    usual_parties: PARTIES,
    threshold: Threshold::AllButOne,
    options: &[
        Choice {
            name: "evaluator",
            summary: "the party that evaluates; the other one garbles",
            values: || vec!["1", "2"],
            default: Some("2"),
        },
        ot::EXPANSION_CHOICE,
        Kappa::CHOICE,
    ],
    takes_gates: true,
    config: |chosen| {
        let number: u8 = chosen.parsed("evaluator")?;
        let evaluator = Party(number.wrapping_sub(1));
        let config =
            GarbledAuthenticatedConfig::new(evaluator, Kappa::chosen(chosen), chosen.parsed("expansion")?)?;
        Ok(AnyProtocolConfig::new(config))
    },
    serving: None,
};

impl GarbledAuthenticatedConfig {
    /// With this party as the evaluator, and with parameters of TinyOT and of oblivious transfer.
    pub fn new(evaluator: Party, kappa: Kappa, expansion: usize) -> Result<Self> {
        if evaluator.index() >= PARTIES {
            return Err(Error::Misuse(format!("{evaluator} is none of {PARTIES} parties")));
        }
        let material = Preprocessing::Mascot { expansion };
        let under = SpdzConfig::new(PARTIES, LookupMethod::Tower, material, Packing::Rotation)?;
        Ok(GarbledAuthenticatedConfig { under: under.with_kappa(kappa), evaluator })
    }

    /// With this party as the evaluator.
    pub fn with_evaluator(evaluator: Party) -> Result<Self> {
        Self::new(evaluator, Kappa::Bits64, EXPANSION)
    }
}

impl GarbledAuthenticatedConfig {
    /// What makes material of a session.
    pub(super) fn tinyot(&self, setup: &Setup<Gf2_64>, stream: &Stream) -> Result<TinyOt> {
        let tinyot = setup.tinyot(&[&stream.label()[..], b" garbled circuits"].concat())?;
        match self.under.bits().map(|of_bits| of_bits.kappa) == Some(tinyot.kappa()) {
            true => Ok(tinyot),
            false => Err(Error::misuse("the setup was made with another kappa than the protocol is to have")),
        }
    }

    pub(super) fn evaluator(&self) -> Party {
        self.evaluator
    }
}

/// The setup is that of `spdz-tower`, and so are shared values.
impl ProtocolConfig for GarbledAuthenticatedConfig {
    type Setup = Setup<Gf2_64>;
    type Session = GarbledAuthenticated;

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
        self.under.promise()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        self.under
            .handshake(parameters)
            .with("circuits of", NAME.as_bytes())
            .with("evaluator", &[self.evaluator.0])
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup<Gf2_64>> {
        self.under.setup(net)
    }

    fn join(&self, setup: &Setup<Gf2_64>, stream: Stream, serving: PartySet) -> Result<GarbledAuthenticated> {
        let (tinyot, label) = (self.tinyot(setup, &stream)?, stream.label());
        let under = self.under.join(setup, stream, serving)?;
        Ok(GarbledAuthenticated::new(under, Some(tinyot), self.evaluator, label))
    }
}
