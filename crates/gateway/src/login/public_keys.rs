//! The public keys of an issuer, from a JWKS (RFC 7517, 7518, 8037) or PEM, and signatures under them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use polyclave_config::SignatureAlgorithm;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Map, Value};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::compact::Compact;
use super::refused::Refused;
use super::strict;

/// The longest document with keys, in bytes, and the most keys in it.
pub(super) const MAX_DOCUMENT: usize = 256 << 10;
const MAX_KEYS: usize = 64;
/// The most keys that are tried for one token.
const MAX_TRIED: usize = 8;
/// Bits of an RSA modulus: less is broken, and more takes long to compute with.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The keys of an issuer. Those that cannot be used are there, too, so that an error can say why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PublicKeys(Vec<Entry>);

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    id: Option<String>,
    /// The only algorithm that the issuer uses it with, if it says so.
    algorithm: Option<SignatureAlgorithm>,
    key: Result<PublicKey, &'static str>,
}

#[derive(Debug, PartialEq, Eq)]
enum PublicKey {
    Rsa {
        /// The modulus and the exponent, without leading zeros.
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// A point, uncompressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl PublicKeys {
    /// Reads a document: a JWKS, or PEM. An error says what is wrong with all of it.
    pub(super) fn parse(document: &[u8]) -> Result<PublicKeys, String> {
        if document.len() > MAX_DOCUMENT {
            return Err(format!("it is longer than {} KiB", MAX_DOCUMENT >> 10));
        }
        let keys = match document.trim_ascii_start().first() {
            Some(b'{') => from_jwks(document)?,
            _ => from_pem(document)?,
        };
        if keys.len() > MAX_KEYS {
            return Err(format!("it has {} keys, and may have {MAX_KEYS}", keys.len()));
        }
        match keys.iter().find_map(|entry| entry.key.as_ref().err()) {
            Some(why) if keys.iter().all(|entry| entry.key.is_err()) => {
                Err(format!("it has no key that can be used: {why}"))
            }
            None if keys.is_empty() => Err("it has no key for signatures".into()),
            _ => Ok(PublicKeys(keys)),
        }
    }

    /// How many can be used.
    pub(super) fn usable(&self) -> usize {
        self.0.iter().filter(|entry| entry.key.is_ok()).count()
    }

    /// Whether a key of this name may be among them. Keys without a name may have any.
    pub(super) fn knows(&self, id: Option<&str>) -> bool {
        id.is_none() || self.of(id).next().is_some()
    }

    /// The keys that a name may mean.
    fn of(&self, id: Option<&str>) -> impl Iterator<Item = &Entry> {
        let is_named = id.is_some() && self.0.iter().any(|entry| entry.id.as_deref() == id);
        self.0.iter().filter(move |entry| match is_named {
            true => entry.id.as_deref() == id,
            false => id.is_none() || entry.id.is_none(),
        })
    }

    /// Whether the issuer has signed a token.
    pub(super) fn verify(&self, token: &Compact<'_>) -> Result<(), Refused> {
        let mut meant = self.of(token.key_id.as_deref()).peekable();
        if meant.peek().is_none() {
            return Err(Refused::UnknownKey);
        }
        let (mut fitting, mut unusable) = (Vec::new(), None);
        for entry in meant {
            match &entry.key {
                Err(why) => unusable = unusable.or(Some(*why)),
                Ok(key) => {
                    let algorithm = entry.algorithm.unwrap_or(token.algorithm);
                    fitting.extend(key.verifier(token.algorithm).filter(|_| algorithm == token.algorithm));
                }
            }
        }
        match (fitting.len(), unusable) {
            (0, Some(why)) => Err(Refused::UnusableKey(why)),
            (0, None) => Err(Refused::OtherKind),
            (1..=MAX_TRIED, _) if fitting.iter().any(|one| one.verify(token)) => Ok(()),
            (1..=MAX_TRIED, _) => Err(Refused::Signature),
            _ => Err(Refused::TooManyKeys(MAX_TRIED)),
        }
    }
}

/// A key with an algorithm that is one of its kind.
enum Verifier<'k> {
    Rsa(&'static signature::RsaParameters, &'k [u8], &'k [u8]),
    Other(&'static dyn VerificationAlgorithm, &'k [u8]),
}

impl Verifier<'_> {
    fn verify(&self, token: &Compact<'_>) -> bool {
        let (signed, signature) = (token.signed, &token.signature[..]);
        let verified = match *self {
            Verifier::Rsa(parameters, n, e) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, signed, signature)
            }
            Verifier::Other(algorithm, key) => {
                UnparsedPublicKey::new(algorithm, key).verify(signed, signature)
            }
        };
        verified.is_ok()
    }
}

impl PublicKey {
    /// How a signature with an algorithm is verified; `None` if the key is of another kind.
    fn verifier(&self, algorithm: SignatureAlgorithm) -> Option<Verifier<'_>> {
        use SignatureAlgorithm as Name;
        match self {
            PublicKey::Rsa { n, e } => {
                let parameters = match algorithm {
                    Name::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Name::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Name::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Name::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Name::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Name::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return None,
                };
                Some(Verifier::Rsa(parameters, n, e))
            }
            PublicKey::P256(point) => (algorithm == Name::Es256)
                .then_some(Verifier::Other(&signature::ECDSA_P256_SHA256_FIXED, point)),
            PublicKey::P384(point) => (algorithm == Name::Es384)
                .then_some(Verifier::Other(&signature::ECDSA_P384_SHA384_FIXED, point)),
            PublicKey::Ed25519(key) => {
                (algorithm == Name::EdDsa).then_some(Verifier::Other(&signature::ED25519, key))
            }
        }
    }

    fn rsa(n: &[u8], e: &[u8]) -> Result<PublicKey, &'static str> {
        let trimmed =
            |number: &[u8]| number.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<u8>>();
        let (n, e) = (trimmed(n), trimmed(e));
        let bits = 8 * n.len() - n.first().map_or(0, |byte| byte.leading_zeros() as usize);
        match RSA_BITS.contains(&bits) && n.last().is_some_and(|byte| byte & 1 == 1) {
            false => Err("an RSA key has to have a modulus of 2048 to 8192 bits"),
            true if is_exponent(&e) => Ok(PublicKey::Rsa { n, e }),
            true => Err("the exponent of an RSA key has to be odd, and from 3 to 2^33"),
        }
    }

    fn p256(x: &[u8], y: &[u8]) -> Result<PublicKey, &'static str> {
        point(x, y, 32).map(PublicKey::P256)
    }

    fn p384(x: &[u8], y: &[u8]) -> Result<PublicKey, &'static str> {
        point(x, y, 48).map(PublicKey::P384)
    }

    fn ed25519(key: &[u8]) -> Result<PublicKey, &'static str> {
        match key.len() {
            32 => Ok(PublicKey::Ed25519(key.into())),
            _ => Err("a key of Ed25519 has 32 bytes"),
        }
    }
}

/// Whether ring takes an exponent: an odd one from 3 to 2^33 - 1. It has no leading zeros.
fn is_exponent(e: &[u8]) -> bool {
    let is_short = e.len() < 5 || (e.len() == 5 && e[0] <= 1);
    is_short && e != [1] && e.last().is_some_and(|byte| byte & 1 == 1)
}

fn point(x: &[u8], y: &[u8], bytes: usize) -> Result<Vec<u8>, &'static str> {
    match x.len() == bytes && y.len() == bytes {
        true => Ok([&[4], x, y].concat()),
        false => {
            Err("the coordinates of a point have as many bytes as its curve has: 32 for P-256, 48 for P-384")
        }
    }
}

const OTHER_KIND: &str = "keys are of RSA, P-256, P-384 or Ed25519";

fn from_jwks(document: &[u8]) -> Result<Vec<Entry>, String> {
    let set = strict::object(document).map_err(|flaw| format!("it {flaw}"))?;
    let Some(Value::Array(keys)) = set.get("keys") else {
        return Err("it is no JWKS: it has no list \"keys\"".into());
    };
    Ok(keys.iter().filter_map(Value::as_object).filter_map(from_jwk).collect())
}

/// A key of a JWKS; `None` if it is for something else than signatures.
fn from_jwk(jwk: &Map<String, Value>) -> Option<Entry> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    let operations = jwk.get("key_ops").and_then(Value::as_array);
    let verifies = operations.is_none_or(|all| all.iter().any(|one| one.as_str() == Some("verify")));
    if text("use").is_some_and(|purpose| purpose != "sig") || !verifies {
        return None;
    }
    let bytes = |name: &str| {
        let decoded = text(name).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        decoded.ok_or("a number of it is missing, or no base64url")
    };
    let key = match (text("kty"), text("crv")) {
        (Some("RSA"), _) => bytes("n").and_then(|n| PublicKey::rsa(&n, &bytes("e")?)),
        (Some("EC"), Some("P-256")) => bytes("x").and_then(|x| PublicKey::p256(&x, &bytes("y")?)),
        (Some("EC"), Some("P-384")) => bytes("x").and_then(|x| PublicKey::p384(&x, &bytes("y")?)),
        (Some("OKP"), Some("Ed25519")) => bytes("x").and_then(|x| PublicKey::ed25519(&x)),
        (Some("oct"), _) => Err("it is a shared secret, and no public key"),
        _ => Err(OTHER_KIND),
    };
    let named = text("alg").map(SignatureAlgorithm::named);
    let key = if matches!(named, Some(None)) {
        Err("it is for an algorithm that this gateway does not know")
    } else {
        key
    };
    Some(Entry { id: text("kid").map(str::to_owned), algorithm: named.flatten(), key })
}

fn from_pem(document: &[u8]) -> Result<Vec<Entry>, String> {
    let all =
        SubjectPublicKeyInfoDer::pem_slice_iter(document).take(MAX_KEYS + 1).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|e| format!("it is neither a JWKS nor PEM: {e}"))?;
    if all.is_empty() {
        return Err("it is no JWKS, and has no public key in PEM (BEGIN PUBLIC KEY)".into());
    }
    Ok(all.iter().map(|der| Entry { id: None, algorithm: None, key: from_der(der) }).collect())
}

fn from_der(der: &[u8]) -> Result<PublicKey, &'static str> {
    const ED25519: &str = "1.3.101.112";
    const P256: &str = "1.2.840.10045.3.1.7";
    const P384: &str = "1.3.132.0.34";
    const DAMAGED: &str = "it is damaged";
    let (rest, info) = SubjectPublicKeyInfo::from_der(der).map_err(|_| DAMAGED)?;
    if !rest.is_empty() {
        return Err(DAMAGED);
    }
    if info.algorithm.algorithm.to_id_string() == ED25519 {
        return PublicKey::ed25519(&info.subject_public_key.data);
    }
    match info.parsed().map_err(|_| DAMAGED)? {
        Parsed::RSA(key) => PublicKey::rsa(key.modulus, key.exponent),
        Parsed::EC(point) => {
            let curve = info.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
            let curve = curve.map(|curve| curve.to_id_string()).unwrap_or_default();
            let [4, xy @ ..] = point.data() else { return Err("a point has to be uncompressed") };
            let (x, y) = xy.split_at(xy.len() / 2);
            match curve.as_str() {
                P256 => PublicKey::p256(x, y),
                P384 => PublicKey::p384(x, y),
                _ => Err(OTHER_KIND),
            }
        }
        _ => Err(OTHER_KIND),
    }
}
