//! Keys are wrapped and unwrapped on shares as other programs do it in the clear, and only by who may, with
//! keys that are for it.

use std::time::{Duration, Instant};

use polyclave_api::{Derivation, Mode, NewKey, Origin, Reason, Right, Usage, Wrapping};

use crate::common::from_keys::{
    COUNTING, DATA, KW, bytes, check_value, code, kek, only_for, refused, wrappable, wrapped_by_oracle,
};
use crate::common::messages::cmac;
use crate::common::{TestCluster, data, key};
use polyclave_client::Error;

#[test]
fn published_vectors_of_key_wrap_come_out_and_are_unwrapped() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (kek_len, len, vector) in KW {
        let (by, name) = (format!("rfc-kek-{kek_len}-{len}"), format!("rfc-{kek_len}-{len}"));
        let cipher = format!("aes-{}", 8 * len);
        client.import(kek(&by, kek_len), &bytes(COUNTING)[..kek_len]).expect("a key");
        client.import(wrappable(&name, &cipher, &[Mode::Cmac]), &bytes(DATA)[..len]).expect("a key");
        assert_eq!(client.wrap(&by, &name, Wrapping::Kw).expect("wrapped"), bytes(vector));
        let back = format!("{name}-back");
        let new = key(&back, &cipher, &[Mode::Cmac]);
        let info = client.unwrap(&by, &bytes(vector), Wrapping::Kw, new).expect("unwrapped");
        assert_eq!(info.origin, Origin::Unwrapped);
        assert_eq!(info.check_value, check_value(&cipher, &bytes(DATA)[..len]));
        assert_eq!(
            cmac(&client, &back, &data(40)).expect("a code"),
            code(&cipher, &bytes(DATA)[..len], &data(40))
        );
    }
}

/// Keys in cells of bytes, half bytes and bits, of whole halves of a block and not.
#[test]
fn keys_of_every_width_are_wrapped_as_others_do_it_and_come_back() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(kek("widths-kek", 16), &[0x4b; 16]).expect("a key");
    for (cipher, len, how) in [
        ("des", 8, Wrapping::Kwp),
        ("present-80", 10, Wrapping::Kwp),
        ("aes-128", 16, Wrapping::Kwp),
        ("skinny-128-128", 16, Wrapping::Kw),
        ("skinny-64-128", 16, Wrapping::Kw),
        ("3des-ede3", 24, Wrapping::Kw),
        ("aes-256", 32, Wrapping::Kwp),
    ] {
        let secret: Vec<u8> = (0..len).map(|i: u8| i.wrapping_mul(73) ^ 0x2d).collect();
        let name = format!("width-{cipher}");
        let made = client.import(wrappable(&name, cipher, &[Mode::Ctr]), &secret).expect("a key");
        let wrapped = client.wrap("widths-kek", &name, how).expect("wrapped");
        assert_eq!(wrapped, wrapped_by_oracle(&[0x4b; 16], &secret, how), "{cipher}");
        let new = wrappable(&format!("{name}-back"), cipher, &[Mode::Ctr]);
        let back = client.unwrap("widths-kek", &wrapped, how, new).expect("unwrapped");
        assert_eq!(back.check_value, made.check_value, "{cipher}");
        // The key that was unwrapped is on shares, too.
        assert_eq!(
            client.wrap("widths-kek", &format!("{name}-back"), how).expect("wrapped"),
            wrapped,
            "{cipher}"
        );
    }
}

#[test]
fn a_generated_key_travels_under_a_generated_key() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(kek("travel-kek", 32)).expect("a key");
    let made = client.generate(wrappable("travels", "aes-128", &[Mode::Cmac])).expect("a key");
    let before = cmac(&client, "travels", &data(100)).expect("a code");
    for how in [Wrapping::Kw, Wrapping::Kwp] {
        let wrapped = client.wrap("travel-kek", "travels", how).expect("wrapped");
        client.delete("travels").expect("deleted");
        let new = wrappable("travels", "aes-128", &[Mode::Cmac]);
        let back = client.unwrap("travel-kek", &wrapped, how, new).expect("unwrapped");
        assert_ne!(back.id, made.id);
        assert_eq!(back.check_value, made.check_value);
        assert_eq!(cmac(&client, "travels", &data(100)).expect("a code"), before);
    }
}

#[test]
fn wrapped_keys_that_are_cut_altered_or_of_another_key_make_no_key() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(kek("forge-kek", 16), &bytes(COUNTING)[..16]).expect("a key");
    client.import(kek("forge-other", 16), &[9; 16]).expect("a key");
    let good = bytes(KW[0].2);
    let new = || key("forged", "aes-128", &[Mode::Gcm]);
    let unwrapped = |by: &str, wrapped: &[u8], how, new| match client.unwrap(by, wrapped, how, new) {
        Err(Error::Unauthentic(message)) => {
            assert!(message.starts_with("the wrapped key does not authenticate"), "{message}");
        }
        other => panic!("{other:?}"),
    };
    for bit in (0..8 * good.len()).step_by(11) {
        let mut altered = good.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        unwrapped("forge-kek", &altered, Wrapping::Kw, new());
    }
    for len in [0, 8, 16, 23, 25, 32] {
        let mut cut = good.clone();
        cut.resize(len, 0);
        unwrapped("forge-kek", &cut, Wrapping::Kw, new());
    }
    unwrapped("forge-other", &good, Wrapping::Kw, new());
    unwrapped("forge-kek", &good, Wrapping::Kwp, new());
    let padded = wrapped_by_oracle(&bytes(COUNTING)[..16], &[5; 10], Wrapping::Kwp);
    unwrapped("forge-kek", &padded, Wrapping::Kwp, new());
    assert!(client.info("forged").is_err(), "no key was made");
    client
        .unwrap("forge-kek", &good, Wrapping::Kw, new())
        .expect("the name is free, and this one authenticates");
}

#[test]
fn keys_are_wrapped_unwrapped_and_derived_only_if_they_are_for_it() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let good = bytes(KW[0].2);
    let ecb = || Derivation::EcbData { data: vec![1; 16] };
    let new = || key("not-made", "aes-128", &[Mode::Gcm]);
    client.generate(only_for("use-wraps", "aes-128", &[Usage::Wrap])).expect("a key");
    client.generate(only_for("use-unwraps", "aes-128", &[Usage::Unwrap])).expect("a key");
    client.generate(only_for("use-derives", "aes-128", &[Usage::Derive])).expect("a key");
    client.generate(key("use-stays", "aes-128", &[Mode::Gcm])).expect("a key");
    client.generate(wrappable("use-leaves", "aes-128", &[Mode::Gcm])).expect("a key");
    client.generate(wrappable("use-short", "des", &[Mode::Ctr])).expect("a key");
    let only = NewKey { usage: vec![Usage::Decrypt], ..key("use-decrypts", "aes-128", &[Mode::Ctr]) };
    client.generate(only).expect("a key");

    client.wrap("use-wraps", "use-leaves", Wrapping::Kw).expect("wrapped");
    refused(
        client.wrap("use-unwraps", "use-leaves", Wrapping::Kw),
        Reason::NotForThis,
        "for the usage unwrap, not wrap",
    );
    refused(client.wrap("use-stays", "use-leaves", Wrapping::Kw), Reason::NotForThis, "not wrap");
    refused(
        client.wrap("use-wraps", "use-stays", Wrapping::Kw),
        Reason::NotForThis,
        "never leaves the nodes",
    );
    refused(
        client.wrap("use-wraps", "use-derives", Wrapping::Kw),
        Reason::NotForThis,
        "never leaves the nodes",
    );
    refused(client.wrap("use-wraps", "use-short", Wrapping::Kw), Reason::Key, "take kwp");
    client.wrap("use-wraps", "use-short", Wrapping::Kwp).expect("wrapped");
    refused(client.unwrap("use-wraps", &good, Wrapping::Kw, new()), Reason::NotForThis, "not unwrap");
    refused(client.derive("use-unwraps", new(), ecb()), Reason::NotForThis, "not derive");
    let too_few = Derivation::EcbData { data: vec![1; 16] };
    let long = key("not-made", "aes-256", &[Mode::Gcm]);
    refused(
        client.derive("use-derives", long, too_few),
        Reason::Key,
        "16 bytes of data give no key of 32 bytes",
    );
    refused(client.generate(only_for("not-made", "3des-ede3", &[Usage::Wrap])), Reason::Key, "keys of AES");
    let wordy = NewKey { attributes: vec![7; 4097], ..new() };
    refused(client.generate(wordy.clone()), Reason::Key, "at most 4096 bytes of attributes, not 4097");
    refused(client.derive("use-derives", wordy, ecb()), Reason::Key, "at most 4096 bytes");

    let encrypted = crate::common::messages::ctr(&client, "use-decrypts", &data(20));
    refused(encrypted, Reason::NotForThis, "for the usage decrypt, not encrypt");
    crate::common::messages::unctr(&client, "use-decrypts", &[1; 16], &data(20)).expect("it is for that");
    refused(cmac(&client, "use-derives", b"x"), Reason::NotForThis, "not for cmac");
    assert!(client.info("not-made").is_err());
}

#[test]
fn rights_to_wrap_unwrap_and_derive_are_rights_of_their_own_for_both_names() {
    let cluster = TestCluster::shared();
    let admin = cluster.client();
    admin.import(kek("own-kek", 16), &bytes(COUNTING)[..16]).expect("a key");
    admin.generate(only_for("own-base", "aes-128", &[Usage::Derive])).expect("a key");
    admin.generate(wrappable("own-key", "aes-128", &[Mode::Gcm])).expect("a key");
    admin.generate(wrappable("other-key", "aes-128", &[Mode::Gcm])).expect("a key");
    let (good, ecb) = (bytes(KW[0].2), || Derivation::EcbData { data: vec![1; 16] });
    let new = |name: &str| key(name, "aes-128", &[Mode::Gcm]);
    let old_rights = [
        Right::Generate,
        Right::Import,
        Right::List,
        Right::Delete,
        Right::Encrypt,
        Right::Decrypt,
        Right::Mac,
    ];
    let without = cluster.client_with("without", &old_rights, &["*"]);
    refused(without.wrap("own-kek", "own-key", Wrapping::Kw), Reason::Denied, "");
    refused(without.unwrap("own-kek", &good, Wrapping::Kw, new("own-a")), Reason::Denied, "");
    refused(without.derive("own-base", new("own-b"), ecb()), Reason::Denied, "");
    let own = cluster.client_with("own", &[Right::Wrap, Right::Unwrap, Right::Derive], &["own-*"]);
    own.wrap("own-kek", "own-key", Wrapping::Kw).expect("it may");
    refused(own.wrap("own-kek", "other-key", Wrapping::Kw), Reason::Denied, "");
    refused(own.unwrap("own-kek", &good, Wrapping::Kw, new("other-c")), Reason::Denied, "");
    own.unwrap("own-kek", &good, Wrapping::Kw, new("own-c")).expect("it may");
    own.derive("own-base", new("own-d"), ecb()).expect("it may");
    refused(own.derive("own-base", new("other-d"), ecb()), Reason::Denied, "");
}

#[test]
fn a_node_that_dies_while_keys_are_unwrapped_costs_no_key_that_was_promised() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.import(kek("kek", 16), &bytes(COUNTING)[..16]).expect("a key");
    let unwrap =
        |name: &str| client.unwrap("kek", &bytes(KW[0].2), Wrapping::Kw, key(name, "aes-128", &[Mode::Cmac]));
    let mut number = 0;
    for round in 0..4_u64 {
        let victim = (round % 3) as usize;
        let node = cluster.nodes[victim].take().expect("it runs");
        let dying = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30 + round * 41));
            drop(node);
        });
        let (mut promised, mut failed) = (Vec::new(), None);
        while failed.is_none() {
            number += 1;
            let name = format!("back-{number}");
            match unwrap(&name) {
                Ok(_) => promised.push(name),
                Err(e) => {
                    assert!(!matches!(e, Error::Unauthentic(_)), "{e}");
                    failed = Some(name);
                }
            }
        }
        dying.join().expect("it stopped");
        cluster.restart(victim);
        cluster.wait_until_ready();
        let expected = code("aes-128", &bytes(DATA)[..16], b"x");
        for name in &promised {
            assert_eq!(cmac(&client, name, b"x").expect("it was promised"), expected);
        }
        let failed = failed.expect("one failed");
        let until = Instant::now() + Duration::from_secs(20);
        while let Err(e) = client.delete(&failed) {
            assert!(e.may_pass() && Instant::now() < until, "{failed}: {e}");
            std::thread::sleep(Duration::from_millis(100));
        }
        unwrap(&failed).unwrap_or_else(|e| panic!("{failed}: {e}"));
        assert_eq!(cmac(&client, &failed, b"x").expect("usable"), expected);
    }
}

/// What was wrapped before a rotation is unwrapped after it, and an old version is still wrapped, if the
/// request names it.
#[test]
fn keys_are_wrapped_unwrapped_and_derived_under_the_version_that_is_named() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let (secret, other) = ([0x4b; 16], [0x2d; 16]);
    let old_kek = client.import(kek("turned-kek", 16), &secret).expect("a key");
    let old = client.import(wrappable("turned", "aes-128", &[Mode::Cmac]), &other).expect("a key");
    let base = only_for("turned-base", "aes-128", &[Usage::Derive]);
    let old_base = client.import(base, &secret).expect("a key");
    for name in ["turned-kek", "turned", "turned-base"] {
        client.rotate(name).expect("rotated");
    }
    let expected = wrapped_by_oracle(&secret, &other, Wrapping::Kw);
    assert_eq!(client.wrap("turned-kek@1", "turned@1", Wrapping::Kw).expect("wrapped"), expected);
    assert_eq!(client.wrap(&old_kek, &old, Wrapping::Kw).expect("wrapped"), expected);
    for (kek, key) in [("turned-kek", "turned@1"), ("turned-kek@1", "turned")] {
        assert_ne!(client.wrap(kek, key, Wrapping::Kw).expect("wrapped"), expected, "{kek} {key}");
    }
    let new = || key("turned-back", "aes-128", &[Mode::Cmac]);
    let under_new = client.unwrap("turned-kek", &expected, Wrapping::Kw, new());
    assert!(matches!(under_new, Err(Error::Unauthentic(_))), "{under_new:?}");
    let back = client.unwrap(&old_kek, &expected, Wrapping::Kw, new()).expect("unwrapped");
    assert_eq!(back.check_value, old.check_value);
    let how = || Derivation::EcbData { data: vec![1; 16] };
    let derive = |base: &str, name: &str| client.derive(base, key(name, "aes-128", &[Mode::Cmac]), how());
    let of_old = client.derive(&old_base, key("turned-derived", "aes-128", &[Mode::Cmac]), how());
    let of_old = of_old.expect("derived").check_value;
    assert_eq!(derive("turned-base@1", "turned-derived-1").expect("derived").check_value, of_old);
    assert_ne!(derive("turned-base", "turned-derived-2").expect("derived").check_value, of_old);
    client.configure("turned-kek", 2, true).expect("configured");
    let refused_now = client.wrap(&old_kek, &old, Wrapping::Kw);
    refused(refused_now, Reason::NotForThis, "its least version is 2");
    let nobody = polyclave_api::KeyInfo { id: [9; 16], ..old_kek };
    refused(client.wrap(&nobody, &old, Wrapping::Kw), Reason::NoSuchKey, "not made under the key");
    for name in ["turned-kek", "turned", "turned-base", "turned-back"] {
        client.delete(name).expect("deleted");
    }
    for n in ["", "-1", "-2"] {
        client.delete(&format!("turned-derived{n}")).expect("deleted");
    }
}
