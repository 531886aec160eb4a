//! What an evaluation holds in memory, planned before it starts, so that nodes can cut a large one into
//! pieces.
//!
//! The figures of a lookup were found by measuring; the test below holds them to what evaluations really
//! take.

use polyclave_cipher::{Compiled, Layer};

use super::masked_table;
use super::tables::{LookupMethod, Tables};

/// About as many bytes as an evaluation of many lanes holds for each of them at a time: its slots, its
/// material with what that is made from, and the openings of its widest layer.
pub(super) fn bytes_per_lane(compiled: &Compiled, parties: usize, tables: Tables) -> usize {
    let of_layers: Vec<Held> =
        compiled.layers().iter().map(|layer| held(compiled, layer, parties, tables)).collect();
    let material: usize = of_layers.iter().map(|held| held.material).sum();
    let openings = of_layers.iter().map(|held| held.openings).max().unwrap_or(0);
    compiled.lane_slots() + material + openings
}

/// Bytes that one layer takes for each lane.
#[derive(Default)]
struct Held {
    /// From the beginning of the evaluation on.
    material: usize,
    /// While it runs.
    openings: usize,
}

fn held(compiled: &Compiled, layer: &Layer, parties: usize, tables: Tables) -> Held {
    let mut held = Held::default();
    for lookup in layer.lookups.iter().filter(|lookup| !lookup.is_uniform()) {
        let table = &compiled.tables()[lookup.table];
        // What is opened goes out to all, and comes in from all.
        held.openings += 4 * parties;
        match tables.way(table) {
            LookupMethod::Inversion(_) => held.openings += 24,
            LookupMethod::Product => held.openings += 8,
            LookupMethod::Polynomial(_) => held.openings += 56,
            LookupMethod::Masked => {
                held.openings += 16;
                // While unit vectors are made they are there by entry and by index, and half of them is
                // opened under masks.
                held.material += masked_table::material_bytes(table.in_bits()) * 9 / 2;
            }
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{Cells, Circuit, boolean, catalog, compile};

    use super::super::{Inversion, ShamirConfig, Structure};
    use super::*;
    use crate::evaluate::{evaluate, prepare};
    use crate::interface::protocol::{Input, ProtocolConfig};
    use crate::interface::session::{HandshakeParameters, hello};
    use crate::mesh::run_parties;

    /// The bytes that an evaluation of so many lanes held at most, and those planned.
    fn held_and_planned(circuit: &Circuit, tables: Tables, lanes: usize) -> (usize, usize) {
        let structure = Structure::new(3, 1).expect("it is valid");
        let config = ShamirConfig { structure, inversion: Inversion::CarriedSquares, tables };
        let outcomes = run_parties(3, |net| {
            let setup = config.setup(net)?;
            let stream = hello(&HandshakeParameters::new(3), net)?.stream();
            let mut protocol = config.join(&setup, stream, net.members())?;
            let compiled = compile(circuit, &protocol);
            let zeros = |port: &polyclave_cipher::CompiledPort| {
                Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes })
            };
            let inputs: Vec<Cells> = compiled.inputs().iter().map(zeros).collect();
            let inputs: Vec<_> = inputs.iter().map(Input::Public).collect();
            let batch = prepare(&mut protocol, &compiled, lanes, net)?;
            evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?;
            let arithmetic = &protocol.arithmetic;
            let buffers = arithmetic.outgoing.iter().chain(&arithmetic.incoming);
            // Nothing is given back to the system before the session ends.
            let held = arithmetic.pool.bytes() + buffers.map(|b| b.capacity()).sum::<usize>();
            Ok((held, lanes * bytes_per_lane(&compiled, 3, tables)))
        });
        outcomes[0].clone().expect("honest parties finish")
    }

    #[test]
    fn an_evaluation_holds_what_was_planned_and_no_plan_is_three_times_too_large() {
        for (cipher, tables, lanes) in [
            ("aes-128", Tables::ByLanes, 4096),
            ("3des-ede3", Tables::ByLanes, 4096),
            ("present-80", Tables::ByLanes, 4096),
            ("3des-ede3", Tables::Masked, 256),
            ("skinny-128-128", Tables::ByLanes, 64),
        ] {
            let circuit = catalog::find(cipher).expect("the catalog has it").encrypt;
            check(&circuit, tables, lanes);
        }
        let gates = boolean::cipher("skinny-128-128").expect("the catalog has it").encrypt;
        check(&gates, Tables::ByLanes, 1024);
    }

    fn check(circuit: &Circuit, tables: Tables, lanes: usize) {
        let (held, planned) = held_and_planned(circuit, tables, lanes);
        let name = circuit.name();
        assert!(held <= planned && planned <= 3 * held, "{name} by {tables}: {held} held, {planned} planned");
    }
}
