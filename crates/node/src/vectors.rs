//! Vectors of messages (`vectors/messages`): all messages of nodes about common secrets, material, a key, a
//! block and a message of GCM, with randomness from seeds. **If a file differs, the wire between nodes has
//! changed** (`protocol/tests/it/wire.rs` says what to do then), or what a node draws, in which order.
//!
//! Computations are those of a node. What a node does around them with its store, its channels and its client
//! is written out here: the announcement, the settings of a hello, the time of a key.
//!
//! The pages of `docs/specification` follow these files. To write them anew:
//! `POLYCLAVE_WRITE_REFERENCE=1 cargo test --release -p polyclave-node --lib vectors`.

mod client;
mod recorder;
mod runs;
mod stock;
mod written;

use polyclave_api::{self as api, KeyInfo, Origin, Request, Step};
use polyclave_cipher::Matrix;
use polyclave_harness::book::compare_file;
use polyclave_protocol::any::{AnyServiceConfig, AnyServiceSession, AnySetup};
use polyclave_protocol::evaluate::release;
use polyclave_protocol::mesh::{Mesh, mesh};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, Owner, ProtocolConfig};
use polyclave_protocol::release::Released;
use polyclave_protocol::seeded::with_seed;
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::stock::Stock;
use polyclave_protocol::{Error, Party, catalog};
use polyclave_store::Store;
use polyclave_store::testing::in_memory;
use std::path::Path;
use std::sync::Arc;

use crate::Result;
use crate::computation::Computation;
use crate::computation::circuits::Library;
use crate::computation::key::{ExpandedKey, Shares, StoredShares};
use crate::computation::make::{expand, generate, sum_of_keys};
use crate::computation::modes::{Answer, Mode, StepError, machine};
use crate::computation::progress::Progress;
use crate::peers::exchange::tell_all;
use crate::requests::agreement::{Early, agree};
use crate::requests::strategy::StepOf;
use crate::strategy::Strategy;
use client::Client;
use recorder::{Recorder, Sent};

/// The protocols, each with a number of nodes.
const PROTOCOLS: [(&str, usize); 5] = [
    ("shamir", 3),
    ("replicated", 3),
    ("replicated-active", 3),
    ("shamir-active", 4),
    ("replicated-four", 4),
];
const CIPHER: &str = "aes-128";
/// The digest of the cluster file.
const CLUSTER: [u8; 32] = [0xc1; 32];
/// The id of the epoch, under a protocol with abort.
const EPOCH: [u8; 32] = [0xe0; 32];
/// Bytes of memory for a request.
const MEMORY: usize = 16 << 20;
/// When the key is made, in seconds since 1970.
const TIME: u64 = 1_800_000_000;

/// What a party has sent, and what all have found, by name.
struct Record {
    sent: Vec<Sent>,
    found: Vec<(&'static str, Vec<u8>)>,
    /// Their digests, and images.
    circuits: Vec<(&'static str, Vec<u8>)>,
}

/// One node.
struct Node<'a> {
    config: &'a AnyServiceConfig,
    client: &'a Client,
    net: Recorder,
    setup: AnySetup,
    /// The ids of common secrets and epoch.
    context: [[u8; 32]; 2],
    /// Material that was made ahead.
    stock: Option<Arc<dyn Stock>>,
    strategy: Strategy,
    library: Library,
    found: Vec<(&'static str, Vec<u8>)>,
}

/// The seed of what a node draws, or the client.
fn seed(protocol: &str, of: &str) -> Vec<u8> {
    format!("{protocol}, {of}").into_bytes()
}

/// All that one node does.
fn run(config: &AnyServiceConfig, client: &Client, net: Mesh, store: Arc<Store>) -> Result<Record> {
    let mut net = Recorder::new(net);
    net.begin("common secrets", "meeting");
    tell_all(&[1], &mut net)?;
    net.next("hello");
    let session = hello(&config.handshake(of_cluster(&net)), &mut net)?;
    net.next("states");
    tell_all(&[0; 33], &mut net)?;
    net.next("secrets");
    let setup = config.setup(&mut net)?;
    net.next("stored");
    tell_all(&[1], &mut net)?;
    let epoch = match config.adversary() {
        Adversary::Passive => [0; 32],
        Adversary::Abort => EPOCH,
        Adversary::GuaranteedOutput => blake3::derive_key("polyclave 2026 standing stock", &session.id()),
    };
    let stock = stock::filled(config, &setup, epoch, store, &mut net)?;
    let (context, strategy) = ([session.id(), epoch], Strategy::of(config));
    let (found, library) =
        (vec![("session of the common secrets", session.id().to_vec())], Library::default());
    let mut node = Node { config, client, net, setup, context, stock, strategy, library, found };
    let (info, shares) = node.make_key()?;
    node.encrypt_block(&info, &shares)?;
    node.encrypt_message(&info, &shares)?;
    let circuits = node.show_key(&shares)?;
    Ok(Record { sent: node.net.into_sent(), found: node.found, circuits })
}

/// What nodes compare first in any hello.
fn of_cluster(net: &dyn Net) -> HandshakeParameters {
    HandshakeParameters::new(net.parties()).with("cluster", &CLUSTER)
}

impl Node<'_> {
    /// Announces a request, and says hello. Returns the session and its id.
    fn begin(
        &mut self,
        phase: &'static str,
        request: &Request,
        key: &[u8],
    ) -> Result<(AnyServiceSession, [u8; 32])> {
        self.net.begin(phase, "announcement");
        let ticket = self.client.ticket(request);
        let mut announced = [&[2][..], &ticket].concat();
        match self.net.me() {
            Party(0) => self.net.tell_peers(&announced)?,
            _ => self.net.recv(Party(0), &mut announced)?,
        }
        self.net.next("hello");
        let terms = of_cluster(&self.net)
            .with("whether a refresh is under way", b"none")
            .with("acceptance of the request", b"accepted")
            .with("memory_per_request_mib (node.toml)", &MEMORY.to_le_bytes())
            .with("common secrets", &self.context[0])
            .with("epoch", &self.context[1]);
        let key = blake3::derive_key("polyclave 2026 properties of a key", key);
        let terms =
            self.config.handshake(terms).with("request", &self.client.digest(request)).with("key", &key);
        let mut session = hello(&terms, &mut self.net)?;
        let id = session.id();
        let (stream, members) = (session.stream(), self.net.members());
        let protocol = match self.stock.clone() {
            Some(stock) => self.config.join_stocked(&self.setup, stream, members, stock)?,
            None => self.config.join(&self.setup, stream, members)?,
        };
        Ok((protocol, id))
    }

    /// As `operations/keep.rs` does.
    fn make_key(&mut self) -> Result<(KeyInfo, Shares)> {
        let new = self.client.new_key();
        let (mut protocol, id) = self.begin("key", &self.client.generate(), &[])?;
        self.found.push(("session of the key", id.to_vec()));
        let circuits = self.library.of(CIPHER, &protocol).expect("the catalog has it");
        self.net.next("sum of parts");
        let key = generate(&mut protocol, &mut self.net, &circuits)?;
        self.net.next("expansion");
        let keys = [key];
        let (material, check_value) = expand(&keys, &new, &mut protocol, &mut self.net, &circuits)?;
        self.found.push(("check value", check_value.clone()));
        self.net.next("time");
        let mut time = TIME.to_le_bytes();
        match self.net.me() {
            Party(0) => self.net.tell_peers(&time)?,
            _ => self.net.recv(Party(0), &mut time)?,
        }
        let mut key_id = [0; 16];
        blake3::Hasher::new_derive_key("polyclave 2026 id of a key")
            .update(&id)
            .finalize_xof()
            .fill(&mut key_id);
        let info = KeyInfo::first(new, key_id, Origin::Generated, u64::from_le_bytes(time), check_value);
        let digest = blake3::derive_key("polyclave 2026 properties of a key", &api::encode(&info)?);
        for step in ["stored", "announced"] {
            self.net.next(step);
            agreed(agree(Ok(digest), &mut self.net)?)?;
        }
        Ok((info, material.save(keys.first(), &protocol)))
    }

    /// One block in ECB. The client deals its mask where it can.
    fn encrypt_block(&mut self, info: &KeyInfo, shares: &Shares) -> Result<()> {
        let client = self.client;
        let request = client.block(self.is_dealt());
        let (protocol, id) = self.begin("block", &request, &identity(info))?;
        self.found.push(("session of the block", id.to_vec()));
        let mut used = Used::new(self, &request, info, shares, protocol, id)?;
        self.net.next("start");
        let (_, mask) = used.with(self, |mode, at| mode.start(at))?;
        let step = match request.first.clone() {
            Some(step) => step,
            None => {
                let mask = self.net.told("mask to the client", self.config, &mask)?;
                let step = client.masked_block(&mask);
                self.compare("comparison of the step", &step, &id)?;
                step
            }
        };
        let answer = self.answered("computation", &mut used, step)?;
        let ciphertext = self.net.told("answer to the client", self.config, &answer.data)?;
        self.found.push(("ciphertext of the block", ciphertext));
        self.compare("comparison of Finish", &Step::Finish, &id)
    }

    /// A message of GCM: in one step where the client deals its mask, else in two.
    fn encrypt_message(&mut self, info: &KeyInfo, shares: &Shares) -> Result<()> {
        let client = self.client;
        let request = client.message(self.is_dealt());
        let (protocol, id) = self.begin("message", &request, &identity(info))?;
        self.found.push(("session of the message", id.to_vec()));
        let mut used = Used::new(self, &request, info, shares, protocol, id)?;
        self.net.next("start");
        let (nonce, _) = used.with(self, |mode, at| mode.start(at))?;
        let first = request.first.clone().expect("a message has a first step");
        let mut answer = self.answered("computation", &mut used, first)?;
        let mut ciphertext = std::mem::take(&mut answer.opened);
        if ciphertext.is_empty() {
            let keystream = self.net.told("keystream to the client", self.config, &answer.data)?;
            let step = client.seal(&keystream);
            self.compare("comparison of the step", &step, &id)?;
            let Step::Seal { ciphertext: sealed, .. } = &step else { unreachable!("the client seals") };
            ciphertext.clone_from(sealed);
            answer = self.answered("computation of the tag", &mut used, step)?;
        }
        let tag = self.net.told("tag to the client", self.config, &answer.data)?;
        self.found.extend([("nonce", nonce), ("ciphertext of the message", ciphertext), ("tag", tag)]);
        self.compare("comparison of Finish", &Step::Finish, &id)
    }

    /// What the key is, for readers, the digests of circuits, and the images that they need of a key. Not
    /// recorded.
    fn show_key(&mut self, shares: &Shares) -> Result<Vec<(&'static str, Vec<u8>)>> {
        self.net.stop();
        let mut session = hello(&self.config.handshake(of_cluster(&self.net)), &mut self.net)?;
        let mut protocol = self.config.join(&self.setup, session.stream(), self.net.members())?;
        let key = protocol.restore(&shares[crate::computation::key::RAW])?;
        let opened = release(&mut protocol, &key, Owner::All, &mut self.net)?;
        self.found.push(("key", opened.expect("it is opened to all").accept().to_blocks()));
        let circuits = self.library.of(CIPHER, &protocol).expect("the catalog has it");
        let own = circuits.of_cipher()?;
        let digests = [
            ("sum of keys", sum_of_keys(&circuits.cipher, self.net.parties()).digest()),
            ("key schedule", own.key_schedule.digest()),
            ("encrypt", own.encrypt.digest()),
            ("decrypt", own.decrypt.as_ref().expect("AES has it").digest()),
            ("check value", own.check_value.digest()),
            ("subkeys", circuits.chained()?.subkeys.digest()),
        ];
        let mut shown: Vec<_> = digests.map(|(name, digest)| (name, digest.to_vec())).into();
        shown.push(("images of a key", circuits.key.views().iter().flat_map(Matrix::columns).collect()));
        if self.stock.is_some() {
            shown.extend(runs::of_circuits(&circuits)?);
        }
        Ok(shown)
    }

    /// Compares a step of the client with the other nodes.
    fn compare(&mut self, name: &'static str, step: &Step, session: &[u8; 32]) -> Result<()> {
        self.net.next(name);
        let bytes = api::encode(step)?;
        let digest = blake3::derive_key("polyclave 2026 step of a request", &bytes[4..]);
        let of = StepOf { session, uses_key: true };
        agreed(self.strategy.requests.agree(Ok(digest), of, &Early::default(), &mut self.net)?)
    }

    fn answered(&mut self, name: &'static str, used: &mut Used, step: Step) -> Result<Answer> {
        used.mode.admit(&step).map_err(|refusal| Error::System(refusal.message))?;
        self.net.next(name);
        used.with(self, |mode, at| mode.run(step, at))
    }

    fn is_dealt(&self) -> bool {
        !self.config.components().is_empty()
    }
}

/// A use of a key, as `operations/use_key.rs` has it.
struct Used {
    mode: Box<dyn Mode>,
    protocol: Option<AnyServiceSession>,
    key: ExpandedKey,
    dealt: Option<polyclave_protocol::dealt::HeldSeeds>,
    session: [u8; 32],
}

impl Used {
    fn new(
        node: &mut Node<'_>,
        request: &Request,
        info: &KeyInfo,
        shares: &Shares,
        mut protocol: AnyServiceSession,
        session: [u8; 32],
    ) -> Result<Used> {
        let circuits = node.library.of(CIPHER, &protocol).expect("the catalog has it");
        let key = StoredShares::restore(info, shares, &protocol)?;
        let key = key.expand(&circuits, &mut protocol, &mut node.net)?;
        let api::Operation::Use(asked) = &request.operation else { unreachable!("a key is used") };
        let mode = machine(&asked.how, &circuits.cipher, info.id);
        let mode = mode.map_err(|refusal| Error::System(refusal.message))?;
        let dealt = node.client.seeds_for(request, node.net.me(), &node.config.components())?;
        Ok(Used { mode, protocol: Some(protocol), key, dealt, session })
    }

    fn with<T>(
        &mut self,
        node: &mut Node<'_>,
        work: impl FnOnce(&mut dyn Mode, &mut Computation<'_>) -> Result<T, StepError>,
    ) -> Result<T> {
        let protocol = self.protocol.take().expect("it comes back");
        let circuits = node.library.of(CIPHER, &protocol).expect("the catalog has it");
        let mut at = Computation {
            protocol,
            net: &mut node.net,
            circuits: &circuits,
            key: &self.key,
            others: Vec::new(),
            library: &node.library,
            session: self.session,
            dealt: self.dealt.take(),
            memory: MEMORY,
            progress: &Progress::new(Arc::default()),
        };
        let outcome = work(&mut *self.mode, &mut at);
        (self.protocol, self.dealt) = (Some(at.protocol), at.dealt);
        outcome.map_err(|error| match error {
            StepError::Failed(error) => error,
            StepError::Refused(refusal) | StepError::Own(refusal) => Error::System(refusal.message),
        })
    }
}

/// A key as the nodes compare it.
fn identity(info: &KeyInfo) -> Vec<u8> {
    crate::requests::plan::identity(info)
}

fn agreed(outcome: Result<(), api::Refusal>) -> Result<()> {
    outcome.map_err(|refusal| Error::System(refusal.message))
}

/// What all nodes have sent and found, and what the client has asked.
fn recorded(protocol: &str, nodes: usize) -> (Vec<Record>, Vec<(&'static str, Vec<u8>)>) {
    let config = &catalog::service(protocol, nodes, 1).expect("it is served");
    let client = &with_seed(&seed(protocol, "client"), || Client::new(&config.components(), nodes));
    let party = |net: Mesh| {
        let seed = seed(protocol, &format!("node {}", net.me().0));
        let (store, _disk) = in_memory();
        let ran = with_seed(&seed, || run(config, client, net, Arc::new(store)));
        ran.unwrap_or_else(|e| panic!("{protocol}: {e}"))
    };
    let records = std::thread::scope(|scope| {
        let parties: Vec<_> = mesh(nodes).into_iter().map(|net| scope.spawn(move || party(net))).collect();
        parties.into_iter().map(|party| party.join().expect("no panic")).collect()
    });
    (records, client.requests(!config.components().is_empty()))
}

#[test]
fn the_messages_between_nodes_are_those_of_the_vectors() {
    for (protocol, nodes) in PROTOCOLS {
        let (records, requests) = recorded(protocol, nodes);
        let found = &records[0].found;
        assert!(
            records.iter().all(|record| record.found == *found),
            "{protocol}: nodes found different values"
        );
        client::check(found);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/messages");
        let text = written::file(protocol, &records, &requests);
        compare_file(
            &folder.join(format!("{protocol}.json")),
            &text,
            "--release -p polyclave-node --lib vectors",
        );
    }
}

/// Otherwise a test that draws from the system would pass by luck, or never.
#[test]
fn a_run_is_repeated_byte_for_byte() {
    let run = || recorded("replicated-active", 3).0.into_iter().map(|record| record.sent).collect::<Vec<_>>();
    assert!(run() == run());
}
