//! A toy protocol in one folder and one line of the catalog. It shows what a new protocol takes, and tests
//! that nothing else is needed. It can be chosen only in a process that wants it
//! ([`add_toy`](crate::add_toy)).
//!
//! Additive sharing over GF(2) among n parties: a value is the sum of the parties' shares, so every linear
//! map is local. A lookup opens x + r under a dealt mask r and takes the entry there of a dealt table, whose
//! entries have been moved by r. Elements of GF(2^128) are shared alike, and products of them take dealt
//! triples.
//!
//! Adversary: passive, all parties but one, **if no party uses what the dealer knows, and every party
//! could**: all of them hold the dealer's seed. For tests of the code that uses protocols.

mod dealer;
mod engine;
mod service;

use zeroize::Zeroizing;

pub use engine::Additive;

use polyclave_protocol::any::{AnyProtocolConfig, AnyServiceConfig};
use polyclave_protocol::descriptor::{Descriptor, Serving, Threshold};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::session::{HandshakeParameters, Stream, random_bytes};
use polyclave_protocol::stock::Levels;
use polyclave_protocol::{Error, Party, PartySet, Result};

/// For the catalogue.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: NAME,
    summary: "additive sharing, with a dealer that every party could be: a protocol in one folder, for tests",
    adversary: Adversary::Passive,
    parties: 2..=PartySet::MAX,
    usual_parties: 3,
    threshold: Threshold::AllButOne,
    options: &[],
    takes_gates: false,
    config: |chosen| Ok(AnyProtocolConfig::new(AdditiveConfig { parties: chosen.parties })),
    serving: Some(Serving {
        advice: "for tests: a dealer's seed is at every node, so each of them knows all keys",
        stock: Levels::FEW,
        stream_bytes_a_second: None,
        standby: None,
        with_transfers: None,
        config: |nodes, _| Ok(AnyServiceConfig::new(AdditiveConfig { parties: nodes })),
    }),
};

const NAME: &str = "additive";

/// Additive sharing among this many parties.
pub struct AdditiveConfig {
    parties: usize,
}

/// The dealer's seed, which all parties hold.
pub struct Setup {
    me: Party,
    seed: Zeroizing<[u8; 32]>,
}

impl ProtocolConfig for AdditiveConfig {
    type Setup = Setup;
    type Session = Additive;

    fn name(&self) -> &'static str {
        NAME
    }

    fn parties(&self) -> usize {
        self.parties
    }

    fn adversary(&self) -> Adversary {
        Adversary::Passive
    }

    fn promise(&self) -> String {
        "none: every party holds the dealer's seed, and could compute all secrets; for tests".into()
    }

    fn needs_dealer(&self) -> bool {
        true
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters.with("protocol", NAME.as_bytes())
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        let (me, mut seed) = (net.me(), Zeroizing::new([0; 32]));
        if me == Party(0) {
            random_bytes(&mut *seed)?;
            me.peers(self.parties).try_for_each(|peer| net.send(peer, &*seed))?;
        } else {
            net.recv(Party(0), &mut *seed)?;
        }
        Ok(Setup { me, seed })
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<Additive> {
        match serving == PartySet::all(self.parties) {
            true => Ok(Additive::new(setup, &stream, self.parties)),
            false => Err(Error::Misuse(format!("{serving} serve, but all parties have to"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{Direction, catalog};

    use super::*;
    use crate::testkit::conformance::check_circuit;

    #[test]
    fn ciphers_give_the_answers_of_the_cleartext_and_the_predicted_counts() {
        for (parties, cipher) in [(2, "aes-128"), (3, "present-80"), (5, "3des-ede3")] {
            let cipher = catalog::find(cipher).expect("it is listed");
            let circuit = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
            let run = check_circuit(&AdditiveConfig { parties }, &circuit, 3, 1);
            let (online, cost) = (run.tallies[0].online, run.cost);
            assert_eq!(online.rounds as f64, cost.rounds);
            assert_eq!(online.openings as f64, 3.0 * cost.operations_per_lane + cost.operations_uniform);
        }
    }
}
