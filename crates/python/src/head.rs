//! What anybody can read in a sealed file or a file in an envelope, without asking the nodes.

use polyclave_client::{ENVELOPE_MAGIC, EnvelopeHead, HEAD, MAGIC, MAGIC_BOUND};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::Data;
use crate::errors::{misuse, raised};

/// Says what the beginning of a sealed file or of a file in an envelope tells. Nothing of it is verified.
#[pyfunction]
pub(crate) fn inspect<'py>(py: Python<'py>, data: Data) -> PyResult<Bound<'py, PyDict>> {
    let message = PyDict::new(py);
    let mut bytes: &[u8] = &data;
    if bytes.starts_with(ENVELOPE_MAGIC) {
        let head = EnvelopeHead::read(&mut bytes).map_err(|e| raised(py, e))?;
        message.set_item("kind", "envelope")?;
        message.set_item("key_id", hex::encode(head.key))?;
        message.set_item("owner", head.owner)?;
        message.set_item("header", PyBytes::new(py, &head.header))?;
        return Ok(message);
    }
    let magic = bytes.first_chunk::<16>().filter(|magic| [MAGIC, MAGIC_BOUND].contains(magic));
    let Some(magic) = magic.filter(|_| bytes.len() >= HEAD) else {
        return Err(misuse(py, "these data do not begin like a sealed file or a file in an envelope"));
    };
    message.set_item("kind", "sealed")?;
    message.set_item("key_id", hex::encode(&bytes[16..32]))?;
    message.set_item("bound", magic == MAGIC_BOUND)?;
    Ok(message)
}
