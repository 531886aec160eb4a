//! A table of published and recomputed values, for people and for scripts.

use std::fmt;

use serde::{Serialize, Serializer};

/// Standard errors within which a mean is as expected; a right one is not once in 500 million runs.
const NEAR: f64 = 6.0;

/// A table of a paper.
#[derive(Serialize)]
pub struct Table {
    /// Its name, as printed.
    pub table: &'static str,
    /// Row by row.
    pub cells: Vec<Cell>,
}

/// One value.
#[derive(Serialize)]
pub struct Cell {
    row: String,
    column: String,
    /// What is printed in the paper.
    #[serde(serialize_with = "optional_number")]
    published: Option<f64>,
    /// That, or the right value where the paper errs, or our prediction where there is no paper.
    #[serde(serialize_with = "number")]
    expected: f64,
    #[serde(serialize_with = "number")]
    ours: f64,
    /// Whether ours must equal what is expected.
    exact: bool,
    /// Of ours, where it is the mean of a random number.
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_error: Option<f64>,
    note: Option<String>,
}

impl Cell {
    /// A count: ours must equal the published value.
    pub fn count(row: &str, column: &str, published: f64, ours: f64) -> Cell {
        let (row, column, note) = (row.into(), column.into(), None);
        let (published, expected) = (Some(published), published);
        Cell { row, column, published, expected, ours, exact: true, standard_error: None, note }
    }

    /// A value that is compared only.
    pub fn compared(row: &str, column: &str, published: f64, ours: f64) -> Cell {
        Cell { exact: false, ..Cell::count(row, column, published, ours) }
    }

    /// The mean of a random number: ours must be near what is expected.
    pub fn mean(row: &str, column: &str, published: f64, ours: f64, standard_error: f64) -> Cell {
        Cell { standard_error: Some(standard_error), ..Cell::compared(row, column, published, ours) }
    }

    /// A count that no paper has, against our own prediction.
    pub fn predicted(row: &str, column: &str, predicted: f64, ours: f64) -> Cell {
        Cell { published: None, ..Cell::count(row, column, predicted, ours) }
    }

    /// The paper errs: what the value should be, and why.
    pub fn corrected(self, expected: f64, why: &str) -> Cell {
        Cell { expected, ..self }.note(why)
    }

    /// Explains the value.
    pub fn note(self, note: &str) -> Cell {
        Cell { note: Some(note.into()), ..self }
    }

    fn agrees(&self) -> bool {
        let difference = (self.ours - self.expected).abs();
        match self.standard_error {
            Some(error) => difference <= NEAR * error,
            // Quotients such as 57/10 differ from 5 + 7/10 in the last place.
            None => !self.exact || difference < 1e-9,
        }
    }
}

impl Table {
    /// A line for each count or mean that is not as expected.
    pub fn differing(&self) -> Vec<String> {
        let line = |c: &Cell| {
            let (ours, expected) = (shown(c.ours), shown(c.expected));
            format!("{}, {}, {}: ours is {ours}, expected is {expected}", self.table, c.row, c.column)
        };
        self.cells.iter().filter(|c| !c.agrees()).map(line).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.table)?;
        let mut notes: Vec<&str> = Vec::new();
        let header = ["", "", "published", "expected", "ours", "ratio", "note"].map(String::from);
        let mut lines = vec![header];
        for c in &self.cells {
            let mark = c.note.as_ref().map_or(String::new(), |note| {
                let at = notes.iter().position(|n| n == note).unwrap_or_else(|| {
                    notes.push(note);
                    notes.len() - 1
                });
                format!("({})", at + 1)
            });
            let published = c.published.map_or("-".into(), shown);
            let ratio = format!("{:.3}", c.ours / c.expected);
            let (row, column) = (c.row.clone(), c.column.clone());
            lines.push([row, column, published, shown(c.expected), shown(c.ours), ratio, mark]);
        }
        let width = |i: usize| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0);
        let widths: [usize; 7] = std::array::from_fn(width);
        for line in &lines {
            let mut text = String::new();
            for (i, (field, width)) in line.iter().zip(widths).enumerate() {
                match i {
                    0 | 1 | 6 => text += &format!("{field:<width$}  "),
                    _ => text += &format!("{field:>width$}  "),
                }
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        for (i, note) in notes.iter().enumerate() {
            writeln!(f, "({}) {note}", i + 1)?;
        }
        Ok(())
    }
}

/// Four places, or none for a whole number.
fn shown(x: f64) -> String {
    if x.fract() == 0.0 { format!("{x}") } else { format!("{x:.4}") }
}

fn number<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // Counts are written as integers.
    if x.fract() == 0.0 { serializer.serialize_i64(*x as i64) } else { serializer.serialize_f64(*x) }
}

fn optional_number<S: Serializer>(x: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match x {
        Some(x) => number(x, serializer),
        None => serializer.serialize_none(),
    }
}
