//! Create: a key that no one knows. It is active as soon as it is made, since keys of the nodes are.

use polyclave_api::{Mode, NewKey, Right, Usage, most_blocks};
use polyclave_cipher::keyed;

use super::attributes;
use super::call::{Call, Done, now};
use super::codes::{self, Version, mask, tag};
use super::crypt::mode;
use super::fields::Fields;
use super::object::{KINDS, identifier};
use super::refused::{Reason, Result, invalid, missing};
use super::ttlv::{Value, put};

/// How far in the future a date may be that was meant to be now.
const CLOCKS: i64 = 60;
/// Bytes of a response's payload beside the identifier.
const AROUND: usize = 64;

/// The key that is to be made.
pub(super) struct Create(NewKey);

impl Create {
    pub(super) fn read(payload: &mut Fields<'_>, version: Version) -> Result<Create> {
        let object = payload.enumeration(tag::OBJECT_TYPE)?.ok_or_else(|| missing("object type"))?;
        if object != codes::SYMMETRIC_KEY {
            return Err(Reason::InvalidField.because("only symmetric keys are made here"));
        }
        let mut of = attributes::read(payload, version, true)?;
        let name = attributes::name(&mut of)?.ok_or_else(|| {
            Reason::MissingData.because("a key needs the attribute Name: rights are for keys with some names")
        })?;
        if polyclave_config::check_name("key", name).is_err() {
            let why = "the name of a key has 1 to 64 letters, digits, '-', '_' or '.'";
            return Err(Reason::InvalidField.because(why));
        }
        let (algorithm, cipher) = read_kind(&mut of)?;
        let (modes, usage) = read_use(&mut of, algorithm)?;
        let expires = read_dates(&mut of)?;
        check_secrecy(&mut of)?;
        of.end()?;
        let block = keyed::find(cipher).map(|cipher| cipher.block_bytes).unwrap_or_default();
        let new = NewKey::for_modes(name, cipher, &modes, most_blocks(block, &modes));
        Ok(Create(NewKey { usage, expires, ..new }))
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::Generate, &self.0.name)?;
        call.change(move |client| {
            let info = client.generate(self.0)?;
            Ok(Done::to(identifier(&(&info).into()), AROUND, |payload, identifier| {
                put(payload, tag::OBJECT_TYPE, Value::Enumeration(codes::SYMMETRIC_KEY));
                put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
            }))
        })
        .await
    }
}

/// The algorithm, and the cipher of the nodes.
fn read_kind(of: &mut Fields<'_>) -> Result<(u32, &'static str)> {
    let algorithm = of.enumeration(tag::CRYPTOGRAPHIC_ALGORITHM)?;
    let algorithm = algorithm.ok_or_else(|| missing("cryptographic algorithm"))?;
    let length = of.integer(tag::CRYPTOGRAPHIC_LENGTH)?.ok_or_else(|| missing("cryptographic length"))?;
    let kind = KINDS.iter().find(|(of, bits, _)| (*of, Ok(*bits)) == (algorithm, u32::try_from(length)));
    let (.., cipher) = kind.ok_or_else(|| {
        Reason::InvalidField.because(
            "keys are of AES with 128, 192 or 256 bits, of 3DES with 168 (or 192 with parity), of HMAC-SHA256 with 512, or of HMAC-SHA384 or HMAC-SHA512 with 1024",
        )
    })?;
    Ok((algorithm, cipher))
}

/// What a key is for. One that encrypts is for one mode: that of the parameters, or GCM, or CBC for 3DES.
fn read_use(of: &mut Fields<'_>, algorithm: u32) -> Result<(Vec<Mode>, Vec<Usage>)> {
    let bits =
        of.integer(tag::CRYPTOGRAPHIC_USAGE_MASK)?.ok_or_else(|| missing("cryptographic usage mask"))?;
    let bits = bits as u32;
    let named = match of.structure(tag::CRYPTOGRAPHIC_PARAMETERS)? {
        None => None,
        Some(mut of) => {
            if of.enumeration(tag::CRYPTOGRAPHIC_ALGORITHM)?.is_some_and(|named| named != algorithm) {
                return Err(
                    Reason::InvalidField.because("the parameters name another algorithm than the key")
                );
            }
            let named = of.enumeration(tag::BLOCK_CIPHER_MODE)?;
            // It is named again with each message.
            of.enumeration(tag::PADDING_METHOD)?;
            of.end()?;
            named
        }
    };
    let (codes_bits, data_bits) = (mask::MAC_GENERATE | mask::MAC_VERIFY, mask::ENCRYPT | mask::DECRYPT);
    if bits == 0 || bits & !(codes_bits | data_bits) != 0 {
        let why = "keys are made to encrypt and decrypt, or to generate and verify codes; other uses are not served";
        return Err(Reason::InvalidField.because(why));
    }
    let hmac = codes::is_hmac(algorithm);
    match (bits & data_bits != 0, bits & codes_bits != 0) {
        (true, true) if !hmac => Err(Reason::InvalidField.because(
            "codes and ciphertexts under one key can undo each other: make one key to encrypt, and another for codes",
        )),
        (true, false) if hmac => Err(Reason::InvalidField.because("a key of HMAC encrypts nothing")),
        (true, false) => {
            let mode = match named {
                Some(number) => mode(number)?,
                None if algorithm == codes::TRIPLE_DES => Mode::Cbc,
                None => Mode::Gcm,
            };
            let usage = [(mask::ENCRYPT, Usage::Encrypt), (mask::DECRYPT, Usage::Decrypt)];
            let usage = usage.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, usage)| usage);
            Ok((vec![mode], usage.collect()))
        }
        // PyKMIP says of every key that it encrypts and decrypts. A key of HMAC does neither all the same.
        _ => {
            if named.is_some_and(|named| hmac || named != codes::CMAC) {
                return Err(invalid("block cipher mode"));
            }
            Ok((vec![if hmac { Mode::Hmac } else { Mode::Cmac }], vec![Usage::Mac]))
        }
    }
}

/// When the key expires.
fn read_dates(of: &mut Fields<'_>) -> Result<Option<u64>> {
    let now = now();
    if of.time(tag::ACTIVATION_DATE)?.is_some_and(|date| date > now + CLOCKS) {
        let why = "a key is active as soon as it is made: an activation date in the future cannot be kept";
        return Err(Reason::InvalidField.because(why));
    }
    let Some(date) = of.time(tag::DEACTIVATION_DATE)? else { return Ok(None) };
    match u64::try_from(date) {
        Ok(date) if i64::try_from(date).is_ok_and(|date| date > now) => Ok(Some(date)),
        _ => Err(Reason::InvalidField.because("the deactivation date is in the past")),
    }
}

/// No key leaves the nodes, so a client cannot ask for one that does.
fn check_secrecy(of: &mut Fields<'_>) -> Result<()> {
    if of.boolean(tag::SENSITIVE)? == Some(false) || of.boolean(tag::EXTRACTABLE)? == Some(true) {
        return Err(Reason::InvalidField.because("every key is sensitive and not extractable here"));
    }
    Ok(())
}
