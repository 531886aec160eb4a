//! Fuzz targets: arbitrary bytes for every parser of this crate, which are those for cards, cluster files,
//! rules, settings, identities, fingerprints, and texts that name parties.

use polyclave_api::{
    Approval, ApprovalSignature, Mode, NewKey, Permission, Right, SealedImport, SealedPart, Statement,
    Subject, VERSION,
};
use polyclave_harness::{fuzz, within_memory};

use crate::card::tests::{card, certificate};
use crate::identity::tests::identity;
use crate::sealed_secret::SealedSecret;
use crate::sealed_secret::tests::sealed;
use crate::*;

/// Keys, headers and values of all these files, and what TOML makes of them.
const WORDS: [&str; 28] = [
    "name = ",
    "address = ",
    "client_address = ",
    "certificates = ",
    "certificate = ",
    "[[node]]\n",
    "[[client]]\n",
    "id = ",
    "protocol = ",
    "threshold = ",
    "rights = ",
    "keys = ",
    "[limits]\n",
    "[stock]\n",
    "[audit]\n",
    "listen = ",
    "\"",
    "'",
    "\"\"\"",
    "[",
    "]",
    "{",
    "}",
    "\n",
    "\\u0000",
    "-1",
    "1e999",
    "9223372036854775807",
];

/// The same of rules.
const RULE_WORDS: [&str; 24] = [
    "[[authority]]\n",
    "[[authority.client]]\n",
    "identity = \"spiffe://",
    "dns:*.",
    "max_hours = ",
    "[[approver]]\n",
    "[[approval]]\n",
    "[[approver_group]]\n",
    "and = [{ need = 1, of = [\"@",
    "need = ",
    "node = ",
    "owners = ",
    "[[group]]\n",
    "[[rule]]\n",
    "clients = ",
    "groups = ",
    "modes = ",
    "deny = true\n",
    "days = ",
    "hours = ",
    "not_after = ",
    "2026-12-31T18:00:00Z",
    "blocks_per_day = ",
    "*",
];

/// The memory that a parser may hold for a file. The TOML parser makes a tree of the file first.
fn room(bytes: &[u8]) -> usize {
    (1 << 20) + 512 * bytes.len()
}

/// A text is an error, or a value that stays the same if it is written and read again.
fn comes_back<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    parse: impl Fn(&str) -> Result<T>,
    to_text: impl Fn(&T) -> String,
) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    within_memory(room(bytes), || {
        if let Ok(value) = parse(text) {
            assert_eq!(parse(&to_text(&value)).expect("it was written here"), value);
        }
    });
}

fn cluster() -> Cluster {
    let mut cards = vec![card("a", 1), card("b", 2), card("c", 3)];
    cards[1].certificates.push(certificate(12));
    Cluster::define("shamir", 1, cards).expect("it fits")
}

#[test]
fn no_card_of_a_node_panics_and_what_is_read_comes_back() {
    let valid = [card("a", 1), card("node-2", 2)].map(|card| card.to_text().into_bytes());
    fuzz!("cards", &WORDS, valid.to_vec(), |bytes: &[u8]| comes_back(bytes, Card::parse, Card::to_text));
}

#[test]
fn no_card_of_a_client_panics_and_what_is_read_comes_back() {
    let card = ClientCard { name: "alice".into(), certificate: certificate(1) };
    let valid = vec![card.to_text().into_bytes()];
    let property = |bytes: &[u8]| comes_back(bytes, ClientCard::parse, ClientCard::to_text);
    fuzz!("client-cards", &WORDS, valid, property);
}

#[test]
fn no_card_of_a_client_that_changes_its_certificate_panics_and_what_is_read_comes_back() {
    let [current, next] = [(); 2].map(|()| succession::tests::identity());
    let card = ClientSuccession::vouch("alice", &current, &next.certificate()).expect("signed");
    let property = |bytes: &[u8]| {
        comes_back(bytes, ClientSuccession::parse, ClientSuccession::to_text);
    };
    fuzz!("client-successions", &WORDS, vec![card.to_text().into_bytes()], property);
}

#[test]
fn no_sealed_secret_panics_and_what_is_read_comes_back() {
    let to_text = |secret: &SealedSecret| text::render("x", secret);
    let valid = vec![to_text(&sealed()).into_bytes()];
    let words = ["version = ", "memory_kib = ", "passes = ", "salt = ", "nonce = ", "sealed = "];
    fuzz!("sealed-secrets", &words, valid, |bytes: &[u8]| comes_back(bytes, SealedSecret::parse, to_text));
}

#[test]
fn no_key_under_pins_panics_and_what_is_read_comes_back() {
    let to_text = |pins: &pins::Pins| text::render("x", pins);
    let valid = vec![pins::tests::text().into_bytes(), pins::tests::VERSION_1.into()];
    let words = [
        "version = ",
        "memory_kib = ",
        "lanes = ",
        "[user]",
        "[security_officer]",
        "salt = ",
        "nonce = ",
        "sealed = ",
    ];
    fuzz!("pins", &words, valid, |bytes: &[u8]| comes_back(bytes, pins::parse, to_text));
}

#[test]
fn no_cluster_file_panics_and_what_is_read_comes_back() {
    let valid = vec![cluster().to_text().into_bytes()];
    fuzz!("clusters", &WORDS, valid, |bytes: &[u8]| {
        comes_back(bytes, Cluster::parse, Cluster::to_text);
        if let Some(cluster) = str::from_utf8(bytes).ok().and_then(|text| Cluster::parse(text).ok()) {
            let fingerprint = cluster.fingerprint();
            fingerprint.check(&fingerprint.to_string()).expect("its own");
            assert!(cluster.cards().iter().all(|card| cluster.party_named(&card.name).is_some()));
        }
    });
}

#[test]
fn no_hosts_file_panics_and_what_is_read_comes_back() {
    let host = |n: u8| Host { address: format!("h{n}.example:7000"), certificate: certificate(n) };
    let hosts = Hosts::new((1..4).map(host).collect()).expect("they fit");
    let valid = vec![hosts.to_text().into_bytes()];
    fuzz!("hosts", &WORDS, valid, |bytes: &[u8]| comes_back(bytes, Hosts::parse, Hosts::to_text));
}

#[test]
fn no_rules_panic_and_what_is_read_comes_back() {
    let mut policy = ClientPolicy::default();
    let alice = ClientCard { name: "alice".into(), certificate: certificate(1) };
    policy.allow(&alice, &[Right::Encrypt, Right::Mac], &["pay-*".into(), "exact".into()]).expect("it fits");
    let plain = policy.to_text().into_bytes();
    policy.join_group("office", "alice").expect("it fits");
    let rule = Rule {
        name: "hours".into(),
        clients: vec!["*".into()],
        groups: vec!["office".into()],
        rights: vec![Right::Encrypt],
        keys: vec!["a*b?".into()],
        modes: vec![Mode::Gcm],
        not_before: Some(Moment::from_seconds(1_800_000_000)),
        not_after: Some(Moment::from_seconds(1_900_000_000)),
        days: vec![Day::Mon, Day::Fri],
        hours: Some("08:00-18:00".parse().expect("hours")),
        requests_per_hour: std::num::NonZeroU64::new(10),
        ..Rule::default()
    };
    policy.set_rule(rule).expect("it fits");
    let vouched = AuthorityClient {
        name: "web".into(),
        identity: "spiffe://corp.example/web/*".into(),
        rights: vec![Right::Encrypt],
        keys: vec!["a*".into()],
    };
    policy.set_authority(Authority::new("corp", "corp.pem", Some(2))).expect("it fits");
    policy.set_authority_client("corp", vouched).expect("it fits");
    policy.set_approver(&ClientCard { name: "ann".into(), certificate: certificate(7) }).expect("it fits");
    policy.join_approvers("custodians", "ann").expect("it fits");
    let approval = ApprovalRule {
        name: "a".into(),
        rights: vec![Right::Delete],
        keys: vec!["*".into()],
        node: vec![NodeOperation::Policy],
        need: 1,
        of: vec!["ann".into(), "@custodians".into()],
        and: vec![Quorum { need: 1, of: vec!["ann".into()] }],
        ..ApprovalRule::default()
    };
    policy.set_approval(approval).expect("it fits");
    let valid = vec![plain, policy.to_text().into_bytes(), ClientPolicy::default().to_text().into_bytes()];
    let words: Vec<&str> = WORDS.into_iter().chain(RULE_WORDS).collect();
    fuzz!("policies", &words, valid, |bytes: &[u8]| {
        comes_back(bytes, ClientPolicy::parse, ClientPolicy::to_text);
        let Some(policy) = str::from_utf8(bytes).ok().and_then(|text| ClientPolicy::parse(text).ok()) else {
            return;
        };
        for (right, mode, key) in [(Right::Encrypt, Some(Mode::Gcm), "aab1"), (Right::Delete, None, "")] {
            let asked = Permission { mode, ..Permission::of(right, key) };
            let now = Moment::from_seconds(1_850_000_000);
            let judged = |c: &ClientRule| policy.judge(&c.certificate, &asked, now).is_allowed();
            assert!(policy.clients().iter().all(|c| policy.allows(&c.certificate, &asked, now) == judged(c)));
            for identity in ["spiffe://corp.example/web/1", "dns:web.corp.example"] {
                let Some(Authority { name, .. }) = policy.authority_of(identity) else { continue };
                let who = Asker::Signed { authority: name, identity };
                assert_eq!(policy.allows(who, &asked, now), policy.judge(who, &asked, now).is_allowed());
            }
        }
    });
}

#[test]
fn no_file_of_an_approval_panics_and_what_is_read_comes_back() {
    let statement = Statement {
        version: VERSION,
        cluster: [1; 16],
        subject: Subject::Policy { digest: [2; 32] },
        keys: Vec::new(),
        not_after: 1_800_000_000,
        nonce: [3; 32],
        purpose: "ticket".into(),
    };
    let mut approval = Approval::new(&statement).expect("it is small");
    let signature = ApprovalSignature { certificate: vec![0x30; 9], signature: vec![7; 64] };
    let unsigned = approval_to_text(&approval).into_bytes();
    approval.signatures = vec![signature.clone(), signature];
    let valid = vec![unsigned, approval_to_text(&approval).into_bytes()];
    let words = ["statement = ", "[[signature]]\n", "certificate = ", "signature = ", "\"", "=", "AAAA"];
    fuzz!("approval-files", &words, valid, |bytes: &[u8]| {
        comes_back(bytes, parse_approval, |(approval, _)| approval_to_text(approval));
    });
}

#[test]
fn no_file_of_a_sealed_key_panics_and_what_is_read_comes_back() {
    let part = SealedPart { encapsulated: [6; 32], ciphertext: vec![7; 32] };
    let sealed = SealedImport {
        version: VERSION,
        cluster: [4; 32],
        new: NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 9),
        check: vec![1; 5],
        not_after: 1_800_000_000,
        nonce: [5; 32],
        parts: vec![part; 3],
    };
    let to_text = |sealed: &SealedImport| sealed_key_to_text(sealed).expect("it is small");
    let valid = vec![to_text(&sealed).into_bytes()];
    fuzz!("sealed-keys", &["sealed_key = ", "\"", "=", "AAAA", "\n"], valid, |bytes: &[u8]| {
        comes_back(bytes, parse_sealed_key, to_text);
    });
    let valid = vec![sealed.encode().expect("it is small")];
    fuzz!("sealed-key-bytes", &["\0", "k", "aes-128"], valid, |bytes: &[u8]| {
        if let Ok(sealed) = SealedImport::decode(bytes) {
            assert_eq!(sealed.encode().expect("it was read"), bytes);
        }
    });
}

#[test]
fn no_settings_of_a_node_panic_and_what_is_read_comes_back() {
    let mut settings = NodeSettings::new("a", "a.example:7001", "a.example:7002");
    let parse = |text: &str| {
        let settings: NodeSettings = text::parse(text)?;
        settings.check().map(|()| settings)
    };
    let to_text = |settings: &NodeSettings| text::render("A node.", settings);
    let short = to_text(&settings).into_bytes();
    settings.http_listen = Some("[::1]:9".into());
    settings.limits.bytes_per_second_per_client = Some(1 << 20);
    settings.audit.keep_files = Some(9);
    settings.audit.syslog = Some("/dev/log".into());
    let valid = vec![short, to_text(&settings).into_bytes()];
    fuzz!("node-settings", &WORDS, valid, |bytes: &[u8]| comes_back(bytes, parse, to_text));
}

#[test]
fn no_settings_of_a_client_panic() {
    let renewed = "\n[renewed]\ncertificate = \"svid.pem\"\nkey = \"svid_key.pem\"\n";
    let plain = "# A client of Polyclave.\n\nname = \"alice\"\n";
    let valid = vec![plain.as_bytes().to_vec(), [plain, renewed].concat().into_bytes()];
    fuzz!("client-settings", &WORDS, valid, |bytes: &[u8]| {
        comes_back(bytes, client::parse_settings, client::settings_to_text);
    });
}

#[test]
fn no_identity_panics_and_what_is_read_comes_back() {
    let valid = vec![identity(7).to_pem().as_bytes().to_vec()];
    let words = [
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "\n",
        "=",
    ];
    fuzz!("identities", &words, valid, |bytes: &[u8]| {
        within_memory(room(bytes), || {
            if let Ok(identity) = StoredIdentity::from_pem(bytes) {
                assert_eq!(StoredIdentity::from_pem(identity.to_pem().as_bytes()), Ok(identity));
            }
        });
    });
}

#[test]
fn no_fingerprint_that_a_person_gives_panics_and_only_the_right_one_is_taken() {
    let fingerprint = cluster().fingerprint();
    let (hex, words) = (fingerprint.to_string(), fingerprint.words());
    let valid = vec![hex.clone().into_bytes(), words.clone().into_bytes()];
    let plain = |text: &str| -> String {
        let text = text.to_ascii_lowercase();
        text.chars().filter(char::is_ascii_alphanumeric).collect()
    };
    fuzz!("fingerprints", &["-", ":", " ", "zebra", "acorn"], valid, |bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        if fingerprint.check(text).is_ok() {
            assert!([plain(&hex), plain(&words)].contains(&plain(text)), "{text}");
        }
    });
}

#[test]
fn no_text_that_names_parties_panics_or_keeps_one() {
    let cluster = cluster();
    let valid = ["party 2 closed the connection", "parties 1, 3, but 7 came", "this party's certificate"];
    let valid = valid.map(|text| text.as_bytes().to_vec()).to_vec();
    let words = ["party ", "parties ", "this ", "1, ", "4", "'", "0", "\u{661}", "18446744073709551615"];
    fuzz!("names", &words, valid, |bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        within_memory(room(bytes), || cluster.in_names(text, "node"));
    });
}
