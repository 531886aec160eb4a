//! The function that runs every cipher under every protocol.

use polyclave_cipher::Compiled;

use crate::interface::net::Net;
use crate::interface::protocol::{Input, Owner, Session};
use crate::interface::tally::Phase;
use crate::{Error, Result};

/// Evaluates a circuit on `lanes` lanes; the outputs stay shared. `inputs` in the order of the circuit's
/// ports, `batch` from [`Session::prepare`] for the same circuit and number of lanes.
pub fn evaluate<P: Session>(
    protocol: &mut P,
    compiled: &Compiled,
    lanes: usize,
    inputs: &[Input<'_, P::Shared>],
    mut batch: P::Batch,
    net: &mut dyn Net,
) -> Result<Vec<P::Shared>> {
    refuse_no_lanes(lanes)?;
    let ports = compiled.inputs();
    if inputs.len() != ports.len() {
        let (name, expected, given) = (compiled.name(), ports.len(), inputs.len());
        return Err(Error::Misuse(format!("{name} takes {expected} inputs, {given} were given")));
    }
    loop {
        protocol.enter(Phase::Input);
        let mut registers = protocol.registers(compiled, lanes, &mut batch)?;
        protocol.inputs(ports, inputs, &mut registers, net)?;
        protocol.enter(Phase::Online);
        for layer in compiled.layers() {
            protocol.linear(&layer.linear, &mut registers);
            if !layer.lookups.is_empty() {
                protocol.lookup(compiled, &layer.lookups, &mut registers, &mut batch, net)?;
            }
        }
        if protocol.settle(compiled, &mut registers, net)? {
            return Ok(compiled.outputs().iter().map(|port| protocol.output(port, &mut registers)).collect());
        }
    }
}

/// Makes the material for one evaluation, as a phase of its own.
pub fn prepare<P: Session>(
    protocol: &mut P,
    compiled: &Compiled,
    lanes: usize,
    net: &mut dyn Net,
) -> Result<P::Batch> {
    refuse_no_lanes(lanes)?;
    protocol.enter(Phase::Preprocessing);
    protocol.prepare(compiled, lanes, net)
}

fn refuse_no_lanes(lanes: usize) -> Result<()> {
    if lanes == 0 { Err(Error::misuse("an evaluation needs at least one lane")) } else { Ok(()) }
}

/// Reveals a shared value to its owner, behind the protocol's check.
pub fn release<P: Session>(
    protocol: &mut P,
    shared: &P::Shared,
    to: Owner,
    net: &mut dyn Net,
) -> Result<Option<P::Released>> {
    protocol.enter(Phase::Output);
    protocol.check(net)?;
    protocol.release(shared, to, net)
}
