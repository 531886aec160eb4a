//! The protocol with its parameters, what a party keeps between sessions, and how a session starts.

use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::flight::Flight;
use super::hash::Hash;
use super::three_halves::Coins;
use super::{EVALUATOR, GARBLER, Garbled, Side, half_gates, three_halves};
use polyclave_protocol::garbling::LABEL;
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Pairs, Shape};
use polyclave_protocol::pool::Pool;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, Stream, random_bytes};
use polyclave_protocol::tally::{Phase, Tally};
use polyclave_protocol::{Error, Party, PartySet, Result, coins};

/// How lookups are garbled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gates {
    /// ANDs of bits by half gates.
    Half,
    /// ANDs of bits by three halves.
    ThreeHalves,
}

impl Gates {
    /// All.
    pub const ALL: [Gates; 2] = [Gates::Half, Gates::ThreeHalves];

    /// The protocol's name on the command line.
    pub fn protocol(self) -> &'static str {
        match self {
            Gates::Half => "garbled-half",
            Gates::ThreeHalves => "garbled-three-halves",
        }
    }

    /// Ciphertexts of an AND, as they are counted.
    pub fn ciphertexts(self) -> u64 {
        match self {
            Gates::Half => 2,
            Gates::ThreeHalves => 3,
        }
    }

    /// Bytes of a ciphertext: a label, or half of one.
    pub fn ciphertext_bytes(self) -> usize {
        match self {
            Gates::Half => LABEL,
            Gates::ThreeHalves => LABEL / 2,
        }
    }

    /// Bytes that are sent for an AND: ciphertexts, and by three halves a byte of control bits.
    pub fn bytes(self) -> usize {
        match self {
            Gates::Half => half_gates::BYTES,
            Gates::ThreeHalves => three_halves::BYTES,
        }
    }

    /// Calls of the hash for an AND, by the garbler and by the evaluator.
    pub fn hash_calls(self) -> [u64; 2] {
        match self {
            Gates::Half => [4, 2],
            Gates::ThreeHalves => [6, 3],
        }
    }
}

/// Garbled circuits between two parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GarbledConfig {
    /// How lookups are garbled.
    pub gates: Gates,
    /// The expansion of oblivious transfer: 1, 2, 4 or 8.
    pub expansion: usize,
}

/// What a party keeps: transfers, whose offset is that of the labels.
pub struct Setup {
    id: [u8; 32],
    me: Party,
    transfers: Pairs,
}

impl ProtocolConfig for GarbledConfig {
    type Setup = Setup;
    type Session = Garbled;

    fn name(&self) -> &'static str {
        self.gates.protocol()
    }

    fn parties(&self) -> usize {
        2
    }

    fn adversary(&self) -> Adversary {
        Adversary::Passive
    }

    fn promise(&self) -> String {
        format!(
            "passive, one of two parties: both are trusted to run the protocol unmodified. If {GARBLER}, which garbles, does not, \
             it can learn the inputs of {EVALUATOR}; if {EVALUATOR} does not, outputs are still right or refused"
        )
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters.with("protocol", self.name().as_bytes()).with("expansion", &self.expansion.to_le_bytes())
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        if net.parties() != 2 || net.members().len() != 2 {
            let connected = net.members().len();
            return Err(Error::Misuse(format!("{} runs between two parties, not {connected}", self.name())));
        }
        let id = coins::toss(b"set-up of garbled circuits", net)?;
        let mut delta = Zeroizing::new([0; 16]);
        random_bytes(&mut *delta)?;
        // A label's colour is its lowest bit, and the other label has the other one.
        let delta = Zeroizing::new(u128::from_le_bytes(*delta) | 1);
        let transfers = Pairs::setup(&id, *delta, Shape::new(128, self.expansion)?, net)?;
        Ok(Setup { id, me: net.me(), transfers })
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<Garbled> {
        if serving != PartySet::all(2) {
            return Err(Error::Misuse(format!("{serving} serve, but both parties have to")));
        }
        let label = stream.label();
        let delta = Zeroizing::new(setup.transfers.delta());
        let side = match setup.me == GARBLER {
            true => Side::Garbler { delta: Zeroizing::new(delta.to_le_bytes()), coins: Coins::new()? },
            false => Side::Evaluator,
        };
        let derived = |context| {
            let mut hasher = blake3::Hasher::new_derive_key(context);
            let mut key = Zeroizing::new([0; 16]);
            hasher.update(&setup.id).update(&label).finalize_xof().fill(&mut *key);
            key
        };
        Ok(Garbled {
            gates: self.gates,
            side,
            setup: setup.id,
            hash: Hash::new(&derived("polyclave 2026 garbled circuits: root of the hash")),
            known: AesPrg::new(&derived("polyclave 2026 garbled circuits: labels of known inputs"), 0),
            transfers: setup.transfers.fork(&label),
            flight: Flight::default(),
            pool: Pool::default(),
            phase: Phase::Online,
            tally: Tally::default(),
        })
    }
}
