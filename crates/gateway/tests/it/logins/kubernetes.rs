//! Service accounts of Kubernetes log in with the tokens that the API server makes for their pods.

use serde_json::{Value, json};

use super::{Files, alone, ask, caller};
use crate::common::{Answer, Signer, World, jwks, now};

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The claims of a projected token.
fn of_pod(namespace: &str, name: &str) -> Value {
    json!({
        "aud": ["polyclave"],
        "exp": now() + 600,
        "iat": now(),
        "iss": ISSUER,
        "kubernetes.io": {
            "namespace": namespace,
            "node": { "name": "worker", "uid": "2b" },
            "pod": { "name": "shop-0", "uid": "1c" },
            "serviceaccount": { "name": name, "uid": "7f1d" },
        },
        "nbf": now(),
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    })
}

fn settings(files: &Files, signer: &Signer) -> String {
    let keys = files.write("cluster.jwks", &jwks(&[signer]));
    format!(
        "[[login]]\npath = 'kubernetes/eu'\nkind = 'kubernetes'\nissuer = '{ISSUER}'\nkeys_file = {keys:?}\n[[login.role]]\nname = 'shop'\n\
         audiences = ['polyclave']\nservice_accounts = ['shop', 'cart-*']\nnamespaces = ['prod']\nrights = ['random']\n"
    )
}

fn log_in(world: &World, from: usize, token: &str) -> Answer {
    let body = json!({ "role": "shop", "jwt": token });
    ask("/v1/auth/kubernetes/eu/login", &body).from(caller(from), world.address())
}

#[test]
fn a_service_account_logs_in_by_its_name_and_namespace() {
    let (files, signer) = (Files::new(), Signer::rsa("cluster", 2048));
    let world = alone(&settings(&files, &signer));
    for name in ["shop", "cart-1"] {
        let answer = log_in(&world, 0, &signer.token(&of_pod("prod", name)));
        assert_eq!(answer.status, 200, "{answer:?}");
        let expected = json!({
            "role": "shop",
            "service_account_name": name,
            "service_account_namespace": "prod",
            "service_account_uid": "7f1d",
        });
        assert_eq!(answer.json["auth"]["metadata"], expected);
        let token = answer.json["auth"]["client_token"].as_str().expect("a token");
        assert_eq!(world.ask_as(token, "POST", "/v1/transit/random/8", Value::Null).status, 200);
    }
}

#[test]
fn other_service_accounts_and_other_tokens_are_refused() {
    let (files, signer) = (Files::new(), Signer::p256("cluster"));
    let world = alone(&settings(&files, &signer));
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut claims = of_pod("prod", "shop");
        change(&mut claims);
        signer.token(&claims)
    };
    let of_secret = json!({
        "iss": ISSUER,
        "aud": "polyclave",
        "exp": now() + 600,
        "kubernetes.io/serviceaccount/namespace": "prod",
        "kubernetes.io/serviceaccount/service-account.name": "shop",
        "sub": "system:serviceaccount:prod:shop",
    });
    for (number, (token, part)) in [
        (signer.token(&of_pod("test", "shop")), "its namespace is none of this role"),
        (signer.token(&of_pod("prod", "billing")), "its service account is none of this role"),
        // A colon in a name does not move the border between the two.
        (signer.token(&of_pod("prod:shop", "x")), "no token of a service account"),
        (
            changed(&|claims| claims["sub"] = json!("system:serviceaccount:prod:cart-1")),
            "no token of a service account",
        ),
        (changed(&|claims| claims["sub"] = json!("system:node:shop")), "no token of a service account"),
        (
            changed(&|claims| claims["kubernetes.io"]["namespace"] = json!("test")),
            "no token of a service account",
        ),
        (changed(&|claims| claims["kubernetes.io"] = json!("prod")), "no token of a service account"),
        (signer.token(&of_secret), "no token of a service account"),
        // What every pod has for the API server.
        (changed(&|claims| claims["aud"] = json!([ISSUER])), "other services"),
        (changed(&|claims| claims["exp"] = json!(now() - 3600)), "has expired"),
        (Signer::p256("cluster").token(&of_pod("prod", "shop")), "signature is not one of the issuer"),
    ]
    .into_iter()
    .enumerate()
    {
        let refused = log_in(&world, 1 + number / 10, &token);
        assert_eq!(refused.status, 403, "{part}: {refused:?}");
        let errors = refused.errors();
        assert!(errors.starts_with("permission denied; ") && errors.contains(part), "{part}: {errors}");
    }
}
