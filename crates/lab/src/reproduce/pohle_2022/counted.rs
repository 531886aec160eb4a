//! Runs that count operations: a garbler and an evaluator on threads of this process.

use anyhow::{Result, ensure};
use polyclave_cipher::{AnyMap, Cells, Circuit, boolean, cleartext, compile};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::EXPANSION;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tally::Tally;
use polyclave_protocol::{Error, Party, Result as Outcome};
use polyclave_protocol_lab::garbled::projection::{Labels, ProjectionConfig};
use polyclave_protocol_lab::garbled::{GarbledConfig, Gates};

use crate::reproduce::measure::random_inputs;

/// With labels of 16 bytes, as on the poster.
pub const PROJECTIONS: ProjectionConfig = ProjectionConfig { labels: Labels::Short, expansion: EXPANSION };
pub const HALF_GATES: GarbledConfig = GarbledConfig { gates: Gates::Half, expansion: EXPANSION };
const THREE_HALVES: GarbledConfig = GarbledConfig { gates: Gates::ThreeHalves, expansion: EXPANSION };

/// The work for one block, including its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Calls of the hash at the garbler.
    pub garble: u64,
    /// Ciphertexts.
    pub send: u64,
    /// Calls of the hash at the evaluator.
    pub eval: u64,
}

/// Counts the work with projection gates. The evaluator gives the named inputs, and the garbler the others.
pub fn by_projections(circuit: &Circuit, of_evaluator: &[&str]) -> Result<Work> {
    work(&AnyProtocolConfig::new(PROJECTIONS), circuit, of_evaluator)
}

/// Counts ANDs, with half gates and with three halves, and verifies the work of each AND. Three ciphertexts
/// of three halves are half as long as a label. Inputs take only transfers.
pub fn ands(circuit: &Circuit, of_evaluator: &[&str]) -> Result<u64> {
    let circuit = boolean::expand(circuit);
    let counted = work(&AnyProtocolConfig::new(HALF_GATES), &circuit, of_evaluator)?;
    let ands = counted.send / 2;
    let of_half_gates = Work { garble: 4 * ands, send: 2 * ands, eval: 2 * ands };
    ensure!(counted == of_half_gates, "half gates took {counted:?}");
    let counted = work(&AnyProtocolConfig::new(THREE_HALVES), &circuit, of_evaluator)?;
    let of_three_halves = Work { garble: 6 * ands, send: 3 * ands, eval: 3 * ands };
    ensure!(counted == of_three_halves, "three halves took {counted:?}");
    Ok(ands)
}

/// Which party gives an input.
pub fn owner(port: &str, of_evaluator: &[&str]) -> Party {
    Party(u8::from(of_evaluator.contains(&port)))
}

/// Runs a circuit on one random block, and counts the work.
fn work(config: &AnyProtocolConfig, circuit: &Circuit, of_evaluator: &[&str]) -> Result<Work> {
    let inputs = random_inputs(circuit, 1)?;
    let party = |net: &mut dyn Net| -> Outcome<(Tally, Cells)> {
        let terms = config.handshake(HandshakeParameters::new(2)).with("circuit", &circuit.digest());
        let stream = hello(&terms, net)?.stream();
        let mut protocol = config.join(&config.setup(net)?, stream, net.members())?;
        let compiled = compile(circuit, &protocol);
        let me = net.me();
        let given = compiled.inputs().iter().zip(&inputs).map(|(port, cells)| {
            let owner = owner(&port.name, of_evaluator);
            if owner == me { Input::Mine(cells) } else { Input::From(owner) }
        });
        let given: Vec<_> = given.collect();
        let batch = prepare(&mut protocol, &compiled, 1, net)?;
        let outputs = evaluate(&mut protocol, &compiled, 1, &given, batch, net)?;
        let tally = protocol.tally();
        let output = release(&mut protocol, &outputs[0], Owner::All, net)?;
        Ok((tally, output.ok_or_else(|| Error::misuse("an output for all did not come"))?.accept()))
    };
    let counted = run_parties(2, party).into_iter().collect::<Outcome<Vec<_>>>()?;
    let right = cleartext::run(&compile(circuit, &AnyMap), 1, &inputs)?;
    let is_right = counted.iter().all(|(_, output)| *output == right[0]);
    ensure!(is_right, "{} under {} gives another output than in the clear", circuit.name(), config.name());
    let [garbler, evaluator] = [0, 1].map(|i| {
        let mut both = counted[i].0.input;
        both += counted[i].0.online;
        both
    });
    ensure!(garbler.ciphertexts == evaluator.ciphertexts, "the parties count different ciphertexts");
    Ok(Work { garble: garbler.hash_calls, send: garbler.ciphertexts, eval: evaluator.hash_calls })
}
