//! AWS Signature Version 4: who has signed a request, and whether it is the request that was signed ("Create
//! a signed AWS API request", IAM User Guide).
//!
//! The secret is never sent. A signature covers the method, the path, the query, the headers that it names,
//! and the body as it was received: an announced hash of the body counts for nothing. Whoever has seen a
//! signed request can send it again for as long as its time is accepted, unless the API remembers signatures.
//! So a listener that others can reach has TLS.
//!
//! Not served: signatures in the query (presigned addresses), bodies in signed pieces, and temporary
//! credentials with a session token.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING};
use ring::digest::{SHA256, digest};
use ring::hmac::{self, HMAC_SHA256, Key};
use time::{Date, Duration, Month, OffsetDateTime, PrimitiveDateTime, Time};
use zeroize::Zeroizing;

/// The most headers that a signature may name.
const MOST_SIGNED: usize = 64;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const TERMINATOR: &str = "aws4_request";
const DATE: &str = "x-amz-date";
const CONTENT_HASH: &str = "x-amz-content-sha256";

/// Why a request is not taken as signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unsigned {
    /// There is no signature.
    Missing,
    /// It cannot be read, or does not cover what it must.
    Incomplete(&'static str),
    /// Nobody is known by this id.
    Unknown,
    /// It is of another time.
    Expired,
    /// It is another request, another service, or another secret.
    Wrong,
}

/// What the headers of a request say of its signature. Nothing of it is proven.
#[derive(Debug)]
pub(crate) struct Claim<'h> {
    /// The access key id.
    pub(crate) id: &'h str,
    /// The region of the scope.
    pub(crate) region: &'h str,
    /// The service of the scope.
    pub(crate) service: &'h str,
    date: &'h str,
    at: &'h str,
    /// Names of headers, in order.
    signed: Vec<&'h str>,
    pub(crate) signature: [u8; 32],
}

/// The parts of a request that are signed.
pub(crate) struct Signed<'r> {
    pub(crate) method: &'r str,
    /// As it was sent.
    pub(crate) path: &'r str,
    pub(crate) query: &'r str,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) body: &'r [u8],
}

impl<'h> Claim<'h> {
    /// Reads the headers.
    pub(crate) fn of(headers: &'h HeaderMap) -> Result<Claim<'h>, Unsigned> {
        if !headers.contains_key(AUTHORIZATION) {
            return Err(Unsigned::Missing);
        }
        let authorization = only(headers, AUTHORIZATION.as_str())
            .ok_or(Unsigned::Incomplete("there is more than one Authorization header, or it is no text"))?;
        let parts = authorization.strip_prefix(ALGORITHM).and_then(|rest| rest.strip_prefix(' '));
        let parts =
            parts.ok_or(Unsigned::Incomplete("Authorization does not begin with AWS4-HMAC-SHA256"))?;
        let mut named: BTreeMap<&str, &str> = BTreeMap::new();
        for part in parts.split(',') {
            let (name, value) = part
                .trim()
                .split_once('=')
                .ok_or(Unsigned::Incomplete("a part of Authorization has no value"))?;
            if named.insert(name, value).is_some() {
                return Err(Unsigned::Incomplete("a part of Authorization is there twice"));
            }
        }
        let mut take = |name: &str| named.remove(name);
        let (Some(credential), Some(signed), Some(signature)) =
            (take("Credential"), take("SignedHeaders"), take("Signature"))
        else {
            return Err(Unsigned::Incomplete("Authorization needs Credential, SignedHeaders and Signature"));
        };
        if !named.is_empty() {
            return Err(Unsigned::Incomplete("Authorization has a part that is not known"));
        }
        let scope: Vec<&str> = credential.split('/').collect();
        let [id, date, region, service, TERMINATOR] = scope[..] else {
            return Err(Unsigned::Incomplete("Credential is not ID/DATE/REGION/SERVICE/aws4_request"));
        };
        let is_region = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(1..=32).contains(&region.len()) || !region.bytes().all(is_region) {
            return Err(Unsigned::Incomplete("the region of Credential is none"));
        }
        let at =
            only(headers, DATE).ok_or(Unsigned::Incomplete("there is no x-amz-date, or more than one"))?;
        if at.get(..8) != Some(date) {
            return Err(Unsigned::Incomplete("Credential has another date than x-amz-date"));
        }
        let mut bytes = [0; 32];
        let is_lower = signature.bytes().all(|byte| !byte.is_ascii_uppercase());
        if hex::decode_to_slice(signature, &mut bytes).is_err() || !is_lower {
            return Err(Unsigned::Incomplete("Signature is not 64 hexadecimal digits"));
        }
        let signed: Vec<&str> = signed.split(';').collect();
        check_signed(&signed, headers)?;
        Ok(Claim { id, region, service, date, at, signed, signature: bytes })
    }

    /// Its time, if that is about now.
    pub(crate) fn check_time(
        &self,
        now: OffsetDateTime,
        within: Duration,
    ) -> Result<OffsetDateTime, Unsigned> {
        let at = read_time(self.at).ok_or(Unsigned::Incomplete("x-amz-date is not YYYYMMDDTHHMMSSZ"))?;
        match (now - at).abs() <= within {
            true => Ok(at),
            false => Err(Unsigned::Expired),
        }
    }

    /// Whether a secret has signed the request. There is one answer for everything that does not fit. How
    /// long it takes says nothing of the secret.
    pub(crate) fn verify(&self, secret: &str, request: &Signed<'_>) -> Result<(), Unsigned> {
        let body = hex::encode(digest(&SHA256, request.body));
        if let Some(announced) = request.headers.get(CONTENT_HASH)
            && announced.as_bytes() != body.as_bytes()
        {
            return Err(Unsigned::Wrong);
        }
        let canonical = self.canonical(request, &body).ok_or(Unsigned::Wrong)?;
        let Claim { date, region, service, at, .. } = self;
        let hash = hex::encode(digest(&SHA256, canonical.as_bytes()));
        let to_sign = format!("{ALGORITHM}\n{at}\n{date}/{region}/{service}/{TERMINATOR}\n{hash}");
        let secret = Zeroizing::new(["AWS4", secret].concat());
        let mut key = Key::new(HMAC_SHA256, secret.as_bytes());
        for part in [date, region, service, &TERMINATOR] {
            key = Key::new(HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        // It compares in constant time.
        hmac::verify(&key, to_sign.as_bytes(), &self.signature).map_err(|_| Unsigned::Wrong)
    }

    /// The canonical request.
    fn canonical(&self, request: &Signed<'_>, body: &str) -> Option<String> {
        let mut text = format!("{}\n{}\n{}\n", request.method, encoded_path(request.path), {
            canonical_query(request.query)?
        });
        for name in &self.signed {
            let values: Option<Vec<String>> = request
                .headers
                .get_all(*name)
                .iter()
                .map(|value| {
                    Some(value.to_str().ok()?.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
                })
                .collect();
            text += &format!("{name}:{}\n", values?.join(","));
        }
        text += &format!("\n{}\n{body}", self.signed.join(";"));
        Some(text)
    }
}

/// The value of a header that is there once.
fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let one = all.next()?;
    if all.next().is_some() { None } else { one.to_str().ok() }
}

/// Which headers a signature has to cover, so that nobody can change what the request means.
fn check_signed(signed: &[&str], headers: &HeaderMap) -> Result<(), Unsigned> {
    let wrong = Unsigned::Incomplete;
    if signed.len() > MOST_SIGNED || !signed.is_sorted_by(|one, next| one < next) {
        return Err(wrong("SignedHeaders is not in order, or has a name twice"));
    }
    let is_there = |name: &&str| headers.contains_key(*name) && !name.bytes().any(|c| c.is_ascii_uppercase());
    if !signed.iter().all(is_there) {
        return Err(wrong("SignedHeaders names a header that is not there"));
    }
    if !["host", DATE].iter().all(|name| signed.contains(name)) {
        return Err(wrong("SignedHeaders needs host and x-amz-date"));
    }
    let is_left_out = |name: &str| name.starts_with("x-amz-") && !signed.contains(&name);
    if headers.keys().any(|name| is_left_out(name.as_str())) {
        return Err(wrong("SignedHeaders needs all headers that begin with x-amz-"));
    }
    if only(headers, "host").is_none() {
        return Err(wrong("there is more than one Host"));
    }
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(wrong("the body of a request has no Content-Encoding"));
    }
    Ok(())
}

/// A time of the form `20150830T123600Z`.
fn read_time(text: &str) -> Option<OffsetDateTime> {
    let digits = |from: usize, to: usize| {
        let part = text.get(from..to)?;
        part.bytes().all(|c| c.is_ascii_digit()).then(|| part.parse::<u16>().ok()).flatten()
    };
    if text.len() != 16 || text.get(8..9) != Some("T") || text.get(15..) != Some("Z") {
        return None;
    }
    let small = |from: usize| digits(from, from + 2).and_then(|number| u8::try_from(number).ok());
    let month = Month::try_from(small(4)?).ok()?;
    let date = Date::from_calendar_date(i32::from(digits(0, 4)?), month, small(6)?).ok()?;
    let time = Time::from_hms(small(9)?, small(11)?, small(13)?).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_utc())
}

/// A path as it is signed: what was sent, encoded once more. No path that is served has segments that lead
/// somewhere else, so none are removed.
fn encoded_path(path: &str) -> String {
    path.split('/').map(|part| encoded(part.as_bytes())).collect::<Vec<_>>().join("/")
}

/// A query as it is signed: decoded, encoded, and in order.
fn canonical_query(query: &str) -> Option<String> {
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((encoded(&decoded(name)?), encoded(&decoded(value)?)));
    }
    pairs.sort();
    Some(pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"))
}

/// Everything except for letters, digits and `-._~` as `%XX`.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(*byte))
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// The bytes that a text with `%XX` stands for; `None` if a `%` is followed by something else.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            byte => byte,
        });
    }
    Some(out)
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
