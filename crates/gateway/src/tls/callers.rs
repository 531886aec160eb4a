//! Certificates of callers: signed by one of some authorities, and with one of some names among the
//! alternative names of its subject. So KMS of AWS is known by its own certificate before anything of it is
//! read. There are no lists of revoked certificates.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error as TlsError, RootCertStore, SignatureScheme};

use super::{certificates, wrong};
use crate::Result;

/// Verifies the certificates of callers. Any name will do if none is given.
pub(super) fn verifier(authorities: &Path, names: &[String]) -> Result<Arc<dyn ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authorities)? {
        roots.add(certificate).map_err(|e| wrong(authorities, format!("has no authority: {e}")))?;
    }
    let no_name = |name: &str| {
        wrong(authorities, format!("stands beside {name:?} in client_names, which is no name of a host"))
    };
    let names = names
        .iter()
        .map(|name| ServerName::try_from(name.clone()).map_err(|_| no_name(name)))
        .collect::<Result<Vec<_>>>()?;
    let provider = Arc::new(ring::default_provider());
    let signed = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|e| wrong(authorities, format!("has no authority: {e}")))?;
    Ok(if names.is_empty() { signed } else { Arc::new(Named { signed, names }) })
}

/// Whether a certificate, whose signature was verified, has a name.
pub(crate) fn has_name(certificate: &ParsedCertificate<'_>, name: &str) -> bool {
    ServerName::try_from(name).is_ok_and(|name| verify_server_name(certificate, &name).is_ok())
}

/// Certificates that are signed, and have one of these names.
#[derive(Debug)]
struct Named {
    signed: Arc<dyn ClientCertVerifier>,
    names: Vec<ServerName<'static>>,
}

impl Named {
    fn shown(&self) -> String {
        self.names.iter().map(|name| name.to_str()).collect::<Vec<_>>().join(", ")
    }
}

impl ClientCertVerifier for Named {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.signed.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> std::result::Result<ClientCertVerified, TlsError> {
        let verified = self.signed.verify_client_cert(end_entity, intermediates, now)?;
        let certificate = ParsedCertificate::try_from(end_entity)?;
        match self.names.iter().any(|name| verify_server_name(&certificate, name).is_ok()) {
            true => Ok(verified),
            false => {
                Err(TlsError::General(format!("the certificate has none of the names {}", self.shown())))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}
