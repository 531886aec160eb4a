//! The passphrase of a node: from a file, or from whoever sits at the terminal.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use polyclave_config::{AskPassphrase, Error, NodeDir, Passphrase};

/// Asks at the terminal.
pub fn from_terminal() -> AskPassphrase {
    Arc::new(|dir| {
        let name = &dir.settings().name;
        typed(&format!("Passphrase of the node {name}: ")).map_err(|e| {
            Error::Misuse(format!(
                "the secret of the node {name} is sealed under a passphrase, and no terminal is there to ask for it ({e}); pass it as the \
                 credential polyclave-passphrase of the service manager, or `node run` in a file with --passphrase-file"
            ))
        })
    })
}

/// Reads it from a private file.
pub fn from_file(path: &Path) -> AskPassphrase {
    let path = path.to_path_buf();
    Arc::new(move |_| Passphrase::load(&path))
}

/// A new one: from a private file, or typed twice.
pub fn new(dir: &NodeDir, file: Option<&Path>) -> Result<Passphrase> {
    if let Some(file) = file {
        return Ok(Passphrase::load(file)?);
    }
    let name = &dir.settings().name;
    let ask = |what: &str| {
        let asked = typed(&format!("{what} passphrase of the node {name}: "));
        asked
            .context("no terminal is there to ask for a passphrase; give it in a file with --passphrase-file")
    };
    let first = ask("New")?;
    if ask("Repeat the new")? != first {
        bail!("the two passphrases differ; nothing was changed");
    }
    Ok(first)
}

fn typed(prompt: &str) -> std::io::Result<Passphrase> {
    rpassword::prompt_password(prompt).map(|text| Passphrase::new(text.into()))
}
