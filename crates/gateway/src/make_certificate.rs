//! A certificate for a listener, for users without a certificate authority.

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};
use zeroize::{Zeroize, Zeroizing};

use crate::{Error, Result};

/// How far in the past a new certificate's validity begins, for clocks that are slow.
const CLOCKS_DIFFER: Duration = Duration::HOUR;

/// Makes a key pair (ECDSA over P-256, which all programs take) and its self-signed certificate for these
/// host names and addresses, valid for this many days. Returns the certificate and the private key, both in
/// PEM.
pub fn make_certificate(hosts: &[String], days: u16) -> Result<(String, Zeroizing<String>)> {
    let broken = |error: rcgen::Error| Error::Certificate(error.to_string());
    if hosts.is_empty() || days == 0 {
        return Err(Error::Certificate("it needs a host name or an address, and a day at least".into()));
    }
    let mut parameters = CertificateParams::new(hosts).map_err(broken)?;
    let now = OffsetDateTime::now_utc();
    parameters.not_before = now - CLOCKS_DIFFER;
    parameters.not_after = now + Duration::days(days.into());
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "Polyclave gateway");
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut pair = KeyPair::generate().map_err(broken)?;
    let certificate = parameters.self_signed(&pair).map_err(broken);
    let key = Zeroizing::new(pair.serialize_pem());
    pair.zeroize();
    Ok((certificate?.pem(), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_none_and_no_days_are_refused() {
        let refused = |hosts: &[&str], days| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            make_certificate(&hosts, days).is_err()
        };
        assert!(refused(&[], 365) && refused(&["localhost"], 0) && refused(&["häuser"], 365));
        assert!(!refused(&["localhost", "127.0.0.1", "::1"], 365));
    }
}
