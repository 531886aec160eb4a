//! Which access key may do what, with which keys.

use polyclave_api::Right;
use serde_json::json;

use super::{OF_4524, PAYS, VERIFY_PIN, by_pvv, with, world};
use crate::common::World;

const DENIED: (u16, &str) = (403, "AccessDeniedException");

#[test]
fn an_access_key_may_do_what_its_entry_says_and_nothing_else() {
    let (world, _) = world();
    let request = by_pvv(OF_4524, "4021");
    let pays = world.add_access_key("pays", &PAYS, &["pay-p*"]);
    world.paid(&pays, VERIFY_PIN, &request);
    let generate = json!({
        "KeyIdentifier": "alias/pay-cvv",
        "PrimaryAccountNumber": PAN_OF_CVV,
        "GenerationAttributes": { "CardVerificationValue2": { "CardExpiryDate": "8701" } },
    });
    let generates = "/cardvalidationdata/generate";
    world.refused(&pays, generates, &generate, DENIED);
    // Whether there is such a key, it does not learn.
    for key in ["alias/ecb", "alias/nothing"] {
        let denied =
            world.refused(&pays, VERIFY_PIN, &with(&request, "EncryptionKeyIdentifier", json!(key)), DENIED);
        assert!(!denied.to_string().contains("nothing"), "{denied}");
    }
    let all = world.add_access_key("pays-all", &PAYS, &["*"]);
    world.refused(&all, generates, &generate, DENIED);
    let issues = world.add_access_key("issues", &[Right::Issue], &["pay-*"]);
    world.paid(&issues, generates, &generate);
    world.refused(&issues, VERIFY_PIN, &request, DENIED);
    // Each key of a request counts.
    let pins = world.add_access_key("pins", &PAYS, &["pay-pin"]);
    world.refused(&pins, VERIFY_PIN, &request, DENIED);
    let lists = world.add_access_key("lists", &[Right::List], &["*"]);
    world.refused(&lists, VERIFY_PIN, &request, DENIED);

    let ecb = json!({
        "PlainText": "00112233445566778899aabbccddeeff",
        "EncryptionAttributes": { "Symmetric": { "Mode": "ECB" } },
    });
    world.refused(&all, "/keys/alias%2Fecb/encrypt", &ecb, DENIED);
    let encrypts = world.add_access_key("encrypts", &[Right::Encrypt], &["ecb"]);
    world.paid(&encrypts, "/keys/alias%2Fecb/encrypt", &ecb);
    let decrypt = json!({
        "CipherText": "00112233445566778899aabbccddeeff",
        "DecryptionAttributes": { "Symmetric": { "Mode": "ECB" } },
    });
    world.refused(&encrypts, "/keys/alias%2Fecb/decrypt", &decrypt, DENIED);
}

const PAN_OF_CVV: &str = "4123456789012345";

#[test]
fn an_access_key_that_is_revoked_stops_at_once_and_the_nodes_log_its_name() {
    let world = World::start();
    super::make_keys(&world);
    let key = world.add_access_key("passing-by", &PAYS, &["*"]);
    let request = by_pvv(OF_4524, "4021");
    world.paid(&key, VERIFY_PIN, &request);
    for node in 0..3 {
        let log = world.audit_log(node);
        let is_it = |line: &str| line.contains("command=verify-pin") && line.contains("for=passing-by");
        assert!(log.lines().any(is_it), "node {node}: {log}");
    }
    let text = std::fs::read_to_string(world.file()).expect("read");
    let (before, entry) = text.rsplit_once("[[access_key]]").expect("an entry");
    // The secret cannot be read: what was in force stays so.
    let broken =
        format!("{text}\n[[access_key]]{}", entry.replace("passing-by", "other").replace("POLY", "POLX"));
    crate::common::replace(&world.file(), &broken);
    world.paid(&key, VERIFY_PIN, &request);
    crate::common::replace(&world.file(), before);
    world.refused(&key, VERIFY_PIN, &request, (403, "UnrecognizedClientException"));
}
