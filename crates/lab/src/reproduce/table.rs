//! A table of published and recomputed values, for people and for scripts.

use std::fmt;

use serde::{Serialize, Serializer};

/// The number of standard errors within which a mean is accepted. A correct mean is outside once in 500
/// million runs.
const NEAR: f64 = 6.0;

/// A table of a paper.
#[derive(Serialize)]
pub struct Table {
    /// Its name, as printed.
    pub table: &'static str,
    /// The rows.
    pub cells: Vec<Cell>,
}

/// One value.
#[derive(Serialize)]
pub struct Cell {
    row: String,
    column: String,
    /// The value printed in the paper.
    #[serde(serialize_with = "optional_number")]
    published: Option<f64>,
    /// The published value; the correct value where the paper errs; our prediction where there is no paper;
    /// `None` if there is none of these.
    #[serde(serialize_with = "optional_number")]
    expected: Option<f64>,
    /// The value that was counted or measured; `None` if that was impossible.
    #[serde(serialize_with = "optional_number")]
    ours: Option<f64>,
    /// Whether our value must equal the expected one.
    exact: bool,
    /// The standard error of our value, if it is the mean of a random number.
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_error: Option<f64>,
    note: Option<String>,
}

impl Cell {
    /// A count: ours must equal the published value.
    pub fn count(row: &str, column: &str, published: f64, ours: f64) -> Cell {
        let (row, column, note) = (row.into(), column.into(), None);
        let (published, ours) = (Some(published), Some(ours));
        Cell { row, column, published, expected: published, ours, exact: true, standard_error: None, note }
    }

    /// A value that is only compared, or that we cannot provide.
    pub fn compared(row: &str, column: &str, published: f64, ours: impl Into<Option<f64>>) -> Cell {
        Cell { exact: false, ours: ours.into(), ..Cell::count(row, column, published, published) }
    }

    /// A value that the paper shows only in a picture, or not at all.
    pub fn unpublished(row: &str, column: &str, ours: impl Into<Option<f64>>) -> Cell {
        Cell { published: None, expected: None, ..Cell::compared(row, column, 0.0, ours) }
    }

    /// The mean of a random number: ours must be near what is expected.
    pub fn mean(row: &str, column: &str, published: f64, ours: f64, standard_error: f64) -> Cell {
        Cell { standard_error: Some(standard_error), ..Cell::compared(row, column, published, ours) }
    }

    /// A count that no paper has, against our own prediction.
    pub fn predicted(row: &str, column: &str, predicted: f64, ours: f64) -> Cell {
        Cell { published: None, ..Cell::count(row, column, predicted, ours) }
    }

    /// A value that no paper has, compared only with our estimate.
    pub fn estimated(row: &str, column: &str, estimate: f64, ours: impl Into<Option<f64>>) -> Cell {
        Cell { published: None, ..Cell::compared(row, column, estimate, ours) }
    }

    /// Notes that the paper errs: the correct value, and the reason.
    pub fn corrected(self, expected: f64, why: &str) -> Cell {
        Cell { expected: Some(expected), ..self }.note(why)
    }

    /// Explains the value.
    pub fn note(self, note: &str) -> Cell {
        Cell { note: Some(note.into()), ..self }
    }

    fn agrees(&self) -> bool {
        let (Some(ours), Some(expected)) = (self.ours, self.expected) else { return !self.exact };
        let difference = (ours - expected).abs();
        match self.standard_error {
            Some(error) => difference <= NEAR * error,
            // Quotients such as 57/10 differ from 5 + 7/10 in the last place.
            None => !self.exact || difference < 1e-9,
        }
    }
}

impl Table {
    /// A line for each count or mean that differs from the expected value.
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
            let ratio = c
                .ours
                .zip(c.expected)
                .map_or("-".into(), |(ours, expected)| format!("{:.3}", ours / expected));
            let [published, expected, ours] = [c.published, c.expected, c.ours].map(shown);
            lines.push([c.row.clone(), c.column.clone(), published, expected, ours, ratio, mark]);
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

/// Formats with four decimal places, or none for a whole number.
fn shown(x: Option<f64>) -> String {
    match x {
        None => "-".into(),
        Some(x) if x.fract() == 0.0 => format!("{x}"),
        Some(x) => format!("{x:.4}"),
    }
}

fn optional_number<S: Serializer>(x: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match x {
        // Counts are written as integers.
        Some(x) if x.fract() == 0.0 => serializer.serialize_i64(*x as i64),
        Some(x) => serializer.serialize_f64(*x),
        None => serializer.serialize_none(),
    }
}
