//! Where data come from and go to: bytes of Python, files, and any object with `read` or `write`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use polyclave_client::{Error, Result};
use polyclave_config::private::Draft;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::Data;

/// Something that can be read twice.
pub(crate) trait Rewindable: Read + Seek {}

impl<T: Read + Seek> Rewindable for T {}

/// An object of Python with `read`, as a source. Pieces are those that are asked for, or shorter.
pub(crate) struct Reader(pub(crate) Py<PyAny>);

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = Python::attach(|py| -> PyResult<Option<usize>> {
            py.check_signals()?;
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
pub(crate) struct Writer(pub(crate) Py<PyAny>);

impl Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            py.check_signals()?;
            let written = self.0.bind(py).call_method1("write", (PyBytes::new(py, data),))?;
            // Raw streams may take less. Some objects, such as hashes in disguise, return nothing and take everything.
            let count: Option<usize> = written.extract()?;
            Ok(count.unwrap_or(data.len()).min(data.len()))
        })
        .map_err(|e: PyErr| io::Error::other(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A source between whose pieces Ctrl-C is noticed.
pub(crate) struct Interruptible<R>(pub(crate) R);

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| py.check_signals()).map_err(io::Error::other)?;
        self.0.read(buffer)
    }
}

impl<R: Seek> Seek for Interruptible<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// Opens a file to read.
pub(crate) fn source(path: &Path) -> Result<Interruptible<BufReader<File>>> {
    let reading = |error| Error::Io { what: "cannot read the input", error };
    File::open(path).map(|file| Interruptible(BufReader::new(file))).map_err(reading)
}

/// A file that appears, complete, when it is finished. Before that nothing is changed.
pub(crate) struct Target {
    draft: BufWriter<Draft>,
}

impl Target {
    /// Begins one. What was secret before only its owner can read. Refused if the file is there already, unless it is to be replaced.
    pub(crate) fn begin(path: &Path, is_secret: bool, replace: bool) -> Result<Target> {
        if !replace && path.symlink_metadata().is_ok() {
            let there = io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is there already; give another name, or replace=True", path.display()),
            );
            return Err(Error::Io { what: "cannot write the output", error: there });
        }
        let draft = if is_secret { Draft::private(path) } else { Draft::public(path) };
        Ok(Target { draft: BufWriter::new(draft?) })
    }

    /// Gives it its name.
    pub(crate) fn finish(self) -> Result<()> {
        let writing = |error| Error::Io { what: "cannot write the output", error };
        let draft = self.draft.into_inner().map_err(|e| writing(e.into_error()))?;
        Ok(draft.commit()?)
    }
}

impl Write for Target {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.draft.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draft.flush()
    }
}
