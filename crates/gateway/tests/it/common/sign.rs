//! Signature Version 4, as clients of AWS make it.

use std::fmt::Write;

use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use time::OffsetDateTime;

/// The value of `x-amz-date`.
pub fn time_of(at: OffsetDateTime) -> String {
    let date = format!("{:04}{:02}{:02}", at.year(), u8::from(at.month()), at.day());
    format!("{date}T{:02}{:02}{:02}Z", at.hour(), at.minute(), at.second())
}

/// The value of `Authorization` for a `POST`, by an id and a secret.
pub fn authorization(
    (id, secret): (&str, &str),
    (region, service): (&str, &str),
    (path, time): (&str, &str),
    mut headers: Vec<(&str, String)>,
    body: &[u8],
) -> String {
    headers.sort();
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let path = path.replace('%', "%25");
    let mut canonical = format!("POST\n{path}\n\n");
    for (name, value) in &headers {
        writeln!(canonical, "{name}:{value}").expect("written");
    }
    let hash = |bytes: &[u8]| hex::encode(digest(&SHA256, bytes));
    write!(canonical, "\n{names}\n{}", hash(body)).expect("written");
    let scope = format!("{}/{region}/{service}/aws4_request", &time[..8]);
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hash(canonical.as_bytes()));
    let mut signing = Key::new(HMAC_SHA256, format!("AWS4{secret}").as_bytes());
    for part in scope.split('/') {
        signing = Key::new(HMAC_SHA256, sign(&signing, part.as_bytes()).as_ref());
    }
    let signature = hex::encode(sign(&signing, to_sign.as_bytes()));
    format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}")
}
