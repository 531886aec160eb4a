//! HMAC-SHA-256 against an independent library, of messages of every length around those of blocks, and its
//! counts.

use hmac::{Hmac, KeyInit, Mac};
use polyclave_cipher::hmac::{self as circuits, Additions, BLOCK, CODE};
use polyclave_cipher::{Circuit, keyed};
use sha2::Sha256;

use crate::boolean::{bytes, run};

fn library(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// The circuits that nodes evaluate for messages, one after another.
struct Circuits {
    block: Circuit,
    known_block: Circuit,
}

impl Circuits {
    fn new(how: Additions) -> Circuits {
        Circuits { block: circuits::block(how), known_block: circuits::known_block(how) }
    }

    /// The code of a message, in two lanes.
    fn code(&self, round_keys: &[u8], message: &[u8]) -> Vec<u8> {
        let twice = |bytes: &[u8]| bytes.repeat(2);
        let (inner, outer) = round_keys.split_at(CODE);
        let mut state = twice(inner);
        for number in 0..circuits::blocks(message.len() as u64) {
            let rest = message.get(number as usize * BLOCK..).unwrap_or_default();
            let filling = circuits::filling(message.len() as u64, number);
            assert_eq!(circuits::scheduled(&circuits::schedule(&filling)), filling);
            state = match rest.len() {
                0 => run(&self.known_block, &[&twice(&circuits::schedule(&filling)), &state]),
                bytes @ 1..BLOCK => {
                    // What comes behind the message has no influence.
                    let mut block = [0xa5; BLOCK];
                    block[..bytes].copy_from_slice(rest);
                    let block = run(&circuits::last_block(bytes), &[&twice(&block), &twice(&filling)]);
                    run(&self.block, &[&block, &state])
                }
                _ => run(&self.block, &[&twice(&rest[..BLOCK]), &state]),
            };
        }
        let filling = circuits::filling(CODE as u64, 0);
        let block = run(&circuits::hash_block(), &[&state, &twice(&filling)]);
        let codes = run(&self.block, &[&block, &twice(outer)]);
        assert_eq!(codes[..CODE], codes[CODE..], "both lanes are the same");
        codes[..CODE].to_vec()
    }
}

#[test]
fn codes_of_every_length_agree_with_a_library() {
    let mut key = bytes(40);
    let library = |message: &[u8]| library(&bytes(40), message);
    key.resize(BLOCK, 0);
    for (how, lengths) in [(Additions::FewAnds, [0, 55, 63, 128]), (Additions::FewLevels, [1, 56, 64, 119])] {
        let round_keys = run(&circuits::cipher(how).key_schedule, &[&key]);
        let circuits = Circuits::new(how);
        for len in lengths {
            let message = bytes(len);
            assert_eq!(circuits.code(&round_keys, &message), library(&message), "{len} {how:?}");
        }
    }
    let code = library(b"a message");
    assert_eq!(run(&circuits::beginning(20), &[&code]), code[..20]);
}

/// The cipher that nodes see: the code of one block.
#[test]
fn encryption_is_the_code_of_32_bytes() {
    let cipher = keyed::find("HMAC-SHA-256").expect("there is one");
    let (key, messages) = (bytes(BLOCK), bytes(3 * CODE));
    let expected: Vec<u8> = messages.chunks(CODE).flat_map(|message| library(&key, message)).collect();
    for cipher in [&cipher, &circuits::cipher(Additions::FewAnds)] {
        let round_keys = run(&cipher.key_schedule, &[&key]);
        assert_eq!(run(&cipher.encrypt, &[&messages, &round_keys]), expected);
    }
    assert!(circuits::is_hmac(&cipher) && !circuits::is_hmac(&keyed::find("aes-128").expect("there is one")));
}

/// The table in the module.
#[test]
fn ands_and_depths_are_these() {
    let of = |circuit: Circuit| (circuit.lookups(), circuit.layers());
    let by = |how| [circuits::block(how), circuits::known_block(how)].map(of);
    assert_eq!(by(Additions::FewAnds), [(22_520, 1_607), (16_120, 1_607)]);
    assert_eq!(by(Additions::FewLevels), [(46_408, 462), (34_296, 461)]);
    let all = [circuits::states(), circuits::last_block(7), circuits::hash_block(), circuits::beginning(16)];
    assert_eq!(all.map(of), [(0, 0); 4]);
}
