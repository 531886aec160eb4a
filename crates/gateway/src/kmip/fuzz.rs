//! Fuzz target: messages, and what they ask for.

use polyclave_harness::fuzz;

use super::asked::Asked;
use super::call::Done;
use super::codes::{self, CONTINUE, V2, Version, mask, operation, tag};
use super::request::{MOST_BATCH, Request};
use super::response::{self, Outcome};
use super::ttlv::{self, Item, Value, Writer, put};

fn message((major, minor): Version, batch: &[(u32, Vec<Item<'_>>)]) -> Vec<u8> {
    let mut writer = Writer::with_capacity(4096);
    writer.structure(tag::REQUEST_MESSAGE, |message| {
        message.structure(tag::REQUEST_HEADER, |header| {
            header.structure(tag::PROTOCOL_VERSION, |version| {
                put(version, tag::MAJOR, Value::Integer(major));
                put(version, tag::MINOR, Value::Integer(minor));
            });
            put(header, tag::MAXIMUM_RESPONSE_SIZE, Value::Integer(4096));
            put(header, tag::BATCH_ERROR_CONTINUATION, Value::Enumeration(CONTINUE));
            put(header, tag::BATCH_COUNT, Value::Integer(batch.len() as i32));
        });
        for (operation, payload) in batch {
            message.structure(tag::BATCH_ITEM, |item| {
                put(item, tag::OPERATION, Value::Enumeration(*operation));
                put(item, tag::UNIQUE_BATCH_ITEM_ID, Value::Bytes(b"1"));
                put(item, tag::REQUEST_PAYLOAD, Value::Structure(payload.clone()));
            });
        }
    });
    writer.into_bytes().to_vec()
}

fn item(tag: u32, value: Value<'_>) -> Item<'_> {
    Item { tag, value }
}

/// An attribute as versions 1 write it.
fn attribute(name: &'static str, value: Value<'static>) -> Item<'static> {
    let of = vec![item(tag::ATTRIBUTE_NAME, Value::Text(name)), item(tag::ATTRIBUTE_VALUE, value)];
    item(tag::ATTRIBUTE, Value::Structure(of))
}

fn valid() -> Vec<Vec<u8>> {
    let of_key = || item(tag::UNIQUE_IDENTIFIER, Value::Text("a:000102030405060708090a0b0c0d0e0f"));
    let data = || item(tag::DATA, Value::Bytes(b"some data"));
    let more = item(tag::ADDITIONAL_DATA, Value::Bytes(b"x"));
    let code = item(tag::MAC_DATA, Value::Bytes(&[3; 32]));
    let iv = item(tag::IV, Value::Bytes(&[1; 12]));
    let end = item(tag::AUTHENTICATION_TAG, Value::Bytes(&[2; 16]));
    let name = || {
        Value::Structure(vec![
            item(tag::NAME_VALUE, Value::Text("a")),
            item(tag::NAME_TYPE, Value::Enumeration(codes::UNINTERPRETED)),
        ])
    };
    let kind = || item(tag::OBJECT_TYPE, Value::Enumeration(codes::SYMMETRIC_KEY));
    let bits = (mask::ENCRYPT | mask::DECRYPT) as i32;
    let old = vec![
        attribute("Name", name()),
        attribute("Cryptographic Algorithm", Value::Enumeration(codes::AES)),
        attribute("Cryptographic Length", Value::Integer(256)),
        attribute("Cryptographic Usage Mask", Value::Integer(bits)),
    ];
    let new = vec![
        item(tag::NAME, name()),
        item(tag::CRYPTOGRAPHIC_ALGORITHM, Value::Enumeration(codes::TRIPLE_DES)),
        item(tag::CRYPTOGRAPHIC_LENGTH, Value::Integer(168)),
        item(tag::CRYPTOGRAPHIC_USAGE_MASK, Value::Integer(bits)),
        item(tag::ACTIVATION_DATE, Value::DateTime(1)),
        item(tag::DEACTIVATION_DATE, Value::DateTime(1 << 40)),
    ];
    let by_state = vec![item(tag::STATE, Value::Enumeration(codes::ACTIVE)), kind()];
    let reason = vec![item(tag::REVOCATION_REASON_CODE, Value::Enumeration(codes::KEY_COMPROMISE))];
    let create = |tag, of| (operation::CREATE, vec![kind(), item(tag, Value::Structure(of))]);
    let (v1, v2) = ((1, 4), (2, 1));
    vec![
        message(v1, &[(operation::DISCOVER_VERSIONS, vec![])]),
        message(v1, &[(operation::QUERY, vec![item(tag::QUERY_FUNCTION, Value::Enumeration(1))])]),
        message(v1, &[(operation::ENCRYPT, vec![of_key(), data(), more])]),
        message(v1, &[(operation::DECRYPT, vec![of_key(), data(), iv, end])]),
        message(v1, &[(operation::MAC, vec![of_key(), data()])]),
        message(v1, &[(operation::MAC_VERIFY, vec![of_key(), data(), code])]),
        message(v2, &[(operation::REKEY, vec![of_key(), item(tag::ATTRIBUTES, Value::Structure(vec![]))])]),
        message(v1, &[create(tag::TEMPLATE_ATTRIBUTE, old.clone())]),
        message(v2, &[create(tag::ATTRIBUTES, new)]),
        message(v1, &[(operation::LOCATE, old[..3].to_vec())]),
        message(v2, &[(operation::LOCATE, vec![item(tag::ATTRIBUTES, Value::Structure(by_state))])]),
        message(
            v2,
            &[(operation::GET_ATTRIBUTE_LIST, vec![of_key()]), (operation::ACTIVATE, vec![of_key()])],
        ),
        message(
            v2,
            &[(
                operation::GET_ATTRIBUTES,
                vec![of_key(), item(tag::ATTRIBUTE_REFERENCE, Value::Enumeration(tag::STATE))],
            )],
        ),
        message(
            v1,
            &[
                (operation::REVOKE, vec![of_key(), item(tag::REVOCATION_REASON, Value::Structure(reason))]),
                (operation::DESTROY, vec![of_key()]),
            ],
        ),
    ]
}

/// What is read is written as it was, and what is asked for is within the limits.
#[test]
fn fuzz_requests() {
    for message in valid() {
        let request = Request::read(&message).unwrap_or_else(|refused| panic!("{refused:?}"));
        for item in request.batch {
            let operation = item.operation;
            let asked = Asked::read(item, request.version, None);
            assert!(asked.is_ok(), "{operation}: {:?}", asked.err());
        }
    }
    let words = ["\x42\x00\x78\x01", "\x42\x00\x0f\x01", "\x42\x00\x0d\x02", "\x00\x00\x00\x08", "Name"];
    fuzz!("kmip-requests", &words, valid(), |bytes: &[u8]| {
        if let Ok(item) = ttlv::read(bytes) {
            let mut writer = Writer::with_capacity(bytes.len());
            writer.item(&item);
            assert_eq!(*writer.into_bytes(), bytes);
        }
        let Ok(request) = Request::read(bytes) else { return };
        assert!((1..=MOST_BATCH).contains(&request.batch.len()));
        let mut outcomes = Vec::new();
        for item in request.batch {
            let (operation, id) = (Some(item.operation), item.id);
            let outcome = Asked::read(item, request.version, Some("a"));
            let outcome = outcome.map(|_| {
                Done::to("a".into(), 64, |payload, identifier| {
                    put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
                })
            });
            if let Err(refused) = &outcome {
                assert!(refused.message.chars().all(|c| !c.is_control()), "{refused:?}");
                assert!(refused.reason.code(V2) > 0);
            }
            outcomes.push(Outcome { operation, id, outcome });
        }
        let answer = response::write(request.version, &outcomes, 0);
        assert!(ttlv::read(&answer).is_ok(), "a response is TTLV");
    });
}
