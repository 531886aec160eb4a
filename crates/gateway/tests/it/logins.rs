//! Logins: programs show a token of an issuer, and get one of the gateway.

mod failures;
mod issuers;
mod kubernetes;
mod refused;
mod rights;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::{Answer, Ask, Signer, World, jwks, now};

const ISSUER: &str = "https://issuer.example";

/// Files of logins.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().expect("a directory"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    /// A login under `jwt` with the keys of these signers, more lines of its own, and one of its roles.
    fn login(&self, signers: &[&Signer], more: &str, of_role: &str) -> String {
        let keys = self.write("issuer.jwks", &jwks(signers));
        login(&format!("keys_file = {keys:?}\n{more}"), of_role)
    }
}

/// A login under `jwt`.
fn login(keys: &str, of_role: &str) -> String {
    format!(
        "[[login]]\npath = 'jwt'\nkind = 'jwt'\nissuer = '{ISSUER}'\n{keys}\n[[login.role]]\nname = 'ci'\naudiences = ['polyclave']\n\
         subjects = ['project:*']\nrights = ['encrypt', 'decrypt']\nkeys = ['ci-*']\n{of_role}\n"
    )
}

/// The claims of a good token.
fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "sub": "project:orders",
        "aud": ["other", "polyclave"],
        "iat": now(),
        "nbf": now(),
        "exp": now() + 300,
        "jti": format!("{:?}", std::time::Instant::now()),
    })
}

/// The same with one claim changed, or removed if it is null.
fn with(name: &str, value: Value) -> Value {
    let mut changed = claims();
    match value {
        Value::Null => changed.as_object_mut().expect("an object").remove(name),
        other => changed.as_object_mut().expect("an object").insert(name.into(), other),
    };
    changed
}

fn ask(path: &str, body: &Value) -> Ask {
    Ask::new("POST", path).body(body.to_string().as_bytes())
}

/// Logs in with a token of an issuer.
fn log_in(world: &World, token: &str) -> Answer {
    ask("/v1/auth/jwt/login", &json!({ "role": "ci", "jwt": token })).of(world.address())
}

/// The token of a login that succeeded.
fn token_of(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json["auth"]["client_token"].as_str().expect("a token").into()
}

/// A gateway without nodes, which a login does not need.
fn alone(settings: &str) -> World {
    let mut world = World::define();
    world.root = world.write_settings(settings);
    world.start_gateway();
    world
}

/// One of many callers, who each may be wrong some times.
fn caller(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, (number / 200) as u8, 1 + (number % 200) as u8)
}
