//! One node, under any protocol that can keep shared values on disk.
//!
//! | job | what the nodes do | what is opened, to all of them |
//! |---|---|---|
//! | create | draw 16 bytes each; the key is their sum, expanded on shares | nothing |
//! | put | encrypt records that the owner has shared among them | ciphertexts and tags: what the store gets |
//! | decide | verify the tags of chosen records; decrypt the blocks with their numbers to shares; add up and compare; encrypt the totals as a record of their own | for each record whether its tag is right; the decision; ciphertext and tag of the totals |
//!
//! Nothing of a record is decrypted before all tags were right. A tag is compared by opening a random
//! multiple of the difference (`is_zero`), so a wrong one tells nothing of the right one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use polyclave_cipher::{Cells, Circuit, Matrix, Port, compile, compile_with_views};
use polyclave_example_processes::steps::{Step, Steps};
use polyclave_protocol::any::{AnyServiceConfig, AnyServiceSession, AnyShared};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::ghash::{Ghash, GhashKey};
use polyclave_protocol::metered::Meter;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::service::{Elements, ServiceConfig, ServiceSession};
use polyclave_protocol::session::{HandshakeParameters, hello, random_bytes};
use polyclave_protocol::{Error, Party, Result};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::circuits;
use crate::disk::{Disk, Versions};
use crate::record::{BLOCK, BLOCKS, NONCE_BYTES, NUMBERS, RECORD_BYTES, Sealed};

/// The name of a record that the nodes write.
pub const TOTALS: &[u8; BLOCK] = b"totals of nodes\0";

/// What is said of a record with a wrong tag.
pub const UNAUTHENTIC: &str = "is not what the nodes have last written under its number";

/// What all nodes are to do; they compare it before they begin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Job {
    /// Make a key.
    Create,
    /// Encrypt records under these numbers.
    Put {
        /// In the order of the shares.
        numbers: Vec<u32>,
    },
    /// Decide on records.
    Decide {
        /// Their numbers, each once.
        chosen: Vec<u32>,
        /// Whether all debts together are more than this.
        limit: u64,
        /// The number under which the totals are written back.
        totals: u32,
    },
}

/// What one node is told.
#[derive(Serialize, Deserialize)]
pub struct Orders {
    /// The name of the protocol.
    pub protocol: String,
    /// How many nodes there are.
    pub nodes: usize,
    /// Where the nodes' directories are.
    pub directory: PathBuf,
    /// The store.
    pub store: PathBuf,
    /// What to do.
    pub job: Job,
    /// Of records that are put: this node's shares, one record after another, of which the sum over all nodes
    /// (XOR) is the record.
    pub shares: Zeroizing<Vec<u8>>,
}

/// What one node ends with.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// What goes into the store: the same at all nodes.
    pub sealed: Vec<Sealed>,
    /// The decision, if there was one to take.
    pub decision: Option<bool>,
    /// In order.
    pub steps: Vec<Step>,
}

/// Runs one node's side.
pub fn work(
    config: &AnyServiceConfig,
    orders: &Orders,
    net: &mut dyn Net,
    meter: &Meter,
) -> anyhow::Result<Report> {
    let disk = Disk::of(&orders.directory, net.me().index());
    let mut steps = Steps::new(meter);
    let terms = HandshakeParameters::new(net.parties()).with("job", &serde_json::to_vec(&orders.job)?);
    if let Job::Create = orders.job {
        create(config, &disk, terms, net)?;
        steps.done("key");
        return Ok(Report { steps: steps.done, ..Report::default() });
    }
    let versions = disk.versions()?;
    let read = match &orders.job {
        Job::Decide { chosen, .. } => read(chosen, &versions, &orders.store)?,
        _ => Vec::new(),
    };
    // A store that shows something else to some nodes is found out here.
    let terms = terms
        .with("newest versions", &serde_json::to_vec(&versions)?)
        .with("records in the store", &serde_json::to_vec(&read)?);
    let mut at = At::restore(config, &disk, terms, net)?;
    steps.done("start");
    let report = match &orders.job {
        Job::Create => unreachable!("it was done above"),
        Job::Put { numbers } => {
            let sealed = at.put(numbers, &versions, &orders.shares)?;
            steps.done("encryption");
            Report { sealed, ..Report::default() }
        }
        Job::Decide { limit, totals, .. } => {
            if let Some(number) = at.first_unauthentic(&read)? {
                bail!("record {number} {UNAUTHENTIC}; nothing was decrypted");
            }
            steps.done("tags");
            let numbers = at.numbers(&read)?;
            steps.done("decryption to shares");
            let (decision, sealed) = at.decide(&numbers, read.len(), *limit, *totals, &versions)?;
            steps.done("decision and totals");
            Report { sealed: vec![sealed], decision: Some(decision), ..Report::default() }
        }
    };
    let mut versions = versions;
    versions.extend(report.sealed.iter().map(|sealed| (sealed.number, sealed.version)));
    disk.write_versions(&versions)?;
    Ok(Report { steps: steps.done, ..report })
}

/// The chosen records as they lie in the store.
fn read(chosen: &[u32], versions: &Versions, store: &Path) -> anyhow::Result<Vec<Sealed>> {
    ensure!(!chosen.is_empty(), "no records were chosen; a decision needs one at least");
    let mut seen = chosen.to_vec();
    seen.sort_unstable();
    seen.dedup();
    ensure!(seen.len() == chosen.len(), "a record was chosen twice");
    let newest = |number: &u32| versions.get(number).with_context(|| format!("there is no record {number}"));
    chosen.iter().map(|number| Sealed::read(store, *number, *newest(number)?)).collect()
}

/// Makes setup and key, and stores them.
fn create(
    config: &AnyServiceConfig,
    disk: &Disk,
    terms: HandshakeParameters,
    net: &mut dyn Net,
) -> anyhow::Result<()> {
    let mut session = hello(&config.handshake(terms), net)?;
    let setup = config.setup(net)?;
    let mut protocol = config.join(&setup, session.stream(), net.members())?;
    let users = users(net.parties()).map(|circuit| compile(&circuit, &protocol));
    let views = union(users.iter().map(|user| user.inputs()[0].views()));
    let wanted = |port: &Port| if port.name == "round_keys" { views.clone() } else { Vec::new() };
    let compiled = compile_with_views(&circuits::key(net.parties()), &protocol, wanted);

    let mut drawn = Zeroizing::new([0; BLOCK]);
    random_bytes(&mut *drawn)?;
    let drawn = cells(&*drawn)?;
    let zero = Cells::zero(BLOCK, 8, 1);
    let mut inputs: Vec<_> = Party::all(net.parties())
        .map(|p| if p == net.me() { Input::Mine(&drawn) } else { Input::From(p) })
        .collect();
    inputs.push(Input::Public(&zero));
    let batch = prepare(&mut protocol, &compiled, 1, net)?;
    let outputs = evaluate(&mut protocol, &compiled, 1, &inputs, batch, net)?;
    let h = protocol.elements(&outputs[1], net)?;
    let hash_key = GhashKey::derive(protocol.arithmetic(), &h, net)?;
    // What is stored has passed the protocol's check.
    protocol.check(net)?;

    disk.create()?;
    disk.write("setup", &config.save_setup(&setup))?;
    disk.write("round-keys", &protocol.save(&outputs[0]))?;
    disk.write("hash-key", &hash_key.save(&protocol))?;
    disk.write_versions(&Versions::new())
}

/// The circuits that take the round keys, as their first input.
fn users(nodes: usize) -> [Circuit; 4] {
    [
        circuits::cover(),
        circuits::sealing_of_shares(nodes),
        circuits::sealing_of_numbers(),
        circuits::opening(),
    ]
}

/// All of some views, the identity first.
fn union(all: impl Iterator<Item = Vec<Matrix>>) -> Vec<Matrix> {
    let mut views: Vec<Matrix> = all.flatten().collect();
    views.sort_by_key(|m| (!m.is_identity(), *m));
    views.dedup();
    views
}

/// Blocks of AES, a lane each.
fn cells(blocks: &[u8]) -> Result<Cells> {
    Cells::from_blocks(BLOCK, 8, blocks).map_err(|e| Error::misuse(e.to_string()))
}

/// A node in a session, with its shares of the key.
struct At<'a> {
    config: &'a AnyServiceConfig,
    protocol: AnyServiceSession,
    round_keys: AnyShared,
    hash_key: Arc<GhashKey>,
    session: [u8; 32],
    nonces: u32,
    net: &'a mut dyn Net,
}

impl<'a> At<'a> {
    /// From what is on the node's disk.
    fn restore(
        config: &'a AnyServiceConfig,
        disk: &Disk,
        terms: HandshakeParameters,
        net: &'a mut dyn Net,
    ) -> anyhow::Result<Self> {
        let mut setup = config.restore_setup(net.me(), &disk.read("setup")?)?;
        let mut session = hello(&config.handshake(terms), net)?;
        if config.adversary() == Adversary::Abort {
            setup = config.renew(&setup, net)?;
        }
        let protocol = config.join(&setup, session.stream(), net.members())?;
        let round_keys = protocol.restore(&disk.read("round-keys")?)?;
        let hash_key = Arc::new(GhashKey::restore(&protocol, &disk.read("hash-key")?)?);
        Ok(At { config, protocol, round_keys, hash_key, session: session.id(), nonces: 0, net })
    }

    /// Encrypts records that every node has a share of.
    fn put(&mut self, numbers: &[u32], versions: &Versions, shares: &[u8]) -> anyhow::Result<Vec<Sealed>> {
        let due = numbers.len() * RECORD_BYTES;
        ensure!(shares.len() == due && due > 0, "{} bytes of shares came, not {due}", shares.len());
        let nonces: Vec<_> = numbers.iter().map(|_| self.nonce()).collect();
        let blocks = |nonce| (0..BLOCKS).flat_map(move |block| Sealed::counter(nonce, data_counter(block)));
        let counters: Vec<u8> = nonces.iter().flat_map(blocks).collect();
        let mine = cells(shares)?;
        let others = Party::all(self.net.parties())
            .map(|p| if p == self.net.me() { Input::Mine(&mine) } else { Input::From(p) })
            .collect();
        let sealing = circuits::sealing_of_shares(self.net.parties());
        let ciphertext = self.run(&sealing, &counters, others)?;
        let ciphertext = self.open(&ciphertext)?.to_blocks();
        let mut sealed = Vec::with_capacity(numbers.len());
        for ((number, nonce), ciphertext) in numbers.iter().zip(nonces).zip(ciphertext.chunks(RECORD_BYTES)) {
            sealed.push(Sealed::untagged(*number, versions, nonce, ciphertext.try_into()?));
        }
        self.tag(&mut sealed)?;
        Ok(sealed)
    }

    /// The blocks with numbers of some records, decrypted to shares in bits, a lane each.
    fn numbers(&mut self, read: &[Sealed]) -> Result<AnyShared> {
        let counters = read.iter().flat_map(|sealed| Sealed::counter(&sealed.nonce, data_counter(NUMBERS)));
        let counters: Vec<u8> = counters.collect();
        let blocks = read.iter().flat_map(|sealed| &sealed.ciphertext[NUMBERS * BLOCK..][..BLOCK]);
        let blocks = cells(&blocks.copied().collect::<Vec<u8>>())?;
        self.run(&circuits::opening(), &counters, vec![Input::Public(&blocks)])
    }

    /// Whether all debts together are more than the limit, which is opened, and the totals as a record, which
    /// are not.
    fn decide(
        &mut self,
        numbers: &AnyShared,
        records: usize,
        limit: u64,
        number: u32,
        versions: &Versions,
    ) -> anyhow::Result<(bool, Sealed)> {
        let compiled = compile(&circuits::decision(records, limit), &self.protocol);
        let lanes: Vec<_> = (0..records).map(|i| self.protocol.select_lanes(numbers, &[i])).collect();
        let inputs: Vec<_> = lanes.iter().map(Input::Shared).collect();
        let batch = prepare(&mut self.protocol, &compiled, 1, self.net)?;
        let outputs = evaluate(&mut self.protocol, &compiled, 1, &inputs, batch, self.net)?;
        let decision = self.open(&outputs[1])?.row(0)[0] == 1;

        // Two blocks, one circuit: the name, which is public before it is encrypted, and the totals.
        let nonce = self.nonce();
        let counter = |block| Sealed::counter(&nonce, data_counter(block));
        let name = Cells::from_blocks(8 * BLOCK, 1, TOTALS).map_err(|e| Error::misuse(e.to_string()))?;
        let mut ciphertext = [0; RECORD_BYTES];
        for (block, input) in [(0, Input::Public(&name)), (NUMBERS, Input::Shared(&outputs[0]))] {
            let sealed = self.run(&circuits::sealing_of_numbers(), &counter(block), vec![input])?;
            ciphertext[block * BLOCK..][..BLOCK].copy_from_slice(&self.open(&sealed)?.to_blocks());
        }
        let mut sealed = [Sealed::untagged(number, versions, nonce, ciphertext)];
        self.tag(&mut sealed)?;
        let [sealed] = sealed;
        Ok((decision, sealed))
    }

    /// A nonce that has not been there before: 96 bits of a hash of the session, to which all nodes have
    /// added.
    fn nonce(&mut self) -> [u8; NONCE_BYTES] {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 example store nonce");
        hasher.update(&self.session).update(&self.nonces.to_le_bytes());
        self.nonces += 1;
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&hasher.finalize().as_bytes()[..NONCE_BYTES]);
        nonce
    }

    /// Evaluates a circuit whose first inputs are the round keys and counter blocks, a lane each.
    fn run(
        &mut self,
        circuit: &Circuit,
        counters: &[u8],
        others: Vec<Input<'_, AnyShared>>,
    ) -> Result<AnyShared> {
        let compiled = compile(circuit, &self.protocol);
        let (lanes, counters) = (counters.len() / BLOCK, cells(counters)?);
        let mut inputs = vec![Input::Shared(&self.round_keys), Input::Public(&counters)];
        inputs.extend(others);
        let batch = prepare(&mut self.protocol, &compiled, lanes, self.net)?;
        Ok(evaluate(&mut self.protocol, &compiled, lanes, &inputs, batch, self.net)?.remove(0))
    }

    /// Opens a value to all nodes, behind the protocol's check.
    fn open(&mut self, shared: &AnyShared) -> Result<Cells> {
        let opened = release(&mut self.protocol, shared, Owner::All, self.net)?;
        Ok(opened.ok_or_else(|| Error::misuse("an output for all did not come"))?.accept())
    }

    /// Gives records their tags, which are opened as to a client, who here is everybody.
    fn tag(&mut self, records: &mut [Sealed]) -> anyhow::Result<()> {
        let tags = self.right_tags(records)?;
        let message = self.protocol.reveal_elements(&tags, self.net)?;
        let (me, n) = (self.net.me(), self.net.parties());
        let mut all: Vec<Vec<u8>> =
            Party::all(n).map(|p| if p == me { Vec::new() } else { vec![0; message.len()] }).collect();
        let out: Vec<&[u8]> = Party::all(n).map(|p| if p == me { &[] } else { &message[..] }).collect();
        self.net.exchange(&out, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
        all[me.index()] = message;
        let messages: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        let opened = self.config.combine_elements(self.net.members(), &messages)?;
        ensure!(opened.len() == records.len(), "{} tags came for {} records", opened.len(), records.len());
        records.iter_mut().zip(opened).for_each(|(sealed, tag)| sealed.tag = tag);
        Ok(())
    }

    /// Shares of the right tags of some records: their hashes, each plus E(J0) of its nonce.
    fn right_tags(&mut self, records: &[Sealed]) -> Result<Elements> {
        let counters: Vec<u8> = records.iter().flat_map(|sealed| Sealed::counter(&sealed.nonce, 1)).collect();
        let covers = self.run(&circuits::cover(), &counters, Vec::new())?;
        let covers = self.protocol.elements(&covers, self.net)?;
        let hash_key = self.hash_key.clone();
        let mut hashes = Vec::with_capacity(records.len());
        for sealed in records {
            let mut hash = Ghash::new(&hash_key);
            hash.update(self.protocol.arithmetic(), &sealed.hashed(), self.net)?;
            hashes.push(hash.finish());
        }
        let hashes = Elements::join(&hashes.iter().collect::<Vec<_>>());
        Ok(hashes.add(&covers))
    }

    /// The number of the first record that has not its right tag; nothing else is told about right ones.
    fn first_unauthentic(&mut self, records: &[Sealed]) -> Result<Option<u32>> {
        let right = self.right_tags(records)?;
        let tags: Vec<_> = records.iter().map(|sealed| sealed.tag).collect();
        let differences = self.protocol.arithmetic().add_public(&right, &tags);
        for (i, sealed) in records.iter().enumerate() {
            if !self.protocol.arithmetic().is_zero(&differences.part(i..i + 1), self.net)? {
                return Ok(Some(sealed.number));
            }
        }
        Ok(None)
    }
}

/// The number of the counter block that covers a block of a record.
fn data_counter(block: usize) -> u32 {
    block as u32 + 2
}

#[cfg(test)]
mod tests;
