//! One node's side of a delivery, under any protocol with an honest majority.
//!
//! 1. The nodes make keys of sets for this delivery alone (`modulus/parts.rs`). K is the XOR of a part of
//!    each set; nobody knows all.
//! 2. Every member of a set puts its part into the protocol, and every node its owner's bid. The protocol
//!    computes the lowest bid, and on shares its encryption under K (`circuits.rs`). Before anything else the
//!    nodes open the differences between the parts that the members of a set put in, and stop if they are not
//!    zero. (A cheater in a set learns what it knows: its part and what it put in. Among honest members there
//!    are no differences.) So the K of the protocol is the K of the same parts modulo N. (That the images of
//!    an input that some protocols take with it belong to it is for the protocol to check; a passive one does
//!    not.)
//! 3. AES-128-GCM (SP 800-38D): the ciphertext is opened, hashed under the shared hash key, and the tag is
//!    opened.
//! 4. The same parts, shared modulo N, make the RSA encryption of K (`modulus/envelope.rs`), which is opened.
//!
//! Opened, to all nodes and so to everybody: the ciphertext, its tag and the RSA ciphertext. That is what the
//! outsider is sent. K is used for one message, ever, so any nonce will do; it is taken from the session.

use polyclave_cipher::{Cells, CompiledPort, compile};
use polyclave_example_processes::steps::{Step, Steps};
use polyclave_protocol::any::{AnyServiceConfig, AnyServiceSession, AnyShared};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::ghash::{Ghash, GhashKey};
use polyclave_protocol::metered::Meter;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::Released;
use polyclave_protocol::service::{ELEMENT_BYTES, Element, ServiceConfig, ServiceSession};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::Structure;
use polyclave_protocol::{Error, Party, Result};
use serde::{Deserialize, Serialize};

use crate::circuits::{self, BLOCK};
use crate::modulus::{Arithmetic, KEY, KEY_BYTES, Parts, Ring, encrypt, sets};
use crate::receiver::PublicKey;

/// Bytes of a nonce of GCM.
pub const NONCE_BYTES: usize = 12;

/// What the outsider is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// K, encrypted with RSA.
    pub key: Vec<u8>,
    /// Of GCM.
    pub nonce: [u8; NONCE_BYTES],
    /// The data, encrypted under K.
    pub ciphertext: Vec<u8>,
    /// Authenticates it.
    pub tag: Element,
}

/// What one node ends with.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// The same at all nodes.
    pub delivery: Delivery,
    /// In order.
    pub steps: Vec<Step>,
}

/// Runs one node's side: the result of the computation on all owners' bids, of which `bid` is one, for
/// `receiver`.
pub fn deliver(
    config: &AnyServiceConfig,
    structure: Structure,
    receiver: &PublicKey,
    bid: &[u8],
    net: &mut dyn Net,
    meter: &Meter,
) -> Result<Report> {
    let mut steps = Steps::new(meter);
    let terms = HandshakeParameters::new(net.parties())
        .with("example", b"outsider")
        .with("threshold of the delivery", &structure.threshold().to_le_bytes())
        .with("receiver's key", receiver.der());
    let mut session = hello(&config.handshake(terms), net)?;
    let setup = config.setup(net)?;
    let ring = Ring::new(receiver.modulus())?;
    let parts = Parts::agree(structure, net)?;
    let mut protocol = config.join(&setup, session.stream(), net.members())?;
    let sets: Vec<_> = sets(structure).collect();
    let compiled = compile(&circuits::sealing(net.parties(), &sets), &protocol);
    steps.done("setup");

    let batch = prepare(&mut protocol, &compiled, 1, net)?;
    steps.done("material");

    let mut nonce = [0; NONCE_BYTES];
    nonce.copy_from_slice(&session.id()[..NONCE_BYTES]);
    let own_parts = parts.of(KEY, KEY_BYTES);
    let mut given: Vec<(Party, Cells)> = Vec::new();
    let mut ports = compiled.inputs().iter();
    let mut port = || ports.next().expect("the circuit has an input for it");
    for set in &sets {
        for member in set.iter() {
            let part = own_parts.iter().find(|(held, _)| held == set).map(|(_, part)| &part[..]);
            // Of others it is not looked at.
            given.push((member, cells(port(), part.unwrap_or(&[0; KEY_BYTES]))?));
        }
    }
    for owner in Party::all(net.parties()) {
        given.push((owner, cells(port(), bid)?));
    }
    let counters: Vec<Cells> =
        counter_blocks(&nonce).iter().map(|block| cells(port(), block)).collect::<Result<_>>()?;
    let from = |(owner, cells)| if owner == net.me() { Input::Mine(cells) } else { Input::From(owner) };
    let mut inputs: Vec<_> = given.iter().map(|(owner, cells)| from((*owner, cells))).collect();
    inputs.extend(counters.iter().map(Input::Public));
    let outputs = evaluate(&mut protocol, &compiled, 1, &inputs, batch, net)?;
    drop(given);
    let [differences, hash_key, cover, ciphertext] = &outputs[..] else {
        return Err(Error::misuse("the circuit has other outputs"));
    };
    steps.done("computation and encryption");

    if open(&mut protocol, differences, net)?.iter().any(|byte| *byte != 0) {
        return Err(Error::CheckFailed { what: "the parts of the key that the members of a set put in" });
    }
    let ciphertext = open(&mut protocol, ciphertext, net)?;
    let tag = tag(config, &mut protocol, hash_key, cover, &ciphertext, net)?;
    steps.done("opening and tag");

    let mut arithmetic = Arithmetic::new(&ring, net.me(), parts);
    let key = encrypt(&mut arithmetic, net)?;
    steps.done("key for the receiver");
    Ok(Report { delivery: Delivery { key, nonce, ciphertext, tag }, steps: steps.done })
}

fn cells(port: &CompiledPort, blocks: &[u8]) -> Result<Cells> {
    Cells::from_blocks(port.cells.len(), port.bits, blocks).map_err(|e| Error::misuse(e.to_string()))
}

/// Zeros, J0 (the nonce and 1), and the nonce and 2, 3 and so on.
fn counter_blocks(nonce: &[u8; NONCE_BYTES]) -> Vec<[u8; BLOCK]> {
    let counter = |number: u32| {
        let mut block = [0; BLOCK];
        block[..NONCE_BYTES].copy_from_slice(nonce);
        block[NONCE_BYTES..].copy_from_slice(&number.to_be_bytes());
        block
    };
    std::iter::once([0; BLOCK]).chain((1..circuits::COUNTERS as u32).map(counter)).collect()
}

/// Opens a value to all, behind the protocol's check.
fn open(protocol: &mut AnyServiceSession, shared: &AnyShared, net: &mut dyn Net) -> Result<Vec<u8>> {
    let opened = release(protocol, shared, Owner::All, net)?;
    Ok(opened.ok_or_else(|| Error::misuse("an output for all did not come"))?.accept().to_blocks())
}

/// The tag of a public ciphertext without additional data: its hash plus E(J0), opened as to a client, which
/// here is everybody.
fn tag(
    config: &AnyServiceConfig,
    protocol: &mut AnyServiceSession,
    hash_key: &AnyShared,
    cover: &AnyShared,
    ciphertext: &[u8],
    net: &mut dyn Net,
) -> Result<Element> {
    let (h, cover) = (protocol.elements(hash_key, net)?, protocol.elements(cover, net)?);
    let powers = GhashKey::derive(protocol.arithmetic(), &h, net)?;
    let mut hash = Ghash::new(&powers);
    let mut blocks = ciphertext.to_vec();
    blocks.resize(blocks.len().next_multiple_of(ELEMENT_BYTES), 0);
    blocks.extend([0; 8]);
    blocks.extend((8 * ciphertext.len() as u64).to_be_bytes());
    hash.update(protocol.arithmetic(), &blocks, net)?;
    let tag = hash.finish().add(&cover);

    let message = protocol.reveal_elements(&tag, net)?;
    let (me, n) = (net.me(), net.parties());
    let mut all: Vec<Vec<u8>> =
        Party::all(n).map(|p| if p == me { Vec::new() } else { vec![0; message.len()] }).collect();
    let out: Vec<&[u8]> = Party::all(n).map(|p| if p == me { &[] } else { &message[..] }).collect();
    net.exchange(&out, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    all[me.index()] = message;
    let messages: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let opened = config.combine_elements(net.members(), &messages)?;
    opened.first().copied().ok_or_else(|| Error::misuse("no tag was opened"))
}

#[cfg(test)]
mod tests;
