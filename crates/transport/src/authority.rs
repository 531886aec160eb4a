//! Authorities for clients: whether a certificate that a client shows was signed by one, and is fit for a
//! client.
//!
//! `webpki` verifies the chain: signatures, dates, that only certificates of authorities sign, path lengths
//! and name constraints. (Constraints on URIs are not supported there, so a chain that has one is refused.)
//! What is checked here besides is what `webpki` leaves open: how long the client's certificate is valid,
//! that it says itself that it is for clients, and that its key is for signatures. These are the rules for
//! X.509-SVIDs, and hold for certificates with DNS names, too.
//!
//! Strangers can have any chain verified before they have shown a key. So it has few certificates
//! ([`MAX_INTERMEDIATES`]), and the number of paths through them is small.

use std::time::{Duration, SystemTime};

use polyclave_protocol::{Error, Result};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::certificate::X509Certificate;
use x509_parser::parse_x509_certificate;

use crate::CertificateDer;
use crate::validity::{expiry, unix_time};

/// How the first line of every kind of private key in PEM ends.
const KEY: &[u8] = b"PRIVATE KEY-----";
/// The most certificates of an authority: the current one, the next one, and those of before.
const MAX_CERTIFICATES: usize = 32;
/// The most certificates between that of a client and that of its authority.
pub(crate) const MAX_INTERMEDIATES: usize = 3;
/// By how much longer than allowed a certificate may be valid: authorities date them back, for clocks that
/// are slow.
const DATED_BACK: Duration = Duration::from_secs(3600);

/// The certificates of an authority. A client's certificate has to be signed under one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchors(Vec<Anchor>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Anchor {
    certificate: CertificateDer<'static>,
    trusted: TrustAnchor<'static>,
    not_before: SystemTime,
    not_after: SystemTime,
}

impl Anchors {
    /// Reads them from PEM. Every certificate has to be one of an authority. A private key is an error: it
    /// does not belong here.
    pub fn from_pem(pem: &[u8]) -> Result<Anchors> {
        let wrong = |what: &str| Error::misuse(format!("this is not a file of an authority: {what}"));
        let has_key = pem.windows(KEY.len()).any(|window| window == KEY);
        if has_key {
            return Err(wrong(
                "it has a private key; give its certificates alone, and keep the key elsewhere",
            ));
        }
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<std::result::Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|e| wrong(&format!("it is no PEM ({e})")))?;
        if certificates.is_empty() || certificates.len() > MAX_CERTIFICATES {
            let count = certificates.len();
            return Err(wrong(&format!("it has {count} certificates; 1 to {MAX_CERTIFICATES} are taken")));
        }
        let anchors = certificates.into_iter().zip(1..).map(|(certificate, number)| {
            Anchor::new(certificate).map_err(|why| wrong(&format!("its certificate {number} {why}")))
        });
        anchors.collect::<Result<_>>().map(Anchors)
    }

    /// The certificates.
    pub fn certificates(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.0.iter().map(|anchor| &anchor.certificate)
    }

    /// From when until when the one of them is valid that ends last.
    pub fn last(&self) -> Option<(SystemTime, SystemTime)> {
        let last = self.0.iter().max_by_key(|anchor| anchor.not_after);
        last.map(|anchor| (anchor.not_before, anchor.not_after))
    }

    /// Whether one of these has signed the first certificate of a chain, directly or over the others, and
    /// that is fit for a client, now. Returns until when. A certificate that is valid for longer than
    /// `longest` is refused.
    pub fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        longest: Duration,
        now: SystemTime,
    ) -> std::result::Result<SystemTime, String> {
        let [leaf, intermediates @ ..] = chain else { return Err("there is no certificate".into()) };
        if intermediates.len() > MAX_INTERMEDIATES {
            return Err(format!(
                "{} certificates come with it; at most {MAX_INTERMEDIATES} may be between it and its authority",
                intermediates.len()
            ));
        }
        check_leaf(leaf, longest)?;
        let is_now = |anchor: &&Anchor| anchor.not_before <= now && now <= anchor.not_after;
        let (trusted, anchors): (Vec<TrustAnchor<'_>>, Vec<&Anchor>) =
            self.0.iter().filter(is_now).map(|anchor| (anchor.trusted.clone(), anchor)).unzip();
        if trusted.is_empty() {
            return Err("the authority has no certificate that is valid now".into());
        }
        let parsed = EndEntityCert::try_from(leaf).map_err(|e| format!("it cannot be read: {e}"))?;
        let path = parsed
            .verify_for_usage(
                ring::default_provider().signature_verification_algorithms.all,
                &trusted,
                intermediates,
                unix_time(now),
                KeyUsage::client_auth(),
                None,
                None,
            )
            .map_err(|e| why(&e))?;
        let mut until = ends_of(leaf)?;
        for used in path.intermediate_certificates() {
            until = until.min(ends_of(&used.der())?);
        }
        // An authority may renew its certificate for the same key: the later end counts.
        let anchor = anchors.iter().filter(|anchor| anchor.trusted == *path.anchor());
        let of_anchor = anchor.map(|anchor| anchor.not_after).max();
        Ok(of_anchor.map_or(until, |of_anchor| until.min(of_anchor)))
    }
}

impl Anchor {
    fn new(certificate: CertificateDer<'static>) -> std::result::Result<Anchor, String> {
        let parsed = parse(&certificate)?;
        let may_sign = match parsed.key_usage() {
            Ok(None) => true,
            Ok(Some(usage)) => usage.value.key_cert_sign(),
            Err(_) => false,
        };
        if !parsed.is_ca() || !may_sign {
            return Err("is not one of an authority: it may not sign others".into());
        }
        let (not_before, not_after) = expiry(&certificate).map_err(|e| e.to_string())?;
        let trusted = anchor_from_trusted_cert(&certificate).map_err(|e| format!("cannot be used: {e}"))?;
        let trusted = trusted.to_owned();
        Ok(Anchor { certificate, trusted, not_before, not_after })
    }
}

/// Checks what the library leaves open.
fn check_leaf(leaf: &CertificateDer<'_>, longest: Duration) -> std::result::Result<(), String> {
    let parsed = parse(leaf)?;
    let (from, to) = expiry(leaf).map_err(|e| e.to_string())?;
    let valid = to.duration_since(from).unwrap_or_default();
    if valid > longest.saturating_add(DATED_BACK) {
        let hours = |time: Duration| time.as_secs().div_ceil(3600);
        return Err(format!(
            "it is valid for {} hours, and at most {} are allowed here (max_hours of the authority)",
            hours(valid),
            hours(longest)
        ));
    }
    let usage = parsed.key_usage().map_err(|_| "its key usage cannot be read".to_owned())?;
    match usage.map(|extension| extension.value) {
        Some(usage) if usage.key_cert_sign() || usage.crl_sign() => {
            return Err("it may sign certificates or revocations; a client's certificate may not".into());
        }
        Some(usage) if usage.digital_signature() => {}
        _ => return Err("its key usage does not have digitalSignature".into()),
    }
    let extended =
        parsed.extended_key_usage().map_err(|_| "its extended key usage cannot be read".to_owned())?;
    match extended {
        Some(extension) if extension.value.client_auth => Ok(()),
        _ => Err("its extended key usage does not have clientAuth".into()),
    }
}

fn parse<'c>(certificate: &'c CertificateDer<'_>) -> std::result::Result<X509Certificate<'c>, String> {
    match parse_x509_certificate(certificate) {
        Ok(([], parsed)) => Ok(parsed),
        _ => Err("is not an X.509 certificate in DER".into()),
    }
}

fn ends_of(certificate: &CertificateDer<'_>) -> std::result::Result<SystemTime, String> {
    expiry(certificate).map(|(_, to)| to).map_err(|e| e.to_string())
}

/// What the library found, for people.
fn why(error: &webpki::Error) -> String {
    use webpki::Error::{
        CaUsedAsEndEntity, CertExpired, CertNotValidYet, InvalidSignatureForPublicKey,
        NameConstraintViolation, UnknownIssuer,
    };
    let moment = |time: &UnixTime| crate::validity::second(*time);
    match error {
        CertExpired { time, not_after } => {
            format!("it, or one above it, has ended at {}; it is {} here", moment(not_after), moment(time))
        }
        CertNotValidYet { time, not_before } => {
            format!(
                "it, or one above it, is valid only from {}; it is {} here",
                moment(not_before),
                moment(time)
            )
        }
        UnknownIssuer => "none of the authority's certificates has signed it".into(),
        InvalidSignatureForPublicKey => "its signature is not one of the authority".into(),
        CaUsedAsEndEntity => "it is the certificate of an authority itself".into(),
        NameConstraintViolation => {
            "a certificate above it is constrained to other names (constraints on URIs are not supported)"
                .into()
        }
        other => format!("its chain does not verify: {other}"),
    }
}
