//! Authenticated sharing (SPDZ) with its parameters.

use std::marker::PhantomData;

use polyclave_field::{Gf2_64, MacField};

use super::Spdz;
use super::lookup_method::LookupMethod;
use super::masked::Packing;
use super::setup::Setup;
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::tinyot::Kappa;
use crate::{Error, PartySet, Result};

/// The most parties.
pub const MAX_PARTIES: usize = 16;

/// Where material comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preprocessing {
    /// From oblivious transfer ([`crate::mascot`]), with this expansion of [`crate::ot`].
    Mascot {
        /// 1 to 8: less is sent, and more computed.
        expansion: usize,
    },
    /// A dealer that every party could impersonate: for tests, and to measure the online phase alone.
    #[cfg(feature = "testkit")]
    InsecureDealer,
}

impl Preprocessing {
    /// Whether no party knows more of the material than its own share.
    pub(crate) fn is_secure(self) -> bool {
        match self {
            Preprocessing::Mascot { .. } => true,
            #[cfg(feature = "testkit")]
            Preprocessing::InsecureDealer => false,
        }
    }
}

impl std::fmt::Display for Preprocessing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Preprocessing::Mascot { expansion } => write!(f, "mascot with expansion {expansion}"),
            #[cfg(feature = "testkit")]
            Preprocessing::InsecureDealer => f.write_str("insecure_dealer"),
        }
    }
}

/// Authenticated sharing among some parties, with MACs in a field.
pub struct SpdzConfig<F: MacField> {
    parties: usize,
    method: LookupMethod,
    pub(super) preprocessing: Preprocessing,
    packing: Packing,
    kappa: Kappa,
    field: PhantomData<F>,
}

impl<F: MacField> SpdzConfig<F> {
    /// For 2 parties or more.
    pub fn new(
        parties: usize,
        method: LookupMethod,
        preprocessing: Preprocessing,
        packing: Packing,
    ) -> Result<Self> {
        if !(2..=MAX_PARTIES).contains(&parties) {
            return Err(Error::Misuse(format!(
                "{} runs among 2 to {MAX_PARTIES} parties, not {parties}",
                method.name()
            )));
        }
        let fits = match method {
            LookupMethod::Univariate => F::CELL_BITS == 6,
            LookupMethod::Tower => F::BITS == Gf2_64::BITS,
            _ => F::CELL_BITS != 6,
        };
        if packing == Packing::Rotation && (parties != 2 || F::BITS != Gf2_64::BITS) {
            return Err(Error::misuse(
                "unit vectors are made by rotation between 2 parties, with MACs in GF(2^64)",
            ));
        }
        if !fits {
            return Err(Error::Misuse(format!("{} does not run over {}", method.name(), F::NAME)));
        }
        Ok(SpdzConfig { parties, method, preprocessing, packing, kappa: Kappa::Bits64, field: PhantomData })
    }

    /// The same with another statistical parameter of TinyOT, where it makes a part of the material.
    pub fn with_kappa(self, kappa: Kappa) -> Self {
        SpdzConfig { kappa, ..self }
    }

    /// The same with another method to look up tables, which runs with the same MACs.
    pub(super) fn with_method(&self, method: LookupMethod) -> Self {
        let SpdzConfig { parties, preprocessing, packing, kappa, field, .. } = *self;
        SpdzConfig { parties, method, preprocessing, packing, kappa, field }
    }

    /// How tables are looked up.
    pub fn method(&self) -> LookupMethod {
        self.method
    }

    /// Whether TinyOT makes a part of the material, and with which parameter.
    pub(super) fn bits(&self) -> Option<Kappa> {
        let by_bits = matches!(self.packing, Packing::Bits | Packing::Rotation);
        let wanted = self.method == LookupMethod::Tower || by_bits && self.parties == 2;
        wanted.then_some(self.kappa)
    }
}

impl<F: MacField> ProtocolConfig for SpdzConfig<F> {
    type Setup = Setup<F>;
    type Session = Spdz<F>;

    fn name(&self) -> &'static str {
        self.method.name()
    }

    fn parties(&self) -> usize {
        self.parties
    }

    fn adversary(&self) -> Adversary {
        Adversary::Abort
    }

    fn promise(&self) -> String {
        let (n, most) = (self.parties, self.parties - 1);
        match self.preprocessing {
            Preprocessing::Mascot { .. } => format!(
                "active, static, at most {most} of {n} parties: secure with abort, statistical error about 2^-{}; no \
                 fairness, and no culprit is named",
                F::BITS.min(64)
            ),
            #[cfg(feature = "testkit")]
            Preprocessing::InsecureDealer => format!(
                "insecure with material from insecure_dealer, which every party could impersonate; with real material \
                 active, at most {most} of {n} parties"
            ),
        }
    }

    fn verifies(&self) -> bool {
        self.preprocessing.is_secure()
    }

    fn needs_dealer(&self) -> bool {
        !self.preprocessing.is_secure()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters
            .with("protocol", self.name().as_bytes())
            .with("field", F::NAME.as_bytes())
            .with("preprocessing", self.preprocessing.to_string().as_bytes())
            .with("demux field", self.packing.name::<F>().as_bytes())
            .with("kappa", &self.bits().map_or(0, Kappa::bits).to_le_bytes())
    }

    fn set_up(&self, net: &mut dyn Net) -> Result<Setup<F>> {
        if net.parties() != self.parties || net.members().len() != self.parties {
            let connected = net.members().len();
            let n = self.parties;
            return Err(Error::Misuse(format!("{connected} parties are connected, all of {n} are needed")));
        }
        Setup::generate(self.preprocessing, self.bits(), net)
    }

    fn join(&self, setup: &Setup<F>, stream: Stream, serving: PartySet) -> Result<Spdz<F>> {
        if serving != PartySet::all(self.parties) {
            let n = self.parties;
            return Err(Error::Misuse(format!("{serving} serve, but all of {n} parties have to")));
        }
        let source = setup.source(self.preprocessing, &stream.label())?;
        Ok(Spdz::with_source(self.method, self.packing, setup.key().clone(), &stream, source))
    }
}
