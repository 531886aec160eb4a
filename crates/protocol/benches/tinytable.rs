//! The online phase of scrambled tables without a network: both parties in one process, a thread each, fresh
//! material of the dealer in memory. Prints blocks a second, processor time a block and party, for each way
//! of verifying.
//!
//! `cargo bench -p polyclave-protocol --bench tinytable [-- NAME]`

use std::time::Instant;

use polyclave_cipher::{Cells, Cipher, boolean, catalog, compile};
use polyclave_protocol::commitment::commit_and_open;
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tinytable::{Macs, Preprocessing, TinyTableConfig, Worth};
use polyclave_protocol::{Error, Result};
use polyclave_protocol_lab::dealers::InsecureDealing;

const REPEATS: usize = 5;
/// Material of a party at once.
const MAX_BYTES: usize = 1 << 30;
const MAX_LANES: usize = 8192;

fn party<R: Worth>(macs: Macs, cipher: &Cipher, net: &mut dyn Net) -> Result<(usize, Vec<f64>)> {
    let config = TinyTableConfig::<R>::new(macs, Preprocessing::Dealt(&InsecureDealing))?;
    let mut session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(&cipher.encrypt, &protocol);
    let lanes = (MAX_BYTES / protocol.cost(&compiled).material_bytes_per_lane).clamp(1, MAX_LANES);
    let cells = |port: usize, lanes| {
        let port = &compiled.inputs()[port];
        Cells::zero(port.cells.len(), port.bits, lanes)
    };
    let (block, key) = (cells(0, lanes), cells(1, 1));
    let mut seconds = Vec::new();
    for _ in 0..REPEATS {
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        // Neither waits for the other's dealer in the time that is measured.
        commit_and_open(b"ready", &[], net)?;
        let began = Instant::now();
        let inputs = [Input::Public(&block), Input::Public(&key)];
        evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?;
        protocol.check(net)?;
        seconds.push(began.elapsed().as_secs_f64());
    }
    Ok((lanes, seconds))
}

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let known = |cipher: Option<Cipher>| cipher.ok_or_else(|| Error::misuse("the catalog has it"));
    let circuits =
        [("tables", known(catalog::find("aes-128"))?), ("gates", known(boolean::cipher("aes-128"))?)];
    println!("{:32} {:>8} {:>14} {:>14}", "", "lanes", "median", "best, blocks/s");
    for (name, cipher) in &circuits {
        // That of MiniMac is `tinytable_minimac.rs`.
        for macs in Macs::ALL.iter().copied().filter(|macs| *macs != Macs::Minimac) {
            let name = format!("aes-128 {name}, {}", macs.protocol());
            if !wanted.iter().all(|wanted| name.contains(wanted.as_str())) {
                continue;
            }
            let outcomes = match macs {
                Macs::None => run_parties(2, |net| party::<Unverified<Cells>>(macs, cipher, net)),
                _ => run_parties(2, |net| party::<Checked<Cells>>(macs, cipher, net)),
            };
            let outcomes: Vec<_> = outcomes.into_iter().collect::<Result<_>>()?;
            let lanes = outcomes[0].0;
            let mut slowest: Vec<f64> =
                outcomes[0].1.iter().zip(&outcomes[1].1).map(|(x, y)| x.max(*y)).collect();
            slowest.sort_by(f64::total_cmp);
            let rate = |seconds: f64| lanes as f64 / seconds;
            println!("{name:32} {lanes:>8} {:>14.0} {:>14.0}", rate(slowest[REPEATS / 2]), rate(slowest[0]));
        }
    }
    Ok(())
}
