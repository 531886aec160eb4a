//! `--circuit`: a cipher by its tables or as a Boolean circuit, or a circuit from a file instead of a cipher.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use polyclave_cipher::{Cipher, boolean};
use serde::{Deserialize, Serialize};

use crate::options::{self, ProtocolOptions};

/// What is evaluated.
#[derive(Clone, Debug)]
pub enum CircuitChoice {
    /// A cipher.
    Cipher(Form),
    /// A file in Bristol Fashion.
    File(PathBuf),
}

impl CircuitChoice {
    /// The form as given, or the one that the protocol takes.
    pub fn of(given: &Option<CircuitChoice>, protocol: &ProtocolOptions) -> CircuitChoice {
        let takes_gates = protocol.descriptor().is_ok_and(|descriptor| descriptor.takes_gates);
        let own = if takes_gates { Form::Boolean } else { Form::Tables };
        given.clone().unwrap_or(CircuitChoice::Cipher(own))
    }
}

/// The form of a cipher's circuit. It takes the same keys and blocks in each form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// By its own tables: few large lookups.
    Tables,
    /// By ANDs of single bits: many lookups in the smallest tables, in more layers.
    Boolean,
}

impl Form {
    const ALL: [Form; 2] = [Form::Tables, Form::Boolean];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Form::Tables => "tables",
            Form::Boolean => "boolean",
        }
    }

    /// The cipher of a name in this form, or an error that lists the names.
    pub fn cipher(self, name: &str) -> Result<Cipher> {
        let cipher = options::cipher(name)?;
        match self {
            Form::Tables => Ok(cipher),
            Form::Boolean => boolean::cipher(name).context("every cipher has a Boolean circuit"),
        }
    }
}

impl FromStr for CircuitChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<CircuitChoice, Infallible> {
        let form = Form::ALL.into_iter().find(|form| form.name().eq_ignore_ascii_case(text));
        Ok(form.map_or_else(|| CircuitChoice::File(text.into()), CircuitChoice::Cipher))
    }
}

impl fmt::Display for CircuitChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CircuitChoice::Cipher(form) => f.write_str(form.name()),
            CircuitChoice::File(path) => path.display().fmt(f),
        }
    }
}
