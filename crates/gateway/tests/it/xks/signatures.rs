//! Whose requests are answered: skewed clocks, requests that are sent again, other regions and services.

use serde_json::json;
use time::Duration;

use super::{STORE, name, plaintext, unsigned, world};
use crate::common::{AccessKey, Answer, Unsigned};

const REFUSED: (u16, &str) = (401, "AuthenticationFailedException");

fn request() -> Unsigned {
    unsigned(&format!("{STORE}/keys/a/encrypt"), plaintext(b"a", b""))
}

#[test]
fn a_signature_is_good_for_five_minutes() {
    let (world, key) = world();
    let ask = |seconds: i64| {
        let request = request();
        Unsigned { at: request.at + Duration::seconds(seconds), ..request }.ask(&key).of(world.address())
    };
    // Some seconds are left for a busy machine.
    for seconds in [0, -240, 240] {
        assert_eq!(ask(seconds).status, 200, "{seconds}");
    }
    for seconds in [-302, 360, 86_400, -86_400 * 400] {
        let refused = ask(seconds);
        assert_eq!(name(&refused), REFUSED, "{seconds}");
        assert!(refused.text.contains("clocks"), "{refused:?}");
    }
}

#[test]
fn a_request_that_is_sent_again_is_refused() {
    let (world, key) = world();
    let signed = request().ask(&key);
    assert_eq!(signed.of(world.address()).status, 200);
    for _ in 0..2 {
        let refused = signed.of(world.address());
        assert_eq!(name(&refused), REFUSED);
        assert!(refused.text.contains("sent before"), "{refused:?}");
    }
    // One that was refused for its signature is not remembered: a stranger cannot spoil it.
    let once = request();
    let other = AccessKey { secret: "polyclave/another".into(), ..key.clone() };
    assert_eq!(name(&once.ask(&other).of(world.address())), REFUSED);
    assert_eq!(once.ask(&key).of(world.address()).status, 200);
    // So is the same for the health.
    let health = unsigned(&format!("{STORE}/health"), json!({})).ask(&key);
    let answers = [health.of(world.address()), health.of(world.address())].map(|answer| answer.status);
    assert_eq!(answers, [200, 401]);
}

#[test]
fn other_regions_services_and_secrets_are_refused() {
    let (world, key) = world();
    let ask = |request: &Unsigned, key: &AccessKey| -> Answer { request.ask(key).of(world.address()) };
    let regional = |region: &'static str| {
        let path = "/regional/kms/xks/v1/keys/a/encrypt";
        ask(&Unsigned { region, ..unsigned(path, plaintext(b"a", b"")) }, &key)
    };
    assert_eq!(regional("eu-north-1").status, 200);
    let refused = regional("eu-central-1");
    assert_eq!(name(&refused), REFUSED);
    assert!(refused.text.contains("region"), "{refused:?}");
    // Without regions any one will do.
    assert_eq!(ask(&Unsigned { region: "mars-west-1", ..request() }, &key).status, 200);
    for service in ["payment-cryptography", "kms"] {
        assert_eq!(name(&ask(&Unsigned { service, ..request() }, &key)), REFUSED, "{service}");
    }
    // A signature for this service is none for payments.
    let payments = Unsigned { path: "/pindata/verify".into(), ..request() };
    assert_eq!(ask(&payments, &key).status, 403);
    let wrong = AccessKey { secret: format!("{}x", key.secret), ..key.clone() };
    assert_eq!(name(&ask(&request(), &wrong)), REFUSED);
    let nobody = AccessKey { id: "POLYAAAAAAAAAAAAAAAA".into(), ..key.clone() };
    let stranger = ask(&request(), &nobody);
    assert_eq!((name(&stranger), stranger.header("connection")), (REFUSED, Some("close")));
    let bare = crate::common::Ask::new("POST", &format!("{STORE}/health")).body(b"{}");
    assert_eq!(name(&bare.of(world.address())), REFUSED);
    let queried = Unsigned { path: format!("{STORE}/health?a=b"), ..request() };
    assert_eq!(name(&ask(&queried, &key)), REFUSED, "the query was not signed");
}
