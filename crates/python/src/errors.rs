//! Errors as Python's exceptions: a class for each reason, so that a program can tell them apart. The classes
//! are in `python/polyclave/errors.py`.

use std::io;
use std::path::{Path, PathBuf};

use polyclave_api::Reason;
use polyclave_client::Error;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// The exception for an error of the client. What a stream's own `read` or `write` raised is raised again as
/// it was.
pub(crate) fn raised(py: Python<'_>, error: Error) -> PyErr {
    let (class, node) = match &error {
        Error::Refused { node, refusal } => (class_of(refusal.reason), Some(node.clone())),
        Error::NotAdmitted { node } => ("NotAdmitted", Some(node.clone())),
        Error::Unreached { node, .. } => ("Unavailable", Some(node.clone())),
        Error::TooFewNodes { .. } | Error::Connection { .. } => ("Unavailable", None),
        Error::Contested(_) => ("Disagreement", None),
        Error::Answers(_) => ("WrongAnswers", None),
        Error::Unauthentic(_) => ("Unauthentic", None),
        Error::Misuse(_) | Error::Drafted => ("Misuse", None),
        Error::Ended => ("Ended", None),
        Error::Config(_) => ("ConfigurationError", None),
        // Io is not among these: it is raised as an error of the system.
        _ => ("Error", None),
    };
    match error {
        Error::Io { what, error } => of_system(py, what, error),
        error => exception(py, class, &error.to_string(), node, error.may_pass()),
    }
}

/// An error about a file whose name the exception has.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
struct OfFile {
    path: PathBuf,
    error: io::Error,
}

/// The same error with the name of its file.
pub(crate) fn of_file(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), OfFile { path: path.into(), error })
}

/// An `OSError`, of the class that its number has in Python, with the name of the file if it is about one.
/// What Python raised comes through.
fn of_system(py: Python<'_>, what: &str, error: io::Error) -> PyErr {
    let of_file = error.get_ref().and_then(|inner| inner.downcast_ref::<OfFile>());
    let (error_itself, path) = of_file.map_or((&error, None), |found| (&found.error, Some(&found.path)));
    let number = match (error_itself.raw_os_error(), error_itself.kind()) {
        (Some(number), _) => number,
        (None, io::ErrorKind::AlreadyExists) => rustix::io::Errno::EXIST.raw_os_error(),
        _ => return error.into(),
    };
    let made = || {
        let message = match error_itself.raw_os_error() {
            Some(number) => py.import("os")?.call_method1("strerror", (number,))?.extract()?,
            None => error_itself.to_string(),
        };
        let class = py.get_type::<PyOSError>();
        match path {
            Some(path) => class.call1((number, message, path.as_os_str())),
            None => class.call1((number, format!("{what}: {message}"))),
        }
    };
    made().map_or_else(|e| e, PyErr::from_value)
}

/// The exception for a request that was ended by its caller.
pub(crate) fn ended(py: Python<'_>) -> PyErr {
    raised(py, Error::Ended)
}

/// The exception for a caller's mistake.
pub(crate) fn misuse(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "Misuse", message, None, false)
}

/// The exception for a key that is not there, where no node refused.
pub(crate) fn no_such_key(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "NoSuchKey", message, None, false)
}

/// The exception for a message authentication code that does not fit.
pub(crate) fn unauthentic(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "Unauthentic", message, None, false)
}

fn class_of(reason: Reason) -> &'static str {
    match reason {
        Reason::Malformed => "Malformed",
        Reason::Denied => "Denied",
        Reason::Key => "KeyRefused",
        Reason::Spent => "BudgetSpent",
        Reason::Busy => "Busy",
        Reason::Unauthentic => "Unauthentic",
        Reason::Disagreement => "Disagreement",
        Reason::Unavailable => "Unavailable",
        Reason::Internal => "NodeFailed",
        Reason::OutOfMaterial => "OutOfMaterial",
        Reason::Quarantined => "Quarantined",
        Reason::NoSuchKey => "NoSuchKey",
        Reason::NotForThis => "NotForThis",
    }
}

fn exception(py: Python<'_>, class: &str, message: &str, node: Option<String>, may_pass: bool) -> PyErr {
    let made = || -> PyResult<Bound<'_, PyAny>> {
        let keywords = [("may_pass", may_pass)].into_py_dict(py)?;
        keywords.set_item("node", node)?;
        py.import("polyclave.errors")?.getattr(class)?.call((message,), Some(&keywords))
    };
    made().map_or_else(|e| e, PyErr::from_value)
}
