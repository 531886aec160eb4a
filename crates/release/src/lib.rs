//! What a release needs beside its programs: a list of what is in each of them (SBOM), as CycloneDX 1.5.
//!
//! cargo says which packages a program is built from, and with which features ([`tree`]). `Cargo.lock` has
//! the checksum of each. Both are there without a network. The list depends on nothing else, so the same
//! sources give the same bytes. `scripts/release` writes the lists with the program `polyclave-sbom`.

pub mod bom;
pub mod lock;
pub mod tree;

use std::path::Path;

use serde_json::Value;

/// The list of what is in a package of the workspace. `made` is the time that it names, in seconds since
/// 1970.
pub fn sbom(workspace: &Path, package: &str, made: Option<i64>) -> Result<Value, String> {
    let parts = tree::parts(workspace, package)?;
    let checksums = lock::checksums(workspace)?;
    bom::document(package, &parts, &checksums, made)
}
