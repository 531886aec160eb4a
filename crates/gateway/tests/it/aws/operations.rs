//! Every operation over real nodes, with known answers: those of the specification, of NIST, and of
//! the Python libraries psec 1.3 and pyemv 1.5 with the same keys.

use serde_json::{Value, json};

use super::{K, OF_4524, OF_4525, PAN, VERIFY_PIN, by_pvv, with, without, world};

const FAILED: (u16, &str) = (400, "VerificationFailedException");

/// The members of `VerifyPinData` by the method of IBM 3624.
fn by_offset(block: &str, offset: &str) -> Value {
    let attributes = json!({ "Ibm3624Pin": {
        "DecimalizationTable": "1234567890123456",
        "PinValidationDataPadCharacter": "F",
        "PinValidationData": PAN,
        "PinOffset": offset,
    } });
    let request = with(&by_pvv(block, "4021"), "VerificationAttributes", attributes);
    with(&request, "VerificationKeyIdentifier", json!("alias/pay-ibm"))
}

#[test]
fn a_pin_is_verified_by_pvv_and_by_offset() {
    let (world, key) = world();
    let paid = world.paid(&key, VERIFY_PIN, &by_pvv(OF_4524, "4021"));
    // The encryption of zeros under K and under the PIN key, as HSMs show them.
    assert_eq!(paid["VerificationKeyCheckValue"], "08D7B4", "{paid}");
    assert_eq!(paid["EncryptionKeyCheckValue"].as_str().map(|value| &value[..4]), Some("FB09"));
    let arn = paid["EncryptionKeyArn"].as_str().expect("an ARN").to_owned();
    assert!(arn.starts_with("arn:aws:payment-cryptography:eu-central-1:000000000000:key/"), "{arn}");
    assert_eq!(arn.len(), 59 + 32, "{arn}");
    // The ARN names the same version.
    world.paid(&key, VERIFY_PIN, &with(&by_pvv(OF_4524, "4021"), "EncryptionKeyIdentifier", json!(arn)));
    let refused = world.refused(&key, VERIFY_PIN, &by_pvv(OF_4525, "4021"), FAILED);
    assert_eq!(refused["Reason"], "INVALID_PIN");
    // Every way in which a PIN is not the right one looks the same.
    let other = world.refused(&key, VERIFY_PIN, &by_pvv("0011223344556677", "4021"), FAILED);
    let value = world.refused(&key, VERIFY_PIN, &by_pvv(OF_4524, "4022"), FAILED);
    let card = with(&by_pvv(OF_4524, "4021"), "PrimaryAccountNumber", json!("4012345678909"));
    let card = world.refused(&key, VERIFY_PIN, &card, FAILED);
    assert!(refused == other && refused == value && refused == card, "{refused} {other} {value} {card}");

    world.paid(&key, VERIFY_PIN, &by_offset(OF_4524, "0000"));
    let refused = world.refused(&key, VERIFY_PIN, &by_offset(OF_4525, "0000"), FAILED);
    assert_eq!(refused["Reason"], "INVALID_PIN");
    world.paid(&key, VERIFY_PIN, &by_offset(OF_4525, "0001"));
    let length = with(&by_offset(OF_4524, "0000"), "PinDataLength", json!(4));
    world.paid(&key, VERIFY_PIN, &length);
}

/// 1234 under the key of the first transaction of X9.24-1's example.
#[test]
fn pins_of_terminals_are_verified_and_translated() {
    let (world, key) = world();
    let ksn = "FFFF9876543210E00001";
    let verify = json!({
        "EncryptionKeyIdentifier": "alias/pay-bdk",
        "VerificationKeyIdentifier": "alias/pay-pvv",
        "PrimaryAccountNumber": "4012345678909",
        "PinBlockFormat": "ISO_FORMAT_0",
        "EncryptedPinBlock": "1B9C1845EB993A7A",
        "VerificationAttributes": { "VisaPin": { "PinVerificationKeyIndex": 1, "VerificationValue": "5111" } },
        "DukptAttributes": { "KeySerialNumber": ksn, "DukptDerivationType": "TDES_2KEY" },
    });
    world.paid(&key, VERIFY_PIN, &verify);
    let other = json!({ "KeySerialNumber": "FFFF9876543210E00002", "DukptDerivationType": "TDES_2KEY" });
    world.refused(&key, VERIFY_PIN, &with(&verify, "DukptAttributes", other), FAILED);

    let translate = json!({
        "IncomingKeyIdentifier": "alias/pay-bdk",
        "OutgoingKeyIdentifier": "alias/pay-pin",
        "IncomingTranslationAttributes": { "IsoFormat0": { "PrimaryAccountNumber": "4012345678909" } },
        "OutgoingTranslationAttributes": { "IsoFormat0": { "PrimaryAccountNumber": "4012345678909" } },
        "EncryptedPinBlock": "1B9C1845EB993A7A",
        "IncomingDukptAttributes": { "KeySerialNumber": ksn },
    });
    let path = "/pindata/translate";
    let paid = world.paid(&key, path, &translate);
    assert_eq!(paid["PinBlock"], "8160CC8BBF33199E");
    assert!(paid["KeyArn"].is_string() && paid["KeyCheckValue"].is_string());
    // To format 4 under AES, with random fill, and back.
    let to_4 = json!({ "IsoFormat4": { "PrimaryAccountNumber": "4012345678909" } });
    let to_4 = with(&translate, "OutgoingTranslationAttributes", to_4);
    let to_4 = world.paid(&key, path, &with(&to_4, "OutgoingKeyIdentifier", json!("alias/pay-pin-aes")));
    let back = json!({
        "IncomingKeyIdentifier": "alias/pay-pin-aes",
        "OutgoingKeyIdentifier": "alias/pay-pin",
        "IncomingTranslationAttributes": { "IsoFormat4": { "PrimaryAccountNumber": "4012345678909" } },
        "OutgoingTranslationAttributes": { "IsoFormat0": { "PrimaryAccountNumber": "4012345678909" } },
        "EncryptedPinBlock": to_4["PinBlock"],
    });
    assert_eq!(world.paid(&key, path, &back)["PinBlock"], "8160CC8BBF33199E");

    let wrong = (400, "ValidationException");
    let other_card = json!({ "IsoFormat0": { "PrimaryAccountNumber": "4012345678917" } });
    let refused =
        world.refused(&key, path, &with(&translate, "OutgoingTranslationAttributes", other_card), wrong);
    assert_eq!(refused["fieldList"][0]["path"], "OutgoingTranslationAttributes");
    let unbound = with(&translate, "OutgoingTranslationAttributes", json!({ "IsoFormat1": {} }));
    world.refused(&key, path, &unbound, wrong);
    // A block that is none.
    let refused =
        world.refused(&key, path, &with(&translate, "EncryptedPinBlock", json!("0011223344556677")), wrong);
    assert_eq!(refused["fieldList"][0]["path"], "EncryptedPinBlock");
}

#[test]
fn pins_are_generated_and_verify() {
    let (world, key) = world();
    let path = "/pindata/generate";
    let visa = json!({
        "EncryptionKeyIdentifier": "alias/pay-pin",
        "GenerationKeyIdentifier": "alias/pay-pvv",
        "PrimaryAccountNumber": PAN,
        "PinBlockFormat": "ISO_FORMAT_0",
        "GenerationAttributes": { "VisaPin": { "PinVerificationKeyIndex": 3 } },
    });
    let made = world.paid(&key, path, &visa);
    let block = made["EncryptedPinBlock"].as_str().expect("a block");
    let value = made["PinData"]["VerificationValue"].as_str().expect("a PVV");
    world.paid(&key, VERIFY_PIN, &by_pvv(block, value));
    let of_pin = json!({ "VisaPinVerificationValue": {
        "EncryptedPinBlock": OF_4524, "PinVerificationKeyIndex": 3
    } });
    let kept = world.paid(&key, path, &with(&visa, "GenerationAttributes", of_pin));
    assert_eq!(
        (&kept["PinData"], &kept["EncryptedPinBlock"]),
        (&json!({ "VerificationValue": "4021" }), &json!(OF_4524))
    );

    let ibm = |more: Value| {
        let mut members = json!({
            "DecimalizationTable": "1234567890123456",
            "PinValidationDataPadCharacter": "F",
            "PinValidationData": PAN,
        });
        for (name, value) in more.as_object().expect("an object") {
            members[name] = value.clone();
        }
        members
    };
    let ask = |name: &str, more: Value| {
        let request = with(&visa, "GenerationAttributes", json!({ name: ibm(more) }));
        world.paid(&key, path, &with(&request, "GenerationKeyIdentifier", json!("alias/pay-ibm")))
    };
    let natural = ask("Ibm3624NaturalPin", json!({}));
    assert_eq!(
        (&natural["EncryptedPinBlock"], &natural["PinData"]["PinOffset"]),
        (&json!(OF_4524), &json!("0000"))
    );
    let offset = ask("Ibm3624PinOffset", json!({ "EncryptedPinBlock": OF_4525 }));
    assert_eq!(offset["PinData"], json!({ "PinOffset": "0001" }));
    let from_offset = ask("Ibm3624PinFromOffset", json!({ "PinOffset": "0001" }));
    assert_eq!(from_offset["EncryptedPinBlock"], OF_4525);
    let random = ask("Ibm3624RandomPin", json!({}));
    let text = |name: &str| random[name].as_str().expect("text");
    let offset = random["PinData"]["PinOffset"].as_str().expect("an offset");
    world.paid(&key, VERIFY_PIN, &by_offset(text("EncryptedPinBlock"), offset));
}

#[test]
fn card_values_are_generated_and_verified() {
    let (world, key) = world();
    let generate = json!({
        "KeyIdentifier": "alias/pay-cvv",
        "PrimaryAccountNumber": "4123456789012345",
        "GenerationAttributes": { "CardVerificationValue1": { "CardExpiryDate": "8701", "ServiceCode": "101" } },
    });
    let path = "/cardvalidationdata/generate";
    assert_eq!(world.paid(&key, path, &generate)["ValidationData"], "561");
    let printed = json!({ "CardVerificationValue2": { "CardExpiryDate": "8701" } });
    let printed = with(&generate, "GenerationAttributes", printed);
    assert_eq!(world.paid(&key, path, &printed)["ValidationData"], "636");
    let longer = world.paid(&key, path, &with(&generate, "ValidationDataLength", json!(5)));
    assert!(
        longer["ValidationData"].as_str().is_some_and(|value| value.len() == 5 && value.starts_with("561"))
    );

    let verify = with(&without(&generate, "GenerationAttributes"), "ValidationData", json!("561"));
    let verify = with(&verify, "VerificationAttributes", generate["GenerationAttributes"].clone());
    let path = "/cardvalidationdata/verify";
    let paid = world.paid(&key, path, &verify);
    assert_eq!(paid["KeyCheckValue"], "08D7B4");
    assert!(paid.get("ValidationData").is_none());
    let refused = world.refused(&key, path, &with(&verify, "ValidationData", json!("562")), FAILED);
    assert_eq!(refused["Reason"], "INVALID_VALIDATION_DATA");
}

#[test]
fn values_that_a_chip_makes_anew_are_generated_and_verified() {
    let (world, key) = world();
    let of_visa = json!({ "DynamicCardVerificationValue": {
        "PanSequenceNumber": "00",
        "CardExpiryDate": "1220",
        "ServiceCode": "000",
        "ApplicationTransactionCounter": "0001",
    } });
    let of_mastercard = json!({ "DynamicCardVerificationCode": {
        "UnpredictableNumber": "00000899",
        "PanSequenceNumber": "00",
        "ApplicationTransactionCounter": "005E",
        "TrackData": "5413123456784800D20061019000990000000F",
    } });
    for (name, pan, attributes, length, value, other) in [
        ("alias/pay-dcvv", "4761739001010010", of_visa, 3, "802", "803"),
        ("alias/pay-cvc3", "5413123456784800", of_mastercard, 5, "30687", "30686"),
    ] {
        let card = json!({ "KeyIdentifier": name, "PrimaryAccountNumber": pan });
        let generate = with(&card, "GenerationAttributes", attributes.clone());
        let generate = with(&generate, "ValidationDataLength", json!(length));
        let paid = world.paid(&key, "/cardvalidationdata/generate", &generate);
        assert_eq!(paid["ValidationData"], value);
        let verify = with(&card, "VerificationAttributes", attributes);
        let verify = |value: &str| with(&verify, "ValidationData", json!(value));
        world.paid(&key, "/cardvalidationdata/verify", &verify(value));
        let refused = world.refused(&key, "/cardvalidationdata/verify", &verify(other), FAILED);
        assert_eq!(refused["Reason"], "INVALID_VALIDATION_DATA");
    }
}

#[test]
fn macs_are_generated_and_verified() {
    let (world, key) = world();
    let message = hex::encode("Now is the time for all ");
    let retail = json!({
        "KeyIdentifier": "alias/pay-mac",
        "MessageData": message,
        "GenerationAttributes": { "Algorithm": "ISO9797_ALGORITHM3" },
    });
    let path = "/mac/generate";
    assert_eq!(world.paid(&key, path, &retail)["Mac"], "A1C72E74EA3FA9B6");
    assert_eq!(world.paid(&key, path, &with(&retail, "MacLength", json!(4)))["Mac"], "A1C72E74");
    // ISO 9797-1, algorithm 1, with both halves of the key equal.
    let cbc = json!({
        "KeyIdentifier": "alias/pay-cbc-mac",
        "MessageData": message,
        "GenerationAttributes": { "Algorithm": "ISO9797_ALGORITHM1" },
    });
    assert_eq!(world.paid(&key, path, &cbc)["Mac"], "70A30640CC76DD8B");
    // SP 800-38B, AES-128, example 2.
    let cmac = json!({
        "KeyIdentifier": "alias/pay-cmac",
        "MessageData": "6bc1bee22e409f96e93d7e117393172a",
        "GenerationAttributes": { "Algorithm": "CMAC" },
    });
    assert_eq!(world.paid(&key, path, &cmac)["Mac"], "070A16B46B4D4144F79BDD9DD04A287C");
    let of_terminal = json!({
        "KeyIdentifier": "alias/pay-bdk",
        "MessageData": message,
        "GenerationAttributes": { "DukptIso9797Algorithm3": {
            "KeySerialNumber": "FFFF9876543210E00001", "DukptKeyVariant": "REQUEST"
        } },
    });
    let script = json!({
        "KeyIdentifier": "alias/pay-smi",
        "MessageData": "842400021000011122334455667788",
        "GenerationAttributes": { "EmvMac": {
            "MajorKeyDerivationMode": "EMV_OPTION_A",
            "PrimaryAccountNumber": PAN,
            "PanSequenceNumber": "01",
            "SessionKeyDerivationMode": "EMV_COMMON_SESSION_KEY",
            "SessionKeyDerivationValue": { "ApplicationCryptogram": "1122334455667788" },
        } },
    });
    assert_eq!(world.paid(&key, path, &script)["Mac"], "8E818D602969650F");

    for request in [&retail, &cbc, &cmac, &of_terminal, &script] {
        let made = world.paid(&key, path, request)["Mac"].clone();
        let verify = with(&without(request, "GenerationAttributes"), "Mac", made.clone());
        let verify = with(&verify, "VerificationAttributes", request["GenerationAttributes"].clone());
        assert!(world.paid(&key, "/mac/verify", &verify).get("Mac").is_none());
        let mut other = made.as_str().expect("a MAC").to_owned().into_bytes();
        other[0] = if other[0] == b'0' { b'1' } else { b'0' };
        let other = String::from_utf8(other).expect("text");
        let refused = world.refused(&key, "/mac/verify", &with(&verify, "Mac", json!(other)), FAILED);
        assert_eq!(refused["Reason"], "INVALID_MAC", "{request}");
    }
}

#[test]
fn cryptograms_are_verified_answered_and_generated() {
    let (world, key) = world();
    let data = "00000000170000000000000008400008008000084024010100010203040506070809101100000000";
    let common = json!({ "EmvCommon": {
        "PrimaryAccountNumber": "4123456789012345",
        "PanSequenceNumber": "01",
        "ApplicationTransactionCounter": "001C",
    } });
    let generate = json!({
        "KeyIdentifier": "alias/pay-emv",
        "TransactionData": data,
        "MajorKeyDerivationMode": "EMV_OPTION_A",
        "SessionKeyDerivationAttributes": common,
    });
    let made = world.paid(&key, "/cryptogram/generate", &generate);
    assert_eq!(made["AuthRequestCryptogram"], "EB276C91C86C1E1F");
    let visa = json!({ "Visa": { "PrimaryAccountNumber": "4123456789012345", "PanSequenceNumber": "01" } });
    let made =
        world.paid(&key, "/cryptogram/generate", &with(&generate, "SessionKeyDerivationAttributes", visa));
    assert_eq!(made["AuthRequestCryptogram"], "77987C6121109532");

    let path = "/cryptogram/verify";
    let verify = with(&generate, "AuthRequestCryptogram", json!("EB276C91C86C1E1F"));
    assert!(world.paid(&key, path, &verify).get("AuthResponseValue").is_none());
    let answered = |response: Value| {
        world.paid(&key, path, &with(&verify, "AuthResponseAttributes", response))["AuthResponseValue"]
            .clone()
    };
    assert_eq!(answered(json!({ "ArpcMethod1": { "AuthResponseCode": "3030" } })), "FBB1A26873407AD9");
    let method2 = json!({ "ArpcMethod2": {
        "CardStatusUpdate": "03920000", "ProprietaryAuthenticationData": "1122"
    } });
    assert_eq!(answered(method2), "24CF7EBA");
    let wrong = with(&verify, "AuthRequestCryptogram", json!("EB276C91C86C1E1E"));
    assert_eq!(world.refused(&key, path, &wrong, FAILED)["Reason"], "INVALID_AUTH_REQUEST_CRYPTOGRAM");
}

#[test]
fn a_pin_is_changed_on_a_card() {
    let (world, key) = world();
    let request = json!({
        "NewPinPekIdentifier": "alias/pay-pin",
        "NewEncryptedPinBlock": OF_4524,
        "PinBlockFormat": "ISO_FORMAT_0",
        "SecureMessagingIntegrityKeyIdentifier": "alias/pay-smi",
        "SecureMessagingConfidentialityKeyIdentifier": "alias/pay-smc",
        "MessageData": "842400021000011122334455667788",
        "DerivationMethodAttributes": { "EmvCommon": {
            "MajorKeyDerivationMode": "EMV_OPTION_A",
            "PrimaryAccountNumber": PAN,
            "PanSequenceNumber": "01",
            "ApplicationCryptogram": "1122334455667788",
            "Mode": "ECB",
            "PinBlockPaddingType": "NO_PADDING",
            "PinBlockLengthPosition": "NONE",
        } },
    });
    let path = "/macemvpinchange/generate";
    let made = world.paid(&key, path, &request);
    assert_eq!(
        (&made["EncryptedPinBlock"], &made["Mac"]),
        (&json!("3EB51CBF5835E153"), &json!("FA2AF85874F31183"))
    );
    for member in
        ["NewPinPekArn", "SecureMessagingIntegrityKeyArn", "SecureMessagingConfidentialityKeyCheckValue"]
    {
        assert!(made[member].is_string(), "{member}: {made}");
    }
    let none = with(&request, "NewEncryptedPinBlock", json!("0011223344556677"));
    world.refused(&key, path, &none, (400, "ValidationException"));
}

/// The encrypted PINs are those of the tests of pyemv, whose messages are shorter than AWS takes them.
#[test]
fn a_pin_is_changed_on_a_card_of_visa() {
    let (world, key) = world();
    let visa = json!({
        "MajorKeyDerivationMode": "EMV_OPTION_A",
        "PrimaryAccountNumber": "1234567890123456",
        "PanSequenceNumber": "01",
        "ApplicationTransactionCounter": "FFFF",
        "AuthorizationRequestKeyIdentifier": "alias/visa-emv",
    });
    let current = json!({
        "CurrentPinPekIdentifier": "alias/visa-pin",
        "CurrentEncryptedPinBlock": "24F75359406960E5",
    });
    let mac = |encrypted: &str| {
        let message = format!("8424000210000000{encrypted}");
        let script = json!({
            "KeyIdentifier": "alias/visa-smi",
            "MessageData": message,
            "GenerationAttributes": { "EmvMac": {
                "MajorKeyDerivationMode": "EMV_OPTION_A",
                "PrimaryAccountNumber": "1234567890123456",
                "PanSequenceNumber": "01",
                "SessionKeyDerivationMode": "VISA",
                "SessionKeyDerivationValue": { "ApplicationTransactionCounter": "FFFF" },
            } },
        });
        world.paid(&key, "/mac/generate", &script)["Mac"].clone()
    };
    for (visa, encrypted, members) in [
        (visa.clone(), "D421231A6FD2F0FAEE671384F0D3A7B9", 2),
        (with(&visa, "CurrentPinAttributes", current), "C29371CC36BA70C1EE671384F0D3A7B9", 4),
    ] {
        let request = json!({
            "NewPinPekIdentifier": "alias/visa-pin",
            "NewEncryptedPinBlock": "8F59D94C4087EDEA",
            "PinBlockFormat": "ISO_FORMAT_0",
            "SecureMessagingIntegrityKeyIdentifier": "alias/visa-smi",
            "SecureMessagingConfidentialityKeyIdentifier": "alias/visa-smc",
            "MessageData": "8424000210000000",
            "DerivationMethodAttributes": { "Visa": visa },
        });
        let made = world.paid(&key, "/macemvpinchange/generate", &request);
        assert_eq!(made["EncryptedPinBlock"], encrypted);
        assert_eq!(made["Mac"], mac(encrypted));
        assert_eq!(made["VisaAmexDerivationOutputs"].as_object().expect("an object").len(), members);
    }
}

/// FIPS 197, appendix C.1, and SP 800-38A, F.2.1.
#[test]
fn data_is_encrypted_decrypted_and_encrypted_again() {
    let (world, key) = world();
    let (plain, encrypted) = ("00112233445566778899AABBCCDDEEFF", "69C4E0D86A7B0430D8CDB78070B4C55A");
    let ecb = json!({ "Symmetric": { "Mode": "ECB" } });
    for name in ["pay-data", "ecb"] {
        let (encrypt, decrypt) =
            (format!("/keys/alias%2F{name}/encrypt"), format!("/keys/alias%2F{name}/decrypt"));
        let asked = json!({ "PlainText": plain, "EncryptionAttributes": ecb });
        let made = world.paid(&key, &encrypt, &asked);
        assert_eq!(made["CipherText"], encrypted, "{name}");
        let asked = json!({ "CipherText": encrypted, "DecryptionAttributes": ecb });
        assert_eq!(world.paid(&key, &decrypt, &asked)["PlainText"], plain, "{name}");
        // Of one block, CBC with a vector of zeros is ECB. That is the vector if there is none.
        let cbc = json!({ "Symmetric": { "Mode": "CBC" } });
        let asked = json!({ "PlainText": plain.repeat(2), "EncryptionAttributes": cbc });
        let made = world.paid(&key, &encrypt, &asked)["CipherText"].as_str().expect("text").to_owned();
        assert!(made.starts_with(encrypted) && !made.ends_with(encrypted), "{made}");
        let asked = json!({ "CipherText": made, "DecryptionAttributes": cbc });
        assert_eq!(world.paid(&key, &decrypt, &asked)["PlainText"], plain.repeat(2), "{name}");
        let iv = json!({ "Symmetric": { "Mode": "CBC", "InitializationVector": encrypted } });
        let asked = json!({ "CipherText": encrypted, "DecryptionAttributes": iv });
        let xored = world.paid(&key, &decrypt, &asked)["PlainText"].clone();
        let expected: Vec<u8> = [plain, encrypted]
            .map(|text| hex::decode(text).expect("hex"))
            .into_iter()
            .reduce(|one, other| one.iter().zip(other).map(|(a, b)| a ^ b).collect())
            .expect("two");
        assert_eq!(xored, hex::encode_upper(expected));
    }
    let of_terminal = json!({ "Dukpt": {
        "KeySerialNumber": "FFFF9876543210E00001", "DukptKeyVariant": "REQUEST", "Mode": "CBC"
    } });
    let asked = json!({ "PlainText": plain, "EncryptionAttributes": of_terminal });
    let made = world.paid(&key, "/keys/alias%2Fpay-bdk/encrypt", &asked)["CipherText"].clone();
    let again = json!({
        "CipherText": made,
        "OutgoingKeyIdentifier": "alias/pay-data",
        "IncomingEncryptionAttributes": of_terminal,
        "OutgoingEncryptionAttributes": ecb,
    });
    let again = world.paid(&key, "/keys/alias%2Fpay-bdk/reencrypt", &again);
    assert_eq!(again["CipherText"], encrypted);
    assert_eq!(K.len(), 32);
}
