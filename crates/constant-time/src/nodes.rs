//! What nodes do with keys around the protocol: parts of keys come in, are added and become keys with parity,
//! check values are opened, keys go into key blocks and out of them, and shares are written as bytes for
//! clients and stores.

use std::collections::BTreeMap;

use polyclave_api::{Reply, decode, encode};
use polyclave_cipher::{Cells, catalog, compile, compile_with_views, key_block, key_cells, modes, parity};
use polyclave_kernels::secret::{is_secret, mark_public};
use polyclave_protocol::Party;
use polyclave_protocol::evaluate::release;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig};
use polyclave_protocol::release::Released;
use polyclave_protocol::service::ServiceSession;

use crate::clients::{Work, of, one, serve};
use crate::{Subject, secrets};

pub const SUBJECTS: &[Subject] = &[
    ("node: a key of parts, its parity and its check value", || key_of_parts(|_| ())),
    ("node: a key into a key block and out of it", key_in_a_block),
    ("node: shares as bytes", || shares_as_bytes(|_| ())),
];

/// Under a protocol in whose cells a byte is one cell.
const PROTOCOL: (&str, usize) = ("shamir", 3);

fn at_each_node(work: Work<'_>) {
    let (protocol, parties) = PROTOCOL;
    serve(&of(protocol, parties), true, work);
}

/// Each node shares a part that it has alone, as when a key is made and when one arrives that was sealed to
/// the nodes. Goes on with what would be stored of the key.
pub fn key_of_parts(then: fn(&[u8])) {
    at_each_node(&|config, protocol, net| {
        let des = protocol.form(catalog::find("des").expect("the catalog has it"));
        let check_value = compile(&modes::check_value(&des), protocol);
        let wanted = check_value.inputs()[1].views();
        let schedule = compile_with_views(&des.key_schedule, protocol, |_| wanted.clone());
        let sum = parity::sum_with_parity(&des, config.parties(), 8);
        let of_key = schedule.inputs()[0].views();
        let sum = compile_with_views(&sum, protocol, |port| match port.name.as_str() {
            "key" => of_key.clone(),
            _ => Vec::new(),
        });

        let port = &des.key_schedule.inputs()[0];
        let part = secrets::bytes(des.key_bytes);
        let part =
            Cells::from_blocks(port.cells.len(), port.bits, &part).expect("it has the length of a key");
        let me = net.me();
        let source = |p| if p == me { Input::Mine(&part) } else { Input::From(p) };
        let sources: Vec<_> = Party::all(config.parties()).map(source).collect();
        let mut outputs = one(protocol, &sum, &sources, net)?;
        let (check, key) = (outputs.remove(1), outputs.remove(0));
        // The parts are such that some byte of the sum has another parity.
        let check = protocol.elements(&check, net)?;
        assert!(!protocol.arithmetic().is_zero(&check, net)?, "a key without odd parity");
        let stored = protocol.save(&key);
        assert!(is_secret(&stored), "a share of a key is secret to memcheck");
        then(&stored);
        let key = protocol.restore(&stored)?;

        let round_keys = one(protocol, &schedule, &[Input::Shared(&key)], net)?.remove(0);
        let block = &des.encrypt.inputs()[0];
        let zero = Cells::zero(block.cells.len(), block.bits, 1);
        let inputs = [Input::Public(&zero), Input::Shared(&round_keys)];
        let check_value = one(protocol, &check_value, &inputs, net)?.remove(0);
        let opened =
            release(protocol, &check_value, Owner::All, net)?.expect("all learn it").accept().to_blocks();
        // It is opened and compared with the one that is expected.
        mark_public(&opened);
        assert!(opened.len() == modes::check_value_bytes(&des), "a check value of DES");
        Ok(())
    });
}

/// The plaintext of a key block is made of a key, its length is compared, and it becomes a key again.
fn key_in_a_block() {
    at_each_node(&|_, protocol, net| {
        let aes = protocol.form(catalog::find("aes-128").expect("the catalog has it"));
        let block = &aes.encrypt.inputs()[0];
        let parts = (key_block::LENGTH_BYTES + aes.key_bytes).div_ceil(aes.block_bytes);
        let key = key_cells::key_of(&aes, parts, (block.cells.len(), block.bits), key_block::LENGTH_BYTES);
        let key = compile(&key, protocol);
        let length = compile(&key_block::difference(&aes, key_block::LENGTH_BYTES, 8), protocol);
        let mut views = length.inputs()[0].views();
        key.inputs().iter().for_each(|port| views.extend(port.views()));
        views.sort_by_key(|view| (!view.is_identity(), *view));
        views.dedup();
        let plain = key_block::plaintext(&aes, &aes);
        let plain = compile_with_views(&plain, protocol, |_| views.clone());

        // Masks are shared values that nobody knows.
        let bytes = key_block::plaintext_bytes(&aes, aes.block_bytes);
        let (mask, _) = protocol.mask_input(aes.key_bytes + bytes, net)?;
        let wrapped = protocol.unmask(&mask, 0, &vec![0; aes.key_bytes], &plain.inputs()[0])?;
        let random = protocol.unmask(&mask, aes.key_bytes, &vec![0; bytes], &plain.inputs()[1])?;
        let blocks = one(protocol, &plain, &[Input::Shared(&wrapped), Input::Shared(&random)], net)?;

        let mut expected = key_block::length(aes.key_bytes).to_vec();
        expected.resize(aes.block_bytes, 0);
        let expected = Cells::from_blocks(block.cells.len(), block.bits, &expected).expect("a block");
        let inputs = [Input::Shared(&blocks[0]), Input::Public(&expected)];
        let check = one(protocol, &length, &inputs, net)?.remove(0);
        let check = protocol.elements(&check, net)?;
        assert!(protocol.arithmetic().is_zero(&check, net)?, "the length of the key");

        let blocks: Vec<_> = blocks.iter().take(parts).map(Input::Shared).collect();
        let again = one(protocol, &key, &blocks, net)?.remove(0);
        let [wrapped, again] = [protocol.elements(&wrapped, net)?, protocol.elements(&again, net)?];
        assert!(protocol.arithmetic().is_zero(&wrapped.add(&again), net)?, "the key comes back");
        Ok(())
    });
}

/// As they go into the record of a key, which is sealed then, and into an answer to a client. Goes on with
/// the bytes.
pub fn shares_as_bytes(then: fn(&[u8])) {
    let [key, hash_key] = [16, 300].map(secrets::bytes);
    let shares = BTreeMap::from([("key", &key[..]), ("powers of the hash key", &hash_key[..])]);
    let record = encode(&shares).expect("it is short");
    then(&record[record.len() - key.len()..]);
    let again: BTreeMap<String, Vec<u8>> = decode(&record[4..], Party(0)).expect("it was written so");
    assert!(again.values().all(|share| is_secret(share)) && again.len() == shares.len(), "all shares");

    let answer = Reply::Data { data: key.clone(), mask: hash_key, initial: Vec::new(), opened: Vec::new() };
    let bytes = encode(&answer).expect("it is short");
    let again: Reply = decode(&bytes[4..], Party(0)).expect("it was written so");
    assert!(matches!(again, Reply::Data { data, .. } if data.len() == key.len()), "the same answer");
}
