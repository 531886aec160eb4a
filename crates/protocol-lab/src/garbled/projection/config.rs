//! The protocol with its parameters, what a party keeps between sessions, and how a session starts.

use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::offsets::Offsets;
use super::{Labels, Projected, Side};
use crate::garbled::hash::Hash;
use crate::garbled::{EVALUATOR, GARBLER};
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Pairs, Shape};
use polyclave_protocol::pool::Pool;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, Stream};
use polyclave_protocol::tally::{Phase, Tally};
use polyclave_protocol::{Error, PartySet, Result, coins};

/// Garbled circuits with projection gates between two parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectionConfig {
    /// How long labels are.
    pub labels: Labels,
    /// The expansion of oblivious transfer: 1, 2, 4 or 8.
    pub expansion: usize,
}

/// What a party keeps: transfers, whose offset is the first of the labels', and at the garbler the others.
pub struct Setup {
    id: [u8; 32],
    labels: Labels,
    transfers: Pairs,
    offsets: Option<Offsets>,
}

impl ProjectionConfig {
    /// The protocol's name on the command line.
    pub const NAME: &str = "garbled-projection";
}

impl ProtocolConfig for ProjectionConfig {
    type Setup = Setup;
    type Session = Projected;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn parties(&self) -> usize {
        2
    }

    fn adversary(&self) -> Adversary {
        Adversary::Passive
    }

    fn promise(&self) -> String {
        let kappa = match self.labels {
            Labels::Long => 128,
            Labels::Short => 120,
        };
        format!(
            "passive, one of two parties, labels of {kappa} bits: both are trusted to run the protocol unmodified. If {GARBLER}, which \
             garbles, does not, it can learn the inputs of {EVALUATOR}; if {EVALUATOR} does not, outputs are still right or refused"
        )
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters
            .with("protocol", self.name().as_bytes())
            .with("bytes of a label", &self.labels.bytes().to_le_bytes())
            .with("expansion", &self.expansion.to_le_bytes())
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        if net.parties() != 2 || net.members().len() != 2 {
            let connected = net.members().len();
            return Err(Error::Misuse(format!("{} runs between two parties, not {connected}", self.name())));
        }
        let id = coins::toss(b"set-up of garbled circuits with projections", net)?;
        let delta = Offsets::random_delta(self.labels)?;
        let transfers = Pairs::setup(&id, *delta, Shape::new(128, self.expansion)?, net)?;
        let offsets = match net.me() == GARBLER {
            true => Some(Offsets::generate(*delta, self.labels)?),
            false => None,
        };
        Ok(Setup { id, labels: self.labels, transfers, offsets })
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<Projected> {
        if serving != PartySet::all(2) {
            return Err(Error::Misuse(format!("{serving} serve, but both parties have to")));
        }
        if setup.labels != self.labels {
            return Err(Error::misuse("the setup was made for labels of another length"));
        }
        let label = stream.label();
        let derived = |context| {
            let mut hasher = blake3::Hasher::new_derive_key(context);
            let mut key = Zeroizing::new([0; 16]);
            hasher.update(&setup.id).update(&label).finalize_xof().fill(&mut *key);
            key
        };
        Ok(Projected {
            side: match &setup.offsets {
                Some(offsets) => Side::Garbler(offsets.clone()),
                None => Side::Evaluator,
            },
            labels: self.labels,
            setup: setup.id,
            hash: Hash::new(&derived("polyclave 2026 projection gates: root of the hash")),
            known: AesPrg::new(&derived("polyclave 2026 projection gates: labels of known inputs"), 0),
            transfers: setup.transfers.fork(&label),
            gates: Vec::new(),
            message: Zeroizing::default(),
            scratch: super::Scratch::new(super::stream::HASHED_AT_ONCE),
            made: super::stream::MadeLabels::default(),
            pool: Pool::default(),
            phase: Phase::Online,
            tally: Tally::default(),
        })
    }
}
