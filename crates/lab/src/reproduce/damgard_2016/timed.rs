//! Tables 2 and 3: times of this machine, in this run.

use anyhow::Result;
use polyclave_protocol::tinytable::Macs;

use super::{CIPHER, LINEAR_64, LOOKUP_32, LOOKUP_64, PASSIVE, Row, Version};
use crate::bench::Setting;
use crate::circuits::Form;
use crate::reproduce::table::Cell;
use crate::reproduce::timer::Timer;

const REPEATS: usize = 3;

/// What a row has in common with the paper's row, and what differs.
const FRESH: &str = "online alone: inputs, lookups and a check of MACs; the result stays shared. Every block has fresh tables, which \
                     come from memory; the paper's had one instance again and again. Where tables are large, few blocks share \
                     the wait for a round";
const MIXED: &str = "the introduction's 2.4 ms and 10 us \"at the same security level\" are of two rows: the latency of Linear-64 \
                     (2^-64) and the amortized time of Lookup-32 (2^-32)";

/// What is measured for a row.
fn setting(row: Row, version: Version) -> Setting {
    // As many as fit into about 1 GiB in each party, or enough to hide the latency of a round.
    let (blocks, latency_samples) = match (version, row.macs) {
        (Version::Optimized, Macs::Lookup64) => (16, 7),
        (Version::Optimized, Macs::Lookup32) => (32, 7),
        (Version::Optimized, Macs::Linear64) => (1024, 21),
        (Version::Binary, Macs::Lookup64 | Macs::Lookup32 | Macs::Linear64) => (1024, 21),
        (_, Macs::None | Macs::Minimac) => (4096, 21),
    };
    Setting {
        protocol: row.macs.protocol(),
        cipher: CIPHER,
        form: if version == Version::Binary { Form::Boolean } else { Form::Tables },
        parties: 2,
        threads: 1,
        options: vec![("preprocessing", "insecure_dealer")],
        blocks,
        repeats: REPEATS,
        latency_samples,
    }
}

/// Milliseconds that one block takes, microseconds that each of many takes, and the conditions.
fn times(setting: Setting, timer: &mut Timer) -> Result<(Option<f64>, Option<f64>, String)> {
    let (rates, note) = timer.rates(setting)?;
    let [_, median, _] = rates.online;
    Ok((rates.latency_ms, Some(1e6 / median), format!("{note}; {FRESH}")))
}

/// Published times of a row: sequential and parallel, in the LAN and in the cloud.
type Published = (Row, [f64; 4]);

/// Execution times for optimized version.
pub fn table_2(timer: &mut Timer) -> Result<Vec<Cell>> {
    let published = [
        (LINEAR_64, [1.03, 3.15, 1.09, 0.47]),
        (LOOKUP_64, [1.03, 3.01, 1.05, 0.45]),
        (LOOKUP_32, [1.02, 2.95, 1.05, 0.32]),
        (PASSIVE, [0.88, 2.89, 0.97, 0.29]),
    ];
    execution_times(Version::Optimized, published, timer)
}

/// Execution times for binary version.
pub fn table_3(timer: &mut Timer) -> Result<Vec<Cell>> {
    let published = [
        (LINEAR_64, [4.92, 75.36, 2.37, 19.19]),
        (LOOKUP_64, [4.38, 54.72, 2.22, 11.90]),
        (LOOKUP_32, [4.18, 40.81, 2.18, 9.98]),
        (PASSIVE, [3.94, 25.50, 1.84, 6.73]),
    ];
    execution_times(Version::Binary, published, timer)
}

fn execution_times(version: Version, published: [Published; 4], timer: &mut Timer) -> Result<Vec<Cell>> {
    let columns =
        ["LAN, Sequential (ms)", "LAN, Parallel (us)", "Cloud, Sequential (ms)", "Cloud, Parallel (us)"];
    let mut cells = Vec::new();
    for (row, published) in published {
        let (sequential, parallel, note) = times(setting(row, version), timer)?;
        for (column, published) in columns.into_iter().zip(published) {
            let ours = if column.contains("Sequential") { sequential } else { parallel };
            // The two cells that the introduction confuses.
            let is_mixed = published == 2.37 || published == 9.98;
            let note = if is_mixed { format!("{note}; {MIXED}") } else { note.clone() };
            cells.push(Cell::compared(row.name, column, published, ours).note(&note));
        }
    }
    Ok(cells)
}
