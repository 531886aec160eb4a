//! Damgard, Nielsen, Nielsen, Ranellucci 2016: "The TinyTable protocol for 2-Party Secure Computation, or:
//! Gate-scrambling Revisited", ePrint 2016/695.
//!
//! Sizes are those of the tables that a party holds while two parties evaluate; rounds are counted there.
//! Times are measured in the run that shows them, with the parties as processes of their own.

mod counted;
mod timed;

use std::sync::Arc;

use anyhow::{Context, Result};
use polyclave_cipher::{Circuit, boolean, catalog};
use polyclave_protocol::tinytable::{Macs, PreprocessingMethod};

use super::table::Cell;
use super::{Paper, Recompute, Section};

pub const PAPER: Paper = Paper {
    name: "damgard-2016",
    sections: &[
        Section { name: "Table 1", recompute: Recompute::Counted(table_1), seconds: 6, quick_seconds: 6 },
        Section {
            name: "Table 2",
            recompute: Recompute::Timed(timed::table_2),
            seconds: 180,
            quick_seconds: 40,
        },
        Section {
            name: "Table 3",
            recompute: Recompute::Timed(timed::table_3),
            seconds: 120,
            quick_seconds: 12,
        },
        Section { name: "Section 4", recompute: Recompute::Counted(section_4), seconds: 1, quick_seconds: 1 },
        Section { name: "Section 5", recompute: Recompute::Counted(section_5), seconds: 6, quick_seconds: 6 },
    ],
    figures: &[],
};

/// A row of each table.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    macs: Macs,
}

const LINEAR_64: Row = Row { name: "Linear-64", macs: Macs::Linear64 };
const LOOKUP_64: Row = Row { name: "Lookup-64", macs: Macs::Lookup64 };
const LOOKUP_32: Row = Row { name: "Lookup-32", macs: Macs::Lookup32 };
const PASSIVE: Row = Row { name: "Passive", macs: Macs::None };
const ROWS: [Row; 4] = [LINEAR_64, LOOKUP_64, LOOKUP_32, PASSIVE];

/// The paper's versions of its implementation, both of AES-128 with an expanded key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    /// A table for every S-box.
    Optimized,
    /// A table for every AND.
    Binary,
}

const VERSIONS: [Version; 2] = [Version::Optimized, Version::Binary];
const CIPHER: &str = "aes-128";

impl Version {
    /// The column's name.
    fn name(self) -> &'static str {
        match self {
            Version::Optimized => "Optimized",
            Version::Binary => "Binary",
        }
    }

    fn circuit(self) -> Result<Arc<Circuit>> {
        let cipher = match self {
            Version::Optimized => catalog::find(CIPHER),
            Version::Binary => boolean::cipher(CIPHER),
        };
        Ok(cipher.context("the catalog lacks AES")?.encrypt)
    }

    /// Blocks that are counted together. Bits are stored in words of 64 blocks: fewer blocks would waste
    /// some.
    fn lanes(self) -> usize {
        match self {
            Version::Optimized => 1,
            Version::Binary => 64,
        }
    }

    /// Tables of a block.
    fn tables(self) -> f64 {
        match self {
            Version::Optimized => 160.0,
            Version::Binary => 5440.0,
        }
    }

    /// Bits of an entry, and of the index of a table.
    fn widths(self) -> (i32, i32) {
        match self {
            Version::Optimized => (8, 8),
            Version::Binary => (1, 2),
        }
    }

    /// Bytes of all tables of a block, by the text.
    fn bytes(self, macs: Macs) -> f64 {
        let (bits, in_bits) = self.widths();
        let strings = |k: f64| k + 2f64.powi(bits) * k;
        let verification = match macs {
            Macs::None | Macs::Minimac => 0.0,
            Macs::Lookup32 => strings(32.0),
            Macs::Lookup64 => strings(64.0),
            // A tag and a key, in whole bytes.
            Macs::Linear64 => 2.0 * 8.0 * (f64::from(63 + bits) / 8.0).ceil(),
        };
        self.tables() * 2f64.powi(in_bits) * (f64::from(bits) + verification) / 8.0
    }
}

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// Size of preprocessed data.
fn table_1() -> Result<Vec<Cell>> {
    let published = [
        (LINEAR_64, [(760.0, "KiB", KIB), (342.7, "KiB", KIB)]),
        (LOOKUP_64, [(80.4, "MiB", MIB), (512.7, "KiB", KIB)]),
        (LOOKUP_32, [(40.2, "MiB", MIB), (257.7, "KiB", KIB)]),
        (PASSIVE, [(40.0, "KiB", KIB), (2.7, "KiB", KIB)]),
    ];
    let unreduced = "8 + 2*72 bits an entry: a byte times a key of 64 bits has 71 bits, kept in 9 bytes. The text's 2k bits for \
                     MACs would make 680 KiB";
    let mut cells = Vec::new();
    for (row, sizes) in published {
        for (version, (published, unit, bytes_of_unit)) in VERSIONS.into_iter().zip(sizes) {
            let bytes = counted::evaluation(row, version)?.table_bytes;
            let as_printed = (bytes / bytes_of_unit * 10.0).round() / 10.0;
            let cell = Cell::count(row.name, &format!("{} ({unit})", version.name()), published, as_printed);
            cells.push(match (row.macs, version) {
                (Macs::Linear64, Version::Optimized) => cell.note(unreduced),
                _ => cell,
            });
            let column = format!("{} (bytes)", version.name());
            cells.push(Cell::predicted(row.name, &column, version.bytes(row.macs), bytes));
        }
    }
    Ok(cells)
}

/// How many ANDs preprocessing takes for an entry of the S-box's table.
fn section_4() -> Result<Vec<Cell>> {
    const ENTRIES: f64 = 256.0;
    let seven = "the 7 tell whether a byte is 0 when Damgard and Keller 2010 invert by masking. An S-box takes more there, which is left \
                 out: a product in GF(2^8), two openings, and a retry if the random factor is 0. Ours is a circuit of ANDs alone";
    let (row, table, entry) = ("By a circuit for every entry", "ANDs a table", "ANDs an entry");
    let by_circuit = counted::products_of_s_box(PreprocessingMethod::Circuit)?;
    let mut cells = vec![
        Cell::compared(row, entry, 7.0, by_circuit / ENTRIES).note(seven),
        Cell::predicted(row, table, 34.0 * ENTRIES, by_circuit),
    ];
    let row = "By Demux, our default";
    let by_demux = counted::products_of_s_box(PreprocessingMethod::Demux)?;
    cells.extend([
        Cell::predicted(row, entry, 247.0 / ENTRIES, by_demux / ENTRIES)
            .note("the unit vector of the mask takes one product less than 2^j for each of its bits j but the first"),
        Cell::predicted(row, table, 247.0, by_demux),
    ]);
    Ok(cells)
}

/// Tables and rounds, in the text.
fn section_5() -> Result<Vec<Cell>> {
    let beside = "beside the input phase, with the checks of MACs before and after the result is opened";
    let layers = "another circuit: ours has 40 layers of gates, 4 to an S-box; the paper's has 41. Both beside the input phase, with the \
                  checks of MACs before and after the result is opened";
    let mut cells = Vec::new();
    for row in ROWS {
        for version in VERSIONS {
            let counted = counted::evaluation(row, version)?;
            let checks = if row.macs == Macs::None { 0.0 } else { 2.0 };
            let name = version.name();
            let column = format!("{name}, rounds");
            cells.extend(match version {
                Version::Optimized => {
                    vec![Cell::count(row.name, &column, 10.0 + checks, counted.rounds).note(beside)]
                }
                Version::Binary => vec![
                    Cell::compared(row.name, &column, 41.0 + checks, counted.rounds).note(layers),
                    Cell::predicted(
                        row.name,
                        &format!("{name}, rounds of our circuit"),
                        40.0 + checks,
                        counted.rounds,
                    ),
                ],
            });
            let column = format!("{name}, tables");
            cells.push(Cell::count(row.name, &column, version.tables(), counted.tables));
        }
    }
    Ok(cells)
}
