//! A package compiled once with all its mutants.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mutant::{Change, Mutant};
use crate::plan::Package;
use crate::reach::{self, Test};
use crate::rewrite::{self, Rewritten};

/// The programs of tests, with all mutants that the compiler takes.
#[derive(Serialize, Deserialize)]
pub struct Built {
    /// Of these mutants.
    plan: u64,
    /// The folder that tests run in.
    pub folder: PathBuf,
    /// The mutants that are no Rust, or that no switch can turn on, as in a constant function.
    pub refused: HashSet<u32>,
    /// The fastest comes first.
    pub tests: Vec<Test>,
}

/// Compiles the tests of a package with these mutants, and looks which test passes which switch. What a run
/// before has compiled is taken, if it was the same.
pub fn build(tree: &Path, work: &Path, package: &Package, mutants: &[Mutant]) -> Result<Built> {
    let mut hasher = DefaultHasher::new();
    mutants.iter().for_each(|mutant| (&mutant.name, mutant.source).hash(&mut hasher));
    let plan = hasher.finish();
    let kept = work.join(format!("{}.json", package.name));
    if let Ok(text) = fs::read_to_string(&kept)
        && let Ok(built) = serde_json::from_str::<Built>(&text)
        && built.plan == plan
    {
        return Ok(built);
    }
    let folder = tree.join(folder(package)?);
    let (programs, refused) = compile(tree, work, &folder, package, mutants)?;
    let tests = reach::run_each_test(work, &folder, &programs)?;
    let built = Built { plan, folder, refused, tests };
    fs::write(kept, serde_json::to_string(&built)?)?;
    Ok(built)
}

/// The programs of tests, copied to where no other run overwrites them, and the mutants that are refused. The
/// sources become again what they were.
fn compile(
    tree: &Path,
    work: &Path,
    folder: &Path,
    package: &Package,
    mutants: &[Mutant],
) -> Result<(Vec<PathBuf>, HashSet<u32>)> {
    let root = folder.join("src/lib.rs");
    let sources = Sources::read(tree, package, &root)?;
    let mut refused: HashSet<u32> =
        mutants.iter().filter(|m| matches!(m.change, Change::Other)).map(|m| m.id).collect();
    let mut round = 0;
    loop {
        let files = sources.write(mutants, &refused)?;
        let output = cargo(tree, work, &["check", "--profile", "test", "--lib", "--package", &package.name])?;
        let new = blamed(&output, &files)?;
        round += 1;
        println!("{}: compiled {round} times, {} mutants refused", package.name, refused.len() + new.len());
        if new.is_empty() {
            break;
        }
        refused.extend(new);
    }
    let output = cargo(tree, work, &["test", "--no-run", "--package", &package.name])?;
    let compiled = programs(&output);
    ensure!(!compiled.is_empty(), "the tests of {} do not compile", package.name);
    let copies = work.join("programs").join(&package.name);
    fs::create_dir_all(&copies)?;
    let mut programs = Vec::new();
    for program in compiled {
        let copy = copies.join(program.file_name().context("a program without a name")?);
        fs::copy(&program, &copy)?;
        programs.push(copy);
    }
    Ok((programs, refused))
}

/// The folder of a package, in the tree.
fn folder(package: &Package) -> Result<PathBuf> {
    let file = package.files.first().context("a package without files")?;
    let source = file.ancestors().find(|folder| folder.ends_with("src")).context("a file outside of src")?;
    Ok(source.parent().context("a file without a package")?.to_owned())
}

/// The files that are changed, as they were. They are written back when this goes.
struct Sources {
    /// The path, its name in the list, and the text.
    files: Vec<(PathBuf, PathBuf, String)>,
    root: PathBuf,
    root_text: String,
}

impl Sources {
    fn read(tree: &Path, package: &Package, root: &Path) -> Result<Self> {
        let read = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
        };
        let mut files = Vec::new();
        for file in &package.files {
            files.push((tree.join(file), file.clone(), read(&tree.join(file))?));
        }
        Ok(Sources { files, root: root.to_owned(), root_text: read(root)? })
    }

    fn write(&self, mutants: &[Mutant], refused: &HashSet<u32>) -> Result<Vec<(PathBuf, Rewritten)>> {
        fs::write(&self.root, format!("{}{}", self.root_text, rewrite::SWITCHES))?;
        let mut written = Vec::new();
        for (path, name, text) in &self.files {
            let of_file: Vec<&Mutant> =
                mutants.iter().filter(|m| m.file == *name && !refused.contains(&m.id)).collect();
            let rewritten = rewrite::rewrite(text, &of_file);
            fs::write(path, &rewritten.text)?;
            written.push((name.clone(), rewritten));
        }
        Ok(written)
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        for (path, _, text) in &self.files {
            let _ = fs::write(path, text);
        }
        let _ = fs::write(&self.root, &self.root_text);
    }
}

/// The messages of cargo, in JSON.
fn cargo(tree: &Path, work: &Path, arguments: &[&str]) -> Result<Vec<Value>> {
    let output = Command::new("cargo")
        .args(arguments)
        .args(["--locked", "--message-format", "json"])
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", work.join("target"))
        // Mutants are no clean code.
        .env("RUSTFLAGS", "--cap-lints warn")
        .env("CARGO_PROFILE_TEST_DEBUG", "0")
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cargo does not start")?;
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The mutants that errors of the compiler are about.
fn blamed(messages: &[Value], files: &[(PathBuf, Rewritten)]) -> Result<HashSet<u32>> {
    let mut blamed = HashSet::new();
    let mut unexplained = None;
    for message in
        messages.iter().filter(|m| m["reason"] == "compiler-message" && m["message"]["level"] == "error")
    {
        let message = &message["message"];
        let spans = message["spans"].as_array().cloned().unwrap_or_default();
        let places: Vec<(&Rewritten, usize)> =
            spans.iter().flat_map(with_callers).filter_map(|span| place(span, files)).collect();
        let first = |of: fn(&Rewritten, usize) -> Vec<u32>| {
            places.iter().map(|(file, byte)| of(file, *byte)).find(|ids| !ids.is_empty())
        };
        match first(Rewritten::at).or_else(|| first(Rewritten::around)).or_else(|| first(Rewritten::before)) {
            Some(ids) => blamed.extend(ids),
            // Only how many errors there were.
            None if spans.is_empty() => {}
            None => unexplained = Some(message["rendered"].to_string()),
        }
    }
    if let (true, Some(error)) = (blamed.is_empty(), unexplained) {
        bail!("an error that no mutant is the cause of: {error}");
    }
    Ok(blamed)
}

/// A span, and the call of the macro that it is in.
fn with_callers(span: &Value) -> impl Iterator<Item = &Value> {
    std::iter::successors(Some(span), |span| span.pointer("/expansion/span"))
}

fn place<'f>(span: &Value, files: &'f [(PathBuf, Rewritten)]) -> Option<(&'f Rewritten, usize)> {
    let name = Path::new(span["file_name"].as_str()?);
    let (_, file) = files.iter().find(|(file, _)| name.ends_with(file))?;
    Some((file, span["byte_start"].as_u64()? as usize))
}

fn programs(messages: &[Value]) -> Vec<PathBuf> {
    messages
        .iter()
        .filter(|m| m["reason"] == "compiler-artifact" && m["profile"]["test"] == true)
        .filter_map(|m| m["executable"].as_str())
        .map(PathBuf::from)
        .collect()
}
