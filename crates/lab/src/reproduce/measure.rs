//! Runs circuits among all parties of a protocol and counts. By default there are three parties, of which one
//! may be corrupted.

use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, ensure};
use polyclave_cipher::{
    AnyMap, Builder, Cells, Cipher, Circuit, Compiled, Direction, Table, catalog, cleartext, compile,
};
use polyclave_protocol::Party;
use polyclave_protocol::any::{AnyProtocolConfig, AnyShared};
use polyclave_protocol::protocol::{ProtocolConfig, Session};
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::shamir::{Inversion, ShamirConfig, Structure, Tables};
use polyclave_protocol::tally::{Cost, Counts};

use crate::eval::parties::{Bill, Seat, entrance, in_session};

/// The cost of evaluations of one circuit.
pub struct Taken {
    online: Counts,
    preprocessing: Counts,
    /// Sent by the busiest party before the inputs are known.
    bytes_ahead: u64,
    /// Sent by all parties, ahead and online.
    bytes_in_all: u64,
    blocks: f64,
    evaluations: f64,
    predicted: Cost,
}

impl Taken {
    /// Operations online, on average for each lane of each evaluation.
    pub fn operations(&self) -> f64 {
        self.online.operations() as f64 / self.blocks
    }

    /// Multiplications online, on average for each lane of each evaluation.
    pub fn multiplications(&self) -> f64 {
        self.online.multiplications as f64 / self.blocks
    }

    /// Rounds online, on average for each evaluation.
    pub fn rounds(&self) -> f64 {
        self.online.rounds as f64 / self.evaluations
    }

    /// Operations before the inputs are known, for each lane.
    pub fn operations_ahead(&self) -> f64 {
        self.preprocessing.operations() as f64 / self.blocks
    }

    /// Rounds before the inputs are known.
    pub fn rounds_ahead(&self) -> f64 {
        self.preprocessing.rounds as f64 / self.evaluations
    }

    /// Triples made before the inputs are known, for each lane.
    pub fn triples(&self) -> f64 {
        self.preprocessing.triples as f64 / self.blocks
    }

    /// Random bits made before the inputs are known, for each lane.
    pub fn bits(&self) -> f64 {
        self.preprocessing.bits as f64 / self.blocks
    }

    /// Bytes that the busiest party sent before the inputs were known, for each lane.
    pub fn bytes_ahead(&self) -> f64 {
        self.bytes_ahead as f64 / self.blocks
    }

    /// Bytes that all parties sent together, ahead and online, for each lane.
    pub fn bytes_in_all(&self) -> f64 {
        self.bytes_in_all as f64 / self.blocks
    }

    /// Operations online that the protocol predicts for one lane.
    pub fn predicted_operations(&self) -> f64 {
        self.predicted.operations_per_lane + self.predicted.operations_uniform
    }

    /// Triples that the protocol predicts for one lane.
    pub fn predicted_triples(&self) -> f64 {
        self.predicted.triples_per_lane + self.predicted.triples_uniform
    }

    /// Rounds online that the protocol predicts.
    pub fn predicted_rounds(&self) -> f64 {
        self.predicted.rounds
    }
}

/// Evaluates a circuit once on one lane.
pub fn once(inversion: Inversion, circuit: &Circuit) -> Result<Taken> {
    evaluations(inversion, circuit, 1, 1)
}

/// Evaluates a circuit on random inputs, `lanes` lanes at a time and `times` times in one session.
pub fn evaluations(inversion: Inversion, circuit: &Circuit, lanes: usize, times: usize) -> Result<Taken> {
    let config = ShamirConfig { structure: Structure::new(3, 1)?, inversion, tables: Tables::Masked };
    evaluations_under(&AnyProtocolConfig::new(config), circuit, lanes, times)
}

/// The same under any protocol. If an output differs from that of the cleartext, this is an error: only
/// correct computations are counted.
pub fn evaluations_under(
    config: &AnyProtocolConfig,
    circuit: &Circuit,
    lanes: usize,
    times: usize,
) -> Result<Taken> {
    let inputs = (0..times).map(|_| random_inputs(circuit, lanes)).collect::<Result<Vec<_>>>()?;
    let compiled = OnceLock::new();
    let counted = in_session(config, &circuit.digest(), |seat| {
        let (entrances, compiled) = compiled.get_or_init(|| {
            let compiled = compile(circuit, seat.protocol());
            let entrances = compiled.inputs().iter().map(|port| entrance(&[port], seat.protocol()));
            (entrances.collect::<Vec<Compiled>>(), compiled)
        });
        let mut total = Total::default();
        for inputs in &inputs {
            let output = evaluate(seat, entrances, compiled, lanes, inputs, &mut total)?;
            total.outputs.push(output);
        }
        Ok((total, seat.protocol().cost(compiled)))
    })?;
    let bytes_ahead = counted.iter().map(|(total, _)| total.bytes_ahead).max().unwrap_or_default();
    let bytes_in_all = counted.iter().map(|(total, _)| total.bytes_ahead + total.bytes_online).sum();
    let (Total { online, preprocessing, outputs, .. }, predicted) =
        counted.into_iter().next().context("there are no parties")?;
    let plain = compile(circuit, &AnyMap);
    for (inputs, outputs) in inputs.iter().zip(&outputs) {
        let right = cleartext::run(&plain, lanes, inputs)? == *outputs;
        ensure!(right, "{} under {} gives another output than in the clear", circuit.name(), config.name());
    }
    let blocks = (lanes * times) as f64;
    let evaluations = times as f64;
    Ok(Taken { online, preprocessing, bytes_ahead, bytes_in_all, blocks, evaluations, predicted })
}

/// What one party counted, and all outputs.
#[derive(Default)]
struct Total {
    online: Counts,
    preprocessing: Counts,
    bytes_ahead: u64,
    bytes_online: u64,
    outputs: Vec<Vec<Cells>>,
}

fn evaluate(
    seat: &mut Seat,
    entrances: &[Compiled],
    compiled: &Compiled,
    lanes: usize,
    inputs: &[Cells],
    total: &mut Total,
) -> polyclave_protocol::Result<Vec<Cells>> {
    let shared = entrances.iter().zip(inputs);
    let shared = shared.map(|(entrance, cells)| Ok(seat.share(entrance, Party(0), cells)?.0));
    let shared: Vec<AnyShared> = shared.collect::<polyclave_protocol::Result<_>>()?;
    let (outputs, bill) = seat.evaluate(compiled, lanes, &shared.iter().collect::<Vec<_>>())?;
    total.online += bill.online.counts;
    total.preprocessing += bill.preprocessing.counts;
    total.bytes_ahead += bill.preprocessing.payload_bytes;
    total.bytes_online += bill.online.payload_bytes;
    // Papers do not count what revealing takes.
    let mut revealing = Bill::default();
    outputs.iter().map(|output| seat.reveal(output, &mut revealing)).collect()
}

/// A random value for every input port.
pub fn random_inputs(circuit: &Circuit, lanes: usize) -> Result<Vec<Cells>> {
    let cells = |port: &polyclave_cipher::Port| {
        let mut cells = Cells::zero(port.cells.len(), port.bits, if port.uniform { 1 } else { lanes });
        random_bytes(cells.rows_mut())?;
        let mask = 0xff >> (8 - port.bits);
        cells.rows_mut().iter_mut().for_each(|x| *x &= mask);
        Ok(cells)
    };
    circuit.inputs().iter().map(cells).collect()
}

/// A note that says over how many lookups by masking a mean was taken, and its standard error. A lookup draws
/// masks until one is not 0; each draw takes two operations and two rounds.
pub fn mean_over(count: usize, what: &str) -> String {
    format!("a mean over {count} {what} (standard error {:.4})", standard_error(count))
}

/// The standard error of the mean operations, and of the mean rounds, over a number of lookups by masking.
pub fn standard_error(count: usize) -> f64 {
    let zero: f64 = 1.0 / 256.0;
    let deviation = 2.0 * zero.sqrt() / (1.0 - zero);
    deviation / (count as f64).sqrt()
}

/// A chain of lookups of one table, each on the output of the one before.
pub fn in_series(table: &Table, count: usize) -> Circuit {
    let mut b = Builder::new(&format!("{count} {} in series", table.name()));
    let id = b.table(&Arc::new(table.clone()));
    let mut x = b.input("x", 1, 8)[0];
    for _ in 0..count {
        x = b.lookup(id, x);
    }
    b.output("y", &[x]);
    b.finish()
}

/// AES with a key of this many bits.
pub fn aes(key_bits: usize) -> Result<Cipher> {
    let name = format!("aes-{key_bits}");
    catalog::find(&name).with_context(|| format!("the catalog has no {name}"))
}

/// Encryption including the key expansion.
pub fn with_key_expansion(cipher: &Cipher) -> Result<Circuit> {
    cipher.circuit_with_key_schedule(Direction::Encrypt).context("the cipher does not encrypt")
}
