//! Tables 3 and 5: times of this machine, in this run.

use anyhow::Result;
use polyclave_protocol::spdz::LookupMethod;

use super::{AES_BD, AES_LT, AES_RP, AES_TOWER, DES_LT, DES_PV, DES_RAW, DES_TOWER, Row, lut, sent};
use crate::bench::{Rates, Setting};
use crate::circuits::Form;
use crate::reproduce::table::Cell;
use crate::reproduce::timer::Timer;

pub const REPEATS: usize = 3;
pub const LATENCY_SAMPLES: usize = 21;
/// The field of the paper's MACs.
const FIELD: &str = "40";
const REAL_MATERIAL: &str = "mascot";
const DEALER: &str = "insecure_dealer";
pub const THREADS: usize = 2;

/// What is measured for a row, with two parties.
pub fn setting(row: Row, parties: usize, threads: usize) -> Setting {
    // Few enough for all rows together to take a minute or two, although a dealer has to make everybody's
    // material.
    let blocks = match row.way {
        LookupMethod::MaskedTables | LookupMethod::Tower => 256,
        LookupMethod::Univariate => 16,
        _ => 64,
    };
    Setting {
        protocol: row.way.name(),
        cipher: row.cipher,
        form: Form::Tables,
        parties,
        threads,
        options: options(row, DEALER),
        blocks,
        repeats: REPEATS,
        latency_samples: 0,
    }
}

/// The same for making real material. It takes megabytes a block, so a few blocks are enough unless more are
/// asked for.
pub fn setting_ahead(row: Row, parties: usize) -> Setting {
    let blocks = match row.way {
        LookupMethod::Univariate => 1,
        // It takes kilobytes, and large batches.
        LookupMethod::Tower => 512,
        _ => 8,
    };
    Setting { options: options(row, REAL_MATERIAL), blocks, repeats: 1, ..setting(row, parties, THREADS) }
}

/// With the field as in the index, where there is a choice.
fn options(row: Row, material: &'static str) -> Vec<(&'static str, &'static str)> {
    let has_field = !matches!(row.way, LookupMethod::Univariate | LookupMethod::Tower);
    let field = has_field.then_some(("demux-field", FIELD));
    [("preprocessing", material)].into_iter().chain(field).collect()
}

/// Blocks a second of preprocessing, and the conditions.
pub fn ahead(row: Row, parties: usize, timer: &mut Timer) -> Result<(Option<f64>, String)> {
    let (rates, note) = timer.rates(setting_ahead(row, parties))?;
    Ok((rates.preprocessing.map(|[_, median, _]| median), note))
}

/// Online, one thread each, with the latency.
fn single(row: Row, timer: &mut Timer) -> Result<(Rates, String)> {
    timer.rates(Setting { latency_samples: LATENCY_SAMPLES, ..setting(row, 2, 1) })
}

/// Online, on all threads.
fn multi(row: Row, timer: &mut Timer) -> Result<(Rates, String)> {
    timer.rates(setting(row, 2, THREADS))
}

/// 1 Gbps LAN timings for evaluating AES and 3DES in MPC.
pub fn table_3(timer: &mut Timer) -> Result<Vec<Cell>> {
    let published = [
        (AES_BD, 5.20, 758.0, Some(3164.0), 30.7),
        (AES_RP, 7.19, 940.0, Some(3872.0), 46.1),
        (AES_LT, 0.928, 53_918.0, Some(236_191.0), 16.79),
        (DES_RAW, 270.0, 130.0, None, 1.24),
        (DES_PV, 36.98, 86.0, Some(366.0), 25.6),
        (DES_LT, 4.254, 10_883.0, Some(45_869.0), 15.3),
    ];
    let mut cells = Vec::new();
    for (row, latency, one_thread, threads, preprocessing) in published {
        let (rates, note) = single(row, timer)?;
        cells.push(Cell::compared(row.name, "Latency (ms)", latency, rates.latency_ms).note(&note));
        cells.push(
            Cell::compared(row.name, "Online (single-thread) ops/s", one_thread, rates.online[1]).note(&note),
        );
        let column = "Online (multi-thread) ops/s";
        let (rates, note) = multi(row, timer)?;
        let cell = match threads {
            Some(published) => Cell::compared(row.name, column, published, rates.online[1]),
            None => Cell::unpublished(row.name, column, rates.online[1]),
        };
        cells.push(cell.note(&note));
        let column = "Preprocessing ops/s";
        let (ours, note) = ahead(row, 2, timer)?;
        cells.push(Cell::compared(row.name, column, preprocessing, ours).note(&note));
    }
    for row in [AES_TOWER, DES_TOWER] {
        cells.extend(ours_alone(row, timer)?);
    }
    Ok(cells)
}

/// The columns of Table 3 for a method that the paper does not have.
fn ours_alone(row: Row, timer: &mut Timer) -> Result<[Cell; 4]> {
    let (one, of_one) = single(row, timer)?;
    let (all, of_all) = multi(row, timer)?;
    let (preprocessing, of_ahead) = ahead(row, 2, timer)?;
    let of_ahead = format!("not in the paper: docs/protocols/tower.md; {of_ahead}");
    Ok([
        Cell::unpublished(row.name, "Latency (ms)", one.latency_ms).note(&of_one),
        Cell::unpublished(row.name, "Online (single-thread) ops/s", one.online[1]).note(&of_one),
        Cell::unpublished(row.name, "Online (multi-thread) ops/s", all.online[1]).note(&of_all),
        Cell::unpublished(row.name, "Preprocessing ops/s", preprocessing).note(&of_ahead),
    ])
}

/// Performance comparison with other 2-PC protocols for evaluating AES in a LAN setting.
pub fn table_5(timer: &mut Timer) -> Result<Vec<Cell>> {
    let lookup_32 = "not measured here, but by `reproduce damgard-2016`. The TinyTable rows compared are those of Lookup-32 (MACs of 32 bits)";
    let other = "not measured: another protocol, which does not exist here";
    let others = [
        ("TinyTable (binary)", [4.18, 24_500.0, 3.07], lookup_32),
        ("TinyTable (optim.)", [1.02, 339_000.0, 786.4], lookup_32),
        ("Wang et al.", [0.93, 1075.0, 2.57], other),
        ("Rindal-Rosulek", [1.0, 1000.0, 1.6], other),
    ];
    let columns = ["Online latency (ms)", "Online throughput (/s)", "Comms. (total) (MB)"];
    let mut cells = Vec::new();
    for (row, published, note) in others {
        let each = columns.into_iter().zip(published);
        cells.extend(each.map(|(column, published)| Cell::compared(row, column, published, None).note(note)));
    }
    cells.extend(lut::rows(columns, timer)?);
    let ours =
        [(AES_LT, [0.93, 236_200.0, 8.4], [1760.0, 42_240.0]), (AES_RP, [7.19, 940.0, 2.9], [640.0, 5120.0])];
    for (row, [latency, throughput, mega], [triples, bits]) in ours {
        let (rates, note) = single(row, timer)?;
        cells.push(Cell::compared(row.name, columns[0], latency, rates.latency_ms).note(&note));
        // Here the paper has AES-LT on many threads, and AES-RP on one.
        let (rates, note) =
            if row.way == LookupMethod::MaskedTables { multi(row, timer)? } else { (rates, note) };
        cells.push(Cell::compared(row.name, columns[1], throughput, rates.online[1]).note(&note));
        cells.push(sent::communication(row, columns[2], mega, triples, bits)?);
    }
    let [latency, throughput, _] = columns;
    let (rates, note) = single(AES_TOWER, timer)?;
    cells.push(Cell::unpublished(AES_TOWER.name, latency, rates.latency_ms).note(&note));
    let (rates, note) = multi(AES_TOWER, timer)?;
    cells.push(Cell::unpublished(AES_TOWER.name, throughput, rates.online[1]).note(&note));
    Ok(cells)
}
