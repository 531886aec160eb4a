//! Pohle, Abidin, Preneel 2022: "Poster: Fast Evaluation of S-boxes in MPC", NDSS 2022.
//!
//! Calls of the hash and ciphertexts are counted while a garbler and an evaluator run each cipher. Times are
//! measured in the run that shows them, one party at a time.

mod counted;
mod model;
mod timed;

use anyhow::{Context, Result};
use polyclave_cipher::{Circuit, Direction, catalog};

use super::table::Cell;
use super::{Paper, Recompute, Section};
use counted::Work;
use model::Model;

pub const PAPER: Paper = Paper {
    name: "pohle-2022",
    sections: &[
        Section { name: "Table I", recompute: Recompute::Counted(table_1), seconds: 6, quick_seconds: 6 },
        Section {
            name: "Table II",
            recompute: Recompute::Timed(timed::table_2),
            seconds: 60,
            quick_seconds: 10,
        },
    ],
    figures: &[],
};

/// A row of table I.
struct Row {
    name: &'static str,
    /// Garble, Send and Eval over half gates, then over three halves.
    published: Option<[f64; 6]>,
    /// The model that gives the published values, or the correct ones where the poster errs.
    model: Model,
    /// What is run; `None` for a cipher that is not shipped.
    ran: Option<Ran>,
    against: Against,
    note: Option<&'static str>,
}

struct Ran {
    cipher: &'static str,
    /// Whether the circuit contains the key schedule, or takes an expanded key.
    key_schedule: bool,
    /// Inputs that the evaluator gives: their bits take conversions.
    of_evaluator: &'static [&'static str],
}

/// How our circuit compares with the model.
enum Against {
    /// The same circuit.
    Same,
    /// The same circuit, but the poster's values are those of another model.
    Corrected,
    /// A circuit with another number of projections, and perhaps as many ANDs.
    Similar { ands: bool },
    /// Nothing was run.
    Model,
}

/// A scheme that the poster compares with: hash calls to garble an AND, ciphertexts, hash calls to evaluate
/// it.
struct Base {
    name: &'static str,
    of_and: [f64; 3],
    note: Option<&'static str>,
}

const HALVES: &str = "an AND by three halves takes three ciphertexts of half a label: 1.5";
const BASES: [Base; 2] = [
    Base { name: "ZRE15", of_and: [4.0, 2.0, 2.0], note: None },
    Base { name: "RR21", of_and: [6.0, 1.5, 3.0], note: Some(HALVES) },
];
const COSTS: [&str; 3] = ["Garble", "Send", "Eval"];

const KEY: &[&str] = &["key"];
const KEY_AND_TWEAK: &[&str] = &["key", "tweak"];

const fn whole(cipher: &'static str, of_evaluator: &'static [&'static str]) -> Option<Ran> {
    Some(Ran { cipher, key_schedule: true, of_evaluator })
}

const fn expanded(cipher: &'static str) -> Option<Ran> {
    Some(Ran { cipher, key_schedule: false, of_evaluator: &["round_keys"] })
}

fn rows() -> [Row; 9] {
    let keys = "the evaluator gives k0 + k1, k1 and k0' + k1, which are 192 bits, and the garbler the tweak. With the key schedule in \
                the circuit, and the tweak of the evaluator, it is 257 conversions: the bits of k0' take 65 of their own";
    [
        Row {
            name: "TWINE-128",
            published: Some([1.44, -1.28, 9.05, 2.16, -1.70, 13.58]),
            model: Model { ands: 6 * 393, projections: 288 + 105, bits: 4, conversions: 128 },
            ran: whole("twine-128", KEY),
            against: Against::Similar { ands: false },
            note: Some(
                "our S-box takes 5 ANDs where the poster has 6; of the 105 in the key schedule two are made for nobody, and left out",
            ),
        },
        Row {
            name: "Fides-96",
            published: Some([2.10, 1.07, 50.26, 3.15, -1.24, 75.39]),
            model: Model { ands: 34 * 544, projections: 17 * 32, bits: 6, conversions: 192 },
            ran: None,
            against: Against::Model,
            note: Some(
                "not run: the cipher is not shipped, since no test vectors are to be had. By the model alone, 544 S-boxes of 34 ANDs \
                 and 192 conversions, it is the published value",
            ),
        },
        Row {
            name: "WAGE",
            published: Some([1.51, -1.31, 72.87, 2.27, -1.75, 109.30]),
            model: Model { ands: 37_746, projections: 111 * 7, bits: 7, conversions: 259 },
            ran: whole("wage-permutation", &["block"]),
            against: Against::Similar { ands: false },
            note: Some(
                "projections are the poster's, 777 of 7 bits, but for five words of the block that go in times w only, which is made of \
                 their bits at once. Its Boolean circuit must have about 37,746 ANDs, more than twice ours, and \
                 what it is is not said",
            ),
        },
        Row {
            name: "MANTIS",
            published: Some([-1.11, -1.98, 4.31, 1.35, -2.64, 6.46]),
            model: Model { ands: 4 * 224, projections: 14 * 16, bits: 4, conversions: 192 },
            ran: expanded("mantis6"),
            against: Against::Same,
            note: Some(keys),
        },
        Row {
            name: "MANTIS, 7 rounds",
            published: None,
            model: Model { ands: 4 * 256, projections: 16 * 16, bits: 4, conversions: 192 },
            ran: expanded("mantis7"),
            against: Against::Same,
            note: Some(
                "the poster does not say how many rounds it has: its values fit 6, and 7 are what the designers recommend",
            ),
        },
        Row {
            name: "Midori64",
            published: Some([-1.06, -1.94, 5.33, 1.41, -2.58, 8.00]),
            model: Model { ands: 4 * 256, projections: 256, bits: 4, conversions: 128 },
            ran: whole("midori64", KEY),
            against: Against::Same,
            note: None,
        },
        Row {
            name: "CRAFT",
            published: Some([-1.05, -1.93, 5.71, 1.43, -2.57, 8.57]),
            model: Model { ands: 4 * 496, projections: 31 * 16, bits: 4, conversions: 192 },
            ran: whole("craft", KEY_AND_TWEAK),
            against: Against::Corrected,
            note: Some("CRAFT has 31 layers of S-boxes: the poster's values are those of 30"),
        },
        Row {
            name: "SKINNY-64-128",
            published: Some([-1.51, -2.81, 4.68, -1.01, -3.75, 7.02]),
            model: Model { ands: 4 * 576, projections: 576 + 280, bits: 4, conversions: 128 },
            ran: whole("skinny-64-128", KEY),
            against: Against::Similar { ands: true },
            note: Some(
                "the poster has a projection for each of 280 maps of a key cell; ours has 224, since the map is of order 15 and the \
                 images that it makes of a cell serve again",
            ),
        },
        Row {
            name: "Piccolo-128",
            published: Some([-1.53, -2.84, 4.55, -1.02, -3.79, 6.83]),
            model: Model { ands: 4 * 496, projections: 496 + 248, bits: 4, conversions: 128 },
            ran: whole("piccolo-128", KEY),
            against: Against::Same,
            note: None,
        },
    ]
}

impl Ran {
    fn circuit(&self) -> Result<Circuit> {
        let cipher =
            catalog::find(self.cipher).with_context(|| format!("the catalog has no {}", self.cipher))?;
        match self.key_schedule {
            true => cipher.circuit_with_key_schedule(Direction::Encrypt),
            false => Some((*cipher.encrypt).clone()),
        }
        .context("the cipher does not encrypt")
    }

    /// ANDs, and the work with projections.
    fn counted(&self) -> Result<(u64, Work)> {
        let circuit = self.circuit()?;
        Ok((
            counted::ands(&circuit, self.of_evaluator)?,
            counted::by_projections(&circuit, self.of_evaluator)?,
        ))
    }
}

impl Row {
    fn cells(&self) -> Result<Vec<Cell>> {
        let counted = self.ran.as_ref().map(Ran::counted).transpose()?;
        let mut cells = Vec::new();
        for (i, base) in BASES.iter().enumerate() {
            let expected = self.model.ratios(base.of_and);
            let ours = counted.map(|(ands, work)| model::ratios(ands, work, base.of_and));
            for (j, cost) in COSTS.into_iter().enumerate() {
                let column = format!("{}, {cost}", base.name);
                let published = self.published.map(|published| published[3 * i + j]);
                let cell = self.ratio(&column, published, expected[j], ours.map(|ours| ours[j]));
                let notes: Vec<&str> =
                    self.note.into_iter().chain(base.note.filter(|_| ours.is_some())).collect();
                cells.push(if notes.is_empty() { cell } else { cell.note(&notes.join("; ")) });
            }
        }
        let work = self.model.work();
        let counts = [
            ("ANDs", self.model.ands, counted.map(|(ands, _)| ands), self.has_same_ands()),
            ("calls, garble", work.garble, counted.map(|(_, work)| work.garble), self.has_same_projections()),
            ("ciphertexts", work.send, counted.map(|(_, work)| work.send), self.has_same_projections()),
            ("calls, eval", work.eval, counted.map(|(_, work)| work.eval), self.has_same_projections()),
        ];
        for (column, modelled, ours, is_same) in counts {
            let modelled = modelled as f64;
            let cell = match ours {
                Some(ours) if is_same => Cell::predicted(self.name, column, modelled, ours as f64),
                ours => Cell::estimated(self.name, column, modelled, ours.map(|ours| ours as f64)),
            };
            cells.push(match self.note {
                Some(note) => cell.note(note),
                None => cell,
            });
        }
        Ok(cells)
    }

    fn ratio(&self, column: &str, published: Option<f64>, modelled: f64, ours: Option<f64>) -> Cell {
        match (published, ours, &self.against) {
            (Some(published), Some(ours), Against::Same) => Cell::count(self.name, column, published, ours),
            (Some(published), Some(ours), Against::Corrected) => {
                Cell::count(self.name, column, published, ours)
                    .corrected(modelled, self.note.unwrap_or_default())
            }
            (Some(published), ours, _) => Cell::compared(self.name, column, published, ours),
            (None, Some(ours), Against::Same) => Cell::predicted(self.name, column, modelled, ours),
            (None, ours, _) => Cell::estimated(self.name, column, modelled, ours),
        }
    }

    fn has_same_ands(&self) -> bool {
        matches!(self.against, Against::Same | Against::Corrected | Against::Similar { ands: true })
    }

    fn has_same_projections(&self) -> bool {
        matches!(self.against, Against::Same | Against::Corrected)
    }
}

/// Estimated performance difference.
fn table_1() -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for row in rows() {
        cells.extend(row.cells()?);
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The poster describes its model and gives no numbers of gates. These numbers give everything that it
    /// prints.
    #[test]
    fn the_model_gives_all_that_is_published() {
        let published = rows().into_iter().filter_map(|row| row.published.map(|published| (row, published)));
        for (row, published) in published {
            // As many layers as match its values.
            let model = match row.against {
                Against::Corrected => Model { ands: 4 * 480, projections: 480, ..row.model },
                _ => row.model,
            };
            let modelled = BASES.iter().flat_map(|base| model.ratios(base.of_and));
            assert!(modelled.eq(published), "{}: {published:?}", row.name);
        }
    }
}
