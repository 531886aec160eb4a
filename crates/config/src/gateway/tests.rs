use std::path::Path;

use polyclave_api::Right;

use super::*;

const TOKEN: &str = "some token";

fn hash() -> String {
    format!("blake3:{}", hex::encode(GatewayToken::hash_of(TOKEN)))
}

fn whole() -> String {
    format!(
        "client = 'c'\nhttp_listen = '127.0.0.1:9102'\n\n[[listener]]\naddress = '127.0.0.1:8200'\n\n[[listener]]\naddress = \
         '0.0.0.0:8200'\ncertificate = 'tls.crt'\nkey = '/etc/tls.key'\n\n[[kms]]\nname = 'cluster'\nsocket = 'kms.sock'\nkey = \
         'kubernetes'\n\n[[token]]\nname = 'billing'\nhash = '{}'\nrights = ['encrypt', 'decrypt']\nkeys = ['billing-*']\n",
        hash()
    )
}

#[test]
fn a_file_is_read_and_its_paths_are_those_of_its_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("gateway.toml");
    std::fs::write(&file, whole()).expect("written");
    assert_eq!(
        (GatewaySettings::file(dir.path()), GatewaySettings::file(&file)),
        (file.clone(), file.clone())
    );
    let read = GatewaySettings::load(&file).expect("read");
    assert_eq!((read.client, read.limits), (dir.path().join("c"), GatewayLimits::default()));
    let tls = (&dir.path().join("tls.crt"), &Path::new("/etc/tls.key").to_path_buf());
    assert_eq!((read.listeners[0].tls(), read.listeners[1].tls()), (None, Some(tls)));
    assert_eq!(read.kms[0].socket, dir.path().join("kms.sock"));
    let token = &read.tokens[0];
    assert_eq!((token.name.as_str(), token.hash), ("billing", GatewayToken::hash_of(TOKEN)));
    let grant = token.grant();
    assert!(grant.allows(Right::Encrypt, "billing-1"));
    assert!(!grant.allows(Right::Encrypt, "payroll") && !grant.allows(Right::List, "billing-1"));
    let again = format!("client = 'c'\n[[listener]]\naddress = '127.0.0.1:1'\n{}", token.to_text());
    assert_eq!(GatewaySettings::parse(&again).expect("as it is written").tokens, read.tokens);
}

#[test]
fn stores_are_on_listeners_that_want_certificates_if_there_are_some() {
    let stores = "[[xks]]\npath = '/kms/xks/v1'\n[[xks.key]]\nid = '1'\nkey = 'orders'\n";
    let wanting =
        whole().replace("certificate = 'tls.crt'", "certificate = 'tls.crt'\nclient_authorities = 'a'");
    for (text, expected) in [
        (whole(), [false, false]),
        ([&whole(), stores].concat(), [true, true]),
        ([&wanting, stores].concat(), [false, true]),
    ] {
        let read = GatewaySettings::parse(&text).expect("read");
        let has = [0, 1].map(|at| read.has_stores(&read.listeners[at]));
        assert_eq!(has, expected);
    }
}

#[test]
fn errors_name_the_line_and_what_to_do() {
    let whole = whole();
    let hash = hash();
    let with = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        whole.replacen(from, to, 1)
    };
    let another =
        format!("{whole}[[token]]\nname = 'other'\nhash = '{hash}'\nrights = ['list']\nkeys = ['*']\n");
    for (text, expected) in [
        (with("127.0.0.1:8200", "192.0.2.1:8200"), vec!["line 4", "a listener", "certificate and a key"]),
        (with("127.0.0.1:8200", "localhost:8200"), vec!["line 4", "no IP address", "127.0.0.1:8200"]),
        (with("127.0.0.1:9102", "0.0.0.0:9102"), vec!["line 2", "http_listen", "in the clear"]),
        (with("key = '/etc/tls.key'\n", ""), vec!["line 7", "a certificate and no key"]),
        (with("certificate = 'tls.crt'\n", ""), vec!["line 7", "a key and no certificate"]),
        (
            with("address = '127.0.0.1:8200'", "address = '127.0.0.1:8200'\nclient_authorities = 'a'"),
            vec!["line 4", "no TLS"],
        ),
        (
            with("certificate = 'tls.crt'\n", "certificate = 'tls.crt'\nclient_names = ['kms']\n"),
            vec!["line 7", "no client_authorities"],
        ),
        (
            with(
                "certificate = 'tls.crt'\n",
                "certificate = 'tls.crt'\nclient_authorities = 'a'\nclient_names = ['k m']\n",
            ),
            vec!["line 7", "\"k m\" in client_names"],
        ),
        (with("'kubernetes'", "'a/b'"), vec!["line 12", "the kms \"cluster\"", "cannot name a key"]),
        (
            with("name = 'billing'", "name = 'cluster'"),
            vec!["line 17", "the token \"cluster\"", "another one"],
        ),
        (with("name = 'billing'", "name = 'a b'"), vec!["line 17", "cannot name"]),
        (with("'encrypt', ", "'wrap', "), vec!["line 17", "no use for the right wrap", "rewrap"]),
        (with("'encrypt', ", "'encypt', "), vec!["line 20", "encypt"]),
        (with("['encrypt', 'decrypt']", "[]"), vec!["line 17", "no rights"]),
        (with("['billing-*']", "[]"), vec!["line 17", "no keys"]),
        (with("billing-*", "a/*"), vec!["line 17", "fits no key's name"]),
        (with(&hash, "blake3:00"), vec!["line 19", "polyclave gateway token"]),
        (with("client = 'c'\n", ""), vec!["client"]),
        (with("client = 'c'\n", "client = 'c'\nclinet = 'c'\n"), vec!["line 2", "clinet"]),
        (another, vec!["line 22", "the token \"other\"", "revoked alone"]),
        (format!("{whole}[limits]\nconnections = 0\n"), vec!["connections", "at least 1"]),
        (format!("{whole}[limits]\nmemory_mib = 8\n"), vec!["memory_mib", "at least 240"]),
        ("client = 'c'\n".into(), vec!["[[listener]]", "--help"]),
    ] {
        let error = GatewaySettings::parse(&text).expect_err("refused").to_string();
        for part in expected {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}

#[test]
fn a_token_that_only_draws_random_bytes_needs_no_keys() {
    let text = format!(
        "client = 'c'\n[[listener]]\naddress = '[::1]:1'\n[[token]]\nname = 'dice'\nhash = '{}'\nrights = ['random']\n",
        hash()
    );
    let settings = GatewaySettings::parse(&text).expect("it fits");
    let grant = settings.tokens[0].grant();
    assert!(grant.allows(Right::Random, "") && !grant.allows(Right::List, "a"));
}

fn with_access_key(more: &str) -> String {
    format!(
        "{}[[access_key]]\nname = 'pos'\nid = 'POLYABCDEFGHIJKLMNOP'\nsecret = 'pos.secret'\n{more}",
        whole()
    )
}

#[test]
fn an_access_key_names_the_file_of_its_secret() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("gateway.toml");
    std::fs::write(&file, with_access_key("rights = ['pay']\nkeys = ['pin-*']\n")).expect("written");
    let read = GatewaySettings::load(&file).expect("read").access_keys.remove(0);
    assert_eq!(read.secret, dir.path().join("pos.secret"));
    assert!(read.allows(Right::Pay, "pin-1") && !read.allows(Right::Issue, "pin-1"));
    assert!(!read.allows(Right::Pay, "cvk"));
    let again = format!("client = 'c'\n[[listener]]\naddress = '127.0.0.1:1'\n{}", read.to_text());
    assert_eq!(
        GatewaySettings::parse(&again).expect("as it is written").access_keys,
        std::slice::from_ref(&read)
    );

    assert!(read.read_secret().is_err(), "it is not there");
    let write = |text: &str, mode: u32| {
        std::fs::write(&read.secret, text).expect("written");
        std::fs::set_permissions(&read.secret, std::fs::Permissions::from_mode(mode)).expect("set");
        read.read_secret().map(|secret| secret.len()).map_err(|e| e.to_string())
    };
    let secret = "s".repeat(40);
    assert_eq!(write(&format!("{secret}\n"), 0o600), Ok(40));
    assert!(write(&secret, 0o644).is_err(), "others can read it");
    for wrong in ["", "short", &"s".repeat(300), &format!("{secret} {secret}")] {
        let message = write(wrong, 0o600).expect_err("refused");
        assert!(message.contains("access-key") && !message.contains("sss"), "{message}");
    }
}

#[test]
fn errors_of_access_keys_name_the_line_and_what_to_do() {
    for (more, parts) in [
        ("rights = ['random']\nkeys = ['*']\n", vec!["line 22", "the access key \"pos\"", "random", "issue"]),
        ("rights = ['pay']\nkeys = []\n", vec!["line 22", "no keys"]),
        ("rights = []\nkeys = ['*']\n", vec!["line 22", "no rights"]),
        ("rights = ['pay']\n", vec!["keys"]),
        (
            "rights = ['pay']\nkeys = ['*']\n[[access_key]]\nname = 'other'\nid = 'POLYABCDEFGHIJKLMNOP'\n\
             secret = 's'\nrights = ['pay']\nkeys = ['*']\n",
            vec!["the access key \"other\"", "this id"],
        ),
        (
            "rights = ['pay']\nkeys = ['*']\n[[access_key]]\nname = 'billing'\nid = 'POLYABCDEFGHIJKLMNOQ'\n\
             secret = 's'\nrights = ['pay']\nkeys = ['*']\n",
            vec!["the access key \"billing\"", "another"],
        ),
        (
            "rights = ['pay']\nkeys = ['*']\n[[access_key]]\nname = 'other'\nid = 'a/b'\nsecret = 's'\n\
             rights = ['pay']\nkeys = ['*']\n",
            vec!["the access key \"other\"", "its id"],
        ),
    ] {
        let error = GatewaySettings::parse(&with_access_key(more)).expect_err("refused").to_string();
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}

fn with_xks(more: &str) -> String {
    format!("{}[[xks]]\n{more}", whole())
}

#[test]
fn an_external_key_store_has_a_path_and_keys() {
    let text = "path = '/eu/kms/xks/v1'\nregions = ['eu-central-1']\n\
                [[xks.key]]\nid = 'a-1._B'\nkey = 'orders'\n\
                [[xks]]\npath = '/kms/xks/v1'\nanswer_ms = 500\nkey = [{ id = 'a', key = 'orders' }]\n";
    let read = GatewaySettings::parse(&with_xks(text)).expect("read").xks;
    let key = |id: &str| GatewayXksKey {
        id: id.into(),
        key: "orders".into(),
        principals: Vec::new(),
        kms_keys: Vec::new(),
    };
    let regions = vec!["eu-central-1".to_owned()];
    let first =
        GatewayXks { path: "/eu/kms/xks/v1".into(), regions, answer_ms: 240, keys: vec![key("a-1._B")] };
    let second =
        GatewayXks { path: "/kms/xks/v1".into(), regions: Vec::new(), answer_ms: 500, keys: vec![key("a")] };
    assert_eq!(read, [first, second]);
}

#[test]
fn a_key_of_an_external_key_store_is_for_the_principals_and_keys_that_it_names() {
    let of = |principals: &[&str], kms_keys: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        GatewayXksKey {
            id: "a".into(),
            key: "orders".into(),
            principals: owned(principals),
            kms_keys: owned(kms_keys),
        }
    };
    let (role, key) = ("arn:aws:iam::1122:role/orders", "arn:aws:kms:eu-central-1:1122:key/1-2");
    assert!(of(&[], &[]).allows(role, key));
    assert!(of(&["arn:aws:iam::1122:role/*"], &[key]).allows(role, key));
    assert!(of(&["other", role], &["arn:aws:kms:*:1122:key/?-2"]).allows(role, key));
    assert!(!of(&["arn:aws:iam::1122:role/*"], &["other"]).allows(role, key), "both have to fit");
    assert!(!of(&["other"], &[]).allows(role, key));
    assert!(!of(&["arn:aws:iam::1122:role"], &[]).allows(role, key), "a beginning is not enough");
    assert!(!of(&["*"], &["?*"]).allows(role, ""));
    assert!(of(&["AWS Internal"], &[]).allows("AWS Internal", key));
    assert!(!of(&["*"], &[]).allows(&"a".repeat(2049), key), "longer than an ARN");
}

#[test]
fn errors_of_external_key_stores_name_the_line_and_what_to_do() {
    let key = "key = [{ id = 'a', key = 'orders' }]\n";
    let with_path = |path: &str| with_xks(&format!("path = '{path}'\n{key}"));
    let long = format!("/{}/kms/xks/v1", "a".repeat(120));
    let mut cases: Vec<(String, Vec<&str>)> =
        ["", "/eu", "kms/xks/v1", "eu/kms/xks/v1", "/eu/kms/xks/v1/", "/e.u/kms/xks/v1", &long]
            .map(|path| (with_path(path), vec!["line 22", "the xks", "/kms/xks/v1"]))
            .into();
    cases.extend([
        (with_path("/kms/xks/v1/kms/xks/v1"), vec!["once"]),
        (with_path("/kms/xks/v1") + "[[xks]]\npath = '/kms/xks/v1'\n" + key, vec!["line 25", "another"]),
        (with_xks("path = '/kms/xks/v1'\nkey = []\n"), vec!["[[xks.key]]"]),
        (with_xks(&format!("path = '/kms/xks/v1'\nanswer_ms = 0\n{key}")), vec!["answer_ms", "at least 1"]),
        (with_path("/kms/xks/v1").replace("id = 'a'", "id = 'a/b'"), vec!["a/b", "no id of a key"]),
        (with_path("/kms/xks/v1").replace("id = 'a'", "id = ''"), vec!["no id of a key"]),
        (with_path("/kms/xks/v1").replace("'orders'", "'or ders'"), vec!["cannot name a key"]),
        (
            with_path("/kms/xks/v1").replace("' }]", "', principals = ['arn:ö'] }]"),
            vec!["no pattern of ARNs"],
        ),
        (with_path("/kms/xks/v1").replace("' }]", "', kms_keys = [''] }]"), vec!["no pattern of ARNs"]),
        (
            with_path("/kms/xks/v1").replace("' }]", "' }, { id = 'a', key = 'b' }]"),
            vec!["two of its keys have the id \"a\""],
        ),
        (format!("client = 'c'\n[[xks]]\npath = '/kms/xks/v1'\n{key}"), vec!["[[listener]]"]),
    ]);
    for (text, parts) in cases {
        let error = GatewaySettings::parse(&text).expect_err("refused").to_string();
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}

fn with_kmip(clients: &str) -> String {
    let paths = "certificate = 'tls.crt'\nkey = 'tls.key'\nclient_authorities = '/etc/callers.pem'\n";
    format!("client = 'c'\n[[kmip]]\naddress = '0.0.0.0:5696'\n{paths}{clients}")
}

#[test]
fn kmip_has_clients_that_their_certificates_name() {
    let of = "name = 'database'\ncertificate_name = 'db.test'\nrights = ['encrypt']\nkeys = ['db-*']\n";
    let one = format!("[[kmip.client]]\n{of}");
    let read = GatewaySettings::parse(&with_kmip(&one)).expect("read").kmip.remove(0);
    let client = read.clients[0].grant();
    assert!(client.allows(Right::Encrypt, "db-1"));
    assert!(!client.allows(Right::Encrypt, "other") && !client.allows(Right::Decrypt, "db-1"));
    let cases = [
        (with_kmip("client = []"), vec!["line 2", "0.0.0.0:5696", "[[kmip.client]]"]),
        (with_kmip(&one.replace("db.test", "*.test")), vec!["no name of a host"]),
        (with_kmip(&one.replace("'encrypt'", "'wrap'")), vec!["database", "no use for the right wrap"]),
        (with_kmip(&one.replace("'db-*'", "")), vec!["database", "no keys"]),
        (with_kmip(&one.replace("'database'", "'data base'")), vec!["cannot name"]),
        (with_kmip(&format!("{one}{}", one.replace("database", "second"))), vec!["two of its clients"]),
        (with_kmip(&format!("{one}{}", one.replace("db.test", "b.test"))), vec!["has this name"]),
        (with_kmip(&one).replace("'0.0.0.0:5696'", "'here'"), vec!["no IP address"]),
        (
            format!(
                "{0}{1}",
                with_kmip(&one),
                with_kmip(&one.replace("database", "b")).replace("client = 'c'", "")
            ),
            vec!["another one has this address"],
        ),
    ];
    for (text, parts) in cases {
        let error = GatewaySettings::parse(&text).expect_err(&text).to_string();
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
