//! Boolean circuits against independent libraries, lane by lane, and their counts.

use cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use polyclave_cipher::{AnyMap, Cells, Circuit, Compiled, Direction, boolean, cleartext, compile};
use proptest::prelude::*;

/// Runs a circuit; one block per lane, uniform inputs one block.
pub fn run(circuit: &Circuit, inputs: &[&[u8]]) -> Vec<u8> {
    run_all(circuit, inputs).remove(0)
}

/// All outputs.
pub fn run_all(circuit: &Circuit, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    run_compiled(circuit, &compile(circuit, &AnyMap), inputs)
}

/// The same of a circuit that is compiled already.
pub fn run_compiled(circuit: &Circuit, compiled: &Compiled, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    let ports = circuit.inputs().iter().zip(inputs);
    let cells: Vec<Cells> =
        ports.map(|(p, x)| Cells::from_blocks(p.cells.len(), p.bits, x).expect("whole blocks")).collect();
    let lanes = circuit.inputs().iter().zip(&cells).filter(|(p, _)| !p.uniform).map(|(_, c)| c.lanes()).max();
    let outputs = cleartext::run(compiled, lanes.unwrap_or(1), &cells);
    outputs.expect("the inputs fit").iter().map(Cells::to_blocks).collect()
}

/// Bytes that look random and are the same every time.
pub fn bytes(count: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    let next = |_| {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (x >> 56) as u8
    };
    (0..count).map(next).collect()
}

fn encrypted<C: BlockCipherEncrypt + BlockCipherDecrypt + KeyInit>(key: &[u8], blocks: &[u8]) -> Vec<u8> {
    let cipher = C::new_from_slice(key).expect("the key has the right length");
    let mut out = blocks.to_vec();
    for block in out.chunks_exact_mut(C::block_size()) {
        cipher.encrypt_block(block.try_into().expect("a whole block"));
    }
    out
}

/// The ciphers that the library has; the others are held to known answers (`lightweight.rs`).
const IN_LIBRARY: [&str; 6] = ["aes-128", "aes-192", "aes-256", "des", "3des-ede3", "3des-ede2"];

fn library(name: &str, key: &[u8], blocks: &[u8]) -> Vec<u8> {
    match name {
        "aes-128" => encrypted::<aes::Aes128>(key, blocks),
        "aes-192" => encrypted::<aes::Aes192>(key, blocks),
        "aes-256" => encrypted::<aes::Aes256>(key, blocks),
        "des" => encrypted::<des::Des>(key, blocks),
        "3des-ede2" => encrypted::<des::TdesEde2>(key, blocks),
        "3des-ede3" => encrypted::<des::TdesEde3>(key, blocks),
        _ => panic!("the library has no {name}"),
    }
}

#[test]
fn aes_and_des_agree_with_a_library_in_both_directions() {
    for name in IN_LIBRARY {
        let cipher = boolean::cipher(name).expect("the catalog has it");
        let key = bytes(cipher.key_bytes);
        let blocks = bytes(37 * cipher.block_bytes);
        let expected = library(&cipher.name, &key, &blocks);
        let round_keys = run(&cipher.key_schedule, &[&key]);
        assert!(cipher.key_schedule.outputs()[0].uniform, "{}", cipher.name);
        assert_eq!(run(&cipher.encrypt, &[&blocks, &round_keys]), expected, "{}", cipher.name);
        let decrypt = cipher.circuit(Direction::Decrypt).expect("it decrypts");
        assert_eq!(run(&decrypt, &[&expected, &round_keys]), blocks, "{}", cipher.name);
        let whole = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
        assert_eq!(run(&whole, &[&blocks, &key]), expected, "{}", cipher.name);
    }
}

#[test]
fn shipped_ciphers_agree_with_a_library() {
    for (name, cipher) in [("aes-128-with-keyschedule", "aes-128"), ("des", "des")] {
        let circuit = boolean::find(name).expect("it is shipped");
        let sizes: Vec<usize> = circuit.inputs().iter().map(|p| p.cells.len() / 8).collect();
        let (blocks, key) = (bytes(100 * sizes[0]), bytes(sizes[1]));
        assert_eq!(run(&circuit, &[&blocks, &key]), library(cipher, &key, &blocks), "{name}");
    }
}

#[test]
fn ands_and_depths_are_these() {
    let of = |circuit: &Circuit| (circuit.lookups(), circuit.layers());
    let counts: Vec<_> = boolean::circuits().iter().map(|(name, make)| (*name, of(&make()))).collect();
    let expected = [
        ("aes-128", (5_440, 40)),
        ("aes-128-with-keyschedule", (6_800, 40)),
        ("des", (2_640, 48)),
        ("adder-64", (373, 7)),
        ("comparator-64", (184, 7)),
        ("sha-256", (22_520, 1_607)),
    ];
    assert_eq!(counts, expected);

    let ciphers = IN_LIBRARY.map(|name| {
        let cipher = boolean::cipher(name).expect("the catalog has it");
        let decrypt = cipher.decrypt.expect("it decrypts");
        (of(&cipher.key_schedule), of(&cipher.encrypt), of(&decrypt))
    });
    let expected = [
        ((1_360, 40), (5_440, 40), (5_440, 40)),
        ((1_088, 32), (6_528, 48), (6_528, 48)),
        ((1_768, 52), (7_616, 56), (7_616, 56)),
        ((0, 0), (2_640, 48), (2_640, 48)),
        ((0, 0), (7_920, 138), (7_920, 138)),
        ((0, 0), (7_920, 138), (7_920, 138)),
    ];
    assert_eq!(ciphers, expected);
}

#[test]
fn compression_agrees_with_a_library() {
    let circuit = boolean::find("sha-256").expect("it is shipped");
    let lanes = 100;
    let (blocks, states) = (bytes(64 * lanes), bytes(32 * lanes));
    let expected: Vec<u8> = blocks
        .as_chunks::<64>()
        .0
        .iter()
        .zip(states.as_chunks::<32>().0)
        .flat_map(|(block, state)| {
            let mut words: [u32; 8] = std::array::from_fn(|i| {
                u32::from_be_bytes([state[4 * i], state[4 * i + 1], state[4 * i + 2], state[4 * i + 3]])
            });
            sha2::block_api::compress256(&mut words, &[*block]);
            words.into_iter().flat_map(u32::to_be_bytes)
        })
        .collect();
    assert_eq!(run(&circuit, &[&blocks, &states]), expected);
}

fn numbers(circuit: &Circuit, pairs: &[(u64, u64)]) -> Vec<u8> {
    let a: Vec<u8> = pairs.iter().flat_map(|(a, _)| a.to_be_bytes()).collect();
    let b: Vec<u8> = pairs.iter().flat_map(|(_, b)| b.to_be_bytes()).collect();
    run(circuit, &[&a, &b])
}

fn check_arithmetic(pairs: &[(u64, u64)]) {
    let sums: Vec<u8> = pairs.iter().flat_map(|(a, b)| a.wrapping_add(*b).to_be_bytes()).collect();
    assert_eq!(numbers(&boolean::adder(64), pairs), sums);
    // One bit takes the top of a byte.
    let less: Vec<u8> = pairs.iter().map(|(a, b)| u8::from(a < b) << 7).collect();
    assert_eq!(numbers(&boolean::comparator(64), pairs), less);
}

#[test]
fn carries_run_all_the_way() {
    let edges: Vec<u64> = (0..64).flat_map(|i| [1 << i, (1 << i) - 1, u64::MAX - (1 << i)]).collect();
    let pairs: Vec<(u64, u64)> = edges.iter().flat_map(|a| edges.iter().map(|b| (*a, *b))).collect();
    check_arithmetic(&pairs);
}

#[test]
fn adders_and_comparators_of_other_widths_count_right() {
    for width in 1..=8u32 {
        let mask = u8::MAX >> (8 - width);
        let pairs: Vec<(u8, u8)> = (0..=mask).flat_map(|a| (0..=mask).map(move |b| (a, b))).collect();
        let written = |x: u8| x << (8 - width);
        let [a, b] = [0, 1]
            .map(|i| pairs.iter().map(|p| written(if i == 0 { p.0 } else { p.1 })).collect::<Vec<u8>>());
        let sums: Vec<u8> = pairs.iter().map(|(a, b)| written(a.wrapping_add(*b) & mask)).collect();
        assert_eq!(run(&boolean::adder(width as usize), &[&a, &b]), sums, "{width} bits");
        let less: Vec<u8> = pairs.iter().map(|(a, b)| u8::from(a < b) << 7).collect();
        assert_eq!(run(&boolean::comparator(width as usize), &[&a, &b]), less, "{width} bits");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn numbers_are_added_and_compared(pairs in proptest::collection::vec(any::<(u64, u64)>(), 1..200)) {
        check_arithmetic(&pairs);
    }
}
