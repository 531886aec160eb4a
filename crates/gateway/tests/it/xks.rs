//! The proxy API of external key stores of AWS KMS, over real nodes: every operation, every error, who may,
//! and what KMS should not send.

mod ciphertexts;
mod refused;
mod signatures;

use std::sync::{Arc, Mutex, Weak};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_api::{Mode, NewKey, Right, Usage};
use serde_json::{Value, json};

use crate::common::{AccessKey, Answer, Unsigned, World};

pub const STORE: &str = "/eu/kms/xks/v1";

/// The stores of tests. Machines are busy: only the store `late` keeps KMS's time, and less.
const SETTINGS: &str = r#"
[[xks]]
path = "/eu/kms/xks/v1"
answer_ms = 100_000
key = [
    { id = "a", key = "xks-a" },
    { id = "b", key = "xks-b" },
    { id = "known", key = "xks-known" },
    { id = "rotated", key = "xks-rotated" },
    { id = "encrypts", key = "xks-encrypts" },
    { id = "decrypts", key = "xks-decrypts" },
    { id = "short", key = "xks-short" },
    { id = "ecb", key = "xks-ecb" },
    { id = "lost", key = "xks-lost" },
]

[[xks]]
path = "/regional/kms/xks/v1"
answer_ms = 100_000
regions = ["eu-north-1", "us-east-2"]
key = [{ id = "a", key = "xks-a" }]

[[xks]]
path = "/ruled/kms/xks/v1"
answer_ms = 100_000
key = [
    { id = "a", key = "xks-a", principals = ["arn:aws:iam::1122:role/*"] },
    { id = "b", key = "xks-b", kms_keys = ["arn:aws:kms:eu-central-1:1122:key/orders"] },
]

[[xks]]
path = "/late/kms/xks/v1"
answer_ms = 1
key = [{ id = "a", key = "xks-a" }]
"#;

/// The bytes of the key `known`.
pub const KNOWN: [u8; 32] = [0x5a; 32];

/// A world with keys and stores.
pub fn start() -> (World, AccessKey) {
    let world = World::start_with(SETTINGS);
    let client = world.client();
    let gcm = |name: &str| NewKey::for_modes(name, "aes-256", &[Mode::Gcm], 1 << 32);
    for key in [
        gcm("xks-a"),
        gcm("xks-b"),
        gcm("xks-rotated"),
        NewKey { usage: vec![Usage::Encrypt], ..gcm("xks-encrypts") },
        NewKey { usage: vec![Usage::Decrypt], ..gcm("xks-decrypts") },
        NewKey { cipher: "aes-128".into(), ..gcm("xks-short") },
        NewKey::for_modes("xks-ecb", "aes-256", &[Mode::Ecb], 1 << 32),
    ] {
        client.generate(key).expect("a key");
    }
    client.import(gcm("xks-known"), &KNOWN).expect("a key");
    let key = world.add_access_key("kms", &[Right::Encrypt, Right::Decrypt], &["xks-*"]);
    (world, key)
}

/// The world that tests share which run at the same time and change nothing that others would notice.
pub fn world() -> (Arc<World>, AccessKey) {
    static MADE: Mutex<Option<(Weak<World>, AccessKey)>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((world, key)) = &*made
        && let Some(world) = world.upgrade()
    {
        return (world, key.clone());
    }
    let (world, key) = start();
    let world = Arc::new(world);
    *made = Some((Arc::downgrade(&world), key.clone()));
    (world, key)
}

/// A request's metadata, with an id of its own, as KMS gives one.
pub fn of_request(operation: &str) -> Value {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    json!({
        "awsPrincipalArn": "arn:aws:iam::123456789012:user/Alice",
        "kmsKeyArn": "arn:aws:kms:us-east-2:123456789012:/key/1234abcd-12ab-34cd-56ef-1234567890ab",
        "kmsOperation": operation,
        "kmsRequestId": format!("request-{}", NEXT.fetch_add(1, Relaxed)),
        "kmsViaService": "ebs",
        "somethingNew": { "of": "AWS" },
    })
}

/// A request of KMS, before it is signed.
pub fn unsigned(path: &str, more: Value) -> Unsigned {
    let mut body = json!({ "requestMetadata": of_request("Encrypt") });
    let more = more.as_object().expect("members").clone();
    body.as_object_mut().expect("members").extend(more);
    Unsigned { service: "kms-xks-proxy", signed: Vec::new(), ..Unsigned::new(path, &body) }
}

/// Asks as KMS does.
pub fn ask((world, key): (&World, &AccessKey), path: &str, more: Value) -> Answer {
    unsigned(path, more).ask(key).of(world.address())
}

/// The same in a store, for something that has to succeed.
pub fn done(of: (&World, &AccessKey), operation: &str, more: Value) -> Value {
    let answer = ask(of, &format!("{STORE}/{operation}"), more);
    assert_eq!(answer.status, 200, "{operation}: {answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json
}

/// What is refused, by its status and its name.
pub fn name(answer: &Answer) -> (u16, &str) {
    let message = answer.json["errorMessage"].as_str().unwrap_or_else(|| panic!("no message: {answer:?}"));
    assert!(message.len() < 512 && message.bytes().all(|c| (0x20..0x7f).contains(&c)), "{message}");
    (answer.status, answer.json["errorName"].as_str().expect("a name"))
}

/// The members of a request for an encryption.
pub fn plaintext(plaintext: &[u8], additional: &[u8]) -> Value {
    let mut body = json!({ "plaintext": STANDARD.encode(plaintext), "encryptionAlgorithm": "AES_GCM" });
    if !additional.is_empty() {
        body["additionalAuthenticatedData"] = STANDARD.encode(additional).into();
    }
    body
}

/// The members of a request for a decryption of what an encryption has answered.
pub fn ciphertext(answer: &Value, additional: &[u8]) -> Value {
    let mut body = answer.clone();
    body.as_object_mut().expect("members").remove("ciphertextDataIntegrityValue");
    body["encryptionAlgorithm"] = "AES_GCM".into();
    if !additional.is_empty() {
        body["additionalAuthenticatedData"] = STANDARD.encode(additional).into();
    }
    body
}

/// The bytes of a member.
pub fn bytes(answer: &Value, member: &str) -> Vec<u8> {
    let text = answer[member].as_str().unwrap_or_else(|| panic!("no {member}: {answer}"));
    STANDARD.decode(text).expect("Base64")
}
