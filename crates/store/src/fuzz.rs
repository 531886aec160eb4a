//! Fuzz targets: foreign bytes in place of a record of the store, sealed or opened, and in place of a backup.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use polyclave_harness::{fuzz, within_memory};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::backup::Frame;
use super::backup::restore::{MAX_FRAME, verify};
use super::engine::{Table, decode, encode};
use super::seal::Seal;
use super::stream::Sealing;
use super::testing::{key, secret};
use super::*;

/// A record is an error or a value. Encoding and decoding the value again gives the same value.
fn comes_back<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    within_memory((4 << 20) + 64 * bytes.len(), || {
        if let Ok(value) = decode::<T>(Table::Meta, bytes) {
            let again = encode(&value, bytes.len()).expect("it is no longer than it was");
            let value: T = decode(Table::Meta, &again).expect("it was written here");
            assert_eq!(encode(&value, bytes.len()).expect("the same"), again);
        }
    });
}

/// The first byte chooses the type of the record.
#[test]
fn no_record_of_the_store_panics_and_what_is_read_comes_back() {
    type Reads = fn(&[u8]);
    let reads: [Reads; 10] = [
        comes_back::<entry::Entry>,
        comes_back::<BTreeMap<String, Vec<u8>>>,
        comes_back::<Vec<(String, [u8; 16])>>,
        comes_back::<([u8; 32], u64, Vec<u8>)>,
        comes_back::<Past>,
        comes_back::<Quarantine>,
        comes_back::<Gap>,
        comes_back::<(u64, [u8; 32])>,
        comes_back::<Option<u64>>,
        comes_back::<Mark>,
    ];
    fn record(of: u8, value: &impl Serialize) -> Vec<u8> {
        [&[of][..], &encode(value, 64).expect("it is small")].concat()
    }
    let key = key("payroll", 7);
    let past = Past { number: 3, recent: vec![[1; 16]], starts: vec![Start { first: 1, boot: [2; 16] }] };
    let valid = vec![
        record(0, &entry::Entry { info: key.info, state: KeyState::Announced, maker: Some("alice".into()) }),
        record(1, &BTreeMap::from([("round keys", vec![5u8; 40]), ("hash key", vec![6; 16])])),
        record(2, &[("payroll", [7u8; 16]), ("other", [8; 16])].to_vec()),
        record(3, &([1u8; 32], 7u64, vec![9u8; 20])),
        record(4, &past),
        record(5, &Quarantine { reason: "a check failed".into(), since: 1_800_000_000 }),
        record(6, &Gap { since: "2026-11-23T10:00:00Z".into(), events: 3, served: 0 }),
        record(7, &(9u64, [3u8; 32])),
        record(8, &Some(u64::MAX)),
        record(9, &Mark { number: 1 << 33, value: [4; 16] }),
    ];
    fuzz!("stored-records", &[], valid, |bytes: &[u8]| {
        if let Some((of, bytes)) = bytes.split_first() {
            reads[usize::from(*of) % reads.len()](bytes);
        }
    });
}

#[test]
fn no_sealed_record_but_the_one_that_was_sealed_opens() {
    let seal = Seal::new(&secret());
    let sealed = seal.seal("keys", b"payroll", zeroize::Zeroizing::new(vec![5; 40])).expect("sealed");
    let valid = vec![sealed.clone()];
    fuzz!("sealed-records", &[], valid, |bytes: &[u8]| {
        assert_eq!(seal.open("keys", b"payroll", bytes).is_ok(), *bytes == *sealed);
    });
}

fn sealed(frames: &[u8]) -> Vec<u8> {
    let mut sealing = Sealing::new(Vec::new(), &secret()).expect("memory can be written");
    sealing.write_all(frames).expect("memory can be written");
    sealing.finish().expect("memory can be written")
}

fn framed(frames: &[Frame]) -> Vec<u8> {
    let framed = frames.iter().flat_map(|frame| {
        let bytes = encode(frame, 64).expect("it is small");
        [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
    });
    framed.collect()
}

fn frames() -> Vec<u8> {
    let seal = Seal::new(&Secret::from_bytes([0xab; 32]));
    let marker = seal.seal("meta", MARKER, Default::default()).expect("sealed");
    let kept = [
        ("node.toml", &b"name = 'a'"[..]),
        ("identity.key", b"key"),
        ("identity.crt", b"certificate"),
        ("secret.key", &[b'a', b'b'].repeat(32)),
        ("clients.toml", b""),
    ];
    let secret = kept[3].1.to_vec();
    let mut frames = Vec::new();
    for (name, bytes) in &kept {
        frames.push(Frame::File(name));
        frames.push(Frame::Piece(if *name == "secret.key" { &secret } else { bytes }));
    }
    frames.extend([Frame::Table("meta"), Frame::Record(MARKER, &marker), Frame::Table("keys")]);
    frames.push(Frame::End(frames.len() as u64));
    framed(&frames)
}

/// Somebody who has the key of a backup may have written anything: the frames are foreign although they are
/// sealed.
#[test]
fn no_frames_of_a_backup_panic_or_take_more_memory_than_one_frame_may() {
    let valid = frames();
    let check = |frames: &[u8]| verify(Path::new("backup"), &*sealed(frames), &secret());
    check(&valid).expect("it is whole");
    let words = ["node.toml", "secret.key", "audit.log", "../x", "meta", "spent lots", "marker"];
    fuzz!("backup-frames", &words, vec![valid], |bytes: &[u8]| {
        within_memory(MAX_FRAME as usize + (1 << 20) + 8 * bytes.len(), || {
            let _: Result<()> = check(bytes);
        });
    });
}

#[test]
fn no_backup_but_the_one_that_was_written_is_whole() {
    let whole = sealed(&frames());
    let valid = vec![whole.clone()];
    fuzz!("backups", &[], valid, |bytes: &[u8]| {
        let verified = verify(Path::new("backup"), bytes, &secret());
        assert_eq!(verified.is_ok(), *bytes == *whole);
    });
}
