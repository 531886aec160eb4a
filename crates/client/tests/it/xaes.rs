//! XAES-256-GCM is what its specification and another program make, under every protocol, and nothing that
//! was altered is decrypted.

use std::io::Cursor;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use cmac::{Cmac, Mac};
use polyclave_api::{MAX_XAES_BLOCKS, Mode, NewKey, Reason, Usage};
use polyclave_client::{Client, Error, Result};

use crate::common::active::{fill, start};
use crate::common::from_keys::refused;
use crate::common::vectors::{XAES, vectors};
use crate::common::{TestCluster, data, key};

fn encrypt(client: &Client, key: &str, nonce: Option<&[u8]>, aad: &[u8], message: &[u8]) -> Result<Vec<u8>> {
    client.key(key)?.xaes().nonce(nonce).aad(aad).encrypt(message)
}

fn decrypt(client: &Client, key: &str, aad: &[u8], message: &[u8]) -> Result<Vec<u8>> {
    Ok(client.key(key)?.xaes().aad(aad).decrypt(message)?.to_vec())
}

fn of_another_program(secret: &[u8], nonce: &[u8], aad: &[u8], message: &[u8]) -> Vec<u8> {
    let code = |counter: u8| {
        let mut code = Cmac::<aes::Aes256>::new_from_slice(secret).expect("a key");
        code.update(&[0, counter, b'X', 0]);
        code.update(&nonce[..12]);
        code.finalize().into_bytes()
    };
    let derived = [code(1), code(2)].concat();
    let payload = Payload { msg: message, aad };
    let gcm = Aes256Gcm::new_from_slice(&derived).expect("a key");
    gcm.encrypt(&Nonce::try_from(&nonce[12..]).expect("12 bytes"), payload).expect("any")
}

fn own_nonces(name: &str) -> NewKey {
    NewKey { caller_nonces: true, ..key(name, "aes-256", &[Mode::Xaes]) }
}

#[test]
fn vectors_of_xaes_come_out_and_decrypt() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let mut run = 0;
    for v in vectors(XAES, "XAES-256-GCM") {
        let (secret, nonce, aad, plaintext) =
            (v.bytes("key"), v.bytes("nonce"), v.bytes("ad"), v.bytes("plaintext"));
        let name = format!("c2sp-{run}");
        client.import(own_nonces(&name), &secret).expect("a key");
        let expected = [nonce.clone(), v.bytes("ciphertext"), v.bytes("tag")].concat();
        let message = encrypt(&client, &name, Some(&nonce), &aad, &plaintext).expect("encrypted");
        assert_eq!(hex::encode(&message), hex::encode(&expected), "{v:?}");
        assert_eq!(decrypt(&client, &name, &aad, &expected).expect("authentic"), plaintext);
        run += 1;
    }
    assert_eq!(run, 14);
}

/// Messages of some lengths, with nonces of the nodes, and one that is changed.
fn works(cluster: &TestCluster, messages: &[(usize, usize)], fill: impl Fn()) {
    let client = cluster.client();
    let secret = data(32);
    fill();
    client.import(key("extended", "aes-256", &[Mode::Xaes]), &secret).expect("a key");
    for (len, additional) in messages {
        let aad = vec![7; *additional];
        fill();
        let mut message = encrypt(&client, "extended", None, &aad, &data(*len)).expect("encrypted");
        let (nonce, sealed) = message.split_at(24);
        assert!(sealed == of_another_program(&secret, nonce, &aad, &data(*len)), "{len}, {additional}");
        fill();
        assert!(decrypt(&client, "extended", &aad, &message).expect("authentic") == data(*len), "{len}");
        *message.last_mut().expect("a tag") ^= 1;
        fill();
        let outcome = decrypt(&client, "extended", &aad, &message);
        assert!(matches!(outcome, Err(Error::Unauthentic(_))), "{len}, {additional}: {outcome:?}");
    }
}

/// Around blocks; around what is decrypted in one step, and what is hashed without powers; more than a piece;
/// and additional data that are hashed before the message.
#[test]
fn xaes_of_every_length_is_what_another_program_makes() {
    let messages = [(0, 0), (1, 1), (16, 40), (17, 0), (112, 5), (113, 5), (2032, 0), (2033, 0), (4100, 0)];
    let long = [(0, 3000), (40, 3000), (300_000, 20)];
    works(&TestCluster::shared(), &[&messages[..], &long].concat(), || ());
}

#[test]
fn it_works_under_shamir_active() {
    let cluster = start(64, &[]);
    works(&cluster, &[(0, 0), (21, 1)], || fill(&cluster));
}

fn works_among(protocol: &str, nodes: usize) {
    let mut cluster = TestCluster::define_with(protocol, nodes, 1);
    cluster.set_stock(64, 2);
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    works(&cluster, &[(0, 0), (21, 1)], || ());
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
fn no_altered_message_of_xaes_decrypts() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for name in ["xaes-right", "xaes-wrong"] {
        client.generate(key(name, "aes-256", &[Mode::Xaes])).expect("a key");
    }
    let message = encrypt(&client, "xaes-right", None, b"with", &data(20)).expect("encrypted");
    let unauthentic = |key: &str, aad: &[u8], message: &[u8], what: &str| {
        let outcome = decrypt(&client, key, aad, message);
        assert!(matches!(outcome, Err(Error::Unauthentic(_))), "{what}: {outcome:?}");
    };
    for bit in (0..8 * message.len()).step_by(37) {
        let mut changed = message.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        unauthentic("xaes-right", b"with", &changed, &format!("bit {bit}"));
    }
    for len in [0, 24, 39, 40, message.len() - 1] {
        unauthentic("xaes-right", b"with", &message[..len], &format!("{len} bytes"));
    }
    unauthentic("xaes-right", b"without", &message, "other data");
    let cut = client.key("xaes-right").expect("nothing is asked");
    let outcome = cut.xaes().aad(b"with").tag_bytes(12).decrypt(&message[..message.len() - 4]);
    refused(outcome, Reason::Malformed, "xaes has tags of 16 bytes");
    unauthentic("xaes-wrong", b"with", &message, "another key");
    let mut out = Vec::new();
    let handle = client.key("xaes-right").expect("nothing is asked");
    let mut input = Cursor::new(&message);
    handle.xaes().aad(b"with").decrypt_stream(&mut input, &mut out, &mut |_| ()).expect("authentic");
    assert_eq!(out, data(20));
}

/// With the nonce of a message one can decrypt it, so not every key takes those of its clients.
#[test]
fn a_nonce_of_a_client_has_24_bytes_and_is_refused_if_the_key_takes_none() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("xaes-no-nonces", "aes-256", &[Mode::Xaes])).expect("a key");
    let outcome = encrypt(&client, "xaes-no-nonces", Some(&[7; 24]), b"", b"x");
    refused(outcome, Reason::NotForThis, "takes no nonces");
    client.generate(own_nonces("xaes-nonces")).expect("a key");
    let outcome = encrypt(&client, "xaes-nonces", Some(&[7; 12]), b"", b"x");
    assert!(matches!(&outcome, Err(Error::Misuse(text)) if text.contains("24 bytes")), "{outcome:?}");
    let under = |nonce: &[u8]| {
        encrypt(&client, "xaes-nonces", Some(nonce), b"", &data(30)).expect("encrypted")[24..].to_vec()
    };
    let [mut other_key, mut other_nonce] = [[7; 24]; 2];
    (other_key[11], other_nonce[12]) = (8, 8);
    let all = [[7; 24], other_key, other_nonce].map(|nonce| under(&nonce));
    assert_eq!(all[0], under(&[7; 24]));
    assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
}

#[test]
fn a_key_for_xaes_serves_nothing_else_and_has_a_larger_budget() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let xaes = |cipher: &str| key("xaes-not", cipher, &[Mode::Xaes]);
    for other in [Mode::Gcm, Mode::Cmac, Mode::Ctr, Mode::Ecb] {
        let new = key("xaes-not", "aes-256", &[other, Mode::Xaes]);
        refused(client.generate(new), Reason::Key, &format!("xaes undoes {other}"));
    }
    for usage in [Usage::Derive, Usage::Kdf, Usage::Wrap] {
        let new = NewKey { usage: vec![Usage::Encrypt, Usage::Decrypt, usage], ..xaes("aes-256") };
        refused(client.generate(new), Reason::Key, &format!("another key for the usage {usage}"));
    }
    refused(client.generate(xaes("aes-128")), Reason::Key, "keys of aes-256");
    let with_budget = |budget_blocks| NewKey { budget_blocks, ..xaes("aes-256") };
    refused(client.generate(with_budget(MAX_XAES_BLOCKS + 1)), Reason::Key, "the budget of a key");
    client.generate(with_budget(MAX_XAES_BLOCKS)).expect("a key");
    let outcome = client.key("xaes-not").expect("nothing is asked").gcm().encrypt(b"x");
    refused(outcome, Reason::NotForThis, "gcm");
}
