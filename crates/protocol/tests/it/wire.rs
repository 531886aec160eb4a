//! The messages between nodes are those of this version of the wire: how long each is, of which party to
//! which, in which order in each stream, while all parties agree on a setup and encrypt a block. What is in
//! them is random, so two messages that change places within one are not noticed here. For five of the
//! protocols `vectors/messages` notices it (`crates/node/src/vectors.rs`).
//!
//! **If a digest here differs, the messages have changed.** Nodes of the release before could not follow.
//! Give [`NODES`] another version if the last release has the one that is there now, send the old messages in
//! sessions of the old version ([`AgreedSession::version`]), and write the new digest here. Before a release
//! the digest alone changes.
//!
//! [`AgreedSession::version`]: polyclave_protocol::session::AgreedSession::version

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::{Cells, Direction, catalog as ciphers, compile};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::descriptor::Descriptor;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::{Mesh, mesh};
use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::versions::NODES;
use polyclave_protocol::{Party, PartySet, Result, catalog};

/// By protocol: how many nodes, and the digest.
const DIGESTS: [(&str, usize, &str); 8] = [
    ("shamir", 3, "4307e4747ac29ec6"),
    ("shamir-active", 4, "b94956cc80248f5e"),
    ("replicated", 3, "8a322d4623e24672"),
    ("replicated-active", 3, "26b2e3ed6ea65a2f"),
    ("replicated-four", 4, "0d512e9f95244ea5"),
    ("spdz-lt", 2, "f6e5a6ee0a59d742"),
    ("spdz-tower", 2, "2b6c3805fb7cc253"),
    ("tinytable-linear64", 2, "40bfb52af70edbc4"),
];

/// What one party has sent: by stream, to whom, and how many bytes.
type Sent = Arc<Mutex<BTreeMap<String, Vec<(u8, usize)>>>>;

/// A network that notes the lengths of what is sent.
struct Noted {
    net: Box<dyn Net>,
    /// Which fork of which fork it is.
    stream: String,
    forks: usize,
    sent: Sent,
}

impl Noted {
    fn note(&self, out: &[&[u8]]) {
        let to = out.iter().enumerate().filter(|(_, message)| !message.is_empty());
        let lengths = to.map(|(to, message)| (to as u8, message.len()));
        self.sent.lock().entry(self.stream.clone()).or_default().extend(lengths);
    }

    fn below(&self, net: Box<dyn Net>, name: &str) -> Box<dyn Net> {
        let stream = format!("{}/{name}", self.stream);
        Box::new(Noted { net, stream, forks: 0, sent: self.sent.clone() })
    }
}

impl Net for Noted {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, recv, lost);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.sent.lock().entry(self.stream.clone()).or_default().push((to.0, message.len()));
        self.net.send(to, message)
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.note(out);
        self.net.exchange(out, into)
    }

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        self.note(out);
        self.net.gather(out, into, patience, enough)
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        self.forks += 1;
        let net = self.net.fork()?;
        Ok(self.below(net, &self.forks.to_string()))
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        let net = self.net.fork_among(members, name)?;
        Ok(self.below(net, &format!("{members} {}", String::from_utf8_lossy(name))))
    }
}

/// One party: a setup, and a block.
fn encrypt(config: &AnyServiceConfig, net: &mut dyn Net) -> Result<()> {
    let parties = config.parties();
    let setup = config.setup(net)?;
    // Some make a part of the common secrets afresh before they compute, and others have no such part.
    let setup = config.renew(&setup, net).unwrap_or(setup);
    let mut session = hello(&config.handshake(HandshakeParameters::new(parties)), net)?;
    let mut protocol = config.join(&setup, session.stream(), net.members())?;
    let aes = ciphers::find("aes-128").expect("the catalog has it");
    let aes = aes.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
    let circuit = compile(&aes, &protocol);
    let batch = prepare(&mut protocol, &circuit, 1, net)?;
    let inputs: Vec<Cells> =
        circuit.inputs().iter().map(|port| Cells::zero(port.cells.len(), port.bits, 1)).collect();
    let owner = |i: usize| Party((i % parties) as u8);
    let given = |(i, cells)| if owner(i) == net.me() { Input::Mine(cells) } else { Input::From(owner(i)) };
    let sources: Vec<_> = inputs.iter().enumerate().map(given).collect();
    for port in &evaluate(&mut protocol, &circuit, 1, &sources, batch, net)? {
        release(&mut protocol, port, Owner::All, net)?;
    }
    Ok(())
}

/// The number of nodes, and the digest of all lengths.
fn lengths(descriptor: &Descriptor) -> (usize, String) {
    let nodes = descriptor.usual_parties;
    let threshold = (1..nodes).find(|threshold| descriptor.service(nodes, *threshold).is_ok());
    let config = &descriptor.service(nodes, threshold.expect("there is one")).expect("it is served");
    let party = |net: Mesh| {
        let sent = Sent::default();
        let mut net = Noted { net: Box::new(net), stream: String::new(), forks: 0, sent: sent.clone() };
        encrypt(config, &mut net).unwrap_or_else(|e| panic!("{}: {e}", config.name()));
        drop(net);
        let sent = sent.lock();
        format!("{sent:?}\n")
    };
    let all: String = std::thread::scope(|scope| {
        let parties: Vec<_> = mesh(nodes).into_iter().map(|net| scope.spawn(move || party(net))).collect();
        parties.into_iter().map(|party| party.join().expect("no panic")).collect()
    });
    (nodes, blake3::hash(all.as_bytes()).to_hex()[..16].into())
}

#[test]
fn the_lengths_of_messages_between_nodes_are_those_of_this_version() {
    let found: Vec<(&str, (usize, String))> =
        catalog::serving().map(|descriptor| (descriptor.name, lengths(descriptor))).collect();
    let found: Vec<(&str, usize, &str)> =
        found.iter().map(|(name, (nodes, digest))| (*name, *nodes, digest.as_str())).collect();
    assert_eq!((NODES.spoken().newest, &found[..]), (5, &DIGESTS[..]), "see the head of this file");
}
