//! HMAC against an independent library, of messages of every length around those of blocks, and its counts.

use hmac::{Hmac, KeyInit, Mac};
use polyclave_cipher::hmac::{self as circuits, Additions, Last, Sha2};
use polyclave_cipher::{AnyMap, Circuit, Compiled, compile, keyed};
use sha2::{Sha256, Sha384, Sha512};

use crate::boolean::{bytes, run_all, run_compiled};

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

/// The circuits that nodes evaluate, one after another.
struct Circuits {
    hash: Sha2,
    block: (Circuit, Compiled),
    known_block: (Circuit, Compiled),
}

impl Circuits {
    fn new(hash: Sha2, how: Additions) -> Circuits {
        let [block, known_block] =
            [circuits::block(hash, how), circuits::known_block(hash, how)].map(|circuit| {
                let compiled = compile(&circuit, &AnyMap);
                (circuit, compiled)
            });
        Circuits { hash, block, known_block }
    }

    /// The code of a message under a key of one block.
    fn code(&self, key: &[u8], message: &[u8]) -> Vec<u8> {
        let of = |(circuit, compiled): &(Circuit, Compiled), inputs: &[&[u8]]| {
            run_compiled(circuit, compiled, inputs).concat()
        };
        let (hash, of_block) = (self.hash, self.hash.block_bytes());
        // Two lanes of one compression.
        let padded = run_all(&circuits::padded(hash), &[key]).concat();
        let states = of(&self.block, &[&padded, &circuits::initial_state(hash).repeat(2)]);
        let (inner, outer) = states.split_at(hash.state_bytes());
        let round_keys = run_all(&circuits::round_keys(hash), &[inner, outer]).concat();
        let states = run_all(&circuits::states(hash), &[&round_keys]);
        assert_eq!(states, [inner, outer]);
        let mut state = inner.to_vec();
        for number in 0..circuits::blocks(hash, message.len() as u64) {
            let rest = message.get(number as usize * of_block..).unwrap_or_default();
            let filling = circuits::filling(hash, message.len() as u64, number);
            state = match rest.len() {
                0 => {
                    let schedule = circuits::schedule(hash, &filling);
                    assert_eq!(circuits::scheduled(hash, &schedule), filling);
                    of(&self.known_block, &[&schedule, &state])
                }
                bytes if bytes < of_block => {
                    // What comes behind the message has no influence.
                    let mut block = vec![0xa5; of_block];
                    block[..bytes].copy_from_slice(rest);
                    let last = circuits::last_block(hash, Last::OfMessage(bytes));
                    let block = run_all(&last, &[&block, &filling]).concat();
                    of(&self.block, &[&block, &state])
                }
                _ => of(&self.block, &[&rest[..of_block], &state]),
            };
        }
        let filling = circuits::filling(hash, hash.hash_bytes() as u64, 0);
        let last = run_all(&circuits::last_block(hash, Last::OfHash), &[&state, &filling]).concat();
        let state = of(&self.block, &[&last, outer]);
        run_all(&circuits::beginning(hash, hash.hash_bytes()), &[&state]).concat()
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
        let circuits = Circuits::new(hash, how);
        for &len in lengths {
            let message = bytes(len);
            let expected = library(hash, &bytes(40), &message);
            assert_eq!(circuits.code(&key, &message), expected, "{len} {hash:?} {how:?}");
        }
    }
    for hash in Sha2::ALL {
        let state = bytes(hash.state_bytes());
        assert_eq!(run_all(&circuits::beginning(hash, 20), &[&state]), [&state[..20]]);
    }
}

/// Clients know sizes from names, and make no circuits for that.
#[test]
fn keys_for_hmac_are_found_by_name_and_have_no_circuits() {
    for (hash, name) in
        [(Sha2::Sha256, "HMAC-SHA-256"), (Sha2::Sha384, "hmac-sha-384"), (Sha2::Sha512, "hmac-Sha-512")]
    {
        let cipher = keyed::find(name).expect("there is one");
        assert_eq!((cipher.key_bytes, cipher.block_bytes), (hash.block_bytes(), hash.hash_bytes()));
        assert!([&cipher.key_schedule, &cipher.encrypt].iter().all(|circuit| circuit.ops().is_empty()));
        let cells = |circuit: Circuit, input: bool| {
            let port = if input { &circuit.inputs()[0] } else { &circuit.outputs()[0] };
            (port.cells.len(), port.bits)
        };
        assert_eq!(keyed::key_shape(&cipher), cells(circuits::padded(hash), true));
        assert_eq!(keyed::round_keys_shape(&cipher), cells(circuits::round_keys(hash), false));
        assert!(circuits::is_hmac(&cipher));
    }
    let aes = keyed::find("aes-128").expect("there is one");
    assert!(!circuits::is_hmac(&aes));
    assert_eq!((keyed::key_shape(&aes), keyed::round_keys_shape(&aes)), ((16, 8), (176, 8)));
}

/// The table in the module. SHA-384 and SHA-512 have one compression.
#[test]
fn ands_and_depths_are_these() {
    use Additions::{FewAnds, FewLevels};
    let of = |circuit: Circuit| (circuit.lookups(), circuit.layers());
    let by = |hash, how| [circuits::block(hash, how), circuits::known_block(hash, how)].map(of);
    assert_eq!(by(Sha2::Sha256, FewAnds), [(22_520, 1_607), (16_120, 1_607)]);
    assert_eq!(by(Sha2::Sha256, FewLevels), [(46_408, 462), (34_296, 461)]);
    assert_eq!(by(Sha2::Sha512, FewAnds), [(57_896, 3_303), (40_824, 3_303)]);
    assert_eq!(by(Sha2::Sha512, FewLevels), [(134_632, 656), (97_784, 655)]);
    assert!(circuits::block(Sha2::Sha384, FewAnds) == circuits::block(Sha2::Sha512, FewAnds));
    let linear = |hash| {
        let last = [Last::OfMessage(7), Last::OfHash].map(|last| circuits::last_block(hash, last));
        let of_key = [circuits::padded(hash), circuits::round_keys(hash), circuits::states(hash)];
        last.into_iter()
            .chain(of_key)
            .chain([circuits::beginning(hash, 16)])
            .all(|circuit| of(circuit).0 == 0)
    };
    assert!(Sha2::ALL.into_iter().all(linear));
}
