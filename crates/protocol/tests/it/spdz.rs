//! Authenticated sharing against the cleartext evaluator, and its counts against Keller et al. 2017, Table 2.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Direction, catalog};
use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, Gf2_128, MacField};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig};
use polyclave_protocol_lab::dealers::InsecureDealing;
use polyclave_protocol_lab::testkit::conformance::{self, Run, check_circuit};

fn config<F: MacField>(parties: usize, way: LookupMethod, k: usize) -> SpdzConfig<F> {
    let packing = Packing::of::<F>(k).expect("the field has this packing");
    SpdzConfig::new(parties, way, Preprocessing::Dealt(&InsecureDealing), packing).expect("it is valid")
}

/// With material from oblivious transfer.
fn real<F: MacField>(parties: usize, way: LookupMethod) -> SpdzConfig<F> {
    let packing = Packing::of::<F>(F::BITS as usize).expect("the field has this packing");
    SpdzConfig::new(parties, way, Preprocessing::Mascot { expansion: 2 }, packing).expect("it is valid")
}

fn default<F: MacField>(parties: usize, way: LookupMethod) -> SpdzConfig<F> {
    config(parties, way, F::BITS as usize)
}

fn circuit(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    match direction {
        Direction::Encrypt => (*cipher.encrypt).clone(),
        Direction::Decrypt => (*cipher.decrypt.expect("it has an inverse")).clone(),
    }
}

fn with_key_schedule(name: &str, direction: Direction) -> Circuit {
    let cipher = catalog::find(name).expect("the catalog has it");
    cipher.circuit_with_key_schedule(direction).expect("it runs both ways")
}

const DIRECTIONS: [Direction; 2] = [Direction::Encrypt, Direction::Decrypt];

#[test]
fn aes_in_every_way_and_size_is_right() {
    for way in [LookupMethod::MaskedTables, LookupMethod::BitDecomposition, LookupMethod::RivainProuff] {
        for name in ["aes-128", "aes-192", "aes-256"] {
            for direction in DIRECTIONS {
                check_circuit(&default::<Gf2_64>(2, way), &with_key_schedule(name, direction), 3, 7);
            }
        }
    }
}

#[test]
fn des_in_every_way_is_right() {
    for direction in DIRECTIONS {
        for way in [LookupMethod::MaskedTables, LookupMethod::PulkusVivek] {
            check_circuit(&default::<Gf2_64>(2, way), &with_key_schedule("3des-ede3", direction), 3, 1);
            check_circuit(&default::<Gf2_40>(3, way), &with_key_schedule("des", direction), 2, 2);
        }
        check_circuit(
            &default::<Gf2_42>(2, LookupMethod::Univariate),
            &with_key_schedule("des", direction),
            2,
            3,
        );
    }
}

#[test]
fn more_parties_and_other_fields_are_right() {
    let circuit = circuit("aes-128", Direction::Encrypt);
    for parties in [3, 4, 5] {
        check_circuit(&default::<Gf2_64>(parties, LookupMethod::MaskedTables), &circuit, 5, 4);
    }
    check_circuit(&default::<Gf2_40>(2, LookupMethod::MaskedTables), &circuit, 70, 5);
    check_circuit(&default::<Gf2_128>(2, LookupMethod::MaskedTables), &circuit, 2, 6);
    check_circuit(&default::<Gf2_128>(3, LookupMethod::RivainProuff), &circuit, 2, 7);
}

/// Keller et al. 2017, Table 2: rounds and openings online, triples and bits of preprocessing, for one block.
#[test]
fn table_2_is_what_the_protocol_counts() {
    fn counted<F: MacField>(way: LookupMethod, cipher: &str) -> [u64; 4] {
        let lanes = 3;
        let Run { tallies, cost, .. } =
            check_circuit(&default::<F>(2, way), &circuit(cipher, Direction::Encrypt), lanes, 9);
        for tally in &tallies {
            assert_eq!(tally.online.rounds as f64, cost.rounds);
            assert_eq!(tally.online.openings as f64, cost.operations_per_lane * lanes as f64);
        }
        let online = tallies[0].online;
        // Triples and bits of masked tables are those of their preprocessing, which the dealer spares.
        let [triples, bits] = [cost.triples_per_lane, cost.bits_per_lane].map(|count| count as u64);
        [online.rounds, online.openings / lanes as u64, triples, bits]
    }
    use LookupMethod::*;
    assert_eq!(counted::<Gf2_40>(BitDecomposition, "aes-128"), [50, 2240, 960, 2560]);
    assert_eq!(counted::<Gf2_40>(RivainProuff, "aes-128"), [70, 1920, 640, 5120]);
    assert_eq!(counted::<Gf2_40>(MaskedTables, "aes-128"), [10, 160, 1760, 42240]);
    assert_eq!(counted::<Gf2_40>(PulkusVivek, "3des-ede3"), [230, 3456, 1152, 9216]);
    assert_eq!(counted::<Gf2_40>(MaskedTables, "3des-ede3"), [46, 384, 1920, 26880]);
    // The text implies the triples, 384 times 62. A cell has 6 bits to decompose, and layers that do not
    // depend on each other run together.
    assert_eq!(counted::<Gf2_42>(Univariate, "3des-ede3"), [46 * 63, 384 * 125, 23808, 2304]);
}

/// A table of so many input bits, on cells that are inputs.
fn one_lookup(in_bits: u8) -> Circuit {
    let entries = (0..1u32 << in_bits).map(|x| (x.wrapping_mul(0x9e37_79b9) >> 24) as u8 & 15).collect();
    let mut b = Builder::new("one lookup");
    let table = b.table(&Arc::new(polyclave_cipher::Table::new("a table", in_bits, 4, entries)));
    let x = b.input("x", 1, in_bits)[0];
    let y = b.lookup(table, x);
    b.output("y", &[y]);
    b.finish()
}

#[test]
fn tables_of_every_width_are_right() {
    for in_bits in 1..=8 {
        check_circuit(&default::<Gf2_64>(2, LookupMethod::MaskedTables), &one_lookup(in_bits), 300, in_bits);
    }
}

#[test]
fn real_material_gives_right_answers() {
    check_circuit(&real::<Gf2_64>(2, LookupMethod::MaskedTables), &one_lookup(8), 20, 1);
    check_circuit(&real::<Gf2_40>(3, LookupMethod::MaskedTables), &one_lookup(6), 5, 2);
    check_circuit(
        &real::<Gf2_64>(2, LookupMethod::RivainProuff),
        &circuit("aes-128", Direction::Encrypt),
        1,
        3,
    );
    check_circuit(
        &real::<Gf2_40>(2, LookupMethod::MaskedTables),
        &circuit("aes-128", Direction::Encrypt),
        1,
        3,
    );
    check_circuit(&real::<Gf2_64>(2, LookupMethod::PulkusVivek), &circuit("des", Direction::Encrypt), 2, 4);
    check_circuit(&real::<Gf2_42>(2, LookupMethod::Univariate), &one_lookup(6), 2, 4);
}

#[test]
fn tables_of_single_bits_are_made_of_triples_of_bits() {
    let mascot = Preprocessing::Mascot { expansion: 2 };
    let bits = |parties| {
        let packing = Packing::of::<Gf2_64>(1).expect("the field has this packing");
        SpdzConfig::<Gf2_64>::new(parties, LookupMethod::MaskedTables, mascot, packing).expect("it is valid")
    };
    let circuit = circuit("des", Direction::Encrypt);
    let run = check_circuit(&bits(2), &circuit, 2, 8);
    // 2^6 - 2 products a table (Keller et al. 2017, Table 1).
    assert_eq!(run.tallies[0].preprocessing.triples, 2 * 128 * 62);
    let inputs: Vec<_> =
        circuit.inputs().iter().map(|port| Cells::zero(port.cells.len(), port.bits, 1)).collect();
    let error =
        conformance::run(&bits(3), &circuit, 1, &inputs).err().expect("TinyOT is between two parties");
    assert!(error.to_string().contains("two parties"), "{error}");
}
