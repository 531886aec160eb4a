//! Rewrapping: what was encrypted under an old key is what other programs decrypt under the new one, nobody
//! who may only rewrap learns or changes it, and nothing is made of what was altered.

use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey, Reason, Right, Usage, VersionState, Wrapping};

use crate::common::from_keys::{kek, only_for, refused, wrapped_by_oracle};
use crate::common::messages::{gcm, open, rewrap_gcm as rewrap, seal, ungcm};
use crate::common::{TestCluster, data, insist, key};
use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use polyclave_client::Error;

const OLD: [u8; 16] = [0x51; 16];
const NEW: [u8; 32] = [0xa7; 32];

/// A message as another program makes it.
fn encrypted(additional: &[u8], message: &[u8]) -> Vec<u8> {
    let (nonce, payload) = ([0x24; 12], Payload { msg: message, aad: additional });
    let cipher = Aes128Gcm::new(&OLD.into());
    [&nonce[..], &cipher.encrypt(&nonce.into(), payload).expect("encrypted")].concat()
}

fn decrypted(additional: &[u8], message: &[u8]) -> Vec<u8> {
    let (nonce, ciphertext) = message.split_at(12);
    let payload = Payload { msg: ciphertext, aad: additional };
    let nonce: [u8; 12] = nonce.try_into().expect("twelve bytes");
    Aes256Gcm::new(&NEW.into()).decrypt(&nonce.into(), payload).expect("it authenticates")
}

#[test]
fn messages_of_all_lengths_are_those_of_another_program_before_and_after() {
    for (protocol, nodes, lengths) in [
        ("shamir", 3, &[0, 1, 15, 16, 17, 31, 32, 33, 500, 1008, 1023, 1024][..]),
        ("shamir-active", 4, &[0, 17, 1024]),
        ("spdz-lt", 2, &[0, 17, 64]),
        ("tinytable-linear64", 2, &[0, 17, 64]),
    ] {
        let mut cluster = TestCluster::define_with(protocol, nodes, 1);
        cluster.set_stock(256, 0);
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let client = cluster.client();
        insist(&|| client.import(key("old", "aes-128", &[Mode::Gcm]), &OLD));
        insist(&|| client.import(key("new", "aes-256", &[Mode::Gcm]), &NEW));
        for (len, additional) in lengths.iter().zip([&b""[..], b"a", &[7; 40]].into_iter().cycle()) {
            let message = encrypted(additional, &data(*len));
            let anew = insist(&|| rewrap(&client, ("old", "new"), additional, &message));
            assert!(decrypted(additional, &anew) == data(*len), "{protocol} {len}");
            // Any bit that is altered is noticed before anything is made of it.
            for at in [0, 12, message.len() - 1] {
                let mut altered = message.clone();
                altered[at] ^= 1;
                let outcome = loop {
                    match rewrap(&client, ("old", "new"), additional, &altered) {
                        Err(e) if e.may_pass() => std::thread::sleep(Duration::from_millis(50)),
                        outcome => break outcome,
                    }
                };
                assert!(matches!(outcome, Err(Error::Unauthentic(_))), "{protocol} {len} {at}: {outcome:?}");
            }
        }
        for how in [Wrapping::Kw, Wrapping::Kwp] {
            insist(&|| client.import(kek("old-kek", 16), &OLD));
            insist(&|| client.import(kek("new-kek", 32), &NEW));
            for len in [16, 24, 32] {
                let secret = data(len);
                let wrapped = wrapped_by_oracle(&OLD, &secret, how);
                let anew = insist(&|| client.rewrap_key(("old-kek", "new-kek"), how, &wrapped));
                assert_eq!(anew, wrapped_by_oracle(&NEW, &secret, how), "{protocol} {len}");
            }
            for name in ["old-kek", "new-kek"] {
                insist(&|| client.delete(name));
            }
        }
    }
}

#[test]
fn what_was_encrypted_under_an_old_version_is_under_the_newest_afterwards() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("rewrapped", "aes-128", &[Mode::Gcm])).expect("a key");
    let sealed = seal(&client, "rewrapped", b"a token").expect("sealed");
    let plain = gcm(&client, "rewrapped", b"with it", b"a value").expect("encrypted");
    let mut bound = Vec::new();
    client
        .seal_bound("rewrapped", Some(b"bound"), &mut &b"a token"[..], &mut bound, &mut |_| ())
        .expect("sealed");
    client.rotate("rewrapped").expect("rotated");
    let keys = ("rewrapped", "rewrapped");
    let anew = client.rewrap_sealed(keys, None, &sealed).expect("rewrapped");
    let anew_bound = client.rewrap_sealed(keys, Some(b"bound"), &bound).expect("rewrapped");
    let plain = rewrap(&client, ("rewrapped@1", "rewrapped"), b"with it", &plain).expect("rewrapped");
    client.delete_version("rewrapped", 1).expect("deleted");
    open(&client, "rewrapped", &sealed).expect_err("its version is gone");
    assert_eq!(open(&client, "rewrapped", &anew).expect("opened"), b"a token");
    let mut opened = Vec::new();
    client
        .open_bound("rewrapped", Some(b"bound"), &mut &anew_bound[..], &mut opened, &mut |_| ())
        .expect("opened");
    assert_eq!(opened, b"a token");
    assert_eq!(ungcm(&client, "rewrapped", b"with it", &plain).expect("decrypted"), b"a value");
    client.delete("rewrapped").expect("deleted");
}

#[test]
fn what_was_altered_cut_or_is_too_long_is_not_rewrapped() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(key("altered-old", "aes-128", &[Mode::Gcm]), &OLD).expect("a key");
    client.generate(key("altered-new", "aes-128", &[Mode::Gcm])).expect("a key");
    let keys = ("altered-old", "altered-new");
    let message = encrypted(b"", &data(100));
    for cut in [12, 13, 50, message.len() - 1] {
        rewrap(&client, keys, b"", &message[..cut]).expect_err("it was cut");
    }
    let other_data = rewrap(&client, keys, b"other", &message);
    assert!(matches!(other_data, Err(Error::Unauthentic(_))));
    let other_key = rewrap(&client, ("altered-new", "altered-new"), b"", &message);
    assert!(matches!(other_key, Err(Error::Unauthentic(_))));
    let text = rewrap(&client, keys, b"", &encrypted(b"", &data(1025))).expect_err("it is too long");
    assert!(text.to_string().contains("at most 1024"), "{text}");
    let mut sealed = seal(&client, "altered-old", &data(100)).expect("sealed");
    for at in [20, 40, 70, sealed.len() - 1] {
        sealed[at] ^= 1;
        client.rewrap_sealed(keys, None, &sealed).expect_err("it was altered");
        sealed[at] ^= 1;
    }
    client.rewrap_sealed(keys, Some(b"bound"), &sealed).expect_err("it is not bound");
    client.rewrap_sealed(keys, None, &sealed).expect("as it was");
    for name in [keys.0, keys.1] {
        client.delete(name).expect("deleted");
    }
    client.import(kek("altered-kek", 16), &OLD).expect("a key");
    let wrapped = wrapped_by_oracle(&OLD, &data(16), Wrapping::Kw);
    for at in 0..wrapped.len() {
        let mut altered = wrapped.clone();
        altered[at] ^= 0x80;
        let outcome = client.rewrap_key(("altered-kek", "altered-kek"), Wrapping::Kw, &altered);
        assert!(matches!(outcome, Err(Error::Unauthentic(_))), "{at}: {outcome:?}");
    }
    let other_way = client.rewrap_key(("altered-kek", "altered-kek"), Wrapping::Kwp, &wrapped);
    assert!(matches!(other_way, Err(Error::Unauthentic(_))));
    for len in [0, 8, 16, 23, 25, 48, 1000] {
        client
            .rewrap_key(("altered-kek", "altered-kek"), Wrapping::Kw, &data(len))
            .expect_err("another length");
    }
    client.delete("altered-kek").expect("deleted");
}

#[test]
fn only_who_may_rewrap_both_keys_does_and_only_keys_and_versions_that_allow_it() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for name in ["from", "to"] {
        client.generate(key(name, "aes-128", &[Mode::Gcm])).expect("a key");
    }
    let message = gcm(&client, "from", b"", b"a value").expect("encrypted");
    let rewrapper = cluster.client_with("rewrapper", &[Right::Rewrap], &["from", "to"]);
    let anew = rewrap(&rewrapper, ("from", "to"), b"", &message).expect("it needs no other right");
    assert_eq!(ungcm(&client, "to", b"", &anew).expect("decrypted"), b"a value");
    refused(ungcm(&rewrapper, "to", b"", &anew), Reason::Denied, "decrypt");
    let all_but = [Right::Encrypt, Right::Decrypt, Right::Wrap, Right::Unwrap, Right::Configure];
    let other = cluster.client_with("no-rewrapper", &all_but, &["*"]);
    refused(rewrap(&other, ("from", "to"), b"", &message), Reason::Denied, "rewrap");
    for only in ["from", "to"] {
        let half = cluster.client_with(&format!("half-{only}"), &[Right::Rewrap], &[only]);
        refused(rewrap(&half, ("from", "to"), b"", &message), Reason::Denied, "rewrap");
    }

    let wrong = [
        only_for("not-kek", "aes-128", &[Usage::Wrap, Usage::Unwrap]),
        key("not-ctr", "aes-128", &[Mode::Ctr]),
        NewKey { usage: vec![Usage::Decrypt], ..key("not-decrypts", "aes-128", &[Mode::Gcm]) },
    ];
    for (new, why) in wrong.into_iter().zip(["gcm", "gcm", "not encrypt"]) {
        let name = new.name.clone();
        client.generate(new).expect("a key");
        refused(rewrap(&client, ("from", &name), b"", &message), Reason::NotForThis, why);
        client.delete(&name).expect("deleted");
    }
    refused(client.rewrap_key(("from", "to"), Wrapping::Kw, &[1; 24]), Reason::NotForThis, "not unwrap");

    client.retire("from", 1, VersionState::Deactivated).expect("deactivated");
    rewrap(&rewrapper, ("from", "to"), b"", &message).expect("a deactivated version only processes");
    refused(rewrap(&client, ("to", "from"), b"", &anew), Reason::NotForThis, "is deactivated");
    client.retire("from", 1, VersionState::Compromised).expect("compromised");
    refused(rewrap(&rewrapper, ("from", "to"), b"", &message), Reason::NotForThis, "is compromised");
    rewrap(&client, ("from", "to"), b"", &message).expect("with the right configure");
    refused(rewrap(&client, ("from@2", "to"), b"", &message).map_err(as_key), Reason::Key, "does not exist");
    for name in ["from", "to"] {
        client.delete(name).expect("deleted");
    }
}

/// A version that is not there is an error of the client itself.
fn as_key(e: Error) -> Error {
    match e {
        Error::Misuse(message) => {
            Error::Refused { node: String::new(), refusal: polyclave_api::Refusal::new(Reason::Key, message) }
        }
        e => e,
    }
}

#[test]
fn both_keys_pay_for_it() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (name, budget_blocks) in [("pays-little", 20), ("pays-much", 1 << 20)] {
        let new = NewKey { budget_blocks, ..key(name, "aes-128", &[Mode::Gcm]) };
        client.import(new, &OLD).expect("a key");
    }
    let message = encrypted(b"", &[7; 16]);
    for keys in [("pays-little", "pays-much"), ("pays-much", "pays-little")] {
        let until = Instant::now() + Duration::from_secs(60);
        let spent = loop {
            assert!(Instant::now() < until);
            if let Err(e) = rewrap(&client, keys, b"", &message) {
                break e;
            }
        };
        assert!(spent.to_string().contains("budget"), "{spent}");
    }
    for name in ["pays-little", "pays-much"] {
        client.delete(name).expect("deleted");
    }
}
