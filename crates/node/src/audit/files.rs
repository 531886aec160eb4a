//! The files of a log: `audit.log`, which is being written, and beside it the full ones, in the order of
//! their names: `audit-000000012345.log` ends with record 12345.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use polyclave_config::private;

use super::AuditError;
use crate::error::system;

const CLOSED: &str = "audit-";
const ENDING: &str = ".log";
const DIGITS: usize = 12;
/// How long another process may take to give a file back: it ends, or it has the file from the process that
/// started it, until it runs its own program.
const RELEASING: Duration = Duration::from_secs(1);

/// The full files of the log at a path, in order, each with the number of its last record.
pub(super) fn closed(log: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut closed = Vec::new();
    for entry in fs::read_dir(private::parent(log))? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|n| n.strip_prefix(CLOSED)).and_then(|n| n.strip_suffix(ENDING));
        let number = number.filter(|n| n.len() >= DIGITS).and_then(|n| n.parse().ok());
        closed.extend(number.map(|last| (last, log.with_file_name(name))));
    }
    closed.sort();
    Ok(closed)
}

/// Opens all files of a log, in order. They are a consistent state, although a running node may begin another
/// file meanwhile.
pub fn open_files(log: &Path) -> io::Result<Vec<(PathBuf, File)>> {
    loop {
        let before = closed(log)?;
        let paths = before.iter().map(|(_, path)| path.clone());
        let mut files = Vec::new();
        for path in paths {
            files.push((path.clone(), File::open(&path)?));
        }
        match File::open(log) {
            Ok(file) => files.push((log.into(), file)),
            // After a crash between two files, `audit.log` is missing.
            Err(e) if e.kind() == io::ErrorKind::NotFound && !files.is_empty() => {}
            Err(e) => return Err(e),
        }
        if closed(log)? == before {
            return Ok(files);
        }
    }
}

/// Opens or creates a file of a log, to be written by this process alone.
pub(super) fn open(path: &Path) -> Result<File, AuditError> {
    let broken = |cause| AuditError::Io { path: path.into(), cause };
    let fresh = !path.exists();
    let file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path).map_err(broken)?;
    private::check_mode(&file, path)?;
    lock_once_released(&file).map_err(|e| match e {
        TryLockError::WouldBlock => AuditError::InUse { path: path.into() },
        TryLockError::Error(e) => broken(e),
    })?;
    if fresh {
        private::sync_dir(private::parent(path))?;
    }
    Ok(file)
}

/// Locks a file, and waits for a moment if another process has it.
fn lock_once_released(file: &File) -> Result<(), TryLockError> {
    let until = Instant::now() + RELEASING;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(RELEASING / 20),
            outcome => return outcome,
        }
    }
}

/// Closes the file that is being written, which ends with a given record, and begins another one. If a crash
/// interrupts this, the file is closed, and the next start begins the other one. On an error nothing has
/// changed.
pub(super) fn begin_next(log: &Path, last: u64) -> Result<File, AuditError> {
    let broken = |cause| AuditError::Io { path: log.into(), cause };
    let name = log.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let next = log.with_file_name(format!("{name}.next"));
    // Left by a crash during an earlier attempt.
    let _ = fs::remove_file(&next);
    let file = open(&next)?;
    let closed = log.with_file_name(format!("{CLOSED}{last:0DIGITS$}{ENDING}"));
    let renamed = fs::rename(log, &closed).and_then(|()| {
        fs::rename(&next, log).inspect_err(|_| {
            let _ = fs::rename(&closed, log);
        })
    });
    if let Err(e) = renamed {
        let _ = fs::remove_file(&next);
        return Err(broken(e));
    }
    if let Err(e) = private::sync_dir(private::parent(log)) {
        // The names are already changed; a power failure may undo that.
        tracing::warn!(error = %e, "the names of the audit log's files were not synced");
    }
    Ok(file)
}

/// Moves all files of a log to a new directory. Returns the directory if there were any files.
pub(crate) fn set_aside(log: &Path, aside: &Path) -> crate::Result<Option<PathBuf>> {
    let broken = |e: io::Error| system(format!("cannot move {}: {e}", log.display()));
    let mut files: Vec<PathBuf> = closed(log).map_err(broken)?.into_iter().map(|(_, path)| path).collect();
    files.extend(log.exists().then(|| log.to_path_buf()));
    if files.is_empty() {
        return Ok(None);
    }
    private::make_dir(aside).map_err(system)?;
    // In order: if this is interrupted, the end of the log remains.
    for file in files {
        fs::rename(&file, aside.join(file.file_name().unwrap_or_default())).map_err(broken)?;
    }
    private::sync_dir(private::parent(log)).map_err(system)?;
    Ok(Some(aside.into()))
}
