//! Codes of HMAC are those of RFC 4231 and of another program, of messages of every length, alone and
//! together, under every protocol.

use hmac::{Hmac, KeyInit, Mac};
use polyclave_api::{
    End, MAX_CHAINED, Mode, NewKey, Reason, Reply, Request, Right, Step, Usage, Use, Wrapping, operations,
};
use polyclave_cipher::hmac::{Sha2, code_bytes, name};
use polyclave_client::{Client, Error, Result, hmac_check_value, hmac_key_block};
use polyclave_node::Cheat;
use sha2::{Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

use crate::common::active::{fill, start, start_cheating};
use crate::common::from_keys::{kek, refused, wrappable};
use crate::common::raw::{Raw, request, use_of};
use crate::common::vectors::{HMAC, vectors};
use crate::common::{TestCluster, data, insist, key};

/// What keys for HMAC-SHA-256 name as their cipher.
const NAME: &str = name(Sha2::Sha256);

/// The bytes of a block of SHA-256.
const BLOCK: usize = Sha2::Sha256.block_bytes();

fn hmac_key(key: &str) -> NewKey {
    key_with(Sha2::Sha256, key)
}

fn key_with(hash: Sha2, name_of_key: &str) -> NewKey {
    key(name_of_key, name(hash), &[Mode::Hmac])
}

fn code(client: &Client, name: &str, message: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    Ok(client.key(name)?.hmac(&[message], 32)?.remove(0))
}

pub(crate) fn of_another_program(secret: &[u8], message: &[u8]) -> Vec<u8> {
    with_hash(Sha2::Sha256, secret, message)
}

pub(crate) fn with_hash(hash: Sha2, secret: &[u8], message: &[u8]) -> Vec<u8> {
    match hash {
        Sha2::Sha256 => code_of(Hmac::<Sha256>::new_from_slice(secret).expect("any length"), message),
        Sha2::Sha384 => code_of(Hmac::<Sha384>::new_from_slice(secret).expect("any length"), message),
        Sha2::Sha512 => code_of(Hmac::<Sha512>::new_from_slice(secret).expect("any length"), message),
    }
}

fn code_of(mut mac: impl Mac, message: &[u8]) -> Vec<u8> {
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

#[test]
fn published_vectors_of_hmac_come_out() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let of_file = |hash| vectors(HMAC, &name(hash).to_uppercase()).into_iter().map(move |v| (hash, v));
    let all: Vec<_> = Sha2::ALL.into_iter().flat_map(of_file).collect();
    for (i, (hash, v)) in all.iter().enumerate() {
        let (mut secret, expected) = (v.bytes("key"), v.bytes("ciphertext"));
        if secret.len() < 16 {
            // Zeros behind a key that is no longer than a block are no other key.
            secret.resize(hash.block_bytes(), 0);
        }
        let name = format!("hmac-vector-{i}");
        client.import(key_with(*hash, &name), &secret).expect("a key");
        let handle = client.key(&name).expect("nothing is asked");
        let found = handle.hmac(&[&v.bytes("plaintext")], expected.len()).expect("a code");
        assert_eq!(found[0][..], expected[..], "{v:?}");
    }
    assert_eq!(all.len(), 12 + 9 + 9);
}

/// Around the ends of blocks, and several together, in any order.
#[test]
fn codes_of_every_length_are_those_of_another_program() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(hmac_key("hmac-lengths"), &data(40)).expect("a key");
    let lengths = [0, 1, 55, 56, 63, 64, 65, 120, 1, 200, 64, 0];
    let messages: Vec<Vec<u8>> =
        lengths.iter().enumerate().map(|(i, len)| data(len + i)[i..].to_vec()).collect();
    let all: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let handle = client.key("hmac-lengths").expect("nothing is asked");
    let codes = handle.hmac(&all, 32).expect("codes");
    for (message, code) in all.iter().zip(&codes) {
        assert_eq!(code[..], of_another_program(&data(40), message), "{}", message.len());
    }
    let cut = handle.hmac(&all[..2], 16).expect("codes");
    assert!(cut.iter().zip(&codes).all(|(cut, code)| cut[..] == code[..16]));
    assert!(handle.hmac(&[], 32).expect("nothing").is_empty());
    let streamed = handle.mac_stream(&mut &messages[9][..], None, &mut |_| ()).expect("a code");
    assert_eq!(streamed, codes[9]);
}

/// Blocks have 128 bytes. A last one has room for 111 of the message.
#[test]
fn codes_with_words_of_64_bits_are_those_of_another_program() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let messages = [0, 112, 127, 128, 0].map(data);
    let all: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    for (hash, bytes) in [(Sha2::Sha384, 100), (Sha2::Sha512, 129)] {
        let name = format!("{}-lengths", name(hash));
        let made = client.import(key_with(hash, &name), &data(bytes)).expect("a key");
        let zeros = vec![0; hash.hash_bytes()];
        assert_eq!(made.check_value[..], with_hash(hash, &data(bytes), &zeros)[..5]);
        let block = hmac_key_block(hash, &data(bytes)).expect("a key");
        assert_eq!(hmac_check_value(hash, &block), made.check_value);
        let handle = client.key(&name).expect("nothing is asked");
        let whole = *code_bytes(hash).end();
        let codes = handle.hmac(&all, whole).expect("codes");
        for (message, code) in all.iter().zip(&codes) {
            assert_eq!(code[..], with_hash(hash, &data(bytes), message), "{hash:?} {}", message.len());
        }
        let cut = handle.hmac(&all[..1], 17).expect("a code");
        assert_eq!(cut[0][..], codes[0][..17]);
        let streamed = handle.mac_stream(&mut &messages[1][..], None, &mut |_| ()).expect("a code");
        assert_eq!(streamed, codes[1]);
        for wrong in [15, whole + 1] {
            let told = handle.hmac(&all[..1], wrong).expect_err("refused").to_string();
            assert!(told.contains(&format!("16 to {whole} bytes")), "{told}");
        }
    }
    client.generate(key("hmac-none", "aes-128", &[Mode::Cmac])).expect("a key");
    let other = client.key("hmac-none").and_then(|key| key.hmac(&all, 32)).expect_err("refused");
    assert!(other.to_string().contains("aes-128, not for hmac"), "{other}");
}

#[test]
fn codes_of_many_messages_are_those_of_another_program() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(hmac_key("hmac-many"), &data(64)).expect("a key");
    let messages: Vec<[u8; 4]> = (0..600u32).map(u32::to_be_bytes).collect();
    let all: Vec<&[u8]> = messages.iter().map(|message| &message[..]).collect();
    let codes = client.key("hmac-many").and_then(|key| key.hmac(&all, 20)).expect("codes");
    for (message, code) in all.iter().zip(&codes) {
        assert_eq!(code[..], of_another_program(&data(64), message)[..20]);
    }
}

#[test]
fn a_key_for_hmac_serves_nothing_else_and_pays_for_compressions() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for other in [Mode::Gcm, Mode::Cmac, Mode::Ecb] {
        refused(client.generate(key("hmac-not", NAME, &[other])), Reason::Key, "for the mode hmac alone");
        let mut both = [other, Mode::Hmac];
        both.sort();
        refused(client.generate(key("hmac-not", NAME, &both)), Reason::Key, "for the mode hmac alone");
    }
    refused(client.generate(key("hmac-not", "aes-128", &[Mode::Hmac])), Reason::Key, "keys of hmac-sha-256");
    for usage in [Usage::Derive, Usage::Kdf, Usage::Wrap, Usage::Encrypt] {
        let mut both = vec![usage, Usage::Mac];
        both.sort();
        refused(client.generate(NewKey { usage: both, ..hmac_key("hmac-not") }), Reason::Key, "");
    }
    for bytes in [15, 257] {
        assert!(matches!(client.import(hmac_key("hmac-not"), &data(bytes)), Err(Error::Misuse(_))));
    }
    client.generate(NewKey { budget_blocks: 6, ..hmac_key("hmac-budget") }).expect("a key");
    let made = code(&client, "hmac-budget", &data(55)).expect("two compressions");
    assert_eq!(code(&client, "hmac-budget", &data(55)).expect("two more"), made);
    refused(code(&client, "hmac-budget", &data(56)), Reason::Spent, "");
    let handle = client.key("hmac-budget").expect("nothing is asked");
    refused(handle.cmac(&data(32)), Reason::NotForThis, "");
    assert!(matches!(handle.hmac(&[&data(MAX_CHAINED + 1)], 32), Err(Error::Misuse(_))));
    assert!(matches!(handle.hmac(&[&[1]], 15), Err(Error::Misuse(_))));
    let other = cluster.client_with("hmac-other", &[Right::Encrypt], &["hmac-budget"]);
    refused(code(&other, "hmac-budget", b"x"), Reason::Denied, "");
}

/// Two messages of 65 bytes are two steps of two blocks.
#[test]
fn blocks_out_of_order_and_lengths_that_are_not_allowed_are_refused_by_all() {
    let cluster = TestCluster::shared();
    cluster.client().generate(hmac_key("hmac-raw")).expect("a key");
    cluster.client().generate(key_with(Sha2::Sha384, "hmac-raw-384")).expect("a key");
    let asked_of = |key, bytes, messages, code_bytes| {
        request(use_of(key, Use::Hmac(operations::Hmac { bytes, messages, code_bytes })), None)
    };
    let asked = |bytes, messages, code_bytes| asked_of("hmac-raw", bytes, messages, code_bytes);
    let masked = |len, next| Step::Masked { data: data(len), next, end: End::No };
    let refused = |what: &str, request: Request, steps: &[Step]| {
        let mut raw = Raw::call(&cluster);
        raw.tell_all(&request);
        steps.iter().for_each(|step| raw.tell_all(step));
        for ending in raw.endings() {
            assert!(ending.message().starts_with("Malformed"), "{what}: {ending:?}");
            // On a busy machine nodes also say that they are working.
            let answers = ending.replies.iter().filter(|reply| !matches!(reply, Reply::Working { .. }));
            assert_eq!(answers.count(), steps.len(), "{what}: {ending:?}");
        }
    };
    let two = || asked(65, 2, 32);
    let first = || masked(128, 128);
    refused("a third block", two(), &[first(), masked(128, 0), masked(128, 0)]);
    refused("a mask behind the last block", two(), &[first(), first()]);
    refused("no mask for the next block", two(), &[masked(128, 0)]);
    refused("a shorter mask for the next block", two(), &[masked(128, 64)]);
    refused("a block of one message", two(), &[masked(64, 128)]);
    refused("blocks of three messages", two(), &[masked(192, 128)]);
    refused("a block of SHA-256", asked_of("hmac-raw-384", 65, 2, 32), &[masked(128, 0)]);
    refused("an end", two(), &[Step::Masked { data: data(128), next: 128, end: End::Whole }]);
    refused("a tag", two(), &[Step::Tag]);
    for (what, request) in [
        ("a long message", asked(MAX_CHAINED as u32 + 1, 1, 32)),
        ("no message", asked(1, 0, 32)),
        ("too many messages", asked(1, 2049, 32)),
        ("very many messages", asked(1, u32::MAX, 32)),
        ("a short code", asked(1, 1, 15)),
        ("a long code", asked(1, 1, 33)),
        ("a code of SHA-384 that is too long", asked_of("hmac-raw-384", 1, 1, 49)),
    ] {
        refused(what, request, &[]);
    }
}

/// A generated key is not assembled; its codes are the same at all times, and another key has others.
fn works(cluster: &TestCluster, between: impl Fn()) {
    let client = cluster.client();
    insist(&|| client.import(hmac_key("imported"), &data(100)));
    between();
    for len in [20, 64] {
        let found = insist(&|| code(&client, "imported", &data(len)));
        assert_eq!(found[..], of_another_program(&data(100), &data(len)), "{len}");
        between();
    }
    insist(&|| client.generate(hmac_key("generated")));
    between();
    let [first, again] = [(); 2].map(|()| {
        let found = insist(&|| code(&client, "generated", b"a message"));
        between();
        found
    });
    assert_eq!(first, again);
    assert_ne!(first[..], of_another_program(&data(100), b"a message"));
    insist(&|| client.import(key_with(Sha2::Sha512, "longer"), &data(200)));
    between();
    let found = insist(&|| client.key("longer").and_then(|key| key.hmac(&[b"a message"], 64)));
    assert_eq!(found[0][..], with_hash(Sha2::Sha512, &data(200), b"a message"));
}

fn works_among(protocol: &str, nodes: usize) {
    let mut cluster = TestCluster::define_with(protocol, nodes, 1);
    cluster.set_stock(1024, 64);
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    works(&cluster, || ());
}

#[test]
fn it_works_under_shamir_active() {
    // Enough triples for a key of SHA-512.
    let cluster = start(1408, &[]);
    works(&cluster, || fill(&cluster));
}

#[test]
fn nodes_with_little_material_say_how_much_a_key_takes() {
    let cluster = start(64, &[]);
    let made = cluster.client().generate(key_with(Sha2::Sha512, "hmac-dry"));
    refused(made, Reason::OutOfMaterial, "make a key of hmac-sha-512 takes material for 214512 ANDs in all");
}

#[test]
fn it_works_under_replicated() {
    works_among("replicated", 3);
}

#[test]
fn it_works_under_replicated_active() {
    works_among("replicated-active", 3);
}

#[test]
fn it_works_under_replicated_four() {
    works_among("replicated-four", 4);
}

#[test]
fn it_works_under_spdz_lt() {
    works_among("spdz-lt", 2);
}

#[test]
fn it_works_under_spdz_tower() {
    works_among("spdz-tower", 2);
}

#[test]
fn it_works_under_tinytable_linear64() {
    works_among("tinytable-linear64", 2);
}

/// A key leaves as the block that nodes keep, filled up with zeros. Its check value is a code's beginning.
#[test]
fn a_key_for_hmac_is_wrapped_and_comes_back() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(kek("hmac-kek", 16)).expect("a key");
    let made = client.import(wrappable("hmac-leaves", NAME, &[Mode::Hmac]), &data(30)).expect("a key");
    assert_eq!(made.check_value[..], of_another_program(&data(30), &[0; 32])[..5]);
    let wrapped = client.wrap("hmac-kek", "hmac-leaves", Wrapping::Kw).expect("wrapped");
    assert_eq!(wrapped.len(), 8 + BLOCK);
    let back = client.unwrap("hmac-kek", &wrapped, Wrapping::Kw, hmac_key("hmac-back")).expect("unwrapped");
    assert_eq!(back.check_value, made.check_value);
    let found = code(&client, "hmac-back", b"a message").expect("a code");
    assert_eq!(found[..], of_another_program(&data(30), b"a message"));
}

/// So many keys move together that a pair evaluates their check values in pieces.
const MOVED: u64 = 9;

/// The states of keys go into fresh shares, and into those of a pair.
#[test]
fn codes_stay_the_same_over_a_refresh_and_while_a_node_is_away() {
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    for number in 0..MOVED {
        insist(&|| cluster.client().import(hmac_key(&format!("moved-{number}")), &data(32)));
    }
    let expected = of_another_program(&data(32), &data(10));
    cluster.refresh();
    assert_eq!(insist(&|| code(&cluster.client(), "moved-8", &data(10)))[..], expected);
    cluster.wait_until(|| {
        let pairs = cluster.nodes.iter().flatten().flat_map(|node| node.standby());
        pairs.into_iter().all(|pair| pair.ready && pair.keys == MOVED && pair.lacking == 0)
    });
    cluster.stop(1);
    let client = cluster.client();
    assert_eq!(insist(&|| code(&client, "moved-8", &data(10)))[..], expected);
}

/// Wrong products of one node: under `replicated-four` codes stay right, under `replicated-active` there are
/// none.
#[test]
fn a_node_that_cheats_makes_no_code_wrong() {
    for (protocol, nodes) in [("replicated-four", 4), ("replicated-active", 3)] {
        let mut cluster = TestCluster::define_with(protocol, nodes, 1);
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        cluster.client().import(hmac_key("cheated"), &data(32)).expect("a key");
        cluster.stop(1);
        start_cheating(&mut cluster, 1, Cheat::InProducts);
        cluster.wait_until_ready();
        let found = code(&cluster.client(), "cheated", &data(70));
        match nodes {
            4 => assert_eq!(found.expect("a code")[..], of_another_program(&data(32), &data(70))),
            _ => refused(found, Reason::Quarantined, ""),
        }
    }
}
