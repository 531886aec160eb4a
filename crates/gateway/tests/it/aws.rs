//! The data plane of AWS Payment Cryptography, over real nodes: every operation, every exception, who may,
//! and what no client should send.

mod client;
mod operations;
mod refused;
mod rights;
mod signatures;

use std::sync::{Arc, Mutex};

use polyclave_api::{Mode, NewKey, Right, Usage};
use polyclave_config::ACCESS_KEY_RIGHTS;
use serde_json::{Value, json};

use crate::common::{AccessKey, World};

pub const VERIFY_PIN: &str = "/pindata/verify";
pub const PAN: &str = "1122334455667788";

/// The keys that tests use: name, purpose, cipher, key.
const KEYS: [(&str, &str, &str, &str); 20] = [
    ("pay-pin", "pin-encryption", "3des-ede2", "00112233445566778899aabbccddeeff"),
    ("pay-pin-2", "pin-encryption", "3des-ede2", "ffeeddccbbaa99887766554433221100"),
    ("pay-pin-aes", "pin-encryption", "aes-128", "00112233445566778899aabbccddeeff"),
    ("pay-pvv", "pin-verification-visa", "3des-ede2", K),
    ("pay-ibm", "pin-verification-ibm3624:1234567890123456", "3des-ede2", K),
    ("pay-cvv", "card-verification", "3des-ede2", K),
    ("pay-mac", "mac-retail", "3des-ede2", K),
    ("pay-dcvv", "emv-dcvv", "3des-ede2", "2315208c9110ad402315208c9110ad40"),
    ("pay-cvc3", "emv-cvc3", "3des-ede2", "01234567899876543210012345678998"),
    ("pay-cbc-mac", "mac-cbc", "3des-ede2", "0123456789abcdef0123456789abcdef"),
    ("pay-cmac", "mac-cmac", "aes-128", "2b7e151628aed2a6abf7158809cf4f3c"),
    ("pay-bdk", "dukpt-base", "3des-ede2", K),
    ("pay-data", "data-encryption", "aes-128", FIPS_197),
    ("pay-emv", "emv-cryptograms", "3des-ede2", K),
    ("pay-smi", "emv-integrity", "3des-ede2", "11223344556677889900aabbccddeeff"),
    ("visa-pin", "pin-encryption", "3des-ede2", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"),
    ("visa-smi", "emv-integrity", "3des-ede2", K),
    ("visa-smc", "emv-confidentiality", "3des-ede2", "11111111111111112222222222222222"),
    ("visa-emv", "emv-cryptograms", "3des-ede2", "fedcba98765432100123456789abcdef"),
    ("pay-smc", "emv-confidentiality", "3des-ede2", "ffeeddccbbaa00998877665544332211"),
];
const K: &str = "0123456789abcdeffedcba9876543210";
const FIPS_197: &str = "000102030405060708090a0b0c0d0e0f";

/// A world with payment keys, and an access key that may do everything.
pub fn world() -> (Arc<World>, AccessKey) {
    static MADE: Mutex<Option<(std::sync::Weak<World>, AccessKey)>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((world, key)) = &*made
        && let Some(world) = world.upgrade()
    {
        return (world, key.clone());
    }
    let world = Arc::new(World::start());
    make_keys(&world);
    let key = world.add_access_key("payer", &ACCESS_KEY_RIGHTS, &["*"]);
    *made = Some((Arc::downgrade(&world), key.clone()));
    (world, key)
}

fn make_keys(world: &World) {
    let client = world.client();
    for (name, purpose, cipher, key) in KEYS {
        let purpose = purpose.parse().expect("a purpose");
        let new =
            NewKey { usage: vec![Usage::Payment(purpose)], ..NewKey::for_modes(name, cipher, &[], 1 << 20) };
        client.import(new, &hex::decode(key).expect("hex")).expect("imported");
    }
    // A key of FIPS 197 that is not for payments.
    let new = NewKey::for_modes("ecb", "aes-128", &[Mode::Ecb], 1 << 20);
    client.import(new, &hex::decode(FIPS_197).expect("hex")).expect("imported");
}

/// A PIN to verify by its PVV: 4524 (`2D23..`), or 4525 (`7972..`).
pub fn by_pvv(block: &str, value: &str) -> Value {
    json!({
        "EncryptionKeyIdentifier": "alias/pay-pin",
        "VerificationKeyIdentifier": "alias/pay-pvv",
        "PrimaryAccountNumber": PAN,
        "PinBlockFormat": "ISO_FORMAT_0",
        "EncryptedPinBlock": block,
        "VerificationAttributes": {
            "VisaPin": { "PinVerificationKeyIndex": 3, "VerificationValue": value }
        },
    })
}

/// PIN blocks in format 0 under `pay-pin` for [`PAN`]: of 4524 and of 4525.
pub const OF_4524: &str = "2D2399C6FC0FB12B";
pub const OF_4525: &str = "797237B8A5BE562C";

/// A request with another value at a member.
pub fn with(request: &Value, member: &str, value: Value) -> Value {
    let mut changed = request.clone();
    changed[member] = value;
    changed
}

/// A request without a member.
pub fn without(request: &Value, member: &str) -> Value {
    let mut changed = request.clone();
    changed.as_object_mut().expect("an object").remove(member);
    changed
}

/// Rights of a caller that only verifies.
pub const PAYS: [Right; 1] = [Right::Pay];
