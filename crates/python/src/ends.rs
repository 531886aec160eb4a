//! Where data come from and go to: bytes of Python, files, and any object with `read` or `write`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_client::{Error, Result};
use polyclave_config::private::Draft;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::Data;
use crate::errors::{self, of_file};

/// Something that can be read twice.
pub(crate) trait Rewindable: Read + Seek {}

impl<T: Read + Seek> Rewindable for T {}

/// What a request looks at between two pieces of its data: whether somebody pressed Ctrl-C or ended the
/// request, and whether the program's own function for the progress has raised something. All of that ends
/// the request.
pub(crate) struct Watch {
    client: Arc<polyclave_client::Client>,
    progress: Option<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl Watch {
    /// Of a request of this client. `progress` is called with the number of bytes that are done.
    pub(crate) fn new(client: Arc<polyclave_client::Client>, progress: Option<Py<PyAny>>) -> Watch {
        Watch { client, progress, raised: Mutex::default() }
    }

    /// Tells the program how far the request is.
    pub(crate) fn tell(&self, done: u64) {
        let Some(progress) = &self.progress else { return };
        // Nobody waits for the interpreter with this lock: another thread of the request may wait for the
        // lock with the interpreter.
        if self.raised.lock().is_some() {
            return;
        }
        if let Err(e) = Python::attach(|py| progress.call1(py, (done,))) {
            *self.raised.lock() = Some(e);
        }
    }

    /// An error if the request is to end.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        if self.client.is_halted() {
            return Err(errors::ended(py));
        }
        self.raised.lock().take().map_or(Ok(()), Err)
    }

    /// The outcome of the request, if the program's own function has not failed at its end.
    pub(crate) fn outcome<T>(&self, outcome: Result<T>) -> Result<T> {
        match self.raised.lock().take() {
            Some(error) => {
                Err(Error::Io { what: "cannot tell the progress", error: io::Error::other(error) })
            }
            None => outcome,
        }
    }
}

/// An object of Python with `read`, as a source. Pieces are those that are asked for, or shorter.
pub(crate) struct Reader<'w>(pub(crate) Py<PyAny>, pub(crate) &'w Watch);

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = Python::attach(|py| -> PyResult<Option<usize>> {
            self.1.check(py)?;
            let data: Data = self.0.bind(py).call_method1("read", (buffer.len(),))?.extract()?;
            let Some(room) = buffer.get_mut(..data.len()) else { return Ok(None) };
            room.copy_from_slice(&data);
            Ok(Some(data.len()))
        });
        match count.map_err(io::Error::other)? {
            Some(count) => Ok(count),
            None => Err(io::Error::other("read() gave more bytes than were asked for")),
        }
    }
}

/// An object of Python with `write`, as a destination.
pub(crate) struct Writer<'w>(pub(crate) Py<PyAny>, pub(crate) &'w Watch);

impl Write for Writer<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            self.1.check(py)?;
            let written = self.0.bind(py).call_method1("write", (PyBytes::new(py, data),))?;
            // Raw streams may take less. Some objects, such as hashes in disguise, return nothing and take
            // everything.
            let count: Option<usize> = written.extract()?;
            Ok(count.unwrap_or(data.len()).min(data.len()))
        })
        .map_err(|e: PyErr| io::Error::other(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A source between whose pieces the request can end.
pub(crate) struct Interruptible<'w, R>(pub(crate) R, pub(crate) &'w Watch);

impl<R: Read> Read for Interruptible<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| self.1.check(py)).map_err(io::Error::other)?;
        self.0.read(buffer)
    }
}

impl<R: Seek> Seek for Interruptible<'_, R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// A file whose errors have its name.
pub(crate) struct Named<'p> {
    file: File,
    path: &'p Path,
}

impl Read for Named<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer).map_err(|e| of_file(self.path, e))
    }
}

impl Seek for Named<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to).map_err(|e| of_file(self.path, e))
    }
}

/// Opens a file to read.
pub(crate) fn source<'p, 'w>(
    path: &'p Path,
    watch: &'w Watch,
) -> Result<Interruptible<'w, BufReader<Named<'p>>>> {
    let file = File::open(path).map_err(|error| reading(path, error))?;
    Ok(Interruptible(BufReader::new(Named { file, path }), watch))
}

fn reading(path: &Path, error: io::Error) -> Error {
    Error::Io { what: "cannot read the input", error: of_file(path, error) }
}

fn writing(path: &Path, error: io::Error) -> Error {
    Error::Io { what: "cannot write the output", error: of_file(path, error) }
}

/// What is wrong with a file of the caller's, and not with the client's directory.
fn of_draft(error: polyclave_config::Error) -> Error {
    match error {
        polyclave_config::Error::Io { path, cause, .. } => writing(&path, cause),
        other => other.into(),
    }
}

/// A file that appears, complete, when it is finished. Before that nothing is changed.
pub(crate) struct Target {
    draft: BufWriter<Draft>,
    path: PathBuf,
}

impl Target {
    /// Begins one. What was secret before only its owner can read. Refused if the file is there already,
    /// unless it is to be replaced.
    pub(crate) fn begin(path: &Path, is_secret: bool, replace: bool) -> Result<Target> {
        if !replace && path.symlink_metadata().is_ok() {
            let message = "it is there already; give another name, or replace=True";
            return Err(writing(path, io::Error::new(io::ErrorKind::AlreadyExists, message)));
        }
        let draft = if is_secret { Draft::private(path) } else { Draft::public(path) };
        Ok(Target { draft: BufWriter::new(draft.map_err(of_draft)?), path: path.into() })
    }

    /// Gives it its name.
    pub(crate) fn finish(self) -> Result<()> {
        let draft = self.draft.into_inner().map_err(|e| writing(&self.path, e.into_error()))?;
        draft.commit().map_err(of_draft)
    }
}

impl Write for Target {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.draft.write(data).map_err(|e| of_file(&self.path, e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draft.flush().map_err(|e| of_file(&self.path, e))
    }
}
