use super::*;

/// A set of one group of one test.
fn planned(algorithm: &str, group: &str, test: &str) -> Result<Plan> {
    let text = format!(
        r#"{{"vsId": 1, "algorithm": "{algorithm}", "revision": "1.0", "testGroups":
        [{{"tgId": 3, "testType": "AFT", {group}, "tests": [{{"tcId": 7, {test}}}]}}]}}"#
    );
    let prompt = Prompt::parse(text.as_bytes()).expect("a set");
    let group = &prompt.test_groups[0];
    plan(&prompt, group, &group.tests[0])
}

const KEY: &str = r#""key": "000102030405060708090a0b0c0d0e0f""#;
const BLOCK: &str = "00000000000000000000000000000000";
const DES: &str = r#""key1": "0101010101010101", "key2": "0202020202020202", "key3": "0101010101010101""#;
const ENCRYPT: &str = r#""direction": "encrypt""#;
const DECRYPT: &str = r#""direction": "decrypt""#;

#[test]
fn what_is_wrong_in_a_test_is_an_error_that_names_it() {
    let iv = format!(r#""iv": "{BLOCK}""#);
    let gcm = |rest: &str| format!(r#"{DECRYPT}, "tagLen": 128{rest}"#);
    for (algorithm, group, test, because) in [
        ("ACVP-RSA", ENCRYPT, KEY.to_owned(), "does not know the algorithm \"ACVP-RSA\""),
        ("ACVP-AES-ECB", r#""direction": "up""#, KEY.to_owned(), "encrypt or decrypt, not up"),
        ("ACVP-AES-ECB", r#""keyLen": 128"#, KEY.to_owned(), "not missing"),
        ("ACVP-AES-ECB", ENCRYPT, KEY.to_owned(), "it has no pt"),
        ("ACVP-AES-ECB", ENCRYPT, format!(r#""pt": "{BLOCK}""#), "it has no key"),
        ("ACVP-AES-ECB", ENCRYPT, format!(r#"{KEY}, "pt": "0x00""#), "is not hexadecimal"),
        ("ACVP-AES-ECB", ENCRYPT, format!(r#"{KEY}, "pt": "000""#), "Odd number of digits"),
        ("ACVP-AES-ECB", ENCRYPT, format!(r#"{KEY}, "pt": "00""#), "1 bytes are no blocks of 16"),
        ("ACVP-AES-ECB", ENCRYPT, format!(r#"{KEY}, "pt": """#), "0 bytes are no blocks"),
        ("ACVP-AES-ECB", ENCRYPT, r#""key": "00", "pt": "00""#.into(), "no keys of 1 bytes"),
        (
            "ACVP-AES-ECB",
            &format!(r#"{ENCRYPT}, "keyLen": 18446744073709551615"#),
            format!(r#"{KEY}, "pt": "{BLOCK}""#),
            "keys of 18446744073709551615 bits",
        ),
        ("ACVP-AES-CBC", ENCRYPT, format!(r#"{KEY}, "pt": "{BLOCK}", "iv": "00""#), "its iv has 1 bytes"),
        ("ACVP-TDES-ECB", ENCRYPT, format!(r#"{DES}, "pt": "{BLOCK}""#), "keyingOption is 1 or 2"),
        (
            "ACVP-TDES-ECB",
            &format!(r#"{ENCRYPT}, "keyingOption": 2"#),
            format!(r#"{}, "pt": "{BLOCK}""#, DES.replace("key3\": \"01", "key3\": \"04")),
            "key1 and key3 are the same",
        ),
        (
            "ACVP-TDES-ECB",
            &format!(r#"{ENCRYPT}, "keyingOption": 1"#),
            r#""key1": "01", "key2": "01", "key3": "01""#.into(),
            "key1 has 1 bytes",
        ),
        (
            "ACVP-AES-CTR",
            ENCRYPT,
            format!(r#"{KEY}, {iv}, "pt": "00", "payloadLen": 18446744073709551615"#),
            "are not the 1 bytes that it has",
        ),
        ("ACVP-AES-GCM", DECRYPT, format!(r#"{KEY}, "ct": "", "aad": """#), "its group has no tagLen"),
        ("ACVP-AES-GCM", &gcm(""), format!(r#"{KEY}, "ct": "", "aad": "", {iv}"#), "it has no tag"),
        (
            "ACVP-AES-GCM",
            &gcm(""),
            format!(r#"{KEY}, "ct": "", "aad": "", {iv}, "tag": "00""#),
            "tags of 16 bytes, and this has 1",
        ),
        (
            "CMAC-AES",
            r#""direction": "gen", "macLen": 7"#,
            format!(r#"{KEY}, "message": """#),
            "macLen is 7 bits",
        ),
        (
            "CMAC-AES",
            r#""direction": "gen", "macLen": 0"#,
            format!(r#"{KEY}, "message": """#),
            "1 to 16 bytes",
        ),
        ("CMAC-AES", r#""direction": "gen", "macLen": 136"#, format!(r#"{KEY}, "message": """#), "not 17"),
        ("ACVP-AES-FF1", ENCRYPT, format!(r#"{KEY}, "pt": "1", "tweak": """#), "has no alphabet"),
    ] {
        let error = format!("{:#}", planned(algorithm, group, &test).expect_err(because));
        assert!(error.contains(because), "{error}");
        assert!(error.contains("test 7 of group 3") || algorithm == "ACVP-RSA", "{error}");
    }
}

#[test]
fn another_revision_is_an_error() {
    let text = r#"{"vsId": 1, "algorithm": "ACVP-AES-XTS", "revision": "2.0", "testGroups":
        [{"tgId": 3, "testType": "AFT", "tests": [{"tcId": 7}]}]}"#;
    let prompt = Prompt::parse(text.as_bytes()).expect("a set");
    let group = &prompt.test_groups[0];
    let error = plan(&prompt, group, &group.tests[0]).expect_err("refused");
    assert!(error.to_string().contains("revision 1.0 of ACVP-AES-XTS, not 2.0"), "{error}");
}

#[test]
fn what_nodes_do_not_do_has_a_reason() {
    let gcm = |how: &str| format!(r#"{ENCRYPT}, "tagLen": 128, {how}"#);
    let message = format!(r#"{KEY}, "pt": "", "aad": """#);
    let wrapped = |data: &str| format!(r#"{KEY}, "pt": "{data}", "ct": "{BLOCK}""#);
    let ff1 = |value: &str| format!(r#"{KEY}, "pt": "{value}", "tweak": """#);
    for (algorithm, group, test, because) in [
        ("ACVP-AES-CTR", ENCRYPT.to_owned(), format!(r#"{KEY}, "pt": "80", "payloadLen": 1"#), "whole bytes"),
        ("ACVP-AES-GCM", gcm(r#""ivGen": "internal", "ivGenMode": "8.2.1""#), message.clone(), "8.2.1"),
        ("ACVP-AES-GCM", gcm(r#""ivGen": "external""#), format!(r#"{message}, "iv": """#), "nonces of"),
        ("ACVP-AES-KW", format!(r#"{ENCRYPT}, "kwCipher": "inverse""#), wrapped(BLOCK), "its inverse"),
        ("ACVP-AES-KW", format!(r#"{ENCRYPT}, "kwCipher": "cipher""#), wrapped("00"), "no key of AES"),
        ("ACVP-AES-KWP", format!(r#"{DECRYPT}, "kwCipher": "cipher""#), wrapped(BLOCK), "give it to nobody"),
        ("ACVP-AES-FF1", format!(r#"{ENCRYPT}, "alphabet": "01""#), ff1("01"), "at least 1000000"),
        ("ACVP-AES-FF1", format!(r#"{ENCRYPT}, "alphabet": "01""#), ff1(&"01".repeat(100)), "too long"),
    ] {
        match planned(algorithm, &group, &test).expect("a plan") {
            Plan::NotSupported(why) => assert!(why.contains(because), "{why}"),
            Plan::Ask(job) => panic!("{because}: {job:?}"),
        }
    }
}

#[test]
fn two_keys_of_triple_des_are_two_and_three_are_three() {
    for (option, cipher, bytes) in [(1, "3des-ede3", 24), (2, "3des-ede2", 16)] {
        let group = format!(r#"{ENCRYPT}, "keyingOption": {option}"#);
        let test = format!(r#"{DES}, "pt": "0000000000000000""#);
        match planned("ACVP-TDES-ECB", &group, &test).expect("a plan") {
            Plan::Ask(job) => assert_eq!((job.cipher, job.key.len()), (cipher, bytes)),
            Plan::NotSupported(why) => panic!("{why}"),
        }
    }
}
