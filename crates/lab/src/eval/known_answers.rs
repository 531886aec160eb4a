//! Checks a file of known answers in both directions.
//!
//! Entries of one cipher share a session. Entries of one key share an evaluation, with a lane for each block.

#[cfg(test)]
mod fuzz;

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use polyclave_cipher::Direction;
use serde_json::Value;

use super::evaluation::{Evaluation, Job, Outcome, Pass};
use super::report::Report;
use super::target::Target;
use crate::circuits::Form;
use crate::options::{ProtocolOptions, hexadecimal};

/// The most bytes of a file of known answers; a larger file is something else.
const MAX_BYTES: u64 = 64 << 20;

/// Checks the entries of a file, or those of one cipher.
pub fn check(
    file: &Path,
    filter: Option<&str>,
    form: Form,
    protocol: &ProtocolOptions,
    key_schedule: bool,
) -> Result<Report> {
    let entries = read(file)?;
    let wanted = |entry: &Value| match (filter, name(entry)) {
        (Some(filter), Some(name)) => name.eq_ignore_ascii_case(filter),
        _ => true,
    };
    let mut report = Report::of(file);
    let mut groups: Vec<Group> = Vec::new();
    let mut targets = Targets { form, known: HashMap::new() };
    let mut seen = 0;
    for (number, entry) in (1..).zip(&entries).filter(|(_, entry)| wanted(entry)) {
        seen += 1;
        let cipher = name(entry).unwrap_or("no cipher");
        match classify(number, entry, &mut targets) {
            Ok(Classified::Answer(target, answer)) => {
                match groups.iter_mut().find(|group| group.target.name == target.name) {
                    Some(group) => group.answers.push(answer),
                    None => groups.push(Group { target: target.clone(), answers: vec![answer] }),
                }
            }
            Ok(Classified::Skip(reason)) => report.skip(cipher, reason),
            Err(error) => report.fail(number, cipher, format!("{error:#}")),
        }
    }
    if let Some(filter) = filter {
        ensure!(seen > 0, "{} has no entry of cipher '{filter}'", file.display());
    }
    ensure!(seen > 0, "{} is an empty list: nothing to check", file.display());
    let progress = progress_bar(groups.iter().map(Group::blocks).sum());
    for group in &groups {
        progress.set_message(group.target.name.clone());
        group.check(protocol, key_schedule, &progress, &mut report)?;
    }
    progress.finish_and_clear();
    Ok(report.in_order())
}

fn read(file: &Path) -> Result<Vec<Value>> {
    let shown = file.display();
    let cannot = || format!("{shown} cannot be read");
    let metadata = std::fs::metadata(file).with_context(cannot)?;
    ensure!(metadata.is_file(), "{shown} is no regular file");
    ensure!(metadata.len() <= MAX_BYTES, "{shown} has {} bytes; the most is {MAX_BYTES}", metadata.len());
    let text = std::fs::read_to_string(file).with_context(cannot)?;
    parse(&shown.to_string(), &text)
}

/// The entries of a list, which is called `shown` in errors.
fn parse(shown: &str, text: &str) -> Result<Vec<Value>> {
    match serde_json::from_str(text).with_context(|| format!("{shown} is not JSON"))? {
        Value::Array(entries) => Ok(entries),
        _ => bail!("{shown} is not a list of known answers: it must be a JSON list of {{cipher, key, …}}"),
    }
}

fn name(entry: &Value) -> Option<&str> {
    entry.get("cipher")?.as_str()
}

/// A known answer with checked sizes.
struct Answer {
    number: usize,
    key: Vec<u8>,
    /// One tweak for each block; empty if the cipher takes none.
    tweaks: Vec<u8>,
    plaintext: Vec<u8>,
    ciphertext: Vec<u8>,
}

/// The ciphers that the names in a file stand for, or why their entries are skipped. A cipher's circuits are
/// built at its first entry.
struct Targets {
    form: Form,
    known: HashMap<String, Result<Target, &'static str>>,
}

impl Targets {
    fn find(&mut self, name: &str) -> &Result<Target, &'static str> {
        self.known.entry(name.to_ascii_lowercase()).or_insert_with(|| {
            Target::named(name, self.form).map_err(|_| match Target::is_mode(name) {
                true => "a mode, not a cipher of this version",
                false => "not a cipher of this version",
            })
        })
    }
}

enum Classified<'a> {
    Answer(&'a Target, Answer),
    Skip(&'static str),
}

/// Parses an entry; an error if it is malformed.
fn classify<'a>(number: usize, entry: &Value, targets: &'a mut Targets) -> Result<Classified<'a>> {
    ensure!(entry.is_object(), "the entry is no object {{cipher, key, plaintext, ciphertext}}");
    let name = name(entry).context("the entry has no \"cipher\" with a name")?;
    let target = match targets.find(name) {
        Ok(target) => target,
        Err(reason) => return Ok(Classified::Skip(reason)),
    };
    let empty = |field: &str| entry.get(field).is_none_or(|v| v.is_null() || v.as_str() == Some(""));
    let takes_tweak = !target.round_keys && target.cipher.tweak_bytes > 0;
    if ["nonce", "ad", "tag"].into_iter().any(|field| !empty(field)) || !(takes_tweak || empty("tweak")) {
        return Ok(Classified::Skip("has a tweak, nonce, ad or tag, which the cipher does not take"));
    }
    let field = |field: &str| {
        let text = entry.get(field).with_context(|| format!("the entry has no \"{field}\""))?;
        hexadecimal(field, text.as_str().with_context(|| format!("\"{field}\" is no string of hex"))?)
    };
    let (key, plaintext, ciphertext) = (field("key")?, field("plaintext")?, field("ciphertext")?);
    target.check_key(&key)?;
    match target.round_keys {
        true => ensure!(plaintext.is_empty(), "a key schedule takes no plaintext"),
        false => {
            target.check_blocks("plaintext", &plaintext)?;
            let (p, c) = (plaintext.len(), ciphertext.len());
            ensure!(p == c, "the plaintext has {p} bytes and the ciphertext {c}");
        }
    }
    let blocks = plaintext.len() / target.cipher.block_bytes;
    let tweaks = match takes_tweak {
        true => target.tweaks("the tweak", &field("tweak")?, blocks)?,
        false => Vec::new(),
    };
    Ok(Classified::Answer(target, Answer { number, key, tweaks, plaintext, ciphertext }))
}

/// The answers of one cipher.
struct Group {
    target: Target,
    answers: Vec<Answer>,
}

impl Group {
    /// How many steps the progress bar counts.
    fn blocks(&self) -> usize {
        if self.target.round_keys {
            return self.by_key().len();
        }
        let bytes: usize = self.answers.iter().map(|answer| answer.plaintext.len()).sum();
        bytes / self.target.cipher.block_bytes * self.target.directions().len()
    }

    /// The answers of each key, in the order of the file.
    fn by_key(&self) -> Vec<Vec<&Answer>> {
        let mut at = HashMap::new();
        let mut keys: Vec<Vec<&Answer>> = Vec::new();
        for answer in &self.answers {
            let index = *at.entry(&answer.key).or_insert_with(|| {
                keys.push(Vec::new());
                keys.len() - 1
            });
            keys[index].push(answer);
        }
        keys
    }

    fn check(
        &self,
        protocol: &ProtocolOptions,
        key_schedule: bool,
        progress: &ProgressBar,
        report: &mut Report,
    ) -> Result<()> {
        let directions = self.target.directions();
        let by_key = self.by_key();
        let job = |answers: &Vec<&Answer>| {
            let blocks = |d: Direction| answers.iter().flat_map(|a| a.given(d)).copied().collect();
            let tweaks: Vec<u8> = answers.iter().flat_map(|a| &a.tweaks).copied().collect();
            let pass = |d: &Direction| Pass { direction: *d, blocks: blocks(*d), tweaks: tweaks.clone() };
            let passes = directions.iter().map(pass).collect();
            Job { key: answers[0].key.clone(), passes }
        };
        let jobs: Vec<Job> = by_key.iter().map(job).collect();
        let evaluation = Evaluation { target: &self.target, key_schedule, jobs: &jobs, progress };
        for (answers, outcomes) in by_key.iter().zip(evaluation.run(&protocol.evaluator()?)?) {
            match self.target.round_keys {
                true => self.compare_round_keys(answers, &outcomes, report),
                false => self.compare_blocks(answers, &directions, &outcomes, report),
            }
        }
        Ok(())
    }

    fn compare_round_keys(&self, answers: &[&Answer], outcomes: &[Outcome], report: &mut Report) {
        for answer in answers {
            let wrong = outcomes.iter().filter(|o| o.output != answer.ciphertext);
            let wrong = wrong.map(|o| difference("the key schedule", &o.output, &answer.ciphertext));
            report.judge(answer.number, &self.target.name, wrong.collect());
        }
    }

    fn compare_blocks(
        &self,
        answers: &[&Answer],
        directions: &[Direction],
        outcomes: &[Outcome],
        report: &mut Report,
    ) {
        let mut start = 0;
        for answer in answers {
            let range = start..start + answer.plaintext.len();
            start = range.end;
            let mut wrong = Vec::new();
            for (direction, outcome) in directions.iter().zip(outcomes) {
                let (what, due) = match direction {
                    Direction::Encrypt => ("encryption", &answer.ciphertext),
                    Direction::Decrypt => ("decryption", &answer.plaintext),
                };
                let ours = &outcome.output[range.clone()];
                if ours != *due {
                    wrong.push(difference(what, ours, due));
                }
            }
            report.judge(answer.number, &self.target.name, wrong);
        }
    }
}

impl Answer {
    fn given(&self, direction: Direction) -> &[u8] {
        match direction {
            Direction::Encrypt => &self.plaintext,
            Direction::Decrypt => &self.ciphertext,
        }
    }
}

fn difference(what: &str, ours: &[u8], due: &[u8]) -> String {
    format!("{what} gives {}, the file has {}", hex::encode(ours), hex::encode(due))
}

/// A progress bar on standard error, if that is a terminal.
fn progress_bar(blocks: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} blocks, {msg}");
    ProgressBar::new(blocks as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
