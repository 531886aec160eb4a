//! The protocols with their parameters, what a party keeps between sessions, and how a session starts.

use std::collections::HashMap;

use polyclave_kernels::aes_prg::AesPrg;
use zeroize::Zeroizing;

use super::Lut;
use super::one_of_many::OneOfMany;
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Pairs, Shape};
use polyclave_protocol::pool::Pool;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, Stream, random_bytes};
use polyclave_protocol::tally::{Phase, Tally};
use polyclave_protocol::tinyot::peer_of;
use polyclave_protocol::{Error, Party, PartySet, Result, coins};

/// The first party adds what is public.
const FIRST: Party = Party(0);

/// How tables are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Whole tables are made ahead, and little is sent online.
    Op,
    /// Each table is sent once online, and little is sent in all.
    Sp,
}

impl Method {
    /// Both.
    pub const ALL: [Method; 2] = [Method::Op, Method::Sp];

    /// The protocol's name on the command line.
    pub fn protocol(self) -> &'static str {
        match self {
            Method::Op => "op-lut",
            Method::Sp => "sp-lut",
        }
    }
}

/// Lookups by transfers between two parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LutConfig {
    /// How tables are looked up.
    pub method: Method,
    /// The expansion of oblivious transfer: 1, 2, 4 or 8.
    pub expansion: usize,
}

/// What a party keeps: transfers, and the identity of the setup.
pub struct Setup {
    id: [u8; 32],
    peer: Party,
    transfers: Pairs,
}

impl ProtocolConfig for LutConfig {
    type Setup = Setup;
    type Session = Lut;

    fn name(&self) -> &'static str {
        self.method.protocol()
    }

    fn parties(&self) -> usize {
        2
    }

    fn adversary(&self) -> Adversary {
        Adversary::Passive
    }

    fn promise(&self) -> String {
        "passive, one of two parties: both are trusted to run the protocol unmodified; one that runs modified code can extract the key"
            .into()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters.with("protocol", self.name().as_bytes()).with("expansion", &self.expansion.to_le_bytes())
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        if net.parties() != 2 || net.members().len() != 2 {
            let connected = net.members().len();
            return Err(Error::Misuse(format!("{} runs between two parties, not {connected}", self.name())));
        }
        let id = coins::toss(b"set-up of lookups by oblivious transfer", net)?;
        let mut delta = Zeroizing::new([0; 16]);
        random_bytes(&mut *delta)?;
        let delta = Zeroizing::new(u128::from_le_bytes(*delta));
        let transfers = Pairs::setup(&id, *delta, Shape::new(128, self.expansion)?, net)?;
        Ok(Setup { id, peer: peer_of(net)?, transfers })
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<Lut> {
        if serving != PartySet::all(2) {
            return Err(Error::Misuse(format!("{serving} serve, but both parties have to")));
        }
        let (label, peer) = (stream.label(), setup.peer);
        let is_first = peer != FIRST;
        let me = Party(1 - peer.0);
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        let mut known = Zeroizing::new([0; 16]);
        let mut hasher =
            blake3::Hasher::new_derive_key("polyclave 2026 lookups by oblivious transfer: shares of inputs");
        hasher.update(&setup.id).update(&label).finalize_xof().fill(&mut *known);
        Ok(Lut {
            method: self.method,
            is_first,
            peer,
            many: OneOfMany::new(&label, me, peer, setup.transfers.fork(&label))?,
            random: AesPrg::new(&seed, 0),
            known: AesPrg::new(&known, 0),
            stream: label,
            maps: HashMap::new(),
            pool: Pool::default(),
            phase: Phase::Online,
            tally: Tally::default(),
        })
    }
}
