//! Ivan Damgard and Marcel Keller, Secure Multiparty AES, Financial Cryptography 2010: Tables 1 and 2, and
//! the totals in the text of section 6; Figures 2 to 5.

mod active;
mod figures;

use anyhow::Result;
use polyclave_cipher::aes::s_box;
use polyclave_protocol::shamir::Inversion;

use super::measure::{aes, evaluations, in_series, mean_over, once, standard_error, with_key_expansion};
use super::table::Cell;
use super::{Paper, Recompute, Section};
pub use figures::{Figure, Measured};

pub const PAPER: Paper = Paper {
    name: "damgard-keller-2010",
    sections: &[
        Section { name: "Table 1", recompute: Recompute::Counted(table_1), seconds: 1, quick_seconds: 1 },
        Section { name: "Table 2", recompute: Recompute::Counted(table_2), seconds: 3, quick_seconds: 3 },
        Section {
            name: "Table 2, active",
            recompute: Recompute::Counted(active::table_2),
            seconds: 3,
            quick_seconds: 3,
        },
        Section { name: "Section 6", recompute: Recompute::Counted(section_6), seconds: 3, quick_seconds: 3 },
        Section {
            name: "Our variants",
            recompute: Recompute::Counted(our_variants),
            seconds: 1,
            quick_seconds: 1,
        },
    ],
    figures: figures::FIGURES,
};

const OPERATIONS: &str = "Elementary operations";
const ROUNDS: &str = "Rounds";

/// Lanes, or S-boxes in series times repetitions, over which masking is averaged.
const LANES: usize = 100_000;
const IN_SERIES: usize = 200;
const SERIES: usize = 50;
const BLOCKS: usize = 500;

/// Overview over the different key lengths in AES. The number of S-boxes is the number of operations of a
/// whole run by that of one S-box; AES rounds likewise by the rounds.
fn table_1() -> Result<Vec<Cell>> {
    let way = Inversion::ShortestLeastRounds;
    let one = once(way, &in_series(&s_box(), 1))?;
    let published =
        [(128, 10.0, 40.0, 160.0, 200.0), (192, 12.0, 32.0, 192.0, 224.0), (256, 14.0, 52.0, 224.0, 276.0)];
    let mut cells = Vec::new();
    for (key_bits, rounds, key_expansion, without, with) in published {
        let cipher = aes(key_bits)?;
        let row = key_bits.to_string();
        let block = once(way, &cipher.encrypt)?;
        cells.push(Cell::count(&row, "AES rounds", rounds, block.rounds() / one.rounds()));
        let s_boxes = [
            ("Key expansion", key_expansion, once(way, &cipher.key_schedule)?),
            ("Block without k. e.", without, block),
            ("Block with k. e.", with, once(way, &with_key_expansion(&cipher)?)?),
        ];
        for (column, published, taken) in s_boxes {
            cells.push(Cell::count(&row, column, published, taken.operations() / one.operations()));
        }
    }
    Ok(cells)
}

/// One S-box in different inversion protocols.
fn table_2() -> Result<Vec<Cell>> {
    let one = in_series(&s_box(), 1);
    let mut cells = Vec::new();

    let row = "Masking";
    let wide = evaluations(Inversion::Masking, &one, LANES, 1)?;
    let series = evaluations(Inversion::Masking, &in_series(&s_box(), IN_SERIES), 1, SERIES)?;
    let operations =
        Cell::mean(row, OPERATIONS, 11.0 + 2.0 / 255.0, wide.operations(), standard_error(LANES));
    let note = "retries come by chance, 1 time in 256";
    cells.push(operations.note(&format!("{}; {note}", mean_over(LANES, "S-boxes"))));
    let ours = series.rounds() / IN_SERIES as f64;
    let rounds = Cell::mean(row, ROUNDS, 7.0 + 2.0 / 255.0, ours, standard_error(IN_SERIES * SERIES));
    let note = "one after another, so that each waits for its own retries only";
    cells.push(rounds.note(&format!("{}, {note}", mean_over(IN_SERIES * SERIES, "S-boxes"))));

    let chains = [
        ("Standard square-and-multiply", Inversion::Standard, 14.0, 14.0),
        ("S-a-m with shortest addition chain", Inversion::Shortest, 12.0, 12.0),
        ("S-a-m with shortest addition chain and least rounds", Inversion::ShortestLeastRounds, 12.0, 10.0),
        ("S-a-m with least rounds", Inversion::LeastRounds, 14.0, 9.0),
    ];
    for (row, way, operations, rounds) in chains {
        let taken = once(way, &one)?;
        cells.push(Cell::count(row, OPERATIONS, operations, taken.operations()));
        cells.push(Cell::count(row, ROUNDS, rounds, taken.rounds()));
    }

    let way = Inversion::MaskedExponentiation;
    let row = "Masked exponentiation";
    let taken = once(way, &one)?;
    let all = taken.operations() + taken.operations_ahead();
    cells.push(Cell::count(row, OPERATIONS, 15.0, all).note("online and preprocessing"));
    for (key_bits, aes_rounds) in [(128, 10.0), (192, 12.0), (256, 14.0)] {
        let block = once(way, &aes(key_bits)?.encrypt)?;
        let row = match key_bits {
            128 => row.into(),
            _ => format!("{row}, AES-{key_bits}"),
        };
        let ours = (block.rounds() + block.rounds_ahead()) / aes_rounds;
        let note = format!(
            "5 + 7/#AES rounds, with the {aes_rounds} of AES-{key_bits}: all rounds of a block, online and \
             preprocessing, by AES rounds"
        );
        cells.push(Cell::count(&row, ROUNDS, 5.0 + 7.0 / aes_rounds, ours).note(&note));
    }
    let parts = [
        ("preprocessing", 7.0, taken.operations_ahead(), 7.0, taken.rounds_ahead()),
        ("online", 8.0, taken.operations(), 5.0, taken.rounds()),
    ];
    for (part, operations, our_operations, rounds, our_rounds) in parts {
        let row = format!("{row}, {part}");
        let note = "from the text of section 4.1";
        cells.push(Cell::count(&row, OPERATIONS, operations, our_operations).note(note));
        cells.push(Cell::count(&row, ROUNDS, rounds, our_rounds).note(note));
    }
    Ok(cells)
}

/// Totals for AES-128.
fn section_6() -> Result<Vec<Cell>> {
    let cipher = aes(128)?;
    let (block, key, both) = (&*cipher.encrypt, &*cipher.key_schedule, &with_key_expansion(&cipher)?);
    let mut cells = Vec::new();

    let way = Inversion::ShortestLeastRounds;
    let chain = "S-a-m with shortest addition chain";
    let note = "the paper's shortest chain of least rounds";
    let without = once(way, block)?;
    let row = format!("{chain}, block without k. e.");
    cells.push(Cell::count(&row, OPERATIONS, 1920.0, without.operations()).note(note));
    cells.push(Cell::count(&row, ROUNDS, 100.0, without.rounds()).note(note));
    let row = format!("{chain}, key expansion");
    cells.push(Cell::count(&row, OPERATIONS, 480.0, once(way, key)?.operations()).note(note));
    let with = once(way, both)?;
    let row = format!("{chain}, block with k. e.");
    cells.push(Cell::count(&row, OPERATIONS, 2400.0, with.operations()).note(note));
    cells.push(Cell::count(&row, ROUNDS, 100.0, with.rounds()).note(note));

    let parts = [
        ("block without k. e.", block, 16, 1760.0 + 320.0 / 255.0),
        ("block with k. e.", both, 20, 2200.0 + 400.0 / 255.0),
    ];
    for (part, circuit, in_parallel, operations) in parts {
        let row = format!("Masking, {part}");
        let taken = evaluations(Inversion::Masking, circuit, 1, BLOCKS)?;
        let mean = format!("a mean over {BLOCKS} blocks");
        let s_boxes = 10 * in_parallel as usize;
        let error = s_boxes as f64 * standard_error(s_boxes * BLOCKS);
        cells.push(Cell::mean(&row, OPERATIONS, operations, taken.operations(), error).note(&mean));
        let why = format!(
            "{mean}. The paper counts the expected retries of one S-box; {in_parallel} in parallel wait for the one \
             that retries most"
        );
        let (attempts, variance) = attempts_of_the_slowest(in_parallel);
        let rounds = 10.0 * (5.0 + 2.0 * attempts);
        let error = 2.0 * (10.0 * variance / BLOCKS as f64).sqrt();
        let cell = Cell::mean(&row, ROUNDS, 70.0 + 20.0 / 255.0, taken.rounds(), error);
        cells.push(cell.corrected(rounds, &why));
    }

    let ahead = once(Inversion::MaskedExponentiation, block)?.rounds_ahead() / 10.0;
    let row = "Masked exponentiation, preprocessing by AES rounds";
    cells.push(Cell::count(row, ROUNDS, 0.7, ahead));
    Ok(cells)
}

/// Mean and variance of the number of draws of the unluckiest of some S-boxes, if each drawn mask is 0 with
/// probability 1/256. The mean is the sum over a >= 0 of the probability that more than a draws are needed.
/// The mean of the square is the sum of 2a + 1 times that probability.
fn attempts_of_the_slowest(s_boxes: i32) -> (f64, f64) {
    let more_than = |a: i32| 1.0 - (1.0 - 256f64.powi(-a)).powi(s_boxes);
    let mean: f64 = (0..8).map(more_than).sum();
    let square: f64 = (0..8).map(|a| f64::from(2 * a + 1) * more_than(a)).sum();
    (mean, square - mean * mean)
}

/// What the paper does not have, compared with the protocol's own prediction.
fn our_variants() -> Result<Vec<Cell>> {
    let cipher = aes(128)?;
    let circuits = [
        ("one S-box", &in_series(&s_box(), 1)),
        ("AES-128 block without k. e.", &*cipher.encrypt),
        ("AES-128 block with k. e.", &with_key_expansion(&cipher)?),
    ];
    let mut cells = Vec::new();
    let ways = [
        ("Views", Inversion::Views),
        ("Carried squares", Inversion::CarriedSquares),
        ("Masked powers, online", Inversion::MaskedPowers),
    ];
    for (name, way) in ways {
        for (part, circuit) in circuits {
            let taken = once(way, circuit)?;
            let row = format!("{name}, {part}");
            let note = "not in the paper; expected is the protocol's own prediction";
            let operations =
                Cell::predicted(&row, OPERATIONS, taken.predicted_operations(), taken.operations());
            let rounds = Cell::predicted(&row, ROUNDS, taken.predicted_rounds(), taken.rounds());
            cells.extend([operations.note(note), rounds.note(note)]);
        }
    }
    Ok(cells)
}
