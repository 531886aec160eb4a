//! One published answer of every lightweight cipher under every family of protocols, both ways, with the key schedule in the circuit.
//!
//! What the parties open must be what the cleartext evaluator gives, and that what was published.

use polyclave_cipher::{Cells, Circuit, Direction, boolean, catalog};
use polyclave_field::{Gf2_64, MacField};
use polyclave_protocol::garbled::projection::{Labels, ProjectionScheme};
use polyclave_protocol::garbled::{GarbledScheme, Gates};
use polyclave_protocol::protocol::Scheme;
use polyclave_protocol::release::{Checked, Unverified};
use polyclave_protocol::shamir::{Inversion, ShamirScheme, Structure, Tables};
use polyclave_protocol::spdz::{self, Packing, SpdzScheme, Way};
use polyclave_protocol::testkit::conformance;
use polyclave_protocol::tinytable::{Macs, Preprocessing, TinyTableScheme};

#[derive(serde::Deserialize)]
struct KnownAnswer {
    cipher: String,
    key: String,
    #[serde(default)]
    tweak: String,
    plaintext: String,
    ciphertext: String,
}

/// The first answer of each cipher.
fn known_answers() -> Vec<KnownAnswer> {
    let all: Vec<KnownAnswer> =
        serde_json::from_str(include_str!("../../../../vectors/lightweight-ciphers.json"))
            .expect("the vectors file is well-formed");
    let mut seen = std::collections::HashSet::new();
    all.into_iter().filter(|answer| seen.insert(answer.cipher.clone())).collect()
}

/// Every answer, encrypted and decrypted.
fn check(scheme: &impl Scheme, form: fn(&Circuit) -> Circuit) {
    let answers = known_answers();
    assert_eq!(answers.len(), 22);
    for answer in answers {
        let cipher = catalog::find(&answer.cipher).expect("the catalog has it");
        let ways = [
            (Direction::Encrypt, &answer.plaintext, &answer.ciphertext),
            (Direction::Decrypt, &answer.ciphertext, &answer.plaintext),
        ];
        for (direction, from, to) in ways {
            let Some(circuit) = cipher.circuit_with_key_schedule(direction) else { continue };
            let circuit = form(&circuit);
            let inputs: Vec<Cells> = circuit
                .inputs()
                .iter()
                .map(|port| {
                    let text = match port.name.as_str() {
                        "block" => from,
                        "tweak" => &answer.tweak,
                        _ => &answer.key,
                    };
                    let bytes = hex::decode(text).expect("vectors are hexadecimal");
                    Cells::from_blocks(port.cells.len(), port.bits, &bytes).expect("one block")
                })
                .collect();
            let run = conformance::run(scheme, &circuit, 1, &inputs).expect("honest parties finish");
            let opened = hex::encode(run.outputs[0].to_blocks());
            assert_eq!(opened, *to, "{} {direction:?} under {}", answer.cipher, scheme.name());
        }
    }
}

#[test]
fn shamir() {
    let structure = Structure::new(3, 1).expect("it is valid");
    check(
        &ShamirScheme { structure, inversion: Inversion::CarriedSquares, tables: Tables::Masked },
        Circuit::clone,
    );
}

#[test]
fn spdz() {
    let packing = Packing::of::<Gf2_64>(Gf2_64::BITS as usize).expect("the field has this packing");
    let scheme =
        SpdzScheme::<Gf2_64>::new(2, Way::MaskedTables, spdz::Preprocessing::InsecureDealer, packing);
    check(&scheme.expect("it is valid"), Circuit::clone);
}

#[test]
fn scrambled_tables() {
    let passive = TinyTableScheme::<Unverified<Cells>>::new(Macs::None, Preprocessing::InsecureDealer);
    check(&passive.expect("it is passive"), Circuit::clone);
    let active = TinyTableScheme::<Checked<Cells>>::new(Macs::Linear64, Preprocessing::InsecureDealer);
    check(&active.expect("it is active"), Circuit::clone);
}

#[test]
fn half_gates() {
    check(&GarbledScheme { gates: Gates::Half, expansion: 4 }, boolean::expand);
}

#[test]
fn projection_gates() {
    for labels in [Labels::Long, Labels::Short] {
        check(&ProjectionScheme { labels, expansion: 4 }, Circuit::clone);
    }
}
