//! Nodes under Shamir sharing that store their shares, for the tests of what serves from them.

use polyclave_cipher::{Cells, catalog, compile, compile_with_views};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::{run_members, run_parties};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig};
use polyclave_protocol::service::{ServiceConfig, ServiceSession};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::{Inversion, Shamir, ShamirConfig, Structure, Tables};
use polyclave_protocol::{Party, PartySet, Result};

pub fn config(parties: usize, threshold: usize) -> ShamirConfig {
    let structure = Structure::new(parties, threshold).expect("it is valid");
    ShamirConfig { structure, inversion: Inversion::CarriedSquares, tables: Tables::Masked }
}

/// What the disk of each node holds: its setup, and the value it put there.
pub type Disks = Vec<(Vec<u8>, Vec<u8>)>;

/// All nodes set up; what `store` returns goes to their disks.
pub fn cluster(
    config: &ShamirConfig,
    store: impl Fn(&mut Shamir, &mut dyn Net) -> Result<Vec<u8>> + Sync,
) -> Disks {
    let nodes = run_parties(config.parties(), |net| {
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        let value = store(&mut protocol, net)?;
        Ok((config.save_setup(&setup).to_vec(), value))
    });
    nodes.into_iter().map(|node| node.expect("honest nodes finish")).collect()
}

/// Some nodes serve from their disks, in a new session.
pub fn serve<T: Send>(
    config: &ShamirConfig,
    serving: PartySet,
    disks: &Disks,
    request: impl Fn(&mut Shamir, &[u8], &mut dyn Net) -> Result<T> + Sync,
) -> Vec<T> {
    let nodes = run_members(config.parties(), serving, |net| {
        let (setup, value) = &disks[net.me().index()];
        let setup = config.restore_setup(net.me(), setup)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        request(&mut protocol, value, net)
    });
    nodes.into_iter().map(|node| node.expect("honest nodes finish")).collect()
}

/// The key of the stored round keys.
pub const KEY: [u8; 16] = *b"sixteen key byte";

/// All nodes make the round keys of AES-128 together and store them.
pub fn store_round_keys(protocol: &mut Shamir, net: &mut dyn Net) -> Result<Vec<u8>> {
    let cipher = catalog::find("aes-128").expect("the catalog has it");
    let views = compile(&cipher.encrypt, protocol).inputs()[1].views();
    let schedule = compile_with_views(&cipher.key_schedule, protocol, |_| views.clone());
    let batch = prepare(protocol, &schedule, 1, net)?;
    let key = Cells::from_blocks(16, 8, &KEY).expect("one block");
    let key = if net.me() == Party(0) { Input::Mine(&key) } else { Input::From(Party(0)) };
    let round_keys = evaluate(protocol, &schedule, 1, &[key], batch, net)?.remove(0);
    Ok(protocol.save(&round_keys).to_vec())
}
