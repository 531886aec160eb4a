//! The cleartext evaluator, for comparison: no parties, no protection.

use std::time::Instant;

use anyhow::{Context, Result};
use polyclave_cipher::{AnyMap, Cells, Direction, cleartext, compile};

use super::Arguments;
use super::child::peak_memory_bytes;
use super::measure::{Measurement, Repeat};

/// Blocks in a batch.
const LANES: usize = 4096;

/// Measures in this process, on one thread.
pub fn measure(arguments: &Arguments) -> Result<Measurement> {
    let cipher = arguments.form()?.cipher(&arguments.cipher)?;
    let direction = if arguments.decrypt { Direction::Decrypt } else { Direction::Encrypt };
    let one_way = || format!("{} has no decryption", cipher.name);
    let circuit = match arguments.key_schedule {
        true => cipher.circuit_with_key_schedule(direction).with_context(one_way)?,
        false => (*cipher.circuit(direction).with_context(one_way)?).clone(),
    };
    let compiled = compile(&circuit, &AnyMap);
    let run = |lanes: usize| -> Result<f64> {
        let ports = compiled.inputs().iter();
        let inputs: Vec<Cells> =
            ports.map(|p| Cells::zero(p.cells.len(), p.bits, if p.uniform { 1 } else { lanes })).collect();
        let began = Instant::now();
        cleartext::run(&compiled, lanes, &inputs)?;
        Ok(began.elapsed().as_secs_f64())
    };
    let mut measurement = Measurement { blocks: arguments.blocks, ..Measurement::default() };
    for _ in 0..arguments.repeats {
        let batches = (0..arguments.blocks).step_by(LANES).map(|done| LANES.min(arguments.blocks - done));
        let online = batches.map(run).sum::<Result<f64>>()?;
        measurement.repeats.push(Repeat { online, ..Repeat::default() });
    }
    measurement.latencies = (0..super::LATENCY_SAMPLES).map(|_| run(1)).collect::<Result<_>>()?;
    measurement.peak_memory_bytes = peak_memory_bytes();
    Ok(measurement)
}
