//! What is refused, and that nothing of a PIN is told.

use serde_json::{Value, json};

use super::{OF_4524, OF_4525, VERIFY_PIN, by_pvv, with, without, world};
use crate::common::{Ask, Unsigned, logged};

const WRONG: (u16, &str) = (400, "ValidationException");

#[test]
fn requests_that_cannot_be_meant_are_told_by_member_and_without_what_they_say() {
    let (world, key) = world();
    let request = by_pvv(OF_4524, "4021");
    let refused = |request: &Value| world.refused(&key, VERIFY_PIN, request, WRONG);
    for (member, value) in [
        ("EncryptedPinBlock", json!("77777777")),
        ("EncryptedPinBlock", json!("7777777777777777777777777777777777")),
        ("EncryptedPinBlock", json!("777777777777777x")),
        ("PrimaryAccountNumber", json!("77777777777")),
        ("PrimaryAccountNumber", json!("777777777777x")),
        ("PinDataLength", json!(6)),
        ("EncryptionKeyIdentifier", json!("77777777")),
        ("EncryptionWrappedKey", json!({ "WrappedKeyMaterial": { "Tr31KeyBlock": "77777777" } })),
    ] {
        let told = refused(&with(&request, member, value));
        assert_eq!(told["fieldList"][0]["path"], member, "{told}");
        assert!(!told.to_string().contains("7777"), "{told}");
    }
    let visa = |index: Value, value: Value| {
        let members = json!({ "PinVerificationKeyIndex": index, "VerificationValue": value });
        with(&request, "VerificationAttributes", json!({ "VisaPin": members }))
    };
    for wrong in [
        visa(json!(7), json!("4021")),
        visa(json!(-1), json!("4021")),
        visa(json!("7777"), json!("4021")),
        visa(json!(3), json!("77777")),
        visa(json!(3), json!("777x")),
        visa(json!(3), json!(7777)),
        with(&request, "VerificationAttributes", json!({})),
        with(&request, "VerificationAttributes", json!({ "Other7777": {} })),
        with(&request, "VerificationAttributes", json!("7777")),
        with(
            &request,
            "VerificationAttributes",
            json!({
                "VisaPin": { "PinVerificationKeyIndex": 3, "VerificationValue": "4021" },
                "Ibm3624Pin": {},
            }),
        ),
        with(&request, "PinBlockFormat", json!("ISO_FORMAT_7777")),
        with(&request, "Other7777", json!("7777")),
        without(&request, "EncryptedPinBlock"),
        without(&request, "PrimaryAccountNumber"),
        json!(["7777"]),
        json!("7777"),
    ] {
        let told = refused(&wrong);
        assert!(!told.to_string().contains("7777"), "{told}");
    }
    let body = |body: &[u8]| {
        let request = Unsigned { body: body.to_vec(), ..Unsigned::new(VERIFY_PIN, &Value::Null) };
        let refused = request.ask(&key).of(world.address());
        assert_eq!(
            (refused.status, refused.header("x-amzn-errortype")),
            (WRONG.0, Some(WRONG.1)),
            "{refused:?}"
        );
        assert!(!refused.text.contains("7777"), "{refused:?}");
    };
    body(b"");
    body(b"7777 {");
    body(b"\xff\xfe7777");
    body(&[b'['; 60_000]);
    body(format!("{{\"PinBlockFormat\":\"7777\",\"{}\":1}}", "7777".repeat(5_000)).as_bytes());
    assert!(!logged().contains("77777777777"), "nothing of it is in the log");
}

#[test]
fn what_belongs_to_a_key_is_not_chosen_by_a_request() {
    let (world, key) = world();
    let ibm = |table: &str| {
        let attributes = json!({ "Ibm3624Pin": {
            "DecimalizationTable": table,
            "PinValidationDataPadCharacter": "F",
            "PinValidationData": "1122334455667788",
            "PinOffset": "0000",
        } });
        let request = with(&by_pvv(OF_4524, "4021"), "VerificationAttributes", attributes);
        with(&request, "VerificationKeyIdentifier", json!("alias/pay-ibm"))
    };
    world.paid(&key, VERIFY_PIN, &ibm("1234567890123456"));
    for table in ["0123456789012345", "0000000000000001", "123456789012345", "123456789012345x"] {
        let told = world.refused(&key, VERIFY_PIN, &ibm(table), WRONG);
        assert_eq!(told["fieldList"][0]["path"], "DecimalizationTable");
    }
    // A key serves its purpose, and nothing else.
    let request = by_pvv(OF_4524, "4021");
    for (member, other) in [
        ("EncryptionKeyIdentifier", "alias/pay-pvv"),
        ("EncryptionKeyIdentifier", "alias/pay-bdk"),
        ("EncryptionKeyIdentifier", "alias/pay-pin-aes"),
        ("VerificationKeyIdentifier", "alias/pay-cvv"),
        ("VerificationKeyIdentifier", "alias/pay-ibm"),
        ("VerificationKeyIdentifier", "alias/ecb"),
    ] {
        world.refused(&key, VERIFY_PIN, &with(&request, member, json!(other)), WRONG);
    }
    let data =
        json!({ "PlainText": "00".repeat(8), "EncryptionAttributes": { "Symmetric": { "Mode": "ECB" } } });
    for name in ["pay-pin", "pay-pvv", "pay-mac", "pay-bdk"] {
        world.refused(&key, &format!("/keys/alias%2F{name}/encrypt"), &data, WRONG);
    }
}

#[test]
fn keys_that_are_not_there_are_not_found() {
    let (world, key) = world();
    let request = by_pvv(OF_4524, "4021");
    for nobody in [
        "alias/nothing",
        "alias/a/b",
        "arn:aws:payment-cryptography:eu-central-1:000000000000:alias/nothing",
        "arn:aws:payment-cryptography:eu-central-1:000000000000:key/00112233445566778899aabbccddeeff",
        "arn:aws:payment-cryptography:eu-central-1:111122223333:key/kwapwa6qaifllw2h",
    ] {
        let told = world.refused(
            &key,
            VERIFY_PIN,
            &with(&request, "VerificationKeyIdentifier", json!(nobody)),
            (404, "ResourceNotFoundException"),
        );
        assert!(told["ResourceId"].is_string(), "{told}");
    }
    let path = "/keys/alias%2Fnothing/decrypt";
    let data = json!({ "CipherText": "00", "DecryptionAttributes": { "Symmetric": { "Mode": "ECB" } } });
    world.refused(&key, path, &data, (404, "ResourceNotFoundException"));
}

#[test]
fn what_aws_has_and_the_nodes_have_not_is_refused_and_never_made_up() {
    let (world, key) = world();
    let refused = |path: &str, body: Value| {
        let told = world.refused(&key, path, &body, WRONG);
        let message = told["message"].as_str().expect("a message").to_owned();
        assert!(message.contains("not served here"), "{path}: {message}");
    };
    refused("/keymaterial/translate", json!({}));
    refused("/as2805kekvalidation/generate", json!({}));
    let card = |attributes: Value| {
        json!({
            "KeyIdentifier": "alias/pay-cvv",
            "PrimaryAccountNumber": "4123456789012345",
            "GenerationAttributes": attributes,
        })
    };
    for name in [
        "AmexCardSecurityCodeVersion1",
        "AmexCardSecurityCodeVersion2",
        "CardHolderVerificationValue",
        "DiscoverDynamicCardVerificationCode",
    ] {
        refused("/cardvalidationdata/generate", card(json!({ name: { "CardExpiryDate": "8701" } })));
    }
    let mac = |attributes: Value| json!({ "KeyIdentifier": "alias/pay-mac", "MessageData": "00", "GenerationAttributes": attributes });
    for name in ["HMAC", "HMAC_SHA224", "HMAC_SHA256", "HMAC_SHA384", "HMAC_SHA512", "AS2805_4_1"] {
        refused("/mac/generate", mac(json!({ "Algorithm": name })));
    }
    for mode in ["CFB", "CFB1", "CFB8", "CFB64", "CFB128", "OFB"] {
        let attributes = json!({ "Symmetric": { "Mode": mode } });
        refused(
            "/keys/alias%2Fpay-data/encrypt",
            json!({ "PlainText": "00", "EncryptionAttributes": attributes }),
        );
    }
    for attributes in [json!({ "Asymmetric": {} }), json!({ "Emv": {} })] {
        refused(
            "/keys/alias%2Fpay-data/encrypt",
            json!({ "PlainText": "00", "EncryptionAttributes": attributes }),
        );
    }
    for session in ["Emv2000", "UnionPay"] {
        let request = json!({
            "KeyIdentifier": "alias/pay-emv",
            "TransactionData": "00".repeat(8),
            "MajorKeyDerivationMode": "EMV_OPTION_A",
            "SessionKeyDerivationAttributes": { session: {} },
        });
        refused("/cryptogram/generate", request);
    }
    let translate = json!({
        "IncomingKeyIdentifier": "alias/pay-pin",
        "OutgoingKeyIdentifier": "alias/pay-pin-2",
        "IncomingTranslationAttributes": { "As2805Format0": { "PrimaryAccountNumber": "4012345678909" } },
        "OutgoingTranslationAttributes": { "IsoFormat0": { "PrimaryAccountNumber": "4012345678909" } },
        "EncryptedPinBlock": OF_4524,
    });
    refused("/pindata/translate", translate);
}

#[test]
fn other_methods_and_paths_have_no_operation() {
    let (world, _) = world();
    for method in ["GET", "PUT", "DELETE"] {
        let refused = Ask::new(method, VERIFY_PIN).of(world.address());
        assert_eq!(refused.status, 404, "{refused:?}");
        assert_eq!(refused.header("x-amzn-errortype"), Some("UnknownOperationException"));
    }
    // Everything else is Vault's.
    assert_eq!(Ask::new("POST", "/pindata/other").of(world.address()).status, 403);
}

#[test]
fn a_gateway_without_its_nodes_says_that_it_may_be_asked_again() {
    use crate::common::World;
    let mut world = World::start();
    super::make_keys(&world);
    let key = world.add_access_key("waiting", &super::PAYS, &["*"]);
    let request = by_pvv(OF_4524, "4021");
    world.paid(&key, VERIFY_PIN, &request);
    (0..3).for_each(|node| world.stop_node(node));
    world.refused(&key, VERIFY_PIN, &request, (503, "ServiceUnavailable"));
}

#[test]
fn too_many_wrong_pins_are_throttled() {
    use crate::common::World;
    use polyclave_config::NodeDir;
    let mut world = World::define();
    for node in &world.local.nodes {
        let mut node = NodeDir::open(node).expect("its directory");
        let mut settings = node.settings().clone();
        settings.limits.failed_payments_an_hour = 30;
        node.set_settings(settings).expect("set");
    }
    world.start_nodes();
    world.make_kms_key();
    super::make_keys(&world);
    world.start_gateway();
    let key = world.add_access_key("guesser", &super::PAYS, &["*"]);
    let wrong = by_pvv(OF_4525, "4021");
    let throttled = (0..40).any(|_| {
        let answer = world.aws(&key, VERIFY_PIN, &wrong);
        assert!(matches!(answer.status, 400 | 429), "{answer:?}");
        answer.header("x-amzn-errortype") == Some("ThrottlingException")
    });
    assert!(throttled, "no guess was refused");
    world.refused(&key, VERIFY_PIN, &by_pvv(OF_4524, "4021"), (429, "ThrottlingException"));
}
