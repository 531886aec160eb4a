//! One-time passwords are those of RFC 6238, appendix B, and keys for them are keys for HMAC.

use polyclave_api::{Mode, Right};
use polyclave_cipher::hmac::{Sha2, name};
use polyclave_client::{Error, totp_counter};

use crate::common::{TestCluster, key};

/// Seconds since 1970, and the passwords with SHA-256 and SHA-512.
const PASSWORDS: [(u64, &str, &str); 6] = [
    (59, "46119246", "90693936"),
    (1_111_111_109, "68084774", "25091201"),
    (1_111_111_111, "67062674", "99943326"),
    (1_234_567_890, "91819424", "93441116"),
    (2_000_000_000, "90698825", "38618901"),
    (20_000_000_000, "77737706", "47863826"),
];

#[test]
fn passwords_of_rfc_6238_come_out() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let secret: Vec<u8> = b"1234567890".repeat(7);
    let counters = PASSWORDS.map(|(seconds, ..)| totp_counter(seconds, 30));
    for (hash, bytes) in [(Sha2::Sha256, 32), (Sha2::Sha512, 64)] {
        let of_hash = format!("otp-{}", name(hash));
        client.import(key(&of_hash, name(hash), &[Mode::Hmac]), &secret[..bytes]).expect("a key");
        let handle = client.key(&of_hash).expect("nothing is asked");
        let expected = PASSWORDS.map(|(_, sha_256, sha_512)| match hash {
            Sha2::Sha256 => sha_256,
            _ => sha_512,
        });
        let found = handle.one_time_passwords(&counters, 8).expect("passwords");
        assert!(found.iter().map(|password| &password[..]).eq(expected), "{found:?}");
        let short = handle.one_time_passwords(&counters[..1], 6).expect("a password");
        assert_eq!(short[0][..], expected[0][2..]);
    }
}

#[test]
fn what_is_no_password_of_the_rfc_is_refused() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("otp-codes", name(Sha2::Sha256), &[Mode::Hmac])).expect("a key");
    client.generate(key("otp-384", name(Sha2::Sha384), &[Mode::Hmac])).expect("a key");
    client.generate(key("otp-aes", "aes-128", &[Mode::Cmac])).expect("a key");
    for (name, digits, why) in [
        ("otp-codes", 5, "6 to 8 digits, not 5"),
        ("otp-codes", 9, "6 to 8 digits, not 9"),
        ("otp-384", 6, "the key 'otp-384' has SHA-384"),
        ("otp-aes", 6, "not for hmac"),
    ] {
        let refused = client.key(name).and_then(|key| key.one_time_passwords(&[1], digits));
        let told = refused.expect_err("refused").to_string();
        assert!(told.contains(why), "{told}");
    }
    let other = cluster.client_with("otp-other", &[Right::Encrypt, Right::List], &["otp-codes"]);
    let refused = other.key("otp-codes").and_then(|key| key.one_time_passwords(&[1], 6));
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
}
