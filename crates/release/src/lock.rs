//! The checksums of packages, as `Cargo.lock` has them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// SHA-256 of the package; none of this workspace.
    checksum: Option<String>,
}

/// The SHA-256 of each package, by name and version; `None` for those of this workspace.
pub fn checksums(workspace: &Path) -> Result<BTreeMap<(String, String), Option<String>>, String> {
    let path = workspace.join("Cargo.lock");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let lock: Lock = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(lock.package.into_iter().map(|one| ((one.name, one.version), one.checksum)).collect())
}
