//! What a verified token has to say: that it is of now, of the issuer, for this gateway, and of somebody whom
//! the role lets in (RFC 7519, section 4.1; RFC 8725).

use std::time::{SystemTime, UNIX_EPOCH};

use polyclave_config::{GatewayLogin, GatewayLoginRole, LoginKind};
use serde_json::{Map, Value};

use super::refused::Refused;

/// The longest subject, in bytes: the longest of Kubernetes has 337.
const MAX_SUBJECT: usize = 512;
/// The end of the year 9999. A time after it is a mistake, such as one in milliseconds.
const LAST_SECOND: i64 = 253_402_300_799;
/// What subjects of service accounts begin with.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

type Result<T> = std::result::Result<T, Refused>;
type Claims = Map<String, Value>;

/// Who has logged in, as the issuer says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) subject: String,
    /// What Vault tells of it.
    pub(crate) metadata: Vec<(&'static str, String)>,
}

/// Whose token it is, if it may be used for a role now.
pub(super) fn judge(
    claims: &Claims,
    login: &GatewayLogin,
    role: &GatewayLoginRole,
    now: SystemTime,
) -> Result<Identity> {
    judge_times(claims, login.leeway_seconds as i64, seconds_of(now))?;
    if text(claims, "iss")? != login.issuer {
        return Err(Refused::OtherIssuer);
    }
    judge_audience(claims, role)?;
    let subject = text(claims, "sub")?;
    if subject.is_empty() || subject.len() > MAX_SUBJECT {
        return Err(Refused::WrongClaim("sub", "it has to have from 1 to 512 bytes"));
    }
    let mut metadata = vec![("role", role.name.clone())];
    match login.kind {
        LoginKind::Jwt if !role.fits_subject(subject) => return Err(Refused::OtherSubject),
        LoginKind::Jwt => {}
        LoginKind::Kubernetes => metadata.extend(judge_service_account(claims, subject, role)?),
    }
    for (name, patterns) in &role.claims {
        if !values(claims, name).iter().any(|value| GatewayLoginRole::fits_claim(patterns, value)) {
            return Err(Refused::OtherClaim(name.clone()));
        }
    }
    Ok(Identity { subject: subject.to_owned(), metadata })
}

fn judge_times(claims: &Claims, leeway: i64, now: i64) -> Result<()> {
    let ends = time(claims, "exp")?.ok_or(Refused::NoClaim("exp"))?;
    if now >= ends + leeway {
        return Err(Refused::Expired(now - ends));
    }
    for name in ["nbf", "iat"] {
        if let Some(begins) = time(claims, name)?
            && begins > now + leeway
        {
            return Err(Refused::TooEarly(name, begins - now));
        }
    }
    Ok(())
}

fn judge_audience(claims: &Claims, role: &GatewayLoginRole) -> Result<()> {
    let wrong = || Refused::WrongClaim("aud", "it has to be a text, or a list of texts");
    let audiences = match claims.get("aud") {
        None => return Err(Refused::NoClaim("aud")),
        Some(Value::Array(all)) => {
            all.iter().map(Value::as_str).collect::<Option<Vec<_>>>().ok_or_else(wrong)?
        }
        Some(one) => vec![one.as_str().ok_or_else(wrong)?],
    };
    match audiences.iter().any(|audience| role.audiences.iter().any(|own| own == audience)) {
        true => Ok(()),
        false => Err(Refused::OtherAudience),
    }
}

/// The service account of a token, which its subject and `kubernetes.io` both name. Tokens that a Secret
/// holds have no `kubernetes.io`: they do not end, and the API server alone knows whether they still hold.
fn judge_service_account(
    claims: &Claims,
    subject: &str,
    role: &GatewayLoginRole,
) -> Result<[(&'static str, String); 3]> {
    let parts = subject.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
    let (namespace, name) = parts.ok_or(Refused::NoServiceAccount)?;
    let said =
        |path: &str| claims.get("kubernetes.io").and_then(|own| own.pointer(path)).and_then(Value::as_str);
    if said("/namespace") != Some(namespace) || said("/serviceaccount/name") != Some(name) {
        return Err(Refused::NoServiceAccount);
    }
    if !role.fits_namespace(namespace) {
        return Err(Refused::OtherNamespace);
    }
    if !role.fits_service_account(name) {
        return Err(Refused::OtherServiceAccount);
    }
    let id: String = said("/serviceaccount/uid").unwrap_or_default().chars().take(64).collect();
    Ok([
        ("service_account_name", name.to_owned()),
        ("service_account_namespace", namespace.to_owned()),
        ("service_account_uid", id),
    ])
}

/// The values of a claim as texts: one, or those of a list.
fn values(claims: &Claims, name: &str) -> Vec<String> {
    let found = match name.strip_prefix('/') {
        None => claims.get(name),
        // A JSON pointer, of which the first part is a claim.
        Some(path) => {
            let (first, rest) = path.find('/').map_or((path, ""), |at| path.split_at(at));
            let first = first.replace("~1", "/").replace("~0", "~");
            claims.get(&first).and_then(|value| value.pointer(rest))
        }
    };
    let as_text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    };
    match found {
        None => Vec::new(),
        Some(Value::Array(all)) => all.iter().filter_map(as_text).collect(),
        Some(one) => as_text(one).into_iter().collect(),
    }
}

pub(super) fn text<'c>(claims: &'c Claims, name: &'static str) -> Result<&'c str> {
    let value = claims.get(name).ok_or(Refused::NoClaim(name))?;
    value.as_str().ok_or(Refused::WrongClaim(name, "it has to be a text"))
}

/// A time in seconds since 1970. Fractions of a second are cut off.
pub(super) fn time(claims: &Claims, name: &'static str) -> Result<Option<i64>> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let whole = value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds.floor() as i64));
    match whole.filter(|seconds| (0..=LAST_SECOND).contains(seconds)) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(Refused::WrongClaim(name, "it has to be a number of seconds since 1970")),
    }
}

/// A time of this machine in the same seconds.
pub(super) fn seconds_of(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().min(LAST_SECOND as u64) as i64)
}
