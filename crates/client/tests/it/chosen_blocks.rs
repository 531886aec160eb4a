//! A client that plays CBC encryption as an oracle for E_K of blocks that it chooses. For that it has to know
//! what is chained to a block before it fixes the block; the nodes tell it afterwards.

use polyclave_api::{End, KeyInfo, Mode, Operation, Reason, Reply, Step, Use, operations, warnings};
use polyclave_store::StoredKey;

use crate::common::messages::{cbc, cmac, gcm, uncbc};
use crate::common::oracle::Oracle;
use crate::common::raw::{Raw, request};
use crate::common::{TestCluster, data, key};
use polyclave_client::{Error, Padding};
use polyclave_protocol::PartySet;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::shamir::{Inversion, ShamirConfig, Structure, Tables};

const KEY: [u8; 16] = [0x2b; 16];
/// Of which the attacker wants E_K.
const TARGET: [u8; 16] = [0; 16];

/// What three nodes sent of a value, put together.
fn combined(parts: &[Vec<u8>]) -> Vec<u8> {
    let structure = Structure::new(3, 1).expect("a structure");
    let config = ShamirConfig { structure, inversion: Inversion::CarriedSquares, tables: Tables::Masked };
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    config.combine(PartySet::all(3), &parts).expect("they belong together").to_vec()
}

/// Data, next mask and initial block of an answer.
fn answer(replies: Vec<Reply>) -> [Vec<u8>; 3] {
    let mut parts = [const { Vec::new() }; 3];
    for reply in replies {
        let Reply::Data { data, mask, initial, .. } = reply else { panic!("{reply:?}") };
        for (part, sent) in parts.iter_mut().zip([data, mask, initial]) {
            part.push(sent);
        }
    }
    parts.map(|part| combined(&part))
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// A step under a mask.
fn masked(raw: &mut Raw, data: &[u8], mask: &[u8], next: u32) -> [Vec<u8>; 3] {
    raw.tell_all(&Step::Masked { data: xor(data, mask), next, end: End::No });
    answer(raw.replies())
}

#[test]
fn nothing_that_is_chained_to_a_block_is_told_before_the_block_is_fixed() {
    let cluster = TestCluster::shared();
    cluster.client().import(key("chosen", "aes-128", &[Mode::Cbc]), &KEY).expect("a key");
    let oracle = Oracle::new("aes-128", &KEY);
    let wanted = oracle.encrypted(&TARGET);

    let mut raw = Raw::call(&cluster);
    let how = Use::CbcEncrypt { mask: 16, initial: None };
    raw.tell_all(&request(Operation::Use(operations::UseKey { key: "chosen".into(), id: None, how }), None));
    let (mut known, mut masks) = (TARGET.to_vec(), Vec::new());
    for reply in raw.replies() {
        let Reply::Accepted { start, mask, .. } = reply else { panic!("{reply:?}") };
        assert!(start.is_empty(), "the initial block is told before the first block is fixed");
        known = if start.is_empty() { known } else { start };
        masks.push(mask);
    }
    let mut mask = combined(&masks);
    // The best that can be chosen: the target plus what is known to be chained to the block.
    let mut message = Vec::new();
    let mut chosen = Vec::new();
    let mut initial = Vec::new();
    for next in [16, 16, 16, 0] {
        let block = xor(&TARGET, &known);
        let [ciphertext, next_mask, first] = masked(&mut raw, &block, &mask, next);
        message.extend(&ciphertext);
        chosen.extend(block);
        initial.extend(first);
        known = message.rchunks(16).next().map_or(known, <[u8]>::to_vec);
        mask = next_mask;
        // The last block is not told as long as another can follow.
        assert_eq!(message.len(), chosen.len() - if next > 0 { 16 } else { 0 });
    }
    assert_eq!((initial.len(), message.len()), (16, 64), "one initial block, and in the end everything");
    assert_eq!(message, oracle.cbc(&initial, &chosen), "it is CBC");
    assert!(message.chunks(16).all(|block| block != wanted), "E_K of a chosen block");
}

#[test]
fn initial_blocks_differ_and_messages_of_many_steps_come_back() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("drawn", "aes-128", &[Mode::Cbc])).expect("a key");
    let mut initials = Vec::new();
    for len in [16, 2048, 2032, 5000, 1, 4064] {
        let (initial, ciphertext) = cbc(&client, "drawn", Padding::Pkcs7, &data(len)).expect("encrypted");
        let back = uncbc(&client, "drawn", Padding::Pkcs7, &initial, &ciphertext).expect("decrypted");
        assert!(back == data(len), "{len}");
        assert!(!initials.contains(&initial), "the same initial block twice");
        initials.push(initial);
    }
}

/// Why a key for both gives a warning: the code of a block is that of a counter block and the block plus its
/// keystream.
#[test]
fn whoever_knows_a_message_of_gcm_makes_a_second_code_of_cmac_from_one() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let both = [Mode::Gcm, Mode::Cmac];
    client.generate(key("gcm-and-cmac", "aes-128", &both)).expect("a key");
    assert!(warnings(&both, &[]).iter().any(|text| text.starts_with("gcm undoes cmac")));
    let known = data(16);
    let message = gcm(&client, "gcm-and-cmac", b"", &known).expect("encrypted");
    let counter = [&message[..12], &[0, 0, 0, 2]].concat();
    let keystream = xor(&message[12..28], &known);
    let code = cmac(&client, "gcm-and-cmac", &TARGET).expect("a code");
    let second = [counter, xor(&TARGET, &keystream)].concat();
    assert_eq!(cmac(&client, "gcm-and-cmac", &second).expect("a code"), code);
}

/// A key from before such keys were refused: put into the stores while the nodes are stopped.
#[test]
fn under_a_key_for_cbc_and_cmac_nothing_more_is_encrypted_in_cbc_and_the_old_can_be_decrypted() {
    let mut cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    client.generate(key("new", "aes-128", &[Mode::Cbc])).expect("a key");
    let (initial, ciphertext) = cbc(&client, "new", Padding::Pkcs7, &data(40)).expect("encrypted");
    for node in 0..3 {
        cluster.stop(node);
        let store = cluster.store_of(node);
        let new = store.key("new").expect("read").expect("there");
        let mut shares = new.shares.clone();
        let mut info = KeyInfo { id: [7; 16], ..new.info.clone() };
        (info.properties.name, info.properties.modes) = ("old".into(), vec![Mode::Cbc, Mode::Cmac]);
        for part in ["cmac k1", "cmac k2"] {
            let round_keys = shares["round keys"].clone();
            shares.insert(part.into(), round_keys);
        }
        store.put_pending(&StoredKey { info, state: new.state, shares, maker: None }).expect("put");
        store.announce("old", [7; 16]).expect("announced");
        drop(store);
        cluster.restart(node);
    }
    cluster.wait_until_ready();
    let client = cluster.client();
    match cbc(&client, "old", Padding::Pkcs7, &data(40)) {
        Err(Error::Refused { refusal, .. }) => {
            assert_eq!(refusal.reason, Reason::NotForThis);
            assert!(refusal.message.contains("cbc undoes cmac"), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
    let back = uncbc(&client, "old", Padding::Pkcs7, &initial, &ciphertext).expect("decrypted");
    assert_eq!(back, data(40));
}
