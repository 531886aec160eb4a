//! Runs tests with a mutant.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Result;

use crate::mutant::Mutant;
use crate::process::{Ended, in_parallel, run};
use crate::reach::Test;
use crate::report::{Outcome, Results};

/// A process is started for tests that together take this long, or for one test that takes longer.
const AT_ONCE: Duration = Duration::from_secs(2);
/// A mutant survives if tests that together take this long do not notice it: those of the nearest module,
/// then the fastest.
const MAX_TESTS: Duration = Duration::from_secs(30);
/// A mutant runs too long if its tests take this many times as long as without it,
const MAX_SLOWER: u32 = 10;
/// and this much.
const MAX_SLOWER_BY: Duration = Duration::from_secs(20);

/// Runs each mutant with the tests that pass its switch.
pub fn run_all<'a>(
    folder: &Path,
    tests: &[Test],
    mutants: impl Iterator<Item = &'a Mutant>,
    results: &mut Results,
) -> Result<()> {
    let mutants: Vec<&Mutant> = mutants.collect();
    let results = Mutex::new(results);
    let catchers = Catchers::default();
    in_parallel("mutants", &mutants, |_, mutant| {
        let outcome = run_one(folder, tests, &catchers, mutant)?;
        if let Outcome::Caught(test) = &outcome {
            catchers.note(mutant, test);
        }
        results.lock().expect("another mutant failed").add(mutant, outcome)
    })?;
    Ok(())
}

/// How many mutants of a file each test has caught: it is tried early with the others.
#[derive(Default)]
struct Catchers(Mutex<HashMap<(PathBuf, String), usize>>);

impl Catchers {
    fn note(&self, mutant: &Mutant, test: &str) {
        let mut counts = self.0.lock().expect("another mutant failed");
        *counts.entry((mutant.file.clone(), test.to_owned())).or_default() += 1;
    }

    fn count(&self, mutant: &Mutant, test: &Test) -> usize {
        let counts = self.0.lock().expect("another mutant failed");
        counts.get(&(mutant.file.clone(), test.name.clone())).copied().unwrap_or(0)
    }
}

/// How many folders and modules a test is in that the file is in, too.
fn nearness(mutant: &Mutant, test: &Test) -> usize {
    let file = mutant.file.with_extension("");
    let modules = file.iter().skip_while(|part| *part != "src").skip(1);
    modules.zip(test.name.split("::")).take_while(|(part, module)| part.to_str() == Some(module)).count()
}

fn run_one(folder: &Path, tests: &[Test], catchers: &Catchers, mutant: &Mutant) -> Result<Outcome> {
    let id = mutant.id.to_string();
    let switch = [("POLYCLAVE_MUTANT", OsStr::new(&id))];
    let mut tests: Vec<&Test> = tests.iter().filter(|test| test.reaches.contains(&mutant.id)).collect();
    if tests.is_empty() {
        return Ok(Outcome::NoTestReachesIt);
    }
    let promise = |test: &&Test| (Reverse((catchers.count(mutant, test), nearness(mutant, test))), test.took);
    tests.sort_by_cached_key(promise);
    let mut left = VecDeque::from(tests);
    let mut spent = Duration::ZERO;
    while let Some(first) = left.pop_front() {
        let (mut took, mut names) = (first.took, vec![&first.name]);
        // The next ones, if they are of the same program and fast.
        while let Some(next) = left.front()
            && next.program == first.program
            && took + next.took <= AT_ONCE
        {
            took += next.took;
            names.push(&next.name);
            left.pop_front();
        }
        if !spent.is_zero() && spent + took > MAX_TESTS {
            break;
        }
        spent += took;
        match run(folder, &first.program, &names, &switch, took * MAX_SLOWER + MAX_SLOWER_BY)? {
            Ended::Passed => {}
            Ended::Failed(test) => return Ok(Outcome::Caught(test.unwrap_or_else(|| first.name.clone()))),
            Ended::RanTooLong => return Ok(Outcome::RanTooLong),
        }
    }
    Ok(Outcome::Survived)
}
