//! The bodies of requests, within the limits of the specification. Members that it does not have are ignored:
//! AWS may add some ("Appendix B"). What is wrong with a member is told without what it says.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use zeroize::{Zeroize, Zeroizing};

use super::error::{Exception, Kind, Result};
use crate::signed::json;

/// The most bytes of a plaintext and of additional data.
const MOST_PLAINTEXT: usize = 4300;
const MOST_ADDITIONAL: usize = 8192;
/// The most bytes of metadata of a ciphertext.
const MOST_METADATA: usize = 20;
/// Bytes of an initialization vector. The nodes make those of 12, and KMS knows those of 16, too.
const IV: [usize; 2] = [12, 16];
const TAG: usize = 16;
/// The most characters of a text of KMS that the log has: the longest ARN.
const MOST_LOGGED: usize = 2048;

/// What KMS says of the one who asked it, for rules and the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) request: String,
    pub(super) kms_operation: String,
    pub(super) principal: String,
    pub(super) kms_key: String,
}

impl Metadata {
    fn of(texts: [Cow<'_, str>; 4]) -> Metadata {
        let [request, kms_operation, principal, kms_key] = texts.map(Cow::into_owned);
        Metadata { request, kms_operation, principal, kms_key }
    }

    /// What the log has of it.
    pub(super) fn shortened(self) -> Metadata {
        let Metadata { request, kms_operation, principal, kms_key } = self;
        let [request, kms_operation, principal, kms_key] =
            [request, kms_operation, principal, kms_key].map(|text| text.chars().take(MOST_LOGGED).collect());
        Metadata { request, kms_operation, principal, kms_key }
    }
}

#[derive(Deserialize)]
struct Health<'b> {
    #[serde(borrow, rename = "requestMetadata")]
    metadata: OfHealth<'b>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfHealth<'b> {
    #[serde(borrow)]
    kms_request_id: Cow<'b, str>,
    #[serde(borrow)]
    kms_operation: Cow<'b, str>,
}

#[derive(Deserialize)]
struct KeyMetadata<'b> {
    #[serde(borrow, rename = "requestMetadata")]
    metadata: OfKeyMetadata<'b>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfKeyMetadata<'b> {
    #[serde(borrow)]
    aws_principal_arn: Cow<'b, str>,
    #[serde(borrow)]
    kms_request_id: Cow<'b, str>,
    #[serde(borrow)]
    kms_operation: Cow<'b, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfData<'b> {
    #[serde(borrow)]
    aws_principal_arn: Cow<'b, str>,
    #[serde(borrow)]
    kms_key_arn: Cow<'b, str>,
    #[serde(borrow)]
    kms_request_id: Cow<'b, str>,
    #[serde(borrow)]
    kms_operation: Cow<'b, str>,
}

impl OfData<'_> {
    fn noted(self) -> Metadata {
        Metadata::of([self.kms_request_id, self.kms_operation, self.aws_principal_arn, self.kms_key_arn])
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EncryptBody<'b> {
    #[serde(borrow)]
    request_metadata: OfData<'b>,
    #[serde(borrow)]
    plaintext: Cow<'b, str>,
    encryption_algorithm: Algorithm,
    additional_authenticated_data: Option<String>,
    ciphertext_data_integrity_value_algorithm: Option<IntegrityAlgorithm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DecryptBody<'b> {
    #[serde(borrow)]
    request_metadata: OfData<'b>,
    #[serde(rename = "encryptionAlgorithm")]
    _algorithm: Algorithm,
    ciphertext: Option<String>,
    ciphertext_metadata: Option<String>,
    additional_authenticated_data: Option<String>,
    initialization_vector: Option<String>,
    authentication_tag: Option<String>,
}

#[derive(Deserialize)]
enum Algorithm {
    #[serde(rename = "AES_GCM")]
    AesGcm,
}

#[derive(Deserialize)]
enum IntegrityAlgorithm {
    #[serde(rename = "SHA_256")]
    Sha256,
}

/// Reads a request for the health. Returns what the log has of it.
pub(super) fn read_health(body: &[u8]) -> Result<Metadata> {
    let Health { metadata } = read(body)?;
    let nothing = || Cow::Borrowed("");
    Ok(Metadata::of([metadata.kms_request_id, metadata.kms_operation, nothing(), nothing()]))
}

/// Reads a request for a key's metadata. Returns what the log has of it.
pub(super) fn read_metadata(body: &[u8]) -> Result<Metadata> {
    let KeyMetadata { metadata: of } = read(body)?;
    Ok(Metadata::of([of.kms_request_id, of.kms_operation, of.aws_principal_arn, Cow::Borrowed("")]))
}

/// What is to be encrypted.
pub(super) struct Encrypt {
    pub(super) plaintext: Zeroizing<Vec<u8>>,
    pub(super) additional: Vec<u8>,
    /// Whether a value for the ciphertext's integrity is wanted.
    pub(super) integrity: bool,
}

impl Encrypt {
    pub(super) fn read(body: &[u8], noted: &mut Metadata) -> Result<Encrypt> {
        let EncryptBody {
            request_metadata,
            plaintext,
            encryption_algorithm: Algorithm::AesGcm,
            additional_authenticated_data: additional,
            ciphertext_data_integrity_value_algorithm: integrity,
        } = read(body)?;
        *noted = request_metadata.noted();
        let plaintext = secret("plaintext", plaintext)?;
        check_length("plaintext", plaintext.len(), MOST_PLAINTEXT)?;
        let additional = STANDARD.decode(additional.unwrap_or_default());
        let additional = additional.map_err(|_| not_base64("additionalAuthenticatedData"))?;
        check_length("additionalAuthenticatedData", additional.len(), MOST_ADDITIONAL)?;
        let integrity = matches!(integrity, Some(IntegrityAlgorithm::Sha256));
        Ok(Encrypt { plaintext, additional, integrity })
    }
}

/// What is to be decrypted.
pub(super) struct Decrypt {
    pub(super) additional: Vec<u8>,
    pub(super) metadata: Vec<u8>,
    /// Initialization vector, ciphertext and tag.
    pub(super) message: Vec<u8>,
    /// Bytes of the vector.
    pub(super) iv: usize,
}

impl Decrypt {
    /// Whatever is wrong with what belongs to the ciphertext, or is missing of it, is one error.
    pub(super) fn read(body: &[u8], noted: &mut Metadata) -> Result<Decrypt> {
        let body: DecryptBody<'_> = read(body)?;
        *noted = body.request_metadata.noted();
        let decoded = |text: Option<String>| {
            STANDARD.decode(text.unwrap_or_default()).map_err(|_| Exception::invalid_ciphertext())
        };
        if body.ciphertext.is_none() {
            return Err(Exception::invalid_ciphertext());
        }
        let (ciphertext, metadata) = (decoded(body.ciphertext)?, decoded(body.ciphertext_metadata)?);
        let additional = decoded(body.additional_authenticated_data)?;
        let (iv, tag) = (decoded(body.initialization_vector)?, decoded(body.authentication_tag)?);
        check_length("ciphertext", ciphertext.len(), MOST_PLAINTEXT)?;
        check_length("additionalAuthenticatedData", additional.len(), MOST_ADDITIONAL)?;
        if !IV.contains(&iv.len()) || tag.len() != TAG || metadata.len() > MOST_METADATA {
            return Err(Exception::invalid_ciphertext());
        }
        Ok(Decrypt { additional, metadata, iv: iv.len(), message: [iv, ciphertext, tag].concat() })
    }
}

fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T> {
    json::read(body).map_err(|message| Kind::Validation.exception(message))
}

/// The bytes of a member, of which no copy stays behind.
fn secret(member: &'static str, text: Cow<'_, str>) -> Result<Zeroizing<Vec<u8>>> {
    let bytes = STANDARD.decode(text.as_bytes()).map(Zeroizing::new);
    if let Cow::Owned(mut text) = text {
        text.zeroize();
    }
    bytes.map_err(|_| not_base64(member))
}

fn not_base64(member: &str) -> Exception {
    Kind::Validation.exception(format!("{member} is no Base64"))
}

fn check_length(member: &str, bytes: usize, most: usize) -> Result<()> {
    let long = || Kind::UnsupportedOperation.exception(format!("{member} has more than {most} bytes"));
    if bytes <= most { Ok(()) } else { Err(long()) }
}
