//! HMAC against an independent library, of messages of every length around those of blocks, and its counts.

use hmac::{Hmac, KeyInit, Mac};
use polyclave_cipher::hmac::{self as circuits, Additions, Sha2};
use polyclave_cipher::{AnyMap, Circuit, Compiled, compile, keyed};
use sha2::{Sha256, Sha384, Sha512};

use crate::boolean::{bytes, run, run_compiled};

fn library(hash: Sha2, key: &[u8], message: &[u8]) -> Vec<u8> {
    match hash {
        Sha2::Sha256 => code_of(Hmac::<Sha256>::new_from_slice(key).expect("any length"), message),
        Sha2::Sha384 => code_of(Hmac::<Sha384>::new_from_slice(key).expect("any length"), message),
        Sha2::Sha512 => code_of(Hmac::<Sha512>::new_from_slice(key).expect("any length"), message),
    }
}

fn code_of(mut mac: impl Mac, message: &[u8]) -> Vec<u8> {
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// The circuits that nodes evaluate for messages, one after another.
struct Circuits {
    hash: Sha2,
    block: (Circuit, Compiled),
    known_block: (Circuit, Compiled),
    code: (Circuit, Compiled),
}

impl Circuits {
    fn new(hash: Sha2, how: Additions) -> Circuits {
        let [block, known_block, code] =
            [circuits::block(hash, how), circuits::known_block(hash, how), circuits::code(hash, how)].map(
                |circuit| {
                    let compiled = compile(&circuit, &AnyMap);
                    (circuit, compiled)
                },
            );
        Circuits { hash, block, known_block, code }
    }

    /// The code of a message, in two lanes.
    fn code(&self, round_keys: &[u8], message: &[u8]) -> Vec<u8> {
        let twice = |bytes: &[u8]| bytes.repeat(2);
        let of = |(circuit, compiled): &(Circuit, Compiled), inputs: &[&[u8]]| {
            run_compiled(circuit, compiled, inputs)
        };
        let (hash, of_block) = (self.hash, self.hash.block_bytes());
        let (inner, outer) = round_keys.split_at(hash.state_bytes());
        let mut state = twice(inner);
        for number in 0..circuits::blocks(hash, message.len() as u64) {
            let rest = message.get(number as usize * of_block..).unwrap_or_default();
            let filling = circuits::filling(hash, message.len() as u64, number);
            state = match rest.len() {
                0 => of(&self.known_block, &[&twice(&circuits::schedule(hash, &filling)), &state]),
                bytes if bytes < of_block => {
                    // What comes behind the message has no influence.
                    let mut block = vec![0xa5; of_block];
                    block[..bytes].copy_from_slice(rest);
                    let last = circuits::last_block(hash, bytes);
                    let block = run(&last, &[&twice(&block), &twice(&filling)]);
                    of(&self.block, &[&block, &state])
                }
                _ => of(&self.block, &[&twice(&rest[..of_block]), &state]),
            };
        }
        let codes = of(&self.code, &[&state, &twice(outer)]);
        let (code, again) = codes.split_at(hash.hash_bytes());
        assert_eq!(code, again, "both lanes are the same");
        code.to_vec()
    }
}

/// Blocks have 64 bytes with SHA-256, and 128 with the others, of which the length takes 8 and 16.
#[test]
fn codes_of_every_length_agree_with_a_library() {
    use Additions::{FewAnds, FewLevels};
    use Sha2::{Sha256, Sha384, Sha512};
    for (hash, how, lengths) in [
        (Sha256, FewAnds, &[0, 55, 63, 128][..]),
        (Sha256, FewLevels, &[1, 56, 64, 119]),
        (Sha384, FewAnds, &[111]),
        (Sha384, FewLevels, &[112]),
        (Sha512, FewAnds, &[112, 128]),
        (Sha512, FewLevels, &[0, 239]),
    ] {
        let mut key = bytes(40);
        key.resize(hash.block_bytes(), 0);
        let round_keys = run(&circuits::cipher(hash, how).key_schedule, &[&key]);
        let circuits = Circuits::new(hash, how);
        for &len in lengths {
            let message = bytes(len);
            let expected = library(hash, &bytes(40), &message);
            assert_eq!(circuits.code(&round_keys, &message), expected, "{len} {hash:?} {how:?}");
        }
    }
    for hash in Sha2::ALL {
        let code = library(hash, &bytes(40), b"a message");
        assert_eq!(run(&circuits::beginning(hash, 20), &[&code]), code[..20]);
    }
}

/// The cipher that nodes see: the code of one block.
#[test]
fn encryption_is_the_code_of_a_message_that_is_as_long_as_a_code() {
    for (hash, name) in
        [(Sha2::Sha256, "HMAC-SHA-256"), (Sha2::Sha384, "hmac-sha-384"), (Sha2::Sha512, "hmac-Sha-512")]
    {
        let cipher = keyed::find(name).expect("there is one");
        assert_eq!((cipher.key_bytes, cipher.block_bytes), (hash.block_bytes(), hash.hash_bytes()));
        let (key, messages) = (bytes(hash.block_bytes()), bytes(3 * hash.hash_bytes()));
        let messages_of = messages.chunks(hash.hash_bytes());
        let expected: Vec<u8> = messages_of.flat_map(|message| library(hash, &key, message)).collect();
        let of_few_ands = (hash == Sha2::Sha256).then(|| circuits::cipher(hash, Additions::FewAnds));
        for cipher in [&cipher].into_iter().chain(&of_few_ands) {
            let round_keys = run(&cipher.key_schedule, &[&key]);
            assert_eq!(run(&cipher.encrypt, &[&messages, &round_keys]), expected, "{name}");
        }
        assert!(circuits::is_hmac(&cipher));
    }
    assert!(!circuits::is_hmac(&keyed::find("aes-128").expect("there is one")));
}

/// The tables in the module.
#[test]
fn ands_and_depths_are_these() {
    let of = |circuit: Circuit| (circuit.lookups(), circuit.layers());
    let by = |hash, how| {
        [circuits::block(hash, how), circuits::known_block(hash, how), circuits::code(hash, how)].map(of)
    };
    let of_sha256 = |how| by(Sha2::Sha256, how);
    assert_eq!(of_sha256(Additions::FewAnds), [(22_520, 1_607), (16_120, 1_607), (22_051, 1_607)]);
    assert_eq!(of_sha256(Additions::FewLevels), [(46_408, 462), (34_296, 461), (45_933, 462)]);
    for (hash, of_code, by_levels) in [(Sha2::Sha384, 56_436, 132_351), (Sha2::Sha512, 56_947, 133_677)] {
        let ands = [(57_896, 3_303), (40_824, 3_303), (of_code, 3_303)];
        assert_eq!(by(hash, Additions::FewAnds), ands);
        let levels = [(134_632, 656), (97_784, 655), (by_levels, 656)];
        assert_eq!(by(hash, Additions::FewLevels), levels);
    }
    let linear =
        |hash| [circuits::states(hash), circuits::last_block(hash, 7), circuits::beginning(hash, 16)].map(of);
    assert_eq!(Sha2::ALL.map(linear), [[(0, 0); 3]; 3]);
}
