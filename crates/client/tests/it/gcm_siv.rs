//! GCM-SIV is what RFC 8452 and another program make, under every protocol, and nothing that was altered is
//! decrypted.

use aes_gcm_siv::aead::{Aead, KeyInit, Payload};
use aes_gcm_siv::{Aes128GcmSiv, Aes256GcmSiv};
use polyclave_api::{Mode, NewKey, Reason, Usage};
use polyclave_client::{Client, Error, Result};

use crate::common::active::{fill, start};
use crate::common::from_keys::refused;
use crate::common::vectors::{GCM_SIV, vectors};
use crate::common::{TestCluster, data, key};

/// Around blocks, and the most.
const LENGTHS: [usize; 10] = [0, 1, 15, 16, 17, 31, 32, 33, 1023, 1024];

fn encrypt(client: &Client, key: &str, nonce: Option<&[u8]>, aad: &[u8], message: &[u8]) -> Result<Vec<u8>> {
    client.key(key)?.gcm_siv().nonce(nonce).aad(aad).encrypt(message)
}

fn decrypt(client: &Client, key: &str, aad: &[u8], message: &[u8]) -> Result<Vec<u8>> {
    Ok(client.key(key)?.gcm_siv().aad(aad).decrypt(message)?.to_vec())
}

fn of_another_program(secret: &[u8], nonce: &[u8], aad: &[u8], message: &[u8]) -> Vec<u8> {
    let nonce = <[u8; 12]>::try_from(nonce).expect("12 bytes").into();
    let payload = Payload { msg: message, aad };
    let sealed = match secret.len() {
        16 => Aes128GcmSiv::new_from_slice(secret).expect("a key").encrypt(&nonce, payload),
        _ => Aes256GcmSiv::new_from_slice(secret).expect("a key").encrypt(&nonce, payload),
    };
    sealed.expect("any")
}

fn own_nonces(name: &str, cipher: &str) -> NewKey {
    NewKey { caller_nonces: true, ..key(name, cipher, &[Mode::GcmSiv]) }
}

#[test]
fn vectors_of_gcm_siv_come_out_and_decrypt() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let (mut run, mut keys) = (0, std::collections::HashMap::new());
    for v in vectors(GCM_SIV, "-GCM-SIV") {
        let secret = v.bytes("key");
        let name = keys.entry(secret.clone()).or_insert_with(|| {
            let name = format!("rfc-8452-{run}");
            let cipher = v.text("cipher").trim_end_matches("-GCM-SIV").to_ascii_lowercase();
            client.import(own_nonces(&name, &cipher), &secret).expect("a key");
            name
        });
        let (nonce, aad, plaintext) = (v.bytes("nonce"), v.bytes("ad"), v.bytes("plaintext"));
        let expected = [nonce.clone(), v.bytes("ciphertext"), v.bytes("tag")].concat();
        let message = encrypt(&client, name, Some(&nonce), &aad, &plaintext).expect("encrypted");
        assert_eq!(hex::encode(&message), hex::encode(&expected), "{v:?}");
        assert_eq!(decrypt(&client, name, &aad, &expected).expect("authentic"), plaintext);
        run += 1;
    }
    assert_eq!(run, 46);
}

/// Messages of many lengths, with nonces of the nodes, and one that is changed. Under `aes-256` if there are
/// few.
fn works(cluster: &TestCluster, lengths: &[usize], fill: impl Fn()) {
    let client = cluster.client();
    let (cipher, secret) = if lengths.len() > 4 { ("aes-128", data(16)) } else { ("aes-256", data(32)) };
    fill();
    client.import(key("messages", cipher, &[Mode::GcmSiv]), &secret).expect("a key");
    for (len, aad) in lengths.iter().zip([&b"a"[..], b"", &[7; 40]].into_iter().cycle()) {
        fill();
        let mut message = encrypt(&client, "messages", None, aad, &data(*len)).expect("encrypted");
        let (nonce, sealed) = message.split_at(12);
        assert!(sealed == of_another_program(&secret, nonce, aad, &data(*len)), "{len}");
        fill();
        assert!(decrypt(&client, "messages", aad, &message).expect("authentic") == data(*len), "{len}");
        *message.last_mut().expect("a tag") ^= 1;
        fill();
        let outcome = decrypt(&client, "messages", aad, &message);
        assert!(matches!(outcome, Err(Error::Unauthentic(_))), "{len}: {outcome:?}");
    }
}

#[test]
fn gcm_siv_of_every_length_is_what_another_program_makes() {
    let cluster = TestCluster::shared();
    works(&cluster, &LENGTHS, || ());
    let longest = encrypt(&cluster.client(), "messages", None, &[1; 1024], &data(1024));
    assert_eq!(longest.expect("encrypted").len(), 12 + 1024 + 16);
}

#[test]
fn it_works_under_shamir_active() {
    let cluster = start(64, &[]);
    works(&cluster, &[0, 21], || fill(&cluster));
}

fn works_among(protocol: &str, nodes: usize) {
    let mut cluster = TestCluster::define_with(protocol, nodes, 1);
    cluster.set_stock(64, 2);
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    works(&cluster, &[0, 21], || ());
}

#[test]
fn it_works_under_spdz_tower() {
    works_among("spdz-tower", 2);
}

#[test]
fn it_works_under_spdz_lt() {
    works_among("spdz-lt", 2);
}

#[test]
fn it_works_under_tinytable_linear64() {
    works_among("tinytable-linear64", 2);
}

#[test]
fn it_works_under_replicated_four() {
    works_among("replicated-four", 4);
}

#[test]
fn it_works_under_replicated_active() {
    works_among("replicated-active", 3);
}

#[test]
fn no_altered_message_of_gcm_siv_decrypts() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for name in ["siv-right", "siv-wrong"] {
        client.generate(key(name, "aes-256", &[Mode::GcmSiv])).expect("a key");
    }
    let message = encrypt(&client, "siv-right", None, b"with", &data(20)).expect("encrypted");
    let unauthentic = |key: &str, aad: &[u8], message: &[u8], what: &str| {
        let outcome = decrypt(&client, key, aad, message);
        assert!(matches!(outcome, Err(Error::Unauthentic(_))), "{what}: {outcome:?}");
    };
    for bit in (0..8 * message.len()).step_by(37) {
        let mut changed = message.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        unauthentic("siv-right", b"with", &changed, &format!("bit {bit}"));
    }
    for len in [0, 12, 27, 28, message.len() - 1] {
        unauthentic("siv-right", b"with", &message[..len], &format!("{len} bytes"));
    }
    unauthentic("siv-right", b"without", &message, "other data");
    unauthentic("siv-wrong", b"with", &message, "another key");
    assert_eq!(decrypt(&client, "siv-right", b"with", &message).expect("authentic"), data(20));
}

/// A nonce that comes twice shows which messages are equal, and nothing else. With the nonce of a message one
/// can guess that message, so not every key takes those of its clients.
#[test]
fn a_nonce_of_a_client_may_come_twice_and_is_refused_if_the_key_takes_none() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("siv-no-nonces", "aes-128", &[Mode::GcmSiv])).expect("a key");
    let outcome = encrypt(&client, "siv-no-nonces", Some(&[7; 12]), b"", b"x");
    refused(outcome, Reason::NotForThis, "takes no nonces");
    client.generate(own_nonces("siv-nonces", "aes-128")).expect("a key");
    let under =
        |message: &[u8]| encrypt(&client, "siv-nonces", Some(&[7; 12]), b"", message).expect("encrypted");
    let first = under(&data(30));
    assert_eq!(first, under(&data(30)));
    let other = under(&[9; 30]);
    let keystream = |message: &[u8], text: &[u8]| -> Vec<u8> {
        message[12..].iter().zip(text).map(|(c, p)| c ^ p).collect()
    };
    assert_ne!(keystream(&first, &data(30))[..16], keystream(&other, &[9; 30])[..16]);
}

#[test]
fn a_mode_without_tags_has_no_messages_with_tags() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let key = client.key("any").expect("nothing is asked");
    for mode in Mode::ALL.into_iter().filter(|mode| mode.tag_bytes().is_empty()) {
        assert!(matches!(key.aead(mode), Err(Error::Misuse(_))), "{mode}");
    }
}

#[test]
fn a_key_for_gcm_siv_serves_nothing_else() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let gcm_siv = |cipher: &str| key("siv-not", cipher, &[Mode::GcmSiv]);
    for other in [Mode::Gcm, Mode::Cmac, Mode::Ctr, Mode::Ecb] {
        let new = key("siv-not", "aes-128", &[other, Mode::GcmSiv]);
        refused(client.generate(new), Reason::Key, &format!("gcm-siv undoes {other}"));
    }
    for usage in [Usage::Derive, Usage::Kdf, Usage::Wrap] {
        let new = NewKey { usage: vec![Usage::Encrypt, Usage::Decrypt, usage], ..gcm_siv("aes-128") };
        refused(client.generate(new), Reason::Key, &format!("another key for the usage {usage}"));
    }
    refused(client.generate(gcm_siv("aes-192")), Reason::Key, "keys of aes-128 or aes-256");
    for (what, aad, message) in [("data", 1025, 1), ("messages", 1, 1025)] {
        let outcome = encrypt(&client, "siv-not", None, &vec![1; aad], &vec![1; message]);
        let Err(Error::Misuse(text)) = outcome else { panic!("{what}: {outcome:?}") };
        assert!(text.contains("at most 1024 bytes"), "{text}");
    }
}
