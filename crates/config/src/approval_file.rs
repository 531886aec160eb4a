//! The file in which a request for approval goes from hand to hand and collects signatures. Nothing in it is
//! trusted: people are shown the content of the same bytes that they sign.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::{Approval, ApprovalSignature, Statement};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, private, text};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    statement: String,
    #[serde(default, rename = "signature", skip_serializing_if = "Vec::is_empty")]
    signatures: Vec<SignatureText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureText {
    certificate: String,
    signature: String,
}

/// Reads an approval, and the statement in it.
pub fn parse_approval(text: &str) -> Result<(Approval, Statement)> {
    let read: Text = text::parse(text)?;
    let bytes = |text: &str| {
        STANDARD
            .decode(text.trim())
            .map_err(|e| Error::misuse(format!("this approval is not in base64: {e}")))
    };
    let signature = |s: &SignatureText| {
        Ok(ApprovalSignature { certificate: bytes(&s.certificate)?, signature: bytes(&s.signature)? })
    };
    let approval = Approval {
        statement: bytes(&read.statement)?,
        signatures: read.signatures.iter().map(signature).collect::<Result<_>>()?,
    };
    let misuse = |e: polyclave_protocol::Error| Error::misuse(e.to_string());
    approval.check_size().map_err(misuse)?;
    let statement = Statement::decode(&approval.statement).map_err(misuse)?;
    Ok((approval, statement))
}

/// An approval as text.
pub fn approval_to_text(approval: &Approval) -> String {
    let signature = |s: &ApprovalSignature| SignatureText {
        certificate: STANDARD.encode(&s.certificate),
        signature: STANDARD.encode(&s.signature),
    };
    let signatures = approval.signatures.iter().map(signature).collect();
    let written = Text { statement: STANDARD.encode(&approval.statement), signatures };
    text::render(
        "A request for approval of Polyclave. `polyclave approval show` says what it is for.",
        &written,
    )
}

/// Reads an approval from a file.
pub fn load_approval(path: &Path) -> Result<(Approval, Statement)> {
    parse_approval(&private::read_public(path)?).map_err(|e| e.in_file(path))
}

/// Writes an approval to a file.
pub fn save_approval(approval: &Approval, path: &Path) -> Result<()> {
    private::write_public(path, approval_to_text(approval).as_bytes())
}
