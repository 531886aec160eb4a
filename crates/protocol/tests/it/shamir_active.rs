//! Shamir sharing with an active adversary against the cleartext evaluator, and its counts against the
//! papers.

use std::sync::Arc;

use polyclave_cipher::{Builder, Circuit, Direction, boolean, catalog};
use polyclave_protocol::Error;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::shamir::{Inversion, Preprocessing, ShamirActiveConfig, Structure, Tables};
use polyclave_protocol_lab::testkit::conformance::{Run, check_circuit};

fn config((n, t): (usize, usize), inversion: Inversion, tables: Tables) -> ShamirActiveConfig {
    let structure = Structure::new(n, t).expect("it is valid");
    ShamirActiveConfig::new(structure, inversion, tables).expect("enough parties")
}

fn check(structure: (usize, usize), inversion: Inversion, circuit: &Circuit, lanes: usize) -> Run {
    check_circuit(&config(structure, inversion, Tables::Masked), circuit, lanes, lanes as u8)
}

fn encrypt(name: &str) -> Arc<Circuit> {
    catalog::find(name).expect("the catalog has it").encrypt
}

#[test]
fn every_inversion_computes_aes_and_its_inverse_with_the_key_schedule() {
    for inversion in Inversion::ALL {
        for name in ["aes-128", "aes-192", "aes-256"] {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let cipher = catalog::find(name).expect("the catalog has it");
                let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
                check((4, 1), inversion, &circuit, 2);
            }
        }
    }
}

#[test]
fn triple_des_runs_by_both_ways_to_look_up_its_tables() {
    for tables in Tables::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let cipher = catalog::find("3des-ede3").expect("the catalog has it");
            let circuit = cipher.circuit_with_key_schedule(direction).expect("it runs both ways");
            check_circuit(&config((4, 1), Inversion::MaskedPowers, tables), &circuit, 3, 3);
        }
    }
}

#[test]
fn every_cipher_runs_in_both_directions() {
    for cipher in catalog::all() {
        if cipher.key_bytes > 0 {
            check((4, 1), Inversion::MaskedPowers, &cipher.key_schedule, 1);
        }
        for circuit in [Some(cipher.encrypt), cipher.decrypt].into_iter().flatten() {
            check((4, 1), Inversion::MaskedPowers, &circuit, 2);
        }
    }
}

#[test]
fn every_structure_of_which_fewer_than_a_third_may_cheat_computes_aes() {
    for n in 4..=9 {
        for t in 1..=(n - 1) / 3 {
            check((n, t), Inversion::MaskedPowers, &encrypt("aes-128"), 2);
        }
    }
    for inversion in Inversion::ALL {
        check((7, 2), inversion, &encrypt("aes-128"), 2);
    }
    check((7, 2), Inversion::Views, &encrypt("des"), 2);
}

#[test]
fn batches_longer_than_a_tile_are_right() {
    for inversion in [Inversion::Views, Inversion::Masking, Inversion::MaskedPowers] {
        check((4, 1), inversion, &encrypt("aes-128"), 3000);
    }
    check((4, 1), Inversion::Views, &encrypt("des"), 2500);
}

#[test]
fn tables_of_two_bits_take_one_triple_in_one_round() {
    let adder = boolean::adder(16);
    let (ands, levels, lanes) = (adder.lookups() as u64, adder.layers() as u64, 5);
    for tables in Tables::ALL {
        for preprocessing in Preprocessing::ALL {
            let config = config((4, 1), Inversion::MaskedPowers, tables).with_preprocessing(preprocessing);
            let run = check_circuit(&config, &adder, lanes, 3);
            for tally in run.tallies {
                let products = ands * lanes as u64;
                assert_eq!((tally.online.operations(), tally.online.rounds), (products, levels));
                assert_eq!(tally.preprocessing.triples, products, "{tables}");
            }
            assert_eq!((run.cost.operations_per_lane, run.cost.rounds), (ands as f64, levels as f64));
            assert_eq!(run.cost.triples_per_lane, ands as f64);
        }
    }
}

#[test]
fn a_third_and_more_cheaters_are_refused() {
    for (n, t) in [(3, 1), (5, 2), (6, 2), (9, 3)] {
        let structure = Structure::new(n, t).expect("an honest majority");
        let outcome = ShamirActiveConfig::new(structure, Inversion::Views, Tables::Masked);
        assert!(matches!(outcome, Err(Error::Misuse(_))), "{n} {t}");
    }
    assert_eq!(config((4, 1), Inversion::Views, Tables::Masked).name(), "shamir-active");
}

/// Damgard and Keller 2010, Table 2: operations and rounds of one S-box, online. Ahead, besides: a round for
/// triples and two for the verdict.
#[test]
fn table_2_holds_online() {
    let mut b = Builder::new("one S-box");
    let s = b.table(&Arc::new(polyclave_cipher::aes::s_box()));
    let x = b.input("x", 1, 8)[0];
    let y = b.lookup(s, x);
    b.output("y", &[y]);
    let circuit = b.finish();
    let table = [
        (Inversion::Standard, (14, 14), (0, 3), 13),
        (Inversion::Shortest, (12, 12), (0, 3), 11),
        (Inversion::ShortestLeastRounds, (12, 10), (0, 3), 11),
        (Inversion::LeastRounds, (14, 9), (0, 3), 13),
        (Inversion::MaskedExponentiation, (8, 5), (7, 10), 6),
        (Inversion::Views, (5, 4), (0, 3), 4),
        (Inversion::CarriedSquares, (4, 3), (0, 3), 4),
        (Inversion::MaskedPowers, (2, 2), (4, 5), 1),
        (Inversion::Viff11, (12, 12), (0, 3), 11),
        (Inversion::Viff9, (12, 10), (0, 3), 11),
    ];
    for (inversion, online, ahead, triples) in table {
        for tally in check((4, 1), inversion, &circuit, 1).tallies {
            assert_eq!((tally.online.operations(), tally.online.rounds), online, "{inversion}");
            let preprocessing = tally.preprocessing;
            assert_eq!((preprocessing.operations(), preprocessing.rounds), ahead, "{inversion}");
            assert_eq!(preprocessing.triples, triples, "{inversion}");
        }
    }
}

#[test]
fn masking_takes_11_and_2_of_255_operations_in_the_mean() {
    let lanes = 2000;
    let run = check((4, 1), Inversion::Masking, &encrypt("aes-128"), lanes);
    let s_boxes = 160.0 * lanes as f64;
    let mean = run.tallies[0].online.operations() as f64 / s_boxes;
    // A position retries with probability 1/256; six standard deviations of the mean.
    let deviation = 6.0 * 2.0 * (1.0 / 256.0 / s_boxes).sqrt();
    let expected = 11.0 + 2.0 / 255.0;
    assert!((mean - expected).abs() < deviation, "{mean} is not {expected} within {deviation}");
}
