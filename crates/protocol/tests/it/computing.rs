//! Circuits whose inputs all come from a client.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Matrix, Port, Table, compile};
use polyclave_protocol::Result;
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig, Session};
use polyclave_protocol::service::{ServiceConfig, ServiceSession};

use crate::clients::{client_learns, noise};

/// A block for every lane and input, of narrow cells where they are.
pub fn secrets_of(circuit: &Circuit, lanes: usize) -> Vec<Vec<u8>> {
    let secret = |port: &Port| {
        let blocks = if port.uniform { 1 } else { lanes };
        let mut bytes = noise(&port.name, blocks * Cells::block_bytes(port.cells.len(), port.bits));
        let keep = if 8 % port.bits == 0 { 0xff } else { 0xff >> (8 - port.bits) };
        bytes.iter_mut().for_each(|byte| *byte &= keep);
        bytes
    };
    circuit.inputs().iter().map(secret).collect()
}

/// Everything comes from a client through one mask and through the disk: the shared output.
pub fn client_computes<S: ServiceConfig>(
    config: &S,
    protocol: &mut S::Session,
    circuit: &Circuit,
    lanes: usize,
    net: &mut dyn Net,
) -> Result<Shared<S>> {
    let secrets = secrets_of(circuit, lanes);
    let compiled = compile(circuit, protocol);
    let plain = secrets.concat();
    let (mask, message) = protocol.mask_input(plain.len(), net)?;
    let r = client_learns(config, &message, net)?;
    let masked: Vec<u8> = plain.iter().zip(&r).map(|(x, r)| x ^ r).collect();
    let mut at = 0;
    let mut shared = Vec::new();
    for (port, secret) in compiled.inputs().iter().zip(&secrets) {
        let value = protocol.unmask(&mask, at, &masked[at..at + secret.len()], port)?;
        shared.push(protocol.restore(&protocol.save(&value))?);
        at += secret.len();
    }
    let batch = prepare(protocol, &compiled, lanes, net)?;
    let inputs: Vec<_> = shared.iter().map(Input::Shared).collect();
    Ok(evaluate(protocol, &compiled, lanes, &inputs, batch, net)?.remove(0))
}

/// A shared value under a configuration.
pub type Shared<S> = <<S as ProtocolConfig>::Session as Session>::Shared;

/// Five cells of so many bits, some of them through a table.
pub fn one_table(bits: u8) -> Circuit {
    let entries = (0..1u16 << bits).map(|x| (x * 37 + 11) as u8 & (0xff >> (8 - bits)));
    let mut b = Builder::new("one table");
    let table = b.table(&Arc::new(Table::new("arbitrary", bits, bits, entries.collect())));
    let x = b.input("x", 5, bits);
    let y: Vec<_> = x.iter().map(|x| b.lookup(table, *x)).collect();
    let z = b.linear(vec![(y[0], Matrix::identity(bits)), (x[1], Matrix::identity(bits))], 1);
    b.output("y", &[y[0], y[1], z, x[3], y[4]]);
    b.finish()
}
