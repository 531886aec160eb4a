//! The program `polyclave`.

use std::process::ExitCode;

fn main() -> ExitCode {
    polyclave_cli::main()
}
