//! The document: CycloneDX 1.5 as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::tree::{Id, Part, Parts};

/// Writes the document. A package that is not in `checksums` is an error; one of this workspace has none.
pub fn document(
    package: &str,
    parts: &Parts,
    checksums: &BTreeMap<Id, Option<String>>,
    made: Option<i64>,
) -> Result<Value, String> {
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    let mut root = Value::Null;
    for (id, part) in &parts.parts {
        let checksum =
            checksums.get(id).ok_or_else(|| format!("Cargo.lock does not have {} {}", id.0, id.1))?;
        let is_root = *id == parts.root;
        let mut component =
            component(id, part, checksum.as_deref(), if is_root { "application" } else { "library" })?;
        let of = |id: &Id| reference(id, checksums.get(id).is_some_and(Option::is_some));
        dependencies.push(json!({
            "ref": of(id),
            "dependsOn": part.depends_on.iter().map(of).collect::<Vec<_>>(),
        }));
        if is_root {
            root = component;
        } else {
            component["scope"] = if part.is_inside { "required" } else { "excluded" }.into();
            components.push(component);
        }
    }
    let mut metadata = json!({
        "tools": { "components": [{ "type": "application", "name": "polyclave-sbom", "version": env!("CARGO_PKG_VERSION") }] },
        "component": root,
    });
    if let Some(seconds) = made {
        let time = OffsetDateTime::from_unix_timestamp(seconds).map_err(|e| e.to_string())?;
        metadata["timestamp"] = time.format(&Rfc3339).map_err(|e| e.to_string())?.into();
    }
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": metadata,
        "components": components,
        "dependencies": dependencies,
    });
    document["serialNumber"] = serial_number(package, &document).into();
    Ok(document)
}

fn component(id: &Id, part: &Part, checksum: Option<&str>, kind: &str) -> Result<Value, String> {
    let (name, version) = id;
    if part.licence.is_empty() {
        return Err(format!("{name} {version} names no licence"));
    }
    let mut component = json!({
        "type": kind,
        "bom-ref": reference(id, checksum.is_some()),
        "name": name,
        "version": version,
        "licenses": [{ "expression": part.licence }],
    });
    if let Some(checksum) = checksum {
        component["purl"] = reference(id, true).into();
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if !part.repository.is_empty() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": part.repository }]);
    }
    Ok(component)
}

/// What the document calls a package: its URL, if it is in the registry of packages.
fn reference((name, version): &Id, is_published: bool) -> String {
    match is_published {
        // A version may have a part behind a plus sign, which means a space in a URL.
        true => format!("pkg:cargo/{name}@{}", version.replace('+', "%2B")),
        false => format!("{name}@{version}"),
    }
}

/// Another document has another number, and the same one always has the same: a UUID of the kind that each
/// writer makes in its own way (RFC 9562, version 8).
fn serial_number(package: &str, document: &Value) -> String {
    let digest = blake3::derive_key(
        "polyclave 2026 number of a list of parts",
        format!("{package}{document}").as_bytes(),
    );
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::encode(bytes);
    format!("urn:uuid:{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
