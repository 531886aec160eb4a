//! Standard output, which can be full or gone.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a line, as `println!` does, but ends the program in order when nothing can be printed.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => {
        $crate::output::line(format_args!($($part)*))
    };
}

/// Prints a line. If the reader is gone there is nothing left to do or to say (as in `polyclave demo | head -1`); if the
/// line cannot be written, that is an error. Party processes end with this one.
pub fn line(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        if error.kind() != ErrorKind::BrokenPipe {
            eprintln!("error: cannot write the output: {error}");
        }
        std::process::exit(1);
    }
}
