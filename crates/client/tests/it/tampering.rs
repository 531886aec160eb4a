//! A sealed file or a GCM message that was changed anywhere, in any way, does not open.

use polyclave_api::{CHUNK, Mode, Reason};

use crate::common::messages::{gcm, open, seal, ungcm};
use crate::common::{TestCluster, data, key};
use polyclave_client::{Client, Error, HEAD};

/// A chunk with its tag.
const WHOLE: usize = CHUNK + 16;

fn made(client: &Client, name: &str, len: usize) -> Vec<u8> {
    client.generate(key(name, "aes-128", &[Mode::Gcm])).expect("a key");
    seal(client, name, &data(len)).expect("sealed")
}

fn assert_unauthentic(client: &Client, name: &str, changed: &[u8], how: &str) {
    let outcome = open(client, name, changed);
    assert!(matches!(outcome, Err(Error::Unauthentic(_))), "{how}: {:?}", outcome.map(|d| d.len()));
}

/// Head and chunks of a sealed file.
fn parts(sealed: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (head, chunks) = sealed.split_at(HEAD);
    (head.to_vec(), chunks.chunks(WHOLE).map(<[u8]>::to_vec).collect())
}

#[test]
fn a_file_that_was_cut_anywhere_does_not_open() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let len = 2 * CHUNK + 1000;
    let sealed = made(&client, "cut", len);
    let inside_of_the_head = [0, 1, 15, 16, 31, 32, HEAD - 1];
    let around_the_first_chunk = [0, 1, 15, 16, 17, 1000, CHUNK, CHUNK + 15, WHOLE, WHOLE + 1];
    let around_the_others = [
        WHOLE + 16,
        WHOLE + CHUNK,
        2 * WHOLE - 1,
        2 * WHOLE,
        2 * WHOLE + 16,
        2 * WHOLE + 1000,
        2 * WHOLE + 1015,
    ];
    let chunks = around_the_first_chunk.into_iter().chain(around_the_others).map(|at| HEAD + at);
    for at in inside_of_the_head.into_iter().chain(chunks) {
        assert_unauthentic(
            &client,
            "cut",
            &sealed[..at],
            &format!("cut after {at} of {} bytes", sealed.len()),
        );
    }
    assert!(open(&client, "cut", &sealed).expect("whole") == data(len));
}

#[test]
fn chunks_in_another_order_or_of_another_file_do_not_open() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let sealed = made(&client, "order", 3 * CHUNK);
    let other = seal(&client, "order", &data(3 * CHUNK)).expect("sealed");
    let ((head, chunks), (_, others)) = (parts(&sealed), parts(&other));
    let [a, b, c] = [0, 1, 2].map(|i| &chunks[i][..]);
    let wrong: [(&str, Vec<&[u8]>); 9] = [
        ("two changed places", vec![b, a, c]),
        ("the last two changed places", vec![a, c, b]),
        ("the first is missing", vec![b, c]),
        ("the middle is missing", vec![a, c]),
        ("one is there twice", vec![a, b, b, c]),
        ("the last is there twice", vec![a, b, c, c]),
        ("one of another file", vec![a, &others[1], c]),
        ("the last of another file", vec![a, b, &others[2]]),
        ("one more at the end", vec![a, b, c, &others[0]]),
    ];
    for (how, chunks) in wrong {
        assert_unauthentic(&client, "order", &[&[&head[..]], &chunks[..]].concat().concat(), how);
    }
    assert_unauthentic(&client, "order", &[&sealed[..], &[0]].concat(), "a byte more");
    assert_unauthentic(&client, "order", &[&sealed[..], &[0; 16]].concat(), "an empty chunk more");
}

#[test]
fn a_flipped_bit_anywhere_in_a_short_file_is_noticed() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let sealed = made(&client, "flip", 33);
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1 << (at * 5 % 8);
        let outcome = open(&client, "flip", &changed);
        // The key's id is in the head: this looks like another key's file.
        let another_key =
            |e: &Error| matches!(e, Error::Refused { refusal, .. } if refusal.reason == Reason::NoSuchKey);
        match outcome {
            Err(Error::Unauthentic(_)) => assert!(!(16..32).contains(&at)),
            Err(e) if another_key(&e) => assert!((16..32).contains(&at), "{at}"),
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

#[test]
fn a_flipped_bit_in_any_chunk_of_a_long_file_is_noticed() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let sealed = made(&client, "long", 3 * CHUNK + 77);
    for at in [0, CHUNK - 1, CHUNK, WHOLE - 1, WHOLE, 2 * WHOLE + CHUNK / 2, 3 * WHOLE, 3 * WHOLE + 77] {
        let mut changed = sealed.clone();
        changed[HEAD + at] ^= 0x80;
        assert_unauthentic(&client, "long", &changed, &format!("flipped at {at}"));
    }
}

#[test]
fn what_was_written_before_a_cut_was_noticed_is_a_beginning_of_the_data() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let sealed = made(&client, "beginning", 3 * CHUNK);
    for at in [WHOLE, 2 * WHOLE, 2 * WHOLE + 5] {
        let mut out = Vec::new();
        let outcome =
            client.open_sealed("beginning", &mut &sealed[..HEAD + at], &mut out, &mut crate::common::nothing);
        assert!(outcome.is_err());
        assert!(data(3 * CHUNK).starts_with(&out), "{at}");
    }
}

#[test]
fn a_changed_gcm_message_writes_nothing() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("plain", "aes-128", &[Mode::Gcm])).expect("a key");
    let short = gcm(&client, "plain", b"with", &data(20)).expect("encrypted");
    for at in 0..short.len() {
        let mut changed = short.clone();
        changed[at] ^= 1 << (at % 8);
        // That nothing was written is asserted where it is called.
        assert!(matches!(ungcm(&client, "plain", b"with", &changed), Err(Error::Unauthentic(_))), "{at}");
        let cut = ungcm(&client, "plain", b"with", &short[..at]);
        assert!(matches!(cut, Err(Error::Unauthentic(_))), "{at}: {cut:?}");
    }
    let long = gcm(&client, "plain", b"", &data(3 * CHUNK)).expect("encrypted");
    for at in [12, 12 + CHUNK, long.len() - 17] {
        let mut changed = long.clone();
        changed[at] ^= 1;
        assert!(matches!(ungcm(&client, "plain", b"", &changed), Err(Error::Unauthentic(_))), "{at}");
    }
}
