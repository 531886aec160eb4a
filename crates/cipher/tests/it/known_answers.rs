//! Every cipher against published known answers, and against an independent library on random inputs.

use cipher::{BlockCipherEncrypt, KeyInit};
use polyclave_cipher::{AnyMap, Cells, Circuit, Direction, Maps, Matrix, catalog, cleartext, compile};
use proptest::prelude::*;

#[derive(serde::Deserialize)]
struct KnownAnswer {
    cipher: String,
    key: String,
    plaintext: String,
    ciphertext: String,
}

fn known_answers() -> Vec<KnownAnswer> {
    serde_json::from_str(include_str!("../../../../vectors/block-ciphers.json"))
        .expect("the vectors file is well-formed")
}

fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).expect("vectors are hexadecimal")
}

/// Runs a circuit compiled for `maps`; one block per lane, uniform inputs one block.
fn run(circuit: &Circuit, maps: &impl Maps, inputs: &[&[u8]]) -> Vec<u8> {
    let compiled = compile(circuit, maps);
    let ports = circuit.inputs().iter().zip(inputs);
    let cells: Vec<Cells> =
        ports.map(|(p, x)| Cells::from_blocks(p.cells.len(), p.bits, x).expect("whole blocks")).collect();
    let lanes = circuit.inputs().iter().zip(&cells).filter(|(p, _)| !p.uniform).map(|(_, c)| c.lanes()).max();
    cleartext::run(&compiled, lanes.unwrap_or(1), &cells).expect("the inputs fit").remove(0).to_blocks()
}

fn crypt(name: &str, direction: Direction, maps: &impl Maps, key: &[u8], blocks: &[u8]) -> Vec<u8> {
    let cipher = catalog::find(name).expect("the catalog has it");
    let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
    run(&circuit, maps, &[blocks, key])
}

/// Only sums of unchanged cells and maps of single bits are free: the wires of projection gates.
struct XorOnly;

impl Maps for XorOnly {
    fn is_local(&self, m: &Matrix) -> bool {
        m.is_identity() || m.ins() == 1
    }
}

/// Products by a constant of GF(2^8) are free: Shamir shares. Lookups want their input and its square.
struct ScalarsWithSquares;

impl Maps for ScalarsWithSquares {
    fn is_local(&self, m: &Matrix) -> bool {
        m.as_scalar().is_some()
    }

    /// (c M)(x) = c M(x): views that differ by a constant factor are one view.
    fn split(&self, m: &Matrix) -> (Matrix, Matrix) {
        let first = m.columns().into_iter().find(|c| *c != 0).filter(|_| m.outs() == 8 && !self.is_local(m));
        let factor = Matrix::scalar(first.unwrap_or(1));
        match (self.is_local(m), first) {
            (true, _) => (*m, Matrix::identity(m.ins())),
            (false, Some(_)) => (factor, factor.inverse().expect("it is not 0").after(m)),
            (false, None) => (Matrix::identity(m.outs()), *m),
        }
    }

    fn wants(&self, table: &polyclave_cipher::Table) -> Vec<Matrix> {
        let identity = Matrix::identity(table.in_bits());
        if table.inversion().is_some() { vec![identity, Matrix::frobenius(1)] } else { vec![identity] }
    }
}

#[test]
fn published_answers_hold_in_both_directions() {
    let mut checked = 0;
    for answer in known_answers() {
        let (name, expected) = (answer.cipher.to_lowercase(), bytes(&answer.ciphertext));
        let (key, plaintext) = (bytes(&answer.key), bytes(&answer.plaintext));
        if let Some(name) = name.strip_suffix("-keyschedule") {
            let cipher = catalog::find(name).expect("the catalog has it");
            assert_eq!(run(&cipher.key_schedule, &AnyMap, &[&key]), expected, "{name} key schedule");
        } else {
            assert_eq!(crypt(&name, Direction::Encrypt, &AnyMap, &key, &plaintext), expected, "{name}");
            if catalog::find(&name).is_some_and(|c| c.decrypt.is_some()) {
                let decrypted = crypt(&name, Direction::Decrypt, &AnyMap, &key, &expected);
                assert_eq!(decrypted, plaintext, "{name} decryption");
            }
        }
        checked += 1;
    }
    assert!(checked > 400, "only {checked} answers were checked");
}

#[test]
fn folding_maps_into_views_changes_no_answer() {
    for answer in known_answers().iter().filter(|a| !a.plaintext.is_empty()).step_by(17) {
        let (name, ciphertext) = (answer.cipher.to_lowercase(), bytes(&answer.ciphertext));
        let (key, plaintext) = (bytes(&answer.key), bytes(&answer.plaintext));
        assert_eq!(
            crypt(&name, Direction::Encrypt, &ScalarsWithSquares, &key, &plaintext),
            ciphertext,
            "{name}"
        );
        assert_eq!(
            crypt(&name, Direction::Decrypt, &ScalarsWithSquares, &key, &ciphertext),
            plaintext,
            "{name}"
        );
        if name.starts_with("aes") {
            assert_eq!(crypt(&name, Direction::Encrypt, &XorOnly, &key, &plaintext), ciphertext, "{name}");
            assert_eq!(crypt(&name, Direction::Decrypt, &XorOnly, &key, &ciphertext), plaintext, "{name}");
        }
    }
}

#[test]
fn layers_fall_out_of_the_dependencies() {
    let layers = |name: &str| {
        let cipher = catalog::find(name).expect("the catalog has it");
        let alone = cipher.encrypt.layers();
        let with_key = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts").layers();
        (alone, with_key, cipher.decrypt.expect("it decrypts").layers())
    };
    assert_eq!(layers("aes-128"), (10, 10, 10));
    assert_eq!(layers("aes-192"), (12, 12, 12));
    assert_eq!(layers("aes-256"), (14, 14, 14));
    assert_eq!(layers("des"), (16, 16, 16));
    assert_eq!(layers("3des-ede3"), (46, 46, 46));
    assert_eq!(layers("3des-ede2"), (46, 46, 46));
}

#[test]
fn lookups_are_as_many_as_the_papers_count() {
    let lookups = |name: &str| {
        let cipher = catalog::find(name).expect("the catalog has it");
        (cipher.encrypt.lookups(), cipher.key_schedule.lookups())
    };
    // Damgard and Keller 2010, Table 1; Keller et al. 2017, Table 2.
    assert_eq!(lookups("aes-128"), (160, 40));
    assert_eq!(lookups("aes-192"), (192, 32));
    assert_eq!(lookups("aes-256"), (224, 52));
    assert_eq!(lookups("3des-ede3"), (384, 0));
}

#[test]
fn aes_needs_304_projections_where_only_xor_is_free() {
    let cipher = catalog::find("aes-128").expect("the catalog has it");
    assert_eq!(polyclave_cipher::CircuitCost::of(&compile(&cipher.encrypt, &XorOnly)).views, 304);
}

/// What an independent library says, of the ciphers it has.
fn oracle(name: &str, key: &[u8], blocks: &[u8]) -> Option<Vec<u8>> {
    fn encrypt<C: BlockCipherEncrypt + KeyInit>(key: &[u8], blocks: &[u8]) -> Vec<u8> {
        let cipher = C::new_from_slice(key).expect("the key has the right length");
        let mut out = blocks.to_vec();
        for block in out.chunks_exact_mut(C::block_size()) {
            cipher.encrypt_block(block.try_into().expect("a whole block"));
        }
        out
    }
    Some(match name {
        "aes-128" => encrypt::<aes::Aes128>(key, blocks),
        "aes-192" => encrypt::<aes::Aes192>(key, blocks),
        "aes-256" => encrypt::<aes::Aes256>(key, blocks),
        "des" => encrypt::<des::Des>(key, blocks),
        "3des-ede2" => encrypt::<des::TdesEde2>(key, blocks),
        "3des-ede3" => encrypt::<des::TdesEde3>(key, blocks),
        _ => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn random_blocks_agree_with_an_independent_library(
        which in 0..6usize,
        key in proptest::collection::vec(any::<u8>(), 32),
        blocks in proptest::collection::vec(any::<u8>(), 16 * 5),
    ) {
        let cipher = &catalog::all()[which];
        let key = &key[..cipher.key_bytes];
        let Some(expected) = oracle(&cipher.name, key, &blocks) else { return Ok(()) };
        prop_assert_eq!(&crypt(&cipher.name, Direction::Encrypt, &AnyMap, key, &blocks), &expected);
        prop_assert_eq!(&crypt(&cipher.name, Direction::Decrypt, &AnyMap, key, &expected), &blocks);
    }
}
