//! Which packages a package is built from, as `cargo tree` says: for this machine's target, and with the
//! features that the package has when it is built alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// A package, by name and version.
pub type Id = (String, String);

/// What a package is built from.
pub struct Parts {
    /// The package itself.
    pub root: Id,
    /// Each package, the root among them.
    pub parts: BTreeMap<Id, Part>,
}

/// One of the packages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Its licence, an SPDX expression.
    pub licence: String,
    /// Where its sources are developed, if it says so.
    pub repository: String,
    /// Whether its code is in the program. Otherwise it runs only while the program is built.
    pub is_inside: bool,
    /// What it depends on.
    pub depends_on: BTreeSet<Id>,
}

/// All packages that this one is built from.
pub fn parts(workspace: &Path, package: &str) -> Result<Parts, String> {
    let mut all = parse(&ask(workspace, package, "normal,build")?)?;
    let inside = parse(&ask(workspace, package, "normal,no-proc-macro")?)?;
    for (id, part) in &mut all.parts {
        part.is_inside = inside.parts.contains_key(id);
    }
    Ok(all)
}

fn ask(workspace: &Path, package: &str, edges: &str) -> Result<String, String> {
    let asked = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["tree", "--locked", "--offline", "--prefix", "depth", "--format", " {p}\t{l}\t{r}\t"])
        .args(["--package", package, "--edges", edges])
        .current_dir(workspace)
        // With this, a package has the features that others of the workspace turn on, as in tests.
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .output()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !asked.status.success() {
        return Err(format!("cargo tree failed: {}", String::from_utf8_lossy(&asked.stderr).trim()));
    }
    String::from_utf8(asked.stdout).map_err(|e| e.to_string())
}

/// Reads lines such as `2 libc v0.2.1<TAB>MIT OR Apache-2.0<TAB>https://..<TAB>`, each with its depth. What a
/// package depends on is listed where it comes first.
fn parse(text: &str) -> Result<Parts, String> {
    let mut parts: BTreeMap<Id, Part> = BTreeMap::new();
    let mut above: Vec<Id> = Vec::new();
    let mut root = None;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let strange = || format!("cargo tree printed a line that is not known: {line}");
        let (depth, rest) = line.split_once(' ').ok_or_else(strange)?;
        let depth: usize = depth.parse().map_err(|_| strange())?;
        let mut fields = rest.split('\t');
        let (named, licence, repository) =
            (|| Some((fields.next()?, fields.next()?, fields.next()?)))().ok_or_else(strange)?;
        let mut words = named.split(' ');
        let (name, version) =
            (|| Some((words.next()?, words.next()?.strip_prefix('v')?)))().ok_or_else(strange)?;
        let id: Id = (name.into(), version.into());
        above.truncate(depth);
        if above.len() != depth {
            return Err(strange());
        }
        match above.last().and_then(|parent| parts.get_mut(parent)) {
            Some(parent) => drop(parent.depends_on.insert(id.clone())),
            None if root.is_none() => root = Some(id.clone()),
            None => return Err(strange()),
        }
        let part = parts.entry(id.clone()).or_default();
        // As packages wrote it before SPDX expressions.
        part.licence = licence.replace('/', " OR ");
        part.repository = repository.into();
        above.push(id);
    }
    Ok(Parts { root: root.ok_or("cargo tree printed nothing")?, parts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Id {
        (name.into(), "1.0.0".into())
    }

    #[test]
    fn what_depends_on_what_is_read_from_depths() {
        let text = "0 a v1.0.0 (/somewhere)\tMIT\t\t\n1 b v1.0.0\tMIT/Apache-2.0\thttps://b.example\t\n\
                    2 c v1.0.0 (proc-macro)\tISC\t\t\n1 c v1.0.0 (proc-macro)\tISC\t\t (*)\n";
        let Parts { root, parts } = parse(text).expect("it is in order");
        assert_eq!(root, id("a"));
        assert_eq!(parts[&id("a")].depends_on, BTreeSet::from([id("b"), id("c")]));
        assert_eq!(parts[&id("b")].depends_on, BTreeSet::from([id("c")]));
        assert_eq!(parts[&id("b")].licence, "MIT OR Apache-2.0");
        assert_eq!(parts[&id("b")].repository, "https://b.example");
        assert_eq!(parts[&id("c")].depends_on, BTreeSet::new());
    }

    #[test]
    fn a_line_that_is_not_known_is_an_error() {
        for text in [
            "",
            "a v1.0.0\tMIT\t\t\n",
            "0 a\tMIT\t\t\n",
            "0 a v1.0.0\n",
            "1 a v1.0.0\tMIT\t\t\n",
            "0 a v1.0.0\tMIT\t\t\n0 b v1.0.0\tMIT\t\t\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
