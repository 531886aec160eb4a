//! The file in which a key that was sealed to the nodes is carried to them. Nothing in it is trusted: nodes
//! open what was sealed to them together with everything that it says.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::SealedImport;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, private, text};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    sealed_key: String,
}

/// Reads a sealed key.
pub fn parse_sealed_key(text: &str) -> Result<SealedImport> {
    let read: Text = text::parse(text)?;
    let bytes = STANDARD.decode(read.sealed_key.trim());
    let bytes = bytes.map_err(|e| Error::misuse(format!("this sealed key is not in base64: {e}")))?;
    SealedImport::decode(&bytes).map_err(|e| Error::misuse(e.to_string()))
}

/// A sealed key as text.
pub fn sealed_key_to_text(sealed: &SealedImport) -> Result<String> {
    let bytes = sealed.encode().map_err(|e| Error::misuse(e.to_string()))?;
    let written = Text { sealed_key: STANDARD.encode(bytes) };
    Ok(text::render(
        "A key that was sealed to the nodes of a cluster. `polyclave key import-sealed` gives it to them; nobody else can open it.",
        &written,
    ))
}

/// Reads a sealed key from a file.
pub fn load_sealed_key(path: &Path) -> Result<SealedImport> {
    parse_sealed_key(&private::read_public(path)?).map_err(|e| e.in_file(path))
}

/// Writes a sealed key to a file.
pub fn save_sealed_key(sealed: &SealedImport, path: &Path) -> Result<()> {
    private::write_public(path, sealed_key_to_text(sealed)?.as_bytes())
}
