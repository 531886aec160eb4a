//! The end of a log: the file that is being written, its last line, and whether more can be written.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use polyclave_config::AuditSettings;

use super::line::Line;
use super::syslog::Syslog;
use super::{AuditError, DISCARDED, Event, Gap, Head, files, gap, now};

/// The state of the end of a log that is being written.
#[derive(Debug)]
pub(super) struct End {
    path: PathBuf,
    file: File,
    /// The length of the file, which has only whole lines.
    len: u64,
    pub(super) head: Head,
    /// The latest mark of the store that the log was told.
    pub(super) mark: u64,
    pub(super) gap: Option<Gap>,
    /// Why no line can be written.
    pub(super) failed: Option<String>,
    syslog: Option<Syslog>,
    most_bytes: u64,
    keep: Option<usize>,
}

impl End {
    pub(super) fn new(
        path: &Path,
        (file, len): (File, u64),
        (head, mark): (Head, u64),
        settings: &AuditSettings,
    ) -> End {
        End {
            path: path.into(),
            file,
            len,
            head,
            mark,
            gap: None,
            failed: None,
            syslog: settings.syslog.clone().map(Syslog::new),
            most_bytes: settings.rotate_mib << 20,
            keep: settings.keep_files,
        }
    }

    /// Cuts off half a line at the end of the file.
    pub(super) fn cut(&self) -> Result<(), AuditError> {
        self.try_cut().map_err(|e| self.broken(e))
    }

    /// Adds a line; begins another file if this one is full.
    pub(super) fn write(&mut self, event: &Event) -> Result<(), AuditError> {
        let text = self.put(event)?;
        self.send(&text);
        if self.len >= self.most_bytes {
            // On an error the log continues in the same file for a while.
            if let Err(e) = self.begin_next() {
                tracing::warn!(error = %e, "no other file of the audit log could be begun");
            }
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), AuditError> {
        self.file.sync_data().map_err(|e| self.broken(e))
    }

    /// Begins a gap with an error, or continues the present one.
    pub(super) fn open_gap(&mut self, e: &AuditError, serves: bool) -> &mut Gap {
        if self.failed.replace(e.to_string()).is_none() {
            let then = if serves { "served without a line" } else { "refused" };
            tracing::error!(error = %e, requests = then, "the audit log cannot be written");
        }
        self.gap.get_or_insert_with(|| gap::begun(now()))
    }

    /// Writes the line of a gap and syncs it to the disk. Only then is the gap over.
    pub(super) fn close_gap(&mut self) -> Result<(), AuditError> {
        let Some(open) = self.gap.clone() else { return Ok(()) };
        let (len, head) = (self.len, self.head);
        let detail = gap::detail(&open);
        let event =
            Event { blocks: open.events, detail: &detail, ..Event::of_node(gap::OPERATION, "unlogged") };
        let text = self.put(&event)?;
        if let Err(e) = self.sync() {
            (self.len, self.head) = (len, head);
            return Err(e);
        }
        (self.gap, self.failed) = (None, None);
        self.send(&text);
        let Gap { since, events, served } = open;
        tracing::warn!(since, events, served, "the audit log can be written again");
        Ok(())
    }

    /// Adds a line to the file, and sends it nowhere else.
    fn put(&mut self, event: &Event) -> Result<String, AuditError> {
        let line = Line::new(event, now(), self.head, self.mark);
        let text = line.to_text();
        self.try_put(&text).map_err(|e| self.broken(e))?;
        self.head = line.head();
        Ok(text)
    }

    fn try_put(&mut self, text: &str) -> io::Result<()> {
        #[cfg(test)]
        super::testing::refuse_if_full(&self.path)?;
        // Cuts off what a partly failed write has left.
        self.try_cut()?;
        if let Err(e) = self.file.write_all(text.as_bytes()) {
            // If this fails, too, the next line tries again.
            let _ = self.try_cut();
            return Err(e);
        }
        self.len += text.len() as u64;
        Ok(())
    }

    fn try_cut(&self) -> io::Result<()> {
        if self.file.metadata()?.len() > self.len { self.file.set_len(self.len) } else { Ok(()) }
    }

    fn send(&mut self, text: &str) {
        if let Some(syslog) = &mut self.syslog {
            syslog.send(text);
        }
    }

    /// Continues in another file, and deletes earlier files beyond the number that the settings say.
    fn begin_next(&mut self) -> Result<(), AuditError> {
        self.sync()?;
        self.file = files::begin_next(&self.path, self.head.0)?;
        self.len = 0;
        let Some(keep) = self.keep else { return Ok(()) };
        let closed = files::closed(&self.path).map_err(|e| self.broken(e))?;
        let Some((last, _)) = closed.len().checked_sub(keep + 1).map(|at| &closed[at]) else { return Ok(()) };
        // First a line says that these files are not missing by mistake. Only then are they removed.
        let text = self.put(&Event { blocks: *last, ..Event::of_node(DISCARDED, "as-set") })?;
        self.send(&text);
        self.sync()?;
        let mut discarded = closed.iter().filter(|(number, _)| number <= last);
        discarded.try_for_each(|(_, path)| fs::remove_file(path)).map_err(|e| self.broken(e))
    }

    fn broken(&self, cause: io::Error) -> AuditError {
        AuditError::Io { path: self.path.clone(), cause }
    }
}
