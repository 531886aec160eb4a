//! Authenticated sharing (SPDZ) with its parameters.

use std::marker::PhantomData;

use polyclave_field::{Gf2_64, MacField};

use super::Spdz;
use super::lookup_method::LookupMethod;
use super::masked::Packing;
use super::setup::Setup;
use crate::authenticated::{MacKey, Source};
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::tinyot::Kappa;
use crate::{Error, Party, PartySet, Result};

/// The most parties.
pub const MAX_PARTIES: usize = 16;

/// Where material comes from.
pub enum Preprocessing<F: MacField> {
    /// From oblivious transfer ([`crate::mascot`]), with this expansion of [`crate::ot`].
    Mascot {
        /// 1 to 8: less is sent, and more computed.
        expansion: usize,
    },
    /// A dealer.
    Dealt(&'static dyn Dealer<F>),
}

/// What deals all parties their material, from a seed that all of them know. The laboratory has one, for
/// tests and to measure the online phase alone.
pub trait Dealer<F: MacField>: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// A seed that all parties have from now on.
    fn agree_on_seed(&self, net: &mut dyn Net) -> Result<[u8; 32]>;

    /// This party's share of the MAC key.
    fn key(&self, seed: &[u8; 32], me: Party, parties: usize) -> MacKey<F>;

    /// Material for what the label names.
    fn source(&self, seed: &[u8; 32], label: &[u8], key: &MacKey<F>) -> Box<dyn Source<F>>;

    /// Authenticated bits of two parties under the same key.
    fn bits(&self, seed: &[u8; 32], label: &[u8], key: &MacKey<F>) -> Box<dyn crate::tinyot::Source>;
}

impl<F: MacField> Clone for Preprocessing<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: MacField> Copy for Preprocessing<F> {}

impl<F: MacField> Preprocessing<F> {
    /// Whether no party knows more of the material than its own share.
    pub(crate) fn is_secure(self) -> bool {
        matches!(self, Preprocessing::Mascot { .. })
    }
}

impl<F: MacField> std::fmt::Display for Preprocessing<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Preprocessing::Mascot { expansion } => write!(f, "mascot with expansion {expansion}"),
            Preprocessing::Dealt(dealer) => f.write_str(dealer.name()),
        }
    }
}

/// Authenticated sharing among some parties, with MACs in a field.
pub struct SpdzConfig<F: MacField> {
    parties: usize,
    method: LookupMethod,
    pub(super) preprocessing: Preprocessing<F>,
    packing: Packing,
    of_bits: OfBits,
    field: PhantomData<F>,
}

/// How TinyOT makes its part of the material.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfBits {
    /// Its statistical parameter.
    pub kappa: Kappa,
    /// Whether by [silent transfers](crate::ot::Silent).
    pub silent: bool,
}

impl<F: MacField> SpdzConfig<F> {
    /// For 2 parties or more.
    pub fn new(
        parties: usize,
        method: LookupMethod,
        preprocessing: Preprocessing<F>,
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
        Ok(SpdzConfig {
            parties,
            method,
            preprocessing,
            packing,
            of_bits: OfBits { kappa: Kappa::Bits64, silent: false },
            field: PhantomData,
        })
    }

    /// The same with another statistical parameter of TinyOT, where it makes a part of the material.
    pub fn with_kappa(self, kappa: Kappa) -> Self {
        SpdzConfig { of_bits: OfBits { kappa, ..self.of_bits }, ..self }
    }

    /// The same with [silent transfers](crate::ot::Silent) for the material of TinyOT, or without.
    pub fn with_silent_transfers(self, silent: bool) -> Self {
        SpdzConfig { of_bits: OfBits { silent, ..self.of_bits }, ..self }
    }

    /// The same with another method to look up tables, which runs with the same MACs.
    pub(super) fn with_method(&self, method: LookupMethod) -> Self {
        let SpdzConfig { parties, preprocessing, packing, of_bits, field, .. } = *self;
        SpdzConfig { parties, method, preprocessing, packing, of_bits, field }
    }

    /// How tables are looked up.
    pub fn method(&self) -> LookupMethod {
        self.method
    }

    /// Whether TinyOT makes a part of the material, and how.
    pub(super) fn bits(&self) -> Option<OfBits> {
        let by_bits = matches!(self.packing, Packing::Bits | Packing::Rotation);
        let wanted = self.method == LookupMethod::Tower || by_bits && self.parties == 2;
        wanted.then_some(self.of_bits)
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
                self.bits().map_or(64, |of_bits| of_bits.kappa.bits()).min(F::BITS)
            ),
            Preprocessing::Dealt(dealer) => format!(
                "insecure with material from {}, which every party could impersonate; with real material active, at most {most} of \
                 {n} parties",
                dealer.name()
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
        let parameters = parameters
            .with("protocol", self.name().as_bytes())
            .with("field", F::NAME.as_bytes())
            .with("preprocessing", self.preprocessing.to_string().as_bytes())
            .with("demux field", self.packing.name::<F>().as_bytes())
            .with("kappa", &self.bits().map_or(0, |of_bits| of_bits.kappa.bits()).to_le_bytes());
        match self.bits().is_some_and(|of_bits| of_bits.silent) {
            true => parameters.with("transfers under [stock] (node.toml)", b"silent"),
            false => parameters,
        }
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup<F>> {
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
