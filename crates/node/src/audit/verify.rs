//! Verifies a log: all of its files, or only its end.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::line::{Line, MAX_LINE};
use super::{
    AuditError, BEGUN, DISCARDED, Damage, Gap, Head, RESTORED, STARTED, STOPPED, files, gap, read_range,
};

/// The bytes of the end that are read first.
const TAIL: u64 = 64 << 10;

/// Summary of a whole log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Number of lines.
    pub lines: u64,
    /// Number of files.
    pub files: usize,
    /// When the first was written; `None` if there is none.
    pub first: Option<String>,
    /// When the last was written.
    pub last: Option<String>,
    /// Number and hash of the last.
    pub head: Head,
    /// Times in which no line could be written, each with the time when it was over.
    pub gaps: Vec<(Gap, String)>,
    /// Requests without a line about their end: the node was killed, or the line could not be written.
    pub unended: usize,
    /// Starts of the node after which it was not stopped in order, not counting the last one.
    pub kills: u64,
    /// The last record that is no longer here because the node is set to keep no more, or was restored from a
    /// backup; 0 if all are here.
    pub discarded: u64,
}

/// The state between lines.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) found: Verified,
    begun: HashSet<[u8; 16]>,
    running: bool,
    /// The first record that is here.
    first: u64,
    /// Records up to this one may be missing.
    excused: u64,
}

/// Reads a log from its first line to its last, over all of its files. `noted` is what the store knows about
/// its end: without it, a cut end or a rewritten log goes unnoticed.
pub fn verify(path: &Path, noted: Option<Head>) -> Result<Verified, AuditError> {
    let broken = |cause| AuditError::Io { path: path.into(), cause };
    let files = files::open_files(path).map_err(broken)?;
    let mut reading = Reading::default();
    reading.found.files = files.len();
    let removed = |path: &Path| AuditError::Broken { path: path.into(), line: 1, damage: Damage::Removed };
    for (path, file) in &files {
        let outcome = read_file(path, file, noted, &mut reading);
        // The first of two damages is reported.
        if outcome.is_err() && reading.is_beheaded() {
            return Err(removed(&files[0].0));
        }
        outcome?;
    }
    if reading.is_beheaded() {
        return Err(removed(&files[0].0));
    }
    let Reading { mut found, begun, first, .. } = reading;
    not_cut(path, found.head.0, noted)?;
    (found.unended, found.discarded) = (begun.len(), first.saturating_sub(1));
    Ok(found)
}

fn read_file(path: &Path, file: &File, noted: Option<Head>, reading: &mut Reading) -> Result<(), AuditError> {
    let broken = |cause| AuditError::Io { path: path.into(), cause };
    let mut log = BufReader::new(file);
    let mut text = Vec::new();
    for at in 1.. {
        text.clear();
        let longest = MAX_LINE as u64 + 1;
        (&mut log).take(longest).read_until(b'\n', &mut text).map_err(broken)?;
        if text.is_empty() {
            break;
        }
        let damaged = |damage| AuditError::Broken { path: path.into(), line: at, damage };
        let Some(whole) = text.strip_suffix(b"\n") else {
            let damage = if text.len() > MAX_LINE { Damage::Altered } else { Damage::Torn };
            return Err(damaged(damage));
        };
        let line = Line::parse(whole).ok_or_else(|| damaged(Damage::Altered))?;
        reading.follow(&line).map_err(damaged)?;
        if noted.is_some_and(|(seq, hash)| seq == line.seq && hash != line.hash) {
            return Err(AuditError::Rewritten { path: path.into(), noted: line.seq });
        }
        reading.take(line);
    }
    Ok(())
}

impl Reading {
    /// Records from the first on are missing, and no line explains why.
    pub(super) fn is_beheaded(&self) -> bool {
        self.first > self.excused.saturating_add(1)
    }

    pub(super) fn follow(&mut self, line: &Line) -> Result<(), Damage> {
        if self.found.lines == 0 {
            self.first = line.seq;
            return if line.seq == 0 { Err(Damage::Altered) } else { Ok(()) };
        }
        follows(line, self.found.head)
    }

    pub(super) fn take(&mut self, line: Line) {
        let found = &mut self.found;
        match line.operation.as_str() {
            DISCARDED | RESTORED => self.excused = self.excused.max(line.blocks),
            STARTED => found.kills += u64::from(std::mem::replace(&mut self.running, true)),
            STOPPED => self.running = false,
            _ => {}
        }
        found.gaps.extend(gap::of(&line).map(|found| (found, line.time.clone())));
        // The lines about faults of other nodes have the request's id, too.
        let of_others = line.outcome.contains('-');
        if line.outcome == BEGUN {
            self.begun.insert(line.request);
        } else if !of_others {
            self.begun.remove(&line.request);
        }
        found.head = line.head();
        found.lines += 1;
        found.first.get_or_insert_with(|| line.time.clone());
        found.last = Some(line.time);
    }
}

/// Checks that a line follows another.
fn follows(line: &Line, before: Head) -> Result<(), Damage> {
    // A log is foreign text: no number follows the largest one.
    let Some(expected) = before.0.checked_add(1) else { return Err(Damage::Inserted) };
    match line.seq {
        seq if seq > expected => Err(Damage::Removed),
        seq if seq < expected => Err(Damage::Inserted),
        _ if line.previous != before.1 => Err(Damage::Replaced),
        _ => Ok(()),
    }
}

fn not_cut(path: &Path, last: u64, noted: Option<Head>) -> Result<(), AuditError> {
    match noted {
        Some((noted, _)) if noted > last => Err(AuditError::Cut { path: path.into(), last, noted }),
        _ => Ok(()),
    }
}

/// The offset at which the last whole line ends.
pub(super) fn whole_lines(file: &File, len: u64) -> io::Result<u64> {
    let mut to = len;
    while to > 0 {
        let from = to.saturating_sub(TAIL);
        let bytes = read_range(file, from, to)?;
        if let Some(at) = bytes.iter().rposition(|b| *b == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        to = from;
    }
    Ok(0)
}

/// The record with which a file of whole lines begins; `None` if it has none, or is damaged there.
pub(super) fn first_record(file: &File, len: u64) -> io::Result<Option<u64>> {
    let bytes = read_range(file, 0, len.min(MAX_LINE as u64))?;
    let text = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    Ok(Line::parse(text).map(|line| line.seq))
}

/// The last line of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    pub(super) head: Head,
    /// The store's mark in that line.
    pub(super) mark: u64,
}

/// Checks the end of one file of whole lines, back to the line that the store knows, and returns its last
/// line. `before` is the end of the file before this one; without it, the two are not compared.
pub(super) fn check_end(
    file: &File,
    len: u64,
    log: &Path,
    path: &Path,
    before: Option<Head>,
    noted: Option<Head>,
) -> Result<Last, AuditError> {
    let broken = |cause| AuditError::Io { path: path.into(), cause };
    // A damaged line has no number of its own: it must be counted from the beginning.
    let tampered = || match verify(log, None) {
        Err(e) => e,
        Ok(_) => broken(io::Error::other("it changed while it was read")),
    };
    let mut span = TAIL;
    loop {
        let from = len.saturating_sub(span);
        let bytes = read_range(file, from, len).map_err(broken)?;
        // The bytes before the end of the first line may be only half a line.
        let skipped = if from == 0 {
            0
        } else {
            bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1)
        };
        let mut head = before.filter(|_| from == 0);
        let (mut first, mut mark) = (None, 0);
        for text in bytes[skipped..].split_inclusive(|b| *b == b'\n') {
            let line = text.strip_suffix(b"\n").and_then(Line::parse).ok_or_else(tampered)?;
            if let Some(head) = head {
                follows(&line, head).map_err(|_| tampered())?;
            }
            if noted.is_some_and(|(seq, hash)| seq == line.seq && hash != line.hash) {
                return Err(AuditError::Rewritten { path: path.into(), noted: line.seq });
            }
            first.get_or_insert(line.seq);
            (head, mark) = (Some(line.head()), line.mark);
        }
        let reaches = first.is_some_and(|first| noted.is_none_or(|(seq, _)| first <= seq));
        if from == 0 || reaches {
            return Ok(Last { head: head.unwrap_or_default(), mark });
        }
        span *= 2;
    }
}

/// Checks that a log does not end before the line that the store knows.
pub(super) fn check_length(path: &Path, head: Head, noted: Option<Head>) -> Result<(), AuditError> {
    not_cut(path, head.0, noted)
}
