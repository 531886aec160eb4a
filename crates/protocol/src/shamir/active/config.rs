//! The configuration of Shamir sharing with an active adversary, before any session.

use super::super::arithmetic::Arithmetic;
use super::super::{Inversion, Setup, Shamir, Structure, Tables, product};
use super::{Active, Preprocessing};
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::{Error, PartySet, Result};

/// Shamir sharing among parties, fewer than a third of which may cheat, with one way to invert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShamirActiveConfig {
    structure: Structure,
    inversion: Inversion,
    tables: Tables,
    preprocessing: Preprocessing,
}

impl ShamirActiveConfig {
    /// The name on the command line.
    pub const NAME: &str = "shamir-active";

    /// With at least 3t + 1 parties, and triples by pseudorandom sharing.
    pub fn new(structure: Structure, inversion: Inversion, tables: Tables) -> Result<ShamirActiveConfig> {
        let (n, t) = (structure.parties(), structure.threshold());
        if n < 3 * t + 1 {
            return Err(Error::Misuse(format!(
                "{} with threshold {t} takes {} parties at least (fewer than a third may cheat), not {n}",
                Self::NAME,
                3 * t + 1
            )));
        }
        Ok(ShamirActiveConfig { structure, inversion, tables, preprocessing: Preprocessing::default() })
    }

    /// The same with triples made in this way.
    pub fn with_preprocessing(self, preprocessing: Preprocessing) -> ShamirActiveConfig {
        ShamirActiveConfig { preprocessing, ..self }
    }

    /// The largest threshold for a number of parties.
    pub fn with_largest_threshold(parties: usize) -> Result<Structure> {
        Structure::new(parties, (parties.saturating_sub(1) / 3).max(1))
    }

    /// Parties and threshold.
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// How triples are made.
    pub fn preprocessing(&self) -> Preprocessing {
        self.preprocessing
    }
}

impl ProtocolConfig for ShamirActiveConfig {
    type Setup = Setup;
    type Session = Shamir<Active>;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn parties(&self) -> usize {
        self.structure.parties()
    }

    fn adversary(&self) -> Adversary {
        Adversary::GuaranteedOutput
    }

    fn promise(&self) -> String {
        let (n, t) = (self.structure.parties(), self.structure.threshold());
        format!(
            "active, at most {t} of {n} parties, in a synchronous network: they can neither make an output wrong nor, once \
             material is made, stop it"
        )
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters
            .with("protocol", self.name().as_bytes())
            .with("threshold", &self.structure.threshold().to_le_bytes())
            .with("inversion", self.inversion.name().as_bytes())
            .with("tables", self.tables.name().as_bytes())
            .with("tables of two bits", product::NAME)
            .with("preprocessing", self.preprocessing.name().as_bytes())
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        Setup::agree_and_compare(self.structure, net)
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<Shamir<Active>> {
        if setup.structure() != self.structure {
            return Err(Error::misuse("the setup was made for another number of parties or threshold"));
        }
        let mut arithmetic = Arithmetic::<Active>::new(setup, stream, serving)?;
        arithmetic.security.preprocessing = self.preprocessing;
        Ok(Shamir { inversion: self.inversion, tables: self.tables, arithmetic })
    }
}
