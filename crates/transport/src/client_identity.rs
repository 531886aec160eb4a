//! The identity that a certificate names, for clients that nodes know by an authority.
//!
//! It follows from the certificate alone, so all nodes read the same identity from it. It stays the same when
//! an agent renews the certificate.
//!
//! * A certificate with a URI among its alternative names is an X.509-SVID. Its identity is that URI, which
//!   has to be the only one, and the SPIFFE ID of a workload (SPIFFE ID and X.509-SVID, version 1.0). Other
//!   names in it, such as DNS names, mean nothing.
//! * Any other certificate has exactly one DNS name. Its identity is `dns:` and that name.
//!
//! A listed client's name has no colon, so no identity equals one.

use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use crate::CertificateDer;

/// The most bytes of an identity. SPIFFE allows 2048. An audit log has the identity in every line.
pub const MAX_IDENTITY: usize = 255;
/// What the SPIFFE ID of a workload begins with.
pub const SPIFFE: &str = "spiffe://";
/// What stands before the DNS name of a client that has no SPIFFE ID.
pub const DNS: &str = "dns:";

/// The longest DNS name, and the longest part of one.
const MAX_DNS: usize = 253;
const MAX_LABEL: usize = 63;
/// How much of a name that is refused is shown.
const SHOWN: usize = 100;

/// The identity that a certificate names, or why it names none. Nothing else about the certificate is
/// checked.
pub fn identity_of(certificate: &CertificateDer<'_>) -> Result<String, String> {
    let Ok(([], parsed)) = parse_x509_certificate(certificate) else {
        return Err("it is not an X.509 certificate in DER".into());
    };
    let names = parsed.subject_alternative_name();
    let names = names.map_err(|_| "its alternative names cannot be read, or are there twice".to_owned())?;
    let names = names.map_or(&[][..], |extension| &extension.value.general_names[..]);
    if names.iter().any(|name| matches!(name, GeneralName::Invalid(..))) {
        return Err("one of its alternative names cannot be read".into());
    }
    let uris: Vec<&str> = names
        .iter()
        .filter_map(|name| if let GeneralName::URI(uri) = name { Some(*uri) } else { None })
        .collect();
    let hosts: Vec<&str> = names
        .iter()
        .filter_map(|name| if let GeneralName::DNSName(host) = name { Some(*host) } else { None })
        .collect();
    match (&uris[..], &hosts[..]) {
        ([uri], _) => check_spiffe_id(uri).map(|()| (*uri).to_owned()),
        ([], [host]) => check_dns_name(host).map(|()| format!("{DNS}{host}")),
        ([], []) => Err("it has neither a SPIFFE ID nor a DNS name among its alternative names".into()),
        ([], hosts) => Err(format!(
            "it has no SPIFFE ID and {} DNS names, so it does not say which of them its client is",
            hosts.len()
        )),
        (uris, _) => {
            Err(format!("it has {} URIs among its alternative names; an SVID has exactly one", uris.len()))
        }
    }
}

/// Refuses what cannot be an identity ([`identity_of`]).
pub fn check_identity(identity: &str) -> Result<(), String> {
    match identity.strip_prefix(DNS) {
        Some(host) => check_dns_name(host),
        None => check_spiffe_id(identity),
    }
}

fn check_spiffe_id(uri: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{} is not the SPIFFE ID of a workload: {why}", shown(uri)));
    if uri.len() > MAX_IDENTITY {
        return wrong(&format!("it has {} bytes, and at most {MAX_IDENTITY} are taken here", uri.len()));
    }
    let Some(rest) = uri.strip_prefix(SPIFFE) else {
        return wrong("it does not begin with spiffe://");
    };
    let Some((domain, path)) = rest.split_once('/') else {
        return wrong("it has no path");
    };
    let of_domain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
    if domain.is_empty() || !domain.bytes().all(of_domain) {
        return wrong("its trust domain is not made of small letters, digits, '-', '_' and '.'");
    }
    let of_path = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let is_segment = |s: &str| !matches!(s, "" | "." | "..") && s.bytes().all(of_path);
    if !path.split('/').all(is_segment) {
        return wrong(
            "a part of its path is empty, '.' or '..', or has other characters than letters, digits, '-', '_' and '.'",
        );
    }
    Ok(())
}

fn check_dns_name(name: &str) -> Result<(), String> {
    let of_label = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && label.bytes().all(of_label)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    match name.len() <= MAX_DNS && name.len() + DNS.len() <= MAX_IDENTITY && name.split('.').all(is_label) {
        true => Ok(()),
        false => Err(format!("{} is no DNS name in small letters without a wildcard", shown(name))),
    }
}

/// A foreign text in quotes with escapes, cut where it is long.
fn shown(text: &str) -> String {
    let begin: String = text.chars().take(SHOWN).collect();
    let dots = if begin.len() < text.len() { ".." } else { "" };
    format!("{begin:?}{dots}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spiffe_ids_of_workloads_and_dns_names_are_identities_and_nothing_else_is() {
        let longest = format!("spiffe://corp.example/{}", "a".repeat(MAX_IDENTITY - 22));
        let fine = [
            "spiffe://corp.example/web",
            "spiffe://a_b-1.c/ns/prod/sa/Web.1_x-y",
            &longest,
            "dns:web.corp.example",
            "dns:web",
        ];
        fine.iter().for_each(|identity| check_identity(identity).expect(identity));
        let wrong = [
            "",
            "web",
            "spiffe://",
            "spiffe://corp.example",
            "spiffe://corp.example/",
            "spiffe:///web",
            "spiffe://corp.example/web/",
            "spiffe://corp.example//web",
            "spiffe://corp.example/a/../b",
            "spiffe://corp.example/./b",
            "SPIFFE://corp.example/web",
            "spiffe://Corp.example/web",
            "spiffe://corp.example:443/web",
            "spiffe://user@corp.example/web",
            "spiffe://corp.example/web?x=1",
            "spiffe://corp.example/web#x",
            "spiffe://corp.example/w%65b",
            "spiffe://corp.example/w b",
            "spiffe://corp.example/\u{fc}",
            "spiffe://corp.example/*",
            "https://corp.example/web",
            "dns:",
            "dns:Web.example",
            "dns:*.example",
            "dns:web..example",
            "dns:web.example.",
            "dns:-web.example",
            "dns:web example",
            &format!("{longest}a"),
            &format!("dns:{}", "a.".repeat(126) + "aa"),
            &format!("dns:{}", "a".repeat(64)),
        ];
        wrong.iter().for_each(|identity| assert!(check_identity(identity).is_err(), "{identity}"));
    }
}
