//! Reading and writing TOML files, and the certificates in them.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_transport::CertificateDer;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result, private};

/// Reads TOML. An error names the line.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T> {
    toml::from_str(text).map_err(|e| Error::misuse(format!("this does not fit here:\n{e}")))
}

/// Writes TOML, after a first line that says what the file is.
pub(crate) fn render<T: Serialize>(head: &str, value: &T) -> String {
    let body = toml::to_string(value).expect("these types have a form in TOML");
    format!("# {head}\n\n{body}")
}

pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<T> {
    parse(&private::read_public(path)?).map_err(|e| e.in_file(path))
}

/// Base64 of a certificate.
pub(crate) fn certificate_to_text(certificate: &CertificateDer<'_>) -> String {
    STANDARD.encode(certificate)
}

pub(crate) fn certificate_from_text(text: &str) -> std::result::Result<CertificateDer<'static>, String> {
    let der = STANDARD.decode(text.trim()).map_err(|e| format!("a certificate is not base64: {e}"))?;
    // A DER certificate is a SEQUENCE: this finds texts cut short or pasted into the wrong place.
    if der.len() < 4 || der[0] != 0x30 {
        return Err("this is base64, but not of a certificate".into());
    }
    Ok(CertificateDer::from(der))
}

/// For serde: one certificate.
pub(crate) mod certificate {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        certificate: &CertificateDer<'static>,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&certificate_to_text(certificate))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<CertificateDer<'static>, D::Error> {
        certificate_from_text(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// For serde: a certificate or none. The field has a default and is left out if there is none.
pub(crate) mod optional_certificate {
    use serde::{Deserializer, Serializer};

    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        certificate: &Option<CertificateDer<'static>>,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        match certificate {
            Some(certificate) => certificate::serialize(certificate, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Option<CertificateDer<'static>>, D::Error> {
        certificate::deserialize(deserializer).map(Some)
    }
}

/// For serde: several certificates.
pub(crate) mod certificates {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        certificates: &[CertificateDer<'static>],
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(certificates.iter().map(certificate_to_text))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Vec<CertificateDer<'static>>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts
            .iter()
            .map(|t| certificate_from_text(t))
            .collect::<std::result::Result<_, _>>()
            .map_err(D::Error::custom)
    }
}
