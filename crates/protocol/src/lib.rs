//! Secure multi-party evaluation of the circuits of `polyclave-cipher`.
//!
//! [`evaluate`](evaluate::evaluate) drives every cipher under every [`Session`](protocol::Session). Protocols talk
//! through the [`Net`](net::Net) port only, and state the adversary they tolerate in their module.
//!
//! AES between three threads. Party 1 has the key, party 3 the block, and all learn the ciphertext (FIPS-197, appendix C.1).
//!
//! ```
//! use polyclave_cipher::{Cells, Direction, catalog as ciphers, compile};
//! use polyclave_protocol::evaluate::{evaluate, prepare, release};
//! use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
//! use polyclave_protocol::session::{HandshakeParameters, hello};
//! use polyclave_protocol::{Party, Result, catalog, mesh::mesh, net::Net, release::Released};
//!
//! fn party(mut net: impl Net, key: &Cells, block: &Cells) -> Result<Vec<u8>> {
//!     let protocol = catalog::find("shamir").expect("a protocol").config(Some(3), None, &[])?;
//!     let aes = ciphers::find("aes-128").expect("a cipher").circuit_with_key_schedule(Direction::Encrypt);
//!     let aes = aes.expect("it encrypts");
//!     let terms = protocol.handshake(HandshakeParameters::new(3)).with("circuit", &aes.digest());
//!     let mut agreed = hello(&terms, &mut net)?;
//!     let setup = protocol.setup(&mut net)?;
//!     let mut session = protocol.join(&setup, agreed.stream(), net.members())?;
//!     let aes = compile(&aes, &session);
//!     let me = net.me();
//!     let inputs = [(Party(2), block), (Party(0), key)];
//!     let inputs = inputs.map(|(owner, cells)| if owner == me { Input::Mine(cells) } else { Input::From(owner) });
//!     let material = prepare(&mut session, &aes, 1, &mut net)?;
//!     let shared = evaluate(&mut session, &aes, 1, &inputs, material, &mut net)?;
//!     let output = release(&mut session, &shared[0], Owner::All, &mut net)?;
//!     Ok(output.expect("it is for all").accept().to_blocks())
//! }
//!
//! let cells = |hex: &str| Cells::from_blocks(16, 8, &hex::decode(hex).expect("hex")).expect("16 bytes");
//! let (key, block) = (cells("000102030405060708090a0b0c0d0e0f"), cells("00112233445566778899aabbccddeeff"));
//! std::thread::scope(|scope| {
//!     let parties = mesh(3).into_iter().map(|net| scope.spawn(|| party(net, &key, &block)));
//!     for output in parties.collect::<Vec<_>>() {
//!         let output = output.join().expect("no panic").expect("no error");
//!         assert_eq!(hex::encode(output), "69c4e0d86a7b0430d8cdb78070b4c55a");
//!     }
//! });
//! ```
//!
//! In this example both values lie in memory that all threads share, and each thread reads only its own party's. Between machines
//! `polyclave_transport::Endpoint` takes the place of [`mesh`](mesh::mesh).

#![warn(missing_docs)]

pub mod among;
pub mod authenticated;
pub mod byte_registers;
pub mod byte_shares;
pub mod catalog;
pub mod coins;
pub mod commitment;
mod error;
pub mod evaluate;
pub mod ghash;
pub mod handover;
pub mod interface;
mod lanes;
pub mod mascot;
pub mod mesh;
pub mod metered;
pub mod ot;
mod party;
pub mod pool;
pub mod replicated;
mod retirement;
pub mod shamir;
pub mod spdz;
pub mod stored;
pub mod tinyot;
pub mod tinytable;
mod unchecked;

pub use interface::{any, descriptor, net, protocol, release, service, session, stock, tally};

pub use error::{EARLIER_CHECK, Error, Result};

pub use party::{Party, PartySet};
pub use retirement::GuessGuard;

// The unit tests include what cheats and deals from the laboratory's crate, which names this one so.
#[cfg(test)]
extern crate self as polyclave_protocol;
#[cfg(test)]
#[path = "../../protocol-lab/src/dealers/mod.rs"]
#[allow(dead_code, missing_docs, reason = "each crate needs another part of it")]
mod dealers;
#[cfg(test)]
#[path = "../../protocol-lab/src/testkit/mod.rs"]
#[allow(dead_code, missing_docs, reason = "each crate needs another part of it")]
mod testkit;
