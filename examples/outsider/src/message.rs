//! The delivery as one file that mail programs and OpenSSL open: a CMS message of type AuthEnvelopedData
//! (RFC 5083) with AES-128-GCM (RFC 5084) and the key by RSA PKCS#1 v1.5 (RFC 3370, section 4.2.1), in DER.

use crate::delivery::Delivery;
use crate::receiver::KEY_ID_BYTES;

// The contents of object identifiers.
const AUTH_ENVELOPED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x17];
const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const AES_128_GCM: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x06];

// Tags.
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const NULL: u8 = 0x05;
const IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Numbered 0 in its place, instead of its own tag; the second one around it.
const IMPLICIT_0: u8 = 0x80;
const EXPLICIT_0: u8 = 0xa0;

/// The message for the receiver whose key has this name.
pub fn cms(delivery: &Delivery, receiver: &[u8; KEY_ID_BYTES]) -> Vec<u8> {
    let key_algorithm = sequence(&[&element(IDENTIFIER, RSA_ENCRYPTION), &element(NULL, &[])]);
    // KeyTransRecipientInfo with a subjectKeyIdentifier has version 2.
    let recipient = sequence(&[
        &element(INTEGER, &[2]),
        &element(IMPLICIT_0, receiver),
        &key_algorithm,
        &element(OCTETS, &delivery.key),
    ]);
    let parameters =
        sequence(&[&element(OCTETS, &delivery.nonce), &element(INTEGER, &[delivery.tag.len() as u8])]);
    let content = sequence(&[
        &element(IDENTIFIER, DATA),
        &sequence(&[&element(IDENTIFIER, AES_128_GCM), &parameters]),
        &element(IMPLICIT_0, &delivery.ciphertext),
    ]);
    let enveloped = sequence(&[
        &element(INTEGER, &[0]),
        &element(SET, &recipient),
        &content,
        &element(OCTETS, &delivery.tag),
    ]);
    sequence(&[&element(IDENTIFIER, AUTH_ENVELOPED_DATA), &element(EXPLICIT_0, &enveloped)])
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let length = contents.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count().min(length.len() - 1)..];
    if contents.len() >= 0x80 {
        bytes.push(0x80 | length.len() as u8);
    }
    bytes.extend_from_slice(length);
    bytes.extend_from_slice(contents);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_in_the_fewest_bytes() {
        let header = |len: usize| {
            element(OCTETS, &vec![7; len])[1..].iter().take_while(|b| **b != 7).copied().collect::<Vec<_>>()
        };
        assert_eq!(header(0x7f), [0x7f]);
        assert_eq!(header(0x80), [0x81, 0x80]);
        assert_eq!(header(0x1234), [0x82, 0x12, 0x34]);
        assert_eq!(element(NULL, &[]), [5, 0]);
    }
}
