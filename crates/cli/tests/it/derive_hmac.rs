//! Keys for HMAC on the command line: those that derive, and one-time passwords.

use crate::common::Place;

/// RFC 5869, appendix A.1: PRK, and the beginning of OKM.
const PRK: &str = "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5";
const OKM: &str = "3cb25f25faacd57a90434f64d0362f2a";

fn secret(place: &Place, name: &str, digits: &str) {
    use std::os::unix::fs::PermissionsExt;
    place.write(name, digits.as_bytes());
    std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(0o600)).expect("set");
}

#[test]
fn keys_and_bytes_are_derived_with_hmac() {
    let place = Place::new();
    let _cluster = place.cluster();
    let check_value = |said: String| -> String {
        let info: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
        info["check_value"].as_str().expect("a text").to_owned()
    };
    secret(&place, "prk.hex", PRK);
    place.run("key import root --cipher hmac-sha-256 --usage derive --key-file prk.hex");
    place.run("key import seeds --cipher hmac-sha-256 --usage kdf --key-file prk.hex");
    for (number, how) in
        ["--hkdf-info f0f1f2f3f4f5f6f7f8f9", "--counter --before 6c --after 00 --counter-bits 32"]
            .into_iter()
            .enumerate()
    {
        let bytes = place.run(&format!("key kdf seeds --bytes 16 {}", how.trim_start_matches("--counter ")));
        if number == 0 {
            assert_eq!(bytes.trim(), OKM);
        }
        secret(&place, &format!("{number}.hex"), bytes.trim());
        let derived = place.run(&format!("key derive root child-{number} {how} --json"));
        let imported = place.run(&format!("key import same-{number} --key-file {number}.hex --json"));
        assert_eq!(check_value(derived), check_value(imported), "{how}");
    }

    let message = place.fails("key derive root none --ecb-data 00112233445566778899aabbccddeeff");
    assert!(message.contains("hmac-sha-256 encrypts no blocks"), "{message}");
    let message = place.fails("key derive root none --hkdf-info 00 --before 00");
    assert!(message.contains("belong to --counter"), "{message}");
    let message = place.fails("key derive root none --hkdf-info 0");
    assert!(message.contains("--hkdf-info has 1 hex digits"), "{message}");
    let message = place.fails("key generate both --cipher hmac-sha-256 --modes hmac --usage mac,derive");
    assert!(message.contains("another key for the usage derive"), "{message}");
    place.write("message", b"\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\x01");
    let message = place.fails("mac --key root message");
    assert!(message.contains("not for"), "{message}");
}

/// RFC 6238, appendix B.
#[test]
fn one_time_passwords_are_computed_and_verified() {
    let place = Place::new();
    let _cluster = place.cluster();
    secret(&place, "phone.hex", &hex::encode("12345678901234567890123456789012"));
    place.run("key import phone --cipher hmac-sha-256 --modes hmac --key-file phone.hex");
    assert_eq!(place.run("otp --key phone --at 1111111109 --digits 8"), "68084774\n");
    assert_eq!(place.run("otp --key phone --counter 37037036 --digits 6"), "084774\n");
    let verify = |at: u64| format!("otp --key phone --digits 8 --at {at} --verify 68084774");
    for at in [1_111_111_079, 1_111_111_109, 1_111_111_139] {
        assert_eq!(place.run(&verify(at)), "the password fits: counter 37037036\n");
    }
    for at in [1_111_111_049, 1_111_111_140] {
        let message = place.fails(&verify(at));
        assert!(message.contains("does not fit"), "{message}");
    }
    place.run(&format!("{} --steps 2", verify(1_111_111_140)));
    assert_eq!(place.run("otp --key phone").trim().len(), 6);
}
