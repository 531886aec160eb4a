//! `polyclave-sbom PACKAGE`: prints the list of what is in a package of this workspace, as CycloneDX JSON.
//! With `SOURCE_DATE_EPOCH` it names that time.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [package] = arguments.as_slice() else {
        eprintln!("usage: polyclave-sbom PACKAGE, in the folder of the workspace");
        return ExitCode::FAILURE;
    };
    let made = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    match polyclave_release::sbom(Path::new("."), package, made) {
        Ok(document) => {
            println!("{document:#}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: there is no list of what is in {package}: {why}");
            ExitCode::FAILURE
        }
    }
}
