use std::path::Path;

use polyclave_api::Right;

use crate::{GatewayLoginRole, GatewaySettings, KeysPlace, LoginKind, SignatureAlgorithm};

const HEAD: &str = "client = 'c'\n[[listener]]\naddress = '127.0.0.1:1'\n";
const LOGIN: &str = "[[login]]\npath = 'jwt'\nkind = 'jwt'\nissuer = 'https://issuer.example/a'\ndiscovery = true\nauthorities = 'ca.pem'\n";
const ROLE: &str = "[[login.role]]\nname = 'ci'\naudiences = ['polyclave']\nsubjects = ['project:*']\nrights = ['encrypt']\nkeys = ['ci-*']\n";

fn read(text: &str) -> Result<GatewaySettings, String> {
    GatewaySettings::parse(text).map_err(|e| e.to_string())
}

#[test]
fn a_login_is_read_with_its_roles_and_its_paths_are_those_of_the_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("gateway.toml");
    let more = "[[login.role]]\nname = 'pods'\naudiences = ['a', 'b']\nclaims = { groups = ['x', 'y*'], '/a/b' = ['1'] }\nsingle_use = \
                true\nlife_seconds = 60\nmost_life_seconds = 60\nrights = ['random']\n";
    let kubernetes = "[[login]]\npath = 'k8s/eu'\nkind = 'kubernetes'\nissuer = 'https://kubernetes.default.svc'\nkeys_file = 'k.jwks'\n\
                      algorithms = ['RS256', 'EdDSA']\nleeway_seconds = 0\ndefault_role = 'shop'\n[[login.role]]\nname = 'shop'\naudiences = \
                      ['polyclave']\nservice_accounts = ['shop']\nnamespaces = ['*']\nrights = ['random']\n";
    std::fs::write(&file, [HEAD, LOGIN, ROLE, more, kubernetes].concat()).expect("written");
    let logins = GatewaySettings::load(&file).expect("read").logins;
    let authorities = dir.path().join("ca.pem");
    let place = KeysPlace::Discovery { issuer: "https://issuer.example/a", authorities: &authorities };
    assert_eq!((logins[0].kind, logins[0].keys_place()), (LoginKind::Jwt, Some(place)));
    assert_eq!((logins[0].leeway_seconds, logins[0].algorithms.len()), (30, 9));
    let ci = logins[0].role("ci").expect("a role");
    assert_eq!((ci.life_seconds, ci.most_life_seconds, ci.single_use), (900, 28_800, false));
    assert!(ci.fits_subject("project:orders") && !ci.fits_subject("a project:orders"));
    assert!(ci.grant().allows(Right::Encrypt, "ci-1") && !ci.grant().allows(Right::Decrypt, "ci-1"));
    let pods = &logins[0].roles[1];
    assert!(pods.fits_subject("anybody") && pods.single_use);
    assert!(GatewayLoginRole::fits_claim(&pods.claims["groups"], "yes"));
    let of_file = dir.path().join("k.jwks");
    assert_eq!(logins[1].keys_place(), Some(KeysPlace::File(&of_file)));
    assert_eq!(logins[1].algorithms, [SignatureAlgorithm::Rs256, SignatureAlgorithm::EdDsa]);
    let shop = logins[1].role("shop").expect("a role");
    assert!(shop.fits_service_account("shop") && !shop.fits_service_account("shop2"));
    assert!(shop.fits_namespace("prod"));
    let url = GatewaySettings::parse(
        &[HEAD, &LOGIN.replace("discovery = true", "keys_url = 'https://a/k'"), ROLE].concat(),
    );
    let url = url.expect("read").logins.remove(0);
    assert_eq!(
        url.keys_place(),
        Some(KeysPlace::Url { url: "https://a/k", authorities: Path::new("ca.pem") })
    );
}

#[test]
fn only_what_a_program_may_do_and_for_how_long_is_not_part_of_whom_a_role_lets_in() {
    let whole = [HEAD, LOGIN, ROLE].concat();
    let admission = |text: &str| {
        let login = read(text).expect("read").logins.remove(0);
        login.admission(&login.roles[0])
    };
    let before = admission(&whole);
    let same = whole.replace("'encrypt'", "'decrypt'").replace("ci-*", "*") + "life_seconds = 5\n";
    assert_eq!(admission(&same), before);
    for (from, to) in [
        ("'polyclave'", "'other'"),
        ("project:*", "*"),
        ("discovery = true", "discovery = true\nleeway_seconds = 31"),
        ("issuer.example/a", "issuer.example/b"),
    ] {
        assert_ne!(admission(&whole.replace(from, to)), before, "{to}");
    }
}

#[test]
fn errors_of_logins_name_the_line_and_what_to_do() {
    let whole = [HEAD, LOGIN, ROLE].concat();
    let with = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        whole.replacen(from, to, 1)
    };
    let kubernetes =
        |more: &str| with("kind = 'jwt'", "kind = 'kubernetes'").replace("subjects = ['project:*']", more);
    for (text, parts) in [
        (with("path = 'jwt'", "path = 'a b'"), vec!["line 4", "the login \"a b\"", "team/jwt"]),
        (with("path = 'jwt'", "path = '/jwt'"), vec!["team/jwt"]),
        (with("path = 'jwt'", "path = 'token/x'"), vec!["auth/token"]),
        (with("kind = 'jwt'", "kind = 'oidc'"), vec!["line 6", "unknown variant"]),
        (with("discovery = true\n", ""), vec!["the login \"jwt\"", "keys_file, or keys_url"]),
        (with("discovery = true", "discovery = true\nkeys_file = 'k'"), vec!["in one place"]),
        (
            with("discovery = true", "keys_url = 'http://a/k'"),
            vec!["keys_url", "https://issuer.example/keys"],
        ),
        (with("discovery = true", "keys_url = 'https://u@a/k'"), vec!["keys_url"]),
        (with("discovery = true", "keys_url = 'https:///k'"), vec!["keys_url"]),
        (with("https://issuer.example/a", "issuer.example"), vec!["issuer has to be an address"]),
        (with("https://issuer.example/a", ""), vec!["the claim `iss`"]),
        (with("https://issuer.example/a", "https://a/?b"), vec!["keys_url"]),
        (with("authorities = 'ca.pem'\n", ""), vec!["ca-certificates.crt"]),
        (with("discovery = true", "keys_file = 'k'"), vec!["authorities is of no use"]),
        (with("discovery = true", "discovery = true\nalgorithms = []"), vec!["algorithms is empty"]),
        (with("discovery = true", "discovery = true\nalgorithms = ['HS256']"), vec!["line 9", "HS256"]),
        (with("discovery = true", "discovery = true\nalgorithms = ['none']"), vec!["unknown variant `none`"]),
        (with("discovery = true", "discovery = true\nleeway_seconds = 301"), vec!["300 at most", "NTP"]),
        (with("discovery = true", "discovery = true\ndefault_role = 'cd'"), vec!["default_role is \"cd\""]),
        (with("'polyclave'", ""), vec!["the role \"ci\"", "no audiences"]),
        (with("'polyclave'", "''"), vec!["no audiences"]),
        (with("subjects = ['project:*']\n", ""), vec!["neither subjects nor claims", "subjects = [\"*\"]"]),
        (with("'project:*'", "''"), vec!["a list of it"]),
        (with("subjects = ['project:*']", "claims = { a = [] }"), vec!["each of its claims"]),
        (with("subjects = ['project:*']", "namespaces = ['a']"), vec!["for kind = \"kubernetes\""]),
        (with("rights = ['encrypt']", "rights = ['wrap']"), vec!["no use for the right wrap"]),
        (with("keys = ['ci-*']\n", ""), vec!["no keys"]),
        (with("keys = ['ci-*']", "keys = ['*']\nlife_seconds = 0"), vec!["life_seconds is 0"]),
        (
            with("keys = ['ci-*']", "keys = ['*']\nlife_seconds = 60\nmost_life_seconds = 59"),
            vec!["at least the first"],
        ),
        (with("keys = ['ci-*']", "keys = ['*']\nmost_life_seconds = 99999999"), vec!["604800"]),
        (kubernetes("subjects = ['a']"), vec!["for kind = \"jwt\""]),
        (kubernetes("service_accounts = ['a']"), vec!["service_accounts and namespaces"]),
        (kubernetes("service_accounts = ['*']\nnamespaces = ['*']"), vec!["both \"*\""]),
        (kubernetes("service_accounts = ['a', '**']\nnamespaces = ['?*']"), vec!["both \"*\""]),
        ([HEAD, LOGIN, "role = []\n"].concat(), vec!["[[login.role]]"]),
        ([&whole[..], LOGIN, &ROLE.replace("'ci'", "'cd'")].concat(), vec!["line 16", "another [[login]]"]),
        ([&whole[..], ROLE].concat(), vec!["another token, role of a login"]),
        (
            [&whole[..], &LOGIN.replace("'jwt'\nkind", "'oidc'\nkind"), ROLE].concat(),
            vec!["another token, role of a login"],
        ),
        (
            [&whole[..], "[limits]\ntokens_of_logins = 0\n"].concat(),
            vec!["tokens_of_logins under [limits] is 0"],
        ),
    ] {
        let error = read(&text).expect_err(&text);
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    let kms = "client = 'c'\n[[kms]]\nname = 'k'\nsocket = 's'\nkey = 'k'\n";
    assert!(read(&[kms, LOGIN, ROLE].concat()).expect_err("refused").contains("[[listener]]"));
}
