//! Table 2 under active security. Online the paper's operations and rounds hold, where a multiplication takes
//! a triple made ahead.

use anyhow::Result;
use polyclave_cipher::Circuit;
use polyclave_cipher::aes::s_box;
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::shamir::{Inversion, ShamirActiveConfig, Structure, Tables};

use super::super::measure::{Taken, evaluations_under, in_series, mean_over, standard_error};
use super::super::table::Cell;
use super::{OPERATIONS, ROUNDS};

/// S-boxes in parallel, or in series times repetitions, over which masking is averaged.
const LANES: usize = 50_000;
const IN_SERIES: usize = 200;
const SERIES: usize = 25;

const TRIPLES: &str = "Triples";

/// One S-box online, among four parties of which one may cheat.
pub fn table_2() -> Result<Vec<Cell>> {
    let one = in_series(&s_box(), 1);
    let mut cells = Vec::new();

    let row = "Masking";
    let wide = taken(Inversion::Masking, &one, LANES, 1)?;
    let series = taken(Inversion::Masking, &in_series(&s_box(), IN_SERIES), 1, SERIES)?;
    let operations =
        Cell::mean(row, OPERATIONS, 11.0 + 2.0 / 255.0, wide.operations(), standard_error(LANES));
    cells.push(operations.note(&mean_over(LANES, "S-boxes")));
    let ours = series.rounds() / IN_SERIES as f64;
    let rounds = Cell::mean(row, ROUNDS, 7.0 + 2.0 / 255.0, ours, standard_error(IN_SERIES * SERIES));
    let note = "one after another, so that each waits for its own retries only";
    cells.push(rounds.note(&format!("{}, {note}", mean_over(IN_SERIES * SERIES, "S-boxes"))));

    let published = [
        ("Standard square-and-multiply", Inversion::Standard, 14.0, 14.0, 13.0),
        ("S-a-m with shortest addition chain", Inversion::Shortest, 12.0, 12.0, 11.0),
        (
            "S-a-m with shortest addition chain and least rounds",
            Inversion::ShortestLeastRounds,
            12.0,
            10.0,
            11.0,
        ),
        ("S-a-m with least rounds", Inversion::LeastRounds, 14.0, 9.0, 13.0),
        ("Masked exponentiation, online", Inversion::MaskedExponentiation, 8.0, 5.0, 6.0),
    ];
    for (row, way, operations, rounds, triples) in published {
        let taken = taken(way, &one, 1, 1)?;
        cells.push(Cell::count(row, OPERATIONS, operations, taken.operations()));
        cells.push(Cell::count(row, ROUNDS, rounds, taken.rounds()));
        let note = "the multiplications of the chain; an opening takes none";
        cells.push(Cell::predicted(row, TRIPLES, triples, taken.triples()).note(note));
    }
    for (row, way) in [
        ("Views", Inversion::Views),
        ("Carried squares", Inversion::CarriedSquares),
        ("Masked powers, online", Inversion::MaskedPowers),
    ] {
        let taken = taken(way, &one, 1, 1)?;
        let note = "not in the paper; expected is the protocol's own prediction";
        let operations = Cell::predicted(row, OPERATIONS, taken.predicted_operations(), taken.operations());
        let rounds = Cell::predicted(row, ROUNDS, taken.predicted_rounds(), taken.rounds());
        let triples = Cell::predicted(row, TRIPLES, taken.predicted_triples(), taken.triples());
        cells.extend([operations, rounds, triples].map(|cell| cell.note(note)));
    }
    Ok(cells)
}

fn taken(way: Inversion, circuit: &Circuit, lanes: usize, times: usize) -> Result<Taken> {
    let config = ShamirActiveConfig::new(Structure::new(4, 1)?, way, Tables::Masked)?;
    evaluations_under(&AnyProtocolConfig::new(config), circuit, lanes, times)
}
