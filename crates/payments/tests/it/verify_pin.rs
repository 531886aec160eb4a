//! Verification of PINs, with known answers.

use polyclave_payments::commands::VerifyPin;
use polyclave_payments::{Command, Dukpt, EncryptedPin, KeySource, PinFormat, PinReference, WorkingKey};

use crate::runner::{TestKey, bytes, key, pan, run};

const K: &str = "0123456789abcdeffedcba9876543210";

fn visa(block: &str, format: PinFormat, source: KeySource, pan_: &str, index: u8, value: &str) -> Command {
    Command::VerifyPin(VerifyPin {
        pin: EncryptedPin { format, block: bytes(block), key: source },
        pan: pan(pan_),
        reference: PinReference::Visa { index, value: value.parse().expect("digits") },
    })
}

fn pvk() -> TestKey {
    key("pin-verification-visa", "3des-ede2", K)
}

/// The PVV of product examples of `psec` 1.3 and `payShield` guides: key K, index 3, PIN 4524: 4021. The block is
/// made by `psec`.
#[test]
fn pvv_of_a_pin_in_format_0() {
    let pek = key("pin-encryption", "3des-ede2", "11111111111111112222222222222222");
    let command =
        |value| visa("5acb0a032f939b97", PinFormat::Iso0, KeySource::Direct, "1122334455667788", 3, value);
    assert!(run(&command("4021"), &[pek.clone(), pvk()]).passes);
    assert!(!run(&command("4022"), &[pek, pvk()]).passes);
}

/// X9.24-1, annex A.4: PIN 1234, PAN 4012345678909, first transaction.
#[test]
fn pvv_of_a_pin_under_a_key_of_dukpt() {
    let bdk = key("dukpt-base", "3des-ede2", K);
    let dukpt = Dukpt { ksn: bytes("ffff9876543210e00001"), working: WorkingKey::Tdes2 };
    let command = |value| {
        let source = KeySource::Dukpt(dukpt.clone());
        visa("1b9c1845eb993a7a", PinFormat::Iso0, source, "4012345678909", 1, value)
    };
    let found: Vec<bool> =
        ["5111", "5112"].iter().map(|value| run(&command(value), &[bdk.clone(), pvk()]).passes).collect();
    assert_eq!(found, [true, false]);
}
