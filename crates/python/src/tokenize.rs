//! Tokenization: one string of Python or a sequence of them as values, and the same shape back.

use polyclave_client::{Alphabet, Tweaked};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use zeroize::Zeroizing;

use crate::convert::Data;
use crate::errors::{misuse, raised};

/// The alphabet if neither its characters nor their number is given: decimal digits.
const RADIX: u32 = 10;

/// Values or tokens that Python gives.
pub(crate) enum Values {
    /// A string.
    One(Text),
    /// A sequence of strings, whose order counts.
    Several(Vec<Text>),
}

impl Values {
    /// What all values are exchanged for by one request, under one tweak: a string for a string, a list for a
    /// sequence.
    pub(crate) fn exchanged<'py>(
        &self,
        py: Python<'py>,
        tweak: Option<&Data>,
        exchange: impl FnOnce(&[Tweaked<'_>]) -> PyResult<Vec<Zeroizing<String>>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tweak = tweak.map_or(&[][..], |tweak| tweak);
        let texts = match self {
            Values::One(text) => std::slice::from_ref(text),
            Values::Several(texts) => texts,
        };
        let tweaked: Vec<Tweaked<'_>> =
            texts.iter().map(|Text(value)| Tweaked { value: value.as_str(), tweak }).collect();
        let exchanged = exchange(&tweaked)?;
        match (self, &exchanged[..]) {
            (Values::One(_), [one]) => Ok(PyString::new(py, one).into_any()),
            _ => Ok(PyList::new(py, exchanged.iter().map(|text| text.as_str()))?.into_any()),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Values {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(_) => Ok(Values::One(object.extract()?)),
            Err(_) => Ok(Values::Several(object.extract()?)),
        }
    }
}

/// A string of Python as a copy, which is wiped.
pub(crate) struct Text(Zeroizing<String>);

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        // Python's own error would carry the whole value.
        let copied = text.extract::<String>();
        let copied =
            copied.map_err(|_| misuse(object.py(), "a value has half of a surrogate pair: it is no text"))?;
        Ok(Text(Zeroizing::new(copied)))
    }
}

/// The alphabet of these characters, or of the first digits and letters.
pub(crate) fn alphabet(py: Python<'_>, radix: Option<u32>, characters: Option<&str>) -> PyResult<Alphabet> {
    let alphabet = match (radix, characters) {
        (Some(_), Some(_)) => {
            return Err(misuse(py, "give radix or alphabet, not both: an alphabet has its own radix"));
        }
        (None, Some(characters)) => Alphabet::new(characters),
        (radix, None) => Alphabet::of_radix(radix.unwrap_or(RADIX)),
    };
    alphabet.map_err(|e| raised(py, e))
}
