//! What nodes refuse, and with what words.

use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey, Reason, Right, Usage};

use crate::common::messages::{cbc, cmac, ctr, ecb, gcm, open, seal, uncbc, unctr, unecb, ungcm};
use crate::common::{PATIENCE, TOGETHER, TestCluster, data, key, name_for};
use polyclave_client::{Client, Error, Padding, Result};
use polyclave_config::NodeDir;

fn reason<T: std::fmt::Debug>(outcome: Result<T>) -> Reason {
    match outcome {
        Err(Error::Refused { refusal, .. }) => refusal.reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// Every use of a key, whose name depends on the mode, and the mode and right.
fn uses(client: &Client, name: &dyn Fn(Mode) -> String) -> Vec<(Mode, Right, Result<Vec<u8>>)> {
    let (key, stream, single) = (&name(Mode::Gcm)[..], &name(Mode::Ctr)[..], &name(Mode::Ecb)[..]);
    let sixteen = data(16);
    let none = Padding::None;
    let old_gcm = data(44);
    vec![
        (Mode::Gcm, Right::Encrypt, seal(client, key, &sixteen)),
        (Mode::Gcm, Right::Encrypt, gcm(client, key, b"", &sixteen)),
        (Mode::Gcm, Right::Decrypt, ungcm(client, key, b"", &old_gcm)),
        (Mode::Ctr, Right::Encrypt, ctr(client, stream, &sixteen).map(|(_, c)| c)),
        (Mode::Ctr, Right::Decrypt, unctr(client, stream, &data(16), &sixteen)),
        (Mode::Cbc, Right::Encrypt, cbc(client, stream, none, &sixteen).map(|(_, c)| c)),
        (Mode::Cbc, Right::Decrypt, uncbc(client, stream, none, &data(16), &sixteen)),
        (Mode::Ecb, Right::Encrypt, ecb(client, single, none, &sixteen)),
        (Mode::Ecb, Right::Decrypt, unecb(client, single, none, &sixteen)),
        (Mode::Cmac, Right::Mac, cmac(client, key, &sixteen)),
    ]
}

#[test]
fn a_key_works_in_its_own_mode_only() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for mode in [Mode::Gcm, Mode::Ctr, Mode::Cbc, Mode::Ecb, Mode::Cmac] {
        let name = format!("only-{mode}");
        client.generate(key(&name, "aes-128", &[mode])).expect("a key");
        for (used, right, outcome) in uses(&client, &|_| name.clone()) {
            match outcome {
                Ok(_) => assert_eq!(used, mode),
                // The message was made up: it is of the mode, but does not authenticate.
                Err(Error::Unauthentic(_)) => {
                    assert_eq!((used, right, mode), (Mode::Gcm, Right::Decrypt, Mode::Gcm))
                }
                refused => {
                    assert_ne!(used, mode);
                    assert_eq!(reason(refused.map(|_| ())), Reason::NotForThis, "{used} of {name}");
                }
            }
        }
    }
}

#[test]
fn a_client_has_the_rights_of_its_rule_and_no_others() {
    let cluster = TestCluster::shared();
    let master = cluster.client();
    for modes in TOGETHER {
        for name in ["pay-1", "other"] {
            master.generate(key(&name_for(name, modes[0]), "aes-128", modes)).expect("a key");
        }
    }
    for right in [Right::Encrypt, Right::Decrypt, Right::Mac, Right::List] {
        let clerk = cluster.client_with(&format!("clerk-{right}"), &[right], &["pay-*"]);
        for (used, needs, outcome) in uses(&clerk, &|mode| name_for("pay-1", mode)) {
            match outcome {
                Ok(_) | Err(Error::Unauthentic(_)) => assert_eq!(needs, right, "{used}"),
                refused => assert_eq!(reason(refused), Reason::Denied, "{used} with the right to {right}"),
            }
        }
        for (used, _, outcome) in uses(&clerk, &|mode| name_for("other", mode)) {
            assert_eq!(reason(outcome), Reason::Denied, "{used}");
        }
        assert_eq!(reason(clerk.generate(key("pay-2", "aes-128", &[Mode::Gcm]))), Reason::Denied);
        assert_eq!(reason(clerk.import(key("pay-2", "aes-128", &[Mode::Gcm]), &[1; 16])), Reason::Denied);
        assert_eq!(reason(clerk.delete("pay-1")), Reason::Denied);
        let listed = clerk.keys().expect("a list").keys.len();
        assert_eq!(listed, if right == Right::List { 3 } else { 0 });
    }
}

#[test]
fn whether_a_key_exists_is_told_to_nobody_without_a_right_to_it() {
    let cluster = TestCluster::shared();
    cluster.client().generate(key("hidden", "aes-128", &[Mode::Gcm])).expect("a key");
    let stranger = cluster.client_with("stranger", &[Right::Encrypt], &["own"]);
    let message =
        |name: &str| seal(&stranger, name, b"x").expect_err("denied").to_string().replace(name, "?");
    assert_eq!(message("hidden"), message("absent"));
    let message = |name: &str| stranger.info(name).expect_err("denied").to_string().replace(name, "?");
    assert_eq!(message("hidden"), message("absent"));
}

#[test]
fn a_revoked_client_is_refused_at_once_on_connections_that_it_has() {
    let cluster = TestCluster::shared();
    cluster.client().generate(key("revoked", "aes-128", &[Mode::Gcm])).expect("a key");
    let clerk = cluster.client_with("leaving", &[Right::Encrypt], &["revoked"]);
    seal(&clerk, "revoked", b"x").expect("sealed");
    cluster.allow("leaving", &[], &[]);
    cluster.wait_until(|| seal(&clerk, "revoked", b"x").is_err());
    assert_eq!(reason(seal(&clerk, "revoked", b"x")), Reason::Denied);
}

#[test]
fn impossible_keys_are_not_made() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let good = |name: &str| key(name, "aes-128", &[Mode::Gcm]);
    let with = |cipher: &str, modes: &[Mode], budget_blocks: u64| NewKey {
        budget_blocks,
        ..key("impossible", cipher, modes)
    };
    let impossible = [
        with("3des-ede3", &[Mode::Gcm], 100),
        with("3des-ede2", &[Mode::Ctr, Mode::Gcm], 100),
        with("3des-ede3", &[Mode::Cbc], (1 << 20) + 1),
        with("aes-128", &[Mode::Gcm], (1 << 32) + 1),
        with("aes-128", &[Mode::Gcm], u64::MAX),
        with("aes-128", &[Mode::Gcm], 0),
        NewKey { usage: vec![Usage::Encrypt], ..with("aes-128", &[], 100) },
        with("aes-128", &[Mode::Gcm, Mode::Gcm], 100),
        with("aes-128", &[Mode::Ctr, Mode::Gcm], 100),
        with("aes-128", &[Mode::Gcm, Mode::Cbc], 100),
        with("aes-128", &[Mode::Cbc, Mode::Cmac], 100),
        with("rot-13", &[Mode::Ecb], 100),
        good(""),
        good("a/b"),
        good("a b"),
        good(&"x".repeat(65)),
    ];
    for new in impossible {
        assert_eq!(reason(client.generate(new.clone())), Reason::Key, "{new:?}");
        assert_eq!(reason(client.import(new.clone(), &[1; 16])), Reason::Key, "{new:?}");
    }
    client.generate(good("taken")).expect("a key");
    assert_eq!(reason(client.generate(good("taken"))), Reason::Key);
    assert_eq!(reason(client.import(good("taken"), &[1; 16])), Reason::Key);
    for len in [0, 15, 17, 32] {
        let wrong = client.import(good("of-wrong-length"), &vec![1; len]);
        assert!(matches!(wrong, Err(Error::Misuse(_))), "{len}: {wrong:?}");
    }
    assert_eq!(reason(seal(&client, "of-wrong-length", b"x")), Reason::NoSuchKey);
    client.generate(good("of-wrong-length")).expect("its name is free");
}

#[test]
fn a_counter_that_would_wrap_is_refused() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("wrap", "aes-128", &[Mode::Ctr])).expect("a key");
    client.generate(key("wrap-3des", "3des-ede3", &[Mode::Ctr])).expect("a key");
    for (name, block) in [("wrap", 16), ("wrap-3des", 8)] {
        let mut counter = vec![0xff; block];
        counter[block - 1] = 0xfe;
        unctr(&client, name, &counter, &data(block)).expect("one block fits");
        assert_eq!(reason(unctr(&client, name, &counter, &data(3 * block))), Reason::Malformed);
        for wrong in [block - 1, block + 1, 0] {
            let counter = vec![0; wrong];
            assert_eq!(reason(unctr(&client, name, &counter, b"x")), Reason::Malformed, "{wrong}");
        }
    }
}

#[test]
fn a_wrong_key_and_bad_padding_are_one_error() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for name in ["right", "wrong"] {
        client.generate(key(name, "aes-128", &[Mode::Cbc])).expect("a key");
    }
    let (initial, mut ciphertext) = cbc(&client, "right", Padding::Pkcs7, &data(20)).expect("encrypted");
    let message = |key: &str, ciphertext: &[u8]| {
        uncbc(&client, key, Padding::Pkcs7, &initial, ciphertext).map_err(|e| e.to_string())
    };
    assert_eq!(message("right", &ciphertext), Ok(data(20)));
    let with_wrong_key = message("wrong", &ciphertext);
    let cut_in_a_block = message("right", &ciphertext[..31]);
    let empty = message("right", &[]);
    // The byte before in the chain is added to the last one: 12 becomes 13 and no longer fits the others.
    ciphertext[15] ^= 1;
    let with_bad_padding = message("right", &ciphertext);
    assert!(with_bad_padding.is_err());
    // A wrong key gives good padding once in 256 times.
    assert!(with_wrong_key == with_bad_padding || with_wrong_key.is_ok());
    assert_eq!((&cut_in_a_block, &empty), (&with_bad_padding, &with_bad_padding));
}

#[test]
fn a_sealed_file_opens_under_its_own_key_only() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (name, cipher) in [("a", "aes-128"), ("b", "aes-128"), ("c", "aes-256")] {
        client.generate(key(name, cipher, &[Mode::Gcm])).expect("a key");
    }
    let sealed = seal(&client, "a", &data(100)).expect("sealed");
    let message = gcm(&client, "a", b"with", &data(100)).expect("encrypted");
    for other in ["b", "c"] {
        assert_eq!(reason(open(&client, other, &sealed)), Reason::NoSuchKey);
        assert!(matches!(ungcm(&client, other, b"with", &message), Err(Error::Unauthentic(_))));
    }
    assert!(matches!(ungcm(&client, "a", b"without", &message), Err(Error::Unauthentic(_))));
    assert_eq!(reason(open(&client, "absent", &sealed)), Reason::NoSuchKey);
    client.delete("a").expect("deleted");
    assert_eq!(reason(open(&client, "a", &sealed)), Reason::NoSuchKey);
    client.generate(key("a", "aes-128", &[Mode::Gcm])).expect("another of the same name");
    assert_eq!(reason(open(&client, "a", &sealed)), Reason::NoSuchKey);
    assert!(matches!(ungcm(&client, "a", b"with", &message), Err(Error::Unauthentic(_))));
}

#[test]
fn a_request_on_a_connection_that_was_given_away_is_refused_as_busy_and_not_lost() {
    let mut cluster = TestCluster::define(3, 1);
    for path in &cluster.local.nodes {
        let mut node = NodeDir::open(path).expect("its directory");
        let mut settings = node.settings().clone();
        settings.limits.connections_per_client = 1;
        node.set_settings(settings).expect("saved");
    }
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let (one, other) = (cluster.client(), cluster.client());
    // One of them makes a key as soon as the other has taken its connections, and the nodes may not have
    // ended these yet. Whenever it comes, it is told why. It pauses as clients do: nodes that are asked again
    // at once have not seen yet that its last connections are closed.
    let make = |client: &Client, name: &str| {
        let until = Instant::now() + PATIENCE;
        loop {
            match client.generate(key(name, "aes-128", &[Mode::Ctr])) {
                Ok(_) => break,
                Err(message) => {
                    let is_busy =
                        matches!(&message, Error::Refused { refusal, .. } if refusal.reason == Reason::Busy);
                    assert!(is_busy && Instant::now() < until, "{name}: {message}");
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    };
    for turn in 0..4 {
        make(&one, &format!("one-{turn}"));
        make(&other, &format!("other-{turn}"));
    }
}
