//! What was found, kept in a file: a run that was ended goes on where it stopped.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::plan::Package;

/// What became of a mutant.
#[derive(Clone, Serialize, Deserialize)]
pub enum Outcome {
    /// By this test.
    Caught(String),
    /// It went on without an end, as a test would.
    RanTooLong,
    DoesNotCompile,
    NoTestReachesIt,
    Survived,
}

#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    source: u64,
    outcome: Outcome,
}

/// The results of all runs.
pub struct Results {
    path: PathBuf,
    file: File,
    outcomes: HashMap<(String, u64), Outcome>,
}

impl Results {
    /// Those in the folder of results.
    pub fn open(work: &Path) -> Result<Self> {
        fs::create_dir_all(work)?;
        let path = work.join("results.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let outcomes = lines.map(|line| ((line.name, line.source), line.outcome)).collect();
        let file = File::options().append(true).create(true).open(&path);
        let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Results { path, file, outcomes })
    }

    /// Forgets those who survived: a test may have been added for them.
    pub fn forget_survivors(&mut self) {
        self.outcomes.retain(|_, outcome| !matches!(outcome, Outcome::Survived | Outcome::NoTestReachesIt));
    }

    /// Whether this mutant was run.
    pub fn has(&self, mutant: &Mutant) -> bool {
        self.outcomes.contains_key(&(mutant.name.clone(), mutant.source))
    }

    /// Keeps what became of a mutant.
    pub fn add(&mut self, mutant: &Mutant, outcome: Outcome) -> Result<()> {
        let line = Line { name: mutant.name.clone(), source: mutant.source, outcome: outcome.clone() };
        writeln!(self.file, "{}", serde_json::to_string(&line)?)
            .with_context(|| format!("{} cannot be written", self.path.display()))?;
        self.outcomes.insert((line.name, line.source), outcome);
        Ok(())
    }
}

/// A line of a table for each file, and the mutants that no test noticed.
pub fn print(package: &Package, mutants: &[Mutant], results: &Results) {
    for file in &package.files {
        let of_file: Vec<&Mutant> = mutants.iter().filter(|mutant| mutant.file == *file).collect();
        let outcomes: Vec<_> = of_file
            .iter()
            .filter_map(|m| Some((m, results.outcomes.get(&(m.name.clone(), m.source))?)))
            .collect();
        let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|(_, outcome)| is(outcome)).count();
        println!(
            "| `{}` | {} | {} | {} | {} | {} |",
            file.display(),
            of_file.len(),
            count(|o| matches!(o, Outcome::Caught(_))),
            count(|o| matches!(o, Outcome::RanTooLong)),
            count(|o| matches!(o, Outcome::DoesNotCompile)),
            count(|o| matches!(o, Outcome::Survived | Outcome::NoTestReachesIt)),
        );
        for (mutant, outcome) in outcomes {
            match outcome {
                Outcome::Survived => println!("  survived: {}", mutant.name),
                Outcome::NoTestReachesIt => println!("  no test gets there: {}", mutant.name),
                _ => {}
            }
        }
    }
}
