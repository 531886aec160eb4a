//! Which test passes the switches of which mutants.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::process::{self, Ended};

/// The longest that a test may take without a mutant. A slower one is left out.
const MAX_ALONE: Duration = Duration::from_secs(120);

/// A test, as it was without a mutant.
#[derive(Serialize, Deserialize)]
pub struct Test {
    pub program: PathBuf,
    pub name: String,
    pub took: Duration,
    /// The mutants whose switch it passes.
    pub reaches: HashSet<u32>,
}

/// Runs each test by itself, without a mutant. The fastest comes first.
pub fn run_each_test(work: &Path, folder: &Path, programs: &[PathBuf]) -> Result<Vec<Test>> {
    let all_notes = work.join("notes");
    fs::create_dir_all(&all_notes)?;
    let mut names = Vec::new();
    for program in programs {
        let output = Command::new(program)
            .args(["--list", "--format", "terse"])
            .current_dir(folder)
            .output()
            .with_context(|| format!("{} does not start", program.display()))?;
        ensure!(output.status.success(), "{} does not list its tests", program.display());
        let list = String::from_utf8_lossy(&output.stdout).into_owned();
        let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
        names.extend(tests.map(|name| (program.clone(), name.to_owned())));
    }
    let mut tests = process::in_parallel("tests without a mutant", &names, |at, (program, name)| {
        let notes = all_notes.join(format!("{at}"));
        // Of an earlier run.
        let _ = fs::remove_file(&notes);
        let begun = Instant::now();
        let ended = process::run(
            folder,
            program,
            &[name],
            &[("POLYCLAVE_MUTANT_NOTES", notes.as_os_str())],
            MAX_ALONE,
        )?;
        if ended != Ended::Passed {
            println!("left out, since it fails or takes too long without a mutant: {name}");
            return Ok(None);
        }
        let passed = fs::read_to_string(&notes).unwrap_or_default();
        let reaches = passed.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(Some(Test { program: program.clone(), name: name.clone(), took: begun.elapsed(), reaches }))
    })?;
    tests.sort_by_key(|test| test.as_ref().map(|test| test.took));
    Ok(tests.into_iter().flatten().filter(|test| !test.reaches.is_empty()).collect())
}
