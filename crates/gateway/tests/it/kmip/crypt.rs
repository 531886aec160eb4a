//! Encrypt, Decrypt and MAC.

use polyclave_api::{Mode, VersionState};

use super::*;

/// The example of RFC 4231, section 4.3: its key, which nodes take with zeros up to a block, and its code.
const HMAC_KEY: &[u8] = b"Jefe";
const HMAC_DATA: &[u8] = b"what do ya want for nothing?";
const HMAC_CODE: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
/// The same with SHA-512.
const HMAC_SHA512_CODE: &str = "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737";
/// The key of the examples of SP 800-38A and SP 800-38B for AES-128, and the first block of plaintext.
const AES_KEY: [u8; 16] = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
const AES_BLOCK: [u8; 16] = 0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a_u128.to_be_bytes();

#[test]
fn clients_encrypt_decrypt_and_compute_codes_within_their_entries() {
    let kmip = Kmip::start();
    let client = kmip.world.client();
    kmip.generate("db-gcm", "aes-256", Mode::Gcm);
    kmip.generate("other", "aes-256", Mode::Gcm);
    client.import(new("db-cmac", "aes-128", Mode::Cmac), &AES_KEY).expect("a key");
    let mut block = [0; 64];
    block[..HMAC_KEY.len()].copy_from_slice(HMAC_KEY);
    client.import(new("db-hmac", "hmac-sha-256", Mode::Hmac), &block).expect("a key");
    let mut database = kmip.session(&["db.test"]);
    let mut reader = kmip.session(&["reader.test"]);
    // Data that were encrypted are decrypted with the version that the response names, after a rotation, too.
    let payload = [of_key("db-gcm"), data(b"twelve boxes"), item(0x42_00fe, 8, b"x")].concat();
    let encrypted = database.done(ENCRYPT, &payload);
    let identifier = identifier(&encrypted);
    assert!(identifier.starts_with("db-gcm:"), "{identifier}");
    client.rotate("db-gcm").expect("rotated");
    let payload = decryption(&identifier, &encrypted, b"x");
    assert_eq!(value(&database.done(DECRYPT, &payload), 0x42_00c2), b"twelve boxes");
    assert_eq!(value(&reader.done(DECRYPT, &payload), 0x42_00c2), b"twelve boxes");
    for version in [(2, 0), (2, 1)] {
        reader.done_in(version, DECRYPT, &payload);
    }
    let other = decryption(&identifier, &encrypted, b"y");
    reader.refused((1, 4), DECRYPT, &other, 0x0a);
    database.refused((1, 4), DECRYPT, &decryption("db-gcm", &encrypted, b"x"), 0x0a);
    // Codes are those of the specifications.
    let code = database.done(MAC, &[of_key("db-hmac"), data(HMAC_DATA)].concat());
    assert_eq!(hex::encode(value(&code, 0x42_00c6)), HMAC_CODE);
    let mut longer = block.to_vec();
    longer.resize(128, 0);
    client.import(new("db-longer", "hmac-sha-512", Mode::Hmac), &longer).expect("a key");
    let of_sha512 = structure(0x42_002b, &[enumeration(0x42_0028, 11)]);
    let code = database.done(MAC, &[of_key("db-longer"), of_sha512.clone(), data(HMAC_DATA)].concat());
    assert_eq!(hex::encode(value(&code, 0x42_00c6)), HMAC_SHA512_CODE);
    database.refused((1, 4), MAC, &[of_key("db-hmac"), of_sha512, data(HMAC_DATA)].concat(), 7);
    let code = database.done_in((1, 2), MAC, &[of_key("db-cmac"), data(b"")].concat());
    assert_eq!(hex::encode(value(&code, 0x42_00c6)), "bb1d6929e95937287fa37d129b756746");
    let hmac = structure(0x42_002b, &[enumeration(0x42_0028, 9)]);
    database.refused((1, 2), MAC, &[of_key("db-cmac"), hmac, data(b"")].concat(), 7);
    // What the entry of a client does not name is refused, whether the key is there or not.
    let of = |key: &str| [of_key(key), data(b"")].concat();
    reader.refused((1, 4), ENCRYPT, &of("db-gcm"), DENIED);
    reader.refused((1, 4), MAC, &of("db-hmac"), DENIED);
    for key in ["other", "nothing"] {
        database.refused((1, 4), ENCRYPT, &of(key), DENIED);
        database.refused((1, 4), MAC, &of(key), DENIED);
        database.refused((1, 4), DECRYPT, &decryption(key, &encrypted, b"x"), DENIED);
    }
    database.refused((1, 4), ENCRYPT, &of("db-none"), 1);
    database.refused((2, 1), ENCRYPT, &of("db-none"), 0x37);
    assert!(kmip.world.audit_log(0).contains("database"), "the nodes know which client asked");
}

#[test]
fn a_code_is_valid_only_whole_of_its_data_and_under_its_key() {
    let kmip = Kmip::start();
    for (name, cipher, mode) in [
        ("m-hmac", "hmac-sha-256", Mode::Hmac),
        ("m-other", "hmac-sha-256", Mode::Hmac),
        ("m-cmac", "aes-128", Mode::Cmac),
        ("db-cmac", "aes-128", Mode::Cmac),
    ] {
        kmip.generate(name, cipher, mode);
    }
    let mut maker = kmip.session(&["maker.test"]);
    let payload =
        |key: &str, text: &[u8], code: &[u8]| [of_key(key), data(text), item(0x42_00c6, 8, code)].concat();
    let is_valid = |session: &mut Session, key: &str, text: &[u8], code: &[u8]| {
        let answer = session.done_in((1, 2), MAC_VERIFY, &payload(key, text, code));
        assert!(identifier(&answer).starts_with(&format!("{key}:")));
        value(&answer, 0x42_009b) == 1_u32.to_be_bytes()
    };
    for (key, other) in [("m-hmac", "m-other"), ("m-cmac", "m-hmac")] {
        let code = value(&maker.done(MAC, &[of_key(key), data(b"boxes")].concat()), 0x42_00c6);
        assert!(is_valid(&mut maker, key, b"boxes", &code), "{key}");
        assert!(!is_valid(&mut maker, key, b"Boxes", &code), "{key}");
        assert!(!is_valid(&mut maker, other, b"boxes", &code), "{key}");
        let longer = [&code[..], &[0]].concat();
        let mut changed = code.clone();
        changed[0] ^= 1;
        for wrong in [&code[..code.len() - 1], &longer, &changed, &[]] {
            assert!(!is_valid(&mut maker, key, b"boxes", wrong), "{key} {wrong:?}");
        }
    }
    maker.refused((1, 4), MAC_VERIFY, &[of_key("m-hmac"), data(b"boxes")].concat(), 6);
    // Opened when it is needed: the gateway closes sessions that say nothing for long.
    let mut database = kmip.session(&["db.test"]);
    database.refused((1, 4), MAC_VERIFY, &payload("m-hmac", b"boxes", &[0; 32]), DENIED);
    // Old codes are verified for who may configure the key.
    let code = value(&maker.done(MAC, &[of_key("m-cmac"), data(b"boxes")].concat()), 0x42_00c6);
    for key in ["m-cmac", "db-cmac"] {
        kmip.world.client().retire(key, 1, VersionState::Deactivated).expect("retired");
    }
    assert!(is_valid(&mut maker, "m-cmac", b"boxes", &code));
    database.refused((2, 1), MAC_VERIFY, &payload("db-cmac", b"boxes", &code), WRONG_STATE);
}

#[test]
fn modes_are_those_of_the_specification_and_of_the_key() {
    let kmip = Kmip::start();
    for mode in [Mode::Cbc, Mode::Ecb, Mode::Ctr] {
        kmip.world.client().import(new(&format!("db-{mode}"), "aes-128", mode), &AES_KEY).expect("a key");
    }
    kmip.generate("db-3des", "3des-ede3", Mode::Cbc);
    let mut database = kmip.session(&["db.test"]);
    let of = |key: &str, more: &[Vec<u8>]| [of_key(key), more.concat()].concat();
    // The examples of SP 800-38A, sections F.1.1, F.2.1 and F.5.1, in a version that knows no tags.
    let iv = |bytes: &str| item(0x42_003d, 8, &hex::decode(bytes).expect("hex"));
    let ciphertext = |bytes: &str| data(&hex::decode(bytes).expect("hex"));
    let cases = [
        ("db-cbc", 1, Some("000102030405060708090a0b0c0d0e0f"), "7649abac8119b246cee98e9b12e9197d"),
        ("db-ecb", 2, None, "3ad77bb40d7a3660a89ecaf32466ef97"),
        ("db-ctr", 6, Some("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"), "874d6191b620e3261bef6864990db6ce"),
    ];
    for (key, number, vector, encrypted) in cases {
        let payload = of(key, &[mode(number), ciphertext(encrypted), vector.map(iv).unwrap_or_default()]);
        assert_eq!(value(&database.done_in((1, 2), DECRYPT, &payload), 0x42_00c2), AES_BLOCK, "{key}");
        let wrong = of(key, &[ciphertext(encrypted), iv("00")]);
        database.refused((1, 2), DECRYPT, &wrong, 7);
    }
    let answer = database.done_in((1, 2), ENCRYPT, &of("db-ecb", &[data(&AES_BLOCK)]));
    assert_eq!(hex::encode(value(&answer, 0x42_00c2)), "3ad77bb40d7a3660a89ecaf32466ef97");
    // What is encrypted is decrypted, with padding if the client wants it, by 3DES, too.
    for (key, bytes) in [("db-cbc", 16), ("db-3des", 8)] {
        let padded = structure(0x42_002b, &[enumeration(0x42_0011, 1), enumeration(0x42_005f, 3)]);
        let answer = database.done_in((1, 2), ENCRYPT, &of(key, &[padded.clone(), data(b"text")]));
        let (vector, encrypted) = (value(&answer, 0x42_003d), value(&answer, 0x42_00c2));
        assert_eq!((vector.len(), encrypted.len()), (bytes, bytes), "{key}");
        let payload = of(key, &[padded, data(&encrypted), item(0x42_003d, 8, &vector)]);
        assert_eq!(value(&database.done_in((1, 2), DECRYPT, &payload), 0x42_00c2), b"text", "{key}");
    }
    // Not with what the key is not for, and a key that is for one mode needs no name of it.
    database.refused((1, 2), ENCRYPT, &of("db-cbc", &[mode(2), data(&AES_BLOCK)]), 7);
    database.refused((1, 2), ENCRYPT, &of("db-cbc", &[data(b"text")]), 7);
    database.refused((1, 4), ENCRYPT, &of("db-cbc", &[data(&AES_BLOCK), item(0x42_00fe, 8, b"x")]), 7);
    let des = structure(0x42_002b, &[enumeration(0x42_0028, 2)]);
    database.refused((1, 2), ENCRYPT, &of("db-cbc", &[des, data(&AES_BLOCK)]), 7);
}

#[test]
fn parameters_that_would_weaken_gcm_are_refused() {
    let kmip = Kmip::start();
    kmip.generate("db-gcm", "aes-256", Mode::Gcm);
    kmip.generate("db-hmac", "hmac-sha-256", Mode::Hmac);
    let mut database = kmip.session(&["db.test"]);
    let plain = [of_key("db-gcm"), data(b"")].concat();
    let with = |more: Vec<u8>| [plain.clone(), more].concat();
    database.refused((1, 3), ENCRYPT, &plain, 8);
    let cases = [
        (with(mode(1)), 7),
        (with(structure(0x42_002b, &[enumeration(0x42_0028, 2)])), 7),
        (with(structure(0x42_002b, &[integer(0x42_00ce, 12)])), 7),
        (with(structure(0x42_002b, &[integer(0x42_00cd, 12)])), 7),
        (with(structure(0x42_002b, &[enumeration(0x42_005f, 3)])), 7),
        (with(item(0x42_003d, 8, &[0; 12])), 7),
        (with(item(0x42_00d6, 8, &[0; 12])), 7),
        (with(data(b"")), 4),
        (of_key("db-gcm"), 6),
        (data(b""), 6),
        ([of_key("db-gcm:00"), data(b"")].concat(), 7),
        ([of_key("../db"), data(b"")].concat(), 7),
        ([of_key("db-hmac"), data(b"")].concat(), 7),
        (with(structure(0x42_002b, &[enumeration(0x42_0011, 9), enumeration(0x42_0028, 3)])), 0),
    ];
    for (payload, reason) in cases {
        let answer = database.ask((2, 1), ENCRYPT, &payload);
        assert_eq!(results(&answer), [reason], "{}", String::from_utf8_lossy(&answer));
    }
}

#[test]
fn a_retired_key_does_what_its_state_allows_to_each_client() {
    let kmip = Kmip::start();
    let client = kmip.world.client();
    kmip.generate("m-gcm", "aes-128", Mode::Gcm);
    kmip.generate("m-hmac", "hmac-sha-256", Mode::Hmac);
    kmip.generate("db-gcm", "aes-128", Mode::Gcm);
    let (mut maker, mut database) = (kmip.session(&["maker.test"]), kmip.session(&["db.test"]));
    let of = |key: &str| [of_key(key), data(b"boxes")].concat();
    let [encrypted, of_database] = [maker.done(ENCRYPT, &of("m-gcm")), database.done(ENCRYPT, &of("db-gcm"))];
    for state in [VersionState::Deactivated, VersionState::Compromised] {
        for key in ["m-gcm", "m-hmac", "db-gcm"] {
            client.retire(key, 1, state).expect("retired");
        }
        maker.refused((2, 1), ENCRYPT, &of("m-gcm"), WRONG_STATE);
        maker.refused((1, 4), ENCRYPT, &of("m-gcm"), DENIED);
        maker.refused((2, 1), MAC, &of("m-hmac"), WRONG_STATE);
        assert_eq!(value(&maker.done(DECRYPT, &decryption("m-gcm", &encrypted, b"")), 0x42_00c2), b"boxes");
        let payload = decryption("db-gcm", &of_database, b"");
        match state {
            VersionState::Deactivated => drop(database.done(DECRYPT, &payload)),
            _ => database.refused((2, 1), DECRYPT, &payload, WRONG_STATE),
        }
    }
}
