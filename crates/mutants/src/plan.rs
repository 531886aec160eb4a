//! What is changed: the files of `scripts/mutants.list`, and the mutants of each.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use regex::RegexSet;

use crate::mutant::Mutant;
use crate::{listed, omissions};

/// A package, and those of its files that are changed.
pub struct Package {
    pub name: String,
    /// Relative to the tree.
    pub files: Vec<PathBuf>,
}

/// The packages of the list. With `only`, just these files of them.
pub fn packages(tree: &Path, only: &[PathBuf]) -> Result<Vec<Package>> {
    let list = fs::read_to_string(tree.join("scripts/mutants.list"))
        .context("scripts/mutants.list cannot be read")?;
    let mut packages: Vec<Package> = Vec::new();
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (file, name) =
            line.split_once(char::is_whitespace).context("a line of scripts/mutants.list has no package")?;
        let (file, name) = (PathBuf::from(file), name.trim());
        if !only.is_empty() && !only.contains(&file) {
            continue;
        }
        match packages.iter_mut().find(|package| package.name == name) {
            Some(package) => package.files.push(file),
            None => packages.push(Package { name: name.to_owned(), files: vec![file] }),
        }
    }
    Ok(packages)
}

/// All mutants of a package except those that `.cargo/mutants.toml` excludes.
pub fn mutants(tree: &Path, package: &Package) -> Result<Vec<Mutant>> {
    let excluded = excluded(tree)?;
    let listed = listed::mutants(tree, &package.name, &package.files)?;
    let mut all = Vec::new();
    for file in &package.files {
        let text = fs::read_to_string(tree.join(file))
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let syntax = syn::parse_file(&text).with_context(|| format!("{} is not Rust", file.display()))?;
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let source = hasher.finish();
        let listed = listed::changes(&listed, file, &text, &syntax);
        for (name, change) in listed.into_iter().chain(omissions::changes(file, &text, &syntax)) {
            if !excluded.is_match(&name) {
                all.push(Mutant { id: all.len() as u32 + 1, file: file.clone(), source, name, change });
            }
        }
    }
    Ok(all)
}

fn excluded(tree: &Path) -> Result<RegexSet> {
    let path = tree.join(".cargo/mutants.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let settings: toml::Table = text.parse()?;
    let patterns = settings.get("exclude_re").and_then(|p| p.as_array()).cloned().unwrap_or_default();
    Ok(RegexSet::new(patterns.iter().filter_map(|p| p.as_str()))?)
}
