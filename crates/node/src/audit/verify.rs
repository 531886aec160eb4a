//! Checking a log: the whole of it, or its end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::line::{Line, MOST_LINE};
use super::{AuditError, Damage, Head, read_range};

/// Bytes of the end that are read first.
const TAIL: u64 = 64 << 10;

/// What a whole log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Number of lines.
    pub lines: u64,
    /// When the first was written; `None` if there is none.
    pub first: Option<String>,
    /// When the last was written.
    pub last: Option<String>,
    /// Number and hash of the last.
    pub head: Head,
}

/// Reads a log from its first line to its last. `noted` is what the store knows of its end: without it, a cut end or a log
/// that was written anew goes unnoticed.
pub fn verify(path: &Path, noted: Option<Head>) -> Result<Verified, AuditError> {
    let broken = |source| AuditError::Io { path: path.into(), source };
    let mut log = BufReader::new(File::open(path).map_err(broken)?);
    let mut verified = Verified { lines: 0, first: None, last: None, head: (0, [0; 32]) };
    let mut text = Vec::new();
    loop {
        text.clear();
        let longest = MOST_LINE as u64 + 1;
        (&mut log).take(longest).read_until(b'\n', &mut text).map_err(broken)?;
        if text.is_empty() {
            break;
        }
        let at = verified.lines + 1;
        let damaged = |damage| AuditError::Broken { path: path.into(), line: at, damage };
        let Some(whole) = text.strip_suffix(b"\n") else {
            let damage = if text.len() > MOST_LINE { Damage::Altered } else { Damage::Torn };
            return Err(damaged(damage));
        };
        let line = Line::parse(whole).ok_or_else(|| damaged(Damage::Altered))?;
        follows(&line, verified.head).map_err(damaged)?;
        if noted.is_some_and(|(seq, hash)| seq == line.seq && hash != line.hash) {
            return Err(AuditError::Rewritten { path: path.into(), noted: line.seq });
        }
        verified.head = line.head();
        verified.lines = at;
        verified.first.get_or_insert_with(|| line.time.clone());
        verified.last = Some(line.time);
    }
    not_cut(path, verified.head.0, noted)?;
    Ok(verified)
}

/// Whether a line comes after another.
fn follows(line: &Line, before: Head) -> Result<(), Damage> {
    let expected = before.0 + 1;
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

/// Where the last whole line ends.
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

/// Checks the end of a log of whole lines, as far back as the store knows it. Returns the last line.
pub(super) fn check_end(file: &File, len: u64, path: &Path, noted: Option<Head>) -> Result<Head, AuditError> {
    let broken = |source| AuditError::Io { path: path.into(), source };
    // A line that is not as it was written has a number only by counting from the beginning.
    let tampered = || match verify(path, None) {
        Err(e) => e,
        Ok(_) => broken(io::Error::other("it changed while it was read")),
    };
    let mut span = TAIL;
    loop {
        let from = len.saturating_sub(span);
        let bytes = read_range(file, from, len).map_err(broken)?;
        // What comes before the first line's end may be only half a line.
        let skipped = if from == 0 {
            0
        } else {
            bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1)
        };
        let mut head: Head = (0, [0; 32]);
        let mut first = None;
        for text in bytes[skipped..].split_inclusive(|b| *b == b'\n') {
            let line = text.strip_suffix(b"\n").and_then(Line::parse).ok_or_else(tampered)?;
            if first.is_some() || from == 0 {
                follows(&line, head).map_err(|_| tampered())?;
            }
            if noted.is_some_and(|(seq, hash)| seq == line.seq && hash != line.hash) {
                return Err(AuditError::Rewritten { path: path.into(), noted: line.seq });
            }
            first.get_or_insert(line.seq);
            head = line.head();
        }
        not_cut(path, head.0, noted)?;
        let reaches = first.is_some_and(|first| noted.is_none_or(|(seq, _)| first <= seq));
        if from == 0 || reaches {
            return Ok(head);
        }
        span *= 2;
    }
}
