//! Runs tests with a mutant.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::build::Built;
use crate::plan::Mutant;
use crate::reach::Test;
use crate::report::{Outcome, Results};

/// The memory of a test, in KiB: a mutant may fill a vector without end.
const MAX_MEMORY: &str = "6291456";
/// A process is started for tests that together take this long, or for one test that takes longer.
const AT_ONCE: Duration = Duration::from_secs(2);
/// A mutant survives if tests that together take this long do not notice it: those of the nearest module, then the fastest.
const MAX_TESTS: Duration = Duration::from_secs(30);
/// A mutant runs too long if its tests take this many times as long as without it,
const MAX_SLOWER: u32 = 10;
/// and this much.
const MAX_SLOWER_BY: Duration = Duration::from_secs(20);

/// How a process of tests ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Passed,
    /// With the first test that failed, if it was named.
    Failed(Option<String>),
    RanTooLong,
}

/// Runs each mutant with the tests that pass its switch.
pub fn run_all<'a>(
    built: &Built,
    mutants: impl Iterator<Item = &'a Mutant>,
    results: &mut Results,
) -> Result<()> {
    let mutants: Vec<&Mutant> = mutants.collect();
    let results = Mutex::new(results);
    let catchers = Catchers::default();
    in_parallel("mutants", &mutants, |_, mutant| {
        let outcome = run_one(built, &catchers, mutant)?;
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

fn run_one(built: &Built, catchers: &Catchers, mutant: &Mutant) -> Result<Outcome> {
    let id = mutant.id.to_string();
    let switch = [("POLYCLAVE_MUTANT", OsStr::new(&id))];
    let mut tests: Vec<&Test> = built.tests.iter().filter(|test| test.reaches.contains(&mutant.id)).collect();
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
        match run(&built.folder, &first.program, &names, &switch, took * MAX_SLOWER + MAX_SLOWER_BY)? {
            Ended::Passed => {}
            Ended::Failed(test) => return Ok(Outcome::Caught(test.unwrap_or_else(|| first.name.clone()))),
            Ended::RanTooLong => return Ok(Outcome::RanTooLong),
        }
    }
    Ok(Outcome::Survived)
}

/// Runs these tests of a program until the first one fails.
pub fn run(
    folder: &Path,
    program: &Path,
    tests: &[&String],
    environment: &[(&str, &OsStr)],
    limit: Duration,
) -> Result<Ended> {
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MAX_MEMORY}; exec \"$0\" \"$@\"")])
        .arg(program)
        .args(["--exact", "--test-threads", "2"])
        .args(tests)
        .envs(environment.iter().copied())
        .env("CARGO_MANIFEST_DIR", folder)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Tests start processes of their own.
        .process_group(0)
        .spawn()
        .context("sh does not start")?;
    let ended = wait(&mut child, limit);
    let group = Pid::from_child(&child);
    // Nothing is left to kill after an ordinary end.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait()?;
    ended
}

fn wait(child: &mut Child, limit: Duration) -> Result<Ended> {
    let begun = Instant::now();
    let output = child.stdout.take().context("no output")?;
    let (sender, lines) = mpsc::channel();
    // Ends when the processes that can write have ended.
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut passed = false;
    loop {
        match lines.recv_timeout(limit.saturating_sub(begun.elapsed())) {
            Ok(line) => {
                if let Some(test) =
                    line.strip_suffix(" ... FAILED").and_then(|line| line.strip_prefix("test "))
                {
                    return Ok(Ended::Failed(Some(test.to_owned())));
                }
                if line.starts_with("test result:") {
                    passed = line.starts_with("test result: ok");
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => return Ok(Ended::RanTooLong),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(if passed { Ended::Passed } else { Ended::Failed(None) })
}

/// Calls this for each item, on as many threads as there are processors, and shows how far it is. The results have the order of the items.
pub fn in_parallel<T: Sync, R: Send>(
    what: &'static str,
    items: &[T],
    call: impl Fn(usize, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let progress = ProgressBar::new(items.len() as u64).with_message(what);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let work = || {
            let mut results = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(at) else { return anyhow::Ok(results) };
                results.push((at, call(at, item)?));
                progress.inc(1);
                if progress.is_hidden() && at.is_multiple_of(50) {
                    println!("{what}: {at} of {}", items.len());
                }
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().expect("a thread of tests panicked")?);
        }
        anyhow::Ok(all)
    })?;
    progress.finish_and_clear();
    results.sort_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
