//! The conformance suite for every protocol. The circuits of every cipher must give the answers of the
//! cleartext evaluator, however the inputs are given, and take the counts that the protocol predicts.

use polyclave_cipher::{AnyMap, Cells, Circuit, cleartext, compile};

use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tally::{Cost, Tally};
use polyclave_protocol::{Error, Party, Result};

/// What one run of all parties showed.
pub struct Run {
    /// The output ports.
    pub outputs: Vec<Cells>,
    /// What each party counted.
    pub tallies: Vec<Tally>,
    /// What the protocol predicted.
    pub cost: Cost,
}

/// Runs a circuit with all parties on threads. Input port i is given by party i mod n, and everybody learns
/// the outputs.
pub fn run(config: &impl ProtocolConfig, circuit: &Circuit, lanes: usize, inputs: &[Cells]) -> Result<Run> {
    let parties = config.parties();
    let party = |net: &mut dyn Net| -> Result<(Vec<Cells>, Tally, Cost)> {
        let mut session = hello(&config.handshake(HandshakeParameters::new(parties)), net)?;
        let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
        let compiled = compile(circuit, &protocol);
        let batch = prepare(&mut protocol, &compiled, lanes, net)?;
        let owner = |i: usize| Party((i % parties) as u8);
        let sources = inputs.iter().enumerate();
        let sources: Vec<_> = sources
            .map(|(i, cells)| if owner(i) == net.me() { Input::Mine(cells) } else { Input::From(owner(i)) })
            .collect();
        let shared = evaluate(&mut protocol, &compiled, lanes, &sources, batch, net)?;
        let mut outputs = Vec::new();
        for port in &shared {
            let released = release(&mut protocol, port, Owner::All, net)?;
            outputs.push(released.ok_or_else(|| Error::misuse("an output for all did not come"))?.accept());
        }
        Ok((outputs, protocol.tally(), protocol.cost(&compiled)))
    };
    let results: Vec<_> = run_parties(parties, party).into_iter().collect::<Result<_>>()?;
    if results.iter().any(|(outputs, ..)| *outputs != results[0].0) {
        return Err(Error::System("the parties learned different outputs".into()));
    }
    let tallies = results.iter().map(|(_, tally, _)| *tally).collect();
    let (outputs, _, cost) =
        results.into_iter().next().ok_or_else(|| Error::misuse("there are no parties"))?;
    Ok(Run { outputs, tallies, cost })
}

/// Runs a circuit under a protocol and in the clear on pseudorandom inputs.
///
/// # Panics
/// If anything differs.
pub fn check_circuit(config: &impl ProtocolConfig, circuit: &Circuit, lanes: usize, seed: u8) -> Run {
    let mut noise = blake3::Hasher::new().update(&[seed]).finalize_xof();
    let inputs: Vec<Cells> = circuit
        .inputs()
        .iter()
        .map(|port| {
            let mut cells = Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes });
            noise.fill(cells.rows_mut());
            let mask = 0xffu8 >> (8 - port.bits);
            cells.rows_mut().iter_mut().for_each(|x| *x &= mask);
            cells
        })
        .collect();
    let expected = cleartext::run(&compile(circuit, &AnyMap), lanes, &inputs).expect("the inputs fit");
    let run = run(config, circuit, lanes, &inputs).expect("honest parties finish");
    assert!(run.outputs == expected, "{} differs from the cleartext", circuit.name());
    run
}
