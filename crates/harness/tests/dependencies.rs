//! Licences, bans and sources of all dependencies, as `deny.toml` wants them. It takes cargo and what is
//! built anyway: no network.
//!
//! cargo-deny reads the same file and checks more (advisories, licence texts); this is what every change
//! passes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use spdx::{Expression, ParseMode};

/// Rust's own registry, as every Cargo.lock names it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What this test reads of `deny.toml`.
#[derive(Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    unknown_registry: String,
    unknown_git: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Where it comes from; none of this workspace.
    source: Option<String>,
    manifest_path: String,
    /// The oldest compiler that it says it takes.
    rust_version: Option<String>,
}

impl Rules {
    fn load() -> Rules {
        let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml is there");
        toml::from_str(&text).expect("it has these fields")
    }

    /// What is wrong with a package, in one line each.
    fn faults(&self, package: &Package) -> Vec<String> {
        let Package { name, version, license, source, manifest_path, .. } = package;
        let mut faults = Vec::new();
        match license.as_deref().map(|text| (text, Expression::parse_mode(text, ParseMode::LAX))) {
            None => faults.push("it names no licence".into()),
            Some((text, Err(_))) => faults.push(format!("its licence is no SPDX expression: {text}")),
            Some((text, Ok(expression))) => {
                if !expression.evaluate(|one| self.licenses.allow.contains(&one.to_string())) {
                    faults.push(format!("its licence is not among those that are allowed: {text}"));
                }
            }
        }
        if let Some(banned) = self.bans.deny.iter().find(|banned| banned.name == *name) {
            faults.push(format!("it is banned: {}", banned.reason));
        }
        let is_ours = Path::new(manifest_path).starts_with(root());
        match source.as_deref() {
            None if is_ours => {}
            Some(CRATES_IO) => {}
            other => faults.push(format!("it is not of crates.io: {}", other.unwrap_or(manifest_path))),
        }
        faults.into_iter().map(|fault| format!("{name} {version}: {fault}")).collect()
    }
}

/// The workspace.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("two folders above this crate")
}

/// All packages that a build on this machine takes, with all features.
fn packages() -> Vec<Package> {
    let compiler = Command::new("rustc").arg("-vV").output().expect("a compiler");
    let message = String::from_utf8(compiler.stdout).expect("text");
    let host = message.lines().find_map(|line| line.strip_prefix("host: ")).expect("it names its host");
    let asked = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", host])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let metadata: Metadata = serde_json::from_slice(&asked.stdout).expect("its format");
    metadata.packages
}

#[test]
fn every_dependency_has_an_allowed_licence_and_source_and_none_is_banned() {
    let (rules, packages) = (Rules::load(), packages());
    assert!(packages.len() > 100, "only {} packages were listed", packages.len());
    let faults: Vec<String> = packages.iter().flat_map(|package| rules.faults(package)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!([rules.sources.unknown_registry, rules.sources.unknown_git], ["deny", "deny"]);
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    packages.iter().for_each(|package| versions.entry(&package.name).or_default().push(&package.version));
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        println!("warning: {name} is there in {} versions: {}", versions.len(), versions.join(", "));
    }
}

#[test]
fn a_banned_crate_another_licence_and_another_source_are_found() {
    let rules = Rules::load();
    let good = || Package {
        name: "good".into(),
        version: "1.0.0".into(),
        license: Some("MIT/Apache-2.0".into()),
        source: Some(CRATES_IO.into()),
        manifest_path: "/elsewhere/Cargo.toml".into(),
        rust_version: None,
    };
    assert_eq!(rules.faults(&good()), Vec::<String>::new());
    let licence = |text: &str| Package { license: Some(text.into()), ..good() };
    let source = |text: Option<&str>| Package { source: text.map(str::to_owned), ..good() };
    for bad in [
        licence("GPL-3.0-only"),
        licence("MIT AND GPL-3.0-only"),
        licence("whatever"),
        Package { license: None, ..good() },
        Package { name: "bincode".into(), ..good() },
        source(Some("git+https://example.org/good")),
        source(Some("registry+https://example.org/crates.io-index")),
        source(None),
    ] {
        assert_eq!(rules.faults(&bad).len(), 1, "{:?}", rules.faults(&bad));
    }
    assert_eq!(rules.faults(&licence("GPL-3.0-only OR MIT")), Vec::<String>::new());
}

/// The oldest compiler that the workspace promises must build every dependency. (What our own code takes of
/// the standard library is held to it by clippy's `incompatible_msrv`.)
#[test]
fn every_dependency_takes_the_oldest_compiler_that_we_promise() {
    let number = |version: &str| {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        std::array::from_fn::<u32, 3, _>(|_| parts.next().unwrap_or(0))
    };
    let packages = packages();
    let ours =
        packages.iter().find(|package| package.name == env!("CARGO_PKG_NAME")).expect("this crate is one");
    let promised = number(ours.rust_version.as_deref().expect("the workspace has a rust-version"));
    let is_newer =
        |package: &&Package| package.rust_version.as_deref().is_some_and(|wanted| number(wanted) > promised);
    let newer: Vec<String> =
        packages.iter().filter(is_newer).map(|p| format!("{} {}", p.name, p.version)).collect();
    assert!(newer.is_empty(), "these take a newer compiler than {promised:?}: {}", newer.join(", "));
}
