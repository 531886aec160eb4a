//! Standard output, which may be full or closed.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a line like `println!`, but ends the program in order if nothing can be printed.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => {
        $crate::output::line(format_args!($($part)*))
    };
}

/// Prints a line. If the reader is gone nothing is left to do or to report (as in
/// `polyclave demo | head -1`). If the line cannot be written, that is an error. Party processes end with
/// this error.
pub fn line(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        if error.kind() != ErrorKind::BrokenPipe {
            eprintln!("error: cannot write the output: {error}");
        }
        std::process::exit(1);
    }
}

/// Prints rows in columns of the necessary width.
pub fn table<const N: usize>(rows: &[[String; N]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        line(format_args!("{}", cells.join("  ").trim_end()));
    }
}
