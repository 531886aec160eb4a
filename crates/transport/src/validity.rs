//! The dates between which a certificate is valid.
//!
//! A certificate that is listed is pinned, so its dates add no trust. They make sure that keys are changed.
//! Both sides of every connection check them, each by its own clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polyclave_protocol::Error;
use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use x509_parser::parse_x509_certificate;

/// The first and the last moment at which a certificate is valid.
pub fn expiry(certificate: &CertificateDer<'_>) -> Result<(SystemTime, SystemTime), Error> {
    match parse_x509_certificate(certificate) {
        Ok(([], parsed)) => {
            let validity = parsed.validity();
            Ok((moment(validity.not_before.timestamp()), moment(validity.not_after.timestamp())))
        }
        _ => Err(Error::misuse("this is not an X.509 certificate in DER")),
    }
}

/// Refuses a certificate outside its dates.
pub(crate) fn check(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    let validity = expiry(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let (not_before, not_after) = (unix_time(validity.0), unix_time(validity.1));
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before });
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after });
    }
    Ok(())
}

/// What [`check`] found, to follow a word on whose certificate it is.
pub(crate) fn message_of(error: &CertificateError) -> Option<String> {
    match error {
        CertificateError::ExpiredContext { time, not_after } => Some(format!(
            "certificate expired on {}, and by the clock here it is {}; set this clock if it is wrong, else rotate the certificate",
            date(*not_after),
            date(*time)
        )),
        CertificateError::NotValidYetContext { time, not_before } => Some(format!(
            "certificate is not valid before {}, and by the clock here it is {}; see whether all clocks are right",
            date(*not_before),
            date(*time)
        )),
        CertificateError::BadEncoding => Some("certificate is not an X.509 certificate in DER".into()),
        _ => None,
    }
}

fn moment(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let moment =
        if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    moment.unwrap_or(UNIX_EPOCH)
}

pub(crate) fn unix_time(moment: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(moment.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A moment to the second, for people.
pub(crate) fn second(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).ok();
    let moment = seconds.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    let text = moment.and_then(|moment| moment.format(&Rfc3339).ok());
    text.unwrap_or_else(|| format!("second {} of 1970", time.as_secs()))
}

fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).ok();
    let moment = seconds.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    moment.map_or_else(|| format!("second {} of 1970", time.as_secs()), |moment| moment.date().to_string())
}
