//! Sessions of authenticated sharing, from hello to output.

use polyclave_cipher::{Cells, Circuit, Port, compile};
use polyclave_field::MacField;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::LookupMethod;
use polyclave_protocol::{Party, Result};

use crate::lookups::config;

/// Lanes of every session.
pub const LANES: usize = 4;

pub fn inputs(circuit: &Circuit) -> Vec<Cells> {
    let port = |(i, port): (usize, &Port)| {
        let mut cells = Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { LANES });
        let value =
            |at: usize| (at as u8).wrapping_mul(29).wrapping_add(7 * i as u8 + 3) & (0xff >> (8 - port.bits));
        cells.rows_mut().iter_mut().enumerate().for_each(|(at, cell)| *cell = value(at));
        cells
    };
    circuit.inputs().iter().enumerate().map(port).collect()
}

/// From hello to output; input port i is party i's.
pub fn session<F: MacField>(
    way: LookupMethod,
    circuit: &Circuit,
    to: Owner,
    net: &mut dyn Net,
) -> Result<Option<Vec<u8>>> {
    session_under(&config::<F>(net.parties(), way), circuit, to, net)
}

/// The same under another configuration.
pub fn session_under(
    config: &impl ProtocolConfig,
    circuit: &Circuit,
    to: Owner,
    net: &mut dyn Net,
) -> Result<Option<Vec<u8>>> {
    let mut session = hello(&config.handshake(HandshakeParameters::new(net.parties())), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let compiled = compile(circuit, &protocol);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    let cells = inputs(circuit);
    let input = |(i, cells)| match Party(i as u8) {
        owner if owner == net.me() => Input::Mine(cells),
        owner => Input::From(owner),
    };
    let inputs: Vec<_> = cells.iter().enumerate().map(input).collect();
    let output = evaluate(&mut protocol, &compiled, LANES, &inputs, batch, net)?.remove(0);
    Ok(release(&mut protocol, &output, to, net)?.map(|released| released.accept().to_blocks()))
}
