//! Payment commands give what public sources say, under every protocol, for who may, and fail alike.

use std::time::Instant;

use polyclave_api::{NewKey, Usage};
use polyclave_client::Client;
use polyclave_payments::commands::VerifyPin;
use polyclave_payments::{Command, EncryptedPin, KeySource, PinFormat, PinReference, Purpose};

use crate::common::from_keys::bytes;
use crate::common::{TestCluster, insist};

const K: &str = "0123456789abcdeffedcba9876543210";
const PAN: &str = "1122334455667788";

/// A payment key that is imported once under a name of its own.
fn imported(client: &Client, purpose: &str, key: &str) -> String {
    let purpose: Purpose = purpose.parse().expect("a purpose");
    let cipher = match (key.len(), key.len() / 2) {
        _ if purpose.to_string().contains("aes") => "aes-128",
        (_, 16) => "3des-ede2",
        (_, 24) => "3des-ede3",
        _ => "aes-256",
    };
    let name = format!("{}-{}", purpose.to_string().replace(':', "-"), &key[..8]);
    let new =
        NewKey { usage: vec![Usage::Payment(purpose)], ..NewKey::for_modes(&name, cipher, &[], 1 << 20) };
    match client.import(new, &bytes(key)) {
        Ok(_) => {}
        Err(e) => assert!(e.to_string().contains("is a key"), "{e}"),
    }
    name
}

fn verify(block: &[u8], index: u8, value: &str) -> Command {
    let pin = EncryptedPin { format: PinFormat::Iso0, block: block.to_vec(), key: KeySource::Direct };
    let reference = PinReference::Visa { index, value: value.parse().expect("digits") };
    Command::VerifyPin(VerifyPin { pin, pan: PAN.parse().expect("a card"), reference })
}

/// A PIN block in format 0.
fn block(pin: &str) -> Vec<u8> {
    use des::cipher::{BlockCipherEncrypt, KeyInit};
    let pin = format!("0{:x}{pin:f<14}", pin.len());
    let field = format!("0000{}", &PAN[3..15]);
    let mut block: Vec<u8> = bytes(&pin).iter().zip(bytes(&field)).map(|(a, b)| a ^ b).collect();
    let key: Vec<u8> = bytes("00112233445566778899aabbccddeeff");
    let cipher = des::TdesEde2::new_from_slice(&key).expect("a key");
    cipher.encrypt_block(block.as_mut_slice().try_into().expect("a block"));
    block
}

fn works(cluster: &TestCluster) {
    let client = cluster.client();
    let pins = imported(&client, "pin-encryption", "00112233445566778899aabbccddeeff");
    let pvv = imported(&client, "pin-verification-visa", K);
    let keys = [pins.as_str(), pvv.as_str()];
    let right = verify(&block("4524"), 3, "4021");
    let begun = Instant::now();
    assert!(insist(&|| client.pay(&keys, &right)).is_some());
    eprintln!("first: {:?}", begun.elapsed());
    let begun = Instant::now();
    for _ in 0..5 {
        assert!(insist(&|| client.pay(&keys, &right)).is_some());
    }
    eprintln!("each: {:?}", begun.elapsed() / 5);
    assert!(insist(&|| client.pay(&keys, &verify(&block("4525"), 3, "4021"))).is_none());
    let begun = Instant::now();
    let many: Vec<Command> =
        (0..100).map(|i| verify(&block("4524"), 3, if i % 3 == 0 { "4022" } else { "4021" })).collect();
    let paid = insist(&|| client.pay_all(&keys, &many));
    eprintln!("hundred: {:?}", begun.elapsed());
    paid.iter().enumerate().for_each(|(i, paid)| assert_eq!(paid.is_some(), i % 3 != 0));
}

#[test]
fn a_pin_is_verified_under_shamir() {
    works(&TestCluster::shared());
}

#[test]
fn a_pin_is_verified_under_replicated_active() {
    works(&{
        let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
        (0..3).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        cluster
    });
}
