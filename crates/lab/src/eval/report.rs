//! The results for the entries of a file of known answers.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::Guarantee;
use crate::say;

/// The results for all entries.
#[derive(Default)]
pub struct Report {
    file: String,
    passed: usize,
    failures: Vec<Failure>,
    skips: Vec<Skips>,
}

#[derive(Serialize)]
struct Failure {
    entry: usize,
    cipher: String,
    reason: String,
}

/// Entries of one cipher that were skipped for the same reason.
#[derive(Serialize)]
struct Skips {
    cipher: String,
    count: usize,
    reason: &'static str,
}

#[derive(Serialize)]
struct Document<'a> {
    protocol: &'a str,
    adversary: &'a str,
    verified: bool,
    passed: usize,
    failed: usize,
    skipped: usize,
    failures: &'a [Failure],
    skips: &'a [Skips],
}

impl Report {
    /// A report on a file of which no entry was checked yet.
    pub fn of(file: &Path) -> Report {
        Report { file: file.display().to_string(), ..Report::default() }
    }

    /// The failures in the order of the file.
    pub fn in_order(mut self) -> Report {
        self.failures.sort_by_key(|failure| failure.entry);
        self
    }

    /// Counts an entry as passed if nothing was wrong with it.
    pub fn judge(&mut self, entry: usize, cipher: &str, wrong: Vec<String>) {
        match wrong.is_empty() {
            true => self.passed += 1,
            false => self.fail(entry, cipher, wrong.join("; ")),
        }
    }

    /// Counts an entry as failed.
    pub fn fail(&mut self, entry: usize, cipher: &str, reason: String) {
        self.failures.push(Failure { entry, cipher: cipher.into(), reason });
    }

    /// Counts an entry as skipped.
    pub fn skip(&mut self, cipher: &str, reason: &'static str) {
        match self.skips.iter_mut().find(|s| s.cipher == cipher && s.reason == reason) {
            Some(skips) => skips.count += 1,
            None => self.skips.push(Skips { cipher: cipher.into(), count: 1, reason }),
        }
    }

    fn skipped(&self) -> usize {
        self.skips.iter().map(|skips| skips.count).sum()
    }

    /// Success only if something passed and nothing failed: a run that checked nothing is a failure.
    pub fn exit_code(&self) -> ExitCode {
        if self.passed > 0 && self.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Prints failures and skipped entries, with the counts in the last line; or one JSON document.
    pub fn print(&self, guarantee: &Guarantee, json: bool) -> Result<()> {
        let (passed, failed, skipped) = (self.passed, self.failures.len(), self.skipped());
        if passed + failed == 0 {
            eprintln!(
                "error: nothing was checked: every entry of {} that was asked for was skipped",
                self.file
            );
        }
        if json {
            let document = Document {
                protocol: guarantee.protocol,
                adversary: &guarantee.adversary,
                verified: guarantee.verified,
                passed,
                failed,
                skipped,
                failures: &self.failures,
                skips: &self.skips,
            };
            say!("{}", serde_json::to_string_pretty(&document)?);
            return Ok(());
        }
        for Skips { cipher, count, reason } in &self.skips {
            say!("skipped {count} of {cipher}: {reason}");
        }
        for Failure { entry, cipher, reason } in &self.failures {
            say!("failed: {}, entry {entry} ({cipher}): {reason}", self.file);
        }
        say!("{}", guarantee.line());
        say!("{passed} passed, {failed} failed, {skipped} skipped");
        Ok(())
    }
}
