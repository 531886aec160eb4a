//! The files of a client whose certificate an agent renews, such as SPIRE's, spiffe-helper or cert-manager.

use std::path::{Path, PathBuf};

use polyclave_transport::Identity;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, private};

/// Where a client finds its certificate and its key. Somebody else writes them, and again before the
/// certificate ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenewedFiles {
    /// The certificate in PEM, and after it those between it and its authority's.
    pub certificate: PathBuf,
    /// Its private key in PEM, which nobody else may read.
    pub key: PathBuf,
}

impl RenewedFiles {
    /// The identity that is in the files now.
    pub fn load(&self) -> Result<Identity> {
        let certificate = private::read_public(&self.certificate)?;
        let key = private::read(&self.key)?;
        let both = |e: polyclave_protocol::Error| {
            Error::malformed(&self.certificate, format!("(and the key in {}) {e}", self.key.display()))
        };
        Identity::from_pem(certificate.as_bytes(), &key).map_err(both)
    }

    /// The same files, named from a directory on.
    pub(crate) fn within(&self, dir: &Path) -> RenewedFiles {
        RenewedFiles { certificate: dir.join(&self.certificate), key: dir.join(&self.key) }
    }
}
