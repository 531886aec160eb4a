//! The note "Secure Multi-party AES" of 10 February 2009 that came with the AES of VIFF. It has no tables;
//! these are the counts in its sections.

use anyhow::Result;
use polyclave_cipher::aes::s_box;
use polyclave_cipher::{Affine, Inversion as Algebra, Table};
use polyclave_protocol::shamir::Inversion;

use super::measure::{aes, evaluations, in_series, mean_over, once, with_key_expansion};
use super::table::Cell;
use super::{Paper, Recompute, Section};

pub const PAPER: Paper = Paper {
    name: "viff-2009",
    sections: &[
        Section {
            name: "Section 1.1.1",
            recompute: Recompute::Counted(section_1_1_1),
            seconds: 1,
            quick_seconds: 1,
        },
        Section {
            name: "Section 1.1.3",
            recompute: Recompute::Counted(section_1_1_3),
            seconds: 1,
            quick_seconds: 1,
        },
        Section { name: "Section 2", recompute: Recompute::Counted(section_2), seconds: 1, quick_seconds: 1 },
    ],
    figures: &[],
};

const OPERATIONS: &str = "Elementary operations";
const MULTIPLICATIONS: &str = "Multiplications";
const ROUNDS: &str = "Rounds";

const LANES: usize = 100_000;
const IN_SERIES: usize = 200;
const SERIES: usize = 50;

/// One inversion.
fn section_1_1_1() -> Result<Vec<Cell>> {
    let inversion = inversion_alone();
    let one = in_series(&inversion, 1);
    let mut cells = Vec::new();
    let standard = "the chain of least rounds of Damgard and Keller 2010 is run here, whose counts are those of \
                    square-and-multiply from the lowest bit, where squares and products overlap. From the \
                    highest bit, which Damgard and Keller 2010 call standard, it takes 13 rounds";
    let chains = [
        ("Addition chain 1, 2, 3, 6, 12, 15, 30, 60, 63, 126, 252, 254", Inversion::Viff11, 11.0, 11.0, None),
        ("Standard square-and-multiply", Inversion::LeastRounds, 13.0, 8.0, Some(standard)),
    ];
    for (row, way, multiplications, rounds, note) in chains {
        let taken = once(way, &one)?;
        let both = [
            Cell::count(row, MULTIPLICATIONS, multiplications, taken.multiplications()),
            Cell::count(row, ROUNDS, rounds, taken.rounds()),
        ];
        cells.extend(both.into_iter().map(|cell| match note {
            Some(note) => cell.note(note),
            None => cell,
        }));
    }
    cells.extend(masking(&inversion, 9.0, 5.0)?);
    Ok(cells)
}

/// One S-box.
fn section_1_1_3() -> Result<Vec<Cell>> {
    let row = "Exponentiation";
    let taken = once(Inversion::Viff11, &in_series(&s_box(), 1))?;
    let mut cells = vec![
        Cell::count(row, OPERATIONS, 12.0, taken.operations()),
        Cell::count(row, ROUNDS, 12.0, taken.rounds()),
    ];
    cells.extend(masking(&s_box(), 10.0, 6.0)?);
    Ok(cells)
}

/// AES with a key of 192 bits.
fn section_2() -> Result<Vec<Cell>> {
    let way = Inversion::Viff11;
    let one = once(way, &in_series(&s_box(), 1))?;
    let mut cells = Vec::new();
    for (key_bits, published, right) in [(128, 8.0, 10.0), (192, 12.0, 12.0), (256, 14.0, 14.0)] {
        let row = format!("Key size {key_bits}");
        let aes_rounds = once(way, &aes(key_bits)?.encrypt)?.rounds() / one.rounds();
        let cell = Cell::count(&row, "AES rounds", published, aes_rounds);
        cells.push(match published == right {
            true => cell,
            false => cell.corrected(right, "AES with 128-bit keys has 10 rounds"),
        });
    }

    let eleven =
        "the note counts 11 operations an S-box here, but 12 in section 1.1.3: the affine map takes one more";
    let cipher = aes(192)?;
    let block = once(way, &cipher.encrypt)?;
    let aes_rounds = block.rounds() / one.rounds();
    let row = "One AES round";
    let operations = block.operations() / aes_rounds;
    cells.push(Cell::count(row, OPERATIONS, 176.0, operations).corrected(192.0, eleven));
    cells.push(Cell::count(row, ROUNDS, 12.0, block.rounds() / aes_rounds));
    let row = "One block, key size 192";
    cells.push(Cell::count(row, OPERATIONS, 2112.0, block.operations()).corrected(2304.0, eleven));
    cells.push(Cell::count(row, ROUNDS, 144.0, block.rounds()));

    let key_expansion = once(way, &cipher.key_schedule)?.operations() / one.operations();
    let why = "eight key expansion rounds of 4 S-boxes each";
    let cell = Cell::count("Key expansion, key size 192", "S-boxes", 31.0, key_expansion);
    cells.push(cell.corrected(32.0, why));
    let whole = once(way, &with_key_expansion(&cipher)?)?;
    let row = "One block with key expansion, key size 192";
    let why = "12 operations an S-box, not 11, and 32 S-boxes of key expansion, not 31";
    cells.push(Cell::count(row, OPERATIONS, 2453.0, whole.operations()).corrected(2688.0, why));
    cells.push(Cell::count(row, ROUNDS, 144.0, whole.rounds()));

    let row = "Addition chain 1, 2, 4, 8, 9, 16, 25, 50, 54, 100, 200, 254";
    let taken = once(Inversion::Viff9, &in_series(&inversion_alone(), 1))?;
    cells.push(Cell::count(row, ROUNDS, 9.0, taken.rounds()));
    Ok(cells)
}

/// One lookup by masking. The note gives these operations and rounds, and 1/255 of each for retries.
fn masking(table: &Table, operations: f64, rounds: f64) -> Result<[Cell; 2]> {
    let row = "Masking";
    let why = "the note opens the product (a + b)r directly; ours multiplies, which makes fresh shares of the product, \
               and then opens it: one operation and one round more, in each attempt";
    let wide = evaluations(Inversion::Masking, &in_series(table, 1), LANES, 1)?;
    let series = evaluations(Inversion::Masking, &in_series(table, IN_SERIES), 1, SERIES)?;
    let our_rounds = series.rounds() / IN_SERIES as f64;
    let operations = Cell::compared(row, OPERATIONS, operations + 1.0 / 255.0, wide.operations());
    let rounds = Cell::compared(row, ROUNDS, rounds + 1.0 / 255.0, our_rounds);
    let side_by_side = mean_over(LANES, "lookups side by side");
    let one_after_another = mean_over(IN_SERIES * SERIES, "lookups one after another");
    Ok([
        operations.note(&format!("{side_by_side}; {why}")),
        rounds.note(&format!("{one_after_another}; {why}")),
    ])
}

/// Inversion in GF(2^8) without the affine map of the S-box.
fn inversion_alone() -> Table {
    let identity = Affine::identity(8);
    Table::from_inversion("inversions", Algebra { before: identity, after: identity })
}
