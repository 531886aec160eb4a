//! Bytes, words and keys between Python and Rust.

use std::ops::Deref;

use polyclave_api::{KeyInfo, Mode, NodeStatus, Usage};
use polyclave_client::Client;
use polyclave_payments::Command;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyMemoryView};

use crate::errors::misuse;

/// Bytes that Python gives: `bytes` as they are, other objects with a buffer as a copy.
pub(crate) struct Data(PyBackedBytes);

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Data {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Data(bytes.to_owned().into()));
        }
        let copied = PyMemoryView::from(&object.to_owned())?.call_method0("tobytes")?;
        Ok(Data(copied.cast_into::<PyBytes>()?.into()))
    }
}

/// Additional data: bytes, or several strings of them for SIV.
#[derive(FromPyObject)]
pub(crate) enum Additional {
    /// One.
    One(Data),
    /// Several, whose order counts.
    Several(Vec<Data>),
}

impl Additional {
    pub(crate) fn strings(given: Option<Additional>) -> Vec<Vec<u8>> {
        match given {
            None => Vec::new(),
            Some(Additional::One(data)) => vec![data.to_vec()],
            Some(Additional::Several(all)) => all.iter().map(|data| data.to_vec()).collect(),
        }
    }
}

/// A mode by its name.
pub(crate) fn mode(py: Python<'_>, word: &str) -> PyResult<Mode> {
    one_of(py, word, "mode", &Mode::ALL)
}

/// Modes by their names, in order and without repeats.
pub(crate) fn modes(py: Python<'_>, words: &[String]) -> PyResult<Vec<Mode>> {
    all_of(py, words, "mode", &Mode::ALL)
}

/// Usages by their names, in order and without repeats.
pub(crate) fn usages(py: Python<'_>, words: &[String]) -> PyResult<Vec<Usage>> {
    let found = words.iter().map(|word| word.parse().map_err(|e: String| misuse(py, &e)));
    let mut found = found.collect::<PyResult<Vec<Usage>>>()?;
    found.sort();
    found.dedup();
    Ok(found)
}

fn all_of<T: Copy + Ord + ToString>(
    py: Python<'_>,
    words: &[String],
    kind: &str,
    all: &[T],
) -> PyResult<Vec<T>> {
    let mut found = words.iter().map(|word| one_of(py, word, kind, all)).collect::<PyResult<Vec<T>>>()?;
    found.sort();
    found.dedup();
    Ok(found)
}

fn one_of<T: Copy + ToString>(py: Python<'_>, word: &str, kind: &str, all: &[T]) -> PyResult<T> {
    all.iter().find(|item| item.to_string() == word).copied().ok_or_else(|| {
        misuse(py, &format!("there is no {kind} '{word}'; choose from {}", words(all).join(", ")))
    })
}

fn words<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(T::to_string).collect()
}

/// A payment command, as JSON has it: a dictionary, or the text.
pub(crate) fn payment(py: Python<'_>, command: &Bound<'_, PyAny>) -> PyResult<Command> {
    let text = match command.extract::<String>() {
        Ok(text) => text,
        Err(_) => py.import("json")?.getattr("dumps")?.call1((command,))?.extract()?,
    };
    serde_json::from_str(&text).map_err(|e| misuse(py, &format!("this is no payment command: {e}")))
}

/// A key as an object of `polyclave.Key`. `nodes` are the nodes that list it, if they were asked one by one.
pub(crate) fn key<'py>(
    py: Python<'py>,
    info: &KeyInfo,
    nodes: Option<Vec<String>>,
) -> PyResult<Bound<'py, PyAny>> {
    let properties = &info.properties;
    let fields = PyDict::new(py);
    fields.set_item("name", &properties.name)?;
    fields.set_item("version", info.version)?;
    fields.set_item("state", info.state.to_string())?;
    fields.set_item("cipher", &properties.cipher)?;
    fields.set_item("modes", words(&properties.modes))?;
    fields.set_item("usage", words(&properties.usage))?;
    fields.set_item("origin", info.origin.to_string())?;
    fields.set_item("budget_blocks", properties.budget_blocks)?;
    fields.set_item("check_value", PyBytes::new(py, &info.check_value))?;
    fields.set_item("id", hex::encode(info.id))?;
    fields.set_item("label", &properties.label)?;
    fields.set_item("made", info.made)?;
    fields.set_item("expires", properties.expires)?;
    fields.set_item("ends", info.ends())?;
    fields.set_item("wrappable", properties.wrappable)?;
    fields.set_item("caller_nonces", properties.caller_nonces)?;
    fields.set_item("deletable", info.deletable)?;
    fields.set_item("nodes", nodes)?;
    py.import("polyclave.types")?.getattr("Key")?.call_method1("_of", (fields,))
}

/// What a node says of itself, or why it did not answer, as an object of `polyclave.NodeStatus`.
pub(crate) fn status<'py>(
    py: Python<'py>,
    client: &Client,
    name: &str,
    answer: &polyclave_client::Result<NodeStatus>,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("name", name)?;
    fields.set_item("answers", answer.is_ok())?;
    match answer {
        Ok(status) => {
            let connected: Vec<&str> = status.connected.iter().map(|node| client.node_name(node)).collect();
            fields.set_item("version", &status.version)?;
            fields.set_item("keys", status.keys)?;
            fields.set_item("set_up", status.set_up)?;
            fields.set_item("prepared", status.prepared)?;
            fields.set_item("quarantined", status.quarantined)?;
            fields.set_item("connected", connected)?;
        }
        Err(e) => fields.set_item("error", e.to_string())?,
    }
    py.import("polyclave.types")?.getattr("NodeStatus")?.call_method1("_of", (fields,))
}
