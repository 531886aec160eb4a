//! The rows OP-LUT and SP-LUT of Table 5: protocols of Dessouky et al. 2017, which are built here. Times of
//! this machine, and bytes that were counted.

use anyhow::{Context, Result};
use polyclave_cipher::{boolean, catalog};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol_lab::lut::{LutConfig, Method};

use super::timed::{LATENCY_SAMPLES, REPEATS, THREADS};
use crate::bench::Setting;
use crate::circuits::Form;
use crate::reproduce::measure::evaluations_under;
use crate::reproduce::table::Cell;
use crate::reproduce::timer::Timer;

const CIPHER: &str = "aes-128";
const EXPANSION: usize = 4;
/// Blocks that are counted together: what a batch costs once is spread over them.
const COUNTED: usize = 64;
/// With tables that take megabytes.
const COUNTED_TABLES: usize = 4;
const ROW_OF_GATES: &str = "OP-LUT, gates";
const TEXT: &str = "section 5.2 says over 1000 blocks a second";

/// Bits that both parties send for a lookup of a table with `inputs` bits in and `outputs` out.
fn bits_of_lookup(method: Method, inputs: u32, outputs: u32) -> f64 {
    let entries = f64::from(1 << inputs);
    let (inputs, outputs) = (f64::from(inputs), f64::from(outputs));
    let transfer = inputs * 128.0 / EXPANSION as f64;
    match method {
        Method::Op => transfer + entries * entries * outputs + 2.0 * inputs,
        Method::Sp => transfer + inputs + entries * outputs,
    }
}

/// The columns of the table, and what is made ahead.
pub fn rows(columns: [&str; 3], timer: &mut Timer) -> Result<Vec<Cell>> {
    let published =
        [("OP-LUT", Method::Op, [5.0, 41_670.0, 0.103]), ("SP-LUT", Method::Sp, [6.0, 2208.0, 0.044])];
    let [latency_column, throughput_column, bytes_column] = columns;
    let mut cells = Vec::new();
    for (row, method, [latency, throughput, mega]) in published {
        let (rates, note) =
            timer.rates(Setting { latency_samples: LATENCY_SAMPLES, ..setting(method, 1) })?;
        cells.push(Cell::compared(row, latency_column, latency, rates.latency_ms).note(&note));
        let (rates, note) = timer.rates(setting(method, THREADS))?;
        cells.push(Cell::compared(row, throughput_column, throughput, rates.online[1]).note(&note));
        let ahead = rates.preprocessing.map(|[_, median, _]| median);
        let note = format!("{TEXT}; transfers with expansion {EXPANSION}; {note}");
        cells.push(Cell::unpublished(row, "Setup throughput (/s)", ahead).note(&note));
        cells.push(Cell::unpublished(row, "Setup (ms a block)", ahead.map(|rate| 1e3 / rate)).note(&note));
        cells.push(communication(row, bytes_column, mega, method)?);
    }
    cells.push(of_gates(bytes_column)?);
    Ok(cells)
}

fn setting(method: Method, threads: usize) -> Setting {
    Setting {
        protocol: method.protocol(),
        cipher: CIPHER,
        form: Form::Tables,
        parties: 2,
        threads,
        options: Vec::new(),
        // Ten megabytes of tables a block, or much less.
        blocks: if method == Method::Op { 64 } else { 1024 },
        repeats: REPEATS,
        latency_samples: 0,
    }
}

/// Megabytes that both parties send for a block, ahead and online.
fn communication(row: &str, column: &str, published: f64, method: Method) -> Result<Cell> {
    let circuit = catalog::find(CIPHER).context("the catalog lacks a cipher")?.encrypt;
    let blocks = if method == Method::Op { COUNTED_TABLES } else { COUNTED };
    let config = LutConfig { method, expansion: EXPANSION };
    let counted = evaluations_under(&AnyProtocolConfig::new(config), &circuit, blocks, 1)?;
    let derived = 160.0 * bits_of_lookup(method, 8, 8) / 8e6;
    let of_model = "expected: 160 lookups. Ours: all that both parties sent for";
    let why = match method {
        Method::Op => format!(
            "{of_model} {blocks} blocks. A whole table of 8 bits takes 65,536 bytes ahead, 10.5 MB a block, so the published value \
             cannot be of whole tables; it must be of a circuit of smaller tables"
        ),
        Method::Sp => format!(
            "{of_model} {blocks} blocks. The published value is in units of 2^20 bytes, and fits a transfer of 256 bits, a byte and a \
             table of 256 bytes for each of 160 lookups; with those of the key schedule, 200, it is the 0.055 MB of section 5.2"
        ),
    };
    Ok(Cell::compared(row, column, published, counted.bytes_in_all() / 1e6).corrected(derived, &why))
}

/// The same by tables of two bits.
fn of_gates(column: &str) -> Result<Cell> {
    let circuit = boolean::cipher(CIPHER).context("it has no Boolean circuit")?.encrypt;
    let config = LutConfig { method: Method::Op, expansion: EXPANSION };
    let counted = evaluations_under(&AnyProtocolConfig::new(config), &circuit, COUNTED, 1)?;
    let derived = circuit.lookups() as f64 * bits_of_lookup(Method::Op, 2, 1) / 8e6;
    let note = format!(
        "not in the paper: {} ANDs a block as tables of two bits, in more rounds. Expected: what their lookups send",
        circuit.lookups()
    );
    Ok(Cell::estimated(ROW_OF_GATES, column, derived, counted.bytes_in_all() / 1e6).note(&note))
}
