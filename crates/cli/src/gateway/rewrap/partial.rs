//! The output until it is complete: `OUT.partial` has the lines that are done, and `OUT.partial.json` says
//! how many these are, of which input, and which of them failed. It is written after the lines are on the
//! disk. So what it does not count is cut off when an interrupted run goes on.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use polyclave_config::private;
use polyclave_gateway::Rewrapped;
use serde::{Deserialize, Serialize};

use super::lines::Line;

/// See the [module](self).
pub(super) struct Partial {
    path: PathBuf,
    partial: PathBuf,
    state_path: PathBuf,
    file: File,
    state: State,
}

/// How far a run is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    lines: u64,
    /// Lines with a new ciphertext.
    rewrapped: u64,
    /// Bytes of the output.
    bytes: u64,
    /// The digest of the lines of the input.
    digest: String,
    /// Lines that failed, with the reason.
    failed: Vec<(u64, String)>,
}

impl Partial {
    /// Begins an output, or goes on with one.
    pub(super) fn open(path: &Path, (resume, force): (bool, bool)) -> Result<Partial> {
        let beside = |more: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(more);
            PathBuf::from(name)
        };
        let (partial, state_path) = (beside(".partial"), beside(".partial.json"));
        let shown = path.display();
        ensure!(path.file_name().is_some(), "{shown} is not the name of a file");
        ensure!(
            force || !path.exists(),
            "{shown} is there already; give another name, or --force to replace it"
        );
        ensure!(
            resume || force || !partial.exists(),
            "{} is of a run that was interrupted; --resume goes on with it, --force begins anew",
            partial.display()
        );
        let broken = || format!("cannot write {}", partial.display());
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&partial);
        let mut file = file.with_context(broken)?;
        ensure!(file.try_lock().is_ok(), "another run writes {}; wait for it", partial.display());
        let state = match resume {
            true => State::read(&state_path)?,
            false => State::default(),
        };
        let there = file.metadata().with_context(broken)?.len();
        ensure!(
            state.bytes <= there,
            "{} is shorter than {} says; --force begins anew",
            partial.display(),
            state_path.display()
        );
        if !resume {
            remove(&state_path)?;
        }
        file.set_len(state.bytes).and_then(|()| file.seek(SeekFrom::End(0))).with_context(broken)?;
        Ok(Partial { path: path.into(), partial, state_path, file, state })
    }

    /// The lines that are done.
    pub(super) fn done(&self) -> u64 {
        self.state.lines
    }

    /// Those of them that have a new ciphertext.
    pub(super) fn rewrapped(&self) -> u64 {
        self.state.rewrapped
    }

    /// The digest of these lines of the input.
    pub(super) fn digest(&self) -> &str {
        &self.state.digest
    }

    /// The lines that failed, with the reasons.
    pub(super) fn failed(&self) -> &[(u64, String)] {
        &self.state.failed
    }

    /// Adds lines, with the results of those that had a ciphertext, and the digest of all lines of the input
    /// so far. Returns those that failed.
    pub(super) fn add(
        &mut self,
        batch: &[Line],
        anew: Vec<Rewrapped>,
        digest: String,
    ) -> Result<&[(u64, String)]> {
        let failed_before = self.state.failed.len();
        let (mut anew, mut text) = (anew.into_iter(), Vec::new());
        for line in batch {
            self.state.lines += 1;
            let outcome = match line.ciphertext() {
                Some(_) => anew.next().context("the gateway gave too few results")?,
                None if line.is_empty() => Ok(String::new()),
                None => Err("it is no text".into()),
            };
            match outcome {
                Ok(new) => {
                    self.state.rewrapped += u64::from(!new.is_empty());
                    text.extend_from_slice(new.as_bytes());
                }
                Err(error) => {
                    text.extend_from_slice(line.bytes());
                    self.state.failed.push((self.state.lines, error));
                }
            }
            text.push(b'\n');
        }
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("cannot write {}", self.partial.display()))?;
        self.state.bytes += text.len() as u64;
        self.state.digest = digest;
        private::write(&self.state_path, &serde_json::to_vec(&self.state)?)?;
        Ok(&self.state.failed[failed_before..])
    }

    /// All lines are done: the file gets its name.
    pub(super) fn finish(self) -> Result<()> {
        let renamed = self.file.sync_all().and_then(|()| std::fs::rename(&self.partial, &self.path));
        renamed.with_context(|| format!("cannot write {}", self.path.display()))?;
        remove(&self.state_path)
    }
}

impl Default for State {
    fn default() -> State {
        let digest = blake3::Hasher::new().finalize().to_hex().to_string();
        State { lines: 0, rewrapped: 0, bytes: 0, digest, failed: Vec::new() }
    }
}

impl State {
    /// As it was written; that of a run which has done nothing, if it was not.
    fn read(path: &Path) -> Result<State> {
        match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                format!("{} is not what this command writes; --force begins anew", path.display())
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(State::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            bail!("cannot remove {}: {error}", path.display())
        }
        _ => Ok(()),
    }
}
