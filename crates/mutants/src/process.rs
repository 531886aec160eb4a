//! Processes of tests, and several at a time.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use rustix::process::{Pid, Signal, kill_process_group};

/// The memory of a test, in KiB: a mutant may fill a vector without end.
const MAX_MEMORY: &str = "6291456";

/// How a process of tests ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Passed,
    /// With the first test that failed, if it was named.
    Failed(Option<String>),
    RanTooLong,
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

/// Calls this for each item, on as many threads as there are processors, and shows how far it is. The results
/// have the order of the items.
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
